import numpy as np
import pytest

from naive import words as naive
from selfsent.data.vector_files import inner
from selfsent.lexical import BM25, Analyzer, WordCounts

TEXTS = ["the red cars stop", "a red bus, a red car", "the train is late again", "late", "!?", "the red cars stop"]
QUERIES = ["red car", "the late train", "unknown words", "red red bus", "?", ""]


def scores(queries, texts, analyzer, parts=1):
    bm25 = BM25(queries, analyzer)
    for part in np.array_split(np.array(texts, object), parts):
        bm25.add(part.tolist())
    return (bm25.queries @ bm25.texts.T).toarray()


@pytest.mark.parametrize("language", [None, "english"])
@pytest.mark.parametrize("parts", [1, 4])
def test_it_is_as_by_loops(language, parts):
    analyzer = Analyzer(language)
    found = scores(QUERIES, TEXTS, analyzer, parts)
    terms = [analyzer(text) for text in TEXTS]
    expected = [[naive.bm25_share(analyzer(query), text, terms) for text in terms] for query in QUERIES]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert (found <= 1).all()


def test_it_ranks_as_bm25s():
    from bm25s import BM25 as Peer

    draw = np.random.default_rng(0)
    terms = [f"w{n}" for n in range(300)]
    texts = [" ".join(draw.choice(terms, size)) for size in draw.integers(3, 60, 200)]
    queries = [" ".join(draw.choice(terms, 6)) for _ in range(20)]
    peer = Peer(k1=1.2, b=0.75)
    peer.index([text.split() for text in texts], show_progress=False)
    theirs = np.stack([peer.get_scores(query.split()) for query in queries])
    ours = scores(queries, texts, Analyzer())
    assert ((theirs > 0) == (ours > 0)).all()
    bounds = theirs.max(1) / ours.max(1)  # what a query can reach
    np.testing.assert_allclose(ours * bounds[:, None], theirs, rtol=1e-4)


def test_a_query_of_unknown_words_stays_near_zero():
    texts = [f"word{n} and more of it" for n in range(50)]
    nonsense, known = scores(["xqzw vvkj qqpt more", "word7 more"], texts, Analyzer())
    assert 0 < nonsense.max() < 0.02 < 0.3 < known.max()


def test_nothing_is_searched_or_asked():
    assert scores([], TEXTS, Analyzer()).shape == (0, 6)
    assert scores(["red"], [], Analyzer()).shape == (1, 0)
    assert scores(["red"], ["", "!"], Analyzer()).tolist() == [[0, 0]]


def counts_of(*parts, analyzer=None):
    counts = WordCounts(analyzer=analyzer)
    for part in parts:
        counts.add(part)
    return counts


@pytest.mark.parametrize("analyzer", [None, Analyzer("english")])
@pytest.mark.parametrize("parts", [(TEXTS,), (TEXTS[:2], [], TEXTS[2:])])
def test_shared_words_are_as_by_loops(parts, analyzer):
    counts = counts_of(*parts, analyzer=analyzer)
    found = inner(counts.weighed(QUERIES), counts.weighed(TEXTS))
    terms = analyzer or naive.words_of
    expected = [[naive.shared_words(query, text, TEXTS, terms) for text in TEXTS] for query in QUERIES]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert counts.texts == len(TEXTS)
    assert counts.weighed([]).shape == (0, counts.frequencies.size)


def test_scripts_without_spaces_count_pairs_of_signs():
    texts = ["東京タワーに行く", "猫が好き"]
    counts = counts_of(texts)
    assert (inner(counts.weighed(["東京の猫"]), counts.weighed(texts))[0] > 0).tolist() == [True, False]
