"""Across languages: finding the translation of a sentence, and STS-B with its two sentences in two languages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.vector_files import inner
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Columns, DataSet, PublisherReader, Rows, Store
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.metrics import mean, pearson, spearman
from selfsent.evaluation.stats.resampling import Floats

VERSION = 1
BLOCK = 256
"""Sentences compared at once."""
ISO = {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "tr": "tur"}
"""The languages, as they are called in file names and by Tatoeba."""


def read_laser(language: str, root: Path) -> Columns | None:
    """The pairs as LASER's repository ships them, in `tatoeba/v1`: a file of lines for each side.

    Raises:
        DataError: the two sides do not have the same number of lines.
    """
    stem = f"tatoeba.{ISO[language]}-eng"
    sides = [root / "tatoeba/v1" / f"{stem}.{side}" for side in ("eng", ISO[language])]
    if not all(side.is_file() for side in sides):
        return None
    english, other = (side.read_text(encoding="utf-8").splitlines() for side in sides)
    if len(english) != len(other):
        raise DataError(f"{sides[1]} has {len(other)} lines, {sides[0].name} {len(english)}: fetch both again")
    return {"english": english, "other": other}


def _tatoeba(language: str) -> DataSet:
    publisher: PublisherReader = partial(read_laser, language)
    return DataSet(
        f"tatoeba-{language}",
        "parallel",
        1000,
        split="tatoeba_test",
        config=f"en-{language}",
        columns={"english": "en", "other": language},
        hub=False,
        publisher=publisher,
        licence="CC BY 2.0 FR",
        citation="Artetxe and Schwenk, 2019. arXiv:1812.10464",
    )


def _stsb(language: str, split: str = "test") -> DataSet:
    return DataSet(
        f"stsb-multi-{language}-{split}",
        "PhilipMay/stsb_multi_mt",
        {"test": 1379, "dev": 1500}[split],
        split=split,
        config=language,
        columns={"sentence1": "sentence1", "sentence2": "sentence2", "score": "similarity_score"},
        licence="as STSb; translations by DeepL",
        citation="Cer et al., 2017; translations: May, 2021",
    )


TATOEBA = {dataset.name: dataset for dataset in map(_tatoeba, ISO)}
"""The suite `tatoeba`: 1,000 sentences and their translations for each language."""

_ENGLISH = {split: _stsb("en", split) for split in ("test", "dev")}
STSB_PAIRS = {f"stsb-en-{language}": _stsb(language) for language in ("de", "es", "fr")}
"""The suite `stsb-cross`: the data set with the second sentences of each pair of languages."""
STSB_DEV_PAIRS = {f"{name}-dev": _stsb(dataset.config or "", "dev") for name, dataset in STSB_PAIRS.items()}
"""The same of the development pairs, to choose settings by."""


def score_tatoeba(dataset: DataSet, encoder: Encoder, store: Store) -> Score:
    """Share of sentences whose nearest neighbour by cosine is their translation, the mean of both directions.

    Args:
        dataset: one of `TATOEBA`.
        encoder: the model.
        store: where data sets come from.

    Raises:
        DataError: the set is absent.
    """
    rows = store.load(dataset)
    english, other = rows["english"], rows["other"]
    there, back = found(*encoder.sides(english, other)), found(*encoder.sides(other, english))
    language = dataset.name.removeprefix("tatoeba-")
    size = {"n": len(rows), "data": rows.fingerprint, "pool": encoder.pooling, "v": VERSION}
    return measure(
        rows.name,
        mean((there + back) / 2),
        len(rows),
        signature=signature(rows.name, "accuracy", encoder.measure, "mean of both directions", **size),
        metrics={f"en to {language}": mean(there), f"{language} to en": mean(back)},
        warnings=rows.warnings,
    )


def found(queries: Any, answers: Any) -> Floats:
    """1 where the answer with the highest inner product is the one of the same row, else 0: (n,).

    Args:
        queries: (n, d), as `Encoder.sides` gives them.
        answers: (n, d).
    """
    blocks = (inner(queries[at : at + BLOCK], answers) for at in range(0, queries.shape[0], BLOCK))
    nearest = np.concatenate([block.argmax(1) for block in blocks])
    hits: Floats = (nearest == np.arange(len(nearest))).astype(np.float64)
    return hits


def score_stsb_pair(name: str, encoder: Encoder, store: Store) -> Score:
    """Spearman of the cosine over pairs of STS-B, the first sentence in English, the second translated.

    Args:
        name: one of `STSB_PAIRS` or `STSB_DEV_PAIRS`.
        encoder: the model.
        store: where data sets come from.

    Raises:
        DataError: a set is absent, or the two languages do not hold the same pairs.
    """
    dataset = {**STSB_PAIRS, **STSB_DEV_PAIRS}[name]
    first, second = store.load(_ENGLISH[dataset.split]), store.load(dataset)
    _check_aligned(first, second)
    similarity = encoder.similarity(first["sentence1"], second["sentence2"])
    gold = np.asarray(first["score"], np.float64)
    data = f"{first.fingerprint}+{second.fingerprint}"
    size = {"n": len(first), "data": data, "pool": encoder.pooling, "v": VERSION}
    return measure(
        name,
        spearman(similarity, gold),
        len(first),
        signature=signature(name, "spearman", encoder.measure, "sentence1 in English", **size),
        metrics={"pearson": pearson(similarity, gold)},
        warnings=(*first.warnings, *second.warnings),
    )


def _check_aligned(first: Rows, second: Rows) -> None:
    if first["score"] != second["score"]:
        raise DataError(f"{second.name} does not hold the pairs of {first.name} in the same order: fetch both again")
