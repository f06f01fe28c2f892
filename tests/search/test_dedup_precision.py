import math

import numpy as np
import pytest

import tiny
from selfsent import dedup
from selfsent.data.corpus import read_corpus
from selfsent.errors import SettingsError
from selfsent.search.edits import edits, found_of_edits
from selfsent.search.precision import TAIL, TRIMMED, choose_threshold, expected_by_chance, neighbours_of_sample
from selfsent.search.similarity import Similarity


@pytest.fixture
def read(tmp_path):
    return lambda source: read_corpus(source, metadata_columns=(), min_rows=1, cache=tmp_path / "cache")


def test_the_chance_of_one_text_is_the_formula():
    scores = np.linspace(0.6, 0.2, TAIL)
    distances = [math.sqrt(1 - score) for score in scores]
    last = distances[-1]
    total = sum(last - each for each in distances[TRIMMED:-1]) + TRIMMED * (last - distances[TRIMMED])
    scale = total / (TAIL - TRIMMED - 1)
    expected = TAIL * math.exp(-(last - math.sqrt(1 - 0.7)) / scale)
    found = expected_by_chance(scores[None], np.array([0.7]))
    assert found[0, 0] == pytest.approx(1 - math.exp(-expected))
    copies = np.concatenate([[0.99, 0.9, 0.85], scores])[None]  # are no part of the tail
    assert expected_by_chance(copies, np.array([0.7])) == pytest.approx(found)


def test_the_chance_is_right_where_the_tail_is_exponential():
    random = np.random.default_rng(0)
    distances = 0.95 - np.sort(random.exponential(0.05, (4000, 100)), axis=1)[:, ::-1]
    scores = 1 - np.maximum(distances, 0) ** 2
    thresholds = np.array([0.5, 0.6, 0.7])
    actual = (scores[:, :1] >= thresholds).mean(0)
    ratio = expected_by_chance(scores, thresholds).mean(0) / actual
    assert (ratio > 0.9).all()  # too many rather than too few: a scale that is known badly widens the tail
    assert (ratio < 1.35).all()


def test_the_neighbours_of_a_sample(read):
    texts = tiny.make_sentences(150, seed=5)
    similarity = Similarity(read(texts))
    first, second = np.divmod(np.arange(150**2), 150)
    scores = similarity(first, second).reshape(150, 150)
    np.fill_diagonal(scores, -1)
    expected = -np.sort(-scores, axis=1)[:, :120]
    found = neighbours_of_sample(similarity, block_size=32)
    assert found.scores == pytest.approx(expected, abs=1e-5)
    assert found.rows.tolist() == [*range(150)]
    assert found.nearest.tolist() == scores.argmax(1).tolist()


@pytest.fixture(scope="module")
def planted():
    """Tickets of one template with three free words, and copies of every fifth with a word more."""
    random = np.random.default_rng(0)
    slots = [random.integers(0, 400, 3) for _ in range(900)]
    base = [f"printer a{one} in room b{two} of floor c{three} does not answer" for one, two, three in slots]
    copies = {f"{text} again": text for text in base[::5]}
    return list(dict.fromkeys([*base, *copies])), copies


def test_a_precision_is_kept_where_a_template_has_many_texts(read, planted):
    texts, copies = planted
    found = dedup(read(texts), precision=0.95)
    pairs = [(texts[family.kept], texts[other]) for family in found.families for other in family.others]
    true = np.mean([copies.get(other) == kept for kept, other in pairs])
    assert found.precision.reached
    assert 0.95 <= found.precision.precision <= 1
    assert found.precision.low <= found.precision.precision <= found.precision.high
    assert true > 0.92
    assert len(pairs) > 0.9 * len(copies)
    low = dedup(read(texts), threshold=0.3)
    assert low.dropped > 2 * found.dropped  # other texts of the template


def test_a_precision_that_no_threshold_has(read):
    texts = [f"a b c d e f g {number % 40} {number // 40}" for number in range(400)]
    told = choose_threshold(Similarity(read(texts)), 0.999)
    assert not told.reached
    assert told.threshold == 1
    assert "no threshold reaches that precision" in str(told)
    assert told.guard == ("order",)


def test_order_is_heeded_where_most_copies_have_another(read):
    random = np.random.default_rng(0)
    words = [f"word{number}" for number in range(3000)]
    base = [" ".join(random.choice(words, 12, replace=False)) for _ in range(300)]
    swapped = [" ".join([*text.split()[6:], *text.split()[:6]]) for text in base[:100]]
    copies = [f"{text} more" for text in base[-30:]]
    texts = [*base, *swapped, *copies]
    told = choose_threshold(Similarity(read(texts)), 0.95)
    assert told.reordered == pytest.approx(200 / 260)
    assert told.guard == ("order",)
    assert "77% of what is near has words in another order, and is taken for another text" in str(told)
    assert told.share == pytest.approx(60 / 430)
    found = dedup(read(texts), precision=0.95)
    assert {other for family in found.families for other in family.others} == {*range(400, 430)}
    few = choose_threshold(Similarity(read([*base, *swapped[:20], *copies])), 0.95)
    assert (few.guard, few.reordered) == ((), pytest.approx(40 / 100))
    assert "another order" not in str(few)


def test_what_no_precision_can_be_told_of(read, planted):
    with pytest.raises(SettingsError, match="from 100 texts or more, and the corpus has 2 different texts"):
        dedup(read(["one", "two"]), precision=0.9)
    corpus = read(planted[0])
    for how in ({"threshold": 0.8}, {"level": "exact"}):
        with pytest.raises(SettingsError, match="`precision` chooses the threshold"):
            dedup(corpus, precision=0.9, **how)
    with pytest.raises(SettingsError, match="above 0 and below 1"):
        dedup(corpus, precision=1)


def test_edits_of_a_text():
    text = "room 42 is closed for the whole day"
    made = edits([text, "ab", ""], np.arange(3))
    assert made["cut"] == ["room 42 is closed for the", "", ""]
    assert made["with another number"] == ["room 43 is closed for the whole day", "", ""]
    (before,), (after,) = zip(
        *[pair for pair in zip(text.split(), made["mistyped"][0].split(), strict=True) if pair[0] != pair[1]],
        strict=True,
    )
    assert sorted(before) == sorted(after)
    assert made["mistyped"][1:] == ["", ""]
    assert edits(["打印机没有反应请帮忙啊"], np.arange(1))["cut"] == ["打印机没有反应请"]  # by signs


def test_another_name():
    texts = ["please call Smith at once", "we saw Miller there", "no name is here"]
    made = edits(texts, np.arange(3))["with another name"]
    assert made == ["please call Miller at once", "we saw Smith there", ""]
    assert edits(texts[:1], np.arange(1))["with another name"] == [""]  # there is no other


def test_edits_that_a_guard_forbids_are_not_found(read):
    plain = tiny.make_sentences(60, seed=3)
    similarity = Similarity(read([f"{each} and ask {'Smith' if each < 'n' else 'Miller'} in room 4" for each in plain]))
    names = {"with another name", "with another number"}
    found = found_of_edits(similarity, 0.4)
    guarded = found_of_edits(similarity, 0.4, ["names", "numbers"])
    assert all(found[kind] > 0 for kind in names)
    assert all(guarded[kind] == 0 for kind in names)
    assert guarded["cut"] > 0


def test_the_share_of_edited_texts_that_is_found(read, planted):
    told = choose_threshold(Similarity(read(planted[0])), 0.95)
    assert {"cut", "mistyped"} <= {*told.found}
    assert all(0 <= share <= 1 for share in told.found.values())
    assert "of those cut" in str(told)
