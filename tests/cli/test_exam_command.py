import json
import re
import shutil

import pytest

import tiny

PARTS = ("engine", "mirror", "pedal", "window")


@pytest.fixture(scope="module")
def tickets(tmp_path_factory):
    """A table of 60 tickets of three sentences, with ids and subjects."""
    return written(tmp_path_factory.mktemp("tickets") / "tickets.csv", 60)


def written(path, count):
    """A table of tickets of three sentences, with ids and subjects."""
    rows = []
    for n in range(count):
        said = [f"Sentence u{4 * n + k} tells how the {PARTS[k]} of lot{n} was mended." for k in range(3)]
        rows.append({"id": f"t{n}", "subject": f"Lot{n} of owner{n}", "body": " ".join(said)})
    return tiny.write_table(path, rows)


def test_an_exam_is_written_mended_and_scored(selfsent, tickets, tmp_path):
    columns = ("--text-column", "body", "--title-column", "subject", "--id-column", "id")
    exam = tmp_path / "exam"
    done = selfsent("exam", tickets, *columns, "--output", exam)
    assert (done.status, done.out) == (0, ""), done.err
    assert f"60 queries (30 by title, 30 by sentence) among 60 documents, in {exam}" in done.err
    documents = tiny.rows_of(exam / "corpus.jsonl")
    assert {document["_id"] for document in documents} == {f"t{n}" for n in range(60)}
    assert f"{exam} exists already: --overwrite" in selfsent("exam", tickets, *columns, "--output", exam).late_complaint

    test = exam / "qrels/test.tsv"
    test.write_text("".join(line for line in test.open() if not line.startswith("q2\t")))  # mended by hand
    scored = selfsent("evaluate", "bm25", "--retrieval", exam, "--json", "-").json
    found = selfsent("exam", exam, "--models", "bm25,tfidf", "--json", "-").json
    score = next(each for each in found["results"] if each["model"] == "bm25")["scores"]["exam"]
    assert (score["n"], score["score"]) == (29, scored["scores"]["retrieval"]["score"])
    assert found["verdict"].startswith(f"On half of the queries {found['results'][0]['model']} was best.")

    again = selfsent("exam", tickets, *columns, "--output", exam, "--overwrite", "--models", "bm25,tfidf").ok()
    assert "exam: nDCG@10" in again.out.replace("│", "")
    assert len(test.read_text().splitlines()) > 30


def test_documents_of_one_run_and_real_pairs(selfsent, tickets, model, tmp_path):
    done = selfsent("exam", tickets, "--pairs", "subject,body", "--models", "bm25,tfidf")
    assert "60 queries (60 by pair) among 60 documents" in done.err
    assert "undecided" in done.out.lower() or "ahead of" in done.out
    run = tmp_path / "run"
    shutil.copytree(model, run / "model")
    (run / "run.json").write_text("{}")
    told = selfsent("exam", tickets, "--pairs", "subject,body", "--models", f"words=bm25,mine={run}")
    assert "mine+words at" in told.out
    few = selfsent("exam", tickets, "--text-column", "body", "--queries", 20, "--output", tmp_path / "few")
    assert "only 20 queries" in few.err
    assert "±25 points" in few.err


def test_an_exam_of_what_a_run_has_not_read(selfsent, tmp_path):
    run, tickets = tmp_path / "run", written(tmp_path / "many.csv", 250)
    assert selfsent("train", tickets, "--text-columns", "subject,body", "--steps", 1, "--output", run).status == 0
    held = json.loads((run / "run.json").read_text())["reading"]
    assert held["text_columns"] == ["subject", "body"]
    known = selfsent("exam", tickets, "--pairs", "subject,body", "--models", f"bm25,tfidf,{run / 'model'}").ok()
    assert "has read" in known.out
    assert "part in the verdict" in " ".join(known.out.split())
    assert "run+words" not in known.out.partition("On half of the queries")[2]
    fair = selfsent("exam", tickets, "--run", run, "--models", f"bm25,{run}", "--json", "-").ok()
    assert f"as {run} read the table: asking for body, by subject, of what it has not read" in fair.err
    assert "50 queries" in fair.err  # a fifth of 250 was held out
    found = fair.json
    assert "apart" not in found
    assert any("run" in result["model"] for result in found["results"])
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copytree(run / "model", bare / "model")
    (bare / "model" / "texts_read.npy").unlink()
    asked = selfsent("exam", tickets, "--run", bare / "model", "--text-column", "body", "--models", "bm25,tfidf")
    assert "carries no record of what it has read" in asked.late_complaint


def test_replies_to_quotes(selfsent, tmp_path):
    rows = [{"body": f"> Where is the key of lot{n} kept?\nBehind door{n}."} for n in range(20)]
    mails = tiny.write_table(tmp_path / "mails.jsonl", rows)
    options = ("--clean", "mail", "--output", tmp_path / "exam")
    told = selfsent("exam", mails, "--text-column", "body", *options).err
    assert "20 queries (20 by quote) among 20 documents" in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--models", "nothing-of-this-name"), "nothing-of-this-name"),
        (("--output", "x", "--text-column", "none"), "none"),
        (("--output", "x", "--text-column", "body", "--pairs", "subject,body"), "--pairs names two columns"),
        (("--output", "x", "--text-column", "subject"), "nothing can be asked: name the column with titles (--title"),
        (("--output", "x", "--text-column", "body", "--run", "nowhere"), "nowhere is no run"),
        (("--output", ".", "--text-column", "body"), "exists already"),
    ],
)
def test_bad_input_is_one_line(selfsent, tickets, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("kept\n")
    assert said in selfsent("exam", tickets, *options).late_complaint
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_exam_without_models_compares_the_table_of_its_language(selfsent, tickets, german, tmp_path):
    said = selfsent("exam", tickets, "--text-column", "body", "--title-column", "subject", "--json", "-")
    assert "no model is named: bundled is taken, the table that ships for English" in said.err
    assert {each["model"] for each in said.json["results"]} >= {"bm25", "tfidf"}
    drawn = selfsent("exam", german, "--text-column", "body", "--title-column", "subject", "--output", tmp_path / "x")
    assert "no model is named" not in drawn.err
    told = selfsent("exam", tmp_path / "x")
    assert "no model is named: bundled-multilingual is taken, as the text is not English" in told.err
    assert "bundled-multilingual" in told.out
    assert "no model is named" not in selfsent("exam", tmp_path / "x", "--models", "bundled,bm25").err


def test_a_search_asks_an_exam_for_the_weight_of_words(selfsent, tickets, sentences):
    command = ("search", "bundled", tickets, "the pedal of lot7", "--text-column", "body", "--json", "-")
    chosen = selfsent(*command, "--word-weight", "auto")
    weight = chosen.json["lexical_weight"]
    assert f"--lexical-weight auto: {weight:g}" in chosen.err
    assert "by 60 queries (60 by sentence) among 60 documents" in chosen.err
    assert chosen.out == selfsent(*command, "--word-weight", weight).out
    single = selfsent("search", "bundled", sentences, "ba", "--word-weight", "auto", "--json", "-")
    assert single.json["lexical_weight"] == 1.5
    assert "1.5, the model's own, as too few texts" in single.err
    assert "'much' is no number, and not auto" in selfsent(*command, "--word-weight", "much").complaint
    assert "leave out --index" in selfsent("search", "--index", "x", "ba", "--word-weight", "auto").complaint


PLAN = """
rows:
  - {name: words, model: bm25}
  - {name: "TABLE + words, short", model: "TABLE+words+passages:20"}
  - {name: dear, model: ENCODER}
cheap: 1e6
"""


def test_a_plan_is_tried_goes_on_and_is_built(selfsent, tickets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(PLAN)
    asked = ("exam", tickets, "--text-column", "body", "--id-column", "id", "--plan", "mine.yaml")
    done = selfsent(*asked).ok()
    assert "Take " in done.out
    saved = json.loads((tmp_path / "exam/plan/plan.json").read_text())
    assert [row["name"] for row in saved["rows"]] == ["words", "bundled + words, short"]
    assert saved["sentence"] in (tmp_path / "exam/plan/page.html").read_text()
    again = selfsent(*asked, "--json", "-")
    assert "exam has this exam already: going on" in again.err
    assert again.json["rows"] == saved["rows"]
    assert "exam is an exam of something else" in selfsent(*asked, "--seed", 1).late_complaint
    assert (tmp_path / "exam/plan/plan.yaml").read_text() == PLAN

    saved["take"] = "bundled + words, short"
    (tmp_path / "exam/plan/plan.json").write_text(json.dumps(saved))
    built = selfsent("index", "build", "--exam", "exam", "--output", "tickets.index").ok()
    assert "exam took bundled + words, short: the model is bundled" in built.err
    found = selfsent("search", "--index", "tickets.index", "the mirror of lot7", "--json", "-")
    assert re.search(r'"id": "(t\d+)"', found.out)[1] == "t7"
    saved["rows"][1]["model"] += "+hubs:0.5"
    (tmp_path / "exam/plan/plan.json").write_text(json.dumps(saved))
    build = ("index", "build", "--exam", "exam", "--output", "x")
    assert "and an index ranks without programs" in selfsent(*build).complaint
    saved["rows"][1] |= {"model": "bundled+words", "prompts": {}}
    (tmp_path / "exam/plan/plan.json").write_text(json.dumps(saved))
    assert "and an index is made with a model's own prompts" in selfsent(*build).complaint
    saved["take"] = "words"
    (tmp_path / "exam/plan/plan.json").write_text(json.dumps(saved))
    assert "exam took words, which has no vectors for an index" in selfsent(*build).complaint
    assert "no row to take" in selfsent("index", "build", "--exam", tmp_path, "--output", "x").complaint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "mine.yaml cannot be read"),
        ("rows: [1]", "rows must be a list of rows"),
        ("rows:\n  - {name: a}", "line 2: a row of a plan needs model"),
        ("rows:\n  - {name: a, model: bm25, weight: 3}", "line 2: a row of a plan has no 'weight'"),
        ("rows:\n  - {name: a, model: nowhere-at-all}", "nowhere-at-all"),
        ("rows:\n  - {name: a, model: bm25, candidates: 0}", "candidates must be 1 at least"),
        ("rows:\n  - {name: a, model: bm25, train: {base: TABLE}}", "must have TRAINED in it"),
        ("rows:\n  - {name: a, model: bundled, prompts: {title: x}}", "`prompts` of a row has no 'title'"),
        ("rows:\n  - {name: a, model: bundled, prompts: none}", "prompts must be a section"),
        ("worth: -1\nrows:\n  - {name: a, model: bm25}", "line 1: worth must not be below 0"),
    ],
)
def test_a_wrong_plan_is_one_line(selfsent, tickets, tmp_path, monkeypatch, content, said):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "mine.yaml").write_text(content)
    assert said in selfsent("exam", tickets, "--text-column", "body", "--plan", "mine.yaml").complaint
    assert not (tmp_path / "exam").exists()


def test_the_plan_that_ships_can_be_read():
    from selfsent.cli.exam_plan import read_plan

    plan = read_plan("standard", "bundled", "small=bundled")
    assert [row.name for row in plan.rows][:4] == ["BM25", "TF-IDF", "bundled", "bundled + words"]
    places = {row.name: place for place, row in enumerate(plan.rows)}
    assert plan.rows[places["small"] - 1].after == "bundled + words, 50 reranked by small"
    bare, adapted, trained = plan.rows[places["small + words"] + 1 :]
    assert (bare.name, bare.prompts) == ("small without its prompts + words", {})
    assert adapted.train == {"base": "bundled", "lora": 16, "budget": 600}
    assert trained.train == {"base": "bundled", "budget": 600}
    assert {row.after for row in (bare, adapted, trained)} == {"small + words"}
    without = read_plan("standard", "bundled", None)
    assert not [row for row in without.rows if "rerank" in row.model]


def test_programs_are_a_plan_of_their_own():
    from selfsent.cli.exam_plan import read_plan

    rows = read_plan("programs", "bundled", "small=bundled").rows
    assert {row.after for row in rows if "+words+" in row.model} == {"bundled + words", "small + words"}
    assert len(rows) == 15
    assert not [row for row in read_plan("standard", "bundled", "small=bundled").rows if ":0." in row.model]
