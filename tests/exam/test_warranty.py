"""How much of a training is kept."""

from dataclasses import fields

import numpy as np
import pytest

from naive import merging
from selfsent.data.corpus import read_corpus
from selfsent.data.corpus.clean import letters
from selfsent.evaluation.results import measure
from selfsent.exam.draw import draw_exam
from selfsent.exam.exam import Text
from selfsent.exam.warranty import GENERAL, LOSS, Candidate, Warranty, choose, held_exam, regression_check, warranty
from selfsent.models.loading import load_encoder
from selfsent.models.merge import WeightInterpolation
from selfsent.scorers.scorer import Scorer
from selfsent.stats.metrics import mean
from selfsent.stats.resampling import bootstrap
from selfsent.training.run_config import RunConfig

COUNT = 60
RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 20, (5, COUNT))
BASE = RNG.uniform(0, 100, COUNT)


def as_score(values):
    return measure("exam", mean(values / 100), len(values), signature="s")


@pytest.mark.parametrize(
    ("gains", "noise", "losses", "chosen"),
    [
        ((0, 5, 9, 7, 4), 0.2, (0, 0, 0, 0, 0), 2),  # the best
        ((0, 5, 9, 7, 4), 0.2, (0, 0, 0.51, 0.5, 0), 3),  # the best that loses no more than 0.5
        ((0, 5, 9, 7, 4), 0.2, (0, 1, 1, 1, 1), 0),
        ((0, 1, 1, 1, 1), 2.0, (0, 0, 0, 0, 0), 0),  # no more than chance
        ((0, -5, -9, -7, -4), 0.2, (0, 0, 0, 0, 0), 0),
        ((0, 0, 0, 0, 0), 0.0, (0, 0, 0, 0, 0), 0),  # nothing has changed
    ],
)
def test_the_best_share_that_is_ahead_by_more_than_chance(gains, noise, losses, chosen):
    values = [BASE + gain + noise * each * (gain != 0) for gain, each in zip(gains, NOISE, strict=True)]
    assert choose([as_score(each) for each in values], losses) == chosen
    draws = [np.repeat(np.arange(COUNT), row.astype(int)) for row in bootstrap(lambda w: w, COUNT)]
    assert merging.chosen([list(each) for each in values], losses, draws, 0.5) == chosen


def test_the_flag_alone_allows_what_python_does():
    (most,) = (field.metadata["const"] for field in fields(RunConfig) if field.name == "warranty")
    assert most == LOSS


def test_the_guard_without_data_asks_for_the_order_of_the_base(monkeypatch):
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    rng = np.random.default_rng(0)
    known = dict(zip(GENERAL, rng.normal(size=(len(GENERAL), 8)), strict=True))
    name, loss = regression_check(Scorer(lambda texts: np.stack([known[text] for text in texts]), "base"))
    moved = {text: vector + rng.normal(0, 0.02, 8) for text, vector in known.items()}
    assert name == "general sentences"
    assert len(set(GENERAL)) == 144
    same = Scorer(lambda texts: np.stack([3 * known[text] for text in texts]), "same")
    assert loss(same) == pytest.approx(0, abs=1e-6)
    assert 0 < loss(Scorer(lambda texts: np.stack([moved[text] for text in texts]), "near")) < 0.3
    assert loss(Scorer(lambda texts: rng.normal(size=(len(texts), 8)), "random")) > 5


def documents(count):
    return [f"Sentence u{4 * n + k} tells how lot{n} was mended by owner{k}." for n in range(count) for k in range(4)]


def test_only_held_out_documents_are_asked_for():
    rows = [{"text": text, "document": n // 4} for n, text in enumerate(documents(40))]
    corpus = read_corpus(rows, document_column="document")
    held = np.arange(40)
    exam = held_exam(corpus, np.arange(40, 160), held)
    asked = {exam.documents[answer].name for query in exam.queries for answer in query.answers}
    assert len(exam.documents) == 40
    assert asked == {str(n) for n in range(10)}
    assert [len(half.queries) for half in exam.halves] == [5, 5]


def test_the_first_of_two_sentences_is_a_title():
    rows = [{"text": f"{what} of lot{n}", "document": n} for n in range(20) for what in ("title", "a long story")]
    corpus = read_corpus(rows, document_column="document")
    exam = held_exam(corpus, np.arange(16, 40), np.arange(16))
    assert {query.kind for query in exam.queries} == {"title"}
    assert len(exam.queries) == 8


def test_pairs_ask_for_their_partners():
    rows = [{"question": f"who has lot{n}", "answer": f"owner{n} has the red lot{n} now"} for n in range(40)]
    corpus = read_corpus(rows, text_columns=("question", "answer"))
    held = np.arange(8)
    exam = held_exam(corpus, np.arange(8, 40), held, pairs=True)
    assert {query.text for query in exam.queries} == set(corpus.texts(held, "question"))
    found = {letters(exam.documents[query.answers[0]].body) for query in exam.queries}
    assert found <= {letters(row["answer"]) for row in rows}


def test_nothing_is_kept_of_a_training_that_broke_the_encoder(base_of, monkeypatch):
    monkeypatch.delenv("SELFSENT_DATA", raising=False)
    texts = [Text(str(n), (), tuple(documents(60)[4 * n : 4 * n + 4])) for n in range(60)]
    exam, base, broken = draw_exam(texts, 60), load_encoder(base_of("static")), load_encoder(base_of("static"))
    broken.table.weight.data[:] = broken.table.weight[0]
    found = warranty(WeightInterpolation(base, broken), exam)
    assert found.alpha == 0
    assert found.line == (
        "Keep your model; rank with words: no share of the training is ahead of it in the exam by more than chance."
    )
    plain = found.to_json()
    assert [row["alpha"] for row in plain["candidates"]] == [0, 0.25, 0.5, 0.75, 1]
    assert plain["candidates"][0]["dev"]["gain"] == plain["candidates"][0]["loss"] == 0


def test_a_gain_that_costs_too_much_is_told():
    dev = [as_score(each) for each in (BASE, BASE + 5, BASE + 7)]
    tried = tuple(
        Candidate(share, each, each, loss) for share, each, loss in zip((0, 0.5, 1), dev, (0, 0.4, 1), strict=True)
    )
    refused, kept = (Warranty(tried, chosen, "queries", "STS-B dev", 0.5) for chosen in (0, 1))
    assert "100% of the training is +7.00" in refused.line
    assert "loses 1.00 points on STS-B dev, more than the 0.5 allowed" in refused.line
    assert kept.line.startswith("Kept 50% of the training. As search ranks, that is +5.00")
    assert (kept.alpha, refused.alpha) == (0.5, 0)
