import numpy as np
import pytest
import scipy.stats

from naive.metrics import cosine
from selfsent.errors import DataError
from selfsent.evaluation.tasks.own import OWN, nearest_neighbours, v_measures
from selfsent.scorers.load_scorer import load_scorer

RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice([f"w{n}" for n in range(9)], 4)) for _ in range(30)]


@pytest.fixture
def scored(tmp_path):
    """Write lines of fields (or bytes) to a file, and score an encoder on it; or only read it."""

    def of(kind, lines, encoder=None):
        path = tmp_path / "mine.tsv"
        path.write_bytes(lines if isinstance(lines, bytes) else "".join("\t".join(r) + "\n" for r in lines).encode())
        rows = OWN[kind][0](path)
        return OWN[kind][1](rows, encoder) if encoder else rows

    return of


@pytest.mark.parametrize("heading", [[], [("first", "second", "gold")]])
def test_pairs(scored, model, heading):
    gold = RNG.uniform(0, 1, 15)
    pairs = list(zip(TEXTS[:15], TEXTS[15:], strict=True))
    lines = [(*pair, str(score)) for pair, score in zip(pairs, gold, strict=True)]
    score = scored("pairs", heading + lines, load_scorer(model))
    found = [cosine(*model.encode(list(pair))) for pair in pairs]
    assert score.score == pytest.approx(100 * scipy.stats.spearmanr(found, gold)[0])
    assert (score.n, score.name) == (15, "mine")


def test_relevance(scored, model):
    gold, expected = {"w1 w2": [0, 3], "w7": [5], "zzz": [9]}, []
    lines = [(query, TEXTS[row]) for query, rows in gold.items() for row in rows]
    score = scored("relevance", [("query", "text"), *lines], load_scorer(model))
    pool = list(dict.fromkeys(text for _, text in lines))
    for query, rows in gold.items():
        ranked = sorted(pool, key=lambda text: -cosine(*model.encode([query, text])))
        expected.append(1 / (1 + min(ranked.index(TEXTS[row]) for row in rows)))
    assert score.metrics["mrr@10"] == pytest.approx(100 * np.mean(expected))
    assert (score.n, score.name, score.title) == (3, "mine", "mine: nDCG@10")


def test_the_query_itself_does_not_count_against_it(scored):
    lines = [pair for n in range(20) for pair in ((f"{n} one", f"{n} two"), (f"{n} two", f"{n} one"))]
    together = load_scorer(lambda texts: np.eye(20)[[int(text.split()[0]) for text in texts]] + 0.01)
    assert scored("relevance", lines, together).score == 100


def test_a_query_is_not_its_own_answer(scored):
    texts = [f"text {n}" for n in range(40)]
    vectors = np.random.default_rng(0).normal(size=(40, 8))
    pairs, same = list(zip(texts[::2], texts[1::2], strict=True)), [(text, text) for text in texts[::2]]
    encoder = load_scorer(lambda given: np.stack([vectors[texts.index(text)] for text in given]))
    alone, more = (scored("relevance", lines, encoder).score for lines in (pairs, [*same, *pairs]))
    assert more <= alone < 100  # the queries are among the texts of the second file
    with pytest.raises(DataError, match="the text of each line is its query itself"):
        scored("relevance", same)


def test_labels_have_neighbours_and_groups_beside_the_accuracy(scored):
    lines = [(f"{'good' if n % 2 else 'bad'} {n}", "plus" if n % 2 else "minus") for n in range(40)]
    aside = load_scorer(lambda texts: np.array([[text.startswith("good"), 1] for text in texts], np.float32))
    found = scored("labels", lines, aside)
    assert (found.score, found.n) == (100, 40)
    assert found.metrics == pytest.approx({"nearest_neighbour": 100, "v_measure": 100})
    assert found.intervals["nearest_neighbour"] == (100, 100)
    assert found.to_json()["v_measures"] == pytest.approx([100] * 10)


def test_nearest_neighbours_by_hand():
    vectors, labels = RNG.standard_normal((40, 3)).astype(np.float32), RNG.integers(0, 3, 40)
    texts = [f"text {n % 31}" for n in range(40)]  # nine are there twice
    found = nearest_neighbours(vectors, labels, texts, block_rows=7)
    for row in range(40):
        others = [n for n in range(40) if texts[n] != texts[row]]
        nearest = max(others, key=lambda n: cosine(vectors[row], vectors[n]))
        assert found[row] == (labels[nearest] == labels[row])
    equal = nearest_neighbours(np.ones((4, 2), np.float32), np.array([0, 0, 0, 1]), list("abcd"))
    np.testing.assert_allclose(equal, [2 / 3, 2 / 3, 2 / 3, 0])  # as often right as chance
    assert not nearest_neighbours(np.ones((3, 2), np.float32), np.zeros(3, np.int64), ["a"] * 3).any()


def test_groups_that_are_apart_have_a_v_measure_of_one():
    labels, noise = np.repeat([0, 1, 2], 30), RNG.standard_normal((90, 5)).astype(np.float32)
    vectors = np.eye(3, 5, dtype=np.float32)[labels] + 0.01 * noise
    assert v_measures(vectors, labels, draws=4, drawn_rows=400) == pytest.approx([1.0] * 4)
    random = v_measures(noise, labels, draws=4, drawn_rows=400)
    assert max(random) < 0.3
    assert len(set(random)) > 1
    assert v_measures(noise, labels, draws=4, drawn_rows=400) == random


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("pairs", "a\tb\t1\nc\td\tx\n", "score 'x' is no number"),
        ("pairs", "a\tb\tnan\nc\td\t1\ne\tf\t2\n", "score 'nan' is no number"),  # and no heading
        ("pairs", "a\tb\t-\nc\td\t1\ne\tf\t2\n", "score '-' is no number"),
        ("pairs", "a\tb\t1\nc\td\n", "line 2: expected sentence1, sentence2, score"),
        ("pairs", "a\tb\t1\nc\t\t2\n", "has 1 row besides 1 row without text; at least two"),
        ("pairs", "a\tb\t1\nc\td\t\n", "line 2: expected sentence1, sentence2, score"),
        ("relevance", "a\tb\n", "has 1 row; at least two"),
        ("pairs", "a\tb\tmuch\nc\td\t2\n", "has 1 row below its heading; at least two"),
        ("pairs", "a\tb\t1\nc\td\t1\n", "all scores are 1: they must differ"),
        ("relevance", b"a\t\xff\n", "not UTF-8"),
        ("labels", "a\tx\n" * 15 + "b\ty\n" * 3, "'y' has 3 lines"),
    ],
)
def test_bad_files_are_one_line(scored, kind, text, message):
    with pytest.raises(DataError, match=message) as caught:
        scored(kind, text if isinstance(text, bytes) else text.encode())
    assert "\n" not in str(caught.value)


def test_rare_labels_are_left_out_and_counted(tmp_path):
    counts = (("a", 14), ("b", 3), ("c", 12), ("d", 1))
    lines = [f"text {label} {n}\t{label}" for label, count in counts for n in range(count)]
    (tmp_path / "t.tsv").write_text("\n".join(lines) + "\n")
    rows = OWN["labels"][0](tmp_path / "t.tsv")
    assert rows["label"] == [0] * 14 + [1] * 12
    assert rows["text"][14] == "text c 0"
    assert rows.warnings == ("t: left out 4 lines of labels with fewer than 12: 'b' (3), 'd' (1)",)


def test_a_tsv_of_pandas_is_read_with_its_quotes(tmp_path):
    (tmp_path / "t.tsv").write_text('text\tlabel\n"one\ntwo"\tx\n' + "".join(f"{n} it\t{n % 2}\n" for n in range(30)))
    (tmp_path / "w.tsv").write_bytes(b"text\tlabel\nDon\x92t\tx\n")
    with pytest.raises(DataError, match="cp1252"):
        OWN["labels"][0](tmp_path / "w.tsv")
    rows = OWN["labels"][0](tmp_path / "t.tsv")
    assert rows.warnings == ("t: left out 1 line of labels with fewer than 12: 'x' (1)",)
    assert len(rows["text"]) == 30


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.tsv cannot be read"):
        OWN["pairs"][0](tmp_path / "nothing.tsv")


@pytest.mark.parametrize(("kind", "heading"), [("relevance", "query\trelevant text"), ("labels", "Text\tclass")])
def test_one_known_name_makes_a_heading(kind, heading, scored):
    lines = [(heading,), *((text, "odd" if n % 2 else "even") for n, text in enumerate(TEXTS))]
    assert len(scored(kind, lines)) == len(TEXTS)
