"""Vectors cut, indexes of them, and questions by a student: on the command line."""

import numpy as np
import pytest

import tiny
from selfsent.index import Index
from selfsent.models.loading import load_encoder


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(tiny.make_sentences(60, seed=8)) + "\n")
    return path


def test_vectors_and_indexes_are_cut(selfsent, model, texts, tmp_path):
    assert selfsent("encode", model, texts, "--output", tmp_path / "whole.npy").status == 0
    assert selfsent("encode", model, texts, "--size", 8, "--output", tmp_path / "cut.npy").status == 0
    whole, cut = np.load(tmp_path / "whole.npy"), np.load(tmp_path / "cut.npy")
    np.testing.assert_allclose(cut, whole[:, :8], atol=1e-5)
    line = selfsent("encode", model, texts, "--size", 999, "--output", tmp_path / "x.npy").late_complaint
    assert f"size=999 is too large: vectors of {model} have" in line or "--size 999 is too large" in line
    selfsent("index", model, texts, "--size", 8, "--output", tmp_path / "i").ok()
    query = texts.read_text().splitlines()[5]
    found = selfsent("search", "--index", tmp_path / "i", query, "--word-weight", 0, "--json", "-").json
    assert found["queries"][0]["hits"][0]["text"] == query
    assert selfsent("index", model, texts, "--output", tmp_path / "i", "--add").status == 0
    refused = selfsent("index", model, texts, "--output", tmp_path / "i", "--add", "--size", 4).late_complaint
    assert "made with size 8" in refused


def test_a_student_asks_the_index_of_its_teacher(selfsent, model, texts, tmp_path):
    how = ("--method", "distil", "--teacher", model, "--space", "teacher", "--objective", "cosine")
    run = selfsent("train", texts, *how, "--base", "bundled", "--steps", 2, "--hold-out", 0, "--output", tmp_path / "s")
    assert run.status == 0, run.err
    selfsent("index", model, texts, "--query-model", tmp_path / "s", "--output", tmp_path / "i").ok()
    assert Index(tmp_path / "i").lexical_weight == load_encoder(tmp_path / "s/model").lexical_weight
    query = texts.read_text().splitlines()[5]
    found = selfsent("search", "--index", tmp_path / "i", query, "--json", "-").ok()
    assert found.json["queries"][0]["hits"][0]["text"] == query
    by_teacher = selfsent("search", "--index", tmp_path / "i", "--model", model, query, "--json", "-").ok()
    assert by_teacher.out != found.out
    wrong = selfsent("index", model, texts, "--query-model", "bundled", "--output", tmp_path / "j").late_complaint
    assert "bundled has no vectors of the space of" in wrong
    assert not (tmp_path / "j").exists()
    assert "another model" in selfsent("search", "--index", tmp_path / "i", "--model", "bundled", query).late_complaint
