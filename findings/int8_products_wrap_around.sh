#!/usr/bin/env bash
# sentence-transformers 6.2.0, torch 2.13.0: `semantic_search` over vectors that `quantize_embeddings` made does not find
# a vector by itself, and its scores have nothing to do with the vectors.
#
# Expected by most: `quantize_embeddings(vectors, "int8")` and `semantic_search(..., score_function=dot_score)` are of one
# library, and go together: a vector is its own best hit, but for rounding.
# `dot_score` multiplies int8 tensors as they are, and torch keeps the sum in int8, so that it wraps around at 128: a sum
# of 64 products of up to 127² is a number between -128 and 127 by chance. `pairwise_dot_score` of the same vectors
# wraps around in each product, and then sums in int64. `cos_sim` refuses them.
#
# Seen: of 300 vectors one is its own best hit in int8, and all are as soon as the same vectors are float32;
#       dot_score is int8, and three vectors with themselves have -35, 20 and 48 (true: thousands).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sentence-transformers==6.2.0 transformers==5.23.0 \
    torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
import sys

import numpy as np
from sentence_transformers.util import dot_score, pairwise_dot_score, quantize_embeddings, semantic_search

vectors = np.random.default_rng(0).normal(size=(300, 64)).astype(np.float32)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
small = quantize_embeddings(vectors, "int8")


def own(given):
    """How many vectors are their own best hit."""
    found = semantic_search(given, given, top_k=1, score_function=dot_score)
    return sum(hits[0]["corpus_id"] == row for row, hits in enumerate(found))


exact = (small.astype(np.int64) ** 2).sum(1)
scores = dot_score(small[:3], small[:3])
print("own best hit: int8", own(small), "float32", own(small.astype(np.float32)))
print("of three with themselves:", scores.dtype, scores.diagonal().tolist(), "true", exact[:3].tolist())
print("pairwise:", pairwise_dot_score(small[:3], small[:3]).tolist())
wrapped = scores.diagonal().tolist() == [(each + 128) % 256 - 128 for each in exact[:3].tolist()]
if not wrapped or own(small) > 100 or own(small.astype(np.float32)) < 295:
    sys.exit("the behaviour has changed")
PY
