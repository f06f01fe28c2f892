"""Cut-offs of a search for queries without an answer, by split conformal calibration; an index keeps them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.files import read_json, write_json
from selfsent.integrity import is_signed, signed

FILE = "answers.json"
VERSION = 2
"""Format version of the file."""
CHANGED = 4
"""A calibration is out of date when more than one in this number of the texts that it was measured on has changed."""


def queries_needed(answer_rate: float) -> int:
    """The minimum number of calibration scores for which a cut-off with this answer rate is finite.

    Examples:
        >>> queries_needed(0.9)
        9
    """
    return math.ceil(1 / (1 - answer_rate) - 1e-6) - 1


def conformal_cutoff(scores: Sequence[float], answer_rate: float) -> float:
    """The cut-off that a new score reaches with a probability of at least `answer_rate`.

    The k-th smallest of n exchangeable scores, k = ⌊(n + 1)(1 - rate)⌋: a new one is below it with a probability of at
    most k / (n + 1). Split conformal prediction: Papadopoulos et al., 2002; Lei et al., 2018, arXiv:1604.04173, eq. 3.

    Args:
        scores: (n,) calibration scores, in any order.
        answer_rate: between 0 and 1.

    Raises:
        SettingsError: the rate is not between 0 and 1.
        DataError: too few scores.

    Examples:
        >>> conformal_cutoff([0.1, 0.2, 0.3, 0.4], 0.6)
        0.2
    """
    check_answer_rate(answer_rate)
    place = math.floor((len(scores) + 1) * (1 - answer_rate) + 1e-9)
    if place < 1:
        few = f"there {'is' if len(scores) == 1 else 'are'} {counted(len(scores), 'query', 'queries')} to measure by"
        needed = f"an answer rate of {answer_rate:g} needs {queries_needed(answer_rate):,} at least"
        raise DataError(f"{few}, and {needed}: add texts or queries, or give a lower `answer_rate`")
    return float(sorted(scores)[place - 1])


def check_answer_rate(rate: float) -> None:
    """Reject a rate that no cut-off has.

    Raises:
        SettingsError: it is not between 0 and 1, both excluded.
    """
    if not 0 < rate < 1:
        raise SettingsError(f"`answer_rate` is {rate:g}; it must be above 0 and below 1, such as 0.9")


@dataclass(frozen=True)
class Calibration:
    """The best score of queries drawn from the texts of an index, with their answers and without.

    Args:
        answered: (n,) best score of each query.
        unanswered: (n,) best score of each, its answers and their near-copies left out.
        lexical_weight: of the search.
        made_of: the queries, in words.
        texts: number of texts in the index at that time.
        rows: number of the next new row at that time.
        rerank: name of the model that orders the hits; empty if none does.
        candidates: that it reads for each query: of fewer, the best is further down.
        fingerprint: of that model; empty if it has none.
    """

    answered: tuple[float, ...]
    unanswered: tuple[float, ...]
    lexical_weight: float
    made_of: str
    texts: int
    rows: int
    rerank: str = ""
    candidates: int = 0
    fingerprint: str = ""

    @property
    def of(self) -> tuple[float, str, int]:
        """The search that it is of: weight of words, reranker (by its fingerprint if it has one), its candidates."""
        return self.lexical_weight, self.fingerprint or self.rerank, self.candidates

    @property
    def named(self) -> tuple[float, str, int]:
        """The same with the name of the reranker, whatever it was trained to since."""
        return self.lexical_weight, self.rerank, self.candidates

    def cutoff(self, answer_rate: float) -> float:
        """The least score of a hit that is shown. Raises as `conformal_cutoff`."""
        return conformal_cutoff(self.answered, answer_rate)

    def false_answers(self, answer_rate: float) -> float:
        """The share of queries without an answer for which some text reaches the cut-off all the same."""
        cutoff = self.cutoff(answer_rate)
        return sum(score >= cutoff for score in self.unanswered) / len(self.unanswered)

    def is_current(self, texts: int, rows: int) -> bool:
        """Whether an index of so many texts, and this next row, has changed by no more than a quarter since."""
        return max(rows - self.rows, abs(texts - self.texts)) * CHANGED <= self.texts

    def about(self, answer_rate: float) -> dict[str, Any]:
        """The facts of a cut-off for machines."""
        return {
            "answer_rate": answer_rate,
            "cutoff": round(self.cutoff(answer_rate), 6),
            "false_answer_rate": round(self.false_answers(answer_rate), 4),
            "measured_on": self.made_of,
        }


def nothing_here(answer_rate: float, made_of: str) -> str:
    """The answer to a query without a hit above the cut-off.

    Args:
        answer_rate: that was asked for.
        made_of: the queries that it was measured on.
    """
    wrong = f"{100 * (1 - answer_rate):.4g} of 100 queries that have an answer get this answer all the same"
    return f"nothing here ({wrong}, measured on {made_of})"


def read_calibrations(folder: Path) -> list[Calibration]:
    """The calibrations of an index, one for each kind of search; none if there are none of this version.

    Raises:
        DataError: the file is damaged.
    """
    about = read_json(folder / FILE)
    if not (folder / FILE).exists() or about.get("version", VERSION) != VERSION:  # measured again
        return []
    try:
        if "checksum" not in about or not is_signed(about):
            raise ValueError("not as it was written")
        lists = ("answered", "unanswered")
        return [Calibration(**each | {name: tuple(each[name]) for name in lists}) for each in about["calibrations"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / FILE} is damaged: remove it, and it is measured again") from error


def write_calibration(folder: Path, made: Calibration) -> None:
    """Keep a calibration in the folder of an index, in place of the one of the same search, or of the same names.

    Raises:
        OutputError: it cannot be written.
    """
    others = [each for each in read_calibrations(folder) if each.of != made.of and each.named != made.named]
    about = {"version": VERSION, "calibrations": [asdict(each) for each in [*others, made]]}
    write_json(folder / FILE, signed(about))
