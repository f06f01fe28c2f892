"""Maps from the queries of a new encoder to the vectors of an old one."""

import sqlite3

import numpy as np
import pytest

from selfsent.data.vector_files import unit
from selfsent.errors import DataError
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam import swap as swapping
from selfsent.exam.swap import maps, swap
from selfsent.index.query_map import Mapped, QueryMap
from selfsent.scorers.load_scorer import load_scorer
from selfsent.scorers.scorer import Scorer

COUNT, SIZE = 300, 12
RNG = np.random.default_rng(0)
TEXTS = [f"text{number}" for number in range(COUNT)]
MEANT = unit(RNG.normal(size=(COUNT, SIZE)).astype(np.float32))
TURN = np.linalg.qr(RNG.normal(size=(SIZE, SIZE)))[0].astype(np.float32)
ABOUT = Mapped("turned", "new", "f-new", "old", "f-old")


def encoder(name, documents, queries):
    known = dict(zip(TEXTS, documents, strict=True)) | {f"asked{number}": row for number, row in enumerate(queries)}
    found = Scorer(lambda texts: np.stack([known[text] for text in texts]), name)
    found.lexical_weight = 0.0
    return found


def noisy(rows, much, seed):
    return unit((rows + much * np.random.default_rng(seed).normal(size=rows.shape) / SIZE**0.5).astype(np.float32))


def half(start):
    rows = range(start, COUNT, 2)
    return RetrievalTask("half", [f"asked{row}" for row in rows], TEXTS, [{row: 1.0} for row in rows])


def test_a_turned_space_is_found_and_the_gain_kept():
    documents = noisy(MEANT, 0.3, 1)
    old = encoder("old", documents, noisy(MEANT, 1.0, 2))
    new = encoder("new", documents @ TURN, noisy(MEANT, 0.3, 3) @ TURN)

    found = swap(old, new, TEXTS, half(0), half(1))

    assert found.old.score < found.new.score - 10
    assert found.mapped.score == pytest.approx(found.new.score, abs=0.5)
    assert found.kept == pytest.approx(1, abs=0.02)
    assert "Worth it until the texts are encoded again." in found.line
    assert set(found.dev) == {name for name, _ in maps(MEANT, MEANT, MEANT)}
    turned = unit(noisy(MEANT, 0.3, 3) @ TURN)
    np.testing.assert_allclose(found.query_map(turned), noisy(MEANT, 0.3, 3), atol=0.05)


def test_a_map_between_unrelated_vectors_is_said_to_lose():
    old = encoder("old", MEANT, noisy(MEANT, 0.5, 2))
    other = unit(RNG.normal(size=(COUNT, SIZE)).astype(np.float32))
    found = swap(old, encoder("new", other, noisy(other, 0.1, 3)), TEXTS, half(0), half(1))
    assert found.mapped.score < 20 < found.old.score
    assert "It loses: ask with old while it can be had" in found.line
    assert found.to_json()["mapped_minus_old"][2] < 0


def test_every_encoder_counts_with_its_own_weight_of_words_and_the_map_with_the_old_one(monkeypatch):
    weights = []
    monkeypatch.setattr(swapping, "Hybrid", lambda scorer, weight: weights.append((scorer.name, weight)) or scorer)
    old, new = (encoder(name, MEANT, MEANT) for name in ("old", "new"))
    old.lexical_weight, new.lexical_weight = 1.5, 1.0
    swap(old, new, TEXTS, half(0), half(1))
    assert {*weights} == {("old", 1.5), ("new", 1.0), ("mapped", 1.5)}


def test_the_maps_are_those_of_their_definitions():
    new, old = noisy(MEANT, 0.3, 1), np.ascontiguousarray(noisy(MEANT @ TURN, 0.3, 2)[:, :8])
    found = dict(maps(new, new, old))
    orthogonal = found["orthogonal"]
    np.testing.assert_allclose(orthogonal.T @ orthogonal, np.eye(8), atol=1e-5)
    aligned = np.sum((new @ orthogonal) * old)
    for seed in range(20):  # none of the same kind is nearer
        other = np.linalg.qr(np.random.default_rng(seed).normal(size=(SIZE, 8)))[0]
        assert np.sum((new @ other) * old) < aligned
    moments = old.T.astype(np.float64) @ old
    penalty = 0.01 * np.trace(moments) / 8 * np.eye(8)
    expected = new.T.astype(np.float64) @ old @ np.linalg.inv(moments + penalty)
    np.testing.assert_allclose(found["regression of scores with a ridge of 0.01"], expected, atol=1e-4)


def test_an_encoder_without_vectors_is_refused():
    with pytest.raises(DataError, match="bm25 has no vectors to map"):
        swap(load_scorer("bm25"), encoder("new", MEANT, MEANT), TEXTS, half(0), half(1))


def test_a_map_is_written_and_read_again(tmp_path):
    made = QueryMap(ABOUT, TURN[:, :5].copy())
    made.save(tmp_path / "m.safetensors")
    again = QueryMap.load(tmp_path / "m.safetensors")
    assert again.about == ABOUT
    np.testing.assert_allclose(again(3 * MEANT), made(MEANT), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(again(MEANT), axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(again.cut(3).matrix, TURN[:, :3])
    with pytest.raises(DataError, match=r"vectors of 12 numbers \(new\), and these have 11"):
        again(MEANT[:, :11])


def test_a_map_lies_in_a_database():
    with sqlite3.connect(":memory:") as db:
        assert QueryMap.read(db) is None
        for _ in range(2):  # the second in place of the first
            QueryMap(ABOUT, TURN).write(db)
        np.testing.assert_array_equal(QueryMap.read(db).matrix, TURN)
        assert QueryMap.read(db).about == ABOUT
        QueryMap.remove(db)
        assert QueryMap.read(db) is None


@pytest.mark.parametrize("kind", ["nothing", "other", "adapter", "not a number"])
def test_other_files_are_no_maps(tmp_path, kind):
    from selfsent.exam.adapt import Adapter

    path = tmp_path / "m.safetensors"
    if kind == "other":
        path.write_bytes(b"nothing of this kind")
    if kind == "adapter":
        Adapter.identity(4, 0.5).save(path)
    if kind == "not a number":
        QueryMap(ABOUT, np.full((2, 2), np.nan, np.float32)).save(path)
    with pytest.raises(DataError, match="is no map between two encoders"):
        QueryMap.load(path)
