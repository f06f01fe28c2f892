"""Distillation, next to its slow twin."""

import pytest
import torch

import tiny
from naive import supervision
from selfsent.data.packed import Packed
from selfsent.errors import SettingsError
from selfsent.methods import METHODS

COLUMNS = [tiny.make_sentences(6, seed=seed, words=(1, 6)) for seed in (20, 21, 22)]


def packed(learner, column, vectors=None):
    batch = tiny.pack(tiny.encode(learner.model.tokenizer, COLUMNS[column]))
    return Packed(batch.given_ids, batch.given_lengths, vectors=vectors)


def vectors(learner, *columns):
    with torch.no_grad():
        return [learner.model(packed(learner, column)).tolist() for column in columns]


@pytest.mark.parametrize("objective", ["mse", "contrast"])
@pytest.mark.parametrize("translated", [False, True])
def test_distil_equals_loops(objective, translated, learner_of):
    learner = learner_of("distil", objective=objective, translations=translated, scale=5.0)
    assert not any("teacher" in name for name in learner.state_dict())
    wanted = learner.features(packed(learner, 0))
    views = [packed(learner, 0, wanted), *([packed(learner, 1)] if translated else [])]
    students = vectors(learner, *range(1 + translated))
    slow = supervision.distillation(students, wanted.tolist(), objective, 5.0)
    loss = learner(views)
    assert loss.total.item() == pytest.approx(slow, rel=1e-4)
    assert loss.count == len(wanted)


@pytest.mark.parametrize("objective", ["mse", "contrast"])
def test_several_teachers_equal_loops(objective, learner_of, base_of):
    names = [str(base_of("bert", seed=5)), str(base_of("bert", hidden_size=48, initializer_range=0.5))]
    learner = learner_of("distil", teacher=", ".join(names), objective=objective, scale=5.0, project=objective == "mse")
    apart = [learner_of("distil", teacher=name).features(packed(learner, 0)) for name in names]
    view = packed(learner, 0, learner.features(packed(learner, 0)))
    wanted = supervision.together([part.tolist() for part in apart], objective)
    students = learner.model(view)
    if objective == "mse":
        slow = supervision.distillation([students.tolist()], wanted, "mse", 5.0)
    else:  # the cosine is the mean of theirs
        cosines = [supervision.cosine(part[0].tolist(), part[1].tolist()) for part in apart]
        assert supervision.cosine(wanted[0], wanted[1]) == pytest.approx(sum(cosines) / 2, rel=1e-4)
        slow = supervision.contrast(learner.bridge(students).tolist(), wanted, 5.0)
        slow += supervision.divergence(students.tolist(), wanted, 5.0)
    assert learner([view]).total.item() == pytest.approx(slow, rel=1e-4)


def test_a_teacher_of_another_size_needs_a_dense_layer_or_an_objective_that_does_not_mind(
    learner_of, base_of, tmp_path
):
    wide = str(base_of("bert", hidden_size=48))
    with pytest.raises(SettingsError, match="have 48 numbers, those of the base 32: give project=True"):
        learner_of("distil", teacher=wide, objective="mse")
    learner = learner_of("distil", teacher=wide, project=True, objective="mse")
    learner.save(tmp_path / "model")
    from sentence_transformers import SentenceTransformer

    again = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(COLUMNS[0])
    assert again.shape == (6, 48)
    assert again == pytest.approx(torch.tensor(vectors(learner, 0)[0]).numpy(), abs=1e-5)
    learner = learner_of("distil", teacher=wide, objective="contrast")
    views = [packed(learner, 0, learner.features(packed(learner, 0)))]
    assert torch.isfinite(learner(views).total)
    assert learner.model(views[0]).shape == (6, 32)  # what is saved keeps its size


def test_distil_takes_what_the_corpus_has():
    options = METHODS["distil"].options
    one, two = (options(teacher="bundled-raw").fitted(columns) for columns in (1, 2))
    assert (one.translations, one.objective, len(one.views()), one.is_batchwise) == (False, "contrast", 1, True)
    assert (two.translations, two.objective, len(two.views()), two.is_batchwise) == (True, "mse", 2, False)
    assert options(teacher="bundled-raw", translations=False).fitted(2).objective == "contrast"
