"""Indexes of 16 bits, 8 bits and single bits a number: what they find, and how large they are.

    python experiments/bits.py --texts FILE --output docs/results/quality/bits.json

FILE has a text a line. The last 300 of them look for the ten nearest of the others, by an encoder's vectors and their
beginnings; recall is the share of those that float32 finds, with all cells compared, and with as many as an index
compares. Bytes are those of the file of vectors, divided by the texts: numbers, lists and centroids are among them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import faiss
import numpy as np

from selfsent.data.vector_files import unit
from selfsent.files import write_json
from selfsent.index.writer import MIN_RECALL
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.search.ivf import IVF, Bits, training_rows
from selfsent.training.run_directory import versions

QUERIES, TOP = 300, 10


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    """The mean share of rows that are found."""
    return round(float(np.mean([len({*a} & {*b}) / TOP for a, b in zip(found.tolist(), truth.tolist())])), 4)


def main() -> None:
    """Fill the output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--sizes", type=int, nargs="+", default=[384, 128])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    whole = encode(load_encoder(options.model), options.texts.read_text(encoding="utf-8").splitlines())
    rows = []
    for size in options.sizes:
        vectors = unit(whole[:, :size])
        texts, queries = vectors[:-QUERIES], vectors[-QUERIES:]
        truth = np.argsort(-(queries @ texts.T), axis=1)[:, :TOP]
        for precision in get_args(Bits):
            drawn = np.sort(np.random.default_rng(0).permutation(len(texts))[: training_rows(len(texts))])
            lists = IVF.trained(texts[drawn], len(texts), precision=precision)
            lists.add(texts, np.arange(len(texts)))
            row = {"size": size, "precision": precision, "texts": len(texts)}
            lists.tune(MIN_RECALL)
            row["compared"] = round(lists.nprobe / lists.nlist, 3)
            for name, probed in (("as tuned", lists.nprobe), ("all", lists.nlist)):
                lists.nprobe = probed
                since = time.process_time()
                found = lists.search(queries, TOP)[1]
                row[f"ms, {name}"] = round(1000 * (time.process_time() - since) / QUERIES, 2)
                row[f"recall, {name}"] = recall(found, truth)
            with TemporaryDirectory() as folder:
                lists.write(Path(folder) / "vectors")
                row["bytes"] = round((Path(folder) / "vectors").stat().st_size / len(texts))
            rows.append(row)
            print(row, flush=True)
    write_json(options.output, {"versions": versions(), "model": options.model, "rows": rows})


if __name__ == "__main__":
    main()
