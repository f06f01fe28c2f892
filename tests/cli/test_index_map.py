"""An index that is asked by another encoder than its texts were encoded with."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import tiny
from selfsent.data.vector_files import unit
from selfsent.errors import DataError, SettingsError
from selfsent.index import Index
from selfsent.index.query_map import Mapped, QueryMap
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.serving.engine import Engine
from selfsent.serving.requests import EmbeddingsRequest, SearchRequest

TEXTS = ["ba de fi go", "ko mi", "la nu po", "ri sa te", "gu he"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The directories of an old and a new encoder."""
    folder = tmp_path_factory.mktemp("tables")
    return [tiny.save_base(folder / name, "static", seed) for seed, name in enumerate(("old", "new"))]


@pytest.fixture
def mapped(selfsent, tables, tmp_path):
    """An index of the old encoder, a map in it that is made up, and what a query should score."""
    old, new = tables
    (tmp_path / "t.csv").write_text("id,text\n" + "".join(f"{n},{text}\n" for n, text in enumerate(TEXTS)))
    selfsent("index", "build", old, tmp_path / "t.csv", "--id-column", "id", "--output", tmp_path / "i").ok()
    size = open_encoder(str(old)).embedding_size
    matrix = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    about = Mapped("made up", str(new), fingerprint(open_encoder(str(new))), "old", fingerprint(open_encoder(str(old))))
    made = QueryMap(about, matrix)
    made.save(tmp_path / "m.safetensors")

    def expected(query, through=True):
        texts = unit(encode(open_encoder(str(old)), TEXTS))
        asked = unit(encode(open_encoder(str(new if through else old)), [query]))
        return (unit(asked @ matrix) if through else asked) @ texts.T

    return tmp_path / "i", made, expected


def scores(selfsent, index, query, *more):
    found = selfsent("search", "--index", index, query, "--lexical-weight", 0, "--json", "-", *more).ok()
    return {hit["id"]: hit["cosine"] for hit in found.json["queries"][0]["hits"]}


def test_queries_are_mapped_until_the_map_is_taken_out(selfsent, tables, mapped, tmp_path):
    index, _, expected = mapped
    query, (old, new) = "ba de ko", tables
    wanted = {through: dict(enumerate(expected(query, through)[0])) for through in (True, False)}
    assert scores(selfsent, index, query) == pytest.approx(wanted[False], abs=2e-3)

    done = selfsent("index", "map", index, tmp_path / "m.safetensors")
    assert (done.status, done.out) == (0, "")
    assert f"queries of {index} are encoded by {new} and mapped" in done.err
    assert Index(index).query_model == str(new)
    assert scores(selfsent, index, query) == pytest.approx(wanted[True], abs=2e-3)
    assert scores(selfsent, index, query, "--model", new) == pytest.approx(wanted[True], abs=2e-3)
    assert scores(selfsent, index, query, "--model", old) == pytest.approx(wanted[False], abs=2e-3)

    said = selfsent("search", "--index", index, query, "--answer-rate", 0.9).complaint
    assert "scores of mapped queries are not calibrated: leave out --answer-rate" in said
    assert selfsent("index", "compact", index).status == 0
    assert scores(selfsent, index, query) == pytest.approx(wanted[True], abs=2e-3)
    (tmp_path / "more.csv").write_text("id,text\n9,ba de ko\n")
    assert selfsent("index", "add", index, tmp_path / "more.csv").status == 0  # by the old encoder
    assert scores(selfsent, index, query, "--model", old)[9] == pytest.approx(1, abs=2e-3)
    assert set(scores(selfsent, index, query)) == {*wanted[True], 9}

    assert selfsent("index", "map", index, "--remove").status == 0
    assert Index(index).query_model == str(old)
    assert scores(selfsent, index, query) == pytest.approx(wanted[False] | {9: 1}, abs=2e-3)
    assert "has no map" in selfsent("index", "map", index, "--remove").err


def test_a_service_maps_queries_and_serves_the_new_encoders_own_vectors(tables, mapped):
    path, made, expected = mapped
    index, new = Index(path), open_encoder(str(tables[1]))
    index.set_query_map(made)
    engine = Engine(index, new, query_map=index.query_map)
    [(hits, _)] = engine.work([SearchRequest("ba de ko", 10, lexical_weight=0.0)])
    assert {hit["id"]: hit["cosine"] for hit in hits} == pytest.approx(
        dict(enumerate(expected("ba de ko")[0])), abs=2e-3
    )
    [(entries, _)] = engine.work([EmbeddingsRequest(["ba de ko"])])
    np.testing.assert_allclose(json.loads(entries[0])["embedding"], unit(encode(new, ["ba de ko"]))[0], atol=1e-5)
    assert engine.model == "/".join(tables[1].parts[-2:])


def test_a_shorter_index_takes_the_beginning_of_the_map(selfsent, tables, mapped, tmp_path):
    _, made, _ = mapped
    given = ("--id-column", "id", "--size", 8, "--output", tmp_path / "short")
    assert selfsent("index", "build", tables[0], tmp_path / "t.csv", *given).status == 0
    index = Index(tmp_path / "short")
    index.set_query_map(made)
    asked = unit(encode(open_encoder(str(tables[1])), ["ko mi"]))
    texts = unit(encode(open_encoder(str(tables[0])), TEXTS)[:, :8])
    wanted = unit((asked @ made.matrix)[:, :8]) @ texts.T
    assert scores(selfsent, tmp_path / "short", "ko mi") == pytest.approx(dict(enumerate(wanted[0])), abs=2e-3)


def test_maps_of_other_encoders_are_refused(selfsent, tables, mapped, tmp_path):
    path, made, _ = mapped
    index = Index(path)
    for change, said in (
        ({"space": "another"}, "the map leads to 32 numbers of old, and .* holds 32 of"),
        ({"fingerprint": ""}, "which no model here makes: apply it yourself"),
    ):
        with pytest.raises(DataError, match=said):
            index.set_query_map(replace(made, about=replace(made.about, **change)))
    with pytest.raises(DataError, match="the map leads to 8 numbers"):
        index.set_query_map(made.cut(8))
    assert index.query_map is None
    changed = replace(made, about=replace(made.about, fingerprint="before"))
    index.set_query_map(changed)
    said = selfsent("search", "--index", path, "ko mi").complaint
    assert f"new is not as it was when the map of {path} was learned" in said
    assert f"selfsent index map {path} --remove" in said
    index.set_query_map(QueryMap(made.about, np.ones((9, 32), np.float32)))
    with pytest.raises(SettingsError, match=r"have 9 numbers, those of .* 32: give those that `query_map` makes"):
        index.search(np.ones((1, 9), np.float32))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give the file of a map, or --remove, and not both"),
        (("m.safetensors", "--remove"), "give the file of a map, or --remove, and not both"),
        (("nothing.safetensors",), "nothing.safetensors is no map between two encoders"),
        (("--remove", "--model", "x"), "--model goes with the file of a map: leave it out"),
    ],
)
def test_what_index_map_needs(selfsent, mapped, monkeypatch, tmp_path, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert said in selfsent("index", "map", "i", *arguments).complaint


def test_a_map_is_learned_from_a_sample_and_used(selfsent, tables, tmp_path):
    rows = tiny.make_sentences(240, words=(6, 9))
    bodies = [". ".join(text.capitalize() for text in rows[start : start + 4]) + "." for start in range(0, 240, 4)]
    (tmp_path / "s.csv").write_text("id,text\n" + "".join(f"{n},{text}\n" for n, text in enumerate(bodies)))
    old, new = tables
    file = tmp_path / "m.safetensors"
    given = ("--from", old, "--to", new, "--sample", tmp_path / "s.csv", "--output", file)
    done = selfsent("adapt", *given, "--lexical-weight", 0, "--json", "-").ok()
    told = done.json
    assert {"old", "mapped", "new", "kept", "map", "dev"} <= {*told}
    assert told["old"]["n"] == told["mapped"]["n"] == 30
    assert told["map"] == max(told["dev"], key=told["dev"].get)
    assert "60 texts are few to learn a map of 32 directions from" in done.err
    about = QueryMap.load(file).about
    assert (about.model, about.fingerprint) == (str(new), fingerprint(open_encoder(str(new))))
    assert selfsent("index", "build", old, tmp_path / "s.csv", "--output", tmp_path / "i").status == 0
    assert selfsent("index", "map", tmp_path / "i", file).status == 0
    assert selfsent("search", "--index", tmp_path / "i", "ba de", "--top", 3).status == 0
    table = selfsent("adapt", *given)
    assert "old, as now" in table.out
    assert "all encoded again" in table.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "bundled"), "--from goes with --to"),
        (("--sample", "s.csv", "exam"), "--sample goes with --to"),
        ((), "the following arguments are required: EXAM"),
        (("exam", "--model", "bundled", "--text-column", "text"), "--text-column says how to read --sample"),
        (
            ("exam", "--from", "bundled", "--to", "bundled", "--model", "x"),
            "leave out --vectors, --queries and --model",
        ),
        (("--from", "bundled", "--to", "bm25", "--sample", "SAMPLE"), "bm25 has no vectors to map"),
    ],
)
def test_what_a_map_cannot_be_learned_from(selfsent, tmp_path, arguments, said):
    sample = tmp_path / "s.jsonl"
    rows = [". ".join(tiny.make_sentences(4, seed, words=(6, 9))).capitalize() + "." for seed in range(8)]
    tiny.write_table(sample, [{"text": row.replace(". ", ". X")} for row in rows])
    given = [sample if each == "SAMPLE" else each for each in arguments]
    done = selfsent("adapt", *given, "--output", tmp_path / "m.safetensors")
    assert (done.status, said in done.err) == (2, True), done.err
    assert not (tmp_path / "m.safetensors").exists()


def test_the_printed_query_of_a_pushed_index_maps(selfsent, mapped, tmp_path):
    pytest.importorskip("lancedb")
    path, made, expected = mapped
    Index(path).set_query_map(made)
    printed = selfsent("push", path, f"lancedb://{tmp_path / 'store'}#rows").ok().out
    code = printed.replace("printer does not answer", "ba de ko").replace("index.query_weights(query)", "{}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    found = [int(line.split("'id': ")[1].split(",")[0].strip("'")) for line in done.stdout.splitlines()]
    assert found == np.argsort(-expected("ba de ko")[0]).tolist()
