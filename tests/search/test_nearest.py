import numpy as np
import pytest

from selfsent.models.encoding import encode
from selfsent.search import search


@pytest.mark.parametrize("chunk", [7, 4096])
def test_search_is_exact(encoder, corpus, sentences, chunk, monkeypatch):
    monkeypatch.setattr("selfsent.models.encoding.CHUNK", chunk)
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
