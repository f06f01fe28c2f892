"""Methods that read what stands beside a sentence: their losses against slow twins, and what they are made of."""

import numpy as np
import pytest
import torch

import tiny
from naive import comparisons
from selfsent.data.packed import IGNORED, Packed
from selfsent.data.views.noise import MaskTokens
from selfsent.data.views.positives import Span, Surroundings
from selfsent.methods import METHODS, get_method
from selfsent.settings import Settings


@pytest.fixture
def sentences(learner_of):
    """Token ids of ten sentences, for the tokenizer of the tiny BERT."""
    return tiny.encode(learner_of("simcse", delete_words=0.3).model.tokenizer, tiny.make_sentences(10, seed=5))


def unlike_the_base(learner):
    with torch.no_grad():
        for parameter in learner.model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return learner


@pytest.mark.parametrize("keep", [0.0, 0.7])
def test_neighbours_equal_loops_both_ways_and_stay_near_the_base(keep, learner_of, sentences):
    learner = learner_of("neighbours", keep_base=keep, scale=10.0)
    base = learner.model.twin()
    unlike_the_base(learner)
    loss = learner([tiny.pack(sentences[:5]), tiny.pack(sentences[5:])])
    first, second = (torch.stack([learner.model(tiny.pack([ids]))[0] for ids in part]) for part in halves(sentences))
    slow = (comparisons.ranking(first, second, 10.0) + comparisons.ranking(second, first, 10.0)) / 2
    if keep:
        before = [base(tiny.pack([ids]))[0] for ids in sentences]
        slow = slow + keep * comparisons.similarity_divergence([*first, *second], before, 10.0) / 2
    torch.testing.assert_close(loss.total, slow, rtol=1e-3, atol=1e-4)
    assert loss.count == 5


def halves(rows):
    return rows[: len(rows) // 2], rows[len(rows) // 2 :]


def test_the_base_is_no_part_of_what_is_trained_or_saved(learner_of):
    plain, kept = (learner_of("neighbours", keep_base=keep) for keep in (0.0, 1.0))
    assert plain.state_dict().keys() == kept.state_dict().keys()
    assert not any(parameter.requires_grad for parameter in kept._base[0].parameters())


def test_what_is_like_the_base_costs_nothing_to_keep(learner_of, sentences):
    views = [tiny.pack(sentences[:5]), tiny.pack(sentences[5:])]
    plain, kept = (learner_of("neighbours", keep_base=keep)(views).total for keep in (0.0, 1.0))
    torch.testing.assert_close(plain, kept)


@pytest.mark.parametrize("method", ["quick-thoughts", "inverse-cloze"])
def test_two_encoders_equal_loops_and_the_one_of_the_sentences_is_kept(method, learner_of, sentences):
    learner = unlike_the_base(learner_of(method, scale=0.1))
    loss = learner([tiny.pack(sentences[:5]), tiny.pack(sentences[5:])])
    read = [learner.model(tiny.pack([ids]))[0] for ids in sentences[:5]]
    contexts = [learner.first(tiny.pack([ids]))[0] for ids in sentences[5:]]
    torch.testing.assert_close(
        loss.total, comparisons.ranking(read, contexts, 0.1, comparisons.product), rtol=1e-3, atol=1e-4
    )


def test_declutr_equals_loops_over_spans_and_words(learner_of, sentences):
    learner = learner_of("declutr", spans=2, temperature=0.5)
    masked, hidden = sentences[:2], [[IGNORED, ids[1], *[IGNORED] * (len(ids) - 2)] for ids in sentences[:2]]
    masked = [[ids[0], learner.model.tokenizer.mask_token_id, *ids[2:]] for ids in masked]
    flat = tiny.pack(masked)
    views = [
        Packed(flat.given_ids, flat.given_lengths, np.concatenate(hidden)),
        tiny.pack(sentences[2:4]),
        tiny.pack(sentences[4:6]),
    ]
    loss = learner(views)
    anchors = [learner.model(tiny.pack([ids]))[0] for ids in masked]
    one, two = ([learner.model(tiny.pack([ids]))[0] for ids in part] for part in (sentences[2:4], sentences[4:6]))
    both = torch.stack([*anchors, *((a + b) / 2 for a, b in zip(one, two, strict=True))])
    slow = 2 * comparisons.ntxent(both, both, 0.5)  # a mean over four views, and the loss is a sum over two sentences
    head = learner.model.language_model_head
    states = [learner.model.states(tiny.pack([ids]))[1] for ids in masked]
    for state, ids in zip(states, sentences, strict=False):
        scores = head.output(head(state[None]))[0]
        slow = slow - torch.log_softmax(scores, dim=-1)[ids[1]] / 2 * 2  # the mean over the words, for two sentences
    torch.testing.assert_close(loss.total, slow, rtol=1e-3, atol=1e-3)


def test_what_is_read_beside_a_sentence_by_default():
    kinds = {
        name: [type(view.passage) for view in method.options().views()]
        for name, method in METHODS.items()
        if name in ("neighbours", "cropping", "quick-thoughts", "inverse-cloze", "declutr", "fastsent")
    }
    nothing = type(None)
    assert kinds == {
        "neighbours": [nothing, Span],
        "cropping": [Span, Span],
        "quick-thoughts": [nothing, Span],
        "inverse-cloze": [nothing, Surroundings],
        "declutr": [Span, Span, Span],
        "fastsent": [nothing, Span],
    }
    declutr = get_method("declutr")
    assert isinstance(declutr.options().views()[0].noise, MaskTokens)
    assert declutr.options(mlm_weight=0).views()[0].noise is None


@pytest.mark.parametrize("method", ["simcse", "ntxent", "bootstrap", "ct-inbatch", "mnrl", "neighbours"])
def test_every_method_of_two_views_takes_every_kind_of_positive(method, learner_of):
    chosen = get_method(method)
    for given in ({"positives": "neighbours", "within": 2}, {"positives": "surroundings", "delete_words": 0.2}):
        first, second = chosen.options(**given).views()
        assert (first.column, second.column, first.passage) == (0, 0, None)
        assert second.passage is not None
        assert first.noise == second.noise
        assert (first.noise is not None) == ("delete_words" in given)
    spans = chosen.options(positives="neighbours", span=3).views()
    assert [view.passage.part for view in spans] == ["anchor", "positive"]
    learner_of(method, dropout=0.0, positives="neighbours")  # its views differ without dropout


def test_what_is_read_beside_a_sentence_does_not_depend_on_which_sentences_are_trained_on(learner_of):
    learner = learner_of("neighbours", within=2)
    chosen = get_method("neighbours")
    views = chosen.options(within=2).views()
    batches = tiny.make_batches(learner, views, Settings(batch_size=8), tiny.make_sentences(40, seed=5))
    whole = batches.views_of(np.array([6, 11, 30]), 3)[1]
    batches.rows = np.array([6, 30])
    thinned = batches.views_of(np.array([6, 30]), 3)[1]
    assert thinned.texts.tolist() == [whole.texts.tolist()[0], whole.texts.tolist()[2]]
    assert whole.documents.tolist() == [1, 2, 7]
    assert batches.views_of(np.array([6, 30]), 4)[1].texts.tolist() != thinned.texts.tolist()


def test_the_two_views_of_a_sentence_know_of_each_other(learner_of):
    """Spans that may not overlap do not, since both views draw with the same key."""
    learner = learner_of("neighbours")
    chosen = get_method("neighbours")
    sentences = tiny.make_sentences(80, seed=5, words=(4, 6))
    views = chosen.options(span=3, within=2).views()
    batches = tiny.make_batches(learner, views, Settings(batch_size=8, max_length=90), sentences)
    ids = [tuple(tokens[1:-1]) for tokens in tiny.encode(learner.model.tokenizer, sentences)]

    def read(packed):
        ends = np.cumsum(packed.given_lengths)
        for end, length in zip(ends, packed.given_lengths, strict=True):
            text = tuple(packed.given_ids[end - length + 1 : end - 1].tolist())
            yield {
                row
                for row, tokens in enumerate(ids)
                if any(text[at : at + len(tokens)] == tokens for at in range(len(text)))
            }

    for epoch in range(4):
        for row, first, second in zip(range(80), *map(read, batches.views_of(np.arange(80), epoch)), strict=True):
            assert row in first
            assert first
            assert second
            assert not first & second
            assert {other // 4 for other in first | second} == {row // 4}


@pytest.mark.parametrize(
    ("method", "given"),
    [("neighbours", {"span": 3}), ("inverse-cloze", {}), ("declutr", {"mlm_weight": 0}), ("neighbours", {})],
)
def test_lengths_are_those_of_what_is_read(method, given, learner_of):
    chosen = get_method(method)
    views = chosen.options(**given).views()
    sentences = tiny.make_sentences(80, seed=5)
    batches = tiny.make_batches(learner_of("neighbours"), views, Settings(batch_size=8, max_length=500), sentences)
    read = [view.given_lengths for view in batches.views_of(batches.rows, 0)]
    expected = read[0] if method == "neighbours" and not given else np.max(read, axis=0)
    if method == "inverse-cloze":  # the sentence itself is no passage
        expected = read[1]
    assert np.concatenate(list(batches.lengths())).tolist() == expected.tolist()
