#!/usr/bin/env bash
# scikit-learn 1.9.1, HDBSCAN: a text that occurs five times turns most of its topic into noise.
#
# Expected by most: copies make a topic denser, and the other rows stay where they were; a fifth copy is like a fourth.
# Rows at distance 0 are infinitely dense. As soon as there are `min_cluster_size` of them (and `min_samples`), they are
# a cluster of infinite stability, which is chosen before any cluster that holds it: the topic is split into the copies
# and what is left, mostly noise. Hundreds of copies do no more. Nothing warns.
#
# Seen: three topics of 60 rows, min_cluster_size=5, eight draws. One row of a topic occurs
#       1 to 4 times: 3 clusters, no noise
#       5 times: noise is 37, 0, 50, 50, 0, 44, 54, 51 of the other 59 rows of the topic; 4 clusters where there is any
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
import sys
import warnings

import numpy as np
from sklearn.cluster import HDBSCAN

warnings.simplefilter("ignore")  # of the default of `copy`
ROWS, SIZE = 60, 16


def noise(seed, times):
    """Noise among the other rows of a topic whose first row occurs so many times, and the number of clusters."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(3, SIZE)) * 3
    rows = np.concatenate([centre + draw.normal(size=(ROWS, SIZE)) * 0.5 for centre in centres])
    labels = HDBSCAN(min_cluster_size=5).fit(np.concatenate([rows, *[rows[:1]] * (times - 1)])).labels_
    return int((labels[1:ROWS] == -1).sum()), len({*labels.tolist()} - {-1})


found = {times: [noise(seed, times) for seed in range(8)] for times in (1, 4, 5, 100)}
for times, counts in found.items():
    print(times, "times: noise", [count for count, _ in counts], "clusters", [clusters for _, clusters in counts])
whole = all(each == (0, 3) for times in (1, 4) for each in found[times])
if not whole or any(sum(count > 30 for count, _ in found[times]) < 4 for times in (5, 100)):
    sys.exit("the behaviour has changed")
PY
