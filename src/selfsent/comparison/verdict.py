"""What to do next, in plain words, from the scores of a comparison. A paired interval that excludes zero decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from selfsent.comparison.bases import UNTRAINED
from selfsent.comparison.doubts import LABEL
from selfsent.evaluation.results import Score
from selfsent.evaluation.stats.resampling import Difference, paired_best

_THE_BASE = f"the {UNTRAINED} base"
_MORE = "more text or more time"
_OR_ELSE = "A stronger base, named with --bases, may change that."


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
    """What was found, as a headline, and what to do next.

    Args:
        best: the encoder that was chosen, or a base as it is.
        start: what its base is called, untrained; None where the best one is a base.
        bases: the scores of all bases as they are, on what was chosen by.
        trained: the scores of all trained encoders on it.
        words: those of TF-IDF and BM25 on it; empty where it needs vectors.
        tests: on documents apart, the scores of the best, of its base, of the best base, and of TF-IDF and BM25; they
            decide where there are any.
        was_strong: whether it was chosen without labels from a base that is a sentence encoder already.
    """
    dev = {**bases, **trained}
    scores = tests or {**dev, **words}
    called = _called(best)

    def better_than(name: str) -> Difference:
        return scores[best].minus(scores[name]) if tests else _picked(list(dev.values()), scores[name])

    rivals = {name: better_than(name) for name in ("TF-IDF", "BM25") if name in scores}
    ahead = [name for name, less in rivals.items() if less.high < 0]
    level = [name for name, less in rivals.items() if less.low <= 0 <= less.high]
    if unbeaten := ahead or level:
        use = max(unbeaten, key=lambda name: scores[name].score)
        advice = f"Use {use}, which needs no model, or, where you need vectors, {called}. {_OR_ELSE}"
        if not ahead:
            return f"No encoder is shown to beat {_listed(level)} here", advice
        every = all(name in words and score.minus(words[name]).high < 0 for name in ahead for score in dev.values())
        beaten = "every encoder" if every else f"the best encoder, {called},"
        return f"{_listed(ahead)} still beat{'s' * (len(ahead) == 1)} {beaten} here", advice
    shown = called.replace("the ", "The ", 1) if best == UNTRAINED else best
    beats = f"{shown} beats {_listed(list(rivals))} here" if rivals else f"{shown} has the best score here"
    if start is None:
        return beats, f"No method made it better: use it as it is, or give {_MORE}."
    strongest = max(bases.keys() & scores.keys(), key=lambda name: scores[name].score)
    base = _called(strongest)
    gain = better_than(strongest)
    interval = f"{gain.difference:+z.2f} [{gain.low:+z.2f}, {gain.high:+z.2f}]"
    if gain.low > 0 and was_strong:
        there = f"For topics and paraphrases use {_called(start)}, which is a sentence encoder already, or {LABEL}."
        return (
            beats,
            f"Use its model where what it was chosen by is what you need: it beats {base}, {interval}. {there}",
        )
    if gain.low > 0:
        return beats, f"Use its model. It beats {base}, too: {interval}."
    found = "It does worse than" if gain.high < 0 else "It is not shown to beat"
    return beats, f"{found} {base}: {interval}. Use that as it is, or give {_MORE}."


def _called(name: str) -> str:
    return _THE_BASE if name == UNTRAINED else name


def _picked(found: Sequence[Score], other: Score) -> Difference:
    """The best of these minus another, on the items that it was picked by."""
    samples = np.stack([score.samples for score in found])
    return paired_best(np.array([score.score for score in found]), other.score, samples, other.samples)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)
