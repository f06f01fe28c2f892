from collections import Counter
from functools import cache

import numpy as np
import pytest

from naive import passages
from selfsent.data.views.positives import WHOLE, Documents, Mixed, Span, Surroundings, Title

SIZES = (5, 1, 8, 2, 3)
"""Sentences of each document."""
NUMBERS = np.repeat(np.arange(len(SIZES)), SIZES)
ROWS = np.arange(len(NUMBERS))


@pytest.fixture(params=["in order", "scattered"])
def documents(request):
    """Documents whose rows follow each other, or lie anywhere; what is read is given as (document, place) pairs."""
    if request.param == "in order":
        return Documents(NUMBERS)
    return Documents(np.random.default_rng(1).permutation(NUMBERS))


@cache
def places_of(documents):
    """The document of each row, and its place there."""
    numbers = documents.numbers.tolist()
    return [(number, numbers[:row].count(number)) for row, number in enumerate(numbers)]


def read(documents, passage, key=0, rows=ROWS):
    """What the passage reads of each row: its document, its place there, and the places read."""
    rows_read, counts = passage(rows, key, documents)
    places, found, begin = places_of(documents), [], 0
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        part = [places[other] for other in rows_read[begin : begin + count].tolist()]
        assert {number for number, _ in part} <= {places[row][0]}, "another document"
        found.append((*places[row], [place for _, place in part]))
        begin += count
    assert begin == len(rows_read)
    return found


def ends(places):
    assert places == list(range(places[0], places[-1] + 1)), "not consecutive"
    return places[0], places[-1] + 1


@pytest.mark.parametrize("within", [1, 3])
def test_a_neighbour_is_any_other_sentence_near_enough_each_as_likely(documents, within):
    counts = Counter()
    for key in range(600):
        for number, place, (other,) in read(documents, Span("positive", within), key):
            counts[number, place, other] += 1
    for number, size in enumerate(SIZES):
        for place in range(size):
            allowed = passages.neighbours(size, place, within) or [place]  # alone: itself
            drawn = {other: counts[number, place, other] for other in range(size) if counts[number, place, other]}
            assert sorted(drawn) == allowed
            assert min(drawn.values()) > 600 / len(drawn) - 4 * np.sqrt(600 / len(drawn))


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("within", [1, 2])
def test_spans_are_the_ones_that_may_be_and_all_of_them_occur(documents, within, overlap):
    anchors, pairs = set(), set()
    drawn = {"within": within, "longest": 3, "overlap": overlap}
    for key in range(900):
        both = zip(*(read(documents, Span(part, **drawn), key) for part in ("anchor", "positive")), strict=True)
        for (number, place, anchor), (_, _, positive) in both:
            anchors.add((number, place, ends(anchor)))
            pairs.add((number, ends(anchor), ends(positive)))
    for number, size in enumerate(SIZES):
        longest = 3 if overlap else max(1, min(3, size - 1))  # a sentence must be left beside it
        for place in range(size):
            assert {span for n, p, span in anchors if (n, p) == (number, place)} == set(
                passages.spans_with(size, place, longest)
            )
        for anchor in {span for n, span, _ in pairs if n == number}:
            allowed = passages.positives(size, anchor, 3, within, overlap) or [anchor]
            assert {span for n, a, span in pairs if (n, a) == (number, anchor)} == set(allowed)


@pytest.mark.parametrize("within", [1, 3])
def test_surroundings_are_the_sentences_around_one_and_now_and_then_itself(documents, within):
    stayed = Counter()
    for key in range(300):
        for number, place, around in read(documents, Surroundings(within, kept=0.25), key):
            size = SIZES[number]
            stays = place in around
            assert around == passages.surroundings(size, place, within, stays)
            stayed[size == 1, stays] += 1
    assert stayed[True, False] == 0, "a sentence alone has nothing but itself"
    assert 0.2 < stayed[False, True] / (stayed[False, True] + stayed[False, False]) < 0.3


@pytest.mark.parametrize("passage", [Span("positive", 2, 3), Span("anchor", 1, 3), Surroundings(2)])
def test_what_is_read_depends_on_key_and_row_alone(documents, passage):
    alone = [read(documents, passage, 7, ROWS[row : row + 1])[0] for row in ROWS]
    assert alone == read(documents, passage, 7)
    assert alone != read(documents, passage, 8)


def test_a_title_is_the_first_sentence_and_finds_all_others(documents):
    anchors, positives = (read(documents, Title(part)) for part in ("anchor", "positive"))
    for (number, _, anchor), (_, _, positive) in zip(anchors, positives, strict=True):
        assert (anchor, positive) == passages.title(SIZES[number])


def test_a_document_is_read_as_far_as_an_encoder_reads():
    long = Documents(np.zeros(100, dtype=np.int64))
    for row in (0, 50, 99):
        read, _ = Surroundings(WHOLE, 0.0)(np.array([row]), 0, long)
        assert read.tolist() == passages.surroundings(100, row, 16, with_itself=False)


def test_both_views_of_a_mixture_are_of_one_kind_each_as_likely(documents):
    anchor = Mixed((None, Title("anchor"), None))
    positive = Mixed((Surroundings(WHOLE, 0.0), Title("positive"), Span("positive")))
    drawn = Counter()
    for key in range(300):
        both = zip(read(documents, anchor, key), read(documents, positive, key), strict=True)
        for (number, place, one), (_, _, other) in both:
            allowed = passages.mixed(SIZES[number], place, 100, with_itself=False)
            neighbour = passages.mixed(SIZES[number], place, 1, with_itself=False)["neighbour"]
            kinds = [kind for kind in ("surroundings", "title") if allowed[kind] == (one, other)]
            kinds += ["neighbour"] if (one, other) in neighbour else []
            assert kinds, "no kind reads these two"
            drawn[kinds[0] if len(kinds) == 1 else "several"] += 1
    assert min(drawn.values()) > 0.7 * 300 * sum(size - 1 for size in SIZES if size > 3) / 3
    assert set(drawn) == {"surroundings", "title", "neighbour", "several"}


def test_documents_know_how_many_sentences_they_have(documents):
    assert documents.sizes(ROWS).tolist() == [SIZES[number] for number in documents.numbers]
    assert (documents.largest_share(ROWS), documents.accompanied_share) == (
        pytest.approx(8 / 19),
        pytest.approx(18 / 19),
    )
    three = np.flatnonzero(documents.numbers == 4)
    assert documents.largest_share(three) == 1
