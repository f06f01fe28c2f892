"""Semantic textual similarity: the correlation of the cosine with people's scores.

`all` is the score: one Spearman over all pairs of a year, as in SBERT, SimCSE and after. SentEval's `mean` and
`wmean` (one correlation per sub-set, averaged plainly or by size) are printed beside it where the sub-sets are known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selfsent.evaluation.datasets.declared import PAIR, DataSet, Rows, Store
from selfsent.evaluation.datasets.leaks import marked
from selfsent.evaluation.datasets.publishers import read_sick
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.results import Score, bounds, measure, signature
from selfsent.evaluation.stats.metrics import average, parts_of, pearson, spearman
from selfsent.evaluation.stats.resampling import Floats, Statistic

VERSION = 1
SUBSETS = {**PAIR, "subset": "subset"}
SEMEVAL = "SemEval shared tasks on semantic textual similarity, Agirre et al., 2012 to 2016"


def _year(year: int, rows: int, hashes: tuple[str, ...] = ()) -> DataSet:
    return DataSet(
        f"sts{year}",
        f"mteb/sts{year}-sts",
        rows,
        columns=SUBSETS,
        optional=("subset",),
        hashes=hashes,
        citation=SEMEVAL,
    )


STS = (
    _year(12, 3108, ("4a507d",)),
    _year(13, 1500, ("cf3674",)),
    _year(14, 3750, ("7180f8",)),
    _year(15, 3000, ("53992e",)),
    _year(16, 1186),
    DataSet(
        "stsb", "mteb/stsbenchmark-sts", 1379, hashes=("cab16b",), licence="CC BY-SA 4.0", citation="Cer et al., 2017"
    ),
    DataSet("sickr", "mteb/sickr-sts", 9927, licence="CC BY-NC-SA 3.0", citation="Marelli et al., 2014"),
    DataSet(
        "sickr-test",
        "SentEval/SICK",
        4927,
        hub=False,
        publisher=read_sick,
        licence="CC BY-NC-SA 3.0",
        citation="Marelli et al., 2014",
    ),
)
"""The suite `sts`. `sickr` is the benchmark's 9,927 pairs; the papers' rows and average use the 4,927 test pairs."""

AVERAGED = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr-test")

STSB_DEV = DataSet(
    "stsb-dev", "mteb/stsbenchmark-sts", 1500, split="validation", hashes=("5c9adf",), licence="CC BY-SA 4.0"
)

_STS17_PAIRS: dict[str, tuple[str, ...]] = {
    "en-en": ("f657a2",),
    "es-es": ("176e69",),
    "ar-ar": ("02568d",),
    "ko-ko": (),
    "en-ar": ("17d58c",),
    "en-de": (),
    "en-tr": ("20cc3a",),
    "es-en": ("56036b",),
    "fr-en": (),
    "it-en": (),
    "nl-en": (),
}

STS17 = tuple(
    DataSet(
        f"sts17-{pair}",
        "mteb/sts17-crosslingual-sts",
        2846 if pair == "ko-ko" else 250,
        config=pair,
        hashes=hashes,
        licence="CC BY-SA 4.0",
        citation="Cer et al., 2017; en-de, fr-en, it-en and nl-en: Reimers and Gurevych, 2020",
    )
    for pair, hashes in _STS17_PAIRS.items()
)
"""Monolingual pairs, then cross-lingual ones. 250 pairs give intervals of several points."""


def score_sts(dataset: DataSet, encoder: Encoder, store: Store) -> Score:
    """Spearman of the cosine over all pairs of a data set.

    Args:
        dataset: its columns are sentence1, sentence2, score and, where known, subset.
        encoder: the model.
        store: where data sets come from.

    Raises:
        DataError: the set is absent.
    """
    return marked(score_pairs(store.load(dataset), encoder), encoder.trained_on)


def score_pairs(rows: Rows, encoder: Encoder) -> Score:
    """Spearman of the cosine over all pairs, Pearson and the averages over sub-sets beside it.

    Args:
        rows: sentence1, sentence2, score and, where known, subset.
        encoder: the model.
    """
    similarity = encoder.similarity(rows["sentence1"], rows["sentence2"])
    gold = np.asarray(rows["score"], np.float64)
    parts = list(parts_of(rows["subset"]).values()) if "subset" in rows else []
    means = _over_subsets(parts, similarity, gold)
    size = {"n": len(rows), "data": rows.fingerprint, "pool": encoder.pooling, "v": VERSION}
    return measure(
        rows.name,
        spearman(similarity, gold),
        len(rows),
        signature=signature(rows.name, "spearman", encoder.measure, "all", **size),
        metrics={"pearson": pearson(similarity, gold), **means},
        intervals={key: bounds(rows.name, statistic, len(rows), parts) for key, statistic in means.items()},
        warnings=rows.warnings,
    )


def _over_subsets(parts: list[NDArray[np.int64]], similarity: Floats, gold: Floats) -> dict[str, Statistic]:
    if len(parts) < 2:
        return {}
    each = [spearman(similarity[part], gold[part]) for part in parts]
    return {"mean": average(each, parts), "wmean": average(each, parts, sized=True)}
