"""Queries for the texts of a corpus, as training data: parts of the texts, or questions of a language model.

Wang et al. 2022, "GPL" (arXiv:2112.07577): queries made for passages, hard negatives, and a teacher's margins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.augment.endpoint import Endpoint, without_thoughts
from selfsent.data.corpus.clean import clean
from selfsent.data.vector_files import inner
from selfsent.errors import DataError, SettingsError
from selfsent.exam.draw import draw_exam
from selfsent.exam.exam import Text
from selfsent.files import check_new_file
from selfsent.progress import SILENT, Progress
from selfsent.renamed import callbacks_as_progress
from selfsent.resumable import Chunks, key_of
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import load_scorer
from selfsent.search.tables import check_table, write_table

PROMPT = """Write {count} search queries of somebody who needs the text below and has not read it. They do not know its
words, so use theirs: short, different from each other, one a line, and nothing else.

Text: Hold the power button for ten seconds. When the light turns green, let go, and wait until it starts again.
Queries:
screen frozen what to do
how do I restart the device

Text: {text}
Queries:
"""
LONGEST = 4000
"""Maximum number of characters of a text for a language model."""
_CHUNK, _BLOCK = 32, 1 << 22
"""Texts in a batch of questions; maximum number of scores in memory."""
_TOKEN, _WRITTEN = 4, 16
"""Approximate characters of a token, and tokens of a query, for the estimate alone."""
_MARK = re.compile(
    r"^(?:\W*\d{1,2}(?:\)|[.:](?!\d))\s*|(?:query|question)\s*\d*\s*:\s*|-(?!\d)|[*•\s]+)+", re.IGNORECASE
)
"""Marks of a list before a query; not the beginning of a number, such as 3.5, 10:30 or -40."""
_FORMAT = 1
_QUERY_LONGEST = 300
"""Maximum number of characters of a query."""


@dataclass(frozen=True)
class Queries:
    """The result of `make_queries`.

    Args:
        rows: (n,) query, text, kind, and the rank of its text among all.
        made: queries before the round trip.
        without: texts without a query.
        failed: questions without an answer, by the reason; of this call alone.
    """

    rows: list[dict[str, Any]]
    made: int
    without: int
    failed: Counter[str]


def extracted(texts: Sequence[Text], seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Queries that are parts of the texts, as an exam has them, with the rest of their text; and all texts."""
    exam = draw_exam(texts, len(texts), seed=seed, searched=len(texts))
    pool = exam.task.documents
    rows = ({"query": query.text, "text": pool[query.answers[0]], "kind": query.kind} for query in exam.queries)
    return [row for row in rows if row["text"]], list(pool)


def queries_in(answer: str, text: str, count: int, prompt: str = "") -> list[str]:
    r"""The queries in the answer of a language model, cleaned, without numbers, quotes and thoughts.

    Args:
        answer: of the language model.
        text: that the queries are for.
        count: maximum number of queries.
        prompt: as it was sent, whose lines, such as its examples and the text, are no queries.

    Examples:
        >>> queries_in("1. printer is dead\n2. 'no paper'", "Switch it on.", 3)
        ['printer is dead', 'no paper']
    """
    given = set(map(_bare, _lines(prompt)))
    lines: Iterable[str] = _lines(without_thoughts(answer))
    lines = (line for line in lines if line and len(line) <= _QUERY_LONGEST and not line.endswith(":"))
    lines = (line for line in lines if any(map(str.isalpha, line)) and line != text)
    return list(dict.fromkeys(line for line in lines if _bare(line) not in given))[:count]


def _lines(text: str) -> list[str]:
    """Its lines, cleaned, without numbers, quotes and marks."""
    lines = (_MARK.sub("", line).strip().strip("\"'“”„`").strip() for line in text.splitlines())
    return list(clean(lines)[0])


def _bare(line: str) -> str:
    return line.strip(" .?!").casefold()


@callbacks_as_progress
def make_queries(
    texts: Sequence[Text],
    output: str | Path,
    *,
    endpoint: Endpoint | None = None,
    count: int = 3,
    prompt: str = PROMPT,
    round_trip: int = 10,
    base: str = "bundled",
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Queries:
    """Make queries for texts, keep those that find their text, and write them with it.

    Answers of a language model stay in `OUTPUT.parts` until all are there. After an interruption the same call goes
    on from them, and asks nothing twice.

    Args:
        texts: the documents.
        output: a `.csv`, `.tsv`, `.jsonl` or `.parquet` file with the columns `query`, `text`, `kind` and `rank`.
        endpoint: a language model; None takes parts of the texts (see `extracted`).
        count: queries of a text, from a language model.
        prompt: of the language model, with {count} and {text} in it.
        round_trip: a query stays if its text is among so many that `base` finds with it, as `search` ranks; 0 for all.
        base: an encoder.
        seed: of the parts drawn from the texts.
        overwrite: discard the file, and the answers of another call.
        progress: receives the number of texts done, and notices.

    Raises:
        AugmenterError: the server refuses, or does not answer.
        DataError: there are no texts, or no query stays.
        OutputError: the file exists, or cannot be written.
        SettingsError: a prompt without {text}, or an output of another kind.
    """
    path = Path(output)
    check_table(path)
    check_new_file(path, overwrite)
    if "{text}" not in prompt:
        raise SettingsError("`prompt` does not say where the text goes: write {text} there")
    if not texts:
        raise DataError("there are no texts to make queries for")
    encoder = Hybrid(load_scorer(base))
    if endpoint is None:
        chunks, (rows, pool) = None, extracted(texts, seed)
        progress.count("making queries", len(texts), len(texts))
    else:
        pool = [" ".join([*text.titles[:1], text.body]) for text in texts]
        how = {"version": _FORMAT, "url": endpoint.url, "model": endpoint.model, "prompt": prompt, "count": count}
        chunks = Chunks(path, {**how, "texts": key_of(pool)}, overwrite)
        rows = _answered(pool, endpoint, chunks, count, prompt, progress)
    made = [row for row in rows if row["query"]]
    kept = [row for row in _ranked(made, pool, encoder) if not round_trip or row["rank"] <= round_trip]
    if not kept:
        lost = f"none of {len(made):,} queries finds its text among the first {round_trip}"
        why = lost if made else "no answer holds any"
        raise DataError(f"{path} would be without queries: {why}; give another `prompt`, or a larger `round_trip`")
    write_table(kept, {"query": str, "text": str, "kind": str, "rank": int}, path)
    if chunks is not None:
        chunks.remove()
    failed = Counter[str]() if endpoint is None else endpoint.failed
    return Queries(kept, len(made), len(texts) - len({row["text"] for row in made}), failed)


def _answered(
    texts: Sequence[str],
    endpoint: Endpoint,
    chunks: Chunks,
    count: int,
    prompt: str,
    progress: Progress,
) -> list[dict[str, Any]]:
    """A language model's queries for each text; a row without a query where it has none."""
    parts = {f"{start:012d}": texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK)}
    left = [text for name, part in parts.items() if name not in chunks for text in part]
    if left:
        read = sum(min(len(text), LONGEST) + len(prompt) for text in left) // _TOKEN
        asked = f"{endpoint.url} is asked {len(left):,} questions: about {read:,} tokens to read and"
        progress.notice(
            f"{asked} {len(left) * count * _WRITTEN:,} to write. Your texts go to that address, and nowhere else"
        )

    def answered(part: Sequence[str]) -> dict[str, list[Any]]:
        asked = [prompt.replace("{count}", str(count)).replace("{text}", text[:LONGEST]) for text in part]
        answers = zip(endpoint.answers(asked), part, asked, strict=True)
        found = [(each, text) for answer, text, own in answers for each in queries_in(answer, text, count, own) or [""]]
        columns = {"query": [query for query, _ in found], "text": [text for _, text in found]}
        return {**columns, "kind": [endpoint.model] * len(found)}

    chunks.fill(parts, answered, progress.counting("making queries", len(texts)))
    return chunks.rows()


def _ranked(rows: list[dict[str, Any]], pool: Sequence[str], encoder: Hybrid) -> Iterator[dict[str, Any]]:
    """Rows with the rank of their text among all, 1 for the first."""
    if not rows:
        return
    own = {text: number for number, text in enumerate(pool)}
    queries, documents = encoder.query_document_vectors([row["query"] for row in rows], pool, search=True)
    size = max(1, _BLOCK // len(pool))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        scores = inner(queries[start : start + size], documents)
        right = scores[np.arange(len(part)), [own[row["text"]] for row in part]]
        ranks = 1 + (scores > right[:, None]).sum(axis=1)
        yield from ({**row, "rank": int(rank)} for row, rank in zip(part, ranks, strict=True))
