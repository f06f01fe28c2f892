import io
import subprocess
import sys

import fsspec
import numpy as np
import pyarrow.parquet as pq


def test_the_version(selfsent):
    from selfsent import __version__

    assert selfsent("--version").out == f"selfsent {__version__}\n"


def test_methods_for_people(selfsent):
    listed = selfsent("methods")
    assert listed.status == 0
    for said in ("tsdae: Transformer-based", "arXiv:2104.08821", "−Σ", "rate 3e-05", "simcse: ", "mlm: "):
        assert said in listed.out
    assert "--temperature" not in listed.out

    def of(name):
        return " ".join(selfsent("methods", name).out.split())

    assert "--temperature X divides the cosines (default: 0.05) --mlp, --no-mlp a dense layer with tanh" in of("simcse")
    assert "--settings published: as published, with loss cosine, predictor_rate 1.0" in of("bootstrap")
    assert "--settings faithful: as published, with temperature 0.0, masked False" in of("infomax")
    assert "{none,kept,both}" in of("ct-inbatch")


def test_search_finds_the_sentence_itself_first(selfsent, model, sentences):
    lines = sentences.read_text().splitlines()
    done = selfsent("search", model, sentences, lines[7], "--top", 3).ok()
    score, found = done.out.splitlines()[0].split("  ")
    assert (0.8 < float(score) < 1, found) == (True, lines[7])
    assert len(done.out.splitlines()) == 3
    cosine = ("--top", 1, "--word-weight", 0)
    several = selfsent("search", model, sentences, lines[7], lines[8], *cosine).out.splitlines()
    assert several == [f"# {lines[7]}", f"1.000  {lines[7]}", f"# {lines[8]}", f"1.000  {lines[8]}"]


def test_search_is_reranked(selfsent, model, base, sentences, tmp_path):
    from torch import nn

    from selfsent.models.cross_encoder import CrossEncoder
    from selfsent.models.loading import load_encoder

    CrossEncoder(load_encoder(base), 1, nn.Identity()).save(tmp_path / "cross")
    asked = ("search", model, sentences, "ba de", "--top", 2)
    for rerank, measure, weight in ((base, "cosine", 0.5), (tmp_path / "cross", "score", 0)):
        how = (*asked, "--rerank", rerank, "--candidates", 7)
        told = selfsent(*how, "--json", "-", "--output", tmp_path / "hits.csv").json
        assert [told[name] for name in ("rerank", "candidates", "lexical_weight")] == [str(rerank), 7, weight]
        hits = told["queries"][0]["hits"]
        assert [*hits[0]] == [measure, "words", "row", "repeats", "text"]
        assert (tmp_path / "hits.csv").read_text().startswith(f"query,{measure},words,row")
        shown = [f"{(hit[measure] + weight * hit['words']) / (1 + weight):.3f}  {hit['text']}" for hit in hits]
        assert selfsent(*how).out.splitlines() == shown
    (tmp_path / "t.csv").write_text("text,score\nba de,3\nko mi,4\n")
    taken = ("search", model, tmp_path / "t.csv", "ba", "--text-column", "text", "--keep", "score", "--rerank")
    assert selfsent(*taken, base).status == 0
    complaint = selfsent(*taken, tmp_path / "cross").late_complaint
    assert "the results of a cross-encoder have a column 'score' of their own; rename yours" in complaint


def test_vectors_of_encode_serve_the_other_commands(selfsent, model, sentences, tmp_path, monkeypatch):
    commands = (
        ("search", model, sentences, "ba de", "--top", 2),
        ("pairs", model, sentences, "--top", 2),
        ("cluster", model, sentences, "--clusters", 3),
    )
    expected = [selfsent(*command).out for command in commands]
    kept = tmp_path / "v.parquet"
    assert selfsent("encode", model, sentences, "--output", kept).status == 0
    monkeypatch.setattr("selfsent.search.vectors.encode_stream", None)
    fewer = tmp_path / "fewer.txt"
    fewer.write_text("\n".join(sentences.read_text().splitlines()[:50]) + "\n")
    for command, out in zip(commands, expected, strict=True):
        done = selfsent(*command, "--encoded", kept)
        assert (done.status, done.out) == (0, out), done.err
        assert "none.npy does not exist" in selfsent(*command, "--encoded", tmp_path / "none.npy").complaint
        other = selfsent(command[0], "bundled-raw", *command[2:], "--encoded", kept)
        assert "holds vectors of 32 numbers; this model's have 256" in other.late_complaint
        other = selfsent(*command[:2], fewer, *command[3:], "--encoded", kept)
        assert "120 vectors; this corpus has 50 rows: encode it again" in other.complaint
        refused = selfsent(*command, "--encoded", kept, "--output", kept)
        assert "which is read: name another file" in refused.complaint


def test_a_second_corpus_is_not_taken_for_a_query(selfsent, model, sentences, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "more.txt"
    other.write_text("another sentence\n")
    refused = selfsent("search", model, sentences, "more.txt", "query").complaint
    assert "more.txt is a file, not a query" in refused
    assert selfsent("search", model, sentences, "less.txt", "--top", 1).status == 0


def test_a_reader_that_leaves_is_no_error():
    code = "from selfsent.cli import main; main(['train', '--help'])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    complaint = process.stderr.read()
    assert (process.wait(), complaint) == (0, "")


def test_one_sentence_can_be_encoded_and_searched(selfsent, model, tmp_path):
    one = tmp_path / "one.txt"
    one.write_text("ba de fi\nba de fi \n")
    assert "only one distinct sentence" in selfsent("pairs", model, one).late_complaint
    assert selfsent("encode", model, one, "--output", tmp_path / "v.npy").status == 0
    assert np.load(tmp_path / "v.npy").shape[0] == 2
    assert selfsent("search", model, one, "ba").out.splitlines()[0].endswith("ba de fi  (and 1 more row)")
    assert "only one distinct sentence" in selfsent("train", one, "--output", tmp_path / "run").complaint


def test_names_of_a_corpus_are_never_its_sentences(selfsent, model, sentences, tmp_path):
    for names in (("absent",), ("-", "absent"), (tmp_path / "*.nothing",)):
        done = selfsent("encode", model, sentences, *names, "--output", tmp_path / "v.npy")
        assert "no such file" in done.complaint or "no file matches" in done.complaint
    (tmp_path / "more.txt").write_text("ba de\nko mi\n")
    selfsent("encode", model, sentences, tmp_path / "*ore.txt", "--output", tmp_path / "v.parquet").ok()
    assert pq.read_table(tmp_path / "v.parquet")["text"].to_pylist()[-2:] == ["ba de", "ko mi"]


def test_standard_output_that_lacks_a_character(selfsent, model, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("ba → de\nko mi\n")
    for more, shown in (((), rb"ba \u2192 de"), (("--json", "-"), "ba → de".encode())):
        latin = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
        monkeypatch.setattr(sys, "stdout", latin)
        assert selfsent("search", model, tmp_path / "a.txt", "ba de", "--top", 2, *more).status == 0
        latin.flush()
        assert shown in latin.buffer.getvalue()


def test_what_is_read_is_not_replaced(selfsent, model, sentences, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    table = folder / "a.csv"
    table.write_text("text\nba de\nko mi\nla nu po\n")
    before = table.read_bytes()
    for source in (table, folder, folder / "*.csv", table.as_uri()):
        for command in (("search", model, source, "ba"), ("pairs", model, source), ("cluster", model, source)):
            options = ("--clusters", 2) if command[0] == "cluster" else ()
            assert "which is read" in selfsent(*command, *options, "--output", table).complaint
    kept = folder / "v.parquet"
    kept.write_bytes(b"")
    assert "which is read" in selfsent("encode", model, folder, "--output", kept).complaint
    kept.unlink()
    for _ in range(2):
        assert selfsent("encode", model, folder, "--output", folder / "v.npy").status == 0
    assert "which is read" in selfsent("evaluate", table, "--pairs", table, "--page", table).complaint
    scored = tmp_path / "scored.tsv"
    scored.write_text("ba\tde\t1\nko\tmi\t0\nla\tnu\t2\n")
    for _ in range(2):
        selfsent("evaluate", model, "--pairs", scored, "--json", model / "scores.json").ok()
    (model / "scores.json").unlink()
    kept = tmp_path / "v.parquet"
    assert selfsent("evaluate", model, "--pairs", scored, "--vectors", kept).status == 0
    assert "which is read" in selfsent("evaluate", kept, "--pairs", scored, "--vectors", kept).complaint
    assert "--output is empty" in selfsent("search", model, table, "ba", "--output", "").complaint
    assert "which is read" in selfsent("evaluate", model, "--documents", table, "--page", table).complaint
    other = ("pairs", model, sentences, "--without", table)
    assert "which is read" in selfsent(*other, "--output", table).complaint
    assert table.read_bytes() == before
    assert selfsent("pairs", model, table, "--output", folder / "new.csv").status == 0


def test_an_output_that_cannot_be_made_is_told_first(selfsent, model, sentences, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    complaint = selfsent("pairs", model, sentences, "--output", "pairs.csv").complaint
    assert "pairs.csv cannot be written: Read-only file system" in complaint


def test_standard_input_that_is_closed_holds_nothing(selfsent, model, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "no text in it" in selfsent("encode", model, "-", "--output", tmp_path / "v.npy").complaint


def test_an_address_wherever_a_file_is_taken(sentences, base, selfsent, tmp_path):
    memory = fsspec.filesystem("memory")
    memory.pipe("/shelf/sentences.txt", sentences.read_bytes())
    try:
        refused = selfsent("encode", base, sentences, "--output", "s3://b/x.npy").complaint
        assert "is remote: name a local file" in refused
        outcome = selfsent("search", base, "memory://shelf/sentences.txt", "ba", "--without", "memory://shelf/*.txt")
        assert "no text in it besides what is to be left out" in outcome.late_complaint
        for command in (
            ["search", base, "memory://shelf/none.txt", "x"],
            ["train", "memory://shelf/none.txt", "--output", tmp_path],
        ):
            assert selfsent(*command).complaint == "selfsent: memory://shelf/none.txt: not found"
        assert selfsent("encode", base, "memory://shelf", "--output", tmp_path / "x.npy").status == 0
    finally:
        memory.store.clear()
        memory.pseudo_dirs[:] = [""]
