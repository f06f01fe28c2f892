import csv

import pytest

import tiny


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A file of 40 pairs with a class and a score; every pair a second time, one with another second text."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    texts = tiny.make_sentences(81, seed=12)
    rows = [(texts[2 * n], texts[2 * n + 1], "xyz"[n % 3], n % 6, 1) for n in range(40)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("a", "b", "class", "score", "same"), *rows, *rows, (texts[0], texts[80], "x", 3, 1)])
    return path


def test_pairs_with_scores(train, pairs):
    done = train("--method", "cosine", "--text-columns", "a, b", "--score-column", "score", corpus=pairs)
    assert done.status == 0, done.err
    assert "41 rows (40 duplicates dropped)" in done.err
    assert "rows with labels are not scored at the end: selfsent evaluate does it" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mnrl",), "mnrl needs 2 text columns; the corpus has 1: name them with --text-columns"),
        (("softmax", "--text-columns", "a,b"), "softmax needs a class for each row, and the corpus has none"),
        (("softmax", "--text-columns", "a,b", "--label-column", "same"), "all 41 rows have the same class, 1"),
        (("cosine", "--text-columns", "a,b", "--label-column", "class"), "holds names, such as 'x': name their column"),
        (("cosine", "--text-columns", "a,b", "--score-column", "score", "--scale", "2"), "give --scale 5"),
        (("cross-encoder", "--text-columns", "a,b"), "with --score-column; --loss softmax learns classes"),
    ],
)
def test_what_a_method_lacks_is_said_in_one_line(arguments, said, train, pairs, tmp_path):
    text = () if "--text-columns" in arguments else ("--text-column", "a")
    assert said in train("--method", *arguments, *text, corpus=pairs).late_complaint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--text-columns", "a,b,c,d"), "text columns must be one to three different ones"),
        (("--text-columns", "a,c"), "no column 'c'; it has 'a', 'b', 'class', 'score', 'same'"),
        (("--text-columns", "a,b", "--score-column", "class"), "line 2: str 'x' in column 'class', which must hold a"),
    ],
)
def test_columns_that_cannot_be_read(arguments, said, train, pairs):
    assert said in train("--method", "cosine", *arguments, corpus=pairs).complaint
