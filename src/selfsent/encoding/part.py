"""One part of the work: rows are read, encoded and written, a few thousand at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from selfsent.data.corpus.batch import Batch, as_kind
from selfsent.data.corpus.clean import LONGEST_TEXT, clean
from selfsent.data.corpus.cleaners import Cleaners
from selfsent.data.corpus.sentences import split_sentences
from selfsent.encoding.batch import as_column
from selfsent.encoding.job import Job, Part, batches, fingerprint_of
from selfsent.errors import BaseEncoderError, SelfsentError

_ARROW = {"bool": "bool", "int": "int64", "float": "float64", "str": "string"}


@dataclass(frozen=True)
class Done:
    """What became of a part: how many vectors, how many of them zeros for want of a text, or why there is none."""

    name: str
    rows: int = 0
    zeros: int = 0
    problem: str = ""


def encode_part(job: Job, part: Part) -> Done:
    """Write the vectors of a part, whole or not at all; whoever does it again writes the same.

    Columns: `file` and `row`, the number of the row in it, from 0; `sentence`, where texts are split, the place in its
    row; those that are carried along; `text` as it was encoded; and `embedding`, float32.

    Returns:
        What became of it. A fault of the input or of the model is told, not raised: it is the same on each machine.
    """
    try:
        if _fingerprint(job.encoder.model) != job.fingerprint:
            raise BaseEncoderError(f"{job.encoder.model} is another model on one of the machines: give all the same")
        return _encode(job, part)
    except SelfsentError as error:
        return Done(part.name, problem=str(error))


_fingerprint = cache(fingerprint_of)


def _encode(job: Job, part: Part) -> Done:
    import pyarrow.parquet as pq

    schema = _schema(job)
    done, zeros = 0, 0
    start = part.start
    with (
        job.output.whole(part.name) as path,
        pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for batch in filter(len, batches(job, part)):
            table, empty = _table(job, part, batch, start, schema)
            start += len(batch)
            done, zeros = done + table.num_rows, zeros + empty
            writer.write_table(table)
    return Done(part.name, done, zeros)


def _schema(job: Job) -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            ("file", pa.string()),
            ("row", pa.int64()),
            *([("sentence", pa.int64())] if job.split else []),
            *((name, _ARROW[kind]) for name, kind in job.kinds.items()),
            ("text", pa.string()),
            ("embedding", pa.list_(pa.float32(), job.encoder.size)),
        ]
    )


def _table(job: Job, part: Part, batch: Batch, start: int, schema: Any) -> tuple[Any, int]:
    """Rows of a batch with their vectors, and how many of these are of nothing."""
    import pyarrow as pa

    texts, rows = [text[:LONGEST_TEXT] for text in batch.texts[0]], np.arange(len(batch))
    texts = Cleaners(job.encoder.clean)(texts)
    cells: dict[str, Any] = {}
    if job.split:
        sentences = [split_sentences(text) or [""] for text in texts]
        rows = np.repeat(rows, list(map(len, sentences)))
        texts = [sentence for each in sentences for sentence in each]
        cells["sentence"] = np.concatenate([np.arange(len(each)) for each in sentences] or [rows])
    texts, _ = clean(texts)
    cells |= {"file": [str(job.files[part.file])] * len(rows), "row": start + rows, "text": texts}
    cells["embedding"] = as_column(job.encoder.vectors_of_clean(texts))
    for (name, kind), column in zip(job.kinds.items(), batch.carried or [], strict=False):
        cells[name] = pa.array([as_kind(column[row], kind) for row in rows.tolist()], _ARROW[kind])
    return pa.table({name: cells[name] for name in schema.names}, schema=schema), sum(not text for text in texts)
