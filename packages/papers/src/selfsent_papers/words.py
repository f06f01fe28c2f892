"""The kinds of words that a model's similarities depend on: TSDAE's figures 4 and 7 (Wang et al. 2021, section 7.2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from selfsent.display import table_of
from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.datasets.own_files import read_rows
from selfsent.evaluation.suites import TASKS
from selfsent.files import atomic_file
from selfsent.scorers.scorer import Scorer

Tagger = Callable[[Sequence[str]], list[str]]
"""The words of a sentence -> the kind of each."""

RELEVANT = 0.8
"""Minimum score of a relevant pair, as a share of the highest: 4 of 5."""
FORMATS = (".png", ".svg")
WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
KINDS = {
    **{"NP": "names", "N": "nouns", "V": "verbs", "AJ": "adjectives", "AV": "adverbs", "PR": "prepositions"},
    **{"PN": "pronouns", "DPS": "pronouns", "DT": "determiners", "AT": "determiners", "CJ": "conjunctions"},
    **{"CRD": "numbers", "ORD": "numbers", "PU": "punctuation"},
}
"""Kinds of words by the beginning of their tag in the British National Corpus; others are `OTHER`."""
OTHER = "particles and others"


@dataclass(frozen=True)
class WordImportance:
    """Importance of kinds of words.

    Args:
        decisive: share of sentences in which dropping such a word lowers the similarity most, by kind.
        present: share of all words, by kind: the level of chance.
        sentences: number of sentences.
    """

    decisive: dict[str, float]
    present: dict[str, float]
    sentences: int


@cache
def tagger() -> Any:
    """HanTa's tagger of English.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        from HanTa.HanoverTagger import HanoverTagger
    except ImportError:
        problem = "kinds of words need a tagger: pip install 'selfsent-papers[words]'"
        raise SettingsError(problem) from None
    return HanoverTagger("morphmodel_en.pgz")  # a file of that package


def tag(words: Sequence[str]) -> list[str]:
    """The kind of each word of an English sentence, by HanTa.

    Raises:
        SettingsError: HanTa is not installed.

    Examples:
        >>> tag(["Dogs", "sleep", "."])
        ['nouns', 'verbs', 'punctuation']
    """
    tags = [str(found) for *_, found in tagger().tag_sent(list(words))]
    begins = (next((each for each in sorted(KINDS, key=len, reverse=True) if one.startswith(each)), "") for one in tags)
    return [KINDS.get(begin, OTHER) for begin in begins]


def relevant_pairs(source: str, mirror: str | Path | None = None) -> tuple[list[str], list[str]]:
    """The pairs of a data set that belong together.

    Args:
        source: a task such as `twitterpara`, or a file with the columns sentence1, sentence2 and score.
        mirror: of the data sets.

    Raises:
        DataError: it has no such columns, or no pair is relevant.
    """
    if source in TASKS:
        rows = Store(mirror).load(TASKS[source].datasets[0])
        if not {"sentence1", "sentence2", "score"} <= {*rows.columns}:
            raise DataError(f"{source} has no pairs of sentences: give a file with sentence1, sentence2 and score")
    else:
        rows = read_rows(Path(source), ("sentence1", "sentence2", "score"))
    scores = [float(score) for score in rows["score"]]
    bar = RELEVANT * max(scores, default=0)
    chosen = [row for row, score in enumerate(scores) if score >= bar and score > 0]
    if not chosen:
        raise DataError(f"{source} has no relevant pair: none with a score of {bar:g} or more")
    return [rows["sentence1"][row] for row in chosen], [rows["sentence2"][row] for row in chosen]


def word_importance(scorer: Scorer, left: Sequence[str], right: Sequence[str], tagger: Tagger = tag) -> WordImportance:
    """Leave out each word of each left sentence in turn, and count the kind of the one that lowers the cosine most.

    Args:
        scorer: the model.
        left: n sentences.
        right: n sentences, each relevant to its left one.
        tagger: gives the kinds of words.

    Raises:
        DataError: no left sentence has two words.

    Examples:
        >>> one, other = ["a cat sat", "dogs bark"], ["the cat sits", "barking dogs"]
        >>> found = word_importance(load_scorer("bundled"), one, other)  # doctest: +SKIP
    """
    words = [WORD.findall(text) for text in left]
    usable = [row for row, each in enumerate(words) if len(each) > 1]
    if not usable:
        raise DataError("no sentence has two words or more, so none can be left out")
    damaged = [" ".join(words[row][:at] + words[row][at + 1 :]) for row in usable for at in range(len(words[row]))]
    others = [right[row] for row in usable for _ in words[row]]
    lengths = np.cumsum([len(words[row]) for row in usable])[:-1]
    decisive, present = Counter[str](), Counter[str]()
    for row, cosines in zip(usable, np.split(scorer.similarity(damaged, others), lengths), strict=True):
        kinds = tagger(words[row])
        decisive[kinds[int(cosines.argmin())]] += 1
        present.update(kinds)
    return WordImportance(_shares(decisive), _shares(present), len(usable))


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {kind: count / counts.total() for kind, count in counts.most_common()}


def _kinds(found: Mapping[str, WordImportance]) -> list[str]:
    """The kinds of words, the most decisive first."""
    kinds = dict.fromkeys(kind for each in found.values() for kind in each.present)
    return sorted(kinds, key=lambda kind: -max(each.decisive.get(kind, 0.0) for each in found.values()))


def words_table(found: Mapping[str, WordImportance]) -> Table:
    """The shares in percent, a column for each model and one for the share of all words."""
    first = next(iter(found.values()))
    columns = [*(each.decisive for each in found.values()), first.present]
    rows = [[kind, *(f"{100 * column.get(kind, 0):.1f}" for column in columns)] for kind in _kinds(found)]
    below = f"% of {first.sentences:,} sentences in which leaving out such a word lowers the similarity most"
    return table_of(["kind of word", *found, "of all words"], rows, left=(0,), caption=below)


def check_plot(path: str | Path) -> None:
    """Check the file of a drawing before slow work.

    Raises:
        OutputError: another suffix.
        SettingsError: matplotlib is not installed.
    """
    if Path(path).suffix not in FORMATS:
        raise OutputError(f"the drawing {path} must end in {' or '.join(FORMATS)}")
    try:
        import matplotlib.figure  # noqa: F401 — it is there
    except ImportError:
        raise SettingsError("drawings need matplotlib: pip install matplotlib") from None


def draw_words(found: Mapping[str, WordImportance], path: str | Path) -> None:
    """Draw a bar for each model and kind, over a grey one for the share of all words.

    Raises:
        OutputError: another suffix, or the file cannot be written.
    """
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    first, kinds, thick = next(iter(found.values())), _kinds(found), 0.74 / len(found)
    plain: dict[Any, Any] = {"text.parse_math": False, "svg.hashsalt": "selfsent", "svg.fonttype": "none"}
    with rc_context(plain), atomic_file(Path(path)) as temporary:
        figure = Figure(figsize=(6, 1.2 + len(kinds) * (0.16 + 0.14 * len(found))), layout="tight")
        axes = figure.add_subplot()
        shares = [100 * first.present.get(kind, 0) for kind in kinds]
        axes.barh(range(len(kinds)), shares, 0.92, color="#dddddd", label="share of all words")
        for number, (name, each) in enumerate(found.items()):
            places = [row + (number - (len(found) - 1) / 2) * thick for row in range(len(kinds))]
            axes.barh(places, [100 * each.decisive.get(kind, 0) for kind in kinds], 0.86 * thick, label=name)
        axes.set_yticks(range(len(kinds)), kinds)
        axes.invert_yaxis()
        axes.set_xlabel("% of sentences where such a word matters most")
        axes.legend(frameon=False)
        kind = Path(path).suffix[1:]
        figure.savefig(temporary, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)
