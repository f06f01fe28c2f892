import numpy as np
import pytest

import selfsent
import tiny
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.hold_out import HoldOut, limited, pair_groups, split_documents


@pytest.fixture
def tickets(tmp_path):
    """1,600 tickets with a number each, and one sentence in each."""
    lines = ["id,body", *(f"{number},word{number} of ticket" for number in range(1600))]
    path = tmp_path / "tickets.csv"
    path.write_text("\n".join(lines))
    return selfsent.read_corpus(path, text_column="body", document_column="id", cache=tmp_path / "cache")


@pytest.fixture
def posts(tmp_path):
    """200 posts of three sentences."""
    sentences = tiny.make_sentences(600, seed=3)
    (tmp_path / "posts.txt").write_text("".join("\n".join(sentences[n : n + 3]) + "\n\n" for n in range(0, 600, 3)))
    return selfsent.read_corpus(tmp_path / "posts.txt", cache=tmp_path / "cache")


@pytest.fixture
def pairs(tmp_path):
    """A corpus of rows of two texts, with documents where there is a third."""

    def read(rows):
        column = "thread" if len(rows[0]) == 3 else None
        path, how = tmp_path / "pairs.csv", {"document_column": column, "cache": tmp_path / "cache"}
        path.write_text("\n".join(["a,b" + ",thread" * bool(column), *map(",".join, rows)]))
        return selfsent.read_corpus(path, text_columns=("a", "b"), **how)

    return read


def held_of(corpus, *options):
    return split_documents(corpus, *options)[1]


def test_split_keeps_documents_whole_and_holds_those_of_a_smaller_number(documents_of):
    corpus = documents_of(160)
    train, held = split_documents(corpus, 40)
    assert sorted([*train, *held]) == list(range(len(corpus)))
    assert not set(corpus.documents[train]) & set(corpus.documents[held])
    assert len(set(corpus.documents[held])) == 40
    few, default, many = (set(held_of(corpus, count)) for count in (30, None, 60))
    assert few < default < many


@pytest.mark.parametrize(
    ("documents", "sentences", "held"),
    [
        (160, 4, 32),  # a fifth of few
        (999, 4, 200),
        (1000, 4, 500),  # of more a tenth, no fewer than the minimum
        (6000, 4, 600),
        (30_000, 4, 2500),  # and no more than is scored
        (6000, 40, 500),  # but for the minimum
    ],
)
def test_how_much_is_held_out_by_default(numbered, documents, sentences, held):
    assert len(held_of(numbered(documents, sentences))) == held * sentences


def test_too_many_sentences_keep_the_documents_that_a_split_would_hold(numbered):
    corpus = numbered(30_000, 4)
    many = held_of(corpus, 3000)
    assert limited(corpus, many).tolist() == held_of(corpus).tolist()
    assert limited(corpus, many[:10_000]).tolist() == many[:10_000].tolist()
    assert len(limited(numbered(3, 11_000), np.arange(33_000))) == 11_000  # a document larger than all that is scored


def test_split_follows_documents_and_not_their_order(documents_of, corpus_of):
    there = documents_of(160)
    back = corpus_of([there.texts(range(row, row + 4)) for row in range(0, 640, 4)][::-1])
    held = [set(corpus.texts(held_of(corpus))) for corpus in (there, back)]
    assert held[0] == held[1] != set(there.texts(split_documents(there, seed=1)[1]))


def test_corpora_that_cannot_be_split_are_refused(documents_of, corpus_of):
    with pytest.raises(DataError, match=r"the corpus has 12, and 150 are needed; .*30 needs fewer"):
        split_documents(documents_of(12))
    with pytest.raises(DataError, match="too few documents to hold 30 out: the corpus has 31"):
        split_documents(documents_of(31), 30)
    with pytest.raises(SettingsError, match="is 29; an honest interval needs at least 30"):
        split_documents(documents_of(60), 29)
    single = corpus_of([[f"word{number}"] for number in range(150)])
    with pytest.raises(DataError, match="no document has two different sentences"):
        split_documents(single)
    single.documents = None
    with pytest.raises(DataError, match="no documents"):
        split_documents(single)


def test_a_small_corpus_is_scored_too(posts):
    found = HoldOut.of(posts, dev=True)
    apart = [{*posts.documents[rows].tolist()} for rows in (found.train, found.dev, found.test)]
    assert [len(documents) for documents in apart] == [128, 32, 40]  # a fifth, and of the others a fifth again
    assert len(set.union(*apart)) == 200
    assert HoldOut.of(posts, dev=False).test.tolist() == found.test.tolist()


def test_the_user_says_how_many(posts):
    found = HoldOut.of(posts, dev=True, count=60)
    assert [len({*posts.documents[rows].tolist()}) for rows in (found.train, found.dev, found.test)] == [80, 60, 60]
    everything = HoldOut.of(posts, dev=False, count=0)
    assert (len(everything.train), everything.test) == (600, None)
    with pytest.raises(SettingsError, match="0 leaves nothing to choose by"):
        HoldOut.of(posts, dev=True, count=0)
    with pytest.raises(DataError, match="110 documents are kept to score by, and of the others: too few documents"):
        HoldOut.of(posts, dev=True, count=110)
    with pytest.raises(DataError, match="too few documents to hold 199 out"):
        HoldOut.of(posts, dev=False, count=199)


def test_documents_of_one_sentence_are_no_reason_not_to_train(tickets):
    found = HoldOut.of(tickets, dev=False)
    assert (len(found.train), found.test) == (len(tickets), None)
    assert found.reason.startswith("no label-free score: no document has two different sentences: split texts")
    with pytest.raises(DataError, match=r"split.sentences"):  # but nothing can be chosen by them
        HoldOut.of(tickets, dev=True)


def test_a_run_whose_score_cannot_be_taken_ends_well(base_of, tmp_path, monkeypatch):
    """As where held-out documents hold nothing but near-duplicates, which shows when they are scored."""
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))

    def hopeless(*given):
        raise DataError("no document has two different sentences")

    monkeypatch.setattr("selfsent.pipeline.score_base", hopeless)
    notices = []
    run = selfsent.train(
        tiny.make_sentences(40), "mlm", base_of("bert"), tmp_path / "run", steps=2, batch_size=8,
        hold_out=HoldOut(np.arange(4, 40), None, np.arange(4)), progress=tiny.heard(notice=notices.append),
    )  # fmt: skip
    assert (run.record["status"], run.scores) == ("finished", None)
    assert "no label-free score: no document has two different sentences" in notices
    card = (run.directory / "model" / "README.md").read_text()
    assert "Not scored: no documents were kept apart, or the corpus has none of several sentences." in card


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # The first three are linked by q and by y; r is a query in one row and an answer in another.
        ([("q", "x"), ("q", "y"), ("p", "y"), ("r", "z"), ("s", "r"), ("t", "u")], [[0, 1, 2], [3, 4], [5]]),
        ([("q", "x", "1"), ("r", "y", "1"), ("s", "z", "2"), ("t", "z", "3"), ("u", "v", "3")], [[0, 1], [2, 3, 4]]),
    ],
)
def test_pairs_that_share_a_text_or_a_document_are_one_group(rows, expected, pairs):
    groups = pair_groups(pairs(rows))
    assert sorted(np.flatnonzero(groups == group).tolist() for group in np.unique(groups)) == expected


def test_no_text_of_pairs_is_in_two_parts(pairs):
    rows = [(f"query {n // 2}", f"answer {n // 3}") for n in range(600)]
    rows += [(f"other {n}", f"own {n}") for n in range(300)]
    corpus = pairs([rows[n] for n in np.random.default_rng(0).permutation(len(rows))])
    found = HoldOut.of(corpus, dev=False, pairs=True)
    one, other = corpus.texts(column="a"), corpus.texts(column="b")
    sides = [{text for row in part for text in (one[row], other[row])} for part in (found.train, found.test)]
    assert found.pairs
    assert not sides[0] & sides[1]
    groups = pair_groups(corpus)
    assert len({*groups[found.test].tolist()}) == round(0.2 * len({*groups.tolist()}))
    again = HoldOut.of(corpus, dev=False, count=30, pairs=True)
    assert {*again.test.tolist()} < {*found.test.tolist()}  # the draw hangs on the texts alone
    assert found.summary(corpus).startswith(f"kept aside to score by: {len(found.test)} rows, which share no text")


def test_a_group_of_much_of_the_corpus_stays_in_training(pairs):
    same = [(f"query {n}", "the same answer to all") for n in range(200)]
    corpus = pairs(same + [(f"q{n}", f"a{n}") for n in range(200)])
    for count in (30, 198):
        assert len(HoldOut.of(corpus, dev=False, count=count, pairs=True).test) == count
    found = HoldOut.of(pairs(same), dev=False, pairs=True)
    assert found.test is None
    assert found.reason.startswith(
        "no search score: too few groups of pairs that share no text to hold any out: the corp"
    )


def test_context_cannot_choose_among_models_of_pairs_without_documents(pairs):
    corpus = pairs([(f"q{n}", f"a{n}") for n in range(400)])
    with pytest.raises(DataError, match="the corpus has no documents to find a next sentence in"):
        HoldOut.of(corpus, dev=True, pairs=True)
