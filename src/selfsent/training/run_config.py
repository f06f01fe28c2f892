"""What a run does beside training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from selfsent.errors import SettingsError
from selfsent.models.encoder import Encoder
from selfsent.naming import names
from selfsent.training.budget import Clock
from selfsent.training.trackers import check_trackers

Scorer = Callable[[Encoder], float]
Notice = Callable[[str], None]


@dataclass(frozen=True)
class RunConfig:
    """What a run does beside training.

    Args:
        checkpoint_every: steps between two checkpoints; None for ten in a run, at least half a minute apart.
        keep: checkpoints kept, the newest, and one more where none of these is from before the last look at the space.
        dev: what is scored along the way: `context` (label-free, on documents kept apart for it) or a task such as
            `stsb-dev`.
        dev_every: steps between two scores; None for ten in a run.
        keep_best: whether the model with the best score is the result, instead of the last.
        map_points: sentences on the map of the run's page; 0 for no map.
        trackers: names of accelerate's trackers that are told the figures as well.
        scorer: what gives the scores: made of `dev` and the corpus; higher is better.
        clock: of a run with a budget; by default it begins with the training, and nothing is left for what follows.

    Raises:
        SettingsError: a value is out of range.
    """

    checkpoint_every: int | None = None
    keep: int = 2
    dev: str | None = None
    dev_every: int | None = None
    keep_best: bool = False
    map_points: int = 1_000
    trackers: str | Sequence[str] = ()
    scorer: Scorer | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "trackers", names(self.trackers))
        check_trackers(self.trackers)
        if self.keep < 2:
            raise SettingsError(
                f"--keep is {self.keep}; at least 2 checkpoints are kept, in case the newest is cut short"
            )
        for flag, every in (("--checkpoint-every", self.checkpoint_every), ("--dev-every", self.dev_every)):
            if every is not None and every < 1:
                raise SettingsError(f"{flag} is {every}; it must be at least 1")

    @classmethod
    def taken_from(cls, given: Mapping[str, Any]) -> tuple[RunConfig, dict[str, Any]]:
        """What is meant for a run's configuration, and the rest.

        Args:
            given: keyword arguments.
        """
        own = {item.name for item in fields(cls)} - {"scorer", "clock"}
        return cls(**{name: given[name] for name in own & given.keys()}), {
            name: value for name, value in given.items() if name not in own
        }
