"""Help: commands in groups, the main options of long commands, all with --help-all, those of a method with its name."""

import re
import shlex
from dataclasses import fields

import pytest

from selfsent.cli.main import COMMANDS, groups, make_parser
from selfsent.settings import Settings

LONG = [name for name in COMMANDS if make_parser([name])[1].main_options]


def flags_in(text):
    """The flags with a description."""
    return re.findall(r"^  (?:-h, )?(--[a-z0-9-]+)", text, re.M)


def test_commands_stand_in_groups_training_first(selfsent):
    shown = selfsent("--help").out
    places = [shown.index(f"\n{title}:\n") for title in groups()]
    assert places == sorted(places)
    assert re.findall(r"^  ([a-z]+)  ", shown, re.M) == [name for names in groups().values() for name in names]
    assert COMMANDS[0] == "train"
    assert len(COMMANDS) == len({*COMMANDS})


@pytest.mark.parametrize("name", LONG)
def test_a_long_command_shows_its_main_options_and_the_others_on_request(selfsent, name):
    parser, kind, _ = make_parser([name])
    short, everything = selfsent(name, "--help"), selfsent(name, "--help-all")
    assert (short.status, everything.status) == (0, 0)
    first = {action.dest: action.option_strings[0] for action in parser._actions if action.option_strings}
    wanted = [first[option] for option in kind.main_options.split()]
    assert flags_in(short.out) == [*wanted, "--help-all"]
    assert len(wanted) <= 12
    assert len(wanted) < len(flags_in(everything.out))
    every = {flag for action in parser._actions for flag in action.option_strings}
    assert not [flag for flag in every if flag not in everything.out]
    required = {action.option_strings[0] for action in parser._actions if action.option_strings and action.required}
    assert required <= {*wanted}, "what must be given is among the main options"
    for shown in (short.out, everything.out):
        assert shown.startswith("usage: selfsent")
        assert len(shown.partition("\n\n")[0].splitlines()) <= 3


@pytest.mark.parametrize("name", [name for name in COMMANDS if "\n  selfsent " in make_parser([name])[0].description])
def test_examples_are_commands_that_parse(name, selfsent):
    examples = re.findall("^  (selfsent .*)$", make_parser([name])[0].description, re.M)
    shown = selfsent(name, "--help").out
    assert [line for line in examples if line.startswith(f"selfsent {name} ")]
    for line in examples:
        assert f"  {line}\n" in shown
        given, _, rest = make_parser(shlex.split(line)[1:])
        given.parse_known_intermixed_args(rest)


@pytest.mark.parametrize("name", ["build", "add", "delete", "compact"])
def test_subcommands_have_their_own_help_with_an_example(name, selfsent):
    assert f"selfsent index {name} " in " ".join(selfsent("index", "--help").out.split())
    shown = selfsent("index", name, "--help")
    assert shown.status == 0
    assert shown.out.startswith(f"usage: selfsent index {name} ")
    [line] = re.findall("^  (selfsent .*)$", make_parser(["index", name])[0].description, re.M)
    assert f"  {line}\n" in shown.out
    parser, _, rest = make_parser(shlex.split(line)[1:])
    parser.parse_args(rest)


def test_long_commands_have_examples():
    assert all("\n  selfsent " in make_parser([name])[0].description for name in LONG)


@pytest.mark.parametrize(
    "given", [("--method", "tsdae", "-h"), ("--help", "--method=tsdae"), ("--help-all", "--method", "tsdae")]
)
def test_a_methods_own_options_are_shown_with_its_name(selfsent, given):
    shown = selfsent("train", *given).out
    assert "options of tsdae:\n  --ratio X" in shown
    assert "--ratio" not in selfsent("train", "--help-all").out
    assert ("--learning-rate" in shown) == ("--help-all" in given)


def test_a_head_and_an_unknown_method(selfsent):
    assert "options of the head ngram-cnn:" in selfsent("train", "--method", "tsdae", "--head", "ngram-cnn", "-h").out
    assert "there is no method 'tsda'; did you mean 'tsdae'?" in selfsent("train", "--method", "tsda", "-h").complaint


def test_compare_does_not_speak_of_train(selfsent):
    for flag in ("--help", "--help-all"):
        shown = " ".join(selfsent("compare", flag).out.split())
        assert "selfsent train" not in shown
        assert "train takes" not in shown
    flags = [item.name for item in fields(Settings) if item.metadata.get("flags") != ()]
    assert all(name.replace("_", "-") in shown for name in flags)
