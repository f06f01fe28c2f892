import numpy as np
import pytest
import scipy.stats

from naive.metrics import cosine
from selfsent.evaluation.datasets.declared import DataSet, Store
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks.sts import STS, STS17, SUBSETS, score_sts

YEAR = DataSet("toy", "org/toy", 12, columns=SUBSETS, optional=("subset",))


def toy_pairs():
    rng = np.random.default_rng(0)
    word = [f"w{number}" for number in range(9)]
    left = [" ".join(rng.choice(word, 4)) for _ in range(12)]
    right = [" ".join(rng.choice(word, 4)) for _ in range(12)]
    return {"sentence1": left, "sentence2": right, "score": rng.uniform(0, 5, 12).tolist()}


@pytest.fixture
def toy(write):
    pairs = toy_pairs()
    return pairs, Store(write("org/toy/test.parquet", **pairs, subset=["a"] * 8 + ["b"] * 4))


def test_score_is_spearman_over_all_pairs(toy, model):
    pairs, store = toy
    score = score_sts(YEAR, as_encoder(model), store)
    left, right = (model.encode(pairs[column]) for column in ("sentence1", "sentence2"))
    similarity = np.array([cosine(a, b) for a, b in zip(left, right, strict=True)])
    gold = np.array(pairs["score"])
    each = [scipy.stats.spearmanr(similarity[part], gold[part])[0] for part in (slice(0, 8), slice(8, 12))]
    assert score.score == pytest.approx(100 * scipy.stats.spearmanr(similarity, gold)[0])
    assert score.metrics["pearson"] == pytest.approx(100 * scipy.stats.pearsonr(similarity, gold)[0], abs=1e-4)
    assert score.metrics["mean"] == pytest.approx(50 * sum(each))
    assert score.metrics["wmean"] == pytest.approx(100 * (8 * each[0] + 4 * each[1]) / 12)
    assert score.low < score.score < score.high
    assert score.n == 12


def test_signature_names_what_was_measured(toy, model):
    _, store = toy
    score = score_sts(YEAR, as_encoder(model), store)
    data = store.load(YEAR).fingerprint
    assert score.signature == f"toy|spearman|cos|all|n:12|data:{data}|pool:custom|v:1"


def test_without_subsets_there_is_no_mean(write, model):
    score = score_sts(YEAR, as_encoder(model), Store(write("org/toy/test.parquet", **toy_pairs())))
    assert list(score.metrics) == ["pearson"]


def test_constant_vectors_score_zero(toy):
    constant = as_encoder(lambda texts: np.full((len(texts), 7), 0.3))
    score = score_sts(YEAR, constant, toy[1])
    assert (score.score, score.low, score.high) == (0, 0, 0)


def test_published_sizes():
    sizes = {dataset.name: dataset.rows for dataset in STS}
    assert sizes["sts12"] == 3108
    assert (sizes["sickr"], sizes["sickr-test"]) == (9927, 4927)
    assert {d.name: d.rows for d in STS17}["sts17-en-ar"] == 250


def test_agrees_with_sentence_transformers(toy, model):
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    pairs, store = toy

    class Frozen:
        similarity_fn_name = "cosine"
        model_card_data = type("Card", (), {"set_evaluation_metrics": lambda *a, **k: None})()

        def encode(self, texts, **_):
            return np.asarray(model.encode(list(texts)), np.float32)

    evaluator = EmbeddingSimilarityEvaluator(pairs["sentence1"], pairs["sentence2"], pairs["score"], write_csv=False)
    theirs = evaluator(Frozen())
    ours = score_sts(YEAR, as_encoder(model), store)
    assert ours.score / 100 == pytest.approx(theirs["spearman_cosine"], abs=1e-6)
    assert ours.metrics["pearson"] / 100 == pytest.approx(theirs["pearson_cosine"], abs=1e-6)


def test_minilm_on_stsb(mirror, minilm):
    score = evaluate(str(minilm), task="stsb", data=mirror).scores["stsb"]
    assert score.score == pytest.approx(82.03, abs=0.02)
    assert score.n == 1379
    assert "pool:mean" in score.signature
    assert score.warnings == ()
