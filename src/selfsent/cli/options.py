"""Flags that several commands share, and flags made from settings dataclasses."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from selfsent.errors import SettingsError
from selfsent.models.heads.options import HEADS, POOLINGS
from selfsent.naming import names
from selfsent.settings import Settings, choices_of, parse_duration

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.methods import Method


def duration(text: str) -> float:
    """A duration, for argparse."""
    try:
        return parse_duration(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_TEXT_COLUMN = "text"


def add_corpus_options(parser: argparse.ArgumentParser, for_documents: bool = False) -> None:
    """How to read a corpus.

    Args:
        parser: gets the options.
        for_documents: whether texts of several sentences are split without being told to, where they must be documents.
    """
    group = parser.add_argument_group("corpus")
    group.add_argument(
        "--text-column",
        action="append",
        metavar="NAME",
        help="column with the texts (default: text); may be repeated: the texts are joined",
    )
    group.add_argument("--document-column", metavar="NAME", help="column that says which document a text belongs to")
    group.add_argument(
        "--split-sentences",
        action=argparse.BooleanOptionalAction if for_documents else "store_true",
        help="each text holds several sentences: split it"
        + (" (default: where documents are needed and most texts do)" if for_documents else ""),
    )
    group.add_argument(
        "--clean",
        type=names,
        metavar="WHAT[,WHAT]",
        help="take out of each text first: html (tags, and entities become characters), mail (quoted mail, its headers,"
        " signatures), urls, separators (lines such as =====)",
    )
    group.add_argument(
        "--without",
        action="append",
        metavar="CORPUS",
        help="leave out rows with a text of this corpus, such as a test set; may be repeated",
    )


def add_language_option(parser: argparse.ArgumentParser) -> None:
    """Whose words are stemmed."""
    parser.add_argument(
        "--language",
        metavar="NAME",
        help="compare words by their stems in this language, such as english or turkish; none: as they are (default:"
        " the language that most texts are in)",
    )


def add_hold_out(group: Any) -> None:
    """How many documents are kept apart."""
    group.add_argument(
        "--hold-out",
        type=int,
        metavar="N",
        help="keep N documents (train: or groups of pairs that share a text) apart to score on, and N more to choose"
        " by with --dev context (default: a tenth, 500 at least; a fifth of fewer than 1,000; train takes 0 for none)",
    )


def add_label_options(parser: argparse.ArgumentParser) -> None:
    """Several texts in a row, and what is known about them."""
    group = parser.add_argument_group("corpus of pairs or triples")
    group.add_argument(
        "--text-columns", type=names, metavar="A,B[,C]", help="two or three columns with texts, for pairs or triples"
    )
    group.add_argument("--label-column", metavar="NAME", help="column with classes: names or whole numbers")
    group.add_argument("--score-column", metavar="NAME", help="column with numbers, such as similarities")


def add_carry_options(parser: argparse.ArgumentParser, where: str) -> None:
    """Columns of the input that come out again, in `where`."""
    group = parser.add_argument_group("columns that come out again")
    group.add_argument("--id-column", metavar="NAME", help=f"column with the id of each row, for {where}")
    group.add_argument(
        "--keep", type=names, default=(), metavar="A[,B]", help="more columns that go with each row, such as team,date"
    )


def carried(options: argparse.Namespace) -> tuple[str, ...]:
    """The columns that `add_carry_options` found, each once, the id first.

    Raises:
        SettingsError: one has no name, or is called like a column of the results.
    """
    from selfsent.search.tables import check_carried

    found = tuple(dict.fromkeys([*([] if options.id_column is None else [options.id_column]), *options.keep]))
    if "" in found:
        raise SettingsError("--id-column and --keep name columns; one of them is empty")
    check_carried(found, "--id-column or --keep")
    return found


class Unset:
    """Stands for defaults that depend on the method."""

    def __getattr__(self, name: str) -> None:
        return None


def _strength(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number; give the corpus before --whiten, or a strength behind it"
        ) from None


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """How the base becomes the encoder that is trained."""
    parser.add_argument("--settings", metavar="PRESET", dest="preset", help="published: exactly the paper's settings")
    parser.add_argument(
        "--pooling", choices=POOLINGS, help="pooling, instead of the base's (or the method's, where the base has none)"
    )
    parser.add_argument("--head", choices=tuple(HEADS), help="a CNN to put before, or in place of, the pooling")
    parser.add_argument("--dropout", type=float, metavar="X", help="dropout rate of the encoder, instead of its own")
    parser.add_argument(
        "--whiten",
        type=_strength,
        nargs="?",
        const=1.0,
        metavar="X",
        help="whiten the vectors of the trained encoder: in full, or with a strength from 0 (not at all) to 1; default:"
        " 0.1 after neighbours on a table of token vectors, else 0",
    )


def add_method_options(parser: argparse.ArgumentParser, method: Method, head: str | None) -> set[str]:
    """The options of a method, and of a head that it is given; the names of these and of the general settings."""
    add_dataclass_options(parser.add_argument_group(f"options of {method.name}"), method.options)
    kinds: list[type[Any]] = [Settings, method.options]
    if head and not method.head:
        kinds.append(HEADS[head])
        add_dataclass_options(parser.add_argument_group(f"options of the head {head}"), kinds[-1])
    return {item.name for kind in kinds for item in dataclasses.fields(kind)}


def read(options: argparse.Namespace, source: str | list[str], min_rows: int = 2) -> Corpus:
    """Read the corpus that the options describe, of so many distinct sentences at least."""
    from selfsent.cli.console import notice
    from selfsent.data.corpus import read_corpus

    corpus = read_corpus(_named(source), **_how(options), min_rows=min_rows)
    if line := corpus.report.advice():
        notice(line)
    return corpus


def check(options: argparse.Namespace, source: str | list[str]) -> None:
    """Find the faults of a corpus that show at once, before anything that takes time to import."""
    from selfsent.data.corpus import check_corpus

    check_corpus(_named(source), **_how(options))


def refuse_unread(options: argparse.Namespace, corpus: str, but: Collection[str] = ()) -> None:
    """Refuse options of a corpus that is not given.

    Args:
        options: with those of `add_corpus_options`.
        corpus: the flag that would give one.
        but: those that say how to read something else.

    Raises:
        SettingsError: there is one.
    """
    for name, value in _how(options).items():
        if value and name not in but and (name, value) != ("text_column", _TEXT_COLUMN):
            raise SettingsError(f"--{name.replace('_', '-')} says how to read {corpus}: give {corpus}, too")


def text_column(options: argparse.Namespace) -> str | list[str]:
    """The column with the texts, or those whose texts are joined."""
    given: list[str] = options.text_column or [_TEXT_COLUMN]
    return given if len(given) > 1 else given[0]


def _named(source: str | list[str]) -> str | list[dict[str, str]]:
    """Each name as a source of its own: a list of names that are no files would be taken for the sentences."""
    if isinstance(source, str):
        return source
    return source[0] if len(source) == 1 else [{"source": name} for name in source]


def _how(options: argparse.Namespace) -> dict[str, Any]:
    maybe = ("text_columns", "label_column", "score_column", "clean")
    return {
        **{name: getattr(options, name) for name in maybe if getattr(options, name, None)},
        **({"exclude": options.without} if getattr(options, "without", None) else {}),
        **({"carry": carried(options)} if hasattr(options, "id_column") else {}),
        "text_column": text_column(options),
        "document_column": options.document_column,
        "split_sentences": options.split_sentences,
    }


def add_dataclass_options(group: Any, options: type[Any], defaults: Any = None, but: Collection[str] = ()) -> None:
    """One flag for each field made with `selfsent.settings.setting`; a flag that is not given leaves no trace.

    Args:
        group: an argparse parser or group.
        options: the dataclass.
        defaults: an instance whose values the help texts name; the dataclass' own defaults when None.
        but: names of fields that get no flag.
    """
    for item in (item for item in dataclasses.fields(options) if item.name not in but):
        value = getattr(defaults, item.name) if defaults is not None else item.default
        flag, text = "--" + item.name.replace("_", "-"), item.metadata["description"]
        shown = "" if value is None else f" (default: {value})"
        common: dict[str, Any] = {"default": argparse.SUPPRESS, "help": (text + shown).replace("%", "%%")}
        kind = str(item.type)
        if kind.startswith("bool"):
            group.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
        elif allowed := choices_of(options).get(item.name):
            group.add_argument(flag, choices=allowed, **common)
        elif item.name == "budget":
            group.add_argument(flag, type=duration, metavar="TIME", **common)
        elif kind.startswith("str"):
            group.add_argument(flag, metavar="TEXT", **common)
        else:
            number = kind.startswith("int")
            group.add_argument(flag, type=int if number else float, metavar="N" if number else "X", **common)
