import pytest

import tiny
from selfsent.errors import SettingsError
from selfsent.recipes import read_recipe
from selfsent.recipes.needs import needs_of
from selfsent.recipes.recipe import Folds
from selfsent.recipes.run import Runner

RECIPE = """\
base: {base}
all: {{batch_size: 8, seed: 3}}
stages:
  words:
    corpus: sentences.txt
    method: mlm
    steps: 3
  pairs:
    corpus: {{source: pairs.csv, text_columns: [a, b], where: {{label: 1}}, stack: true}}
    method: simcse
    learning_rate: 2e-5
    temperature: 1
    budget: 1m
evaluate: stsb
variants:
  short: {{}}
  long:
    stages: {{words: {{pooling: max, steps: 9}}, pairs: null}}
"""


THIRD = "  third: {corpus: sentences.txt, method: mlm}\nevaluate: stsb"


@pytest.fixture
def recipe(tmp_path, base_of):
    def read(*changes, variant=None, **options):
        text = RECIPE.format(base=base_of("bert"))
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "recipe.yaml").write_text(text)
        return read_recipe(tmp_path / "recipe.yaml", variant, **options)

    return read


def test_a_recipe_says_what_its_stages_are(recipe):
    words, pairs = recipe().stages
    assert (words.name, words.method.name, words.source) == ("words", "mlm", "sentences.txt")
    assert words.arguments == {"batch_size": 8, "seed": 3, "steps": 3}
    assert pairs.arguments["budget"] == 60.0
    assert pairs.reading == {"text_columns": ("a", "b"), "where": {"label": ["1"]}, "stack": True}
    assert (words.tasks, pairs.tasks) == ({}, {"task": ["stsb"]})
    plan = pairs.plan(recipe().base)
    assert (plan.settings.learning_rate, plan.settings.batch_size, plan.settings.seed) == (2e-5, 8, 3)


def test_a_recipe_trains_on_all_pairs_unless_it_says_otherwise(recipe):
    words, pairs = recipe().stages
    assert (words.defaults, pairs.defaults) == ({}, {"hold_out": 0})
    parts = ("corpus: sentences.txt", "corpus: [{source: a.csv, text_columns: [a, b]}]")
    assert recipe(parts).stages[0].defaults == {"hold_out": 0}
    chosen = recipe(parts, ("    steps: 3", "    steps: 3\n    hold_out: 40")).stages[0]
    assert {**chosen.defaults, **chosen.arguments}["hold_out"] == 40
    assert recipe(parts, ("    steps: 3", "    steps: 3\n    dev: context")).stages[0].defaults == {}


@pytest.mark.parametrize("value", ["'html,urls'", "[urls, html]"])
def test_a_recipe_says_what_is_taken_out_of_texts(recipe, value):
    _, pairs = recipe(("stack: true", f"stack: true, clean: {value}")).stages
    assert pairs.reading["clean"] == ("html", "urls")


def test_a_variant_changes_and_takes_away_stages(recipe):
    (words,) = recipe(variant="long").stages
    assert words.arguments["steps"] == 9
    assert words.tasks == {"task": ["stsb"]}
    assert recipe().variant == "short"
    assert recipe(variant="long", seed=7).stages[0].arguments["seed"] == 7
    with pytest.raises(SettingsError, match="there is no variant 'longer'; did you mean 'long'"):
        recipe(variant="longer")


def test_a_pooling_goes_on_to_the_next_stage(recipe):
    first, second = recipe(("steps: 3", "steps: 3\n    pooling: max")).stages
    assert second.plan("bundled-raw").pooling == first.plan("bundled-raw").pooling == "max"
    _, tsdae = recipe(("method: simcse", "method: tsdae"), ("    temperature: 1\n", "")).stages
    assert tsdae.plan("bundled-raw").pooling == "mean"  # not the cls it is published with
    heads = ("steps: 3", "steps: 3\n    head: cnn-pool"), ("evaluate: stsb", THIRD)
    assert all("pooling" not in stage.arguments for stage in recipe(*heads).stages)
    *_, third = recipe(*heads, ("budget: 1m", "budget: 1m\n    pooling: max")).stages
    assert third.arguments["pooling"] == "max"


def test_behind_a_cross_encoder_a_head_may_have_another_shape_and_the_pooling_stays(recipe):
    first = "steps: 3\n    head: ngram-cnn\n    activation: relu"
    pairs = "{source: a.csv, text_columns: [a, b], score_column: s}"
    second = f"  joined: {{corpus: {pairs}, method: cross-encoder, pooling: max}}"
    stages = recipe(("steps: 3", f"{first}\n{second}"), ("budget: 1m", "budget: 1m\n    head: ngram-cnn")).stages
    assert stages[2].plan("bundled-raw").head.activation == "none"
    assert stages[2].arguments["pooling"] == "max"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("steps: 3", "stepz: 3", "line 7: stage words (mlm) has no 'stepz'; did you mean 'steps'?"),
        ("steps: 3", "temperature: 3", "line 7: stage words (mlm) has no 'temperature'"),
        ("steps: 3", "steps: three", "line 7: steps is 'three'; it must be a whole number"),
        ("steps: 3", "steps: 0", "line 7: steps is 0; it must be at least 1"),
        ("steps: 3", "dev: stsb-dve", "line 7: dev is 'stsb-dve'; did you mean 'stsb-dev'"),
        ("steps: 3", "dev_every: 3", "line 7: dev_every needs dev to say what to score"),
        ("steps: 3", "budget: fortnight", "line 7: 'fortnight' is not a duration"),
        ("method: mlm", "method: mln", "line 6: stage words needs a method, not mln; did you mean 'mlm'?"),
        ("source: pairs.csv", "sorce: pairs.csv", "line 9: stage pairs needs a corpus"),
        ("where:", "were:", "line 9: the corpus of stage pairs has no 'were'; did you mean 'where'?"),
        ("evaluate: stsb", "evaluate: stsc", "line 14: there is no task 'stsc'"),
        ("evaluate: stsb", "evaluat: stsb", "line 14: a recipe has no 'evaluat'; did you mean 'evaluate'?"),
        ("sentences.txt", "fold", "line 4: stage words trains on folds"),
        ("  words:", "  ../words:", "line 4: '../words' cannot name a directory"),
        ("batch_size: 8", "batch_size: -8", "line 2: batch_size is -8"),
        (
            "steps: 3",
            "head: ngram-cnn\n    activation: relu\n  more: {corpus: a.txt, method: mlm, head: ngram-cnn}",
            "line 9: the ngram-cnn of a stage before stays, and has activation relu, not none",
        ),
        ("evaluate: stsb", "cross_validate: {data: ukp, by: 10-fold}", "line 14: data is 'ukp'"),
        ("evaluate: stsb", "cross_validate: {data: afs, by: 10-fold}", "line 14: no stage trains on the folds"),
        ("evaluate: stsb", "evaluate: {pooling: cls}", "line 14: evaluate needs tasks"),
        (
            "evaluate: stsb",
            "evaluate: {tasks: {tasks: stsb}}",
            "line 14: tasks is {'tasks': 'stsb'}; it must be a name, or a list",
        ),
        ("evaluate: stsb", "published: 3", "line 14: published must be a list of sections"),
        ("stack: true", "stack: maybe", "line 9: stack is 'maybe'; it must be true or false"),
        ("stack: true", "clean: [htm]", "line 9: there is no cleaner 'htm'; did you mean 'html'"),
        (
            "evaluate: stsb",
            "evaluate: {tasks: stsb, pooling: first}",
            "pooling is 'first'; it must be one of cls, mean",
        ),
        (
            "evaluate: stsb",
            "evaluate: {tasks: cr, classifier: sgd}",
            "classifier is 'sgd'; it must be one of exact, sen",
        ),
        ("evaluate: stsb", "evaluate: {tasks: cr, classifer: exact}", "has no 'classifer'; did you mean 'classifier'"),
        ("  short: {}", "  short: {encoder: tfidf, stages: {words: {steps: 1}}}", "give one of the two"),
        ("stack: true", "label_column: 3", "line 9: label_column is 3; it must be the name of a column"),
        ("where: {label: 1}", "where: {label: {a: 1}}", "line 9: label is {'a': 1}; under where it must be a value"),
        ("source: pairs.csv", "source: 3", "line 9: source is 3; it must be a name, or a list of names"),
        ("source: pairs.csv", "source: [{source: [a]}]", "line 9: source is ['a']; it must be one name"),
        ("source: pairs.csv", "source: a, without: 3", "line 9: without is 3; it must be a name, or a list of names"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old, new, complaint, recipe):
    with pytest.raises(SettingsError) as caught:
        recipe((old, new))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


FOLDS = ("sentences.txt", "fold"), ("evaluate: stsb", "cross_validate: {data: ukp-aspect, by: 10-fold}")


def test_stages_that_are_trained_for_every_fold_are_not_scored_one_by_one(recipe):
    assert recipe(*FOLDS).folds == Folds("ukp-aspect", "10-fold")
    for more, complaint in (
        (("by: 10-fold}", "by: 10-fold}\nevaluate: stsb"), "line 15: the last stage is trained for every fold"),
        (("budget: 1m", "evaluate: stsb"), "line 13: stage pairs is trained for every fold"),
    ):
        with pytest.raises(SettingsError, match=complaint):
            recipe(*FOLDS, more)
    pairs = ("{source: pairs.csv, text_columns: [a, b], where: {label: 1}, stack: true}", "fold")
    words, _ = recipe(FOLDS[1], pairs, ("steps: 3", "evaluate: stsb")).stages
    assert words.tasks == {"task": ["stsb"]}  # which is before the folds


def test_a_stage_may_give_options_of_the_head_of_all(recipe):
    strides = ("steps: 3", "stride: 1"), ("budget: 1m", "stride: 1")
    words, _ = recipe(("seed: 3", "seed: 3, head: cnn-pool"), *strides).stages
    assert words.plan("bundled-raw").head.stride == 1
    with pytest.raises(SettingsError, match=r"line 7: stage words .mlm. has no 'stride'"):
        recipe(strides[0])


def test_combinations_of_axes_are_variants(recipe):
    axes = "axes:\n  one: {a: {stages: {words: {steps: 5}}}, b: {}}\n  two: {x: {stages: {pairs: null}}, y: {}}\n"
    changed = recipe(("evaluate: stsb", f"{axes}evaluate: [stsb, useb]"), variant="a, x")
    (words,) = changed.stages
    assert words.arguments["steps"] == 5
    assert words.tasks["task"] == ["stsb", "askubuntu", "cqadupstack", "twitterpara", "scidocs"]
    assert len(recipe(("evaluate: stsb", f"{axes}evaluate: stsb"), variant="b, y").stages) == 2


def test_the_classifier_of_what_is_scored_is_chosen(recipe):
    chosen = recipe(("evaluate: stsb", "evaluate: {tasks: [stsb, cr], classifier: senteval}"))
    assert chosen.stages[-1].tasks == {"task": ["stsb", "cr"], "classifier": "senteval"}


def test_an_encoder_stands_in_place_of_stages(recipe):
    changed = recipe(("  short: {}", "  short: {encoder: tfidf}"))
    assert (changed.encoder, changed.stages, changed.tasks) == ("tfidf", (), {"task": ["stsb"]})


def test_a_corpus_stands_in_for_one_that_is_not_here(recipe, tmp_path):
    (tmp_path / "here.txt").write_text("one sentence here\nand another one\n")
    stand_in = f"corpus: {{source: absent/folder/x.txt, stand_in: {tmp_path / 'here.txt'}}}"
    read = recipe(("corpus: sentences.txt", stand_in))
    assert read.stages[0].stand_in == (str(tmp_path / "here.txt"), {})
    said = []
    runner = Runner(read, None, tiny.heard(notice=said.append))
    assert runner.recipe.stages[0].source == str(tmp_path / "here.txt")
    assert "absent/folder/x.txt is not here (" in said[0]
    assert runner.stand_ins == [f"{tmp_path / 'here.txt'} stands in for absent/folder/x.txt: no reproduction"]
    assert f"{tmp_path / 'here.txt'} (stands in for absent/folder/x.txt)" in [n.name for n in needs_of(read) if n.here]
    assert "absent/folder/x.txt" not in [need.name for need in needs_of(read)]
    assert runner.recipe.stages[1] is read.stages[1]
