"""How often search says "nothing here", rightly and wrongly: stated rates beside judged queries.

    python benchmarks/answer_rate.py --model bundled --output docs/results/quality/answer_rate.json

For each judged set of SELFSENT_DATA/retrieval an index is made in a temporary folder and calibrated on its own texts.
Of its judged queries it counts how many are answered, with their answers in place (the stated rate) and with their
judged answers left out (false answers). Beside them: fixed cut-offs of the cosine, and a calibration on one half of the
judged queries that is tested on the other, which shows how much of a gap is that of drawn and judged queries.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from selfsent.data.corpus import read_corpus
from selfsent.exam.calibrate import calibrate
from selfsent.files import write_json
from selfsent.index import Index, write_index
from selfsent.index.calibration import conformal_cutoff, queries_needed
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder

SETS = ("cranfield", "cisi", "counsel", "scitldr")
RATES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
COSINES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
DEEP = 400
"""Hits of a query among which its best text that is no judged answer surely is."""


def judged(name: str, split: str) -> tuple[list[dict[str, str]], list[str], list[set[str]]]:
    """The documents as rows with an id, the queries with answers, and the ids of these."""
    folder = Path(os.environ["SELFSENT_DATA"]) / "retrieval" / name
    rows = pq.read_table(folder / "corpus.parquet").to_pylist()
    documents = [{"id": r["id"], "text": f"{r['title'] or ''} {r['text'] or ''}".strip()} for r in rows]
    queries = {row["id"]: row["text"] for row in pq.read_table(folder / "queries.parquet").to_pylist()}
    known, answers = {row["id"] for row in documents if row["text"]}, dict[str, set[str]]()
    for row in pq.read_table(folder / "qrels" / f"{split}.parquet").to_pylist():
        if row["grade"] > 0 and row["document"] in known:
            answers.setdefault(row["query"], set()).add(row["document"])
    return documents, [queries[each] for each in answers], [*answers.values()]


def shares(found: np.ndarray, without: np.ndarray, cutoff: float) -> dict[str, float]:
    """The shares of queries that are answered at a cut-off, and of those without an answer."""
    answered, wrong = float((found >= cutoff).mean()), float((without >= cutoff).mean())
    return {"cutoff": round(cutoff, 4), "answered": round(answered, 4), "false_answers": round(wrong, 4)}


def measure(model: Any, name: str, about: str, split: str) -> dict[str, Any]:
    """All figures of a set."""
    documents, queries, answers = judged(name, split)
    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus(documents, text_column="text", metadata_columns=["id"], cache=folder)
        write_index(model, corpus, Path(folder) / "i", about, fingerprint(model), id_column="id")
        index = Index(Path(folder) / "i")
        made = calibrate(index, model)
        vectors = encode(model, queries, side="query")
        hits = index.search(vectors, DEEP, queries)
        near = index.search(vectors, DEEP, queries, 0.0)
    # Ids of texts that two rows have are those of the first row, so answers go by text.
    text_of = {row["id"]: row["text"] for row in documents}
    right = [{text_of[each] for each in own} for own in answers]
    best, wrong, cosine, wrong_cosine = (
        np.array([next(hit.score for hit in each if not left or text_of[hit.id] not in own) for each, own in both])
        for both, left in (
            (z, left) for z in (list(zip(hits, right)), list(zip(near, right))) for left in (False, True)
        )
    )
    halves = np.random.default_rng(0).permutation(len(queries)) % 2 == 0
    rates = {
        rate: shares(best, wrong, made.cutoff(rate))
        | {"false_answers_of_drawn_queries": round(made.false_answers(rate), 4)}
        | {
            "half_of_judged_queries": shares(
                best[~halves], wrong[~halves], conformal_cutoff(best[halves].tolist(), rate)
            )
        }
        for rate in RATES
        if min(len(made.answered), halves.sum()) >= queries_needed(rate)
    }
    fixed = {cut: shares(cosine, wrong_cosine, cut) for cut in COSINES}
    return {
        "split": split, "queries": len(queries), "texts": len(documents), "made_of": made.made_of,
        "stated": rates, "fixed_cosine": fixed,
    }  # fmt: skip


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--name", help="of the model in the file")
    parser.add_argument("--split", default="test")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    model, name = open_encoder(given.model), given.name or given.model
    found = json.loads(given.output.read_text()) if given.output.exists() else {}
    found[name] = {each: measure(model, each, name, given.split) for each in SETS}
    write_json(given.output, found)


if __name__ == "__main__":
    main()
