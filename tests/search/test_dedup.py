from itertools import pairwise

import numpy as np
import pytest

import tiny
from naive.copies import kept_for, tfidf_cosines
from selfsent import dedup
from selfsent.data.corpus import read_corpus
from selfsent.errors import SettingsError
from selfsent.search import near
from selfsent.search.comparing import DedupLimits
from selfsent.search.dedup import copies_across, deduplicate, families_of_pairs, table_rows
from selfsent.search.families import Family, Stars
from selfsent.search.pairs import Pair
from selfsent.search.similarity import Similarity


@pytest.fixture
def read(tmp_path):
    return lambda source, **how: read_corpus(
        source, **{"metadata_columns": (), "min_rows": 1, **how}, cache=tmp_path / "cache"
    )


@pytest.fixture(scope="module")
def texts():
    """Sentences of two others, among them copies with one to four words changed."""
    random, plain = np.random.default_rng(1), tiny.make_sentences(240, seed=3)
    bases = [f"{one} {other}" for one, other in zip(plain[::2], plain[1::2], strict=True)]
    copies = []
    for number, text in enumerate(bases[:60]):
        words = text.split()
        for place in random.permutation(len(words))[: 1 + number % 4]:
            words[place] = f"new{number}"
        copies.append(" ".join(words))
    return [*bases, *copies]


def rows_of(found, count):
    """The row that is kept for each."""
    kept = list(range(count))
    for family in found.families:
        for other in family.others:
            kept[other] = family.kept
    return kept


@pytest.mark.parametrize("most", [5000, 0])
def test_near_copies_are_those_of_all_pairs(read, texts, most):
    limits = DedupLimits(exact=most, block=32)  # all pairs, or those that share a band
    corpus = read(texts)
    assert len(corpus) == len(texts)
    found = deduplicate(corpus, threshold=0.6, limits=limits)
    expected = kept_for(tfidf_cosines(texts), range(len(texts)), 0.6)
    assert rows_of(found, len(texts)) == expected
    assert 20 < found.dropped < 60
    assert found.kept.tolist() == [row for row, kept in enumerate(expected) if row == kept]


@pytest.mark.parametrize("weight", [0, 0.5])
def test_copies_by_vectors_are_those_of_all_pairs(read, texts, weight):
    vectors = np.random.default_rng(0).normal(size=(len(texts), 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    corpus = read(texts)
    similarity = Similarity(corpus, vectors, weight, "none")
    found = deduplicate(corpus, "meaning", 0.62, similarity=similarity, limits=DedupLimits(block=32, tile=50))
    words = np.array(tfidf_cosines(texts))
    scores = (vectors @ vectors.T + weight * words) / (1 + weight)
    expected = kept_for(scores.tolist(), range(len(texts)), 0.62)
    assert rows_of(found, len(texts)) == expected
    assert found.dropped > 20


def test_a_long_family_joins_the_one_that_is_kept(read):
    same = [f"the printer on the floor of the house does not answer {number}" for number in range(3000)]
    corpus = read(same)
    vectors = np.ones((len(same), 2), np.float32) / np.sqrt(np.float32(2))
    found = deduplicate(corpus, "meaning", 0.9, similarity=Similarity(corpus, vectors, 0))
    assert found.kept.tolist() == [0]
    assert len(found.families[0]) == 3000


def test_a_chain_is_no_family():
    chain = np.array([0, 1]), np.array([1, 2]), np.array([0.9, 0.9])
    stars = Stars(3)
    stars.join(*chain)
    assert stars.kept.tolist() == [0, 0, 2]
    closest = Stars(3)
    closest.join(np.array([0, 1]), np.array([2, 2]), np.array([0.8, 0.9]))
    assert closest.kept.tolist() == [0, 1, 1]
    assert closest.score.tolist() == pytest.approx([1, 1, 0.9])


PRINTER = "The printer in room 42 on the second floor is jammed again, please send someone"


@pytest.fixture
def tickets():
    return {
        "id": ["a", None, "c", "d", "e", "f"],
        "text": [
            PRINTER,
            PRINTER.replace("42", "43"),
            "",
            PRINTER.replace("is jammed", "is not jammed"),
            f"  {PRINTER}",
            f"{PRINTER} today",
        ],
        "when": ["2026-01-01", "2026-01-05", "2026-01-09", "2026-01-02", "2026-01-03", "2026-01-04T10:00"],
    }


def test_levels_and_guards(read, tickets):
    corpus = read(tickets, metadata_columns=("id", "when"))
    assert dedup(corpus, "exact").families == [Family(0, (4,), (1.0,))]
    near_copies = dedup(corpus)
    assert near_copies.kept.tolist() == [0, 2]  # a row without text is no copy
    assert near_copies.families[0].others == (1, 3, 4, 5)
    assert dedup(corpus, guard=["numbers"]).kept.tolist() == [0, 1, 2]
    assert dedup(corpus, guard=["negations"]).kept.tolist() == [0, 2, 3]
    told = next(table_rows(near_copies, corpus))
    assert told["differs"].splitlines() == ["row 1: 42 → 43", "d: + not", "e: exact copy", "f: + today"]
    assert (told["kept"], told["rows"], told["others"], told["other_rows"]) == ("a", 5, "row 1, d, e, f", "1, 3, 4, 5")


@pytest.mark.parametrize("most", [5000, 0])
def test_another_name_is_no_copy(read, most):
    limits = DedupLimits(exact=most)
    texts = [f"{PRINTER}, and ask {name} about it" for name in ("Smith", "Miller", "SMITH", "somebody")]
    assert deduplicate(read(texts), guard=["names"], limits=limits).kept.tolist() == [0, 1]
    assert deduplicate(read(texts), limits=limits).kept.tolist() == [0]


def test_the_row_that_stays(read, tickets):
    corpus = read(tickets, metadata_columns=("id", "when"))
    assert dedup(corpus, keep_row="longest").families[0].kept == 5
    assert dedup(corpus, threshold=0.7, keep_row="newest:when").families[0].kept == 1
    assert dedup(corpus, "exact", keep_row="newest:when").families == [Family(4, (0,), (1.0,))]
    numbers = read({**tickets, "when": [9, 10, 11, 1, 2, None]}, metadata_columns=("id", "when"))
    assert dedup(numbers, threshold=0.7, keep_row="newest:when").families[0].kept == 1
    for bad, reason in (("newest:", "without a column"), ("last", "it is first, longest")):
        with pytest.raises(SettingsError, match=reason):
            dedup(corpus, keep_row=bad)
    with pytest.raises(SettingsError, match="id cannot say which row is the newest, where 'a' is neither"):
        dedup(corpus, keep_row="newest:id")


def test_nothing_to_find(read):
    for texts in (["one text"], ["one text", "another of other words"], ["!!!", "???", "!?!"]):
        found = dedup(read(texts))
        assert (found.kept.tolist(), found.families) == (list(range(len(texts))), [])
    found = dedup(read(["same"] * 5))
    assert found.families == [Family(0, (1, 2, 3, 4), (1.0,) * 4)]


def test_a_huge_text_is_compared(read):
    huge = "word of many " * 50_000
    found = dedup(read([huge, huge + "more", "short"]))
    assert found.kept.tolist() == [0, 2]
    assert next(table_rows(found, read([huge, huge + "more", "short"])))["differs"] == "1: + more"


def test_bands_find_what_shares_half_the_weight():
    counts = near.WordCounts(near.near_words)
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in random.permutation(1000)[:30]) for _ in range(400)]
    copies = [" ".join([*text.split()[:20], *other.split()[:10]]) for text, other in pairwise(texts)]
    counts.add(texts + copies)
    one, other = near.signatures(texts[:-1], counts), near.signatures(copies, counts)
    shared = (one == other).mean()
    assert shared == pytest.approx(0.5**near.ROWS, abs=0.02)  # 20 words of 40: a Jaccard index of a half
    assert (one == other).any(1).mean() > 0.98


def test_copies_across_two_sides(read):
    texts = [PRINTER, PRINTER.upper(), "My mail is locked", f"{PRINTER} now", "my mail is locked!", "Another thing"]
    corpus = read(texts)
    assert copies_across(corpus, np.array([1, 3, 4, 5]), np.array([0])).tolist() == [1, 3]
    assert copies_across(corpus, np.array([4, 5]), np.array([0, 2])).tolist() == [4]
    pairs = read_corpus(
        {"a": ["one title", "one title"], "b": ["a body of words", "something else here"]}, text_columns=("a", "b")
    )
    assert copies_across(pairs, np.array([1]), np.array([0])).tolist() == []


def test_families_of_pairs(read):
    corpus = read(["a", "b", "c", "d", "b"])
    pairs = [Pair(0.9, 0, 1), Pair(0.8, 1, 2), Pair(0.95, 2, 3)]
    found = families_of_pairs(pairs, corpus)
    assert found.families == [Family(0, (1, 4), (0.9, 0.9)), Family(2, (3,), (0.95,))]
    assert found.threshold == pytest.approx(0.8)
    assert families_of_pairs([], corpus).families == [Family(1, (4,), (1.0,))]
