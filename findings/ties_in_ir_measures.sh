#!/usr/bin/env bash
# ir-measures 0.4.3 over pytrec_eval-terrier 0.5.11: RR and RR@10 of one run with two documents are 0.5 and 1.0.
#
# Expected by most: a cutoff of ten changes nothing where there are two documents, and names of documents never matter.
# Each measure goes to the first provider that has it, and providers break ties differently. trec_eval, behind RR and
# nDCG, puts the greater name first; the one behind RR@10 does otherwise. So a table with both mixes two orders.
# Besides, trec_eval keeps scores in 32 bits: 0.99999999 and 0.99999998, which Python tells apart, are a tie as well.
#
# Seen: the relevant document is named a, the other b, and both have score 1.0: RR 0.5, RR@10 1.0, nDCG 0.63
#       names exchanged:                                                         RR 1.0, nDCG 1.0
#       a scores 0.99999999, b 0.99999998:                                       RR 0.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ir-measures==0.4.3 pytrec_eval-terrier==0.5.11
"$folder/venv/bin/python" - <<'PY'
import sys

from ir_measures import RR, calc_aggregate, nDCG


def scores(relevant, other, high=1.0, low=1.0):
    """Scores of a run that holds a relevant document and another one."""
    run = {"q": {relevant: high, other: low}}
    found = calc_aggregate([RR, RR @ 10, nDCG], {"q": {relevant: 1, other: 0}}, run)
    return {str(measure): round(value, 2) for measure, value in found.items()}


tied, renamed, close = scores("a", "b"), scores("b", "a"), scores("a", "b", 0.99999999, 0.99999998)
print("tied   ", tied)
print("renamed", renamed)
print("close  ", close)
same = tied == {"RR": 0.5, "RR@10": 1.0, "nDCG": 0.63} and renamed["RR"] == renamed["nDCG"] == 1.0
if not same or close["RR"] != 0.5:
    sys.exit("the behaviour has changed")
PY
