"""Advice before a run: each message appears where its condition holds, and nowhere else."""

from types import SimpleNamespace

import pytest

from selfsent.methods import get_method
from selfsent.models.base_info import BaseInfo
from selfsent.training import advice
from selfsent.training.advice import Situation
from selfsent.training.defaults import LARGE
from selfsent.training.plan import Plan


def corpus(columns=("text",), together=(), natural=()):
    return SimpleNamespace(input_columns=columns, report=SimpleNamespace(together=together, natural=natural))


def about(method="mlm", base="bundled-raw", text=None, **facts):
    changes = facts.pop("changes", {})
    return Situation(Plan.resolve(get_method(method), base, **changes), text or corpus(), **facts)


def large(method):
    info = BaseInfo.read("bundled-encoder")
    vars(info)["parameters"] = LARGE + 1
    return about(method, info)


@pytest.mark.parametrize(
    ("each", "holds", "not_so", "message"),
    [
        (advice.unread_columns, about(text=corpus(("a", "b"))), about(), "mlm reads a and not b"),
        (advice.prompts, about("neighbours", changes={"query_prompt": "q: "}), about(), "'q: ' before queries"),
        (advice.strong_base, large("neighbours"), large("mlm"), "a strong"),
        (advice.single_sentences, about("bootstrap", "bundled-encoder"), about("bootstrap"), "by about a point"),
        (advice.options_for_encoders, about("neighbours", "bundled-encoder"), about("neighbours"), "keep_base=1"),
        (advice.other_pooling, about("tsdae", is_scored=True, changes={"pooling": "max"}), about("tsdae"), "pools by"),
        (advice.joined_columns, about("neighbours", text=corpus(together="ab")), about("neighbours"), "a and b become"),
        (advice.natural_pairs, about(text=corpus(natural="ab")), about(), "text_columns=a,b"),
        (advice.chosen_by_test_set, about(dev_test_set="stsb"), about(), "stsb is a test set"),
        (advice.kept_apart, about(held_out="10 rows"), about(), "10 rows"),
        (advice.tsdae_after_labels, about("tsdae", trained_with_labels=("mnrl",)), about("tsdae"), "trained by mnrl"),
        (advice.ignored_settings, about("whitening", changes={"steps": 3}), about("whitening"), "`steps` is ignored"),
    ],
)
def test_a_message_appears_where_its_condition_holds(each, holds, not_so, message):
    assert message in each(holds)
    assert each(not_so) is None


def test_all_of_them_come_in_order():
    lines = list(advice.advice_on(about("whitening", changes={"steps": 3}, held_out="10 rows")))
    assert [line.split()[0] for line in lines] == ["whitening", "10", "whitening"]


def test_a_base_is_read_once_and_as_its_files_say(base_of):
    table, encoder, raw = (BaseInfo.read(name) for name in ("bundled", "bundled-encoder", base_of("bert")))
    assert (table.is_static, table.is_bare_table, table.is_trained_transformer, table.pooling) == (
        True,
        table.modules[1:] == (),
        False,
        "mean",
    )
    assert (encoder.is_static, encoder.is_trained_transformer) == (False, True)
    assert (raw.modules, raw.pooling, raw.is_sentence_encoder, raw.name) == ((), None, False, str(base_of("bert")))
