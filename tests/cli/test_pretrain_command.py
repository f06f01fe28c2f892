import json
import shlex

from selfsent.models.bases import resolve

TINY = (
    *("--layers", 1, "--hidden-size", 16, "--heads", 2, "--feed-forward", 16, "--vocabulary-size", 300),
    *("--max-length", 24, "--batch-size", 4, "--steps", 2),
)


def test_legs_and_the_way_on(selfsent, documents, tmp_path):
    run = ("pretrain", documents, "--output", tmp_path / "run", *TINY, "--source", "own | text (CC0)")
    leg = selfsent(*run, "--leg", "0.001s")
    assert leg.status == 0
    assert leg.out.startswith("Go on with: selfsent pretrain ")
    assert leg.out.endswith(" --leg 0.001s --resume\n")
    assert not (tmp_path / "run" / "model").exists()
    documents_gone = (run[0], tmp_path / "gone.txt", *run[2:])
    done = selfsent(*documents_gone, "--resume")
    assert done.status == 0, done.err
    assert "resumed at step 1 of 2" in done.err
    assert "The model is in" in done.out
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<h1>Held-out loss " in page
    assert "What it fills in" in page
    assert "<canvas" not in page
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "own   text (CC0)" in card
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"
    again = selfsent(*run, "--resume")
    assert (again.status, again.out) == (0, done.out)
    assert "finished already" in again.err
    selfsent(*run, "--resume", "--source", "of another year (CC0)")
    assert "of another year (CC0)" in (tmp_path / "run" / "model" / "README.md").read_text()
    other = selfsent(*run, "--resume", "--seed", 1)
    assert "seed was 0, now 1" in other.complaint


def test_bad_input(selfsent, documents, tmp_path):
    run = ("pretrain", documents, "--output", tmp_path / "run", *TINY)
    assert "there is no directory" in selfsent(*run, "--tokenizer", "./none").complaint
    given = selfsent(*run, "--tokenizer", "bundled-raw")
    assert "brings a vocabulary of its own: leave out --vocabulary-size" in given.complaint
    assert "no such file" in selfsent("pretrain", "none.txt", *run[2:]).complaint
    assert "give a share below 1" in selfsent(*run[:-2], "--budget", "9s", "--warmup", 3).complaint
    assert not (tmp_path / "run").exists()


def test_the_command_in_the_card_of_the_bundled_encoder_is_understood(selfsent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    card = (resolve("bundled-raw") / "README.md").read_text()
    command = card.partition("```\nselfsent pretrain")[2].partition("```")[0]
    name, *arguments = shlex.split(command.replace("\\\n", " "))
    assert (name, arguments[-2:]) == ("wikipedia.txt.zst", ["--embedding-rate", "0.2"])
    assert "wikipedia.txt.zst" in selfsent("pretrain", name, *arguments).complaint
    assert not (tmp_path / "pretrained").exists()
