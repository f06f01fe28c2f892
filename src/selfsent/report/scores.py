"""The scores of a run and their paired differences, in words and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from selfsent.display import counted, shortened, span, table_of
from selfsent.evaluation.held_out import DIFFERENCES
from selfsent.scorers.lexical import LEXICAL

Scores = Mapping[str, Any]
"""Scores of a run, from its `scores.json`: `scores` (next sentence) or `search`."""
NAMES = {
    "with_words": "trained + words (search)",
    "trained": "trained",
    "base_with_words": "untrained + words",
    "base": "untrained",
    **LEXICAL,
}
"""Displayed names; the first one ranks as `selfsent search`."""


def is_search(scores: Scores) -> bool:
    """Whether these are scores of search."""
    return "asked" in scores


def title(scores: Scores) -> str:
    """Title of the scores."""
    what = "Search: nDCG@10" if is_search(scores) else "The next sentence: MRR@10"
    return f"{what} × 100, on text kept apart"


def ranked(scores: Scores) -> dict[str, Any]:
    """Scores by key in `NAMES`, best first; earlier versions lack some."""
    return dict(sorted(((key, scores[key]) for key in NAMES if key in scores), key=lambda each: -each[1]["score"]))


def differences(scores: Scores) -> dict[tuple[str, str], Any]:
    """Paired differences with interval and p, by two names; earlier versions lack some."""
    terms = {key: name.removesuffix(" (search)") for key, name in NAMES.items()}
    terms |= {key: f"({term})" for key, term in terms.items() if "+" in term}
    return {(terms[one], terms[other]): scores[key] for key, (one, other) in DIFFERENCES.items() if key in scores}


def standing(difference: Scores) -> str:
    """A difference in words: `ahead of`, `behind`, or `level with` if the interval includes zero."""
    return "ahead of" if difference["low"] > 0 else "behind" if difference["high"] < 0 else "level with"


def summary(scores: Scores) -> str:
    """Task and result in a few sentences."""
    if not is_search(scores):
        queries = counted(scores["base"]["n"], "query", "queries")
        return f"{queries} from documents. Training on neighbours practises just this: believe search more."
    less = scores["words_over_bm25"]
    zero = "holds zero" if standing(less) == "level with" else "does not hold zero"
    return (
        f"Asked: {scores['asked']}. Trained + words, as selfsent search ranks, is {standing(less)} BM25: the difference"
        f" is {less['score']:+z.2f}, and its 95 % interval, {less['low']:+z.2f} to {less['high']:+z.2f}, {zero}."
        " Queries whose answers people judged say more: selfsent evaluate --retrieval."
    )


_NEIGHBOUR = 60
"""Maximum number of characters of a sentence in a line of neighbours."""
_VERDICTS = {"ahead of": "better", "behind": "worse", "level with": "no clear difference"}


def scores_table(scores: Scores) -> Table:
    """The scores of base and trained model, with paired differences."""
    rows = [[NAMES[key], f"{one['score']:.2f}", span(one["low"], one["high"])] for key, one in ranked(scores).items()]
    for size, one in scores.get("sizes", {}).items():
        rows.append([f"trained, the first {size} numbers", f"{one['score']:.2f}", span(one["low"], one["high"])])
    count = len(rows)
    for (one, other), found in differences(scores).items():
        ends = f"{found['low']:+z.2f} to {found['high']:+z.2f}"
        rows.append([f"{one} - {other}: {_VERDICTS[standing(found)]}", f"{found['score']:+z.2f}", ends])
    best = NAMES["with_words" if is_search(scores) else "trained"]
    headings = ("", "score", "95 % interval")
    styles, sections = {best: "bold"}, (count - 1,)
    return table_of(headings, rows, title=title(scores), caption=summary(scores), styles=styles, sections=sections)


def neighbours_lines(neighbours: list[dict[str, Any]]) -> list[str]:
    """The nearest sentence of a few sentences, before and after training, a line each; the page has more."""
    lines = []
    for entry in neighbours:
        asked, before, after = (
            shortened(" ".join(sentence.split()), _NEIGHBOUR)
            for sentence in (entry["sentence"], entry["before"][0]["sentence"], entry["after"][0]["sentence"])
        )
        found = f"“{after}”, as before" if before == after else f"“{after}”; before “{before}”"
        lines.append(f"Nearest to “{asked}”: {found}")
    return lines
