"""Readers of data sets in their publishers' formats, for sets absent from parquet mirrors and the hub.

Each takes the paths of the files and returns columns by our names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from selfsent.errors import DataError

Columns = dict[str, list[Any]]
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


def columns_of(rows: Iterable[Sequence[Any]], *names: str) -> Columns:
    """Rows of equal length as named columns."""
    lines = list(rows)
    return {name: [line[index] for line in lines] for index, name in enumerate(names)}


def _fields(path: Path, count: int, separator: str = "\t", encoding: str = "utf-8") -> Iterator[list[str]]:
    """The fields of each nonempty line; a line with too few is an error."""
    try:
        with path.open(encoding=encoding, newline="\n") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                fields = line.rstrip("\r\n").split(separator)
                if len(fields) < count:
                    raise DataError(f"{path}, line {number}: {len(fields)} fields where {count} are expected")
                yield fields
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not {encoding}: {error.reason} at byte {error.start}") from error


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error


def read_twitterpara(url: Path, pit: Path) -> Columns:
    """Twitter-URL (`s1, s2, (votes, 6), url`) and PIT-2015 (`topic, name, s1, s2, label, tags`), tab-separated."""
    rows = [(f[0].strip(), f[1].strip(), float(f[2].strip("( )").split(",")[0]), "twitterurl") for f in _fields(url, 3)]
    rows += [(f[2], f[3], float(f[4]), "pit") for f in _fields(pit, 5)]
    return columns_of(rows, "sentence1", "sentence2", "score", "subset")


def read_askubuntu(texts: Path, test: Path) -> Columns:
    """One row per query and candidate, candidates in BM25 order; queries without a gold duplicate are dropped.

    `text_tokenized.txt`: id, title, body. `test.txt`: query, gold ids, candidate ids, BM25 scores; lists by spaces.
    """
    titles = {fields[0].strip(): fields[1].strip() for fields in _fields(texts, 2)}
    rows = []
    for query, gold, candidates, scores in (fields[:4] for fields in _fields(test, 4)):
        relevant = set(gold.split())
        order = sorted(zip(candidates.split(), map(float, scores.split()), strict=True), key=lambda pair: -pair[1])
        unknown = [name for name in (query, *dict(order)) if name not in titles]
        if unknown:
            raise DataError(f"{texts} lacks the question {unknown[0]}, which {test} names")
        rows += [(query, titles[query], titles[c], int(c in relevant)) for c, _ in order if relevant]
    return columns_of(rows, "query", "sentence1", "sentence2", "relevant")


def read_cqadupstack(corpus: Path, split: Path) -> Columns:
    """One row per post: forum, id, title, and for evaluation queries the ids of their duplicates, by spaces; else "".

    `corpus.json`: forum -> id -> title. `retrieval_split.json`: split -> forum -> query -> ids.
    """
    queries = _json(split)["test"]
    rows = [
        (forum, name, text, " ".join(queries.get(forum, {}).get(name, ())))
        for forum, posts in _json(corpus).items()
        for name, text in posts.items()
    ]
    return columns_of(rows, "forum", "id", "text", "relevant")


def read_scidocs(path: Path) -> Columns:
    """One row per query and candidate; untitled candidates stay, as they count as relevant.

    `data.json`: `corpus` -> id -> title, and `test` -> cite, cocite, coview, coread -> query -> candidate -> 0 or 1.
    """
    data = _json(path)
    titles = {name: paper.get("title") or "" for name, paper in data["corpus"].items()}
    rows = [
        (subset, query, titles[query], candidate, titles.get(candidate, ""), int(relevant))
        for subset, queries in data["test"].items()
        for query, candidates in queries.items()
        for candidate, relevant in candidates.items()
        if titles.get(query)
    ]
    return columns_of(rows, "subset", "query", "sentence1", "id", "sentence2", "relevant")


def read_afs(*paths: Path) -> Columns:
    """`ArgPairs_<topic>.csv` of each topic (Misra et al., 2016), not UTF-8, with a heading.

    Eleven columns: the mean score (0 to 5) comes first, the two sentences last.
    """
    rows: list[tuple[str, str, float, str]] = []
    for topic, path in zip(("death penalty", "gun control", "gay marriage"), paths, strict=True):
        with path.open(encoding="iso-8859-1", newline="") as file:
            for number, fields in enumerate(csv.reader(file), 1):
                if number > 1 and len(fields) < 3:
                    raise DataError(f"{path}, row {number}: {len(fields)} fields where 11 are expected")
                if number > 1:
                    rows.append((fields[-2], fields[-1], float(fields[0]), topic))
    return columns_of(rows, "sentence1", "sentence2", "score", "subset")


def read_sick(path: Path) -> Columns:
    """`SICK_test_annotated.txt` (Marelli et al., 2014): pair_ID, sentence_A, sentence_B, relatedness, entailment."""
    rows = [(fields[1], fields[2], float(fields[3])) for fields in list(_fields(path, 4))[1:]]
    return columns_of(rows, "sentence1", "sentence2", "score")


def read_trec(path: Path) -> Columns:
    """`train_5500.label` or `TREC_10.label` (Li and Roth, 2002): `CLASS:subclass question`, ISO-8859-1."""
    rows = []
    for label, *text in _fields(path, 2, separator=" ", encoding="iso-8859-1"):
        if label.split(":")[0] not in TREC_CLASSES:
            raise DataError(f"{path}: {label!r} is none of the classes {', '.join(TREC_CLASSES)}")
        rows.append((" ".join(text), TREC_CLASSES.index(label.split(":")[0])))
    return columns_of(rows, "text", "label")


def read_laser(english: Path, other: Path) -> Columns:
    """The pairs of Tatoeba from LASER's repository: a file of lines for each side.

    Raises:
        DataError: unequal numbers of lines.
    """
    lines, others = (path.read_text(encoding="utf-8").splitlines() for path in (english, other))
    if len(lines) != len(others):
        raise DataError(f"{other} has {len(others)} lines, {english.name} {len(lines)}: fetch both again")
    return {"english": lines, "other": others}
