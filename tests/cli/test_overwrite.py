"""What --overwrite must not throw away, and what a run that cannot begin leaves behind."""

import json
import math
import os

import numpy as np
import pytest
from safetensors import SafetensorError

from selfsent.errors import OutputError
from selfsent.files import output_errors, write_json
from selfsent.training.checkpoint import BestCheckpoint
from selfsent.training.run_directory import RunDirectory


def test_a_base_inside_the_run_stays(train, selfsent, documents, tmp_path):
    run = tmp_path / "run"
    assert train("--method", "mlm", steps=("--steps", 1)).status == 0
    before = (run / "run.json").read_bytes()
    for base in (run, run / "model"):
        asked = train("--method", "mlm", "--overwrite", "--base", base)
        assert f"--overwrite would throw away {run / 'model'}, which is read" in asked.late_complaint
        again = selfsent("compare", documents, "--base", base, "--output", run, "--overwrite", "--steps", 1)
        assert "--overwrite would throw away" in again.late_complaint
    assert (run / "run.json").read_bytes() == before


def test_a_run_that_cannot_begin_leaves_nothing(train, tmp_path):
    asked = train("--method", "whitening", "--dimensions", 3000, steps=())
    assert "3000" in asked.late_complaint or "3,000" in asked.late_complaint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "wrong", [("--beta2", 1), ("--epochs", 1e308), ("--method", "ct", "--negatives", 10**20)], ids=str
)
def test_numbers_out_of_range(train, tmp_path, wrong):
    asked = train(*wrong, steps=() if wrong[0] == "--epochs" else ("--steps", 1))
    assert "it must be at most" in asked.complaint
    assert not (tmp_path / "run").exists()


def test_an_interrupt_before_the_run_begins_says_nothing_of_the_old_one(train, tmp_path, monkeypatch):
    assert train("--method", "mlm", steps=("--steps", 1)).status == 0

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("selfsent.training.fit.build_table", interrupt)
    stopped = train("--method", "mlm", "--overwrite", steps=("--steps", 2))
    assert stopped.status == 130
    assert "--resume" not in stopped.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"


def test_the_best_model_stays_until_the_run_is_over(train, documents, tmp_path, monkeypatch):
    kept = []
    forget = BestCheckpoint.forget

    def note(best):
        kept.append((best.directory.is_dir(), json.loads((best.directory.parent / "run.json").read_text())["status"]))
        forget(best)

    monkeypatch.setattr(BestCheckpoint, "forget", note)
    done = train("--method", "mlm", "--dev", "context", "--dev-every", 1, "--keep-best", corpus=documents)
    assert done.status == 0, done.err
    assert kept == [(True, "trained")]
    assert not (tmp_path / "run" / "best").exists()


def test_the_best_model_goes_where_a_kill_came_before_it_was_removed(train, documents, tmp_path, monkeypatch):
    def killed(best):
        raise KeyboardInterrupt

    options = ("--method", "mlm", "--dev", "context", "--dev-every", 1, "--keep-best")
    with monkeypatch.context() as patch:
        patch.setattr(BestCheckpoint, "forget", killed)
        assert train(*options, corpus=documents).status == 130
    assert (tmp_path / "run" / "best").exists()
    assert train(*options, "--resume", corpus=documents).status == 0
    assert not (tmp_path / "run" / "best").exists()


def test_names_that_are_not_utf_8(train, sentences, tmp_path):
    odd = tmp_path / os.fsdecode(b"caf\xe9.txt")
    odd.write_bytes(sentences.read_bytes())
    done = train("--method", "mlm", corpus=odd, steps=("--steps", 1))
    assert done.status == 0, done.err
    assert (
        os.fsdecode(b"caf\xe9.txt")
        in json.loads((tmp_path / "run" / "run.json").read_text())["asked"]["corpus"]["source"]
    )
    asked = train("--method", "mlm", output=tmp_path / os.fsdecode(b"r\xe9n"), steps=("--steps", 1))
    assert "is not UTF-8" in asked.complaint


def test_a_full_disk_is_told_in_one_line(tmp_path):
    for error in (OSError(28, "No space left on device"), SafetensorError("No space left on device")):
        with pytest.raises(OutputError, match="cannot be written: No space left on device"), output_errors(tmp_path):
            raise error
    directory = RunDirectory(tmp_path / "none")
    with pytest.raises(OutputError, match=r"metrics.jsonl cannot be written"):
        directory.log({"step": 1})
    write_json(tmp_path / "odd.json", {"name": "\udce9"})
    assert json.loads((tmp_path / "odd.json").read_text()) == {"name": "\udce9"}


def test_frozen_vectors_are_those_without_dropout(train, tmp_path):
    """The vectors that the flow is fitted on are not noise: a rate of dropout changes nothing."""
    from safetensors.numpy import load_file

    weights = []
    for place, rate in enumerate((0.5, 0.0)):
        output = tmp_path / str(place)
        assert train("--method", "flow", "--dropout", rate, output=output, steps=("--steps", 2)).status == 0
        flow = max((output / "model").glob("*Flow*/*.safetensors"), key=lambda file: file.stat().st_size)
        weights.append(load_file(flow))
    for name, own in weights[0].items():
        np.testing.assert_array_equal(own, weights[1][name])
        assert math.isfinite(float(own.sum()))


def test_views_do_not_replace_their_corpus(selfsent, tmp_path, sentences):
    views = tmp_path / "views.parquet"
    assert (
        selfsent(
            "augment", sentences, "--with", "translate:engine=command:there=rev:back=cat", "--output", views
        ).status
        == 0
    )
    before = views.read_bytes()
    asked = selfsent(
        "augment",
        views,
        "--with",
        "translate:engine=command:there=rev:back=cat",
        "--output",
        views,
        "--overwrite",
        "--text-column",
        "text",
    )
    assert f"--output would replace {views}, which is read" in asked.late_complaint
    assert views.read_bytes() == before


def test_a_corpus_that_is_left_out_altogether(train, sentences, tmp_path):
    assert "no text in it besides what is to be left out" in train("--without", sentences).late_complaint
    assert not (tmp_path / "run").exists()


def test_files_of_others_are_not_swept_away(train, tmp_path):
    assert train("--method", "mlm", steps=("--steps", 1)).status == 0
    (tmp_path / "run" / ".notes.20261122").write_text("mine")
    assert train("--method", "mlm", "--resume", steps=("--steps", 1)).status == 0
    assert (tmp_path / "run" / ".notes.20261122").read_text() == "mine"


def test_what_the_base_is_scored_with_and_what_is_kept_aside_is_told(train, documents, base, tmp_path):
    done = train("--method", "mlm", "--pooling", "cls", "--resume", corpus=documents)
    assert done.status == 0, done.err
    assert f"there is no run in {tmp_path / 'run'} to go on with: beginning at the first step" in done.err
    assert "mlm from " in done.err
    assert ": pooling cls, batch size 8" in done.err
    assert "the untrained base pools by mean, and is scored so" in done.err
    assert "(--pooling mean trains with it, too)" in done.err
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["asked"]["corpus"]["sentences"]
    assert f"training on {kept:,} sentences" in done.err
    assert f"of {3200 - kept:,} sentences; training" in done.err
    other = train("--method", "mlm", "--pooling", "mean", corpus=documents, output=tmp_path / "other")
    assert "pools by" not in other.err


def test_texts_that_are_cut_are_told(train, tmp_path):
    paragraphs = tmp_path / "paragraphs.txt"
    paragraphs.write_text("".join(f"{number} {'word ' * 60}\n" for number in range(10)))
    done = train("--method", "mlm", corpus=paragraphs, steps=("--steps", 1))
    assert (
        "10 of 10 texts are cut after 32 tokens: give --split-sentences if they are paragraphs, or --max-length"
        in done.err
    )
    assert "or --split-sentences if a text holds several sentences" in done.err


def test_sentences_and_passages_that_are_cut_are_told_as_such(train, tmp_path):
    paragraphs = tmp_path / "paragraphs.csv"
    rows = [" ".join(f"{n} {'word ' * length}{part}." for part in "abcd") for n in range(10) for length in (9, 40)]
    paragraphs.write_text("text\n" + "\n".join(rows))
    split = train("--method", "mlm", "--split-sentences", corpus=paragraphs, steps=("--steps", 1))
    assert "40 of 80 sentences are cut after 32 tokens: give --max-length" in split.err
    fits = ("--max-length", 64, "--method", "neighbours")
    several = {"--span": ("--span", 3, "--within", 2), "--within": ("--positives", "surroundings")}
    for flag, given in several.items():
        done = train(*fits, *given, corpus=paragraphs, output=tmp_path / flag, steps=("--steps", 1))
        assert f" of 80 passages are cut after 64 tokens: give a smaller {flag}, or --max-length" in done.err, done.err
    assert "cut after" not in train(*fits, corpus=paragraphs, output=tmp_path / "one", steps=("--steps", 1)).err


def test_the_step_that_was_kept_is_told(train, documents, tmp_path):
    arguments = ("--method", "mlm", "--dev", "context", "--dev-every", 1, "--keep-best")
    done = train(*arguments, corpus=documents)
    scores = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    best = max((entry for entry in scores if "score" in entry), key=lambda entry: entry["score"])
    said = f"kept the model of step {best['step']} of 4, whose score was {best['score']:.2f}"
    assert said in done.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["kept"]["step"] == best["step"]
    assert f"of which that of step {best['step']} was kept" in (tmp_path / "run" / "model" / "README.md").read_text()


def test_a_card_names_the_licence_of_the_base(tmp_path):
    from selfsent.models.bases import resolve
    from selfsent.report.card import licence_of

    assert licence_of(resolve("bundled-raw")) == "cc-by-sa-4.0"
    assert licence_of(tmp_path) is None
    (tmp_path / "README.md").write_text("license: mit\n")
    assert licence_of(tmp_path) is None
    (tmp_path / "README.md").write_text("---\ntags: [x]\nlicense: mit\n---\n# License: other\n")
    assert licence_of(tmp_path) == "mit"
