"""The verdict of a comparison: the finding, and the next step."""

from __future__ import annotations

from collections.abc import Mapping

from selfsent.evaluation.results import Score, best_minus
from selfsent.stats.resampling import Difference

UNTRAINED = "untrained"
"""Name of the untrained base."""
LABEL = "label a hundred pairs with selfsent label, and choose by them with dev=FILE"
"""Advice if no label-free score is reliable."""
_MORE = "more text or more time"
_STRONGER = "A stronger base may change that (base= takes several)."


def conclusion(
    best: str,
    dev: Mapping[str, Score],
    tests: Mapping[str, Score],
    baselines: Mapping[str, Score],
    bases: Mapping[str, Score],
    start: str | None,
    was_strong: bool,
) -> tuple[str, str]:
    """The finding as a headline, and the advice. A paired interval that excludes zero decides.

    Args:
        best: name of the best encoder.
        dev: development scores of all encoders by name.
        tests: scores on test documents, which decide if there are any.
        baselines: development scores of TF-IDF and BM25.
        bases: development scores of the untrained bases.
        start: base of the chosen method; None if an untrained base is the best.
        was_strong: whether it was chosen without labels from a base that is a sentence encoder already.
    """
    scores = tests or {**dev, **baselines}
    called = _named(best)

    def better_than(name: str) -> Difference:
        return scores[best].minus(scores[name]) if tests else best_minus(list(dev.values()), scores[name])

    rivals = {name: better_than(name) for name in ("TF-IDF", "BM25") if name in scores}
    ahead = [name for name, less in rivals.items() if less.high < 0]
    level = [name for name, less in rivals.items() if less.low <= 0 <= less.high]
    if unbeaten := ahead or level:
        use = max(unbeaten, key=lambda name: scores[name].score)
        advice = f"Use {use}, which needs no model, or, where you need vectors, {called}. {_STRONGER}"
        if not ahead:
            return f"No encoder is shown to beat {' and '.join(level)} here", advice
        words = baselines
        every = all(n in words and score.minus(words[n]).high < 0 for n in ahead for score in dev.values())
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
        where = f"where what it was chosen by is what you need: it beats {base}, {gain.shown}"
        return beats, f"Use its model {where}. {there}"
    if gain.low > 0:
        return beats, f"Use its model. It beats {base}, too: {gain.shown}."
    how = "It does worse than" if gain.high < 0 else "It is not shown to beat"
    return beats, f"{how} {base}: {gain.shown}. Use that as it is, or give {_MORE}."


def _named(name: str) -> str:
    return f"the {UNTRAINED} base" if name == UNTRAINED else name
