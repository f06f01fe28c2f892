"""Options of a method are known before the command line is parsed, which happens once."""

from selfsent.cli.main import Parser


def test_the_command_line_is_parsed_once(selfsent, base, sentences, tmp_path, monkeypatch):
    parsed = []

    def counted(self, arguments):
        parsed.append(arguments)
        return known(self, arguments)

    known = Parser.parse_known_intermixed_args
    monkeypatch.setattr(Parser, "parse_known_intermixed_args", counted)
    given = ("--method", "tsdae", "--ratio", "0.5", sentences, "--base", base, "--steps", 1, "--batch-size", 8)
    selfsent("train", "--output", tmp_path / "run", *given).ok()
    assert len(parsed) == 1
    assert '"ratio": 0.5' in (tmp_path / "run" / "run.json").read_text()


def test_a_setting_without_a_flag_is_named(selfsent, sentences, tmp_path):
    for name in ("optimizer", "epsilon", "beta2"):
        complaint = selfsent("train", sentences, "--output", tmp_path / "run", f"--{name}", 1).complaint
        assert f"unrecognised argument --{name}; {name} is set in Python or in a recipe" in complaint
    complaint = selfsent("train", sentences, "--method", "tsdae", "--output", tmp_path, "--decoder-dropout").complaint
    assert "decoder_dropout is set in Python or in a recipe" in complaint
