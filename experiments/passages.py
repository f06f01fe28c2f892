"""Passages of long documents: nDCG@10 of queries drawn from them, the size of an index, milliseconds a query.

    python experiments/passages.py --text DIR --model bundled --model all-MiniLM=DIR [--fast]

Documents are blocks between blank lines: chapters of textbooks, statutes, transcripts of podcasts. A query is a
sentence that is taken out of its document, without some of its words, as in `selfsent exam`. A document counts by
its best passage. Rows that are done are not done again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent import read_corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.display import shortened
from selfsent.exam.draw import draw_exam, texts_of
from selfsent.files import read_json, write_json
from selfsent.index import Index, write_index
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.models.table import Table
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.passages import InPassages
from selfsent.scorers.scorer import Scorer
from selfsent.search import encode_to_file

if TYPE_CHECKING:
    from selfsent.models.encoder import Encoder

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "quality" / "passages.json"
SETS = {"openstax.txt.zst": 300, "law-dc-code.txt.zst": 800, "podcasts-changelog.txt.zst": 40}
"""Files of documents, and how many of these are searched."""
WORDS = (None, 60, 120, 250)
QUERIES = 400


def measured(task: Any, encoder: Encoder | Table, name: str, words: int | None) -> dict[str, float]:
    """nDCG@10 by the cosine and with words, and the size and speed of an index; every passage is encoded once."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus({"text": task.documents}, passages=words, metadata_columns=(), cache=folder)
        place, file, start = Path(folder) / "index", Path(folder) / "vectors.npy", time.process_time()
        encode_to_file(encoder, corpus, file, side="document")
        vectors = VectorsFile(file)
        write_index(encoder, corpus, place, name, fingerprint(encoder), file=vectors)
        built, index, asked = time.process_time() - start, Index(place), task.queries[:100]
        encoded = encode(encoder, asked, side="query")
        index.search(encoded[:1], texts=asked[:1])
        start = time.process_time()
        for query, vector in zip(asked, encoded, strict=True):
            index.search(vector[None], texts=[query])
        spent = 1000 * (time.process_time() - start) / len(asked)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6
        found = {"texts": len(corpus), "built": built, "megabytes": size, "milliseconds": spent}
        known = dict(zip(corpus.texts(), np.load(file)[corpus.input_rows.first], strict=True))
    return scores_of(task, encoder, known, words) | found


def scores_of(task: Any, encoder: Encoder | Table, known: Mapping[str, Any], words: int | None) -> dict[str, float]:
    """nDCG@10 by the cosine and with words, with the vectors of known texts."""

    def vectors_of(texts: Sequence[str]) -> Any:
        new = [text for text in texts if text not in known]
        made = dict(zip(new, encode(encoder, new, side="document"), strict=True)) if new else {}
        return np.stack([made[text] if text in made else known[text] for text in texts])

    alone = Scorer(partial(encode, encoder, side="query"), "encoder", searching=(None, vectors_of))
    alone.lexical_weight = encoder.lexical_weight
    both = {"cosine": alone, "+words": Hybrid(alone)}
    return {sign: task.score(each if words is None else InPassages(each, words)).score for sign, each in both.items()}


def main() -> None:
    """Score what is missing, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="directory of the files")
    parser.add_argument("--model", action="append", default=[], help="an encoder (default: bundled)")
    parser.add_argument("--fast", action="store_true", help="transformers in bfloat16")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows: dict[str, Any] = read_json(options.output)
    for name, searched in SETS.items():
        exam = draw_exam(texts_of(read_corpus(str(options.text / name))), QUERIES, searched=searched)
        task, lengths = exam.task, [len(text.split()) for text in exam.task.documents]
        about = {"documents": len(lengths), "words": float(np.mean(lengths)), "queries": len(task.queries)}
        for model in options.model or ["bundled"]:
            label, _, directory = model.rpartition("=")
            label, encoder = label or model, open_encoder(directory)
            if options.fast and not isinstance(encoder, Table):
                from selfsent.models.precision import quicken

                quicken(encoder, fast=True, int8=False)
            for words in WORDS:
                key = f"{name} {label} {words or 'whole'}"
                if key not in rows:
                    rows[key] = about | measured(task, encoder, label, words)
                    options.output.parent.mkdir(parents=True, exist_ok=True)
                    write_json(options.output, rows)
                told = "  ".join(f"{what} {value:,.1f}" for what, value in rows[key].items())
                print(f"{shortened(key, 60):60}  {told}", flush=True)


if __name__ == "__main__":
    main()
