import json
import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from selfsent.errors import SettingsError
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.label_free import METRICS, HeldOut, MeanMetric, aimed_at, check_metrics, make_metrics
from selfsent.evaluation.suites import check_request, evaluate
from selfsent.evaluation.tasks.damaged import damage
from selfsent.evaluation.tasks.label_free import DocumentTask, halves_task
from selfsent.methods import METHODS
from selfsent.methods.method import OF_DOCUMENTS
from selfsent.models.bases import resolve

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


@pytest.fixture
def topics(corpus_of):
    """Forty documents of six sentences; those of one share words."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(LETTERS, 7)) for _ in range(400)]
    of = [rng.choice(words, 6, replace=False) for _ in range(40)]
    return corpus_of([[" ".join([*rng.choice(own, 5), *rng.choice(words, 4)]) for _ in range(6)] for own in of])


def held(corpus):
    return HeldOut(corpus, np.arange(len(corpus)))


def test_all_judges_tell_a_good_encoder_from_random_vectors(topics, model):
    judges, absent = make_metrics(held(topics))
    assert not absent
    rng = np.random.default_rng(1)
    for judge in judges.values():
        if judge is judges["robust"]:
            continue  # these vectors know whole words alone
        good = judge.score(as_encoder(model))
        noise = judge.score(as_encoder(lambda texts: rng.normal(size=(len(texts), 32))))
        assert good.minus(noise).low > 0, good.name
        assert good.low < good.score < good.high
        assert {"tfidf", "bm25"} == set(good.metrics)


def test_single_sentences_have_the_judges_that_need_no_documents(topics, model):
    topics.documents = None
    judges, absent = make_metrics(held(topics))
    assert set(judges) == {"crops", "robust"}
    assert set(absent) == {"context", "title", "halves", "document"}
    assert "has no documents" in absent["title"]


def test_the_vector_of_several_sentences_is_the_mean_of_theirs():
    vectors = {f"d{n}s{line}": np.eye(60)[2 * n + (line == 3)] for n in range(30) for line in range(4)}
    task = halves_task([[f"d{n}s{line}" for line in range(4)] for n in range(30)])
    assert task.score(as_encoder(lambda texts: np.stack([vectors[text] for text in texts]))).score == 100


def test_the_nearest_are_counted_that_are_of_the_same_document():
    texts = [f"text{n} word{n}" for n in range(40)]
    documents = np.arange(40) // 4
    angle = np.arange(40) * 0.01 + documents * 0.1
    vectors = dict(zip(texts, np.stack([np.cos(angle), np.sin(angle)], 1), strict=True))
    task = DocumentTask(texts, documents)
    assert task.score(as_encoder(lambda given: np.stack([vectors[text] for text in given]))).score == 100
    other = {text: vectors[texts[(7 * n) % 40]] for n, text in enumerate(texts)}
    assert task.score(as_encoder(lambda given: np.stack([other[text] for text in given]))).score < 30


def test_damage_is_always_the_same_and_never_nothing():
    text = "The printer on my desk is dead again"
    damaged = damage(text, {"the", "on", "is"})
    assert damaged == damage(text, {"the", "on", "is"}) == damaged.lower()
    assert len(damaged.split()) == 7
    assert "printer" not in damaged or "again" not in damaged
    assert damage("all lower case here", ()) == damage("all lower case here", ()).upper()
    assert damage("a b", ()) == "A B"


def test_robust_asks_whether_damaged_words_are_still_known(topics, model):
    def letters(texts):
        words = [[text.lower().count(a + b) for a in LETTERS for b in LETTERS] for text in texts]
        return np.array(words, float)

    task = make_metrics(held(topics), ["robust"])[0]["robust"]
    assert task.score(as_encoder(letters)).score > 50 > 10 > task.score(as_encoder(model)).score


def test_the_mean_of_judges_is_paired(topics, model):
    task = MeanMetric(held(topics))
    good, poor = task.score(as_encoder(model)), task.score(as_encoder(lambda texts: np.ones((len(texts), 2))))
    assert good.score == pytest.approx(np.prod(list(good.metrics.values())) ** (1 / len(good.metrics)))
    assert good.minus(poor).low > 0


def test_what_a_method_aims_at_is_marked_however_its_model_is_given(topics, tmp_path):
    shutil.copytree(resolve("bundled-raw"), tmp_path / "run" / "model")
    (tmp_path / "run" / "run.json").write_text(json.dumps({"asked": {"method": "neighbours"}}))
    for given in (
        tmp_path / "run",
        as_encoder(str(tmp_path / "run")),
        SentenceTransformer(str(tmp_path / "run/model")),
    ):
        assert evaluate(given, documents=topics, hold_out=30, judges=("title", "robust")).aimed == ("title",)


def test_what_methods_aim_at_are_judges():
    assert set().union(*(method.aimed_at for method in METHODS.values())) <= METRICS.keys()
    assert aimed_at(["skip-thoughts", "pretrain"]) == set(OF_DOCUMENTS)


def test_judges_in_evaluate_and_what_is_refused(topics, model):
    result = evaluate(as_encoder(model), documents=topics, hold_out=30, judges=("title", "crops"))
    assert list(result.scores) == ["title", "crops"]
    assert not result.aimed
    with pytest.raises(SettingsError, match=r"no judge 'titel'.*title"):
        check_metrics(["titel"])
    with pytest.raises(SettingsError, match="give `documents`"):
        check_request(task="stsb", judges=("all",))
