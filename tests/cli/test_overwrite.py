"""What --overwrite must not throw away, and what a run that cannot begin leaves behind."""

import json
import os

from selfsent.training.checkpoint import BestCheckpoint


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


def test_an_interrupt_before_the_run_begins_says_nothing_of_the_old_one(train, tmp_path, monkeypatch):
    assert train("--method", "mlm", steps=("--steps", 1)).status == 0

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("selfsent.training.fit.build_table", interrupt)
    stopped = train("--method", "mlm", "--overwrite", steps=("--steps", 2))
    assert stopped.status == 130
    assert "--resume" not in stopped.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"


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
    train("--method", "mlm", corpus=odd, steps=("--steps", 1)).ok()
    source = json.loads((tmp_path / "run" / "run.json").read_text())["config"]["corpus"]["source"]
    assert os.fsdecode(b"caf\xe9.txt") in source
    asked = train("--method", "mlm", output=tmp_path / os.fsdecode(b"r\xe9n"), steps=("--steps", 1))
    assert "is not UTF-8" in asked.complaint


def test_views_do_not_replace_their_corpus(selfsent, base, tmp_path, sentences):
    views = tmp_path / "views.parquet"
    maker = ("--with", f"mlm:model={base}", "--output", views)
    assert selfsent("augment", sentences, *maker).status == 0
    before = views.read_bytes()
    asked = selfsent("augment", views, *maker, "--overwrite")
    assert f"--output would replace {views}, which is read" in asked.late_complaint
    assert views.read_bytes() == before


def test_what_the_base_is_scored_with_and_what_is_kept_aside_is_told(train, documents, base, tmp_path):
    done = train("--method", "mlm", "--pooling", "cls", "--resume", corpus=documents).ok()
    assert f"there is no run in {tmp_path / 'run'} to go on with: beginning at the first step" in done.err
    assert "mlm from " in done.err
    assert ": pooling cls, batch size 8" in done.err
    assert "the untrained base pools by mean, and is scored so" in done.err
    assert "(--pooling mean trains with it, too)" in done.err
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["config"]["corpus"]["sentences"]
    assert f"training on {kept:,} sentences" in done.err
    assert f"of {500 - kept:,} sentences; training" in done.err
    other = train("--method", "mlm", "--pooling", "mean", corpus=documents, output=tmp_path / "other")
    assert "pools by" not in other.err


def test_a_card_names_the_licence_of_the_base(tmp_path):
    from selfsent.models.bases import resolve
    from selfsent.report.card import licence_of

    assert licence_of(resolve("bundled-raw")) == "cc-by-4.0"
    assert licence_of(tmp_path) is None
    (tmp_path / "README.md").write_text("license: mit\n")
    assert licence_of(tmp_path) is None
    (tmp_path / "README.md").write_text("---\ntags: [x]\nlicense: mit\n---\n# License: other\n")
    assert licence_of(tmp_path) == "mit"


def test_files_of_others_are_not_swept_away(train, tmp_path):
    assert train("--method", "mlm", steps=("--steps", 1)).status == 0
    (tmp_path / "run" / ".notes.20261122").write_text("mine")
    assert train("--method", "mlm", "--resume", steps=("--steps", 1)).status == 0
    assert (tmp_path / "run" / ".notes.20261122").read_text() == "mine"
