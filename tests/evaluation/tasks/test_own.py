import numpy as np
import pytest
import scipy.stats

from naive.metrics import cosine
from selfsent.errors import DataError
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks.own import OWN

RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice([f"w{n}" for n in range(9)], 4)) for _ in range(30)]


def scored(kind, path, encoder):
    read, score = OWN[kind]
    return score(read(path), encoder)


@pytest.fixture
def save(tmp_path):
    def write(text):
        path = tmp_path / "mine.tsv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize("heading", ["", "first\tsecond\tgold\n"])
def test_pairs(save, model, heading):
    scores = RNG.uniform(0, 1, 15)
    lines = [f"{a}\t{b}\t{s}\n" for a, b, s in zip(TEXTS[:15], TEXTS[15:], scores, strict=True)]
    score = scored("pairs", save(heading + "".join(lines)), as_encoder(model))
    found = [cosine(*model.encode([a, b])) for a, b in zip(TEXTS[:15], TEXTS[15:], strict=True)]
    assert score.score == pytest.approx(100 * scipy.stats.spearmanr(found, scores)[0])
    assert (score.n, score.name) == (15, "mine")


def test_relevance(save, model):
    gold = {"w1 w2": [0, 3], "w7": [5], "zzz": [9]}
    lines = [f"{query}\t{TEXTS[row]}\n" for query, rows in gold.items() for row in rows]
    score = scored("relevance", save("query\ttext\n" + "".join(lines)), as_encoder(model))
    pool, expected = list(dict.fromkeys(TEXTS[row] for rows in gold.values() for row in rows)), []
    for query, rows in gold.items():
        ranked = sorted(pool, key=lambda text: -cosine(*model.encode([query, text])))
        expected.append(1 / (1 + min(ranked.index(TEXTS[row]) for row in rows)))
    assert score.score == pytest.approx(100 * np.mean(expected))
    assert score.n == 3


def test_relevance_of_constant_vectors_is_pessimistic(save):
    lines = "".join(f"q{n}\ttext {n}\n" for n in range(20))
    constant = as_encoder(lambda texts: np.ones((len(texts), 4)))
    assert scored("relevance", save(lines), constant).score == 0


def test_labels(save, model):
    lines = [f"{'good' if n % 2 else 'bad'} {TEXTS[n % 30]}\t{'plus' if n % 2 else 'minus'}\n" for n in range(60)]
    score = scored("labels", save("".join(lines)), as_encoder(model))
    assert score.score > 90
    assert score.n == 60


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("pairs", "a\tb\t1\nc\td\tx\n", "score 'x' is no number"),
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
def test_bad_files_are_one_line(save, kind, text, message):
    with pytest.raises(DataError, match=message) as caught:
        OWN[kind][0](save(text))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.tsv cannot be read"):
        OWN["pairs"][0](tmp_path / "nothing.tsv")


def test_a_query_that_is_a_text_too_does_not_count_against_itself(save):
    lines = "".join(f"{n} one\t{n} two\n{n} two\t{n} one\n" for n in range(20))
    pairs_together = as_encoder(lambda texts: np.eye(20)[[int(text.split()[0]) for text in texts]] + 0.01)
    assert scored("relevance", save(lines), pairs_together).score == 100


@pytest.mark.parametrize(("kind", "heading"), [("relevance", "query\trelevant text"), ("labels", "Text\tclass")])
def test_one_known_name_makes_a_heading(kind, heading, save):
    lines = [f"{heading}\n", *(f"{text}\t{'odd' if n % 2 else 'even'}\n" for n, text in enumerate(TEXTS))]
    assert len(OWN[kind][0](save("".join(lines)))) == len(TEXTS)


@pytest.mark.parametrize("score", ["nan", "n/a", "-"])
def test_a_missing_score_in_the_first_line_is_no_heading(score, save):
    with pytest.raises(DataError, match=f"the score '{score}' is no number"):
        OWN["pairs"][0](save(f"a\tb\t{score}\nc\td\t1\ne\tf\t2\n"))


def test_labels_by_the_classifier_that_is_asked_for(tmp_path, model):
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"{TEXTS[n % 30]} {n}\t{n % 2}\n" for n in range(60)))
    marks = [evaluate(model, labels=path, classifier=name).scores["mine"].signature for name in ("exact", "senteval")]
    assert marks[0] != marks[1]


def test_a_query_is_not_its_own_answer(save):
    texts = [f"text {n}" for n in range(40)]
    vectors = np.random.default_rng(0).normal(size=(40, 8))
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    own = [(text, text) for text in texts[::2]]
    scores = []
    for lines in (pairs, [*own, *pairs]):
        encoder = as_encoder(lambda given: np.stack([vectors[texts.index(text)] for text in given]))
        file = save("".join(f"{query}\t{text}\n" for query, text in lines))
        scores.append(scored("relevance", file, encoder).score)
    assert scores[1] <= scores[0] < 100  # the queries are among the texts of the second file
    with pytest.raises(DataError, match="the text of each line is its query itself"):
        scored("relevance", save("".join(f"{query}\t{text}\n" for query, text in own)), None)
