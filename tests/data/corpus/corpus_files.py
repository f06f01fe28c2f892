"""The same sentences as files of every kind."""

import bz2
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

SENTENCES = [
    "The printer is dead.",
    'Ink is everywhere, "again".',
    "Nobody knows why.",
    "Der Drucker ist grün; 打印机坏了。",
]


def csv_bytes(sentences, delimiter=","):
    rows = (f'{number}{delimiter}"{text.replace(chr(34), chr(34) * 2)}"\r\n' for number, text in enumerate(sentences))
    return (f"id{delimiter}text\r\n" + "".join(rows)).encode()


def parquet_bytes(**columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def jsonl_bytes(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def encoded(suffix, sentences):
    """The bytes of a file of the given kind that holds the sentences."""
    return {
        ".txt": lambda: "\n".join(sentences).encode(),
        ".csv": lambda: csv_bytes(sentences),
        ".tsv": lambda: b"text\tid\n" + "".join(f"{text}\t1\n" for text in sentences).encode(),
        ".jsonl": lambda: jsonl_bytes({"id": 1, "text": text} for text in sentences),
        ".ndjson": lambda: jsonl_bytes({"text": text} for text in sentences),
        ".parquet": lambda: parquet_bytes(text=sentences),
    }[suffix]()


COMPRESS = {"": lambda data: data, ".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress}
