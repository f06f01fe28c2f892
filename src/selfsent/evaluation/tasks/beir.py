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
"""Folders, data sets of the hub, or tasks read from them."""
_ID, _GRADE = ("_id", "id"), ("score", "grade")
_QUERY, _DOCUMENT = ("query-id", "query", "qid"), ("corpus-id", "document", "pid")
"""Accepted names of a column, BEIR's first."""
_TEXTS, _JUDGEMENTS = (*_ID, "title", "text"), (*_QUERY, *_DOCUMENT, *_GRADE)


def read_tasks(searched: Searched, split: str = "test", mirror: Path | None = None) -> list[RetrievalTask]:
    """Search sets: a single one is called `retrieval`, each of several `retrieval-` and the name of its folder.

    Args:
        searched: see `read_task`; tasks are returned unchanged.
        split: of the judgements.
        mirror: a folder to search for data sets before the hub.

    Raises:
        SettingsError: a duplicate name.
        DataError: as `read_task`; CorpusError, too.
    """
    given = [searched] if isinstance(searched, str | Path | RetrievalTask) else searched
    named = {NAME if len(given) == 1 else f"{NAME}-{Path(str(each)).resolve().name}": each for each in given}
    if len(named) < len(given):
        raise SettingsError(f"two sets to search in have one name: there are {', '.join(named)}; give them one by one")
    return [
        each if isinstance(each, RetrievalTask) else read_task(each, name, split, mirror)
        for name, each in named.items()
    ]


def read_task(source: str | Path, name: str = NAME, split: str = "test", mirror: Path | None = None) -> RetrievalTask:
    """Queries, documents and judgements of a search set.

    A document is searched by title and text. Missing judged documents count, as in trec_eval. A document equal to the
    query, by id and text, is excluded, as in BEIR. (Equal ids alone may be mere counts from 1.)

    Args:
        source: a folder with `corpus` and `queries` (.jsonl or .parquet: _id, perhaps title, text) and `qrels/<split>`
            (.tsv, .jsonl or .parquet: query-id, corpus-id, score); .jsonl and .tsv may end in .gz, .zst or .bz2. Or a
            data set of the hub as BEIR and MTEB have them, `org/name` or `org/name:part`.
        name: of the score.
        split: of the judgements.
        mirror: a folder to search for data sets before the hub.

    Raises:
        CorpusError: a file is damaged.
        DataError: the set is missing, invalid, or without an answered query.
    """
    folder = next((each for each in (Path(source), (mirror or Path()) / source) if each.is_dir()), None)
    corpus, queries, judged = _in_folder(folder, split) if folder else _on_hub(str(source), split)
    ids = corpus.ids(_ID)
    documents = dict(zip(ids, corpus.texts(), strict=True))
    texts = dict(zip(queries.ids(_ID), queries.texts(), strict=True))
    index_of = {each: number for number, each in enumerate(documents)}
    grades = dict[str, dict[int, float]]()
    for query, document, grade in zip(judged.ids(_QUERY), judged.ids(_DOCUMENT), judged[_GRADE], strict=True):
        if not is_number(str(grade)):
            raise DataError(f"{judged.source}: the grade {grade!r} of {document} for {query} is no number")
        grades.setdefault(query, {})[index_of.setdefault(document, len(index_of))] = float(grade)
    kept = [query for query in grades if texts.get(query)]
    if not any(number < len(documents) for query in kept for number in grades[query]):
        raise DataError(f"{judged.source} judges no document for a query that are both there: do the ids match?")
    odd = {
        "document with an id that a later one has": len(ids) - len(documents),
        "judged document that is not there": len(index_of) - len(documents),
        "judged query without text, left out": len(grades) - len(kept),
    }
    return RetrievalTask(
        name,
        [texts[query] for query in kept],
        list(documents.values()),
        [grades[query] for query in kept],
        list(documents),
        itself=[index_of[query] if texts[query] in documents.get(query, "") else -1 for query in kept],
        of=f"{Path(source).resolve().name}, {split}",
        warnings=tuple(f"{name}: {what} ({count:,})" for what, count in odd.items() if count),
    )


def texts_in(folder: Path) -> tuple[list[str], list[str]]:
    """The texts of a folder's queries and documents, in the order of its files.

    Raises:
        DataError: as `read_task`; CorpusError, too.
    """
    corpus, queries, _ = _in_folder(folder, "dev")
    return queries.texts(), corpus.texts()


@dataclass(frozen=True)
class _Table:
    """Columns of equal length, and their source."""

    source: str
    columns: Mapping[str, Sequence[Any]]

    def __getitem__(self, names: Sequence[str]) -> Sequence[Any]:
        """The column with one of these names."""
        for name in names:
            if any(value is not None for value in self.columns.get(name, ())):
                return self.columns[name]
        raise DataError(f"{self.source} is empty, or has no column {' or '.join(names)}")

    def ids(self, names: Sequence[str]) -> list[str]:
        """A column of ids, without missing values."""
        found = ["" if value is None else str(value).strip() for value in self[names]]
        if "" in found:
            raise DataError(f"{self.source}, row {found.index('') + 1}: {names[0]} is empty")
        return found

    def texts(self) -> list[str]:
        """Joined title and text of each row."""
        rows = list(zip(*filter(None, (self.columns.get("title"), self[["text"]])), strict=True))
        for number, row in enumerate(rows, 1):
            if not all(isinstance(value, str | None) for value in row):
                raise DataError(f"{self.source}, row {number}: its text is no text")
        return clean(" ".join(filter(None, row)) for row in rows)[0]


def _in_folder(folder: Path, split: str) -> tuple[_Table, ...]:
    found, judged = (
        {stem_of(path): path for path in sorted(each.glob("*")) if format_of(path) in (".jsonl", ".parquet", ".tsv")}
        for each in (folder, folder / "qrels")
    )
    if split not in judged:
        raise DataError(f"{folder} has no judgements qrels/{split}; there are {', '.join(judged) or 'none'}")
    if missing := {"corpus", "queries"} - found.keys():
        raise DataError(f"{folder} has no {min(missing)}.jsonl, nor {min(missing)}.parquet")
    paths = found["corpus"], found["queries"], judged[split]
    return tuple(_read(path, names) for path, names in zip(paths, (_TEXTS, _TEXTS, _JUDGEMENTS), strict=True))


def _read(path: Path, names: tuple[str, ...]) -> _Table:
    """The given columns of a file, as far as present."""
    if format_of(path) == ".parquet":
        layout = DataSet(path.parent.name, "", None, columns={name: name for name in names}, optional=names)
        return _Table(str(path), read_parquet(path, layout))
    if format_of(path) == ".tsv":
        names = "query-id", "corpus-id", "score"
        return _Table(str(path), columns_of(read_tabs(path, names)[0], *names))
    rows = ([record.get(name) for name in names] for record in read_records(path))
    return _Table(str(path), columns_of(rows, *names))


def _on_hub(source: str, split: str) -> tuple[_Table, ...]:
    known = HubDataset.parse(source)
    if known is None:
        raise DataError(f"{source}: no such folder")
    prefix = f"{known.config}-" if known.config else ""
    found: dict[str, Any] = {}
    for what in ("corpus", "queries"):
        try:
            splits = from_hub(known.name, prefix + what)
        except DataError as error:
            raise DataError(f"{source}: no such folder, and {error}") from error
        found[what] = splits.get(split, next(iter(splits.values())))
    splits = {}
    for name, config in ((known.name, f"{prefix}qrels"), (known.name, "default"), (f"{known.name}-qrels", None)):
        if split not in splits and (config is None or config.startswith(prefix)):
            with suppress(DataError):
                splits |= from_hub(name, config)
    if split not in splits:
        raise DataError(f"{source} has no judgements {split!r}; there are {', '.join(splits) or 'none'}")
    found[split] = splits[split]
    return tuple(
        _Table(f"{source}, {what}", rows.select_columns([each for each in names if each in rows.column_names])[:])
        for (what, rows), names in zip(found.items(), (_TEXTS, _TEXTS, _JUDGEMENTS), strict=True)
    )
