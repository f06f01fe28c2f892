import numpy as np
import pytest

import tiny
from selfsent.corpus import read_corpus
from selfsent.encoding import encode, encode_stream
from selfsent.errors import SettingsError
from selfsent.search import encode_to_file, search


@pytest.fixture(scope="module")
def sentences():
    return tiny.make_sentences(70)


@pytest.fixture(scope="module")
def corpus(sentences, tmp_path_factory):
    return read_corpus(sentences, cache=tmp_path_factory.mktemp("corpora"))


@pytest.fixture
def encoder(encoder_of):
    return encoder_of("bert", initializer_range=0.5)


@pytest.fixture(params=[7, 4096])
def chunks(request, monkeypatch):
    """Small pieces, or everything at once."""
    monkeypatch.setattr("selfsent.encoding.CHUNK", request.param)
    monkeypatch.setattr("selfsent.search.CHUNK", request.param)


def test_the_order_of_the_sentences_is_kept(encoder, sentences, chunks):
    alone = np.concatenate([encode(encoder, [sentence]) for sentence in sentences])
    np.testing.assert_allclose(encode(encoder, sentences), alone, atol=2e-5)
    np.testing.assert_allclose(np.concatenate(list(encode_stream(encoder, iter(sentences)))), alone, atol=2e-5)


def test_encoding_leaves_the_mode_alone_and_has_no_dropout(encoder_of, sentences):
    encoder = encoder_of("bert", dropout=0.5).train()
    first = encode(encoder, sentences)
    assert encoder.training
    np.testing.assert_array_equal(first, encode(encoder, sentences))


def test_nothing_to_encode(encoder):
    assert encode(encoder, []).shape == (0, 32)
    assert list(encode_stream(encoder, [])) == []


def test_search_is_exact(encoder, corpus, sentences, chunks):
    queries = ["ba de fi", sentences[3]]
    vectors = encode(encoder, sentences).astype(np.float64)
    wanted = encode(encoder, queries).astype(np.float64)
    cosines = wanted @ vectors.T / np.linalg.norm(wanted, axis=1)[:, None] / np.linalg.norm(vectors, axis=1)
    told = []
    found = search(encoder, corpus, queries, top=5, advance=told.append)
    assert sum(told) == 70
    for hits, expected in zip(found, cosines, strict=True):
        assert [row for row, _ in hits] == np.argsort(-expected, kind="stable")[:5].tolist()
        np.testing.assert_allclose([cosine for _, cosine in hits], np.sort(expected)[::-1][:5], atol=1e-5)
    assert found[1][0] == (3, pytest.approx(1, abs=1e-5))


def test_more_is_asked_for_than_there_is(encoder, corpus):
    (hits,) = search(encoder, corpus, ["ba"], top=1000)
    assert sorted(row for row, _ in hits) == list(range(70))


def test_other_formats_are_refused(encoder, corpus, tmp_path):
    with pytest.raises(SettingsError, match=r"must end in \.npy or \.parquet"):
        encode_to_file(encoder, corpus, tmp_path / "v.csv")


def test_a_file_that_fails_half_way_does_not_appear(encoder, corpus, tmp_path, chunks):
    def fail(count):
        raise KeyboardInterrupt

    for name in ("v.npy", "v.parquet"):
        with pytest.raises(KeyboardInterrupt):
            encode_to_file(encoder, corpus, tmp_path / name, advance=fail)
    assert list(tmp_path.iterdir()) == []
