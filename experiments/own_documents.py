"""A table fitted by least squares to a teacher's vectors of the documents that are searched, on judged sets.

    python experiments/own_documents.py --data DATA --cache CACHE --work WORK \
        --output docs/results/quality/own_documents.json

nDCG@10 of the test queries by the cosine and with words, and how far the latter is ahead of BM25, with its interval.
`least-squares` reads the documents and the teacher's vectors of them, and no query. The teacher reads 160 tokens, in
bfloat16; its vectors are kept in CACHE. Seconds of the processor are of one whole training with them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from harness import base_of

import selfsent
from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import unit
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.files import read_json, write_json
from selfsent.scorers.load_scorer import load_scorer
from selfsent.training import fit

SETS = ("cranfield", "cisi", "counsel", "scitldr")
LONGEST, TEACHER_READS = 512, 160
"""Tokens that tables and the teacher read of a text."""


def read_by_teacher(file: Path, teacher: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """The teacher's vectors of texts, of length 1."""
    if not file.is_file():
        torch.set_num_threads(1)
        model = SentenceTransformer(teacher, device="cpu", model_kwargs={"dtype": torch.bfloat16})
        model.max_seq_length = TEACHER_READS
        vectors = model.encode(list(texts), batch_size=64, convert_to_tensor=True).float().numpy()
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, vectors=vectors)
    with np.load(file) as kept:
        return dict(zip(texts, unit(kept["vectors"].astype(np.float32)), strict=True))


def trained(texts: list[str], output: Path, teacher: str) -> tuple[str, float]:
    """The model that a training makes from `bundled`, and its seconds of the processor."""
    start = time.process_time()
    how: dict[str, Any] = {"hold_out": 0, "overwrite": True, "quiet": True, "max_length": LONGEST, "teacher": teacher}
    run = selfsent.train(texts, "least-squares", "bundled", output, **how)
    return str(run.directory / "model"), time.process_time() - start


def score_set(name: str, task: RetrievalTask, teacher: str, options: argparse.Namespace, kept: dict[str, Any]) -> None:
    """Score the rows of a set that are not kept yet."""
    rows = kept.setdefault(name, {})
    texts, words = list(dict.fromkeys(task.documents)), task.score(load_scorer("bm25"))
    known = read_by_teacher(options.cache / f"{name}.npz", teacher, [*task.queries, *task.documents])

    def cached(corpus: Corpus, column: str, *_: Any) -> np.ndarray:
        return np.stack([known[text] for text in corpus.texts(np.arange(len(corpus)), column)])

    def scored(model: str, row: str) -> None:
        both = task.score(load_scorer(f"{model}+words"))
        ahead, cosine = both.minus(words), task.score(load_scorer(model)).score
        over = [ahead.difference, ahead.low, ahead.high]
        rows.setdefault(row, {}).update(cosine=cosine, words=both.score, over_bm25=over)
        write_json(options.output, kept)
        print(name, row, f"{cosine:.1f} / {both.score:.1f}", flush=True)

    fit.cached_vectors = cached
    rows.setdefault("BM25", {"words": words.score})
    if "bundled" not in rows:
        scored("bundled", "bundled")
    if "least squares" not in rows:
        model, seconds = trained(texts, options.work / name, teacher)
        rows["least squares"] = {"seconds": seconds}
        scored(model, "least squares")


def main() -> None:
    """Score all rows that are not kept yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--teacher", default="all-MiniLM-L6-v2")
    parser.add_argument("--sets", nargs="+", default=SETS)
    for name in ("data", "cache", "work", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    teacher, kept = base_of(options.teacher), read_json(options.output)
    for name in options.sets:
        score_set(name, read_task(options.data / "retrieval" / name), teacher, options, kept)


if __name__ == "__main__":
    main()
