import csv
import json

import pyarrow.parquet as pq
import pytest

from selfsent.training.precision import computes_int8, inference_device

NUMBERS = ("score", "cosine", "words")


@pytest.fixture
def alike(tmp_path):
    """A corpus with two sentences that any encoder takes for one: the tokenizer has no capitals."""
    path = tmp_path / "alike.txt"
    path.write_text("ba de fi go\nko mi\nla nu po\nBa de fi go\n[bold]ri sa te[/bold]\n\x1b[31mmo ba ki\n")
    return path


def test_the_most_similar_pairs(selfsent, model, alike):
    done = selfsent("pairs", model, alike, "--top", 2)
    assert done.status == 0, done.err
    first, second, *_ = done.out.splitlines()
    assert (first, second) == ("1.000  ba de fi go", "       Ba de fi go")
    assert len(done.out.splitlines()) == 4


def test_hostile_text_is_shown_as_it_is(selfsent, model, alike):
    shown = selfsent("pairs", model, alike).out
    assert "[bold]ri sa te[/bold]" in shown
    assert "\x1b" not in shown


def test_a_threshold_and_nothing_above_it(selfsent, model, alike, sentences):
    assert len(selfsent("pairs", model, alike, "--threshold", 0.99999).out.splitlines()) == 2
    none = selfsent("pairs", model, sentences, "--threshold", 1)
    assert (none.status, none.out) == (0, "")
    assert "no pair has a score of 1.0 or more" in none.err


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.jsonl", "p.parquet"])
def test_pairs_in_a_file(selfsent, model, alike, tmp_path, name):
    done = selfsent("pairs", model, alike, "--top", 3, "--output", tmp_path / name)
    assert (done.status, done.out) == (0, ""), done.err
    assert "3 pairs in" in done.err
    if name == "p.parquet":
        rows = pq.read_table(tmp_path / name).to_pylist()
    elif name == "p.jsonl":
        rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
    else:
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if name == "p.tsv" else ","))
    assert len(rows) == 3
    assert {key: str(value) for key, value in rows[0].items() if key not in NUMBERS} == {
        "row1": "0",
        "row2": "3",
        "repeats1": "0",
        "repeats2": "0",
        "text1": "ba de fi go",
        "text2": "Ba de fi go",
    }
    assert [*rows[0]][:3] == [*NUMBERS]
    assert [float(rows[0][name]) for name in NUMBERS] == pytest.approx([1, 1, 1], abs=1e-5)
    for row in rows:
        score = (float(row["cosine"]) + 0.5 * float(row["words"])) / 1.5
        assert float(row["score"]) == pytest.approx(score, abs=2e-6)


def test_approximate_pairs_come_with_their_recall(selfsent, model, sentences):
    done = selfsent("pairs", model, sentences, "--approximate", "--top", 5, "--word-weight", 0)
    assert done.status == 0, done.err
    assert "finds, measured on a sample: 1" in done.err
    exact = selfsent("pairs", model, sentences, "--top", 5, "--word-weight", 0)
    assert done.out == exact.out


def test_words_order_what_cosines_propose(selfsent, model, sentences):
    def found(*options):
        return json.loads(selfsent("pairs", model, sentences, "--json", "-", "--top", 7140, *options).out)

    alone, both = found("--word-weight", 0), found("--word-weight", 2, "--language", "none")
    assert (alone["word_weight"], both["word_weight"]) == (0, 2)
    assert {pair["words"] for pair in alone["pairs"]} == {0}
    assert all(pair["score"] == pair["cosine"] for pair in alone["pairs"])
    cosines = {(pair["row1"], pair["row2"]): pair["cosine"] for pair in alone["pairs"]}
    assert {(pair["row1"], pair["row2"]): pair["cosine"] for pair in both["pairs"]} == cosines
    scores = [pair["score"] for pair in both["pairs"]]
    assert scores == sorted(scores, reverse=True)
    assert len({pair["words"] for pair in both["pairs"]}) > 10
    least = scores[100]
    kept = found("--word-weight", 2, "--language", "none", "--threshold", least - 1e-6)["pairs"]
    assert kept == [pair for pair in both["pairs"] if pair["score"] >= least - 1e-6]
    near = found("--word-weight", 2, "--language", "none", "--approximate")["pairs"]
    exact = {(pair["row1"], pair["row2"]): pair["score"] for pair in both["pairs"]}
    assert [pair["score"] for pair in near] == sorted((pair["score"] for pair in near), reverse=True)
    for pair in near:
        assert pair["score"] == pytest.approx(exact[pair["row1"], pair["row2"]], abs=1e-5)


def test_a_line_of_signs_makes_no_pair(selfsent, tmp_path):
    posts = ["The pitcher threw a fast ball.", "Who still drives a Volvo?", "Who still drives an old Volvo?"]
    path = tmp_path / "posts.csv"
    path.write_text("text\n" + "".join(f'"{post}\n{"=" * 80}"\n' for post in posts))
    done = selfsent("pairs", "bundled", path, "--json", "-")
    assert "100% of the texts hold separator lines: add --clean separators" in done.err
    first, second, _ = json.loads(done.out)["pairs"]
    assert (first["row1"], first["row2"]) == (1, 2)
    assert first["score"] > second["score"] + 0.2
    first, second, _ = json.loads(selfsent("pairs", "bundled", path, "--json", "-", "--clean", "separators").out)[
        "pairs"
    ]
    assert first["text1"] == posts[1]
    assert first["cosine"] > second["cosine"] + 0.4


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--top", 0), "--top is 0"),
        (("--threshold", 1.5), "--threshold is 1.5"),
        (("--word-weight", -1), "the weight of words is -1"),
        (("--language", "engish"), "did you mean 'english'?"),
        (("--output", "pairs.txt"), "must end in .csv"),
        (("--output", "pairs.csv/x.csv"), "is a file"),
    ],
)
def test_bad_options(selfsent, model, sentences, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").touch()
    assert complaint in selfsent("pairs", model, sentences, *arguments).complaint


def test_encode_goes_on_where_it_was_interrupted(selfsent, model, sentences, tmp_path, monkeypatch):
    from selfsent.search.vectors import _Part

    monkeypatch.setattr("selfsent.models.encoding.CHUNK", 50)
    append = _Part.append

    def append_once(part, vectors):
        if part.done:
            raise KeyboardInterrupt
        append(part, vectors)

    with monkeypatch.context() as patch:
        patch.setattr(_Part, "append", append_once)
        stopped = selfsent("encode", model, sentences, "--output", tmp_path / "v.npy")
    assert stopped.status == 130
    assert "interrupted: 50 of 120 rows are done" in stopped.err
    done = selfsent("encode", model, sentences, "--output", tmp_path / "v.npy", "--fast")
    assert done.status == 0, done.err
    if "no faster in bfloat16" in done.err:
        assert "50 of them had been made before" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["v.npy"]


@pytest.mark.skipif(not computes_int8(inference_device()), reason="needs a CPU with AVX-512 VNNI, and no GPU")
def test_what_8_bits_are_too_few_for_is_refused(selfsent, model, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr("selfsent.fast.int8.LEAST", 1.1)
    done = selfsent("encode", model, sentences, "--output", tmp_path / "v.npy", "--int8")
    assert "8 bits are too few for this encoder" in done.complaint
    assert not list(tmp_path.iterdir())


def test_export(selfsent, model, tmp_path, monkeypatch):
    from selfsent.models.export import Exported

    asked = []

    def export(encoder, *how):
        asked.append(how)
        return Exported(True, 32, 96, "", 1e-7, 0.95)

    monkeypatch.setattr("selfsent.models.export.export", export)
    done = selfsent("export", model, "--normalize", "--output", tmp_path / "graph")
    assert done.status == 0, done.err
    assert asked == [(tmp_path / "graph", True)]
    assert "32 numbers a sentence, smallest cosine to torch's vectors 0.950000" in done.err
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "export.json").write_text("{}")
    assert "is there already" in selfsent("export", model, "--output", tmp_path / "old").complaint
    assert selfsent("export", model, "--output", tmp_path / "old", "--overwrite").status == 0
    for other in (model, model.parent):
        complaint = selfsent("export", model, "--output", other, "--overwrite").complaint
        assert "exists and is no export of selfsent" in complaint
    assert (model / "model.safetensors").is_file()
