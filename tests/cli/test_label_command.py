import argparse
import sys

import pytest

from selfsent.cli import label


def options(tmp_path, sentences, **given):
    return argparse.Namespace(
        **{
            "corpus": [str(sentences)],
            "models": ("tfidf", "bm25"),
            "output": str(tmp_path / "pairs.tsv"),
            "count": 4,
            "seed": 0,
            "text_column": "text",
            "document_column": None,
            "split_sentences": False,
            "without": None,
            **given,
        }
    )


def test_no_terminal_is_refused(selfsent, sentences, tmp_path):
    done = selfsent("label", sentences, "--output", tmp_path / "pairs.tsv")
    assert done.status == 2
    assert "standard input is no terminal" in done.err
    assert not (tmp_path / "pairs.tsv").exists()


def test_questions_answers_undo_and_going_on(sentences, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    keys = iter(["y", "?", "n", "u", "3", "q", "s", "4", "5"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(keys))
    label.run(options(tmp_path, sentences))
    lines = (tmp_path / "pairs.tsv").read_text().splitlines()
    assert [line.split("\t")[2] for line in lines] == ["score", "5", "3"]
    label.run(options(tmp_path, sentences))
    lines = (tmp_path / "pairs.tsv").read_text().splitlines()
    assert [line.split("\t")[2] for line in lines] == ["score", "5", "3", "4", "5"]
    assert "taken back" in capsys.readouterr().out


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_pairs_are_refused(selfsent, sentences, count):
    assert "--count is" in selfsent("label", sentences, "--count", count).err
