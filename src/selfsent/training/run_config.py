"""Options of `train` other than settings and options of the method: changes of the base, and of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from selfsent.errors import SettingsError
from selfsent.models.heads.options import HEADS, Pooling
from selfsent.naming import names
from selfsent.settings import accept_former_names, check_limits, setting

Scorer = Callable[[Any], float]
"""The score of an `Encoder`; higher is better."""


@dataclass(frozen=True)
class ModelOptions:
    """Changes of the base before and after training.

    Raises:
        SettingsError: a value is out of range.
    """

    preset: str | None = setting(None, "published: exactly the paper's settings", flags=("--settings",))
    pooling: Pooling | None = setting(None, "pooling (default: the base's or method's)")
    head: str | None = setting(None, "a CNN to put before, or in place of, the pooling", choices=tuple(HEADS))
    dropout: float | None = setting(None, "dropout rate of the encoder, instead of its own", minimum=0.0, maximum=0.99)
    lora: int | None = setting(
        None, "train adapters of this rank (LoRA), such as 16, and leave the transformer be", minimum=1, maximum=1024
    )
    keep_adapter: bool = setting(False, "save the adapter of --lora by itself, instead of merged with the base")
    whiten: float | None = setting(
        None,
        "whiten the trained encoder's vectors, with a strength of 0 to 1 (default: 0; after neighbours on a table 0.1)",
        nargs="?",
        const=1.0,
        minimum=0.0,
        maximum=1.0,
    )
    query_prompt: str | None = setting(None, "put before each query, and saved with the model (default: the base's)")
    document_prompt: str | None = setting(None, "put before each text that queries search (default: the base's)")
    prompts: bool = setting(True, "prompts before texts, where the base has any or they are given")

    matryoshka: tuple[str, ...] = setting((), "sizes, as 256,128: so many first numbers are vectors too", metavar="N,N")

    def __post_init__(self) -> None:
        object.__setattr__(self, "matryoshka", names(self.matryoshka))
        check_limits(self)
        if not all(str(size).isdecimal() and int(size) for size in self.matryoshka):
            raise SettingsError(f"matryoshka is {','.join(map(str, self.matryoshka))}; it must be sizes: 256,128,64")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of vectors that are trained for, in descending order."""
        return tuple(sorted({int(size) for size in self.matryoshka}, reverse=True))


@dataclass(frozen=True)
class RunConfig:
    """Checkpoints, scores and logs of a run.

    Raises:
        SettingsError: a value is out of range.
    """

    augmentations: tuple[str, ...] = setting(
        (),
        "make the two views first, as selfsent augment does: synonym, mlm ...",
        flags=("--augmentations", "--views"),
        formerly="views",
    )
    sentences: int | None = setting(None, "train on N rows at most, drawn at random, the same for every seed")
    dedup: bool = setting(False, "leave out near-copies of texts that are kept apart to score by, and say how many")
    data: str | None = setting(None, "mirror of evaluation data sets (default: SELFSENT_DATA, then the hub)")
    checkpoint_every: int | None = setting(None, "steps between checkpoints (default: ten in a run)", minimum=1)
    keep: int | None = setting(None, "checkpoints kept (default: two while it runs, none of a finished run)", minimum=2)
    dev: str | None = setting(None, "score along the way: context, or a task such as stsb-dev")
    dev_every: int | None = setting(None, "steps between these scores (default: a tenth of the run)", minimum=1)
    keep_best: bool = setting(False, "keep the model with the best dev score instead of the last")
    warranty: float | None = setting(
        None,
        "keep of the training only what finds more in held-out documents and costs general sentences X points at most"
        " (default: 0.5), if nothing the base itself: see docs/exam.md",
        nargs="?",
        const=0.5,
        minimum=0.0,
    )
    scorer: Scorer | None = None
    """Made of `dev` and the corpus."""
    clock: Any = None
    """The `Clock` of a run with a budget; by default it begins with the training, and keeps nothing for afterwards."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "augmentations", names(self.augmentations))
        check_limits(self)


accept_former_names(RunConfig)
