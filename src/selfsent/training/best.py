"""The model of the best development score, kept beside the checkpoints until the run is over."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from selfsent.distributed import by_first, rank, wait
from selfsent.errors import TrainingError
from selfsent.files import atomic_directory, read_json
from selfsent.integrity import checksums, damaged, is_signed, signed
from selfsent.methods import Learner
from selfsent.training.checkpoint import restore, snapshot

_FILE, _ABOUT = "learner.safetensors", "best.json"


class Best:
    """The best score of a run, and the learner that had it.

    Args:
        run: the run's directory.
        keep: whether the learner is kept, or the score alone.
    """

    def __init__(self, run: Path, keep: bool) -> None:
        self.directory, self.keep = run / "best", keep
        self.score = -math.inf

    def go_on(self, score: float | None, dev: str | None, was: str | None) -> str | None:
        """Begin with the best score of the run that is gone on with; what the user should know of it, if anything.

        Args:
            score: the best one so far; None without any.
            dev: what is scored from here on.
            was: what was scored.
        """
        if score is None:
            return None
        kept = by_first(lambda: read_json(self.directory / _ABOUT).get("score"))
        if dev == was and (not self.keep or (isinstance(kept, int | float) and kept >= score)):
            self.score = score
            return None
        if not self.keep:
            return None
        self.forget()
        why = "no earlier best model was kept" if dev == was else f"the earlier best model was chosen by {was}"
        return f"{why}: the best one from here on is the result"

    def offer(self, score: float, step: int, learner: Learner) -> None:
        """Keep the score and the learner if there was no better one."""
        if not score > self.score:  # nor if it is not a number
            return
        self.score = score
        if self.keep and rank() == 0:
            with atomic_directory(self.directory) as temporary:
                save_file(snapshot(learner), str(temporary / _FILE))
                about = {"step": step, "score": score, "sums": checksums(temporary, [_FILE])}
                (temporary / _ABOUT).write_text(json.dumps(signed(about)))

    def put_back(self, learner: Learner) -> dict[str, Any]:
        """Give the learner the weights of the best score, where they were kept; `step` and `score`, or nothing.

        Raises:
            TrainingError: they are damaged.
        """
        wait()
        weights, about = by_first(self._kept)  # other machines may not have it
        if weights:
            restore(learner, weights)
        return about

    def _kept(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        if not (self.keep and self.directory.is_dir()):
            return {}, {}
        about = read_json(self.directory / _ABOUT)
        if "step" not in about or not is_signed(about) or damaged(self.directory, about.get("sums", {})):
            raise TrainingError(
                f"{self.directory} is damaged, and the model of the best score is lost",
                "remove it to keep the model of the last step, or --overwrite the run",
            )
        return load_file(str(self.directory / _FILE)), {name: about[name] for name in ("step", "score")}

    def forget(self) -> None:
        """Delete what was kept; the first process does."""
        wait()
        if rank() == 0:
            shutil.rmtree(self.directory, ignore_errors=True)
