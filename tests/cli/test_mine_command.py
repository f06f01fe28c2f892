import json

import pytest

import tiny
from naive.comparisons import hardest
from selfsent.search import search


@pytest.fixture(scope="module")
def faq(tmp_path_factory):
    """Twelve pairs."""
    path, texts = tmp_path_factory.mktemp("faq") / "faq.csv", tiny.make_sentences(24, seed=3)
    path.write_text("\n".join(["q,a", *(f"{q},{a}" for q, a in zip(texts[:12], texts[12:], strict=True))]))
    return path


def test_negatives_are_what_search_ranks_first_below_the_guard(selfsent, model, faq, tmp_path):
    output = tmp_path / "mined.csv"
    done = selfsent(
        "mine", model, faq, "--text-columns", "q,a", "--output", output, "--negatives", 2, "--max-relative-score", 0.9
    ).ok()
    rows = tiny.rows_of(output)
    from selfsent import read_corpus

    answers = read_corpus(faq, text_column="a")
    texts, pairs = answers.texts(), tiny.rows_of(faq)
    found = search(str(model), answers, [pair["q"] for pair in pairs], top=12)
    wanted = []
    for pair, hits in zip(pairs, found, strict=True):
        scores = {texts[hit.row]: hit.dense_score + 0.5 * hit.lexical_score for hit in hits}
        partner = scores.pop(pair["a"])
        best = hardest([*scores.values()], partner, 2, 0.9)
        wanted += [(pair["q"], pair["a"], [*scores][n], partner, [*scores.values()][n]) for n in best if n >= 0]
    assert [(row["q"], row["a"], row["negative"]) for row in rows] == [row[:3] for row in wanted]
    numbers = [[float(row["score"]), float(row["negative_score"])] for row in rows]
    assert numbers == [pytest.approx(row[3:], abs=1e-5) for row in wanted]
    assert f"{len(rows)} hard negatives of 12 pairs" in done.err
    assert ("more would be above 90% of the partner's score" in done.err) == (len(rows) < 24)
    assert len(rows) > 4


def test_mined_files_and_runs_that_mine_train(selfsent, train, model, faq, tmp_path):
    output = tmp_path / "mined.parquet"
    selfsent("mine", model, faq, "--text-columns", "q,a", "--output", output, "--by", "base", "--at-most", 1).ok()
    train("--method", "mnrl", "--text-columns", "q,a,negative", corpus=output, output=tmp_path / "file").ok()
    assert json.loads((tmp_path / "file" / "run.json").read_text())["config"]["options"]["hard_negatives"]
    for number, more in enumerate([(), ("--teacher", "search", "--mined-by", "words")]):
        run = ("--method", "mnrl", "--text-columns", "q,a", "--mined", 2, *more)
        train(*run, corpus=faq, output=tmp_path / f"run{number}").ok()
    texts = tmp_path / "texts.csv"
    parts = [text.capitalize() + "." for text in tiny.make_sentences(60, seed=9)]
    texts.write_text("\n".join(["text", *(f"{a} {b} {c}" for a, b, c in zip(*[iter(parts)] * 3, strict=True))]))
    whole = ("--positives", "title,document", "--mined", 2, "--teacher", "search")
    train("--method", "neighbours", *whole, corpus=texts, output=tmp_path / "documents").ok()


def test_what_cannot_be_mined_is_refused(selfsent, train, model, faq, tmp_path):
    output = tmp_path / "mined.csv"
    refused = selfsent("mine", model, faq, "--text-column", "q", "--output", output)
    assert "mine reads pairs: give two --text-columns, such as --text-columns question,answer" in refused.complaint
    refused = selfsent("mine", model, faq, "--output", output, "--at-most", 0)
    assert "--max-relative-score is 0.0; it must be above 0" in refused.complaint
    given = ("--method", "neighbours", "--mined", 2)
    assert "give --positives document or title" in train(*given).complaint
    assert "a teacher ranks mined negatives" in train("--method", "mnrl", "--teacher", "search").complaint
    given = ("--method", "mnrl", "--text-columns", "q,a", "--mined", 2, "--teacher", model)
    assert "is no cross-encoder: give one, or --teacher search" in train(*given, corpus=faq).complaint
    assert not output.exists()
