"""One side of `index.py words`, in a process of its own: seconds of the processor of 1,000 queries, and their hits."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

TOP, QUERIES, WORDS_ALONE = 10, 1000, 1000


def queries_of(texts: list[str]) -> list[str]:
    """Six words from the beginning of texts."""
    draw = np.random.default_rng(0)
    return [" ".join(texts[row].split()[:6]) for row in draw.integers(len(texts), size=QUERIES)]


class Tantivy:
    """An index of tantivy in memory, with its English analyzer."""

    def __init__(self, texts: list[str]) -> None:
        import tantivy

        fields = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem")
        self.index = tantivy.Index(fields.add_unsigned_field("row", stored=True).build())
        writer = self.index.writer()
        for row, text in enumerate(texts):
            writer.add_document(tantivy.Document(text=text, row=row))
        writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()

    def __call__(self, query: str) -> list[Any]:
        """The first rows."""
        parsed, _ = self.index.parse_query_lenient(query, ["text"])
        return [int(self.searcher.doc(at)["row"][0]) for _, at in self.searcher.search(parsed, TOP).hits]


class Ours:
    """An index of either build."""

    def __init__(self, path: str) -> None:
        before = importlib.util.find_spec("selfsent.index") is None  # where it was called otherwise
        self.index = importlib.import_module("selfsent.search.index" if before else "selfsent.index").Index(path)
        self.vectors = np.ones((1, self.index.size), np.float32)

    def __call__(self, query: str) -> list[Any]:
        """Row, BM25 and cosine of the first hits."""
        [hits] = self.index.search(self.vectors, TOP, [query], WORDS_ALONE)
        return [(hit[0], hit[3].hex(), hit[2]) for hit in hits]


def main() -> None:
    """Ask, and print seconds and hits as JSON."""
    _, path, *index = sys.argv
    with Path(path).open(newline="", encoding="utf-8") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    queries, side = queries_of(texts), Ours(index[0]) if index else Tantivy(texts)
    for query in queries[: QUERIES // 10]:
        side(query)
    start = time.process_time()
    found = [side(query) for query in queries]
    print(json.dumps({"seconds": time.process_time() - start, "hits": found}))


if __name__ == "__main__":
    main()
