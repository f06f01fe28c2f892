"""How sure a choice without labels is: what every judge says of the chosen encoder beside its untrained base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.judges import MEAN_OF, Held, aimed_at, make_judges
from selfsent.evaluation.results import AIMED, Score
from selfsent.evaluation.stats.resampling import Difference

MOST = 3000
"""Sentences that are judged at most: all judges look at two encoders, and each in its own way."""
LABEL = "label a hundred pairs with selfsent label, and choose by them with --dev"
"""What to do where no score without labels can be relied on."""


@dataclass(frozen=True)
class Opinion:
    """What one judge says of the chosen encoder beside its untrained base.

    Args:
        score: of the chosen encoder.
        gain: that minus the base's, paired.
        aimed: whether the method was trained to do what this judge asks.
    """

    score: Score
    gain: Difference
    aimed: bool

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"score": self.score.score, "gain": vars(self.gain), "aimed": self.aimed}


def opinions(corpus: Corpus, hold_out: HoldOut, method: str, chosen: Encoder, base: Encoder) -> dict[str, Opinion]:
    """What the judges say; empty where nothing is kept apart.

    Args:
        corpus: what was trained on.
        hold_out: its parts; those to choose by are judged.
        method: that the chosen encoder was trained with.
        chosen: that encoder.
        base: what it started from.
    """
    if hold_out.dev is None:
        return {}
    found = {}
    for name, judge in make_judges(Held(corpus, hold_out.dev, MOST), MEAN_OF)[0].items():
        try:
            score = judge.score(chosen)
            found[name] = Opinion(score, score.minus(judge.score(base)), name in aimed_at([method]))
        except DataError:
            continue
    return found


def doubt(found: Mapping[str, Opinion], best: str, base: str) -> str:
    """The opinions in one line: who finds the chosen encoder better than its base, who worse, and what to do."""
    if not found:
        return ""
    better = [_named(name, one) for name, one in found.items() if one.gain.low > 0]
    worse = [_named(name, one) for name, one in found.items() if one.gain.high < 0]
    apart = [name for name, one in found.items() if one.gain.low > 0 and not one.aimed]
    marked = f" ({AIMED} {best} was trained to do just that)" if any(AIMED in name for name in better + worse) else ""
    if worse:
        others = f"{', '.join(better)} find{'s' * (len(better) == 1)} {best} better than {base}, " if better else ""
        verb = "finds" if len(worse) == 1 else "find"
        return f"The judges do not agree: {others}{', '.join(worse)} {verb} it worse{marked}: {LABEL}"
    if not better:
        return f"No judge tells {best} from {base}: {LABEL}"
    verb = "finds" if len(better) == 1 else "find"
    said = f"{', '.join(better)} {verb} {best} better than {base}, and none finds it worse{marked}"
    if not apart:
        return f"Only judges that it was trained for speak for it: {said}: {LABEL}"
    return f"The judges agree: {said}"


def _named(name: str, opinion: Opinion) -> str:
    return name + AIMED * opinion.aimed
