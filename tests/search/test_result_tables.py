import csv

import numpy as np
import pyarrow.parquet as pq

from selfsent.data.corpus import read_corpus
from selfsent.search import Hit, Pair, find_clusters
from selfsent.search.tables import cluster_columns, cluster_rows, hit_rows, pair_rows, write_table


def test_results_tell_rows_of_the_input(tmp_path):
    corpus = read_corpus(["ko", "", "ba de", "ko", "fi", "ko"], metadata_columns=(), cache=tmp_path)
    assert list(hit_rows("q", [Hit(0, 0.8, 0.9, 0.25), Hit(4, 0.4, 0.5)], corpus)) == [
        {"query": "q", "cosine": 0.9, "words": 0.25, "row": 0, "repeats": 2, "text": "ko"},
        {"query": "q", "cosine": 0.5, "words": 0.0, "row": 4, "repeats": 0, "text": "fi"},
    ]
    (pair,) = pair_rows([Pair(0.25, 1, 2)], corpus)
    scores = {"score": 0.25, "cosine": 0.25, "words": 0.0}
    sides = {"row1": 2, "row2": 4, "repeats1": 0, "repeats2": 0, "text1": "ba de", "text2": "fi"}
    assert pair == scores | sides


def test_every_row_with_a_text_has_its_cluster(tmp_path):
    corpus = read_corpus(["ko", "", "ba de", "fi", "ko", "ko"], metadata_columns=(), cache=tmp_path)
    angles = np.array([0.0, 1.5, 1.6])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    clusters = find_clusters(vectors, 2, repeats=corpus.input_rows.repeats)
    # Two different texts against one that is there three times: rows count.
    assert clusters.sizes.tolist() == [3, 2]
    found = list(cluster_rows(clusters, corpus))
    assert [(row["row"], row["cluster"]) for row in found[:3]] == [(0, 0), (4, 0), (5, 0)]
    assert sorted((row["row"], row["cluster"]) for row in found[3:]) == [(2, 1), (3, 1)]
    write_table(found, cluster_columns(corpus), tmp_path / "g.parquet")
    assert pq.read_table(tmp_path / "g.parquet").to_pylist() == found


def test_a_carriage_return_in_a_cell_breaks_no_line(tmp_path):
    row = {"note": "a\rb\r\nc", "n": 1}
    for name, mark in (("t.csv", ","), ("t.tsv", "\t")):
        write_table([row, row], {"note": str, "n": int}, tmp_path / name)
        with (tmp_path / name).open(newline="") as file:
            assert list(csv.reader(file, delimiter=mark)) == [["note", "n"], ["a\nb\nc", "1"], ["a\nb\nc", "1"]]
