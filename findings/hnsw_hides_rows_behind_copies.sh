#!/usr/bin/env bash
# faiss 1.15.1 (IndexHNSWFlat) and usearch 2.26.6: 5,000 copies of one vector hide the other rows of an index.
#
# Expected by most: copies waste space, and the other rows are found as before. A row's own vector finds that row.
# A node of the graph keeps links to its nearest neighbours only. Copies are nearest to each other and fill each other's
# links; a search that starts among them has no way out. Boilerplate ("Thank you for your message.") does this to real
# tables. Here 999 rows differ; each is looked up by its own vector, with the default settings.
#
# Seen: share of 299 rows found by their own vector, without copies and in four random orders with 5,000
#       no copies     faiss 1.00, usearch 1.00
#       5,000 copies  faiss 0.00, 0.65, 0.51, 0.00; usearch 0.66, 0.61, 0.02, 0.29
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check faiss-cpu==1.15.1 usearch==2.26.6 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
import sys

import faiss
import numpy as np
from usearch.index import Index

faiss.omp_set_num_threads(1)
found = {1: [], 5000: []}
for copies, seed in [(1, 0), (5000, 0), (5000, 1), (5000, 2), (5000, 3)]:
    random = np.random.default_rng(seed)
    different = random.standard_normal((1000, 32)).astype(np.float32)
    different /= np.linalg.norm(different, axis=1, keepdims=True)
    rows = np.concatenate([np.repeat(different[:1], copies, axis=0), different[1:]])
    order = random.permutation(len(rows))
    names = np.arange(copies, copies + 299)
    queries = rows[names]

    graph = faiss.IndexHNSWFlat(32, 32, faiss.METRIC_INNER_PRODUCT)
    graph.add(rows[order])
    by_faiss = order[graph.search(queries, 1)[1][:, 0]]

    index = Index(ndim=32, metric="cos", dtype="f32")
    index.add(order, rows[order], threads=1)
    by_usearch = index.search(queries, 1, threads=1).keys[:, 0]

    found[copies].append([float(np.mean(each == names)) for each in (by_faiss, by_usearch)])
    print(f"{copies} copies: faiss {found[copies][-1][0]:.2f}, usearch {found[copies][-1][1]:.2f}")
if np.min(found[1]) < 0.95 or np.mean(found[5000], axis=0).max() > 0.8:
    sys.exit("the behaviour has changed")
PY
