"""The methods that learn from pairs, triples and labels, next to their slow twins."""

from itertools import chain

import numpy as np
import pytest
import torch

import tiny
from naive import supervision
from selfsent.data.packed import Packed
from selfsent.errors import SettingsError
from selfsent.methods import METHODS
from selfsent.models.assemble import put_head
from selfsent.models.heads.options import HEADS
from selfsent.models.loading import load_encoder
from selfsent.settings import Settings
from selfsent.training.plan import Plan

FIRST, SECOND = (tiny.make_sentences(6, seed=seed, words=(1, 9)) for seed in (30, 31))
PAIRS = list(zip(FIRST, SECOND, strict=True))
SCORES = np.array([0.0, 5.0, 2.5, 1.0, 4.0, 3.0], dtype=np.float32)
COLUMNS = [tiny.make_sentences(6, seed=seed, words=(1, 6)) for seed in (20, 21, 22)]


def packed(learner, column, vectors=None):
    batch = tiny.pack(tiny.encode(learner.model.tokenizer, COLUMNS[column]))
    return Packed(batch.given_ids, batch.given_lengths, vectors=vectors)


def vectors(learner, *columns):
    with torch.no_grad():
        return [learner.model(packed(learner, column)).tolist() for column in columns]


def test_softmax_equals_loops(learner_of):
    learner, classes = learner_of("softmax", classes=3), [0, 2, 1, 1, 0, 2]
    loss = learner([packed(learner, 0), packed(learner, 1)], torch.tensor(classes))
    weight, bias = learner.classifier.weight.tolist(), learner.classifier.bias.tolist()
    slow = supervision.softmax(*vectors(learner, 0, 1), classes, weight, bias)
    assert loss.total.item() == pytest.approx(slow, rel=1e-4)
    assert loss.count == 6


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


def seen(learner, options, labels, max_length=64):
    """The batch of all pairs."""
    from selfsent.data.batches import Batches
    from selfsent.data.views.tokens import Template

    tokenizer = learner.model.tokenizer
    tables = [tiny.Table(tokenizer, FIRST), tiny.Table(tokenizer, SECOND)]
    template = Template.of(tokenizer, tiny.VOCABULARY)
    views = options.views()
    made = Batches(tables, np.arange(6), views, template, Settings(max_length=max_length), labels=labels)
    return made.views_of(made.rows, 0), made.labels_of(made.rows)


@pytest.mark.parametrize("architecture", ["bert", "albert", "modernbert", "distilbert"])
def test_sentence_transformers_gives_the_same_scores(architecture, learner_of, tmp_path):
    from sentence_transformers import CrossEncoder

    learner = learner_of("cross-encoder", architecture).eval()
    learner.save(tmp_path / "model")
    there = CrossEncoder(str(tmp_path / "model"), device="cpu")
    scores = there.predict(PAIRS, batch_size=2)
    assert scores == pytest.approx(learner.model.peer.predict(PAIRS), abs=1e-5)
    views, _ = seen(learner, learner.options, SCORES)
    with torch.no_grad():
        assert scores == pytest.approx(learner.model.scores(views[0])[:, 0].sigmoid().numpy(), abs=1e-5)


@pytest.mark.parametrize(("kind", "wrap"), [("word pieces", True), ("byte pairs", True), ("byte pairs", False)])
@pytest.mark.parametrize("longest", [60, 13, 12])
def test_pairs_are_joined_and_cut_as_by_the_tokenizer(kind, wrap, longest):
    from selfsent.data.views.tokens import Template

    tokenizer = tiny.make_tokenizer(kind, wrap)
    tables = [tiny.Table(tokenizer, texts) for texts in (FIRST, SECOND)]
    rows = np.arange(6)
    packed = Template.of(tokenizer, tiny.VOCABULARY).pack_pairs(tables[0][rows], tables[1][rows], longest)
    there = tokenizer(FIRST, SECOND, truncation="longest_first", max_length=longest)
    assert packed.given_ids.tolist() == list(chain(*there["input_ids"]))
    assert packed.given_lengths.tolist() == list(map(len, there["input_ids"]))
    if "token_type_ids" in there:
        assert packed.given_types.tolist() == list(chain(*there["token_type_ids"]))


def test_losses_of_the_cross_encoder_equal_loops(learner_of):
    classes = np.array([0, 2, 1, 1, 0, 2])
    for chosen in ({"loss": "bce", "scale": 5.0}, {"loss": "mse"}, {"loss": "softmax", "classes": 3}):
        learner = learner_of("cross-encoder", **chosen)
        views, labels = seen(learner, learner.options, classes if chosen["loss"] == "softmax" else SCORES)
        with torch.no_grad():
            loss = learner(views, labels).total.item()
            scores = learner.model.scores(views[0]).tolist()
        slow = {
            "bce": lambda scores: supervision.binary([s for (s,) in scores], (SCORES / 5).tolist()),
            "mse": lambda scores: sum((s - y) ** 2 for (s,), y in zip(scores, SCORES.tolist(), strict=True)),
            "softmax": lambda scores: -sum(map(supervision.log_softmax, scores, classes.tolist())),
        }
        assert loss == pytest.approx(slow[chosen["loss"]](scores), rel=1e-4), chosen


def test_both_orders_are_two_readings_of_every_pair(learner_of):
    learner = learner_of("cross-encoder", both_orders=True, scale=5.0)
    views, labels = seen(learner, learner.options, SCORES)
    with torch.no_grad():
        both = learner(views, labels)
        each = [learner([view], labels).total for view in views]
    assert both.count == 12
    assert both.total.item() == pytest.approx(sum(each).item(), rel=1e-5)
    assert abs(each[0] - each[1]) > 1e-4


@pytest.mark.parametrize("architecture", ["bert", "albert"])
def test_another_cross_encoder_begins_with_the_dense_layer_of_the_first(architecture, learner_of, tmp_path):
    first = learner_of("cross-encoder", architecture)
    with torch.no_grad():
        first.model.hidden.linear.weight.normal_()
    first.save(tmp_path / "model")
    again = METHODS["cross-encoder"].learner(load_encoder(tmp_path / "model"), first.options)
    torch.testing.assert_close(again.model.hidden.linear.weight, first.model.hidden.linear.weight)
    assert not torch.equal(again.model.output.linear.weight, first.model.output.linear.weight)


@pytest.mark.parametrize(("head", "pooling"), [("ngram-cnn", "mean"), ("cnn-pool", "cls")])
def test_heads_for_single_sentences_are_left_out(head, pooling, encoder_of, tmp_path):
    from sentence_transformers import CrossEncoder

    encoder = encoder_of("bert")
    put_head(encoder, HEADS[head]())
    learner = METHODS["cross-encoder"].learner(encoder, METHODS["cross-encoder"].options())
    assert learner.model.pooling == pooling
    assert len(learner.model.sentence_transformer) == 2
    learner.save(tmp_path / "model")
    scores = CrossEncoder(str(tmp_path / "model"), device="cpu").predict(PAIRS)
    assert scores == pytest.approx(learner.model.peer.predict(PAIRS), abs=1e-5)
    with pytest.raises(SettingsError, match="a dense layer of its own after the pooling: leave out `head`"):
        Plan.resolve(METHODS["cross-encoder"], head=head)


def test_the_names_of_classes_are_saved(learner_of, tmp_path):
    from transformers import AutoConfig

    learner = learner_of("cross-encoder", loss="softmax", classes=3)
    learner.class_names = ("contradiction", "entailment", "neutral")
    learner.save(tmp_path / "model")
    config = AutoConfig.from_pretrained(tmp_path / "model")
    assert config.id2label == {0: "contradiction", 1: "entailment", 2: "neutral"}
    assert config.label2id["neutral"] == 2


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

    again = tiny.peer(tmp_path / "model").encode(COLUMNS[0])
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
