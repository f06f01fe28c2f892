import json
import shlex

from selfsent.models.bases import resolve

TINY = (
    *("--layers", 1, "--hidden-size", 16, "--heads", 2, "--feed-forward", 16, "--vocabulary-size", 300),
    *("--max-length", 24, "--batch-size", 4, "--steps", 2),
)


def test_a_run_and_the_same_again(selfsent, documents, tmp_path):
    run = ("pretrain", documents, "--output", tmp_path / "run", *TINY)
    done = selfsent(*run).ok()
    assert "The model is in" in done.out
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"
    again = selfsent(*run, "--resume")
    assert (again.status, again.out) == (0, done.out)
    assert "finished already" in again.err
    assert "seed was 0, now 1" in selfsent(*run, "--resume", "--seed", 1).late_complaint


def test_bad_input(selfsent, documents, tmp_path):
    run = ("pretrain", documents, "--output", tmp_path / "run", *TINY)
    assert "there is no directory" in selfsent(*run, "--tokenizer", "./none").complaint
    assert "no such file" in selfsent("pretrain", "none.txt", *run[2:]).complaint
    assert not (tmp_path / "run").exists()


def test_the_command_in_the_card_of_the_bundled_encoder_is_understood(selfsent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    card = (resolve("bundled-raw") / "README.md").read_text()
    command = card.partition("```\nselfsent pretrain")[2].partition("```")[0]
    name, *arguments = shlex.split(command.replace("\\\n", " "))
    assert "raw.txt" in selfsent("pretrain", name, *arguments).complaint
    assert not (tmp_path / "pretrained").exists()
