import json

import pytest

import tiny
from selfsent.integrity import signed
from selfsent.lexical.analyzer import LANGUAGES


@pytest.fixture
def tickets(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("id,body,team\n7,ba de fi go,x\n8,ko mi,y\n9,la nu po,x\n10,ko mi,x\n11,,x\n12,ri sa te,z\n")
    return path


@pytest.fixture
def index(selfsent, model, tickets, tmp_path):
    """A command that makes an index of the tickets, or of another corpus, with the ids."""

    def make(*more, corpus=tickets, output=tmp_path / "i"):
        given = ("--text-column", "body", "--id-column", "id", "--keep", "team", "--output", output)
        return selfsent("index", "build", model, corpus, *given, *more)

    return make


def test_index_and_search(selfsent, index, model, tickets, tmp_path):
    done = index()
    assert (done.status, done.out) == (0, ""), done.err
    assert "4 vectors in" in done.err
    assert "recall" not in done.err, "all are compared"
    assert "(1 empty, 1 repeated)" in done.err
    carried = ("--text-column", "body", "--id-column", "id", "--keep", "team", "--top", 2)
    exact = selfsent("search", model, tickets, "ko mi", "la nu", "--word-weight", 0, *carried)
    found = selfsent("search", "--index", tmp_path / "i", "ko mi", "--top", 2, "la nu", "--word-weight", 0).ok()
    assert found.out == exact.out
    assert "1.000  8  y  ko mi  (and 1 more row)" in found.out
    as_file = selfsent("search", "--index", tmp_path / "i", "ko mi", "--output", tmp_path / "hits.csv", "--json", "-")
    first = tiny.rows_of(tmp_path / "hits.csv")[0]
    assert (first["query"], first["words"], first["id"], first["team"]) == ("ko mi", "0.526316", "8", "y")
    assert (first["row"], first["repeats"], first["text"]) == ("1", "1", "ko mi")
    told = as_file.json
    assert told["index"] == str(tmp_path / "i")
    assert told["queries"][0]["hits"][0]["id"] == 8
    assert told["language"] in LANGUAGES  # of words that are made up
    again = selfsent("search", "--index", tmp_path / "i", "ko mi", "--rerank", model, "--json", "-").json
    assert (again["rerank"], again["lexical_weight"]) == (str(model), told["lexical_weight"])
    assert [hit["row"] for hit in again["queries"][0]["hits"]] == [hit["row"] for hit in told["queries"][0]["hits"]]


def test_words_are_weighed(selfsent, index, model, tickets, tmp_path):
    index()
    words = ("ko zu", "--top", 4, "--word-weight", 3)
    exact = selfsent("search", model, tickets, "--text-column", "body", *words, "--json", "-", "--language", "none")
    told = selfsent("search", "--index", tmp_path / "i", *words, "--json", "-").json
    assert told["lexical_weight"] == 3
    hits = told["queries"][0]["hits"]
    scores = [hit["cosine"] + 3 * hit["words"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    theirs = exact.json["queries"][0]["hits"]
    assert [(hit["row"], hit["words"]) for hit in hits] == [(hit["row"], hit["words"]) for hit in theirs]
    shown = selfsent("search", "--index", tmp_path / "i", *words).out.splitlines()
    assert [float(line.split()[0]) for line in shown] == pytest.approx([score / 4 for score in scores], abs=6e-4)
    said = selfsent("search", "--index", tmp_path / "i", "ko", "--language", "english").complaint
    assert "--index has the stems that it was made with" in said
    assert "no language 'klingon'" in selfsent("search", model, tickets, "ko", "--language", "klingon").complaint
    assert "no language 'klingon'" in index("--language", "klingon", "--overwrite").complaint
    said = selfsent("search", model, tickets, *words[:-1], "-1").complaint
    assert "--lexical-weight is -1; it must be from 0 to 1,000" in said


def test_words_of_another_version_are_told(selfsent, index, tmp_path, monkeypatch):
    index().ok()
    monkeypatch.setattr("selfsent.lexical.analyzer._RULES", 0)
    asked = ("search", "--index", tmp_path / "i", "ko mi")
    told = f"run selfsent index compact {tmp_path / 'i'}: its texts were stemmed by other rules"
    assert told in selfsent(*asked).ok().err
    selfsent("index", "compact", tmp_path / "i").ok()
    assert told not in selfsent(*asked).ok().err


def test_rows_are_added_changed_and_deleted(selfsent, index, tmp_path):
    index()
    (tmp_path / "more.csv").write_text("id,body,team\n20,gu he,z\n21,ko mi,z\n7,gu gu,z\n")
    refused = index(corpus=tmp_path / "more.csv").complaint
    assert "already holds an index: add to it with selfsent index add, give --overwrite" in refused
    done = selfsent("index", "add", tmp_path / "i", tmp_path / "more.csv").ok()
    replaced = "1 row replaced by a later one with the same id"
    assert f"2 vectors added, 1 of the texts were there already, {replaced}" in done.err
    find = "search", "--index", tmp_path / "i", "--top", 1, "--word-weight", 0
    found = selfsent(*find, "gu he", "ko mi", "gu gu").out.splitlines()
    assert found[1] == "1.000  20  z  gu he"
    assert found[3] == "1.000  8  y  ko mi  (and 2 more rows)"
    assert found[5] == "1.000  7  z  gu gu"
    assert selfsent(*find, "ko mi", "--where", "team=z").out == "1.000  21  z  ko mi\n"
    assert "no text meets --where team=nosuch" in selfsent(*find, "ko mi", "--where", "team=nosuch").err
    likely = "no text meets --where team=Z; did you mean team=z?"
    assert likely in selfsent(*find, "ko mi", "--where", "team=Z").err
    assert f"leave out {tmp_path}" in selfsent(*find, tmp_path, "ko mi").complaint
    found = selfsent(*find, "ko mi", "--where", "team=x,y", "--where", "id>8", "--json", "-")
    told = found.json
    assert told["where"] == ["team=x,y", "id>8"]
    assert [hit["id"] for hit in told["queries"][0]["hits"]] == [10]
    done = selfsent("index", "delete", tmp_path / "i", 8, 20, 999)
    assert (done.status, done.out) == (0, "")
    assert "2 rows deleted; 1 of 3 ids not in the index" in done.err
    done = selfsent("index", "compact", tmp_path / "i")
    assert (done.status, done.out) == (0, "")
    assert "4 vectors in" in done.err
    assert selfsent(*find, "ko mi").out == "1.000  10  x  ko mi  (and 1 more row)\n"
    assert index("--overwrite", corpus=tmp_path / "more.csv").status == 0


def test_other_columns_or_cleaning_are_refused_by_name(selfsent, model, index, tickets, tmp_path):
    index()
    team = given = "index", "add", tmp_path / "i", tickets
    said = selfsent(*given, "--keep", "body").late_complaint
    assert "i has the columns row (int), id (int), team (str), text (str), and not row" in said
    said = selfsent(*team, "--text-column", "team").late_complaint
    assert "was made with --text-column body, and not with --text-column team: give the same" in said
    said = selfsent(*team, "--clean", "urls,html").late_complaint
    assert "was made with no --clean, and not with --clean html and --clean urls: give the same" in said
    assert "i has id for ids: give the same as --id-column" in selfsent(*given, "--id-column", "team").complaint
    old = "index", model, tickets, "--output", tmp_path / "i", "--add", "--text-column", "body", "--id-column", "id"
    assert "leave out --language" in selfsent(*old, "--language", "french").complaint


def move_model(index, to):
    """Say of an index that its model is elsewhere."""
    about = index / "index.json"
    about.write_text(json.dumps(signed(json.loads(about.read_text()) | {"model": str(to)})))


def test_another_model_is_refused_in_one_line(selfsent, index, model, base, tmp_path):
    index()
    said = selfsent("search", "--index", tmp_path / "i", "ko mi", "--model", base).complaint
    assert "holds vectors of another model" in said
    assert f"give --model {model}" in said
    move_model(tmp_path / "i", tmp_path / "gone")
    said = selfsent("search", "--index", tmp_path / "i", "ko mi").complaint
    assert "say with --model where it is now" in said
    assert selfsent("search", "--index", tmp_path / "i", "ko mi", "--model", model).status == 0


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("search", "--index", "nowhere", "q"), "nowhere does not exist: make one with selfsent index"),
        (("search", "--index", "INDEX", "q", "--encoded", "v.npy"), "leave out --encoded"),
        (("search", "--index", "INDEX", "q", "--text-column", "body"), "--text-column says how to read a corpus"),
        (("search", "MODEL", "CORPUS", "q", "--model", "MODEL"), "--model goes with --index: give both"),
        (("pairs", "MODEL"), "the following arguments are required: CORPUS"),
        (("pairs", "MODEL", "CORPUS", "more"), "unrecognised argument more"),
        (("search", "--index", "INDEX", "q", "--where", "team"), "--where 'team' is no condition"),
        (("search", "--index", "INDEX", "q", "--where", "stage=x"), "the index has no column 'stage'"),
        (("search", "MODEL", "CORPUS", "q", "--where", "team=x"), "--where goes with --index: give both"),
        (("index", "MODEL", "--output", "x"), "the following arguments are required: CORPUS"),
        (("index", "build", "MODEL", "--output", "x"), "name a model and a corpus, or an exam with a plan"),
        (("index", "add", "nowhere", "CORPUS"), "nowhere does not exist: make one with selfsent index build"),
        (("index", "add", "INDEX", "CORPUS", "--add"), "unrecognised argument --add"),
        (("index", "delete", "INDEX"), "the following arguments are required: ID"),
        (("index", "compact", "nowhere"), "nowhere does not exist"),
        (("index", "MODEL", "CORPUS", "--output", "INDEX", "--delete", "7"), "leave out MODEL, CORPUS and --add"),
        (("index", "--output", "INDEX", "--compact", "--add"), "leave out MODEL, CORPUS and --add"),
        (("index", "--output", "INDEX", "--compact", "--text-column", "body"), "--text-column says how to read"),
        (("index", "--output", "nowhere", "--delete", "7"), "nowhere does not exist"),
        (("index", "MODEL", "CORPUS", "--output", "x", "--recall", "1.5"), "--recall is 1.5"),
        (("index", "MODEL", "CORPUS", "--output", "x", "--encoded", "v.npy"), "v.npy does not exist"),
    ],
)
def test_bad_options(selfsent, index, model, tickets, tmp_path, monkeypatch, command, complaint):
    index()
    monkeypatch.chdir(tmp_path)
    names = {"MODEL": model, "CORPUS": tickets, "INDEX": tmp_path / "i"}
    assert complaint in selfsent(*(names.get(word, word) for word in command)).complaint
    assert not (tmp_path / "x").exists()


def test_the_deprecated_flags_do_as_the_subcommands(selfsent, model, tickets, index, tmp_path):
    given = "index", model, tickets, "--text-column", "body", "--id-column", "id", "--keep", "team", "--output"
    made = selfsent(*given, tmp_path / "j")
    assert (made.status, "deprecated;" in made.err) == (0, False)
    assert index().status == 0
    (tmp_path / "more.csv").write_text("id,body,team\n20,gu he,z\n")
    added = selfsent(*given[:2], tmp_path / "more.csv", *given[3:], tmp_path / "j", "--add")
    assert "--add: deprecated; give selfsent index add" in added.err
    assert selfsent("index", "add", tmp_path / "i", tmp_path / "more.csv").status == 0
    changed = selfsent("index", "--output", tmp_path / "j", "--delete", 8, "--compact")
    told = "--delete and --compact: deprecated; give selfsent index delete and selfsent index compact"
    assert told in changed.err
    assert selfsent("index", "delete", tmp_path / "i", 8).status == 0
    assert selfsent("index", "compact", tmp_path / "i").status == 0
    new, old = (selfsent("search", "--index", tmp_path / name, "gu he", "ko mi") for name in "ij")
    assert new.out == old.out != ""


def test_rows_are_added_by_a_model_that_moved(selfsent, index, model, tickets, tmp_path):
    index()
    move_model(tmp_path / "i", tmp_path / "gone")
    said = selfsent("index", "add", tmp_path / "i", tickets).late_complaint
    assert "say with --model where it is now" in said
    assert selfsent("index", "add", tmp_path / "i", tickets, "--model", model).status == 0


def test_nothing_here(selfsent, tmp_path):
    words = [f"{a}{b}" for a in ("stone", "river", "cloud", "metal") for b in ("box", "house", "hand", "song")]
    sentences = [" ".join(words[(i * k + k) % 16] for i in range(6)).capitalize() + "." for k in range(1, 61)]
    texts = [" ".join([f"Number{n} word{n} {each}"] * 1 + [f"Also name{n} {each}", f"And thing{n}."]) for n, each in
             enumerate(sentences)]  # fmt: skip
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n")
    asked = ("search", "--index", tmp_path / "i", "quantum chromodynamics", texts[3], "--answer-rate")
    assert selfsent("index", "build", "bundled", tmp_path / "a.txt", "--output", tmp_path / "i").status == 0
    done = selfsent(*asked, 0.8, "--json", "-").ok()
    assert "'quantum chromodynamics': nothing here (20 of 100 queries that have an answer get this answer" in done.err
    assert "answer rates of" in done.err
    told = done.json
    assert (told["answer_rate"], [each["answered"] for each in told["queries"]]) == (0.8, [False, True])
    assert min(hit["cosine"] + 1.5 * hit["words"] for hit in told["queries"][1]["hits"]) / 2.5 >= told["cutoff"] - 1e-5
    assert "answer rates of" not in selfsent(*asked, 0.8).err, "measured once"
    for rate, message in ((1, "above 0 and below 1"), (0.9999, "needs 9,999 at least")):
        refused = selfsent(*asked, rate)
        assert (refused.status, refused.out) == (2, "")
        assert message in refused.err
    again = selfsent(*asked, 0.8, "--rerank", "bundled", "--json", "-").json
    assert [each["answered"] for each in again["queries"]] == [False, True]
    plain = selfsent("search", "bundled", tmp_path / "a.txt", *asked[3:], 0.8, "--json", "-").json
    assert [each["answered"] for each in plain["queries"]] == [False, True]
    assert plain["cutoff"] == pytest.approx(told["cutoff"], abs=2e-3)
    queries = tmp_path / "queries.csv"
    queries.write_text("\n".join(["query,id,relevant", *(f'"{text}",{n},{n % 2}' for n, text in enumerate(texts))]))
    for source in (("--index", tmp_path / "i"), ("bundled", tmp_path / "a.txt")):
        own = selfsent("search", *source, *asked[3:], 0.9, "--queries", queries, "--json", "-").json
        assert own["measured_on"] == "30 given queries"
        assert own["cutoff"] > told["cutoff"], "whole texts are nearer to themselves"
    assert "--queries goes with --answer-rate" in selfsent("search", *source, "a query", "--queries", queries).err
    queries.write_text("query,id,relevant\none,1,0\ntwo,2,0\n")
    told = selfsent("search", *source, *asked[3:], 0.8, "--queries", queries)
    assert "no text was judged to be an answer" in told.err
