"""Passages of long documents: nDCG@10 of queries drawn from them, the size of an index, milliseconds a query.

    python experiments/passages.py --text DIR --model bundled --model MINILM

Documents are blocks between blank lines: chapters of textbooks, statutes, transcripts of podcasts. A query is a
sentence that is taken out of its document, without some of its words, as in `selfsent exam`. A document counts by
its best passage. Rows that are done are not done again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from selfsent import read_corpus
from selfsent.display import shortened
from selfsent.exam.draw import draw_exam, texts_of
from selfsent.files import read_json, write_json
from selfsent.index import Index, write_index
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.scorers.load_scorer import load_scorer

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "quality" / "passages.json"
SETS = {"openstax.txt.zst": 300, "law-dc-code.txt.zst": 800, "podcasts-changelog.txt.zst": 40}
"""Files of documents, and how many of these are searched."""
WORDS = (None, 60, 120, 250)
QUERIES = 400


def scores_of(task: Any, model: str, words: int | None) -> dict[str, float]:
    """nDCG@10 of a model by the cosine and with words."""
    suffix = "" if words is None else f"+passages:{words}"
    return {sign or "cosine": task.score(load_scorer(f"{model}{sign}{suffix}")).score for sign in ("", "+words")}


def indexed(task: Any, model: str, words: int | None) -> dict[str, float]:
    """Seconds to build an index, its megabytes, and milliseconds a query, one at a time."""
    encoder = open_encoder(model)
    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus({"text": task.documents}, passages=words, metadata_columns=(), cache=folder)
        place, start = Path(folder) / "index", time.process_time()
        write_index(encoder, corpus, place, model, fingerprint(encoder))
        built, index, asked = time.process_time() - start, Index(place), task.queries[:100]
        vectors = encode(encoder, asked, side="query")
        index.search(vectors[:1], texts=asked[:1])
        start = time.process_time()
        for query, vector in zip(asked, vectors, strict=True):
            index.search(vector[None], texts=[query])
        spent = 1000 * (time.process_time() - start) / len(asked)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6
    return {"texts": len(corpus), "built": built, "megabytes": size, "milliseconds": spent}


def main() -> None:
    """Score what is missing, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="directory of the files")
    parser.add_argument("--model", action="append", default=[], help="an encoder (default: bundled)")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows: dict[str, Any] = read_json(options.output)
    for name, searched in SETS.items():
        exam = draw_exam(texts_of(read_corpus(str(options.text / name))), QUERIES, searched=searched)
        task, lengths = exam.task, [len(text.split()) for text in exam.task.documents]
        about = {"documents": len(lengths), "words": float(np.mean(lengths)), "queries": len(task.queries)}
        for model in options.model or ["bundled"]:
            for words in WORDS:
                key = f"{name} {Path(model).name} {words or 'whole'}"
                if key not in rows:
                    rows[key] = {**about, **scores_of(task, model, words), **indexed(task, model, words)}
                    options.output.parent.mkdir(parents=True, exist_ok=True)
                    write_json(options.output, rows)
                told = "  ".join(f"{what} {value:,.1f}" for what, value in rows[key].items())
                print(f"{shortened(key, 60):60}  {told}", flush=True)


if __name__ == "__main__":
    main()
