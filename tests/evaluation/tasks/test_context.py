import numpy as np
import pytest
from scipy.stats import hypergeom

from naive.metrics import alike, context_ranks
from selfsent.errors import DataError
from selfsent.evaluation.tasks import context
from selfsent.evaluation.tasks.context import ContextTask, expected_reciprocal_rank
from selfsent.scorers.load_scorer import load_scorer
from selfsent.stats.duplicates import near_duplicates


@pytest.fixture
def corpus(documents_of):
    return documents_of(12)


def task_of(corpus):
    return ContextTask(corpus, np.arange(len(corpus)))


def test_ranks_match_explicit_loops(corpus, model):
    task = task_of(corpus)
    vectors = model.encode(list(task.texts))
    expected = context_ranks(task.texts, task.document, vectors)
    assert task.queries.tolist() == [query for query, _, _ in expected]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    loops = [1 / (1 + beaten) if beaten < 10 else 0.0 for _, beaten, _ in expected]
    assert task.reciprocal_ranks(unit.astype(np.float32)) == pytest.approx(loops)
    assert task.score(load_scorer(model)).score == pytest.approx(100 * np.mean(loops))


def test_a_near_duplicate_is_neither_answer_nor_candidate(corpus_of):
    task = task_of(corpus_of([["a b c", "z y x", "Z y x!"], ["a b d", "A, b c!", "e f g"]]))
    assert task.queries.tolist() == [0, 3, 4]
    vectors = np.zeros((6, 6), np.float32)
    vectors[[0, 4], 0] = 1  # the same place as its near-duplicate
    vectors[[1, 2], :2] = 0.6, 0.8  # the answer, and a near-duplicate of it
    vectors[3, [0, 2]] = 0.8, 0.6  # nearer than the answer
    vectors[5, 5] = 1
    assert task.reciprocal_ranks(vectors)[0] == pytest.approx(1 / 2)


def test_blocks_do_not_change_the_ranks(corpus, model):
    task = task_of(corpus)
    vectors = load_scorer(model)(task.texts)
    assert task.reciprocal_ranks(vectors, block=100) == pytest.approx(task.reciprocal_ranks(vectors))


def test_expected_rank_is_hypergeometric():
    rng, before = np.random.default_rng(0), np.arange(10)
    others = np.concatenate([rng.integers(1, 300, 300), rng.integers(1, 1_000_000, 100)])
    beaten = (others * rng.random(400) ** 6).astype(int)
    chance = hypergeom.pmf(before, others[:, None], beaten[:, None], np.minimum(99, others)[:, None])
    found = expected_reciprocal_rank(beaten, others, 99, cutoff=10)
    assert found == pytest.approx(chance @ (1 / (1 + before)), abs=1e-8)
    few = expected_reciprocal_rank(np.array([0, 1, 9, 10]), np.full(4, 30), 99, cutoff=10)
    assert few == pytest.approx([1, 1 / 2, 1 / 10, 0])  # over all candidates it is the rank


@pytest.mark.parametrize("documents", [12, 40], ids=["fewer sentences than candidates", "more"])
@pytest.mark.parametrize("value", [0.1, 0.0, np.nan])
def test_vectors_that_say_nothing_score_nothing(documents_of, documents, value):
    constant = load_scorer(lambda texts: np.full((len(texts), 33), value))
    assert task_of(documents_of(documents)).score(constant).score < 1


def test_random_vectors_score_chance(documents_of):
    rng = np.random.default_rng(3)
    score = task_of(documents_of(150, 3)).score(load_scorer(lambda texts: rng.normal(size=(len(texts), 64))))
    chance = sum(1 / rank for rank in range(1, 11)) / 100
    assert score.low < 100 * chance < score.high


def test_shared_words_beat_chance_and_tfidf_and_bm25_stand_beside(corpus, model, monkeypatch):
    groups, measure = [], context.measure
    monkeypatch.setattr(context, "measure", lambda *a, **k: (groups.append(k["groups"]), measure(*a, **k))[1])
    task = task_of(corpus)
    score, tfidf = task.score(load_scorer(model)), task.lexical["tfidf"]
    assert min(score.score, *score.metrics.values()) > 30
    assert score.metrics == {"tfidf": tfidf.score, "bm25": task.lexical["bm25"].score}
    assert task.score(load_scorer("bm25")) == task.lexical["bm25"]
    assert score.n == len(task.queries)
    assert groups[0].tolist() == task.document[task.queries].tolist()  # documents are resampled
    assert score.minus(score).p == 1
    assert score.minus(tfidf).low <= score.score - tfidf.score <= score.minus(tfidf).high


def test_near_duplicates_match_pairwise_comparison():
    texts = ["One two three four five", "one, two three four five!", "one two three four five six", "six seven", "!?"]
    texts += ["a b c d e f g h i", "a b c d e f g h j", "", "a b c d e f g h i j"]
    rng = np.random.default_rng(0)
    texts += [" ".join(rng.choice([*"abcdefghijkl"], rng.integers(1, 16))) for _ in range(150)]
    found = near_duplicates(texts).toarray()
    assert found.tolist() == [[alike(a, b) for b in texts] for a in texts]


def test_too_many_sentences_keep_whole_documents(numbered):
    assert np.bincount(task_of(numbered(1900, 6)).document).tolist() == [6] * 1666


def test_text_without_neighbours_is_refused(corpus_of):
    single = corpus_of([["a b"], ["c d"], ["e f"]])
    with pytest.raises(DataError, match=r"no document has two different sentences: .*split.sentences"):
        task_of(single)
    single.documents = None
    with pytest.raises(DataError, match="no documents"):
        task_of(single)
