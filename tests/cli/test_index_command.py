import csv
import json

import pyarrow as pa
import pytest

from selfsent.integrity import checksum


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
        return selfsent("index", model, corpus, *given, *more)

    return make


def test_index_and_search(selfsent, index, model, tickets, tmp_path):
    done = index()
    assert (done.status, done.out) == (0, ""), done.err
    assert "4 vectors in" in done.err
    assert "recall@10 100.0% on a sample, where all vectors are compared with a query" in done.err
    assert "(1 empty, 1 repeated)" in done.err
    carried = ("--text-column", "body", "--id-column", "id", "--keep", "team", "--top", 2)
    exact = selfsent("search", model, tickets, "ko mi", "la nu", "--word-weight", 0, *carried)
    found = selfsent("search", "--index", tmp_path / "i", "ko mi", "--top", 2, "la nu", "--word-weight", 0)
    assert found.status == 0, found.err
    assert found.out == exact.out
    assert "older way" not in found.err
    assert "1.000  8  y  ko mi  (and 1 more row)" in found.out
    as_file = selfsent("search", "--index", tmp_path / "i", "ko mi", "--output", tmp_path / "hits.csv", "--json", "-")
    with (tmp_path / "hits.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert (first["query"], first["words"], first["id"], first["team"]) == ("ko mi", "1.0", "8", "y")
    assert (first["row"], first["repeats"], first["text"]) == ("1", "1", "ko mi")
    told = json.loads(as_file.out)
    assert told["index"] == str(tmp_path / "i")
    assert told["queries"][0]["hits"][0]["id"] == 8
    itself = selfsent("search", "--index", tmp_path / "i", "ko mi", "--rerank", model, "--json", "-")
    again = json.loads(itself.out)
    assert (again["rerank"], again["word_weight"]) == (str(model), told["word_weight"])
    assert [hit["row"] for hit in again["queries"][0]["hits"]] == [hit["row"] for hit in told["queries"][0]["hits"]]


def test_words_are_weighed(selfsent, index, model, tickets, tmp_path):
    index()
    words = ("ko zu", "--top", 4, "--word-weight", 3)
    exact = selfsent("search", model, tickets, "--text-column", "body", *words, "--json", "-", "--language", "none")
    assert json.loads(exact.out)["language"] == "none"
    found = selfsent("search", "--index", tmp_path / "i", *words, "--json", "-")
    assert "ranks by the cosine and TF-IDF, the older way" in found.err
    told = json.loads(found.out)
    assert told["word_weight"] == 3
    hits = told["queries"][0]["hits"]
    scores = [hit["cosine"] + 3 * hit["words"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert [hit["row"] for hit in hits] == [hit["row"] for hit in json.loads(exact.out)["queries"][0]["hits"]]
    shown = selfsent("search", "--index", tmp_path / "i", *words).out.splitlines()
    assert [float(line.split()[0]) for line in shown] == pytest.approx([score / 4 for score in scores], abs=6e-4)
    said = selfsent("search", "--index", tmp_path / "i", "ko", "--language", "english").complaint
    assert "--index knows no stems yet" in said
    assert "no language 'klingon'" in selfsent("search", model, tickets, "ko", "--language", "klingon").complaint
    said = selfsent("search", model, tickets, *words[:-1], "-1").complaint
    assert "the weight of words is -1; it is 0 to 1,000" in said


def test_rows_are_added(selfsent, index, tmp_path):
    index()
    (tmp_path / "more.csv").write_text("id,body,team\n20,gu he,z\n21,ko mi,z\n")
    refused = index(corpus=tmp_path / "more.csv").complaint
    assert "already holds an index: give --add" in refused
    done = index("--add", corpus=tmp_path / "more.csv")
    assert done.status == 0, done.err
    assert "1 vector added, 1 of the texts were there already" in done.err
    found = selfsent("search", "--index", tmp_path / "i", "gu he", "ko mi", "--top", 1).out.splitlines()
    assert found[1] == "1.000  20  z  gu he"
    assert found[3] == "1.000  8  y  ko mi  (and 2 more rows)"
    assert index("--overwrite", corpus=tmp_path / "more.csv").status == 0
    assert "2 vectors in" in index("--overwrite", corpus=tmp_path / "more.csv").err


def without_texts(index):
    """An index as earlier versions made it of vectors alone."""
    with pa.OSFile(str(index / "rows.arrow")) as file:
        table = pa.ipc.open_file(file).read_all().drop_columns(["text"])
    with pa.ipc.new_file(str(index / "rows.arrow"), table.schema) as file:
        file.write_table(table)
    (index / "words.npy").unlink()
    about = json.loads((index / "index.json").read_text())
    del about["columns"]["text"], about["checksums"]["words.npy"]
    about["checksums"]["rows.arrow"] = checksum(index / "rows.arrow")
    (index / "index.json").write_text(json.dumps(about))
    return index


def test_an_index_without_texts(selfsent, index, model, tmp_path):
    index()
    without_texts(tmp_path / "i")
    assert selfsent("search", "--index", tmp_path / "i", "la nu po", "--top", 1).out == "1.000  9  x  row 2\n"
    said = selfsent("search", "--index", tmp_path / "i", "la nu po", "--word-weight", 1).complaint
    assert "has no texts: leave out --word-weight" in said
    said = selfsent("search", "--index", tmp_path / "i", "la nu po", "--rerank", model).complaint
    assert "i has no texts to rerank" in said


def test_another_model_is_refused_in_one_line(selfsent, index, model, base, tmp_path):
    index()
    said = selfsent("search", "--index", tmp_path / "i", "ko mi", "--model", base).complaint
    assert "holds vectors of another model" in said
    assert f"give --model {model}" in said
    about = tmp_path / "i" / "index.json"
    about.write_text(about.read_text().replace(str(model), str(tmp_path / "gone")))
    said = selfsent("search", "--index", tmp_path / "i", "ko mi").complaint
    assert "say with --model where it is now" in said
    assert selfsent("search", "--index", tmp_path / "i", "ko mi", "--model", model).status == 0


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("search", "--index", "nowhere", "q"), "nowhere does not exist: make one with selfsent index"),
        (("search", "--index", "INDEX", "q", "--encoded", "v.npy"), "leave out --encoded"),
        (("search", "--index", "INDEX", "q", "--text-column", "body"), "--text-column says how to read a corpus"),
        (("search", "MODEL", "CORPUS", "q", "--model", "MODEL"), "without --index MODEL comes first"),
        (("pairs", "MODEL"), "the following arguments are required: CORPUS"),
        (("pairs", "MODEL", "CORPUS", "more"), "unrecognised argument more"),
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
