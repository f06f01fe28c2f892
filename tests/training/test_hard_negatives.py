"""Hard negatives, and a cross-encoder's scores of them, kept with a corpus."""

import numpy as np
import pytest
import torch

import tiny
from naive import comparisons
from naive.words import bm25_share, words_of
from selfsent.data.corpus import read_corpus
from selfsent.errors import Damaged, SettingsError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.training import hard_negatives
from selfsent.training.hard_negatives import hardest, mine, teacher_scores

TEXTS = tiny.make_sentences(60, seed=7)
PAIRS = [{"query": TEXTS[n // 2], "answer": TEXTS[59 - n]} for n in range(30)]
"""Every query has two answers."""
ALL = np.arange(30)


@pytest.fixture
def pairs(tmp_path):
    return read_corpus(PAIRS, text_columns=["query", "answer"], cache=tmp_path)


@pytest.fixture
def base(base_of):
    return str(base_of("bert", initializer_range=0.5))


@pytest.mark.parametrize("max_relative_score", [0.95, 0.5, 1.0])
def test_the_hardest_are_those_of_a_sorted_list(max_relative_score):
    drawn = np.random.default_rng(0)
    scores, partner = drawn.normal(size=(40, 9)), drawn.normal(size=40)
    scores[:, 3] = -np.inf
    scores[:3] = -np.inf
    slow = [
        comparisons.hardest(row, own, 4, max_relative_score) for row, own in zip(scores.tolist(), partner, strict=True)
    ]
    assert hardest(scores, partner, 4, max_relative_score).tolist() == slow
    assert hardest(scores[:, :2], partner, 4, max_relative_score).shape == (40, 4)


@pytest.mark.parametrize(("by", "weight"), [("base", 0.0), ("words", 1.0), ("both", 0.5)])
def test_negatives_of_pairs_are_the_best_answers_of_others_below_the_guard(pairs, base, by, weight, monkeypatch):
    monkeypatch.setattr(hard_negatives, "language_of", lambda texts: None)
    found = mine(pairs, ALL, base, 3, by)
    encoder, answers = load_encoder(base), pairs.texts(column="answer")
    terms = [words_of(answer) for answer in answers]
    units = (vector / np.linalg.norm(vector) for vector in encode(encoder, TEXTS))
    vectors = dict(zip(TEXTS, units, strict=True))

    def score(query, answer):
        cosine = 0.0 if by == "words" else float(vectors[query] @ vectors[answer])
        return cosine + (weight * bm25_share(words_of(query), words_of(answer), terms) if weight else 0.0)

    for row, query in enumerate(pairs.texts()):
        own = [other for other, text in enumerate(pairs.texts()) if text == query]
        scores = [-np.inf if n in own else score(query, answer) for n, answer in enumerate(answers)]
        partner = score(query, answers[row])
        wanted = [n if n >= 0 else row for n in comparisons.hardest(scores, partner, 3, 0.95)]
        listed = [partner, *(scores[n] for n in wanted)]
        assert found.scores[row].tolist() == pytest.approx(listed, abs=2e-5)
        assert [scores[n] for n in found.rows[row]] == pytest.approx([scores[n] for n in wanted], abs=2e-5)


def test_negatives_of_documents_are_other_documents(tmp_path, base):
    parts = [[text.capitalize() + "." for text in TEXTS[5 * n : 5 * n + 2 + n % 3]] for n in range(12)]
    corpus = read_corpus([{"text": " ".join(part)} for part in parts], split_sentences=True, cache=tmp_path)
    documents, rows = np.asarray(corpus.documents), np.arange(2, len(corpus))  # the first is not trained on
    found = mine(corpus, rows, base, 2, max_relative_score=1.0, whole=True)
    there = np.isfinite(found.scores[rows, 1:])
    assert there.mean() > 0.5
    assert ((documents[found.rows[rows]] == documents[rows, None]) == ~there).all()
    first = np.unique(documents, return_index=True)[1]
    assert set(found.rows[rows][there]) <= set(first[1:])
    assert found.rows[:2].tolist() == [[0, 0], [1, 1]]


def test_what_was_mined_is_read_and_what_is_missing_is_made(pairs, base, monkeypatch):
    asked = []

    def stopping(scores, *given):
        asked.append(len(scores))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return hardest(scores, *given)

    monkeypatch.setattr(hard_negatives, "hardest", stopping)
    with pytest.raises(KeyboardInterrupt):
        mine(pairs, ALL, base, 2, chunk_size=10)
    done = []
    found = mine(pairs, ALL, base, 2, progress=tiny.counts(done), chunk_size=10)
    assert (asked, done) == ([10, 10, 10, 10], [10, 10, 10])
    again = mine(pairs, ALL, base, 2)
    assert len(asked) == 4
    assert np.array_equal(again.rows, found.rows)
    assert np.array_equal(again.scores, found.scores)
    mine(pairs, ALL, base, 2, max_relative_score=0.9, chunk_size=10)
    assert len(asked) == 7
    path = next(pairs.directory.glob("mined-*")) / "vectors.npy"
    whole = bytearray(path.read_bytes())
    whole[-3] ^= 8
    path.write_bytes(whole)
    with pytest.warns(Damaged):  # noqa: PT031 — one of the two
        for max_relative_score in (0.95, 0.9):
            mine(pairs, ALL, base, 2, max_relative_score=max_relative_score)
    assert len(asked) == 8


def test_a_cross_encoder_scores_partners_and_candidates(pairs, base, base_of):
    from selfsent.models.cross_encoder import CrossEncoder

    found = mine(pairs, ALL, base, 2)
    model = CrossEncoder(load_encoder(base), 1, torch.nn.Sigmoid())
    model.save(pairs.directory / "judge")
    scores = teacher_scores(pairs, ALL, found, str(pairs.directory / "judge"), whole=False)
    answers = pairs.texts(column="answer")
    for row, query in enumerate(pairs.texts()):
        there = np.isfinite(found.scores[row])
        texts = [answers[row], *(answers[n] for n in found.rows[row])]
        wanted = model.peer.predict([(query, text) for text in texts])
        assert scores[row][there] == pytest.approx(wanted[there], abs=1e-5)
        assert np.isneginf(scores[row][~there]).all()


@pytest.mark.parametrize("by", ["base", "both"])
def test_a_base_or_teacher_whose_numbers_are_not_finite_is_refused(pairs, base, by, tmp_path):
    from selfsent.models.cross_encoder import CrossEncoder

    broken = load_encoder(base)
    broken.words.weight.data[broken.tokenizer(TEXTS[0])["input_ids"][1]] = np.nan
    broken.save(tmp_path / "base")
    with pytest.raises(SettingsError, match="base makes vectors that are not finite"):
        mine(pairs, ALL, str(tmp_path / "base"), 2, by)
    CrossEncoder(broken, 1, torch.nn.Sigmoid()).save(tmp_path / "judge")
    with pytest.raises(SettingsError, match="judge makes scores that are not finite"):
        teacher_scores(pairs, ALL, mine(pairs, ALL, base, 2), str(tmp_path / "judge"), whole=False)
