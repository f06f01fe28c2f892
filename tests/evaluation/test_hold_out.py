import numpy as np
import pytest

import selfsent
import tiny
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.hold_out import HoldOut, pair_groups


@pytest.fixture
def tickets(tmp_path):
    """1,600 tickets with a number each, and one sentence in each."""
    lines = ["id,body", *(f"{number},word{number} of ticket" for number in range(1600))]
    (tmp_path / "tickets.csv").write_text("\n".join(lines))
    return selfsent.read_corpus(
        tmp_path / "tickets.csv", text_column="body", document_column="id", cache=tmp_path / "cache"
    )


@pytest.fixture
def posts(tmp_path):
    """200 posts of three sentences."""
    sentences = tiny.make_sentences(600, seed=3)
    (tmp_path / "posts.txt").write_text("".join("\n".join(sentences[n : n + 3]) + "\n\n" for n in range(0, 600, 3)))
    return selfsent.read_corpus(tmp_path / "posts.txt", cache=tmp_path / "cache")


def test_a_small_corpus_is_scored_too(posts):
    found = HoldOut.of(posts, dev=True, notice=print)
    apart = [{*posts.documents[rows].tolist()} for rows in (found.train, found.dev, found.test)]
    assert [len(documents) for documents in apart] == [128, 32, 40]  # a fifth, and of the others a fifth again
    assert len(set.union(*apart)) == 200
    assert HoldOut.of(posts, dev=False, notice=print).test.tolist() == found.test.tolist()


def test_the_user_says_how_many(posts):
    found = HoldOut.of(posts, dev=True, notice=print, count=60)
    assert [len({*posts.documents[rows].tolist()}) for rows in (found.train, found.dev, found.test)] == [80, 60, 60]
    everything = HoldOut.of(posts, dev=False, notice=print, count=0)
    assert (len(everything.train), everything.test) == (600, None)
    with pytest.raises(SettingsError, match="--hold-out 0 leaves nothing to choose by"):
        HoldOut.of(posts, dev=True, notice=print, count=0)
    with pytest.raises(DataError, match="110 documents are kept to score by, and of the others: too few documents"):
        HoldOut.of(posts, dev=True, notice=print, count=110)
    with pytest.raises(DataError, match="too few documents to hold 199 out"):
        HoldOut.of(posts, dev=False, notice=print, count=199)


def test_a_run_on_a_small_corpus_has_a_score_with_a_wide_interval(posts, base_of, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    common = {"steps": 2, "batch_size": 8, "quiet": True}
    run = selfsent.train(posts, "mlm", base_of("bert"), tmp_path / "run", hold_out=50, **common)
    for name in ("base", "trained", "tfidf", "bm25"):
        assert run.scores[name]["low"] < run.scores[name]["score"] < run.scores[name]["high"]
    assert run.record["asked"]["corpus"]["sentences"] == 450
    assert "docs:50|" in run.scores["trained"]["signature"]
    page = (run.directory / "report.html").read_text()
    assert "BM25" in page
    assert selfsent.evaluate(run.model, documents=posts, hold_out=50).scores["context"].score == pytest.approx(
        run.scores["trained"]["score"], abs=0.01
    )


def test_documents_of_one_sentence_are_no_reason_not_to_train(tickets):
    said = []
    found = HoldOut.of(tickets, dev=False, notice=said.append)
    assert len(found.train) == len(tickets)
    assert found.test is None
    assert len(said) == 1
    assert said[0].startswith("no label-free score: no document has two different sentences: split texts")


def test_but_nothing_can_be_chosen_by_them(tickets):
    with pytest.raises(DataError, match="--split-sentences"):
        HoldOut.of(tickets, dev=True, notice=print)


def test_a_run_whose_score_cannot_be_taken_ends_well(base_of, tmp_path, monkeypatch):
    """As where held-out documents hold nothing but near-duplicates, which shows when they are scored."""
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))

    def hopeless(*given):
        raise DataError("no document has two different sentences")

    monkeypatch.setattr("selfsent.report.scoring.score_base", hopeless)
    held = np.arange(4)
    said = []
    run = selfsent.train(
        tiny.make_sentences(40), "mlm", base_of("bert"), tmp_path / "run", steps=2, batch_size=8,
        hold_out=HoldOut(np.arange(4, 40), None, held), progress=tiny.heard(notice=said.append),
    )  # fmt: skip
    assert run.record["status"] == "finished"
    assert run.scores is None
    assert "no label-free score: no document has two different sentences" in said
    card = (run.directory / "model" / "README.md").read_text()
    assert "Not scored: no documents were kept apart, or the corpus has none of several sentences." in card


@pytest.fixture
def pairs(tmp_path):
    """A corpus of rows of two texts, with documents where there is a third."""

    def read(rows):
        lines = ["a,b,thread"[: 3 if len(rows[0]) == 2 else None], *map(",".join, rows)]
        (tmp_path / "pairs.csv").write_text("\n".join(lines))
        column = None if len(rows[0]) == 2 else "thread"
        return selfsent.read_corpus(
            tmp_path / "pairs.csv", text_columns=("a", "b"), document_column=column, cache=tmp_path / "cache"
        )

    return read


def members(groups):
    return sorted(np.flatnonzero(groups == group).tolist() for group in np.unique(groups))


def test_pairs_that_share_a_text_are_one_group(pairs):
    # The first three are linked by q and by y; r is a query in one row and an answer in another.
    corpus = pairs([("q", "x"), ("q", "y"), ("p", "y"), ("r", "z"), ("s", "r"), ("t", "u")])
    assert members(pair_groups(corpus)) == [[0, 1, 2], [3, 4], [5]]


def test_pairs_of_one_document_are_one_group_too(pairs):
    corpus = pairs([("q", "x", "1"), ("r", "y", "1"), ("s", "z", "2"), ("t", "z", "3"), ("u", "v", "3")])
    assert members(pair_groups(corpus)) == [[0, 1], [2, 3, 4]]


def test_no_text_of_pairs_is_in_two_parts(pairs):
    rng = np.random.default_rng(0)
    rows = [(f"query {n // 2}", f"answer {n // 3}") for n in range(600)] + [
        (f"other {n}", f"own {n}") for n in range(300)
    ]
    rows = [rows[n] for n in rng.permutation(len(rows))]
    corpus = pairs(rows)
    found = HoldOut.of(corpus, dev=False, notice=print, pairs=True)
    one, other = corpus.texts(column="a"), corpus.texts(column="b")
    sides = [{text for row in part for text in (one[row], other[row])} for part in (found.train, found.test)]
    assert not sides[0] & sides[1]
    assert found.pairs
    groups = pair_groups(corpus)
    assert len({*groups[found.test].tolist()}) == round(0.2 * len({*groups.tolist()}))
    again = HoldOut.of(corpus, dev=False, notice=print, count=30, pairs=True)
    assert {*again.test.tolist()} < {*found.test.tolist()}  # the draw hangs on the texts alone
    assert found.summary(corpus).startswith(f"kept aside to score by: {len(found.test)} rows, which share no text")


def test_a_group_of_much_of_the_corpus_stays_in_training(pairs):
    corpus = pairs(
        [(f"query {n}", "the same answer to all") for n in range(200)] + [(f"q{n}", f"a{n}") for n in range(200)]
    )
    for count in (30, 150, 198):
        found = HoldOut.of(corpus, dev=False, notice=print, count=count, pairs=True)
        assert len(found.test) == count


def test_pairs_that_all_share_a_text_are_no_reason_not_to_train(pairs):
    corpus = pairs([(f"query {n}", "the same answer to all") for n in range(200)])
    said = []
    assert HoldOut.of(corpus, dev=False, notice=said.append, pairs=True).test is None
    assert said[0].startswith(
        "no search score: too few groups of pairs that share no text to hold any out: the corpus has 1"
    )


def test_context_cannot_choose_among_models_of_pairs_without_documents(pairs):
    corpus = pairs([(f"q{n}", f"a{n}") for n in range(400)])
    with pytest.raises(DataError, match="the corpus has no documents to find a next sentence in"):
        HoldOut.of(corpus, dev=True, notice=print, pairs=True)
    found = HoldOut.of(corpus, dev=True, notice=print, single=True, pairs=True)
    assert [len(rows) for rows in (found.train, found.dev, found.test)] == [256, 64, 80]
