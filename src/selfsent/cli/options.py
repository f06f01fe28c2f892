"""Commands as dataclasses: shared options, and the conversion of fields to flags."""

from __future__ import annotations

import argparse
import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict

from selfsent.cli.console import doing, notice
from selfsent.errors import BaseEncoderError, DataError, Interrupted, SettingsError
from selfsent.settings import CorpusOptions, PairOptions, check_limits, setting

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.index import Index
    from selfsent.index.query_map import QueryMap
    from selfsent.models.encoding import Model


UNSET = object()
"""Placeholder for defaults that depend on the method."""
_OF_PAIRS = tuple(item.name for item in dataclasses.fields(PairOptions))


@dataclass(kw_only=True)
class Command(ABC):
    """A command: its docstring is the description, its fields are the options.

    Args:
        changes: values given for the fields of the dataclasses in `also`.
        parser: the `Parser` of the command.
        arguments: as given.
        unknown: arguments unknown to the parser.
        started: start of the process, by `time.perf_counter`.
    """

    usage: ClassVar[str | None] = None
    main_options: ClassVar[str] = ""
    """Options that `--help` shows of a long command, in order, separated by spaces; `--help-all` shows all options."""
    also: ClassVar[tuple[tuple[str, type[Any], Any], ...]] = ()
    """Settings with variable defaults: a title, the dataclass, and an instance with the defaults to show."""

    subcommands: ClassVar[dict[str, type[Command]]] = {}
    """Commands that a first argument of this name runs."""

    changes: dict[str, Any] = field(default_factory=dict)
    parser: Any
    arguments: list[str]
    unknown: list[str]
    started: float

    def __post_init__(self) -> None:
        check_limits(self)
        for item in dataclasses.fields(self):
            other = item.metadata.get("needs")
            if other and getattr(self, item.name) != item.default and not getattr(self, other):
                raise SettingsError(f"`{item.name}` goes with `{other}`: give both, or leave it out")

    @classmethod
    def of(cls, options: argparse.Namespace, **about: Any) -> Self:
        """The command with parsed options."""
        own = {item.name for item in dataclasses.fields(cls)}
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in vars(options).items()
        }
        changes = {name: value for name, value in given.items() if name not in own}
        return cls(**{name: value for name, value in given.items() if name in own}, changes=changes, **about)

    def values(self, *names: str) -> dict[str, Any]:
        """Options by their names."""
        return {name: getattr(self, name) for name in names}

    @abstractmethod
    def run(self) -> None:
        """Run the command."""


@dataclass(kw_only=True)
class WithLateOptions(Command):
    """A command with options that depend on its arguments, such as a method's."""

    @classmethod
    @abstractmethod
    def add_late_options(cls, parser: Any, arguments: list[str]) -> None:
        """Add these options to the parser, and set its `has_late_options`."""


@dataclass(kw_only=True)
class Reading(CorpusOptions, Command):
    """A command that reads a corpus."""

    def reading(self) -> dict[str, Any]:
        """The given options of `read_corpus`."""
        more = {name: getattr(self, name) for name in _OF_PAIRS if getattr(self, name, None)}
        metadata = {"metadata_columns": self.metadata_columns()} if isinstance(self, WithMetadata) else {}
        common: dict[str, Any] = {"text_column": self.texts, "document_column": self.document_column}
        common |= {"clean": self.clean or None, "exclude": list(self.exclude) or None}
        common |= {"split_sentences": False if self.passages else self.split_sentences, "passages": self.passages}
        return {**common, **more, **metadata}

    @property
    def texts(self) -> str | list[str]:
        """The text column, or several to join."""
        return list(self.text_column) if len(self.text_column) > 1 else (*self.text_column, "text")[0]

    def read(self, source: str | tuple[str, ...], min_rows: int = 2, summarise: bool = False, **how: Any) -> Corpus:
        """Read the corpus, with at least so many distinct sentences; if `summarise`, print a summary.

        `how` takes precedence over the options.
        """
        from selfsent.data.corpus import read_corpus

        corpus = read_corpus(_named(source), **{**self.reading(), **how}, min_rows=min_rows)
        if line := corpus.report.advice():
            notice(line)
        if summarise:
            notice(corpus.report.summary())
        return corpus

    def check_corpus(self, source: tuple[str, ...]) -> None:
        """Quick checks of a corpus, without slow imports."""
        from selfsent.data.corpus import check_corpus

        check_corpus(_named(source), **self.reading())

    def refuse_unread(self, corpus: str, but: Collection[str] = ()) -> None:
        """Reject reading options without a corpus.

        Args:
            corpus: the flag of the missing corpus.
            but: options used for something else.

        Raises:
            SettingsError: such an option.
        """
        for item in dataclasses.fields(CorpusOptions):
            if getattr(self, item.name) and item.name not in but:
                raise SettingsError(f"{item.name}= says how to read {corpus}: give {corpus}, too")


def _named(source: str | tuple[str, ...]) -> str | list[dict[str, str]]:
    """Each name as a separate source: a plain list of names would be read as sentences."""
    if isinstance(source, str):
        return source
    return source[0] if len(source) == 1 else [{"source": name} for name in source]


SPLIT_DEFAULT: Any = setting(None, "split texts of several sentences (default: where documents are needed and most do)")
SENTENCES: Any = setting(None, "train on N rows at most, drawn at random")
APART = (
    "documents, or groups of pairs that share a text, kept apart to score on, and as many to choose by with --dev"
    " context (default: a tenth, 500 at least; a fifth of fewer than 1,000)"
)
HOLD_OUT: Any = setting(None, APART)
FILES = (
    "a file (.txt .csv .tsv .jsonl .parquet, also .gz .zst .bz2), a directory, a glob, an address (s3://...), - for"
    " standard input, a hub data set, or python:stdlib"
)
# Shared fields, to be assigned to the same name in each command.
CORPUS: Any = setting((), FILES, positional=True, nargs="+")
ONE_CORPUS: Any = setting(MISSING, FILES, positional=True)
MODEL: Any = setting(MISSING, "a directory, a hub id, or bundled", positional=True)
MODEL_OR_TABLE: Any = setting(
    None,
    "a directory, a hub id, or bundled (default: the table that ships for the language of the texts)",
    positional=True,
    nargs="?",
)
JSON: Any = setting(None, "write what is shown as one object; - is standard output, for this alone", metavar="FILE")


@dataclass(kw_only=True)
class TrainingText(PairOptions, Reading):
    """A command that reads a training corpus."""

    split_sentences: bool | None = SPLIT_DEFAULT


@dataclass(kw_only=True)
class WithMetadata(Reading):
    """A command that copies input columns to its results."""

    title: ClassVar[str] = "columns that come out again"
    id_column: str | None = setting(None, "column with the id of each row, which every result has")
    keep: tuple[str, ...] = setting((), "more columns that go with each row, such as team,date")

    def metadata_columns(self) -> tuple[str, ...]:
        """The input columns to copy, each once, the id first.

        Raises:
            SettingsError: an empty name, or the name of a result column.
        """
        from selfsent.search.tables import check_metadata_columns

        found = tuple(dict.fromkeys([*([] if self.id_column is None else [self.id_column]), *self.keep]))
        if "" in found:
            raise SettingsError("--id-column and --keep name columns; one of them is empty")
        check_metadata_columns(found, "--id-column or --keep")
        return found


class Bits(TypedDict):
    """Precision arguments of `quicken` and `load_scorer`."""

    fast: bool
    int8: bool


@dataclass(kw_only=True)
class Encoding(Command):
    """A command that encodes, in 32, 16 or 8 bits."""

    fast: bool = setting(False, "compute in bfloat16 where that is faster (cosine to float32: 0.9999)")
    int8: bool = setting(False, "some products in 8 bits, on a CPU with AVX-512 VNNI (cosine to float32: 0.999)")

    def bits(self) -> Bits:
        """The given flags; prints a notice if this processor does not support them."""
        if self.fast or self.int8:
            from selfsent.models.precision import computes_bfloat16, computes_int8, inference_device

            device = inference_device()
            short = computes_bfloat16(device)
            if self.int8 and not computes_int8(device):
                used = "bfloat16" if short else "float32"
                notice(f"--int8 needs a CPU that multiplies bytes (AVX-512 VNNI): {used} is used")
            elif self.fast and not short:
                notice("--fast: this machine is no faster in bfloat16, so float32 is used")
        return {"fast": self.fast, "int8": self.int8}

    def table_for(self, corpus: Corpus) -> str:
        """The table that ships for the language of a corpus, where no model is named; prints a notice."""
        from selfsent.lexical import language_code
        from selfsent.models.bases import BUNDLED, table_for
        from selfsent.search.exact import sampled

        table = table_for(language_code(sampled(corpus)))
        why = "the table that ships for English" if table == BUNDLED else "as the text is not English"
        notice(f"no model is named: {table} is taken, {why}")
        return table

    def load(self, name: str, corpus: Corpus | None, seen: list[str] | None = None, size: int | None = None) -> Model:
        """An encoder, on a GPU if available, in the given precision, with at most `size` numbers in a vector.

        Prints notices about dropped rows of the corpus, and about text unfit for the encoder. Appends the encoder's
        fingerprint, as loaded, to `seen`.
        """
        from selfsent.models.fingerprint import fingerprint
        from selfsent.models.opening import open_encoder
        from selfsent.models.table import Table

        if corpus and (odd := _rows_read(corpus)):
            notice(odd)
        bits = self.bits()
        with doing() as now:
            now(f"loading {name}")
            model = open_encoder(name)
            if seen is not None:
                seen.append(fingerprint(model))
        size = getattr(self, "size", None) or size
        if size is not None:
            if size > model.embedding_size and isinstance(self, Sized):
                raise SettingsError(f"size={size} is too large: vectors of {name} have {model.embedding_size} numbers")
            if model.sizes and size not in model.sizes:
                notice(f"{name} was trained for vectors of {', '.join(map(str, model.sizes))} numbers, not {size}")
            model.cut(size)
        if corpus:
            import numpy as np

            from selfsent.models.reading import LOOKED_AT, reading_notice

            if line := reading_notice(model, corpus.texts(np.arange(min(len(corpus), LOOKED_AT)))):
                notice(line)
        if isinstance(model, Table):
            return model
        from selfsent.models.precision import quicken

        return quicken(model, **bits)


@dataclass(kw_only=True)
class Asking(Encoding):
    """A command that encodes queries for an index."""

    model: str | None = setting(
        None,
        "where the model of the index is now (default: where it was), a student of it, or one that is mapped",
        needs="index",
    )

    def encoder_of(self, index: Index) -> tuple[Model, QueryMap | None]:
        """The encoder of the queries of an index, by its stored name or `--model`, and the map of its vectors, if any.

        Raises:
            BaseEncoderError: the encoder is not found.
            DataError: another encoder.
        """
        if index.has_old_words:
            why = "its texts were stemmed by other rules than queries are now, so that words may be missed"
            notice(f"run selfsent index compact {index.path}: {why}")
        query_map = index.query_map
        name, seen = self.model or index.query_model, list[str]()
        try:
            if query_map is not None and self.model:
                from selfsent.models.fingerprint import fingerprint
                from selfsent.models.opening import open_encoder

                # The encoder of the texts still asks without the map.
                query_map = query_map if fingerprint(open_encoder(name)) == query_map.about.fingerprint else None
            model = self.load(name, None, seen, None if query_map else index.size)
        except BaseEncoderError as error:
            hint = "" if self.model else f"; the index {index.path} was made with it: say with --model where it is now"
            raise BaseEncoderError(f"{error}{hint}") from None
        if query_map is None:
            index.check_model(seen[0], full_name(name), model.space)
        elif seen[0] != query_map.about.fingerprint:
            problem = f"{name} is not as it was when the map of {index.path} was learned"
            advice = f"learn it again with selfsent adapt --from {index.model} --to {name}, or take it out"
            raise DataError(f"{problem}: {advice} with selfsent index map {index.path} --remove")
        return model, query_map


def is_text(name: str) -> bool:
    """Whether a word of a command names texts, where it may name a model, too.

    Examples:
        >>> is_text("tickets.csv"), is_text("-"), is_text("bundled"), is_text("intfloat/e5-small-v2")
        (True, True, False, False)
    """
    from selfsent.data.corpus.formats import READERS
    from selfsent.models.bases import holds_model

    path = Path(name)
    if os.path.isdir(name):  # noqa: PTH112 # a query may be too long for a file name, which Path does not forgive
        return not holds_model(path)
    ends = READERS.keys() & {*path.suffixes}
    return name in ("-", "python:stdlib") or bool(ends or set("*?[") & {*name}) or os.path.isfile(name)  # noqa: PTH113


def full_name(model: str) -> str:
    """A name of a model that is valid in any directory."""
    return str(Path(model).resolve()) if Path(model).is_dir() else model


@dataclass(kw_only=True)
class Sized(Encoding):
    """A command that may keep the beginning of each vector alone."""

    size: int | None = setting(None, "keep the first N numbers of each vector (see train --matryoshka)", minimum=1)


def _rows_read(corpus: Corpus) -> str:
    """Number of rows and their peculiarities; empty if there are none."""
    inputs, report = corpus.input_rows, corpus.report
    empty, repeated = inputs.dropped - report.excluded, int(inputs.repeats.sum()) - len(corpus)
    counts = {"empty": empty, "repeated": repeated, "left out": report.excluded}
    odd = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    line = f"{inputs.rows:,} row{'s' * (inputs.rows != 1)}"
    line += f", split into {len(inputs):,} {inputs.unit}{'s' * (len(inputs) != 1)}" if inputs.split else ""
    return "\n".join(filter(None, (f"{line} ({odd})" if odd else "", report.changes)))


@dataclass(kw_only=True)
class WithData(Command):
    """A command that may read evaluation data sets."""

    data: str | None = setting(None, "mirror of evaluation data sets (default: SELFSENT_DATA, then the hub)")


@dataclass(kw_only=True)
class Resumable(Command):
    """A command that writes a directory and can resume."""

    output: str = setting(MISSING, "the run directory; the model is in OUTPUT/model")
    resume: bool = setting(False, "go on with what is in OUTPUT")
    overwrite: bool = setting(False, "throw away what is in OUTPUT")

    @contextmanager
    def resumable(self) -> Iterator[None]:
        """On interruption, print the command for resuming."""
        import shlex

        from selfsent.files import read_json

        record = Path(self.output) / "run.json"
        before = read_json(record)
        try:
            yield
        except KeyboardInterrupt as stop:
            after = read_json(record)
            if not after or (self.overwrite and after == before):  # the directory holds another run
                raise
            saved = "stopped and saved" if isinstance(stop, Interrupted) else "stopped"
            given = [argument for argument in self.arguments if argument not in ("--overwrite", "--resume")]
            raise KeyboardInterrupt(f"{saved}; go on with: {shlex.join(['selfsent', *given, '--resume'])}") from None
