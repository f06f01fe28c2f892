#!/usr/bin/env bash
# DuckDB 2.0.1 and LanceDB 0.40.0: a zero vector (the usual vector of an empty text) under cosine similarity.
#
# Expected by most: similarity 0, so a rank in the middle. hnswlib, usearch and Qdrant's local mode do that.
# DuckDB: the similarity is NaN, and DuckDB sorts NaN above every number. `ORDER BY similarity DESC LIMIT 1`, the usual
#   search, returns the empty text for any query. By ascending distance it comes last.
# LanceDB: the row is in no result of any search, however many rows are asked for, and nothing says so.
#
# Seen: duckdb [('empty', nan), ('near', 0.99), ('far', 0.0), ('opposite', -1.0)]
#       lancedb ['near', 'far', 'opposite'] of 4 rows
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1 lancedb==0.40.0
"$folder/venv/bin/python" - "$folder/lance" <<'PY'
import sys

import duckdb
import lancedb

rows = {"near": [0.9, 0.1], "far": [0.0, 1.0], "empty": [0.0, 0.0], "opposite": [-1.0, 0.0]}
query = [1.0, 0.0]

connection = duckdb.connect()
connection.execute("CREATE TABLE texts (name TEXT, vector FLOAT[2])")
connection.executemany("INSERT INTO texts VALUES (?, ?)", list(rows.items()))
similarity = "SELECT name, array_cosine_similarity(vector, ?::FLOAT[2]) AS score FROM texts ORDER BY score DESC"
by_similarity = connection.execute(similarity, [query]).fetchall()
print("duckdb", [(name, round(score, 2)) for name, score in by_similarity])

table = lancedb.connect(sys.argv[1]).create_table("texts", [{"name": n, "vector": v} for n, v in rows.items()])
found = [row["name"] for row in table.search(query).distance_type("cosine").limit(100).to_list()]
print("lancedb", found, "of", table.count_rows(), "rows")

if by_similarity[0][0] != "empty" or found != ["near", "far", "opposite"]:
    sys.exit("the behaviour has changed")
PY
