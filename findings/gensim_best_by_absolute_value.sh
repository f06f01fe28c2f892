#!/usr/bin/env bash
# gensim 4.4.0: with `num_best` an index of vectors ranks by the absolute value of the cosine, so that the opposite of a
# query is its best hit.
#
# Expected by most: `MatrixSimilarity(..., num_best=2)` gives the two largest of the similarities that it gives without
# `num_best`. It gives the two that are furthest from zero: counts of words, for which it was made, have no
# negative cosines, but those of LSI and of encoders do. `Similarity`, which is sharded, does the same.
#
# Seen: similarities 0.90, -1.00, 0.20; with num_best=2 the hits are the second (-1.00) and the first (0.90).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gensim==4.4.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PY'
import sys

from gensim.similarities import MatrixSimilarity, Similarity

query = [(0, 1.0), (1, 0.0)]
texts = [[(0, 0.9), (1, 0.44)], [(0, -1.0), (1, 0.05)], [(0, 0.2), (1, 0.98)]]
every = MatrixSimilarity(texts, num_features=2)[query]
best = MatrixSimilarity(texts, num_features=2, num_best=2)[query]
shards = Similarity("shard", texts, num_features=2, num_best=2)[query]
print("without num_best", [round(float(each), 2) for each in every])
for name, hits in (("MatrixSimilarity", best), ("Similarity", shards)):
    print(name, [(int(row), round(float(score), 2)) for row, score in hits])
if [int(row) for row, _ in best] != [1, 0] or [int(row) for row, _ in shards] != [1, 0] or every.argmax() != 0:
    sys.exit("the behaviour has changed")
PY
