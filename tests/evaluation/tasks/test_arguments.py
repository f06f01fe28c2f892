import numpy as np
import pytest
import scipy.stats

from naive.metrics import cosine
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks.arguments import UKP_ASPECT, cross_validate, folds


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(10)]
    return {
        "sentence1": [" ".join(rng.choice(words, 4)) for _ in range(45)],
        "sentence2": [" ".join(rng.choice(words, 4)) for _ in range(45)],
        "score": rng.integers(0, 3, 45).astype(float).tolist(),
        "topic": ["a"] * 20 + ["b"] * 10 + ["c"] * 15,
    }


@pytest.fixture
def root(write, pairs):
    return write("argument-similarity/ukp_aspect/all.parquet", **pairs)


def test_correlations_are_averaged_over_topics(root, pairs, model):
    score = evaluate(model, task="ukp-aspect", data=root).scores["ukp-aspect"]
    left, right = model.encode(pairs["sentence1"]), model.encode(pairs["sentence2"])
    similarity = np.array([cosine(a, b) for a, b in zip(left, right, strict=True)])
    gold, topic = np.array(pairs["score"]), np.array(pairs["topic"])
    rank = [scipy.stats.spearmanr(similarity[topic == t], gold[topic == t])[0] for t in "abc"]
    linear = [scipy.stats.pearsonr(similarity[topic == t], gold[topic == t])[0] for t in "abc"]
    assert score.score == pytest.approx(100 * np.mean(rank))
    assert score.metrics["pearson"] == pytest.approx(100 * np.mean(linear), abs=1e-4)
    assert score.metrics["spearman b"] == pytest.approx(100 * rank[1])
    assert "mean over topic" in score.signature


def test_the_suite_has_no_average_and_names_what_is_absent(root, model):
    result = evaluate(model, suite="afs", data=root)
    assert result.average is None
    assert set(result.absent) == {"afs", "bws"}


@pytest.mark.parametrize(("split", "count"), [("10-fold", 10), ("cross-topic", 3)])
def test_folds_cover_every_pair_once(root, split, count):
    parts = dict(folds(Store(root).load(UKP_ASPECT), split))
    assert len(parts) == count
    assert sorted(np.concatenate(list(parts.values()))) == list(range(45))


@pytest.mark.parametrize("split", ["10-fold", "cross-topic"])
def test_a_trainer_never_sees_the_pairs_it_is_scored_on(root, pairs, model, split):
    everything = list(zip(pairs["sentence1"], pairs["sentence2"], strict=True))
    trained_on = []

    def trainer(chosen, scores):
        assert scores == [pairs["score"][everything.index(pair)] for pair in chosen]
        trained_on.append(set(chosen))
        return model

    score = cross_validate(UKP_ASPECT, trainer, Store(root), split)
    tested = [set(everything) - seen for seen in trained_on]
    assert sum(map(len, tested)) == 45
    assert split in score.signature
    if split == "cross-topic":
        whole = evaluate(model, task="ukp-aspect", data=root).scores["ukp-aspect"]
        assert score.score == pytest.approx(whole.score)


def test_too_little_data_for_folds_is_an_error(write, model):
    root = write(
        "argument-similarity/ukp_aspect/all.parquet",
        sentence1=["a", "b"],
        sentence2=["c", "d"],
        score=[0.0, 1.0],
        topic=["t", "t"],
    )
    for split in ("10-fold", "cross-topic"):
        with pytest.raises(DataError, match="ukp-aspect has"):
            cross_validate(UKP_ASPECT, lambda pairs, scores: model, Store(root), split)
