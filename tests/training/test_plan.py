import numpy as np
import pytest

import tiny
from selfsent import read_corpus
from selfsent.errors import SettingsError
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder
from selfsent.training.fit import rows_with_neighbours
from selfsent.training.plan import default_plan, make_plan


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
    assert make_plan(get_method(method), "bundled-raw", **options).contrasts_pairs is pairs


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
    assert make_plan(get_method("neighbours"), "bundled", **given).settings.max_length == length


def test_titles_alone_are_asked_once_for_each_document(tmp_path):
    texts = [
        f"{a.capitalize()}. {b.capitalize()}. {c.capitalize()}."
        for a, b, c in zip(*[iter(tiny.make_sentences(30))] * 3, strict=True)
    ]
    corpus = read_corpus([{"text": text} for text in texts], split_sentences=True, cache=tmp_path / "cache")
    rows = np.arange(4, len(corpus))
    for positives, left in (("title", [4, *range(6, len(corpus), 3)]), ("title,document", rows.tolist())):
        plan = make_plan(get_method("neighbours"), "bundled", positives=positives)
        assert rows_with_neighbours(plan, corpus, rows).tolist() == left
