"""Programs above a search are what they are text by text."""

import numpy as np
import pytest

from naive import programs as naive
from selfsent.data.vector_files import inner
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.price import Price, price_of
from selfsent.exam.trial import encoders_in, kept
from selfsent.scorers import programs
from selfsent.scorers.lexical import bm25_of
from selfsent.scorers.load_scorer import check_model, is_directory_or_id, load_scorer
from selfsent.scorers.programs import Program, program_in

TEXTS = [
    "The pump of the boiler leaks. Water stands in the cellar since Monday.",
    "A key was lost at the gate. The guard has none to spare.",
    "The printer on the second floor prints nothing. Its lamp is red. Paper is there.",
    "Who orders new lamps for the hall?",
    "The gate does not open in the morning. The guard waits for the key.",
    "The boiler is cold again. The pump was mended last week.",
    "Paper for the printer is in the cellar.",
]
QUERIES = ["water pump in the cellar", "the lamp of the printer", "no key for the gate", "cold boiler"]
NAMES = ("bundled", "bundled+words")


def naively(name, kind, share):
    """The scores of each query, text by text."""
    encoder, words = load_scorer("bundled"), name.endswith("+words")
    asked, held = encoder.query_document_vectors(QUERIES, TEXTS, search=True)
    bm25 = bm25_of(QUERIES, TEXTS)
    lexical = 1.5 * words * (bm25.queries @ bm25.texts.T).toarray()
    more = {}
    if kind == "sentences":
        parts = [
            [part if part.endswith("?") else f"{part}." for part in text.rstrip(".").split(". ")] for text in TEXTS
        ]
        more["parts"] = [encoder.query_document_vectors(["x"], own, search=True)[1].tolist() for own in parts]
    return [
        getattr(naive, kind)(query.tolist(), held.tolist(), each.tolist(), share, **more)
        for query, each in zip(asked, lexical, strict=True)
    ]


@pytest.mark.parametrize("together", [2, 64])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("kind", "share"), [("sentences", 0.4), ("hubs", 0.5), ("feedback", 0.3)])
def test_a_program_scores_as_text_by_text(kind, share, name, together):
    scorer = Program(load_scorer(name), kind, share, together)
    found = inner(*scorer.query_document_vectors(QUERIES, TEXTS, search=True))
    np.testing.assert_allclose(found, naively(name, kind, share), atol=2e-6)
    plain = inner(*load_scorer(name).query_document_vectors(QUERIES, TEXTS, search=True))
    assert np.abs(found - plain).max() > 0.01
    nothing = Program(load_scorer(name), kind, 0.0).query_document_vectors(QUERIES, TEXTS, search=True)
    np.testing.assert_allclose(inner(*nothing), plain, atol=2e-6)


def test_only_so_many_neighbours_make_a_hub():
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 0, 1]]
    assert programs.crowds_of(vectors, 2).tolist() == [1, 1, 1, 0]
    assert programs.crowds_of(vectors, 99).tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 0])
    assert programs.crowds_of(vectors[:1]).tolist() == [0]


def test_queries_are_scored_in_parts_as_together():
    grades = [{0: 1.0}, {2: 1.0}, {4: 1.0}, {5: 1.0}]
    for kind in ("sentences", "hubs", "feedback"):
        scorer = load_scorer(f"bundled+words+{kind}:0.3")
        whole, parts = (RetrievalTask("x", QUERIES, TEXTS, grades, block=size) for size in (1 << 24, 1))
        np.testing.assert_array_equal(whole.measured(scorer), parts.measured(scorer))


def test_names_of_programs():
    name = "bundled+words+hubs:0.5"
    assert program_in("bundled+hubs:.5+words") == program_in(name) == ("bundled+words", "hubs", 0.5)
    assert [program_in(f"bundled+hubs:{one}") for one in ("1", "1.0", "1.", "01.00")] == [("bundled", "hubs", 1.0)] * 4
    assert program_in("bundled+hubs:0.50") == ("bundled", "hubs", 0.5)
    assert [program_in(each) for each in ("bundled+hubs:x", "bundled+hubs", "bundled+wonder:0.5")] == [None] * 3
    with pytest.raises(SettingsError, match=r"bundled\+hubs:1.5: the share of hubs is 1.5; it must be from 0 to 1"):
        program_in("bundled+hubs:1.5")
    assert not is_directory_or_id(name)
    assert encoders_in(name) == encoders_in("bundled+sentences:0.2+words") == ["bundled"]
    check_model(name)
    assert load_scorer(name).measure == "cos+1.5bm25+hubs:0.5"
    with pytest.raises(DataError, match="bm25 is no encoder, alone or with words"):
        load_scorer("bm25+hubs:0.5")
    with pytest.raises(DataError, match="cannot use it"):
        load_scorer(name).similarity(["a"], ["b"])


def test_the_price_counts_the_vectors_of_sentences(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path))
    size, sentences = load_scorer("bundled")(["a"]).shape[1], 13
    prices = [
        price_of(lambda name=name: load_scorer(name), ["bundled"], QUERIES, TEXTS)
        for name in ("bundled+words", "bundled+words+hubs:0.5", "bundled+words+sentences:0.4")
    ]
    assert prices[0].index == prices[1].index
    more = 100_000 * sentences / len(TEXTS) * size * 2 / 1e6
    assert prices[2].index - prices[0].index == pytest.approx(more)
    name = "bundled+words+sentences:0.4"
    slow = kept(load_scorer(name), name, Price(99, 0, 0, 0))
    slow.query_document_vectors(QUERIES, TEXTS, search=True)
    assert [*tmp_path.glob("vectors/*.sqlite")]
