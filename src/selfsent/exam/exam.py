"""An exam of search: documents, and queries with known answers, as a task and as a folder in BEIR's layout."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent.display import counted
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.files import atomic_directory, write_json

NAME = "exam"
KINDS = ("pair", "title", "quote", "question", "sentence")
SPLITS = ("dev", "test")
"""Splits of the judgements: rankings are chosen on the first, and compared on the second."""
RECORD = "exam.json"
FEW = 50
"""Number of queries below which the width of an interval is told."""
_DEVIATION = 40
"""Standard deviation of nDCG@10 over queries that is assumed before anything is scored, in points."""


@dataclass(frozen=True)
class Text:
    """A document to draw from.

    Args:
        name: its id.
        titles: of its rows in the input; usually one or none.
        sentences: of its body.
        quoted: sentences that it answers, and that are no part of its body.
    """

    name: str
    titles: tuple[str, ...]
    sentences: tuple[str, ...]
    quoted: tuple[str, ...] = ()

    @property
    def body(self) -> str:
        """The sentences as one text."""
        return " ".join(self.sentences)


@dataclass(frozen=True)
class Query:
    """A query, its kind, and the documents that are right, by position."""

    text: str
    kind: str
    answers: tuple[int, ...]


@dataclass(frozen=True)
class Exam:
    """Documents to search, without the queries' own text, and queries.

    Args:
        documents: ids, titles and bodies.
        queries: in the order drawn. Every second one of a kind is of the split `dev`.
    """

    documents: Sequence[Text]
    queries: Sequence[Query]

    @property
    def task(self) -> RetrievalTask:
        """All queries as one task."""
        return self._task(self.queries)

    @property
    def halves(self) -> tuple[RetrievalTask, RetrievalTask]:
        """The queries of each split as a task, `dev` first."""
        dev, test = ([q for q, own in zip(self.queries, self.splits, strict=True) if own == each] for each in SPLITS)
        return self._task(dev), self._task(test)

    @property
    def splits(self) -> list[str]:
        """The split of each query: in turns, for each kind."""
        seen, found = Counter[str](), list[str]()
        for query in self.queries:
            found.append(SPLITS[seen[query.kind] % 2])
            seen[query.kind] += 1
        return found

    def _task(self, queries: Sequence[Query]) -> RetrievalTask:
        documents = [" ".join([*text.titles[:1], text.body]) for text in self.documents]
        grades = [dict.fromkeys(query.answers, 1.0) for query in queries]
        return RetrievalTask(NAME, [query.text for query in queries], documents, grades)

    @property
    def summary(self) -> str:
        """The numbers of queries, by kind, and of documents, in words."""
        kinds = Counter(query.kind for query in self.queries)
        each = ", ".join(f"{kinds[kind]:,} by {kind}" for kind in KINDS if kinds[kind])
        return f"{counted(len(self.queries), 'query', 'queries')} ({each}) among {len(self.documents):,} documents"

    @property
    def warning(self) -> str:
        """Warning about the precision of few queries; empty if there are enough."""
        half = 1.96 * _DEVIATION / max(1, len(self.queries) // 2) ** 0.5
        few = f"only {counted(len(self.queries), 'query', 'queries')}, half of them to score by"
        wide = f"a score's 95 % interval will be about ±{half:.0f} points"
        return f"{few}: {wide}" if len(self.queries) < FEW else ""

    def write(self, folder: Path, **about: Any) -> None:
        """Write `corpus.jsonl`, `queries.jsonl`, `qrels/dev.tsv` and `qrels/test.tsv`, and how it was made.

        Args:
            folder: it is replaced.
            **about: facts for the record, `exam.json`.

        Raises:
            OutputError: it cannot be written.
        """
        lines: dict[str, list[str]] = {split: ["query-id\tcorpus-id\tscore"] for split in SPLITS}
        for number, (query, split) in enumerate(zip(self.queries, self.splits, strict=True)):
            lines[split] += [f"q{number}\t{self.documents[answer].name}\t1" for answer in query.answers]
        corpus = [{"_id": t.name, "title": " ".join(t.titles[:1]), "text": t.body} for t in self.documents]
        queries = [{"_id": f"q{n}", "text": q.text, "kind": q.kind} for n, q in enumerate(self.queries)]
        with atomic_directory(folder) as new:
            (new / "qrels").mkdir()
            for name, rows in (("corpus", corpus), ("queries", queries)):
                text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                (new / f"{name}.jsonl").write_text(text, encoding="utf-8")
            for split, each in lines.items():
                (new / "qrels" / f"{split}.tsv").write_text("\n".join(each) + "\n", encoding="utf-8")
            write_json(new / RECORD, {"made_of": self.summary, **about})


def is_exam(folder: Path) -> bool:
    """Whether a folder was written by `Exam.write`."""
    return (folder / RECORD).is_file() and (folder / "qrels").is_dir()
