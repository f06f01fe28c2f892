import math

import numpy as np
import pytest
import pytrec_eval

import selfsent
from selfsent.errors import DataError
from selfsent.evaluation.results import Result
from selfsent.evaluation.side_by_side import side_by_side
from selfsent.evaluation.tasks.retrieval import KnownItemTask, RetrievalTask, first_finds_rest, text_finds_partner
from selfsent.scorers.lexical import LexicalScorer
from selfsent.scorers.scorer import Scorer

PLANTS = ["oak", "elm", "fir", "ash", "yew", "fig"]
QUERIES, DOCUMENTS = 12, 150
METRICS = {"ndcg_cut.10": "score", "recip_rank": "mrr@10", "recall.100": "recall@100", "map": "map"}


class Scores(Scorer):
    """Gives each document of each query the score that a table has."""

    def __init__(self, scores, name="scores"):
        super().__init__(lambda texts: pytest.fail("encoded"), name)
        self.scores = np.asarray(scores, np.float32)

    def query_document_vectors(self, queries, texts, search=False):
        assert search
        rows, columns = ([int(text.split()[1]) for text in each] for each in (queries, texts))
        return self.scores[rows][:, columns], np.eye(len(columns), dtype=np.float32)


def made(seed=0, values=5):
    """Judgements with grades from -1 to 3, and scores of which many are equal."""
    rng = np.random.default_rng(seed)
    ids = [f"d{number}" for number in rng.permutation(10 * DOCUMENTS)[:DOCUMENTS]]
    grades = [
        {int(place): int(grade) for place, grade in zip(rng.permutation(DOCUMENTS)[:30], rng.integers(-1, 4, 30))}
        for _ in range(QUERIES)
    ]
    return ids, grades, rng.integers(0, values, (QUERIES, DOCUMENTS)) / 7


def task_of(ids, grades, **more):
    queries, documents = ([f"{kind} {n}" for n in range(count)] for kind, count in (("q", QUERIES), ("d", DOCUMENTS)))
    return RetrievalTask("toy", queries, documents, grades, ids, **more)


def by_pytrec(ids, grades, scores, depth=DOCUMENTS, itself=None):
    """The metrics as pytrec_eval has them of the first `depth`, times 100; MRR@10 from the ten that it ranks first."""
    judged = {f"q{row}": {ids[place]: grade for place, grade in each.items()} for row, each in enumerate(grades)}
    run, short = {}, {}
    for row, each in enumerate(np.asarray(scores, np.float32).tolist()):
        found = [pair for place, pair in enumerate(zip(each, ids)) if itself is None or place != itself[row]]
        first = sorted(found, reverse=True)[:depth]  # of equal scores the larger id first
        run[f"q{row}"], short[f"q{row}"] = ({name: score for score, name in best} for best in (first, first[:10]))
    found = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "recall.100", "map"}).evaluate(run)
    reciprocal = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(short)
    rows = [{**found[query], **reciprocal[query]} for query in found]
    return {ours: 100 * np.mean([row[theirs.replace(".", "_")] for row in rows]) for theirs, ours in METRICS.items()}


def figures(score):
    return {"score": score.score, **score.metrics}


@pytest.mark.parametrize("values", [2, 5, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_figures_are_those_of_pytrec_eval_with_ties(seed, values):
    ids, grades, scores = made(seed, values)
    found = figures(task_of(ids, grades).score(Scores(scores)))
    assert found == pytest.approx(by_pytrec(ids, grades, scores), abs=1e-6)


@pytest.mark.parametrize("depth", [1, 7, 40, DOCUMENTS - 1, DOCUMENTS])
def test_ties_at_the_end_of_what_is_looked_at(depth):
    ids, grades, scores = made(values=3)
    found = figures(task_of(ids, grades, depth=depth).score(Scores(scores)))
    assert found == pytest.approx(by_pytrec(ids, grades, scores, depth), abs=1e-6)


def test_the_size_of_a_block_changes_nothing():
    ids, grades, scores = made()
    whole = task_of(ids, grades).score(Scores(scores))
    assert figures(task_of(ids, grades, block=1).score(Scores(scores))) == figures(whole)


def test_documents_that_are_not_there_count_all_the_same():
    ids, grades, scores = made()
    absent = [{**each, DOCUMENTS + 5: 3, DOCUMENTS + 6: 1} for each in grades]
    found = figures(task_of(ids, absent).score(Scores(scores)))
    expected = by_pytrec([*ids, *(f"x{n}" for n in range(10))], absent, scores)
    assert found == pytest.approx(expected, abs=1e-6)
    assert found["score"] < figures(task_of(ids, grades).score(Scores(scores)))["score"]


@pytest.mark.parametrize("depth", [5, 1000])
def test_a_query_does_not_find_itself(depth):
    ids, grades, scores = made(values=10**6)
    itself = [row if row % 2 else -1 for row in range(QUERIES)]
    scores[np.arange(QUERIES), np.arange(QUERIES)] = 10**6
    found = figures(task_of(ids, grades, itself=itself, depth=depth).score(Scores(scores)))
    assert found == pytest.approx(by_pytrec(ids, grades, scores, depth, itself), abs=1e-6)


def test_a_judgement_of_itself_counts_as_not_found():
    task = RetrievalTask("toy", ["q 0"], ["d 0", "d 1", "d 2"], [{0: 1, 1: 1}], itself=[0])
    assert figures(task.score(Scores([[3, 2, 1]])))["recall@100"] == 50


def test_queries_without_an_answer_are_left_out():
    ids, grades, scores = made()
    without = [
        {place: min(grade, 0) for place, grade in each.items()} if row == 3 else each for row, each in enumerate(grades)
    ]
    rest = [row for row in range(QUERIES) if row != 3]
    task = task_of(ids, without, groups=np.arange(QUERIES) // 2, itself=list(range(QUERIES)))
    score = task.score(Scores(scores))
    assert score.n == QUERIES - 1
    others = [grades[row] for row in rest], scores[rest], DOCUMENTS, rest
    assert figures(score) == pytest.approx(by_pytrec(ids, *others), abs=1e-6)
    with pytest.raises(DataError, match="toy: no query has an answer"):
        task_of(ids, [{0: 0} for _ in range(QUERIES)])
    with pytest.raises(DataError, match="toy: 1 document to search in; at least two are needed"):
        RetrievalTask("toy", ["q"], ["d"], [{0: 1}])


def test_without_ids_an_earlier_document_stands_first():
    task = RetrievalTask("toy", ["q 0"], ["d 0", "d 1", "d 2"], [{1: 1}])
    assert task.score(Scores([[1, 1, 1]])).score == pytest.approx(100 / math.log2(3))


def test_systems_are_paired_and_say_what_they_were_scored_on():
    ids, grades, scores = made()
    task = task_of(ids, grades, of="sets, dev")
    one, same, other = (task.score(Scores(each)) for each in (scores, scores, scores[:, ::-1]))
    assert one.signature.startswith("toy|sets, dev|ndcg@10|cos|n:12|c:150|data:")
    assert one.title == "toy: nDCG@10 on sets, dev"
    results = [Result(name, {"toy": score}) for name, score in (("one", one), ("same", same), ("other", other))]
    compared = side_by_side(results)
    assert [each.p == 1 and each.high == 0 for each in compared.differences["toy"]] == [True, False]
    (secondary,) = compared.secondary_tables()
    assert [str(column.header) for column in secondary.columns] == ["model", "MRR@10", "recall@100", "MAP"]


SKIES = ("the sky over the town is blue", "there is a red car in front of the house")


def test_words_alone_find_the_document_that_has_them():
    task = RetrievalTask("toy", ["red cars", "rain"], [*SKIES, "it often rains in the mountains"], [{1: 1}, {2: 1}])
    assert task.lexical["bm25"].score == task.score(LexicalScorer("bm25")).score == 100
    assert task.lexical["tfidf"].score < 100


def test_the_rest_of_every_document_is_searched_as_one_text():
    documents = [[f"All about the {name}", f"An {name} grows.", "It has leaves."] for name in PLANTS]
    task = first_finds_rest([*documents, ["One sentence alone."]])
    assert task.queries == [f"All about the {name}" for name in PLANTS]
    assert task.documents == [f"An {name} grows. It has leaves." for name in PLANTS]
    assert task.grades == [{place: 1.0} for place in range(6)]
    assert task.summary == "the first sentence of a document finds the rest of it: 6 queries among 6 texts"
    assert task.score(LexicalScorer("bm25")).score == pytest.approx(100)
    with pytest.raises(DataError, match="search: no document has two sentences"):
        first_finds_rest([["One."], ["Two."]])
    with pytest.raises(DataError, match="no query"):
        KnownItemTask("this", ["a", "b"], {})


def test_of_rests_that_are_nearly_the_same_one_is_searched_and_is_the_answer_of_all():
    same = "The tree grows slowly in the north and has needles all year round, number {}."
    documents = [[f"About {name}.", same.format(number)] for number, name in enumerate(PLANTS)]
    task = first_finds_rest([*documents, ["About cars.", "They have wheels."]])
    assert task.documents == [same.format(0), "They have wheels."]
    assert task.grades == [{0: 1.0}] * 6 + [{1: 1.0}]
    assert np.unique(task.groups[:6]).size == 1  # drawn together
    assert task.groups[6] != task.groups[0]


def test_what_would_be_trivial_or_without_words_is_no_query_but_titles_are():
    documents = [
        ["The oak is a tree of Europe.", "As they say: the OAK is a tree, of Europe! It grows."],
        ["Oak", "An oak is a tree."],
        ["* * *", "Stars stand above."],
        ["What is an elm?", "A tree."],
        ["Oak", "Elms were ill."],
    ]
    task = first_finds_rest(documents)
    assert (task.queries, task.grades) == (["Oak", "What is an elm?"], [{1: 1.0, 4: 1.0}, {3: 1.0}])
    assert len(task.documents) == 5  # the others are still searched


@pytest.fixture
def pairs(tmp_path):
    """A corpus of rows of two texts."""

    def read(rows):
        (tmp_path / "pairs.csv").write_text("\n".join(["subject,body", *map(",".join, rows)]))
        return selfsent.read_corpus(tmp_path / "pairs.csv", text_columns=("subject", "body"), cache=tmp_path / "cache")

    return read


def test_partners_are_looked_for_among_all_of_the_other_column(pairs):
    corpus = pairs([("oak", "acorns"), ("oak", "bark"), ("elm", "bark"), ("fir", "cones"), ("car", "wheels")])
    task = text_finds_partner(corpus, np.array([0, 1, 2]))
    assert (task.queries, task.grades) == (["oak", "elm"], [{0: 1.0, 1: 1.0}, {1: 1.0}])
    assert task.documents[:2] == ["acorns", "bark"]
    assert set(task.documents) == {"acorns", "bark", "cones", "wheels"}
    assert task.groups[0] == task.groups[1]  # they share an answer
    assert task.summary == "a text of “subject” finds its “body”: 2 queries among 4 texts"


def test_a_query_among_the_texts_is_left_out_and_answers_are_always_among_them(pairs):
    task = text_finds_partner(pairs([("oak", "tree"), ("tree", "plant"), ("car", "wheels")]), np.array([0, 1]))
    assert task.queries == ["oak"]
    corpus = pairs([(f"query {n}", f"answer {n}") for n in range(20)])
    assert len(text_finds_partner(corpus, np.array([2, 3]), max_texts=4).documents) == 4
    task = text_finds_partner(corpus, np.arange(10, 16), max_texts=4)
    assert task.documents == [f"answer {n}" for n in range(10, 16)]
