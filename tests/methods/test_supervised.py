"""The methods that learn from pairs, triples and labels, next to their slow twins."""

import json

import pytest
import torch
from safetensors.torch import load_file

import tiny
from naive import supervision
from selfsent.data.packed import Packed

COLUMNS = [tiny.make_sentences(6, seed=seed, words=(1, 6)) for seed in (20, 21, 22)]


def packed(learner, column, vectors=None):
    batch = tiny.pack(tiny.encode(learner.model.tokenizer, COLUMNS[column]))
    return Packed(batch.given_ids, batch.given_lengths, vectors=vectors)


def vectors(learner, *columns):
    with torch.no_grad():
        return [learner.model(packed(learner, column)).tolist() for column in columns]


@pytest.mark.parametrize("product", [False, True])
def test_softmax_equals_loops(product, learner_of):
    learner, classes = learner_of("softmax", classes=3, product=product), [0, 2, 1, 1, 0, 2]
    loss = learner([packed(learner, 0), packed(learner, 1)], torch.tensor(classes))
    weight, bias = learner.classifier.weight.tolist(), learner.classifier.bias.tolist()
    slow = supervision.softmax(*vectors(learner, 0, 1), classes, weight, bias, product)
    assert loss.total.item() == pytest.approx(slow, rel=1e-4)
    assert loss.count == 6


def test_the_classifier_of_infersent_equals_loops(learner_of):
    learner, classes = learner_of("softmax", classes=3, product=True, hidden=5), [0, 2, 1, 1, 0, 2]
    loss = learner([packed(learner, 0), packed(learner, 1)], torch.tensor(classes))
    *before, last = [(layer.weight.tolist(), layer.bias.tolist()) for layer in learner.classifier]
    slow = supervision.softmax(*vectors(learner, 0, 1), classes, *last, product=True, before=before)
    assert [len(biases) for _, biases in (*before, last)] == [5, 5, 3]
    assert loss.total.item() == pytest.approx(slow, rel=1e-4)


def test_the_softmax_head_is_trained_and_saved(learner_of, tmp_path):
    learner = learner_of("softmax", classes=3)
    learner.class_names = ("c", "e", "n")
    learner([packed(learner, 0), packed(learner, 1)], torch.tensor([0, 2, 1, 1, 0, 2])).total.backward()
    assert learner.classifier.weight.grad.abs().sum() > 0
    learner.save(tmp_path / "model")
    saved = load_file(tmp_path / "model" / "softmax_head.safetensors")
    assert torch.equal(saved["weight"], learner.classifier.weight)
    about = json.loads((tmp_path / "model" / "softmax_head.json").read_text())
    assert about == {"classes": ["c", "e", "n"], "reads": ["u", "v", "|u-v|"]}


def test_cosine_equals_loops(learner_of):
    learner, scores = learner_of("cosine", scale=5.0), [0.0, 5.0, 2.5, 1.0, 4.0, 3.0]
    loss = learner([packed(learner, 0), packed(learner, 1)], torch.tensor(scores))
    assert loss.total.item() == pytest.approx(supervision.regression(*vectors(learner, 0, 1), scores, 5.0), rel=1e-4)


def test_triplet_equals_loops(learner_of):
    learner = learner_of("triplet", margin=2.0)
    loss = learner([packed(learner, column) for column in range(3)])
    slow = supervision.triplet(*vectors(learner, 0, 1, 2), 2.0)
    assert slow > 0
    assert loss.total.item() == pytest.approx(slow, rel=1e-4)


def test_a_triplet_of_equal_texts_has_a_gradient_that_is_finite(learner_of):
    learner = learner_of("triplet")
    learner([packed(learner, 0)] * 3).total.backward()
    assert all(torch.isfinite(p.grad).all() for p in learner.parameters() if p.grad is not None)
