import numpy as np
import pytest
from scipy.stats import hypergeom

from naive.metrics import alike, context_ranks
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.tasks import context, partners
from selfsent.evaluation.tasks.context import ContextTask, score_context, split_documents
from selfsent.evaluation.tasks.partners import expected_reciprocal_rank


def make_documents(count, sentences=4, seed=0):
    """Documents whose sentences share words of their own; some sentences nearly repeat another document's."""
    rng = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        own = [f"topic{number}x{word}" for word in range(3)]
        common = [f"common{word}" for word in range(30)]
        documents.append(
            [" ".join([*rng.choice(own, 4), *rng.choice(common, 4)]) + f" end{line}" for line in range(sentences)]
        )
    documents[0][1] = documents[1][2] + "!"
    documents[2][2] = documents[2][1] + " !"
    return documents


@pytest.fixture
def corpus(corpus_of):
    return corpus_of(make_documents(12))


def everything(corpus):
    return np.arange(len(corpus))


@pytest.mark.parametrize("relation", ["next", "same"])
def test_ranks_match_explicit_loops(corpus, model, relation):
    task = ContextTask(corpus, everything(corpus), relation=relation, candidates=None)
    vectors = model.encode(list(task.texts))
    expected = context_ranks(task.texts, task.document, vectors, relation)
    assert task.queries.tolist() == [query for query, _, _ in expected]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    loops = [1 / (1 + beaten) if beaten < 10 else 0.0 for _, beaten, _ in expected]
    assert task.reciprocal_ranks(unit.astype(np.float32)).tolist() == loops
    assert task.score(as_encoder(model)).score == pytest.approx(100 * np.mean(loops))


def test_a_near_duplicate_is_neither_answer_nor_candidate(corpus_of, model):
    corpus = corpus_of([["a b c", "A, b c!", "z y x"], ["a b d", "e f g"]])
    task = ContextTask(corpus, everything(corpus), relation="same", candidates=None)
    vectors = np.zeros((5, 6), np.float32)
    vectors[[0, 1], 0] = 1  # the same place as its near-duplicate
    vectors[2, :2] = 0.6, 0.8  # the answer
    vectors[3, [0, 2]] = 0.8, 0.6  # nearer than the answer
    vectors[4, 5] = 1
    assert task.reciprocal_ranks(vectors)[0] == 1 / 2


def test_blocks_do_not_change_the_ranks(corpus, model, monkeypatch):
    whole = ContextTask(corpus, everything(corpus)).score(as_encoder(model))
    monkeypatch.setattr(partners, "BLOCK", 100)
    assert ContextTask(corpus, everything(corpus)).score(as_encoder(model)).score == pytest.approx(whole.score)


def test_expected_rank_is_the_mean_over_drawn_candidates():
    rng = np.random.default_rng(0)
    others, beaten = 60, 9
    draws = np.array([(rng.permutation(others)[:19] < beaten).sum() for _ in range(40_000)])
    simulated = np.where(draws < 3, 1 / (1 + draws), 0).mean()
    exact = expected_reciprocal_rank(np.array([beaten]), np.array([others]), 19, cutoff=3)
    assert exact[0] == pytest.approx(simulated, abs=0.01)


def test_expected_rank_is_hypergeometric():
    rng, before = np.random.default_rng(0), np.arange(10)
    others = np.concatenate([rng.integers(1, 300, 300), rng.integers(1, 1_000_000, 100)])
    beaten = (others * rng.random(400) ** 6).astype(int)
    chance = hypergeom.pmf(before, others[:, None], beaten[:, None], np.minimum(99, others)[:, None])
    assert expected_reciprocal_rank(beaten, others, 99, cutoff=10) == pytest.approx(
        chance @ (1 / (1 + before)), abs=1e-8
    )


def test_expected_rank_over_all_candidates_is_the_rank():
    beaten = np.array([0, 1, 9, 10])
    found = expected_reciprocal_rank(beaten, np.full(4, 30), 99, cutoff=10)
    assert found == pytest.approx([1, 1 / 2, 1 / 10, 0])


@pytest.mark.parametrize("candidates", [None, 20])
def test_constant_vectors_score_nothing(corpus, candidates):
    constant = as_encoder(lambda texts: np.full((len(texts), 33), 0.1))
    score = ContextTask(corpus, everything(corpus), candidates=candidates).score(constant)
    assert score.score < 1


def test_zero_and_nan_vectors_score_nothing(corpus):
    for value in (0.0, np.nan):
        broken = as_encoder(lambda texts, value=value: np.full((len(texts), 3), value))
        assert ContextTask(corpus, everything(corpus)).score(broken).score < 1


def test_random_vectors_score_chance(corpus_of):
    corpus = corpus_of(make_documents(150, 3))
    rng = np.random.default_rng(3)
    score = ContextTask(corpus, everything(corpus), candidates=100).score(
        as_encoder(lambda texts: rng.normal(size=(len(texts), 64)))
    )
    chance = sum(1 / rank for rank in range(1, 11)) / 100
    assert score.low < 100 * chance < score.high


def test_shared_words_beat_chance_and_tfidf_and_bm25_stand_beside(corpus, model):
    score = score_context(as_encoder(model), corpus, everything(corpus))
    assert score.score > 30
    task = ContextTask(corpus, everything(corpus))
    assert score.metrics == {"tfidf": task.lexical["tfidf"].score, "bm25": task.lexical["bm25"].score}
    assert min(score.metrics.values()) > 30
    assert task.score(as_encoder("bm25")) == task.lexical["bm25"]
    assert score.n == len(ContextTask(corpus, everything(corpus)).queries)


def test_the_interval_resamples_documents(corpus, model, monkeypatch):
    seen, measure = [], partners.measure
    monkeypatch.setattr(partners, "measure", lambda *a, **k: (seen.append(k["groups"]), measure(*a, **k))[1])
    task = ContextTask(corpus, everything(corpus))
    task.score(as_encoder(model))
    assert seen[-1].tolist() == task.document[task.queries].tolist()


def test_a_model_against_itself_is_no_difference(corpus, model):
    task = ContextTask(corpus, everything(corpus))
    score = task.score(as_encoder(model))
    assert score.minus(score).p == 1
    tfidf = task.lexical["tfidf"]
    assert score.minus(tfidf).low <= score.score - tfidf.score <= score.minus(tfidf).high


def test_near_duplicates_match_pairwise_comparison():
    texts = ["One two three four five", "one, two three four five!", "one two three four five six", "six seven", "!?"]
    texts += ["a b c d e f g h i", "a b c d e f g h j", "", "a b c d e f g h i j"]
    rng = np.random.default_rng(0)
    texts += [" ".join(rng.choice([*"abcdefghijkl"], rng.integers(1, 16))) for _ in range(300)]
    found = near_duplicates(texts).toarray()
    assert found.tolist() == [[alike(a, b) for b in texts] for a in texts]


def test_too_many_sentences_keep_whole_documents(corpus, monkeypatch):
    monkeypatch.setattr(context, "MAX_SENTENCES", 22)
    task = ContextTask(corpus, everything(corpus))
    assert len(task.texts) == 20
    assert (np.bincount(task.document) == 4).all()


def documents_held(corpus, count=None):
    return len(set(corpus.documents[split_documents(corpus, count)[1]]))


def test_split_keeps_documents_whole(corpus_of):
    corpus = corpus_of(make_documents(160))
    train, held = split_documents(corpus, 40)
    assert sorted([*train, *held]) == list(range(len(corpus)))
    assert not set(corpus.documents[train]) & set(corpus.documents[held])
    assert len(set(corpus.documents[held])) == 40


def test_how_much_is_held_out_where_nobody_says_it(corpus_of, monkeypatch):
    """A fifth of few documents; of more a tenth, and no fewer than the minimum."""
    assert documents_held(corpus_of(make_documents(160))) == 32
    monkeypatch.setattr(context, "HELD_MINIMUM", 50)
    assert documents_held(corpus_of(make_documents(160))) == 50
    assert documents_held(corpus_of(make_documents(600))) == 60


def test_the_documents_of_a_smaller_number_are_among_those_of_a_larger(corpus_of):
    corpus = corpus_of(make_documents(160))
    few, usual, many = (set(split_documents(corpus, count)[1]) for count in (30, None, 60))
    assert few < usual < many


def test_no_more_is_held_out_than_is_scored(corpus_of, monkeypatch):
    monkeypatch.setattr(context, "HELD_MINIMUM", 2)
    monkeypatch.setattr(context, "HELD_SHARE", 0.5)
    corpus = corpus_of(make_documents(60))
    before = split_documents(corpus)[1]
    scored = set(ContextTask(corpus, before).texts)
    assert len(scored) == len(before) == 120
    monkeypatch.setattr(context, "MAX_SENTENCES", 22)
    held = split_documents(corpus)[1]
    assert len(held) == 20
    assert set(corpus.texts(held)) == set(ContextTask(corpus, before).texts) < scored
    monkeypatch.setattr(context, "HELD_MINIMUM", 10)
    assert len(split_documents(corpus)[1]) == 40


def test_a_document_larger_than_all_that_is_scored_is_scored_alone(corpus, monkeypatch):
    monkeypatch.setattr(context, "MAX_SENTENCES", 3)
    assert len(ContextTask(corpus, everything(corpus)).texts) == 4


def test_split_follows_documents_and_not_their_order(corpus_of):
    documents = make_documents(160)
    there, back = corpus_of(documents), corpus_of(documents[::-1])
    held = [set(corpus.texts(split_documents(corpus)[1])) for corpus in (there, back)]
    assert held[0] == held[1]
    assert held[0] != set(there.texts(split_documents(there, seed=1)[1]))


def test_corpora_that_cannot_be_scored_are_refused(corpus_of):
    with pytest.raises(DataError, match="the corpus has 12, and 150 are needed; --hold-out 30 needs fewer"):
        split_documents(corpus_of(make_documents(12)))
    with pytest.raises(DataError, match="too few documents to hold 30 out: the corpus has 31"):
        split_documents(corpus_of(make_documents(31)), 30)
    with pytest.raises(SettingsError, match="--hold-out is 29; an honest interval needs 30"):
        split_documents(corpus_of(make_documents(60)), 29)
    single = corpus_of([["a b"], ["c d"], ["e f"]])
    with pytest.raises(DataError, match=r"no document has two different sentences: .*--split-sentences"):
        ContextTask(single, everything(single))
    with pytest.raises(DataError, match="no document has two different sentences"):
        split_documents(corpus_of([[f"word{number}"] for number in range(150)]))
    single.documents = None
    for use in (split_documents, ContextTask):
        with pytest.raises(DataError, match="no documents"):
            use(single)
