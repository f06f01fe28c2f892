"""A table of posts goes in; what comes out can be joined to it."""

import json

import numpy as np
import pytest

import tiny

FIRST = "ba de fi go. Mo ki la."
TEXTS = (FIRST, "", "ko mi", 'la nu "po",\nri sa', "ko  mi", FIRST, "ri sa te", "   ")
POSTS = [
    {"post": 100 + row, "body": text, "team": "" if row == 2 else f"team {row % 3}"} for row, text in enumerate(TEXTS)
]
CARRIED = ("--id-column", "post", "--keep", "team")


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    return tiny.write_table(tmp_path_factory.mktemp("posts") / "posts.csv", POSTS)


@pytest.fixture
def run(selfsent, model, posts):
    def call(command, *more):
        query = ("ko mi", "--top", 3) if command == "search" else ()
        done = selfsent(command, model, posts, *query, "--text-column", "body", *more).ok()
        return done

    return call


def test_vectors_line_up_with_the_table_as_pandas_reads_it(run, model, posts, tmp_path):
    pandas = pytest.importorskip("pandas")
    from sentence_transformers import SentenceTransformer

    done = run("encode", "--output", tmp_path / "v.npy")
    assert "8 vectors of 32 numbers" in done.err
    assert "one for each row of the input, in its order" in done.err
    assert "2 of them are all zeros: their texts are empty" in done.err
    table, vectors = pandas.read_csv(posts), np.load(tmp_path / "v.npy")
    assert len(vectors) == len(table)
    encoder = SentenceTransformer(str(model), device="cpu")
    for text, vector in zip(table["body"], vectors, strict=True):
        expected = encoder.encode(" ".join(text.split())) if isinstance(text, str) and text.strip() else np.zeros(32)
        np.testing.assert_allclose(vector, expected, atol=1e-4)
    run("encode", "--output", tmp_path / "v.parquet", *CARRIED)
    joined = table.merge(pandas.read_parquet(tmp_path / "v.parquet"), on="post")
    assert np.array_equal(np.stack(joined["embedding"]), vectors)
    assert joined["team_x"].equals(joined["team_y"])


@pytest.mark.parametrize("text", ["text\na b\n\n  \nc\n", 'text\n""\na b\n', "id,text\n1,\n\n2,a b\n,\n"])
def test_blank_lines_and_empty_cells_are_counted_as_pandas_does(selfsent, model, tmp_path, text):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "p.csv").write_text(text)
    assert selfsent("encode", model, tmp_path / "p.csv", "--output", tmp_path / "v.npy").status == 0
    table = pandas.read_csv(tmp_path / "p.csv")
    empty = ~np.load(tmp_path / "v.npy").any(1)
    assert empty.tolist() == table["text"].isna().tolist()


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_ids_are_in_every_file(run, tmp_path, ending):
    for command, sides in (("search", [""]), ("cluster", [""]), ("pairs", ["1", "2"])):
        file = tmp_path / f"{command}.{ending}"
        run(command, "--output", file, *CARRIED, *(["--clusters", 2] if command == "cluster" else []))
        found = tiny.rows_of(file)
        assert found
        for row in found:
            for side in sides:
                post = POSTS[int(row[f"row{side}"])]
                assert str(row[f"post{side}"]) == str(post["post"])
                assert (row[f"team{side}"] or "") == post["team"]
                assert row[f"text{side}"] == " ".join(post["body"].split())
        if command == "cluster":
            assert sorted(int(row["row"]) for row in found) == [0, 2, 3, 4, 5, 6]
        else:
            first = next(row for row in found for side in sides if row[f"text{side}"] == "ko mi")
            side = next(side for side in sides if first[f"text{side}"] == "ko mi")
            assert (int(first[f"row{side}"]), int(first[f"repeats{side}"])) == (2, 1)
    assert type(tiny.rows_of(tmp_path / "search.parquet")[0]["post"] if ending == "parquet" else 1) is int


def test_results_as_one_object(run, tmp_path):
    (query,) = run("search", "--json", "-", *CARRIED).json["queries"]
    assert query["query"] == "ko mi"
    hit = {"row": 2, "post": 102, "team": None, "repeats": 1, "text": "ko mi"}
    assert 0.3 < query["hits"][0].pop("words") < 1
    assert query["hits"][0] | {"cosine": 1} == {"cosine": 1, **hit}
    pairs = json.loads(run("pairs", "--json", "-", "--top", 2).out)["pairs"]
    assert [set(pair) for pair in pairs] == [
        {"score", "cosine", "words", *(f"{n}{s}" for n in ("row", "repeats", "text") for s in "12")}
    ] * 2
    done = run("cluster", "--json", tmp_path / "c.json", "--clusters", 2)
    assert "most typical text" in done.out
    clusters = json.loads((tmp_path / "c.json").read_text())["clusters"]
    assert [group["cluster"] for group in clusters] == [0, 1]
    assert sum(group["size"] for group in clusters) == 6
    assert clusters[0]["typical"]["text"] in {" ".join(text.split()) for text in TEXTS}


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--id-column", "nr"), "no column 'nr'; it has 'post', 'body', 'team'"),
        (("--keep", "team,"), "one of them is empty"),
        (("--keep", "row"), "results have a column 'row' of their own"),
    ],
)
def test_columns_that_cannot_come_out(selfsent, model, posts, tmp_path, more, complaint):
    for command in (("encode", "--output", tmp_path / "v.parquet"), ("pairs",)):
        command = (command[0], model, posts, *command[1:], "--text-column", "body", *more)
        assert complaint in selfsent(*command).complaint
    assert not list(tmp_path.iterdir())
