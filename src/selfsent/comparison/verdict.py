"""The verdict of a comparison: the finding, the opinion of other label-free metrics, and the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.label_free import HeldOut, aimed_at, make_metrics
from selfsent.evaluation.results import AIMED, Score
from selfsent.evaluation.stats.resampling import Difference, paired_best

UNTRAINED = "untrained"
"""Name of the untrained base."""
LABEL = "label a hundred pairs with selfsent label, and choose by them with dev=FILE"
"""Advice if no label-free score is reliable."""
_MORE = "more text or more time"
_STRONGER = "A stronger base may change that (base= takes several)."
_MOST = 3000
"""Maximum number of sentences for the other metrics."""


@dataclass(frozen=True)
class Opinion:
    """A label-free metric of the chosen encoder.

    Args:
        score: of the encoder.
        gain: its paired difference to the untrained base.
        aimed: whether the method was trained for this metric.
    """

    score: Score
    gain: Difference
    aimed: bool

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"score": self.score.score, "gain": vars(self.gain), "aimed": self.aimed}


def opinions(corpus: Corpus, hold_out: HoldOut, method: str, chosen: Encoder, base: Encoder) -> dict[str, Opinion]:
    """All label-free metrics of an encoder and its base, by name; empty if nothing is held out.

    Args:
        corpus: the training corpus.
        hold_out: its parts; the development part is used.
        method: of the encoder.
        chosen: the encoder.
        base: its untrained base.
    """
    if hold_out.dev is None:
        return {}
    found = {}
    for name, judge in make_metrics(HeldOut(corpus, hold_out.dev, _MOST))[0].items():
        try:
            score = judge.score(chosen)
            found[name] = Opinion(score, score.minus(judge.score(base)), name in aimed_at([method]))
        except DataError:
            continue
    return found


def doubt(found: Mapping[str, Opinion], best: str, base: str) -> str:
    """Whether the metrics agree that the chosen encoder is better than its base, in one line; empty without any."""
    if not found:
        return ""
    marked = {name: name + AIMED * one.aimed for name, one in found.items()}
    better = [marked[name] for name, one in found.items() if one.gain.low > 0]
    worse = [marked[name] for name, one in found.items() if one.gain.high < 0]
    aimed = f" ({AIMED} {best} was trained to do just that)" if any(AIMED in name for name in better + worse) else ""

    def find(names: Sequence[str]) -> str:
        return f"{', '.join(names)} find{'s' * (len(names) == 1)}"

    if worse:
        others = f"{find(better)} {best} better than {base}, " if better else ""
        return f"The judges do not agree: {others}{find(worse)} it worse{aimed}: {LABEL}"
    if not better:
        return f"No judge tells {best} from {base}: {LABEL}"
    line = f"{find(better)} {best} better than {base}, and none finds it worse{aimed}"
    if not any(one.gain.low > 0 and not one.aimed for one in found.values()):
        return f"Only judges that it was trained for speak for it: {line}: {LABEL}"
    return f"The judges agree: {line}"


def conclusion(
    best: str,
    start: str | None,
    bases: Mapping[str, Score],
    trained: Mapping[str, Score],
    words: Mapping[str, Score],
    tests: Mapping[str, Score],
    *,
    was_strong: bool = False,
) -> tuple[str, str]:
    """The finding as a headline, and what to do next. A paired interval that excludes zero decides.

    Args:
        best: name of the chosen encoder, or of an untrained base.
        start: name of its untrained base; None for a base.
        bases: development scores of the untrained bases.
        trained: those of the trained encoders.
        words: those of TF-IDF and BM25; empty if the task needs vectors.
        tests: scores on test documents; they decide if available.
        was_strong: whether it was chosen without labels from a base that is a sentence encoder already.
    """
    dev = {**bases, **trained}
    scores = tests or {**dev, **words}
    called = _named(best)

    def better_than(name: str) -> Difference:
        return scores[best].minus(scores[name]) if tests else _picked(list(dev.values()), scores[name])

    rivals = {name: better_than(name) for name in ("TF-IDF", "BM25") if name in scores}
    ahead = [name for name, less in rivals.items() if less.high < 0]
    level = [name for name, less in rivals.items() if less.low <= 0 <= less.high]
    if unbeaten := ahead or level:
        use = max(unbeaten, key=lambda name: scores[name].score)
        advice = f"Use {use}, which needs no model, or, where you need vectors, {called}. {_STRONGER}"
        if not ahead:
            return f"No encoder is shown to beat {' and '.join(level)} here", advice
        every = all(name in words and score.minus(words[name]).high < 0 for name in ahead for score in dev.values())
        beaten = "every encoder" if every else f"the best encoder, {called},"
        return f"{' and '.join(ahead)} still beat{'s' * (len(ahead) == 1)} {beaten} here", advice
    shown = called.replace("the ", "The ", 1) if best == UNTRAINED else best
    beats = f"{shown} beats {' and '.join(rivals)} here" if rivals else f"{shown} has the best score here"
    if start is None:
        return beats, f"No method made it better: use it as it is, or give {_MORE}."
    strongest = max(bases.keys() & scores.keys(), key=lambda name: scores[name].score)
    base = _named(strongest)
    gain = better_than(strongest)
    if gain.low > 0 and was_strong:
        there = f"For topics and paraphrases use {_named(start)}, which is a sentence encoder already, or {LABEL}."
        return (
            beats,
            f"Use its model where what it was chosen by is what you need: it beats {base}, {gain.shown}. {there}",
        )
    if gain.low > 0:
        return beats, f"Use its model. It beats {base}, too: {gain.shown}."
    found = "It does worse than" if gain.high < 0 else "It is not shown to beat"
    return beats, f"{found} {base}: {gain.shown}. Use that as it is, or give {_MORE}."


def _named(name: str) -> str:
    return f"the {UNTRAINED} base" if name == UNTRAINED else name


def _picked(found: Sequence[Score], other: Score) -> Difference:
    """The best of several scores minus another, corrected for picking it on the same items."""
    samples = np.stack([score.samples for score in found])
    return paired_best(np.array([score.score for score in found]), other.score, samples, other.samples)
