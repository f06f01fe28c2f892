import numpy as np
import pytest

from naive import words as naive
from selfsent.lexical import BM25, Analyzer
from selfsent.lexical.bm25 import BM25Stats, Postings, saturated, score_postings

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


@pytest.mark.parametrize("common", [1, 1000])
@pytest.mark.parametrize("query", QUERIES)
def test_postings_are_scored_as_a_stream(query, common):
    analyzer = Analyzer("english")
    terms = [analyzer(text) for text in TEXTS]
    lengths = np.array(list(map(len, terms)), np.float32)
    stats = BM25Stats.of(lengths)
    norms, postings = stats.length_norms(lengths), []
    for term in dict.fromkeys(analyzer(query)):
        ids = np.array([number for number, each in enumerate(terms) if term in each], np.int64)
        counts = np.array([terms[number].count(term) for number in ids], np.float32)
        each = Postings.of(ids, saturated(counts, norms[ids]), len(TEXTS), common)
        assert (each.frequency, each.doc_ids is None) == (len(ids), common == 1000 and len(ids) > 0)
        postings.append((each, analyzer(query).count(term)))
    found = score_postings(stats, postings, len(TEXTS))
    np.testing.assert_allclose(found, scores([query], TEXTS, analyzer)[0], rtol=1e-6)


def test_the_formula_by_hand():
    stats = BM25Stats.of(np.array([2, 4], np.float32))
    assert stats == (2, 3.0)
    assert float(stats.idf(1)) == pytest.approx(np.log(2))
    np.testing.assert_allclose(stats.length_norms(np.array([3], np.float32)), [1.2])
    np.testing.assert_allclose(saturated(np.array([2], np.float32), np.array([1.2], np.float32)), [2 / 3.2])
    assert BM25Stats.of(np.zeros(0, np.float32)) == (0, 0.0)
