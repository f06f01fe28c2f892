import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from selfsent.errors import SettingsError
from selfsent.evaluation.adapters import MtebModel, SentenceVectors
from selfsent.evaluation.encoders import as_encoder

TEXTS = [f"{'good' if n % 2 else 'bad'} w{n % 7} w{n % 5}" for n in range(60)]
LABELS = [n % 2 for n in range(60)]


def test_pipeline_and_grid_search_encode_every_text_once(model):
    pipeline = Pipeline([("vectors", SentenceVectors(as_encoder(model))), ("label", LogisticRegression())])
    search = GridSearchCV(pipeline, {"vectors__unit": [False, True], "label__C": [0.1, 10]}, cv=3)
    search.fit(TEXTS, LABELS)
    assert search.best_score_ > 0.95
    assert search.predict(["good w1 w2", "bad w1 w2"]).tolist() == [1, 0]
    assert len(model.seen) == len(set(model.seen))


def test_transform_gives_the_models_vectors(model):
    step = clone(SentenceVectors(as_encoder(model), unit=False))
    expected = np.asarray(model.encode(TEXTS), np.float32)
    assert (step.fit_transform(TEXTS) == expected).all()
    unit = step.set_params(unit=True).transform(TEXTS)
    assert np.linalg.norm(unit, axis=1) == pytest.approx(np.ones(60), abs=1e-6)


def test_a_pipeline_can_be_pickled_and_forgets(tmp_path, base_of, monkeypatch):
    directory = str(base_of("bert"))
    pipeline = Pipeline([("vectors", SentenceVectors(directory)), ("label", LogisticRegression())]).fit(TEXTS, LABELS)
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(TEXTS) == pipeline.predict(TEXTS)).all()
    monkeypatch.setattr("selfsent.evaluation.adapters.REMEMBERED", 20)
    step = pipeline[0]
    found = [step.transform([text])[0] for text in TEXTS]
    assert len(step.encoder_._rows) <= 20
    np.testing.assert_allclose(found, again[0].transform(TEXTS), atol=1e-5)


def test_what_is_no_text_is_refused(model):
    with pytest.raises(SettingsError, match="not one with int"):
        SentenceVectors(model).fit_transform(["a", 3])


def test_an_mteb_model_encodes_batches_of_texts(model):
    wrapped = MtebModel(model, "local/words", "1")
    vectors = wrapped.encode([{"text": TEXTS[:2]}, {"text": TEXTS[2:3]}], task_metadata=None)
    np.testing.assert_array_equal(vectors, np.asarray(model.encode(TEXTS[:3]), np.float32))
    found = wrapped.similarity(vectors, vectors)
    assert np.diag(found) == pytest.approx(np.ones(3), abs=1e-6)
    assert wrapped.similarity_pairwise(vectors, vectors[::-1]) == pytest.approx(np.diag(found[:, ::-1]), abs=1e-6)
