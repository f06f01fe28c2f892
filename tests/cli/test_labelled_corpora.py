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
    done = train("--method", "cosine", "--text-columns", "a, b", "--score-column", "score", corpus=pairs).ok()
    assert "41 rows (40 duplicates dropped)" in done.err
    assert "rows with labels are not scored at the end: selfsent evaluate does it" in done.err
