"""Whether a database finds what the index finds: `selfsent push` on judged sets.

    python benchmarks/push.py --client lancedb --target lancedb://pushed --output docs/results/quality/push/lancedb.json

For each judged set of SELFSENT_DATA/retrieval an index is made in a temporary folder and pushed; both sides are asked
up to 200 judged queries, evenly chosen. Qdrant in a folder is slow: fewer do.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import unit
from selfsent.files import write_json
from selfsent.index import Index, write_index
from selfsent.index.scan import key_of
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.push.check import check
from selfsent.push.sync import push
from selfsent.push.target import Address, open_target

SETS = ("cranfield", "cisi", "counsel", "scitldr")


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


def main() -> None:
    """Measure, and write all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True, help="without #NAME")
    parser.add_argument("--client", required=True, help="the distribution whose version is noted")
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--queries", type=int, default=200, help="of a set, at most")
    parser.add_argument("--output", required=True)
    asked = parser.parse_args()
    model, found = open_encoder(asked.model), {}
    for name in SETS:
        documents, queries, answers = judged(name, "test")
        step = -(-len(queries) // asked.queries)
        queries, answers = queries[::step], answers[::step]
        with tempfile.TemporaryDirectory() as folder:
            corpus = read_corpus(documents, text_column="text", metadata_columns=["id"], cache=folder)
            write_index(model, corpus, Path(folder) / "i", asked.model, fingerprint(model), id_column="id")
            index, address = Index(Path(folder) / "i"), Address.of(f"{asked.target}#bench_{name}")
            first = {text: row["id"] for row in reversed(documents) for text in [row["text"]]}
            text_of = {row["id"]: row["text"] for row in documents}
            # A text of two rows is found by the first.
            grades = [{key_of(0, first[text_of[each]]): 1.0 for each in own} for own in answers]
            vectors = unit(encode(model, queries, side="query"))
            with closing(open_target(address)) as target:
                start = time.process_time()
                done = push(index, target, address)
                seconds = time.process_time() - start
                side = check(index, target, address, queries, vectors, grades)
        gap = side.difference
        found[name] = {
            "rows": done.new + done.kept + done.changed,
            "push_cpu_seconds": round(seconds, 1),
            "queries": side.queries,
            "same_ten": round(side.same, 4),
            "overlap": round(side.overlap, 4),
            "ndcg_index": round(side.ndcg[0], 3),
            "ndcg_database": round(side.ndcg[1], 3),
            "difference": [round(each, 3) for each in (gap.difference, gap.low, gap.high)],
        }
        print(name, found[name], flush=True)
        about = {"model": asked.model, "client": asked.client, "version": version(asked.client)}
        write_json(Path(asked.output), {**about, "weight": index.lexical_weight, "sets": found})


if __name__ == "__main__":
    main()
