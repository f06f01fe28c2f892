from contextlib import nullcontext

import numpy as np
import pytest

import tiny
from selfsent import make_table, train
from selfsent.data.corpus import read_corpus
from selfsent.errors import SettingsError
from selfsent.methods import METHODS, get_method
from selfsent.methods.method import NEW_STATIC, STATIC, STATIC_STEPS
from selfsent.models.base_info import BaseInfo
from selfsent.models.loading import load_encoder
from selfsent.progress import SILENT
from selfsent.training.defaults import LARGE
from selfsent.training.fit import fitted
from selfsent.training.plan import Plan, config_of, default_plan
from selfsent.training.prepared import rows_with_neighbours

STEPPING = [method for method in METHODS.values() if not method.closed_form]
NEEDED = {"distil": {"teacher": "bundled-raw"}}
"""Options without which a method cannot be planned."""


@pytest.mark.parametrize("method", STEPPING, ids=lambda method: method.name)
def test_without_a_preset_the_defaults_hold_and_the_rate_fits_the_size(method, monkeypatch):
    monkeypatch.setattr(method.options, "check_base", lambda *_: None)  # some are for tables alone
    info = BaseInfo.read("bundled-raw")
    needed = {"base": info, **NEEDED.get(method.name, {})}
    assert Plan.resolve(method, preset="published", **needed).settings == method.published
    assert Plan.resolve(method, **needed).settings == method.defaults
    vars(info)["parameters"] = LARGE + 1
    assert Plan.resolve(method, **needed).settings.learning_rate == method.large_learning_rate
    assert Plan.resolve(method, learning_rate=0.5, **needed).settings.learning_rate == 0.5


def test_static_embeddings_have_settings_of_their_own_and_new_ones_a_higher_rate(base_of, tmp_path):
    neighbours, whitening = get_method("neighbours"), get_method("whitening")
    plan = Plan.resolve(neighbours, "bundled")
    assert (plan.settings, plan.longest, plan.options.keep_base) == (STATIC, STATIC_STEPS, 1)
    assert Plan.resolve(neighbours, "bundled-encoder").settings.learning_rate == 2e-5  # it has something to lose
    assert Plan.resolve(neighbours, "bundled-raw").settings.learning_rate == 5e-4
    assert Plan.resolve(neighbours, "bundled", epochs=3).longest is None
    new = Plan.resolve(neighbours, make_table(None, tmp_path / "table", tokenizer=base_of("bert"), size=8))
    assert (new.settings, new.options.keep_base) == (NEW_STATIC, 0)
    assert Plan.resolve(whitening, "bundled").settings == whitening.static


@pytest.mark.parametrize(
    ("method", "base", "options", "whiten"),
    [
        ("neighbours", "bundled", {}, 0.1),
        ("neighbours", "bundled-encoder", {}, 0),
        ("neighbours", "bundled", {"preset": "published"}, 0),
        ("neighbours", "bundled", {"whiten": 0}, 0),
        ("neighbours", "bundled-encoder", {"whiten": 0.5}, 0.5),
        ("simcse", "bundled", {"delete_words": 0.3}, 0),
    ],
)
def test_only_static_embeddings_are_whitened_after_neighbours_by_default(method, base, options, whiten):
    assert Plan.resolve(get_method(method), base, **options).whiten == whiten


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tempreture": 1}, "simcse has no option 'tempreture'; did you mean 'temperature'"),
        ({"zzz": 1}, "simcse has no option 'zzz'; there are accumulate, "),
        ({"ratio": 0.3}, "simcse has no option 'ratio'; it is an option of tsdae, mlm$"),
        ({"accumulate": 2}, "`accumulate` cuts it: give mini_batch_size instead, or lower"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"whiten": 2}, "whiten is 2; it must be at most 1.0"),
    ],
)
def test_what_a_method_does_not_take(changes, said):
    with pytest.raises(SettingsError, match=said):
        Plan.resolve(get_method("simcse"), **changes)


def test_a_batch_is_no_larger_than_the_corpus():
    lines = []
    plan = Plan.resolve(get_method("mlm"), batch_size=64)
    assert fitted(plan, 10, tiny.heard(notice=lines.append)).batch_size == 10
    assert lines == ["the corpus has 10 rows to train on: batch_size=64 is cut to that"]
    assert fitted(plan, 64, tiny.heard(notice=lines.append)) == plan.settings
    assert len(lines) == 1


@pytest.mark.parametrize(("objective", "alone"), [("mse", True), ("contrast", False), (None, False)])
def test_a_batch_may_be_cut_where_its_sentences_are_not_compared(objective, alone, monkeypatch):
    monkeypatch.setattr("selfsent.training.fit.world_size", lambda: 2)
    given = {"teacher": "bundled", "objective": objective}
    for changes in ({"batch_size": 5, "accumulate": 2}, {"batch_size": 1}):
        with nullcontext() if alone else pytest.raises(SettingsError, match="distil compares the sentences of a batch"):
            Plan.resolve(get_method("distil"), **changes, **given)
    plan = Plan.resolve(get_method("distil"), batch_size=5, **given)
    with nullcontext() if alone else pytest.raises(SettingsError, match="cannot be shared evenly by 2 processes"):
        fitted(plan, 100, SILENT)


def test_the_config_names_everything_that_decides(corpus, base_of):
    first, second = (base_of("bert", **kind) for kind in ({}, {"initializer_range": 0.5}))
    plans = [Plan.resolve(get_method("mlm"), base) for base in (first, second)]
    one, other = (config_of(plan, corpus, np.arange(90)) for plan in plans)
    assert one["base_digest"] != other["base_digest"]
    assert {**one, "base": 0, "base_digest": 0} == {**other, "base": 0, "base_digest": 0}
    about = dict(one["corpus"])
    rows = about.pop("rows")
    assert about == {"source": corpus.source, "fingerprint": corpus.fingerprint, "sentences": 90}
    assert rows == config_of(plans[0], corpus, list(range(90)))["corpus"]["rows"]
    assert rows != config_of(plans[0], corpus, np.arange(1, 91))["corpus"]["rows"]


@pytest.mark.parametrize(("size", "accumulate", "fits"), [(8, 4, True), (4, 4, False), (1, 1, False)])
def test_every_process_has_something_of_every_batch(monkeypatch, size, accumulate, fits):
    monkeypatch.setattr("selfsent.training.fit.world_size", lambda: 2)
    plan = Plan.resolve(get_method("mlm"), batch_size=size, accumulate=accumulate)
    with nullcontext() if fits else pytest.raises(SettingsError, match=f"{size} is too small for 2 processes"):
        fitted(plan, 100, SILENT)


def test_texts_of_no_token_are_left_out(tmp_path):
    texts = [*tiny.make_sentences(40), *("\ufffd" * n for n in range(1, 9))]
    options = {"crop_words": 0.5, "mlp": False}
    said = []
    run = train(
        texts, "simcse", "bundled", tmp_path, steps=4, batch_size=16, progress=tiny.heard(notice=said.append), **options
    )
    assert "this encoder makes no token of 8 texts, left out" in said
    assert run.record["status"] == "finished"
    with pytest.raises(SettingsError, match="makes no token of these texts"):
        train(["\ufffd", "\ufffd\ufffd"], "ct", "bundled", tmp_path / "none", steps=1, quiet=True)


def test_max_length_may_exceed_512_tokens(base_of, tmp_path, monkeypatch):
    base = base_of("modernbert", max_position_embeddings=2048)
    tokenizer = tiny.make_tokenizer("byte pairs")
    tokenizer.model_max_length = 2048
    tokenizer.save_pretrained(base)
    texts = [" ".join(tiny.make_sentences(150, seed)) for seed in range(4)]
    read, learner = [], get_method("mlm").learner
    forward = learner.forward
    monkeypatch.setattr(
        learner, "forward", lambda self, views, *more: read.extend(views) or forward(self, views, *more)
    )
    run = train(texts, "mlm", base, tmp_path / "run", max_length=1000, batch_size=2, steps=1, hold_out=0, quiet=True)
    assert run.record["config"]["settings"]["max_length"] == 1000
    assert max(int(view.lengths.max()) for view in read) == 1000


@pytest.mark.parametrize(
    ("method", "options", "pairs"),
    [
        ("mnrl", {}, True),
        ("mnrl", {"positives": "neighbours"}, False),  # reads one column
        ("simcse", {"columns": True}, True),
        ("simcse", {}, False),
        ("triplet", {}, True),
        ("cosine", {}, False),  # learns from scores
        ("cross-encoder", {}, False),  # has no vectors to search by
    ],
)
def test_which_methods_learn_from_pairs_that_search_can_score(method, options, pairs):
    assert Plan.resolve(get_method(method), "bundled-raw", **options).contrasts_pairs is pairs


@pytest.fixture
def lonely(tmp_path):
    return read_corpus(tiny.make_sentences(20), cache=tmp_path / "cache")


def test_noise_of_the_user_replaces_the_default(lonely):
    default, _ = default_plan(lonely, "bundled-raw")
    own, _ = default_plan(lonely, "bundled-raw", delete_words=0.3, pooling=None)
    assert (default.options.crop_words, default.pooling) == (0.5, "mean")
    assert (own.options.crop_words, own.options.delete_words, own.pooling) == (0, 0.3, "mean")


def test_an_encoders_own_pooling_and_a_preset_stay_as_they_are(lonely, base_of, tmp_path):
    load_encoder(base_of("bert"), "cls").save(tmp_path / "encoder")
    assert default_plan(lonely, tmp_path / "encoder")[0].pooling == "cls"
    published, _ = default_plan(lonely, "bundled-raw", preset="published")
    assert (published.pooling, published.options.mlp, published.options.crop_words) == ("cls", True, 0)
    assert default_plan(lonely, "bundled-raw", head="cnn-pool")[0].pooling is None


def test_an_option_of_another_method_is_answered_with_the_one_that_was_chosen(lonely):
    with pytest.raises(SettingsError, match="without `method`, simcse is trained here, as the corpus has no documents"):
        default_plan(lonely, "bundled-raw", both_directions=True)


@pytest.mark.parametrize(
    ("given", "length"),
    [
        ({}, 64),
        ({"positives": "title"}, 512),
        ({"positives": "document,neighbours"}, 512),
        ({"positives": "document", "max_length": 90}, 90),
        ({"positives": "document", "preset": "published"}, 128),
    ],
)
def test_whole_documents_are_read_as_far_as_the_encoder_reads(given, length):
    assert Plan.resolve(get_method("neighbours"), "bundled", **given).settings.max_length == length


def test_titles_alone_are_asked_once_for_each_document(tmp_path):
    texts = [
        f"{a.capitalize()}. {b.capitalize()}. {c.capitalize()}."
        for a, b, c in zip(*[iter(tiny.make_sentences(30))] * 3, strict=True)
    ]
    corpus = read_corpus([{"text": text} for text in texts], split_sentences=True, cache=tmp_path / "cache")
    rows = np.arange(4, len(corpus))
    for positives, left in (("title", [4, *range(6, len(corpus), 3)]), ("title,document", rows.tolist())):
        plan = Plan.resolve(get_method("neighbours"), "bundled", positives=positives)
        assert rows_with_neighbours(plan, corpus, rows).tolist() == left


def test_a_masked_row_may_be_alone_in_its_document_and_none_is_told_that_its_neighbours_are_cut(tmp_path):
    texts = ["One alone.", *(" ".join(f"{each.capitalize()}." for each in tiny.make_sentences(6)) for _ in range(9))]
    given = {"base": "bert:1x64", "output": tmp_path / "run", "steps": 1, "max_length": 8, "hold_out": 0}
    said = []
    corpus = read_corpus([{"text": text} for text in texts], split_sentences=True, cache=tmp_path / "cache")
    run = train(corpus, "mlm", span=4, progress=tiny.heard(notice=said.append), **given)
    assert run.record["status"] == "finished"
    assert not [line for line in said if "alone in" in line or "are cut" in line]
