import json
from contextlib import nullcontext

import numpy as np
import pytest

import tiny
from selfsent import make_table, train
from selfsent.data.corpus import read_corpus
from selfsent.errors import SettingsError
from selfsent.methods import METHODS, get_method
from selfsent.methods.method import NEW_STATIC, STATIC, STATIC_STEPS
from selfsent.progress import Progress
from selfsent.training import fit
from selfsent.training.fit import fitted
from selfsent.training.identity import asked
from selfsent.training.plan import make_plan
from selfsent.training.usual import LARGE

STEPPING = [method for method in METHODS.values() if not method.closed_form]
NEEDED = {"distil": {"teacher": "bundled-raw"}}
"""Options without which a method cannot be planned."""


@pytest.mark.parametrize("method", STEPPING, ids=lambda method: method.name)
def test_published_means_published(method):
    plan = make_plan(method, preset="published", **NEEDED.get(method.name, {}))
    assert plan.settings == method.published


@pytest.mark.parametrize("method", STEPPING, ids=lambda method: method.name)
def test_without_a_preset_the_defaults_hold_and_the_rate_fits_the_size(method, monkeypatch):
    needed = {"base": "bundled-raw", **NEEDED.get(method.name, {})}
    assert make_plan(method, **needed).settings == method.defaults
    monkeypatch.setattr("selfsent.training.usual._parameters", lambda directory: LARGE + 1)
    assert make_plan(method, **needed).settings.learning_rate == method.large_learning_rate
    assert make_plan(method, learning_rate=0.5, **needed).settings.learning_rate == 0.5


def test_a_table_has_settings_of_its_own_and_a_new_one_a_higher_rate(base_of, tmp_path):
    neighbours, whitening = get_method("neighbours"), get_method("whitening")
    assert make_plan(neighbours, "bundled").settings == STATIC
    assert make_plan(neighbours, "bundled-encoder").settings.learning_rate == 2e-5  # it has something to lose
    assert make_plan(neighbours, "bundled-raw").settings.learning_rate == 5e-4
    assert make_plan(neighbours, "bundled").longest == STATIC_STEPS
    assert make_plan(neighbours, "bundled", epochs=3).longest is None
    assert make_plan(neighbours, "bundled", learning_rate=0.5).settings.learning_rate == 0.5
    new = make_table(None, tmp_path / "table", tokenizer=base_of("bert"), size=8)
    assert make_plan(neighbours, new).settings == NEW_STATIC
    assert make_plan(neighbours, "bundled").options.keep_base == 1
    assert make_plan(neighbours, new).options.keep_base == 0
    assert make_plan(whitening, "bundled").settings == whitening.static


def test_only_tables_are_whitened_after_neighbours_unless_told(base_of):
    neighbours = get_method("neighbours")
    assert make_plan(neighbours, "bundled").whiten == 0.1
    assert make_plan(neighbours, "bundled-encoder").whiten == 0
    assert make_plan(neighbours, "bundled", preset="published").whiten == 0
    assert make_plan(neighbours, "bundled", whiten=0).whiten == 0
    assert make_plan(neighbours, "bundled-encoder", whiten=0.5).whiten == 0.5
    assert make_plan(get_method("simcse"), "bundled").whiten == 0
    with pytest.raises(SettingsError, match="--whiten is 2; it must be from 0 to 1"):
        make_plan(neighbours, "bundled", whiten=2)


def test_changes_go_where_they_belong():
    plan = make_plan(get_method("tsdae"), ratio=0.3, seed=4, steps=7, pooling="mean", dropout=0.2)
    assert (plan.options.ratio, plan.settings.seed, plan.settings.steps, plan.settings.epochs) == (0.3, 4, 7, None)
    assert (plan.pooling, plan.dropout) == ("mean", 0.2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tempreture": 1}, "simcse has no option 'tempreture'; did you mean 'temperature'"),
        ({"zzz": 1}, "simcse has no option 'zzz'; there are accumulate, "),
        ({"ratio": 0.3}, "simcse has no option 'ratio'; it is an option of tsdae, mlm$"),
        ({"preset": "papers"}, "simcse has no settings 'papers'; it has published"),
        ({"accumulate": 2}, "lower --batch-size instead"),
        ({"dropout": 1.0}, "--dropout is 1.0"),
    ],
)
def test_what_a_method_does_not_take(changes, said):
    with pytest.raises(SettingsError, match=said):
        make_plan(get_method("simcse"), **changes)


def test_a_batch_is_no_larger_than_the_corpus():
    lines = []
    plan = make_plan(get_method("mlm"), batch_size=64)
    assert fitted(plan, 10, lines.append).batch_size == 10
    assert lines == ["the corpus has 10 rows to train on: --batch-size 64 is cut to that"]
    assert fitted(plan, 64, lines.append) == plan.settings
    assert len(lines) == 1


def test_comparing_takes_two():
    with pytest.raises(SettingsError, match="--batch-size must be at least 2"):
        make_plan(get_method("simcse"), batch_size=1)
    with pytest.raises(SettingsError, match="--batch-size must be at least 2"):
        fitted(make_plan(get_method("simcse"), batch_size=8), 1, print)
    assert fitted(make_plan(get_method("mlm"), batch_size=1), 10, print).batch_size == 1


@pytest.mark.parametrize(("objective", "alone"), [("mse", True), ("contrast", False), (None, False)])
def test_a_batch_may_be_cut_where_its_sentences_are_not_compared(objective, alone, monkeypatch):
    monkeypatch.setattr("selfsent.training.fit.world_size", lambda: 2)
    given = {"teacher": "bundled", "objective": objective}
    for changes in ({"batch_size": 5, "accumulate": 2}, {"batch_size": 1}):
        with nullcontext() if alone else pytest.raises(SettingsError, match="distil compares the sentences of a batch"):
            make_plan(get_method("distil"), **changes, **given)
    plan = make_plan(get_method("distil"), batch_size=5, **given)
    with nullcontext() if alone else pytest.raises(SettingsError, match="cannot be shared evenly by 2 processes"):
        fitted(plan, 100, lambda line: None)


def test_what_is_asked_names_everything_that_decides(corpus, base_of):
    import numpy as np

    first, second = (base_of("bert", **kind) for kind in ({}, {"initializer_range": 0.5}))
    plans = [make_plan(get_method("mlm"), base) for base in (first, second)]
    one, other = (asked(plan, corpus, np.arange(90)) for plan in plans)
    assert one["base_digest"] != other["base_digest"]
    assert {**one, "base": 0, "base_digest": 0} == {**other, "base": 0, "base_digest": 0}
    about = dict(one["corpus"])
    rows = about.pop("rows")
    assert about == {"source": corpus.source, "fingerprint": corpus.fingerprint, "sentences": 90}
    assert rows == asked(plans[0], corpus, list(range(90)))["corpus"]["rows"]
    assert rows != asked(plans[0], corpus, np.arange(1, 91))["corpus"]["rows"]


def test_an_unsaid_length_is_one_pass_and_never_more_than_the_paper_took():
    assert make_plan(get_method("tsdae")).longest == 100_000
    assert make_plan(get_method("simcse")).longest is None  # its paper took one pass
    assert make_plan(get_method("tsdae"), epochs=3.0).longest is None
    assert make_plan(get_method("tsdae"), preset="published").longest is None


@pytest.mark.parametrize("saved", ["mean", "cls"])
def test_a_saved_model_keeps_its_pooling(saved, encoder_of, tmp_path):
    encoder_of("bert", saved).save(tmp_path / "model")
    for method in ("tsdae", "cosine"):
        assert make_plan(get_method(method), tmp_path / "model").pooling == saved
    assert make_plan(get_method("tsdae"), tmp_path / "model", pooling="max").pooling == "max"


def test_a_saved_model_of_earlier_versions_keeps_its_pooling(encoder_of, tmp_path):
    encoder_of("bert", "max").save(tmp_path / "model")
    config = {"word_embedding_dimension": tiny.SIZE, "pooling_mode_max_tokens": True, "pooling_mode_cls_token": False}
    (tmp_path / "model" / "1_Pooling" / "config.json").write_text(json.dumps(config))
    assert make_plan(get_method("tsdae"), tmp_path / "model").pooling == "max"


def test_a_warm_up_longer_than_the_run_is_told(tmp_path):
    lines = []
    sentences = tiny.make_sentences(40)
    train(
        sentences,
        "mlm",
        output=tmp_path / "run",
        steps=2,
        warmup=5,
        batch_size=4,
        progress=tiny.heard(notice=lines.append),
    )
    assert any(
        "warm-up of 5 steps is not shorter than the run of 2: the rate gets no higher than 33%" in line
        for line in lines
    )


@pytest.mark.parametrize(("size", "accumulate", "fits"), [(8, 4, True), (4, 4, False), (1, 1, False)])
def test_every_process_has_something_of_every_batch(monkeypatch, size, accumulate, fits):
    monkeypatch.setattr("selfsent.training.fit.world_size", lambda: 2)
    plan = make_plan(get_method("mlm"), batch_size=size, accumulate=accumulate)
    with nullcontext() if fits else pytest.raises(SettingsError, match=f"{size} is too small for 2 processes"):
        fitted(plan, 100, lambda line: None)


@pytest.mark.parametrize("method", ["simcse", "sdae"])
def test_texts_of_no_token_are_left_out(method, tmp_path):
    texts = [*tiny.make_sentences(40), *("\ufffd" * n for n in range(1, 9))]
    options = {"crop_words": 0.5, "mlp": False} if method == "simcse" else {}
    said = []
    run = train(
        texts, method, "bundled", tmp_path, steps=4, batch_size=16, progress=tiny.heard(notice=said.append), **options
    )
    assert "this encoder makes no token of 8 texts, left out" in said
    assert run.record["status"] == "finished"
    with pytest.raises(SettingsError, match="makes no token of these texts"):
        train(["\ufffd", "\ufffd\ufffd"], "ct", "bundled", tmp_path / "none", steps=1, quiet=True)


def test_neighbours_of_no_token_do_no_harm(tmp_path):
    texts = tiny.make_sentences(40)
    texts[1::4] = ["\ufffd" * (n + 1) for n in range(10)]
    (tmp_path / "t.jsonl").write_text(
        "\n".join(json.dumps({"text": text, "d": n // 4}) for n, text in enumerate(texts)), encoding="utf-8"
    )
    corpus = read_corpus(tmp_path / "t.jsonl", document_column="d", cache=tmp_path / "cache")
    run = train(corpus, "neighbours", "bundled", tmp_path / "run", steps=6, batch_size=8, hold_out=0, quiet=True)
    assert run.record["status"] == "finished"


def test_more_than_512_tokens_are_read_if_asked_for(base_of, tmp_path):
    base = base_of("modernbert", max_position_embeddings=2048)
    tokenizer = tiny.make_tokenizer("byte pairs")
    tokenizer.model_max_length = 2048
    tokenizer.save_pretrained(base)
    texts = [" ".join(tiny.make_sentences(150, seed)) for seed in range(4)]
    plan = make_plan(get_method("mlm"), base, max_length=1000, batch_size=2, steps=1)
    corpus = read_corpus(texts, cache=tmp_path)
    _, learner = fit._model_and_learner(plan)
    batches = fit._batches(plan, learner, corpus, np.arange(4), None, Progress())
    assert batches.settings.max_length == 1000
    assert max(int(view.lengths.max()) for (views, *_) in batches.micro_batches(0, "cpu") for view in views) == 1000


def test_a_batch_that_is_cut_to_the_corpus_can_be_shared(monkeypatch):
    monkeypatch.setattr(fit, "world_size", lambda: 2)
    said = []
    assert fitted(make_plan(get_method("simcse"), "bundled-raw", batch_size=64), 33, said.append).batch_size == 32
    assert said == ["the corpus has 33 rows to train on: --batch-size 64 is cut to 32"]
