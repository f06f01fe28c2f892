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

from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import unit
from selfsent.evaluation.tasks.beir import read_task
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
        task = read_task(Path(os.environ["SELFSENT_DATA"]) / "retrieval" / name)
        step = -(-len(task.queries) // asked.queries)
        queries, answers = task.queries[::step], task.grades[::step]
        documents = [{"id": number, "text": text} for number, text in enumerate(task.documents)]
        with tempfile.TemporaryDirectory() as folder:
            corpus = read_corpus(documents, text_column="text", metadata_columns=["id"], cache=folder)
            write_index(model, corpus, Path(folder) / "i", asked.model, fingerprint(model), id_column="id")
            index, address = Index(Path(folder) / "i"), Address.of(f"{asked.target}#bench_{name}")
            first = {text: number for number, text in reversed([*enumerate(task.documents)])}
            # A text of two rows is found by the first.
            right = [[task.documents[number] for number, grade in own.items() if grade > 0] for own in answers]
            grades = [{key_of(0, first[text]): 1.0 for text in own} for own in right]
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
