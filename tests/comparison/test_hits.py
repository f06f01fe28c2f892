import numpy as np
import pytest
from tests.naive.deciding import hangs_on

from selfsent.comparison.hits import TOGETHER, HitsToJudge, hits_to_judge
from selfsent.data.judgements import Judgements
from selfsent.scorers.load_scorer import load_scorer

TEXTS = [f"text {number}" for number in range(30)]
QUERIES = [f"query {number}" for number in range(6)]


def models(count, seed=0):
    rng = np.random.default_rng(seed)
    tables = [dict(zip([*TEXTS, *QUERIES], rng.normal(size=(36, 5)), strict=True)) for _ in range(count)]
    return [load_scorer(lambda given, t=table: np.stack([t[text] for text in given])) for table in tables]


def rankings(scorers, query):
    found = []
    for scorer in scorers:
        cosines = scorer([query]) @ (scorer(TEXTS) / np.linalg.norm(scorer(TEXTS), axis=1, keepdims=True)).T
        found.append(sorted(range(len(TEXTS)), key=lambda text, row=cosines[0]: -row[text]))
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_the_order_follows_what_hangs_on_each_answer(count):
    scorers = models(count)
    hits = hits_to_judge(QUERIES, TEXTS, scorers, depth=7)
    for number, query in enumerate(QUERIES):
        ranked, own = rankings(scorers, query), [hit for hit in hits if hit.query == number]
        assert {hit.text for hit in own} == {text for each in ranked for text in each[:7]}
        assert len(own) == len({hit.text for hit in own})
        expected = [hangs_on(hit.text, ranked, 7) for hit in own]
        assert [hit.weight for hit in own] == pytest.approx(expected)
        assert expected == sorted(expected, reverse=True)
    first = [hit.query for hit in hits[: TOGETHER * len(QUERIES)]]
    assert first == [query for query in dict.fromkeys(first) for _ in range(TOGETHER)]  # a round has them all
    weights = [sum(hit.weight for hit in hits[at : at + TOGETHER]) for at in range(0, len(first), TOGETHER)]
    assert weights == sorted(weights, reverse=True)


def test_a_ranking_alone_is_judged_from_its_best_hit_on():
    scorers = models(1)
    own = [hit for hit in hits_to_judge(QUERIES, TEXTS, scorers, depth=4) if hit.query == 2]
    assert [hit.text for hit in own] == rankings(scorers, QUERIES[2])[0][:4]
    assert [hit.weight for hit in own] == pytest.approx([1, 1 / np.log2(3), 1 / 2, 1 / np.log2(5)])


def test_blocks_change_nothing():
    whole = hits_to_judge(QUERIES, TEXTS, models(2))
    assert hits_to_judge(QUERIES, TEXTS, models(2), scores_at_once=60) == whole


def test_a_session_goes_on_skips_and_takes_back(tmp_path):
    hits = hits_to_judge(QUERIES, TEXTS, models(2))
    names = [f"T-{number}" if number != hits[1].text else "" for number in range(30)]  # one text has no id
    hits = [hit for hit in hits if hit.query == hits[0].query]
    path = tmp_path / "mine.csv"
    asked, text = QUERIES[hits[0].query], [TEXTS[hit.text] for hit in hits]
    session = HitsToJudge(Judgements(path), QUERIES, TEXTS, names, hits)
    assert session.next == (asked, text[0])
    session.answer("y")
    assert session.next == (asked, text[2])
    session.skip()
    session.answer("n")
    assert session.undo()
    assert session.next == (asked, text[3])
    assert path.read_text() == f"query,id,relevant\n{asked},{names[hits[0].text]},1\n"
    again = HitsToJudge(Judgements(path), QUERIES, TEXTS, names, hits)
    assert again.next == (asked, text[2])
    assert not again.undo()
