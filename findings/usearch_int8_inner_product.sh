#!/usr/bin/env bash
# usearch 2.26.6: an index with metric "ip" and dtype "i8" does not rank by inner product.
#
# Expected by most: int8 costs some precision, as float16 does, and the order stays about the same.
# Each float vector is brought to length one on its own before it is rounded to int8. Lengths are what an inner product
# adds to cosine, and they are gone: the order is the order of cosine, here the reverse of the true one. Nothing warns,
# and the distances, computed on the integers, are around -16,000.
#
# Seen: f32 [0, 1, 2], bf16 [0, 1, 2], f16 [0, 1, 2], i8 [2, 1, 0]
#       stored as i8: [3, 1] -> [120, 40]; [0.1, 0.011] -> [126, 13]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check usearch==2.26.6 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
import sys

import numpy as np
from usearch.index import Index

vectors = np.array([[3, 1], [1, 0.1], [0.1, 0.011]], np.float32)
query = np.array([1, 0.1], np.float32)
orders = {}
for dtype in ("f32", "bf16", "f16", "i8"):
    index = Index(ndim=2, metric="ip", dtype=dtype)
    index.add(np.arange(3), vectors)
    found = index.search(query, 3)
    orders[dtype] = found.keys.tolist()
    print(dtype, orders[dtype], found.distances)
stored = [np.asarray(index.get(row)).tolist() for row in (0, 2)]
print("stored as i8:", stored)

true = np.argsort(-vectors @ query).tolist()
if not (true == orders["f32"] == orders["bf16"] == orders["f16"] == orders["i8"][::-1]):
    sys.exit("the behaviour has changed")
PY
