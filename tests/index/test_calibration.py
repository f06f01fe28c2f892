import json
from shutil import copytree

import numpy as np
import pytest

from naive.conformal import cutoff as naive_cutoff
from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import VectorsFile, unit
from selfsent.errors import DataError, SettingsError
from selfsent.exam.calibrate import Searched, best_scores, calibrate
from selfsent.exam.exam import Exam, Query, Text
from selfsent.index import Index, write_index
from selfsent.index.calibration import (
    FILE,
    VERSION,
    Calibration,
    conformal_cutoff,
    nothing_here,
    queries_needed,
    read_calibrations,
    write_calibration,
)
from selfsent.integrity import signed
from selfsent.models.bases import resolve
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.models.opening import open_encoder
from selfsent.search import encode_to_file, search

TOPICS = ["printer", "invoice", "password", "coffee", "window", "bicycle", "garden", "violin", "harbour", "kitchen"]
WORDS = ["apple", "bread", "carpet", "dinner", "engine", "flower", "guitar", "hammer", "island", "jacket", "ladder"]
WORDS += ["market", "needle", "orange", "pencil", "rabbit", "silver", "ticket", "umbrella", "valley", "winter"]
WORDS += ["yellow"]
MADE = Calibration((0.2, 0.4, 0.6, 0.8), (0.1, 0.3, 0.5, 0.7), 1.5, "4 queries", 8, 10)


@pytest.fixture(scope="module")
def bundled():
    return open_encoder("bundled")


@pytest.fixture
def index(bundled, tmp_path):
    random = np.random.default_rng(0)

    def sentence(topic):
        return f"The {topic} " + " ".join(random.choice(WORDS, 8)) + "."

    rows = [
        {"id": f"{topic}{n}", "body": " ".join(sentence(topic) for _ in range(3))} for topic in TOPICS for n in range(4)
    ]
    corpus = read_corpus(rows, text_column="body", metadata_columns=["id"], cache=tmp_path / "cache")
    write_index(bundled, corpus, tmp_path / "i", "bundled", fingerprint(bundled), id_column="id")
    return Index(tmp_path / "i")


@pytest.mark.parametrize("rate", [0.5, 0.75, 0.9, 0.95])
@pytest.mark.parametrize("count", [1, 3, 9, 19, 20, 99, 137])
def test_the_cutoff_is_that_of_the_definition(count, rate):
    scores = np.random.default_rng(count).integers(0, 50, count) / 50  # with ties
    expected = naive_cutoff(scores.tolist(), rate)
    if expected is None:
        assert count < queries_needed(rate)
        with pytest.raises(DataError, match=f"needs {queries_needed(rate)} at least"):
            conformal_cutoff(scores.tolist(), rate)
    else:
        assert count >= queries_needed(rate)
        assert conformal_cutoff(scores.tolist(), rate) == expected


def test_new_scores_reach_the_cutoff_as_often_as_stated():
    random = np.random.default_rng(0)
    reached = [random.random() >= conformal_cutoff(random.random(19).tolist(), 0.9) for _ in range(4000)]
    assert np.mean(reached) == pytest.approx(0.9, abs=0.015)  # ⌊20 · 0.1⌋ / 20; without the correction 0.95


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, float("nan")])
def test_rates_that_no_cutoff_has_are_refused(rate):
    with pytest.raises(SettingsError, match="above 0 and below 1"):
        conformal_cutoff([0.5], rate)


def test_a_calibration_says_what_it_promises():
    about = MADE.about(0.6)
    assert about == {"answer_rate": 0.6, "cutoff": 0.4, "false_answer_rate": 0.5, "measured_on": "4 queries"}
    assert "10 of 100 queries that have an answer" in nothing_here(0.9, "4 queries")
    assert "measured on 4 queries" in nothing_here(0.9, "4 queries")


@pytest.mark.parametrize(
    ("texts", "rows", "current"), [(8, 10, True), (10, 12, True), (8, 13, False), (6, 10, True), (5, 10, False)]
)
def test_a_quarter_of_changes_puts_it_out_of_date(texts, rows, current):
    assert MADE.is_current(texts, rows) == current


def test_its_file_is_checked(tmp_path):
    other = Calibration((0.5,), (0.5,), 0.0, "1 query", 8, 10)
    write_calibration(tmp_path, MADE)
    write_calibration(tmp_path, other)
    write_calibration(tmp_path, MADE)
    assert read_calibrations(tmp_path) == [other, MADE]
    text = (tmp_path / FILE).read_text()
    for damaged in (
        text.replace("0.2", "0.1", 1),
        "[]",
        "{",
        json.dumps(signed({"version": VERSION, "calibrations": [3]})),
    ):
        (tmp_path / FILE).write_text(damaged)
        with pytest.raises(DataError, match="is damaged: remove it"):
            read_calibrations(tmp_path)
    (tmp_path / FILE).write_text(json.dumps(signed({"version": 99})))
    assert read_calibrations(tmp_path) == [], "of another version: it is measured again"


def test_hits_below_the_cutoff_are_not_shown(index, bundled):
    queries = [index.texts([0])[0], "quantum chromodynamics of gluons"]
    vectors = encode(bundled, queries, side="query")
    with pytest.raises(SettingsError, match="has no calibration"):
        index.search(vectors, texts=queries, answer_rate=0.8)
    made = calibrate(index, bundled)
    assert len(made.answered) == len(made.unanswered) > 20
    assert all(one >= other for one, other in zip(made.answered, made.unanswered, strict=True))
    cutoff = made.cutoff(0.8)
    everything = index.search(vectors, texts=queries)
    found = index.search(vectors, texts=queries, answer_rate=0.8)
    assert found == [[hit for hit in hits if hit.score >= cutoff] for hits in everything]
    assert found[0]
    assert not found[1]
    assert index.search(vectors, texts=queries, answer_rate=0.8, where="id=harbour1") == [[], []], "not its own"
    with pytest.raises(SettingsError, match=r"weight of words of 1\.5 and 200 candidates of bundled: measure it"):
        index.search(vectors, texts=queries, answer_rate=0.8, rerank="bundled")
    with pytest.raises(SettingsError, match="weight of words of 0"):
        index.search(vectors, answer_rate=0.8)
    calibrate(index, bundled, 0.0)
    assert index.search(vectors, answer_rate=0.8) == [
        [hit for hit in hits if hit.score >= index.calibration(0.0).cutoff(0.8)] for hits in index.search(vectors)
    ]


def test_it_stays_through_a_compaction_and_ends_with_a_quarter(index, bundled):
    calibrate(index, bundled)
    index.delete(["printer1"])
    index.compact()
    assert index.calibration().texts == 40
    index.upsert([{"id": f"n{n}", "body": f"A new text about {n} things."} for n in range(11)], bundled)
    with pytest.raises(SettingsError, match="more than a quarter"):
        index.calibration()


def test_given_queries_take_the_place_of_drawn_ones(index, bundled):
    queries = [f"a {topic} is broken" for topic in TOPICS]
    made = calibrate(index, bundled, queries=queries)
    best = index.search(encode(bundled, queries, side="query"), 1, queries)
    assert made.answered == pytest.approx([hits[0].score for hits in best])
    assert made.made_of == "10 given queries"


def test_queries_too_few_for_the_rate_leave_the_index_its_calibration(index, bundled):
    first = calibrate(index, bundled)
    with pytest.raises(DataError, match=r"there is 1 query to measure by, and an answer rate of 0\.9 needs 9 at least"):
        calibrate(index, bundled, queries=["a printer is broken"], answer_rate=0.9)
    assert index.calibration() == first


def test_a_reranker_has_a_cutoff_of_its_own(index, bundled):
    first = calibrate(index, bundled)
    same = calibrate(index, bundled, rerank="bundled")  # it gives the same scores again
    assert same.answered == pytest.approx(first.answered, abs=2e-3)
    assert same.unanswered == pytest.approx(first.unanswered, abs=2e-3)
    made = calibrate(index, bundled, 0.0, rerank="bundled", candidates=5)
    assert len(read_calibrations(index.path)) == 3
    queries = ["the printer is broken", "the violin plays", "quantum chromodynamics of gluons"]
    vectors = encode(bundled, queries, side="query")
    how = {"texts": queries, "rerank": "bundled", "candidates": 5, "lexical_weight": 0.0}
    everything, found = index.search(vectors, **how), index.search(vectors, **how, answer_rate=0.5)
    assert found == [[hit for hit in hits if hit.score >= made.cutoff(0.5)] for hits in everything]
    assert sum(map(len, found)) < sum(map(len, everything))


def test_a_reranker_of_fewer_candidates_has_another_cutoff(index, bundled):
    query = "the printer is broken"
    vectors, how = encode(bundled, [query], side="query"), {"texts": [query], "rerank": "bundled", "answer_rate": 0.5}
    calibrate(index, bundled, rerank="bundled", candidates=5)
    for candidates in (4, None):
        with pytest.raises(SettingsError, match=rf"no calibration for .* {candidates or 200} candidates of bundled"):
            index.search(vectors, **how, candidates=candidates)
    few = calibrate(index, bundled, rerank="bundled", candidates=4)
    assert len(read_calibrations(index.path)) == 2
    [hits] = index.search(vectors, **how, candidates=4)
    assert all(hit.score >= few.cutoff(0.5) for hit in hits)


def test_a_corpus_has_the_cutoff_of_its_index(index, bundled, tmp_path):
    corpus = read_corpus(index.texts(range(len(index))), cache=tmp_path / "other", min_rows=1)
    one, other = calibrate(index, bundled), calibrate(corpus, bundled)
    assert one.answered == pytest.approx(other.answered, abs=2e-3)  # an index has 16 bits
    assert one.unanswered == pytest.approx(other.unanswered, abs=2e-3)
    assert other.made_of.endswith("of the corpus")
    encode_to_file(bundled, corpus, tmp_path / "v.npy")
    assert calibrate(corpus, bundled, file=VectorsFile(tmp_path / "v.npy")) == other
    asked = calibrate(corpus, "bundled", queries=["the printer is broken", "a violin"])
    best = search("bundled", corpus, ["the printer is broken", "a violin"], 1)
    assert asked.answered == pytest.approx([hits[0].score for hits in best])
    with pytest.raises(SettingsError, match="names no encoder"):
        calibrate(corpus)


def test_what_a_text_is_about_is_asked_for(bundled, tmp_path, monkeypatch):
    """Not what is said by the way, and of texts without sentences a piece."""
    random, asked = np.random.default_rng(0), []
    texts = []
    for place, topic in enumerate(TOPICS):
        sentences = [f"The old {topic} was sold and repaired.", f"Who repaired the {topic} sold it."]
        sentences.insert(place % 3, " ".join(random.choice(WORDS, 8, replace=False)).capitalize() + ".")
        texts.append(" ".join(sentences))
    monkeypatch.setattr(
        "selfsent.exam.calibrate.best_scores", lambda exam, *rest: (asked.append(exam), (np.ones(9), np.ones(9)))[1]
    )
    calibrate(read_corpus(texts, cache=tmp_path / "a", min_rows=1), bundled)
    assert len(asked[0].queries) == len(TOPICS)
    assert all("repaired" in query.text for query in asked[0].queries)
    pieces = [" ".join(f"word{each}" for each in random.integers(500, size=70)) for _ in range(12)]
    calibrate(read_corpus(pieces, cache=tmp_path / "b", min_rows=1), bundled)
    assert {len(query.text.split()) for query in asked[1].queries} <= {20, 10}
    assert len(asked[1].queries) == 12


def test_the_best_scores_with_an_answer_and_without(bundled):
    texts = ["The printer is dead. It prints no page.", "A printer of the office prints.", "The violin plays in C."]
    vectors = unit(encode(bundled, texts, side="document"))
    searched = Searched("texts", texts, vectors, bundled, 0.0, 0.0, None, None, 3, 3, lambda _: [])
    exam = Exam(
        [Text(str(place), (), (text,)) for place, text in enumerate(texts)],
        [Query("the printer is dead", "sentence", (0,)), Query("the violin plays", "sentence", (2,))],
    )
    cosines = unit(encode(bundled, [query.text for query in exam.queries], side="query")) @ vectors.T
    answered, unanswered = best_scores(exam, searched)
    assert answered == pytest.approx([cosines[0, 0], cosines[1, 2]], abs=1e-5)
    assert unanswered == pytest.approx([cosines[0, 1], cosines[1, :2].max()], abs=1e-5)


def test_texts_of_one_sentence_ask_nothing(bundled, tmp_path):
    corpus = read_corpus(["a red car", "a blue car"], cache=tmp_path / "cache", min_rows=1)
    write_index(bundled, corpus, tmp_path / "i", "bundled", fingerprint(bundled))
    with pytest.raises(DataError, match="needs 9 texts of three sentences"):
        calibrate(Index(tmp_path / "i"), bundled)
    assert not (tmp_path / "i" / FILE).exists()
    with pytest.raises(DataError, match=r"rate of 0\.5 needs 1 text of three sentences"):
        calibrate(Index(tmp_path / "i"), bundled, answer_rate=0.5)


def test_a_reranker_that_was_retrained_in_its_place_has_no_cutoff_yet(index, bundled, tmp_path):
    strong, query = tmp_path / "strong", "the printer is broken"
    copytree(resolve("bundled"), strong)
    vectors, how = encode(bundled, [query], side="query"), {"texts": [query], "answer_rate": 0.5}
    before = calibrate(index, bundled, rerank=strong)
    strong.rename(tmp_path / "moved")
    assert index.search(vectors, **how, rerank=tmp_path / "moved")
    model = load_encoder(tmp_path / "moved")
    model.put_rows(model.words.weight.detach().roll(1, 0))
    model.save(strong)
    with pytest.raises(SettingsError, match=r"no calibration for .* 200 candidates of .*strong: measure it"):
        index.search(vectors, **how, rerank=strong)
    made = calibrate(index, bundled, rerank=strong)
    assert made.answered != before.answered
    assert read_calibrations(index.path) == [made], "nobody asks for the old one again"
    assert index.search(vectors, **how, rerank=strong)
    for loaded in (bundled, model):
        other = calibrate(index, bundled, rerank=loaded)
        assert other.fingerprint == fingerprint(loaded)
        index.search(vectors, **how, rerank=loaded)
