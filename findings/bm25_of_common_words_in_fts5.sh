#!/usr/bin/env bash
# SQLite 3.54.1's FTS5 (apsw 3.54.1.0) and bm25s 0.3.16: BM25 with the same k1 and b, another first hit.
#
# Expected by most: two implementations of BM25 differ in the scale (FTS5's is negative), hardly in the order.
# FTS5 takes the idf of Robertson and Sparck Jones, which falls below zero for a word in more than half of the texts,
# and puts 0.000001 in its place. In a small collection on one subject, the subject's word counts for nothing, however
# often a text repeats it. Lucene's idf, which bm25s takes, stays well above zero.
#
# Seen, of a text that says "printer" five times and a long one on a printer's cable, for `printer cable`:
#   FTS5  first is the long text (-0.31; the other -0.0000020)
#   bm25s first is the other (0.42; the long text 0.40)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check apsw==3.54.1.0 bm25s==0.3.16 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
import sys

import apsw
import bm25s

texts = [
    "printer printer printer printer printer",
    "the cable of the printer in the hall of the third floor is broken and hot and it makes noise and nobody in the "
    "office knows what to do about it or whom to ask, so we print on the second floor and walk up and down all day",
    "screen flickers",
]
database = apsw.Connection(":memory:")
database.execute("CREATE VIRTUAL TABLE texts USING fts5(body)")
database.executemany("INSERT INTO texts VALUES (?)", [(each,) for each in texts])
search = "SELECT rowid - 1, bm25(texts) AS score FROM texts WHERE texts MATCH 'printer OR cable' ORDER BY score"
by_fts5 = database.execute(search).fetchall()
print("FTS5 ", by_fts5)

index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
index.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
query = bm25s.tokenize("printer cable", stopwords=None, show_progress=False)
rows, scores = index.retrieve(query, k=2, show_progress=False)
print("bm25s", list(zip(rows[0].tolist(), scores[0].tolist())))

if by_fts5[0][0] != 1 or rows[0][0] != 0 or abs(by_fts5[1][1]) > 1e-5:
    sys.exit("the behaviour has changed")
PY
