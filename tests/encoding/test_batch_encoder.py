import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tiny
from selfsent.encoding import BatchEncoder
from selfsent.errors import CorpusError, SettingsError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder

TEXTS = ["", *tiny.make_sentences(5), "  ", tiny.make_sentences(1)[0]]


@pytest.fixture(scope="module")
def base(base_of):
    """The directory of a tiny encoder."""
    return str(base_of("bert", initializer_range=0.5))


@pytest.fixture(scope="module")
def expected(base):
    found = encode(load_encoder(base).eval(), [" ".join(text.split()) for text in TEXTS])
    found[[0, 6]] = 0
    return found


def plain(column):
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def test_every_kind_of_batch_comes_back_with_a_column(base, expected):
    encoder = BatchEncoder(base)
    batches = {
        "dictionary": {"id": np.arange(8), "text": np.array(TEXTS, dtype=object)},
        "frame": pd.DataFrame({"id": range(8), "text": TEXTS}, index=range(10, 18)),
        "table": pa.table({"id": range(8), "text": TEXTS}),
        "record batch": pa.record_batch({"id": list(range(8)), "text": TEXTS}),
    }
    for kind, batch in batches.items():
        found = encoder(batch)
        assert type(found) is type(batch), kind
        ids, vectors = (plain(found[name]) for name in ("id", "embedding"))
        np.testing.assert_allclose(np.stack(vectors), expected, atol=1e-5, err_msg=kind)
        assert ids == [*range(8)]
        assert "embedding" not in (batch.schema.names if hasattr(batch, "schema") else batch)
    assert encoder(batches["table"]).schema.field("embedding").type == pa.list_(pa.float32(), 32)
    assert encoder(batches["frame"]).index.tolist() == [*range(10, 18)]


def test_missing_texts_are_zeros_and_others_are_refused(base):
    encoder = BatchEncoder(base, "body", "vector")
    frame = pd.DataFrame({"body": pd.Series(["it rains", None, float("nan"), pd.NA], dtype=object)})
    assert [bool(vector.any()) for vector in encoder(frame)["vector"]] == [True, False, False, False]
    assert encoder({"body": np.array([], dtype=object)})["vector"].shape == (0, 32)
    for batch, said in (
        ({"body": np.array([1])}, "row 0 of a batch: int64 '1' where a text must be"),
        ({"text": np.array(["a"])}, "a batch has no column 'body'; it has 'text'"),
    ):
        with pytest.raises(CorpusError, match=said):
            encoder(batch)
    for batch, said in (({"body": [], "vector": []}, "'vector' already"), ([1], "a batch is list; it must be")):
        with pytest.raises(SettingsError, match=said):
            encoder(batch)
    with pytest.raises(SettingsError, match="names both columns"):
        BatchEncoder(base, "text", "text")


def test_what_is_taken_out_is_no_part_of_the_text(base):
    plain, taken = BatchEncoder(base), BatchEncoder(base, clean="urls")
    text = tiny.make_sentences(1)[0]
    np.testing.assert_array_equal(taken.vectors([f"{text} https://a.b/c"]), plain.vectors([text]))


def test_it_is_small_loads_its_model_once_and_not_before_it_must(base, tmp_path, monkeypatch):
    place, loads = shutil.copytree(base, tmp_path / "model"), []
    monkeypatch.setattr("selfsent.models.loading.load_encoder", lambda name: loads.append(name) or load_encoder(name))
    sent = pickle.dumps(BatchEncoder(place, fast=True))
    assert len(sent) < 1000
    encoder, twin = pickle.loads(sent), pickle.loads(sent)
    assert not loads
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda e: e.vectors(TEXTS), [encoder, twin] * 4))
    assert loads == [str(place)]
    assert all(np.array_equal(each, found[0]) for each in found)


def test_a_model_that_was_trained_again_in_its_place_is_loaded_again(base, base_of, tmp_path):
    place = shutil.copytree(base, tmp_path / "model")
    texts = tiny.make_sentences(3)
    before = BatchEncoder(place).vectors(texts)
    shutil.rmtree(place)
    shutil.copytree(base_of("bert", seed=7), place)
    after = encode(load_encoder(place).eval(), texts)
    assert np.abs(after - before).max() > 0.1
    np.testing.assert_allclose(BatchEncoder(place).vectors(texts), after, atol=1e-5)


def test_one_string_is_no_list_of_letters(base, encoder_of):
    from selfsent.search import search

    for call in (
        BatchEncoder(base).vectors,
        lambda text: encode(encoder_of("bert"), text),
        lambda text: search(str(base), None, text),
    ):
        with pytest.raises(SettingsError, match="put it into a list"):
            call("it rains")


def test_a_prompt_is_one_of_two(base):
    with pytest.raises(SettingsError, match="there is no prompt 'passage'"):
        BatchEncoder(base, prompt="passage")
