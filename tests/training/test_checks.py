import csv

import numpy as np
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.data.views.tokens import Template
from selfsent.errors import SettingsError
from selfsent.methods import get_method
from selfsent.methods.method import Labels
from selfsent.training.checks import labels_of, reject_constant
from selfsent.training.plan import Plan

TEXTS = tiny.make_sentences(20, seed=4)
SCORE = Labels("score", low=0.0, high=1.0)


@pytest.fixture
def corpus(tmp_path):
    """A corpus of ten pairs with these labels and scores."""

    def make(labels=None, scores=None):
        path = tmp_path / "pairs.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "label", "score"])
            for row in range(10):
                label, score = (values[row % len(values)] if values else "" for values in (labels, scores))
                writer.writerow([TEXTS[2 * row], TEXTS[2 * row + 1], label, score])
        chosen = {name: name.split("_")[0] for name, v in (("label_column", labels), ("score_column", scores)) if v}
        return read_corpus(path, text_columns=("a", "b"), cache=tmp_path / "cache", **chosen)

    return make


def look(corpus, wanted):
    return labels_of(wanted, "it", corpus, np.arange(len(corpus)))


def test_classes_by_name_and_by_number(corpus):
    values, names = look(corpus(["no", "yes", "maybe"]), Labels("class"))
    assert names == ("maybe", "no", "yes")
    assert values.tolist() == [1, 2, 0, 1, 2, 0, 1, 2, 0, 1]
    values, names = look(corpus([7, 3]), Labels("class"))
    assert names == ("3", "7")
    assert values.tolist() == [1, 0] * 5
    assert values.dtype == np.int64


def test_scores_and_whole_numbers_for_scores(corpus):
    values, names = look(corpus(scores=[0.5, 0.25]), SCORE)
    assert values.tolist() == [0.5, 0.25] * 5
    assert (values.dtype, names) == (np.float32, ())
    assert look(corpus([0, 4]), Labels("score", scale=4.0, high=1.0))[0].tolist() == [0.0, 4.0] * 5


def test_options_are_completed_by_the_data(corpus):
    made = corpus(["no", "yes", "maybe"], [4.0, 1.0])
    assert Plan.resolve(get_method("softmax")).on(made).options.classes == 3
    assert Plan.resolve(get_method("cosine")).on(made).options.scale == 4.0
    assert Plan.resolve(get_method("cosine"), scale=5.0).on(made).options.scale == 5.0
    assert Plan.resolve(get_method("mnrl")).on(made).options.hard_negatives is False


@pytest.mark.parametrize(
    ("labels", "scores", "wanted", "said"),
    [
        (None, None, Labels("class"), "it needs a class for each row, and the corpus has none: .* label_column"),
        ([0.5, 1], None, Labels("class"), "the labels of the corpus are no whole numbers"),
        (["x"], None, Labels("class"), "all 10 rows have the same class, x: it has nothing to learn"),
        ([-1, 0, 1], None, Labels("class"), "row 1 of the corpus has the class '-1', which means none"),
        (["x", "-", "y"], None, Labels("class"), "row 2 of the corpus has the class '-', which means none"),
        (["x", "y", "z"], None, Labels("class", 2), "3 classes, more than classes=2: is it the right column"),
        (None, None, SCORE, "it needs a score for each row, and the corpus has none: .* score_column"),
        (["x", "y"], None, SCORE, "the label column holds names, such as 'x'"),
        (None, [3], Labels("score"), "all 10 rows have the same score, 3: it has nothing"),
        (None, [0, 5], SCORE, "scores reach from 0 to 5, which divided by scale=1 leaves .* 0 to 1: give scale=5"),
        (None, [-1, 1], SCORE, "leaves it's range of 0 to 1: add a number to all of them"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused_in_one_line(labels, scores, wanted, said, corpus):
    with pytest.raises(SettingsError, match=said) as caught:
        look(corpus(labels, scores), wanted)
    assert "\n" not in str(caught.value)


def test_too_few_text_columns(corpus):
    with pytest.raises(SettingsError, match=r"triplet needs 3 text columns; the corpus has 2: .* text_columns"):
        Plan.resolve(get_method("triplet")).on(corpus())


def template_of(encoder):
    return Template.of(encoder.tokenizer, encoder.transformer.config.vocab_size)


@pytest.mark.parametrize("name", tiny.CAUSAL)
def test_the_first_token_of_a_causal_model_is_no_sentence_vector(name, encoder_of):
    encoder = encoder_of(name, "cls")
    with pytest.raises(SettingsError, match=r"pooling=cls.*give pooling=mean or lasttoken$"):
        reject_constant(encoder, template_of(encoder))
    for pooling in ("mean", "lasttoken", "max"):
        encoder = encoder_of(name, pooling)
        reject_constant(encoder, template_of(encoder))


@pytest.mark.parametrize(("name", "given"), [("albert", {}), ("modernbert", {}), ("bert", {"dropout": 0.0})])
def test_views_that_would_be_identical_without_dropout_are_refused_by_the_files_of_the_base(name, given, base_of):
    for method in ("simcse", "bootstrap"):
        with pytest.raises(SettingsError, match=r"would be identical.*or dropout=0.1"):
            Plan.resolve(get_method(method), base_of(name), **given)
        for enough in ({"dropout": 0.1}, {**given, "delete_words": 0.3}):
            Plan.resolve(get_method(method), base_of(name), **enough)
    Plan.resolve(get_method("simcse"), base_of("bert"))
