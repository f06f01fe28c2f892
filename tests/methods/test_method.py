import dataclasses

import pytest
import torch

import tiny
from selfsent.errors import SettingsError
from selfsent.methods import OWN as METHODS, SimCSE, get_method, method_of
from selfsent.models import packing
from selfsent.models.loading import load_encoder
from selfsent.settings import Settings
from selfsent.training.plan import Plan


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_a_method_says_all_that_is_shown_of_it(method):
    assert METHODS[method.name] is method
    title, objective, citation = method.described.values()
    assert any(place in citation for place in ("arXiv", "aclanthology", "openreview"))
    assert title
    assert objective
    assert "\n" not in title + objective + citation
    for settings in (method.published, method.defaults):
        assert isinstance(settings, Settings)
        assert settings.steps or settings.epochs
    for field in dataclasses.fields(method.options):
        assert field.metadata["description"]
    needed = {"teacher": "bundled-raw"} if method.name in tiny.FOLLOWING else {}
    assert all(view.column >= 0 for view in method.options(**needed).views())


def test_a_method_unlike_any_is_answered_by_those_there_are():
    with pytest.raises(SettingsError, match=r"'glove'; there are neighbours, .*tsdae, simcse, .*mlm"):
        get_method("glove")


def test_an_unknown_preset_is_refused():
    assert get_method("ct").preset("published") == get_method("ct").preset(None) == {}
    with pytest.raises(SettingsError, match="bootstrap has no settings 'paper'; it has published, faithful"):
        get_method("bootstrap").preset("paper")


def test_an_instance_of_options_leads_to_its_method():
    for method in METHODS.values():
        assert method.options.method is method
    assert method_of(SimCSE(temperature=0.1)) is METHODS["simcse"]


@pytest.mark.parametrize(
    ("method", "given", "complaint"),
    [
        ("simcse", {"positives": "neighbours", "columns": True}, "`columns` and `positives` both say"),
        ("simcse", {"within": 2}, "positives=itself needs within=1: give that, or other positives"),
        ("neighbours", {"positives": "surroundings", "overlap": True}, "surroundings needs overlap=False: give"),
        ("neighbours", {"kept": 0.5}, "neighbours needs kept=0.1"),
        # Of these, only the first was given: the others are the method's own.
        ("cropping", {"positives": "surroundings"}, "surroundings needs span=1 overlap=False: give"),
        ("simcse", {"span": 2, "kept": 0.5}, "needs span=1 kept=0.1"),
        ("mnrl", {"positives": "neighbours", "hard_negatives": True}, "`hard_negatives` is for three text columns"),
        ("neighbours", {"hard_negatives": True}, "positives=neighbours for one: leave it out, or"),
        ("neighbours", {"positives": "titel,document"}, "no positives 'titel'; did you mean 'title'"),
        ("mnrl", {"positives": "itself,title"}, "positives=itself cannot be mixed"),
        ("neighbours", {"positives": "title,neighbours", "kept": 0.5}, "title,neighbours needs kept=0.1"),
        ("simcse", {"pick_words": 3, "crop_words": 0.5}, "give one"),
        ("simcse", {"temperature": 0.0}, "temperature is 0"),
        ("tsdae", {"drop_heads": True, "decoder_dropout": False}, "contradict"),
        ("flow", {"layers": "last two"}, "layers is 'last two'"),
        ("cross-encoder", {"loss": "softmax", "scale": 5.0}, "leave"),
        ("cross-encoder", {"loss": "bce", "classes": 3}, "leave"),
        ("distil", {}, "give teacher="),
        ("least-squares", {}, "give teacher="),
    ],
)
def test_what_does_not_go_together_is_refused(method, given, complaint):
    with pytest.raises(SettingsError, match=complaint):
        get_method(method).options(**given)


BSL = {"width": 8, "chained": 1, "loss": "cosine", "predictor_rate": 1, "target_dropout": False, "learning_rate": 5e-4}
CODE = {"width": 10, "chained": 3, "norms": "first", "predictor_rate": 1, "learning_rate": 1e-4, "weight_decay": 0}


@pytest.mark.parametrize(
    ("method", "preset", "expected"),
    [
        ("bootstrap", "published", BSL),
        ("bootstrap", "faithful", {**CODE, "target_dropout": True}),
        ("infomax", "published", {"activation": "relu", "discriminator": "mlp", "average": "sum", "temperature": 0}),
        ("infomax", "faithful", {"masked": False, "activation": "none", "learning_rate": 2e-6, "temperature": 0}),
        ("ct", "published", {"optimizer": "rmsprop", "schedule": "step", "clip": 0, "dropout_in": "none"}),
        ("mlm", "published", {"batch_size": 8, "learning_rate": 5e-5, "steps": 100_000, "ratio": 0.15}),
    ],
)
def test_presets_are_what_paper_or_code_do(method, preset, expected):
    plan = Plan.resolve(get_method(method), preset=preset)
    found = {**vars(plan.settings), **vars(plan.options)}
    assert {name: found[name] for name in expected} == expected


def test_what_reads_documents_aims_at_the_score_that_does():
    for method in METHODS.values():
        reads = method.name not in tiny.FOLLOWING and any(view.passage for view in method.options().views())
        assert method.aims_at_context is reads


def test_the_head_is_trained_only_where_the_method_asks_for_it(learner_of):
    def trained(learner):
        shared = set(learner.model.transformer.parameters())
        return {p.requires_grad for p in learner.model.language_model_head.parameters() if p not in shared}

    assert trained(learner_of("simcse", dropout=0.1)) == {False}
    assert trained(learner_of("tsdae")) == {True}
    assert trained(learner_of("mlm")) == {True}


@pytest.mark.parametrize("name", METHODS)
def test_every_trained_parameter_is_in_one_group_and_only_matrices_decay(name, learner_of):
    learner = learner_of(name, "static") if name in tiny.FOR_TABLES else learner_of(name, dropout=0.1)
    groups = learner.parameter_groups(Settings(weight_decay=0.3))
    grouped = [parameter for group in groups for parameter in group["params"]]
    assert len({id(p) for p in grouped}) == len(grouped)
    assert {id(p) for p in grouped} == {id(p) for p in learner.parameters() if p.requires_grad}
    decaying = {(p.ndim > 1, group["weight_decay"]) for group in groups for p in group["params"]}
    # The ActNorms of BERT-flow decay, as in its authors' code.
    decaying -= {(False, 0.3)} if name == "flow" else set()
    alone = name in tiny.FOR_TABLES  # which have matrices alone
    assert decaying == {(True, 0.3), *(() if alone else {(False, 0.0)})}


LEARNERS = sorted({method.learner for method in METHODS.values()}, key=lambda learner: learner.__name__)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_every_learner_has_inputs_and_an_example_that_runs(learner):
    assert "| shape |" in learner.__doc__
    known = {"load_encoder": load_encoder, "pack": packing.pack, "torch": torch}
    tiny.run_example(learner, (3, 4), model=load_encoder("bundled-raw", "mean"), **known)


def test_a_batch_is_packed_as_the_example_says():
    tiny.run_example(packing.pack, (3,))
