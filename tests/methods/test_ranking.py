import numpy as np
import pytest
import torch

import tiny
from naive import comparisons, supervision
from selfsent.errors import SettingsError
from selfsent.methods import get_method
from selfsent.methods.contrast import in_batch_cross_entropy, list_loss, margin_loss, no_negatives
from selfsent.settings import Settings

IDS = [[2, 7, 3], [2, 8, 9, 3], [2, 7, 3], [2, 10, 3], [2, 8, 3]]
ALL = slice(None)


def packed(ids, documents=None):
    batch = tiny.pack(ids)
    batch.given_documents = None if documents is None else np.array(documents)
    return batch


def test_what_is_no_negative_is_found_by_text_and_by_document():
    query, partner = packed(IDS, [0, 1, 2, 1, 3]), packed(IDS[::-1], [0, 1, 2, 1, 3])
    found = no_negatives(query, [partner, query])(ALL)
    slow = [
        comparisons.no_negative(IDS[i], IDS[::-1][i], ids, own, a, b)
        for i, a in enumerate([0, 1, 2, 1, 3])
        for ids, own, b in zip([*IDS[::-1], *IDS], IDS * 2, [0, 1, 2, 1, 3] * 2, strict=True)
    ]
    assert found.flatten().tolist() == slow
    alone = no_negatives(packed(IDS), [packed(IDS)])(ALL)
    assert alone.sum() == 5 + 2  # each itself, and the two that are equal


def test_another_partner_of_an_equal_text_is_no_negative():
    query, partner = packed([[2, 5, 3], [2, 5, 3], [2, 6, 3]]), packed([[2, 11, 3], [2, 12, 3], [2, 13, 3]])
    assert no_negatives(query, [partner])(ALL).int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


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
    assert not no_negatives(query, [partner, hard], hard=1)(ALL)[:, 4:].any()


@pytest.mark.parametrize("left_out", [False, True])
def test_loss_equals_loops_over_candidates(left_out):
    torch.manual_seed(0)
    vectors, candidates = torch.randn(5, 4), torch.randn(5, 4)
    mask = torch.rand(5, 5) < 0.4 if left_out else torch.zeros(5, 5, dtype=torch.bool)
    loss = in_batch_cross_entropy(vectors @ candidates.T, mask if left_out else None)
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
    assert not any(parameter.requires_grad for parameter in kept.fixed[0].parameters())


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


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("both", [False, True])
def test_mnrl_equals_loops(hard, both, learner_of, sentences):
    learner = learner_of("mnrl", hard_negatives=hard, both_directions=both)
    views = [tiny.pack(part) for part in (sentences[:3], sentences[3:6], sentences[6:9])[: 2 + hard]]
    text, partner, *others = [learner.model(view).tolist() for view in views]
    slow = supervision.ranking(text, partner, others[0] if hard else [], 20.0)
    if both:
        slow = (slow + supervision.ranking(partner, text, [], 20.0)) / 2
    assert learner(views).total.item() == pytest.approx(slow, rel=1e-4)


@pytest.mark.parametrize(
    ("loss_of", "naive_loss", "candidates", "tolerance"),
    [(list_loss, comparisons.list_divergence, 5, 1e-4), (margin_loss, supervision.margins, 4, 1e-5)],
)
def test_a_loss_follows_the_teachers_scores(loss_of, naive_loss, candidates, tolerance):
    torch.manual_seed(1)
    scores, targets = 3 * torch.randn(4, candidates), 3 * torch.randn(4, candidates)
    targets[1, 3:] = targets[2, 1:] = -torch.inf
    scores.requires_grad_(True)
    loss = loss_of(scores, targets)
    assert loss.item() == pytest.approx(naive_loss(scores.tolist(), targets.tolist()), rel=tolerance)
    loss.backward()
    assert torch.isfinite(scores.grad).all()
    # One candidate: a list has nothing to learn but for rounding, a margin nothing at all.
    assert scores.grad[2].abs().max() <= (1e-6 if loss_of is list_loss else 0)


def test_gpl_follows_its_teacher_alone(learner_of):
    learner = learner_of("gpl", mined=2, teacher_loss="margin", scale=2.0, teacher_scale=3.0).eval()
    ids = tiny.encode(learner.model.tokenizer, tiny.make_sentences(16, seed=4))
    views = [tiny.pack(ids[start : start + 4]) for start in (0, 4, 8, 12)]
    labels = torch.randn(4, 3)
    query, *others = (torch.nn.functional.normalize(learner.model(view).detach(), dim=1) for view in views)
    scores = torch.stack([2 * (query * other).sum(1) for other in others], dim=1)
    slow = supervision.margins(scores.tolist(), (3 * labels).tolist())
    assert learner(views, labels).total.item() == pytest.approx(slow, rel=1e-4)
    with pytest.raises(SettingsError, match="without `in_batch` there is no loss: give a teacher"):
        get_method("gpl").options(teacher="")


def test_the_loss_with_mined_negatives_and_a_teacher_equals_the_sum_of_its_parts(learner_of):
    options = {"mined": 2, "teacher": "search", "teacher_weight": 0.5, "teacher_scale": 4.0, "scale": 10.0}
    learner = learner_of("mnrl", **options).eval()
    ids = tiny.encode(learner.model.tokenizer, tiny.make_sentences(16, seed=4))
    views = [tiny.pack(ids[start : start + 4]) for start in (0, 4, 8, 12)]
    labels = torch.randn(4, 3)
    query, partner, one, two = (learner.model(view).detach() for view in views)

    def score(n, number, m):
        return 10 * comparisons.cosine(query[n], (query, partner, one, two)[number][m]).item()

    slow = 0.0
    for n in range(4):
        every = [score(n, number, m) for number in (1, 2, 3) for m in range(4)]
        slow += np.log(np.exp(every).sum()) - score(n, 1, n)
        own = [[score(n, number, n) for number in (1, 2, 3)]]
        slow += 0.5 * comparisons.list_divergence(own, (4 * labels[n : n + 1]).tolist())
    assert learner(views, labels).total.item() == pytest.approx(slow, rel=1e-4)


def test_a_mined_negative_of_the_texts_own_document_does_not_count():
    query, partner = packed(IDS[1:4], [0, 1, 2]), packed([[2, 20, 3], [2, 21, 3], [2, 22, 3]], [0, 1, 2])
    mined = packed([[2, 30, 3], [2, 31, 3], [2, 32, 3]], [5, 1, 0])
    found = no_negatives(query, [partner, mined])(ALL)[:, 3:]
    assert found.int().tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_views_read_the_candidates_of_what_asks(learner_of):
    """Four sentences each are a document; half of the rows ask by their title, and then its candidates are read."""
    options = get_method("neighbours").options(positives="title,document", mined=2, kept=0.0)
    sentences = tiny.make_sentences(24, seed=2)
    learner = learner_of("neighbours", positives="title,document", mined=2, kept=0.0)
    batches = tiny.make_batches(learner, options.views(), Settings(batch_size=8, seed=3), sentences)
    batches.mined = np.arange(48).reshape(24, 2) // 4 % 6 * 4  # firsts of documents
    batches.labels = np.arange(24)  # so that a batch tells the row that asks
    rows, [(views, labels)] = batches.rows_at(0), batches.micro_batches(0)
    first, _, *mined = (view.given_documents for view in views)
    asked = labels.numpy()
    assert first.tolist() == (rows // 4).tolist()
    assert set(asked - rows // 4 * 4) > {0}
    assert 0 < (asked != rows).sum() < len(rows)
    assert [part.tolist() for part in mined] == (batches.mined[asked].T // 4).tolist()
    lengths = views[2].given_lengths - 2
    whole = batches.tables[0].lengths(np.arange(24)).reshape(6, 4).sum(1)
    assert lengths.tolist() == whole[batches.mined[asked, 0] // 4].tolist()
