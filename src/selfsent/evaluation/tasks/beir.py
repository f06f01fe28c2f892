"""Search sets in BEIR's layout: `corpus`, `queries` and `qrels/<split>`, in a folder or on the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent.data.corpus.clean import clean
from selfsent.data.corpus.formats import format_of, read_records, stem_of
from selfsent.data.corpus.hub import HubDataset
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.declared import DataSet, read_parquet
from selfsent.evaluation.datasets.hub import from_hub
from selfsent.evaluation.datasets.own_files import is_number, read_tabs
from selfsent.evaluation.datasets.publishers import columns_of
from selfsent.evaluation.tasks.retrieval import RetrievalTask

NAME = "retrieval"
Searched = str | Path | RetrievalTask | Sequence[str | Path | RetrievalTask]
"""Folders, data sets of the hub, or what was read from them."""
_IDS, _GRADE = ("_id", "id"), ("score", "grade")
_QUERY, _DOCUMENT = ("query-id", "query", "qid"), ("corpus-id", "document", "pid")
"""The names that a column goes by: BEIR's first."""
_TEXTS, _JUDGEMENTS = (*_IDS, "title", "text"), (*_QUERY, *_DOCUMENT, *_GRADE)


def read_tasks(searched: Searched, split: str = "test", mirror: Path | None = None) -> list[RetrievalTask]:
    """Search sets: one is called `retrieval`, each of several `retrieval-` and the name of its folder.

    Args:
        searched: see `read_task`; what was read already stays as it is.
        split: whose judgements are read.
        mirror: a folder in which data sets of the hub are looked for first.

    Raises:
        SettingsError: two of them have one name.
        DataError: as `read_task`; CorpusError, too.
    """
    given = [searched] if isinstance(searched, str | Path | RetrievalTask) else searched
    places = {NAME if len(given) == 1 else f"{NAME}-{Path(str(each)).resolve().name}": each for each in given}
    if len(places) < len(given):
        raise SettingsError(f"two sets to search in have one name: there are {', '.join(places)}; give them one by one")
    return [
        each if isinstance(each, RetrievalTask) else read_task(each, name, split, mirror)
        for name, each in places.items()
    ]


def read_task(place: str | Path, name: str = NAME, split: str = "test", mirror: Path | None = None) -> RetrievalTask:
    """Queries, documents and judgements of a search set.

    The text of a document is its title and its text. Judged documents that are not there count all the same, as in
    trec_eval. A document that is the query itself, by id and text, is not looked for, as in BEIR. (An id that both have
    means nothing where both are merely counted from 1.)

    Args:
        place: a folder with `corpus` and `queries` (.jsonl or .parquet: _id, perhaps title, text) and `qrels/<split>`
            (.tsv, .jsonl or .parquet: query-id, corpus-id, score); .jsonl and .tsv may end in .gz, .zst or .bz2. Or a
            data set of the hub as BEIR and MTEB have them, `org/name` or `org/name:part`.
        name: of the score.
        split: whose judgements are read.
        mirror: a folder in which data sets of the hub are looked for first.

    Raises:
        CorpusError: a file is damaged.
        DataError: the set is not there, not as described, or holds no query with an answer.
    """
    folder = next((each for each in (Path(place), (mirror or Path()) / place) if each.is_dir()), None)
    corpus, queries, judged = _in_folder(folder, split) if folder else _on_hub(str(place), split)
    ids = corpus.ids(_IDS)
    documents = dict(zip(ids, corpus.texts(), strict=True))
    texts = dict(zip(queries.ids(_IDS), queries.texts(), strict=True))
    places = {each: number for number, each in enumerate(documents)}
    grades = dict[str, dict[int, float]]()
    for query, document, grade in zip(judged.ids(_QUERY), judged.ids(_DOCUMENT), judged[_GRADE], strict=True):
        if not is_number(str(grade)):
            raise DataError(f"{judged.place}: the grade {grade!r} of {document} for {query} is no number")
        grades.setdefault(query, {})[places.setdefault(document, len(places))] = float(grade)
    asked = [query for query in grades if texts.get(query)]
    if not any(number < len(documents) for query in asked for number in grades[query]):
        raise DataError(f"{judged.place} judges no document for a query that are both there: do the ids match?")
    odd = {"document with an id that a later one has": len(ids) - len(documents)}
    odd |= {"judged document that is not there": len(places) - len(documents)}
    odd |= {"judged query without text, left out": len(grades) - len(asked)}
    return RetrievalTask(
        name,
        [texts[query] for query in asked],
        list(documents.values()),
        [grades[query] for query in asked],
        list(documents),
        itself=[places[query] if texts[query] in documents.get(query, "") else -1 for query in asked],
        of=f"{Path(place).resolve().name}, {split}",
        warnings=tuple(f"{name}: {what} ({count:,})" for what, count in odd.items() if count),
    )


@dataclass(frozen=True)
class _Table:
    """Columns of one length, and where they are from."""

    place: str
    columns: Mapping[str, Sequence[Any]]

    def __getitem__(self, names: Sequence[str]) -> Sequence[Any]:
        """The column that goes by one of these names."""
        for name in names:
            if any(value is not None for value in self.columns.get(name, ())):
                return self.columns[name]
        raise DataError(f"{self.place} is empty, or has no column {' or '.join(names)}")

    def ids(self, names: Sequence[str]) -> list[str]:
        """A column of ids, of which none may be missing."""
        found = ["" if value is None else str(value).strip() for value in self[names]]
        if "" in found:
            raise DataError(f"{self.place}, row {found.index('') + 1}: {names[0]} is empty")
        return found

    def texts(self) -> list[str]:
        """Title and text of each row as one."""
        rows = list(zip(*filter(None, (self.columns.get("title"), self[["text"]])), strict=True))
        for number, row in enumerate(rows, 1):
            if not all(isinstance(value, str | None) for value in row):
                raise DataError(f"{self.place}, row {number}: its text is no text")
        return clean(" ".join(filter(None, row)) for row in rows)[0]


def _in_folder(folder: Path, split: str) -> tuple[_Table, _Table, _Table]:
    found, judged = (
        {stem_of(path): path for path in sorted(place.glob("*")) if format_of(path) in (".jsonl", ".parquet", ".tsv")}
        for place in (folder, folder / "qrels")
    )
    if split not in judged:
        raise DataError(f"{folder} has no judgements qrels/{split}; there are {', '.join(judged) or 'none'}")
    if lacking := {"corpus", "queries"} - found.keys():
        raise DataError(f"{folder} has no {min(lacking)}.jsonl, nor {min(lacking)}.parquet")
    return _read(found["corpus"], _TEXTS), _read(found["queries"], _TEXTS), _read(judged[split], _JUDGEMENTS)


def _read(path: Path, names: tuple[str, ...]) -> _Table:
    """Those of these columns that a file has."""
    if format_of(path) == ".parquet":
        held = DataSet(path.parent.name, "", None, columns={name: name for name in names}, optional=names)
        return _Table(str(path), read_parquet(path, held))
    if format_of(path) == ".tsv":
        names = "query-id", "corpus-id", "score"
        return _Table(str(path), columns_of(read_tabs(path, names)[0], *names))
    rows = ([record.get(name) for name in names] for record in read_records(path))
    return _Table(str(path), columns_of(rows, *names))


def _on_hub(place: str, split: str) -> tuple[_Table, _Table, _Table]:
    known = HubDataset.parse(place)
    if known is None:
        raise DataError(f"{place}: no such folder")
    part = f"{known.config}-" if known.config else ""

    def read(what: str, rows: Any, names: tuple[str, ...]) -> _Table:
        return _Table(f"{place}, {what}", rows.select_columns([each for each in names if each in rows.column_names])[:])

    texts = []
    for what in ("corpus", "queries"):
        try:
            splits = from_hub(known.name, part + what)
        except DataError as error:
            raise DataError(f"{place}: no such folder, and {error}") from error
        texts.append(read(what, splits.get(split, next(iter(splits.values()))), _TEXTS))
    splits = {}
    for name, config in ((known.name, f"{part}qrels"), (known.name, "default"), (f"{known.name}-qrels", None)):
        if split not in splits and (config is None or config.startswith(part)):
            with suppress(DataError):
                splits |= from_hub(name, config)
    if split not in splits:
        raise DataError(f"{place} has no judgements {split!r}; there are {', '.join(splits) or 'none'}")
    return texts[0], texts[1], read(split, splits[split], _JUDGEMENTS)
