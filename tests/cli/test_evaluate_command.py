import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny

GOLD = [5.0, 4.0, 3.0, 1.0, 0.0]


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    """No test waits for a network."""
    monkeypatch.setattr("selfsent.evaluation.datasets.hub.hub_reachable", lambda: False)
    monkeypatch.delenv("SELFSENT_DATA", raising=False)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """A mirror with stand-ins for three of the sets of the suite sts."""
    root = tmp_path_factory.mktemp("mirror")
    for number, name in enumerate(("sts12-sts", "sts13-sts", "stsbenchmark-sts")):
        lines = tiny.make_sentences(80, seed=number)
        columns = {"sentence1": lines[:40], "sentence2": lines[40:], "score": GOLD * 8}
        (root / "mteb" / name).mkdir(parents=True)
        pq.write_table(pa.table(columns), root / "mteb" / name / "test.parquet")
    return root


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A module with models that are quick to make: `good` knows the scores better than `poor`."""
    (tmp_path / "quick_models.py").write_text(
        "import numpy as np\n"
        "class Words:\n"
        "    def __init__(self, size): self.size = size\n"
        "    def encode(self, texts):\n"
        "        rng = lambda word: np.random.default_rng(list(word.encode())).normal(size=self.size)\n"
        "        return np.stack([sum(map(rng, text.split())) for text in texts])\n"
        "def good(): return Words(64)\n"
        "def poor(): return Words(2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "quick_models:good", "quick_models:poor"
    sys.modules.pop("quick_models", None)


def test_models_have_names_of_their_own(selfsent, models, mirror):
    named = [f"{name}={model}" for name, model in zip(("good", "poor"), models, strict=True)]
    done = selfsent("evaluate", *named, "--task", "sts12", "--data", mirror, "--json", "-")
    assert [each["model"] for each in done.json["results"]] == ["good", "poor"]
    twice = selfsent("evaluate", f"a={models[0]}", f"a={models[1]}", "--task", "sts12", "--data", mirror)
    assert "two models are called a" in twice.complaint


def test_a_suite_as_one_object_with_the_agreed_keys_and_what_is_absent(selfsent, models, mirror):
    done = selfsent("evaluate", models[0], "--suite", "sts", "--data", mirror, "--json", "-")
    assert "sts16 is absent: the mirror" in done.err
    assert "warning: sts12 has 40 rows here, 3108 as published" in done.err
    plain = done.json
    assert {"model", "scores", "average"} <= plain.keys()
    assert plain["average_complete"] is False
    assert plain["average_over"] == list(plain["scores"]) == ["sts12", "sts13", "stsb"]
    assert set(plain["absent"]) == {"sts14", "sts15", "sts16", "sickr", "sickr-test"}
    for name, score in plain["scores"].items():
        assert score["low"] <= score["score"] <= score["high"]
        assert score["signature"].startswith(f"{name}|spearman|cos|all|n:40|data:")
    assert plain["average"] == pytest.approx(np.mean([score["score"] for score in plain["scores"].values()]))


def test_several_models_stand_side_by_side_with_p_values(selfsent, models, mirror):
    arguments = ("evaluate", *models, "--task", "sts12,sts13", "--task", "stsb", "--data", mirror)
    shown = selfsent(*arguments).ok()
    assert "difference [95 %]" in shown.out
    plain = selfsent(*arguments, "--json", "-").json
    assert plain["against"] == models[0]
    assert [result["model"] for result in plain["results"]] == list(models)
    assert list(plain["differences"]) == ["sts12", "sts13", "stsb"]
    for (difference,) in plain["differences"].values():
        assert difference["model"] == models[1]
        assert 0 < difference["p"] <= 1
        assert difference["low"] <= difference["difference"] <= difference["high"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "sts", "--task", "stsb"), "suite and task both say what to score"),
        (("--suite", "context"), "context is scored on text of your own"),
        (("--task", "stsb", "--json", "-", "--page", "-"), "--json and --page cannot both go to standard output"),
        (("--task", "stsb", "--json", "."), ". is a directory: name a file"),
        (("--task", "stsb", "--page", "file/x.html"), "is a file"),
        (("--pairs", "nothing.tsv"), "nothing.tsv cannot be read"),
        (("--labels", "file"), "file has 0 rows"),
        (("--task", "stsb", "--data", "nowhere"), "nowhere is not a folder"),
        (("--task", "stsb", "no-such.parquet"), "no-such.parquet does not exist"),
        (("--split", "test", "--task", "stsb"), "--split goes with --retrieval: give both"),
        (("--pairs", "faq.csv", "--text-column", "text"), "--text-column is the text of --relevance or --labels"),
        (("--labels", "faq.csv", "--text-column", "a", "--columns", "b,c"), "name the other column by --columns"),
        (("--task", "stsb", "--clean", "html"), "--clean says how to read --documents"),
    ],
)
def test_what_is_wrong_is_found_before_a_model_is_loaded(arguments, said, selfsent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("selfsent.scorers.load_scorer.open_table", lambda *_: pytest.fail("loaded"))
    (tmp_path / "file").touch()
    # Positionals first: options with several values would eat them.
    given = sorted(arguments, key=lambda argument: not argument.endswith(".parquet"))
    assert said in selfsent("evaluate", "bundled-raw", *given).complaint
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_output_replaces_what_is_left_out_or_another_output(selfsent, models, tmp_path, documents):
    (tmp_path / "mine.tsv").write_text("a b\ta\t1\nc d\td\t2\ne\tf\t3\n")
    (tmp_path / "without.txt").write_text("one\ntwo\n")
    common = ("evaluate", models[0], "--pairs", tmp_path / "mine.tsv")
    left_out = ("--documents", documents, "--without", tmp_path / "without.txt")
    assert "would replace" in selfsent(*common, *left_out, "--json", tmp_path / "without.txt").complaint
    twice = ("--json", tmp_path / "o.json", "--page", tmp_path / "." / "sub" / ".." / "o.json")
    assert "--json and --page cannot both go to" in selfsent(*common, *twice).complaint
    assert "--without says how to read --documents" in selfsent(*common, *left_out[2:]).complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.tsv", "quick_models.py", "without.txt"]


def test_counting_words_stands_beside_models_with_intervals_of_its_own(selfsent, models, documents, tmp_path):
    arguments = ("evaluate", "tfidf", "bm25", models[0], "--documents", documents, "--hold-out", 40)
    selfsent(*arguments, "--json", tmp_path / "x.json").ok()
    found = json.loads((tmp_path / "x.json").read_text())
    assert [one["model"] for one in found["results"]] == ["tfidf", "bm25", str(models[0])]
    scores = [one["scores"]["context"] for one in found["results"]]
    assert all("|s:80|" in score["signature"] and score["low"] <= score["score"] <= score["high"] for score in scores)
    assert scores[2]["bm25"] == scores[1]["score"]
    assert [one["model"] for one in found["differences"]["context"]] == ["bm25", str(models[0])]


def test_models_and_numbers_that_make_no_sense_are_refused(selfsent, documents, tmp_path):
    assert "no model to score: name one" in selfsent("evaluate", "--documents", documents).complaint
    alone = selfsent("evaluate", "tfidf", "--task", "sts12", "--hold-out", 40).complaint
    assert "--hold-out goes with --documents" in alone
    few = selfsent("evaluate", "tfidf", "--documents", documents, "--hold-out", 3).late_complaint
    assert "--hold-out is 3; an honest interval needs at least 30 documents" in few
    kept = ("--vectors", tmp_path / "x.parquet")
    words = selfsent("evaluate", "tfidf", "--documents", documents, *kept).late_complaint
    assert "tfidf counts words and has no vectors to keep" in words
    pooled = selfsent("evaluate", "bm25", "--documents", documents, "--pooling", "cls").complaint
    assert "--pooling is for models given by directory" in pooled


@pytest.fixture
def searched(tmp_path):
    """A search set in BEIR's layout, with judgements for test and dev."""
    lines = tiny.make_sentences(40, seed=5)
    documents = {f"d{number}": line for number, line in enumerate(lines)}
    queries = {f"q{number}": " ".join(line.split()[:3]) for number, line in enumerate(lines[:12])}
    judged = {
        split: [row for n in numbers for row in ((f"q{n}", f"d{n}", 1), (f"q{n}", f"d{n + 12}", 0))]
        for split, numbers in (("test", range(8)), ("dev", range(8, 12)))
    }
    return tiny.write_search_set(tmp_path / "desk", documents, queries, judged)


def test_search_with_judged_answers(selfsent, models, searched, tmp_path):
    rows = ("bm25", models[0], f"{models[0]}+words", "tfidf")
    done = selfsent("evaluate", *rows, "--retrieval", searched, "--page", tmp_path / "x.html").ok()
    assert all(word in done.out for word in ("retrieval: nDCG@10", "desk, test", "MRR@10", "recall@100", "MAP"))
    assert "<h2>retrieval: nDCG@10 on desk, test</h2>" in (tmp_path / "x.html").read_text()
    plain = selfsent("evaluate", *rows, "--retrieval", f"{searched}/", "--json", "-").json
    assert [each["model"] for each in plain["results"]] == list(rows)
    scores = [each["scores"]["retrieval"] for each in plain["results"]]
    assert all({"score", "low", "high", "mrr@10", "recall@100", "map"} <= score.keys() for score in scores)
    assert [each["model"] for each in plain["differences"]["retrieval"]] == list(rows[1:])
    both = ("--retrieval", searched, "--retrieval", searched.parent / ".." / tmp_path.name / "desk")
    assert "have one name" in selfsent("evaluate", "bm25", *both).complaint
    dev = selfsent("evaluate", "bm25", "--retrieval", searched, "--split", "dev", "--json", "-").json
    assert dev["scores"]["retrieval"]["n"] == 4


def test_files_of_ones_own_are_cleaned_joined_and_may_have_ids(selfsent, tmp_path):
    lines = tiny.make_sentences(30)
    rows = [
        {"id": n, "subject": f"{'it' if n % 2 else 'house'} {n}", "body": f"<b>{line}</b>", "team": n % 2}
        for n, line in enumerate(lines)
    ]
    tiny.write_table(tmp_path / "t.csv", [*rows, {"id": 99, "subject": "", "body": "<br>", "team": 1}])
    read = ("--text-column", "subject", "--text-column", "body", "--clean", "html", "--id-column", "id")
    done = selfsent("evaluate", "tfidf", "--labels", tmp_path / "t.csv", "--columns", "team", *read, "--json", "-")
    assert done.err == "warning: t: 1 row without text left out\n"
    assert done.json["scores"]["t"]["n"] == 30
    asked = ("--relevance", tmp_path / "t.csv", "--columns", "subject", "--text-column", "body", "--clean", "html")
    plain = selfsent("evaluate", "tfidf", *asked, "--json", "-").json
    assert plain["scores"]["t"]["n"] == 30


def test_queries_of_ones_own_beside_an_exam(selfsent, tmp_path):
    bodies = [f"The lot{n} is old. Its colour is tone{n}. Somebody saw mark{n} on it." for n in range(40)]
    tiny.write_table(tmp_path / "lots.csv", [{"id": f"t{n}", "body": body} for n, body in enumerate(bodies)])
    (tmp_path / "mine.csv").write_text("query,id\ntone3,t3\nmark4,t5 t4\nlot9,t900\n")
    table = ("--documents", tmp_path / "lots.csv", "--text-column", "body")
    assert selfsent("exam", tmp_path / "lots.csv", "--text-column", "body", "--output", tmp_path / "exam").status == 0
    asked = (*table, "--id-column", "id", "--queries", tmp_path / "mine.csv", "--json", "-")
    done = selfsent("evaluate", "bm25", "tfidf", *asked, "--retrieval", tmp_path / "exam").ok()
    assert "1 id not in the column id of" in done.err
    first = done.json["results"][0]["scores"]
    assert {*first} == {"retrieval", "mine"}
    assert first["mine"]["n"] == 2
    assert 80 < first["mine"]["score"] < 100  # t5 has no word of mark4
    for options, said in (
        (asked[:-2], "none of the ids"),
        (("--queries", tmp_path / "mine.csv", "--id-column", "id"), "--queries asks a whole table"),
        ((*table, "--queries", tmp_path / "mine.csv"), "--queries goes with --id-column"),
        ((*table, "--queries", tmp_path / "no.csv", "--id-column", "id"), "no.csv cannot be read"),
        ((*table, "--queries", tmp_path / "mine.csv", "--id-column", "number"), "number"),
    ):
        if said == "none of the ids":
            (tmp_path / "mine.csv").write_text("query,id\ntone3,x3\nmark4,x4\n")
        assert said in selfsent("evaluate", "bm25", *options).late_complaint


def test_an_exam_is_shown_beside_judged_queries_and_weighted_by_them(selfsent, tmp_path):
    things = [f"thing{number} of kind{number % 7}" for number in range(60)]
    rows = [
        f"{n},The {t} is dead. It stands in room{n}. Nobody has asked for part{n} yet." for n, t in enumerate(things)
    ]
    (tmp_path / "table.csv").write_text("\n".join(["id,body", *rows]) + "\n")
    table = ("--text-column", "body", "--id-column", "id")
    assert selfsent("exam", tmp_path / "table.csv", *table, "--output", tmp_path / "exam").status == 0
    for count in (19, 20):
        judged = [f"room{number},{number}" for number in range(count)]
        (tmp_path / "mine.csv").write_text("\n".join(["query,id", *judged]) + "\n")
        asked = ("--queries", tmp_path / "mine.csv", "--documents", tmp_path / "table.csv", *table)
        more = ("--retrieval", tmp_path / "exam", "--json", tmp_path / "out.json")
        selfsent("evaluate", "bm25", "tfidf", *asked, *more).ok()
        found = json.loads((tmp_path / "out.json").read_text())
        [beside] = found["beside"]
        assert beside["queries"] == "mine"
        assert beside["exam"] == ("retrieval" if count < 20 else "retrieval-like-mine")
        assert ("retrieval-like-mine" in found["results"][0]["scores"]) == (count == 20)
    shown = selfsent("evaluate", "bm25", "tfidf", *asked, "--retrieval", tmp_path / "exam").out
    assert "weighted by how your 20 queries look" in " ".join(shown.split())
    assert "your queries" in shown
    alone = selfsent("evaluate", "bm25", "tfidf", *asked).out
    assert "the exam" not in alone
