import numpy as np
import pytest
import torch

import tiny
from naive import comparisons
from selfsent.data.packed import Packed
from selfsent.methods.ranking import in_batch_cross_entropy, no_negatives, similarities

IDS = [[2, 7, 3], [2, 8, 9, 3], [2, 7, 3], [2, 10, 3], [2, 8, 3]]


def packed(ids, documents=None):
    batch = tiny.pack(ids)
    batch.given_documents = None if documents is None else np.array(documents)
    return batch


def test_equal_texts_have_equal_numbers_wherever_they_stand():
    numbers = packed(IDS).texts.tolist()
    assert numbers[0] == numbers[2]
    assert len(set(numbers)) == 4
    assert packed([[2, 11, 12, 13, 14, 3], *IDS]).texts.tolist()[1:] == numbers


def test_what_is_no_negative_is_found_by_text_and_by_document():
    query, partner = packed(IDS, [0, 1, 2, 1, 3]), packed(IDS[::-1], [0, 1, 2, 1, 3])
    found = no_negatives(query, [partner, query])
    slow = [
        comparisons.no_negative(IDS[i], IDS[::-1][i], ids, own, a, b)
        for i, a in enumerate([0, 1, 2, 1, 3])
        for ids, own, b in zip([*IDS[::-1], *IDS], IDS * 2, [0, 1, 2, 1, 3] * 2, strict=True)
    ]
    assert found.flatten().tolist() == slow
    alone = no_negatives(packed(IDS), [packed(IDS)])
    assert alone.sum() == 5 + 2  # each itself, and the two that are equal


def test_another_partner_of_an_equal_text_is_no_negative():
    query, partner = packed([[2, 5, 3], [2, 5, 3], [2, 6, 3]]), packed([[2, 11, 3], [2, 12, 3], [2, 13, 3]])
    assert no_negatives(query, [partner]).int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_hard_negatives_count_whatever_their_document(learner_of):
    learner = learner_of("mnrl", hard_negatives=True).eval()
    sentences = tiny.encode(learner.model.tokenizer, tiny.make_sentences(12, seed=4))

    def loss(documents, hard):
        views = [packed(part, documents) for part in (sentences[:4], sentences[4:8], hard)]
        return learner(views).total.item()

    same = [7, 7, 7, 7]
    assert loss(same, sentences[8:]) > 0
    assert loss(same, sentences[4:8]) < loss(None, sentences[8:])
    query, partner, hard = (packed(part, same) for part in (sentences[:4], sentences[4:8], sentences[8:]))
    assert not no_negatives(query, [partner, hard], hard=1)[:, 4:].any()


@pytest.mark.parametrize("left_out", [False, True])
def test_loss_equals_loops_over_candidates(left_out):
    torch.manual_seed(0)
    vectors, candidates = torch.randn(5, 4), torch.randn(5, 4)
    mask = torch.rand(5, 5) < 0.4 if left_out else torch.zeros(5, 5, dtype=torch.bool)
    loss = in_batch_cross_entropy(similarities(vectors, candidates), mask if left_out else None)
    slow = comparisons.ranking(vectors, candidates, 1.0, comparisons.product, mask).item()
    assert loss.item() == pytest.approx(slow, rel=1e-5)


def test_a_query_whose_others_are_all_left_out_has_no_loss():
    scores = torch.randn(3, 3, requires_grad=True)
    loss = in_batch_cross_entropy(scores, torch.ones(3, 3, dtype=torch.bool))
    assert loss.item() == 0
    loss.backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("method", ["simcse", "ntxent", "ct-inbatch", "mnrl", "neighbours"])
def test_sentences_of_one_document_are_no_negatives(method, learner_of):
    """With all others of the same document there is nothing to tell apart; with none, as much as ever."""
    learner = learner_of(method, **({} if method in ("mnrl", "neighbours") else {"delete_words": 0.3})).eval()
    sentences = tiny.encode(learner.model.tokenizer, tiny.make_sentences(8, seed=4))

    def loss(documents):
        return learner([packed(sentences[:4], documents), packed(sentences[4:], documents)]).total.item()

    assert loss([5, 5, 5, 5]) == pytest.approx(0, abs=1e-6)
    assert loss([0, 1, 2, 3]) == pytest.approx(loss(None), rel=1e-6)
    assert 0 < loss([0, 0, 1, 1]) < loss([0, 1, 2, 3])


def test_a_copy_for_a_device_has_the_same_documents():
    batch = Packed(np.array([2, 7, 3]), np.array([3]), documents=np.array([4]))
    assert batch.to("cpu").documents.tolist() == [4]
