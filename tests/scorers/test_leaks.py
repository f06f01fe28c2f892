import json

import pytest

from selfsent.evaluation.side_by_side import side_by_side
from selfsent.evaluation.suites import evaluate
from selfsent.report.evaluation import Report
from selfsent.scorers.leaks import holds_stsb, trained_on
from selfsent.scorers.load_scorer import Scorer

STSB = "mteb/stsbenchmark-sts::train"


@pytest.fixture
def record(tmp_path):
    """Write the record of a run; returns the directory of its model."""

    def of(name, **asked):
        (tmp_path / name / "model").mkdir(parents=True)
        (tmp_path / name / "run.json").write_text(json.dumps({"asked": asked}))
        return tmp_path / name / "model"

    return of


@pytest.fixture
def results(model, write):
    """Two models on two tasks, the second one trained on STSb."""
    texts = [f"w{n} w{n % 3}" for n in range(30)]
    columns = {"sentence1": texts, "sentence2": texts[::-1], "score": [float(n % 5) for n in range(30)]}
    for name in ("sts12-sts", "stsbenchmark-sts"):
        root = write(f"mteb/{name}/test.parquet", **columns)
    models = (Scorer(model.encode, "clean"), Scorer(model.encode, "stained", trained_on=[STSB]))
    return [evaluate(each, suite="sts", data=root) for each in models]


NAMES = """data/STS-B.tsv, PhilipMay/stsb_multi_mt, sentence-transformers/stsb, sts_b.csv, sts_benchmark.csv,
STS benchmark/train.tsv, stsbench.csv, data/STSBenchmark"""
OTHERS = "nli.jsonl, stsbx.csv, sts_books.csv, tests_b.csv, posts benchmark.csv, sts12.tsv, guestsbook.txt"


def test_stsb_is_known_by_its_names():
    assert all(holds_stsb(["other.txt", source]) for source in [STSB, *NAMES.replace("\n", " ").split(", ")])
    assert not holds_stsb(OTHERS.split(", "))


def test_the_corpora_of_a_run_and_of_its_bases_are_found(record):
    first = record("first", base="bundled-raw", corpus={"source": STSB})
    second = record("second", base=str(first), corpus={"source": "tickets.csv"})
    assert trained_on(second) == ("tickets.csv", STSB)
    assert trained_on(second.parent / "elsewhere") == ()
    stages = {"one": {"corpus": {"source": "a.txt"}}, "two": {"corpus": {"source": ["b.txt", STSB]}}}
    assert trained_on(record("recipe", base="bundled-raw", stages=stages)) == ("a.txt", "b.txt", STSB)
    assert trained_on(record("round", base=str(second.parents[1] / "round"), corpus={"source": "x"})) == ("x",)


@pytest.mark.parametrize(
    ("card", "found"),
    [
        ("---\ndatasets:\n- a/b\n- sentence-transformers/stsb\n---\n", ("a/b", "sentence-transformers/stsb")),
        (
            "---\ndatasets:\n- a/b\n- c/stsb\n---\n"
            "### Training Dataset\n\n#### a/b\n\n### Evaluation Dataset\n\n#### c/stsb\n",
            ("a/b",),
        ),
        ("Trained by [selfsent] 0.1 from `bundled` on 5,749 sentences of `stsb.tsv`.\n", ("stsb.tsv",)),
        ("---\ndatasets: [\n---\n", ()),
        ("---\nlast_modified: 2024-13-45\ndatasets: a/b\n---\n", ("a/b",)),
        ("---\nx: !!bool x\ndatasets: [a/b, [c, d]]\n---\n", ("a/b",)),
        (f"---\ndatasets: {'[' * 3000}\n---\n", ()),
        (
            "---\na: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi"))
            + "datasets: *i\n---\n",
            (),
        ),
        ("Maps" + " Trained by [selfsent]" * 5000 + " of `" * 5000, ()),
        ("Maps a to b. Trained by [selfsent](x) of `a` of `b.txt`.\n", ("b.txt",)),
        ("no metadata", ()),
    ],
)
def test_cards_are_read(card, found, tmp_path):
    (tmp_path / "README.md").write_text(card)
    assert trained_on(tmp_path) == found


def test_leaked_scores_carry_a_mark_everywhere(results):
    clean, stained = results
    assert '"leaked"' not in json.dumps(clean.to_json())
    plain = stained.to_json()
    assert plain["scores"]["sts12"]["leaked"] is True
    assert "leaked" not in plain["scores"]["stsb"]
    assert plain["average_leaked"] is True
    assert stained.shown("sts12").endswith("†")
    assert not stained.shown("stsb").endswith("†")
    report = Report([stained])
    assert "stained was trained on STSb, which holds pairs of sts12: no test" in report.remarks
    assert stained.to_markdown().count("† trained on STSb") == 1


def test_so_do_those_beside_others(results):
    clean, stained = results
    assert "†" in Report([clean, stained]).to_page()
    assert "†" not in Report([clean, clean]).to_page()
    assert side_by_side([clean, stained]).to_json()["results"][1]["scores"]["sts12"]["leaked"] is True
