"""Commands that show or write rows of a corpus: shared options, stored vectors, an index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.cli.console import counting, notice, shortened
from selfsent.cli.options import JSON, Carrying, Encoding
from selfsent.cli.outputs import check_outputs
from selfsent.display import counted
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from selfsent.data.corpus import Corpus
    from selfsent.data.vector_files import VectorsFile
    from selfsent.models.encoder import Encoder
    from selfsent.search.index import Index


@dataclass(kw_only=True)
class Results(Carrying, Encoding):
    """A command with a table of texts as its result."""

    title: ClassVar[str] = "results"
    output: str | None = setting(None, "write a .csv, .tsv, .jsonl or .parquet file")
    json: str | None = JSON
    safe_csv: bool = setting(False, "put ' before texts of a .csv or .tsv that a spreadsheet takes for formulas")
    encoded: str | None = setting(None, "what selfsent encode wrote for this model and corpus, not to encode again")

    def check_files(self, read: Sequence[str | None] = (), page: str | None = None) -> None:
        """Reject files that cannot be written, or would replace an input."""
        from selfsent.search.tables import check_table

        check_outputs({"--output": self.output, "--json": self.json, "--page": page}, read)
        if self.output:
            check_table(Path(self.output))

    def read_with_vectors(
        self, source: str, min_rows: int = 2, page: str | None = None
    ) -> tuple[Corpus, VectorsFile | None]:
        """The corpus, with at least so many distinct sentences, and the file of `--encoded`.

        Raises:
            SettingsError: an unknown suffix, or an output that would replace an input.
            OutputError: a result cannot be written.
            DataError: `--encoded` holds no vectors, or not one per row.
        """
        from selfsent.data.vector_files import VectorsFile
        from selfsent.search.vectors import check_rows

        self.check_files([source, self.encoded, *self.exclude], page)
        stored = None if self.encoded is None else VectorsFile(Path(self.encoded))
        corpus = self.read(source, min_rows=min_rows)
        if stored is not None:
            check_rows(stored, corpus)
        return corpus, stored

    def vectors(self, model: Encoder, corpus: Corpus, stored: VectorsFile | None) -> NDArray[np.float32]:
        """The vectors of the corpus' distinct texts, from `--encoded` or computed."""
        from selfsent.search import encode_corpus

        with counting("reading vectors" if stored else "encoding") as done:
            return encode_corpus(model, corpus, lambda count: done(count, len(corpus.input_rows)), stored)

    def write_rows(self, rows: Iterable[dict[str, Any]], columns: Mapping[str, type], count: int, unit: str) -> None:
        """Write the table to `--output`, if given, and print its size."""
        from selfsent.search.tables import write_table

        if self.output:
            write_table(rows, columns, Path(self.output), self.safe_csv)
            notice(f"{counted(count, unit)} in {self.output}")


def as_line(plain: Any) -> str:
    """Plain data as a line of JSON."""
    return json.dumps(plain, ensure_ascii=False) + "\n"


@dataclass(kw_only=True)
class Searching(Results):
    """A command on a corpus or an index."""

    words: tuple[str, ...] = ()
    language: str | None = setting(
        None, "compare words by their stems in this language, or none (default: the language of most texts)"
    )
    index: str | None = setting(None, "what selfsent index wrote, in place of MODEL and CORPUS")
    model: str | None = None
    corpus: str = ""

    def take_words(self, last: str = "") -> list[str]:
        """Set `model` and `corpus` from the first words, unless there is `--index`; returns the rest.

        Args:
            last: name of the rest, of at least one word; empty if there must be none.

        Raises:
            SettingsError: `--model` without `--index`.
        """
        words = list(self.words)
        if self.index is None:
            if self.model is not None:
                raise SettingsError("--model says where the model of --index is now: without --index MODEL comes first")
            if lacking := [name for name in ("MODEL", "CORPUS", last) if name][len(words) :]:
                self.parser.error(f"the following arguments are required: {', '.join(lacking)}")
            self.model, self.corpus, words = words[0], words[1], words[2:]
        elif last and not words:
            self.parser.error(f"the following arguments are required: {last}")
        if not last:
            self.parser.refuse(words)
        return words

    @property
    def searched(self) -> dict[str, Any]:
        """Model and corpus, or index, for output files."""
        return {"model": self.model, "corpus": self.corpus} if self.index is None else {"index": self.index}

    def shown_columns(self, source: Corpus | Index) -> list[str]:
        """Carried columns, shown before a text."""
        from selfsent.search.index_writer import POSITIONS

        if self.index is None:
            return list(self.carried())
        return [name for name in getattr(source, "columns", ()) if name not in (*POSITIONS, "text")]

    def unit(self, source: Corpus | Index) -> str:
        """Noun for a text."""
        from selfsent.search.index import Index

        if isinstance(source, Index):
            return "sentence" if "sentence" in source.columns else "text"
        return source.report.unit

    def open_index(self) -> Index:
        """The index of `--index`; rejects options for reading a corpus.

        Raises:
            SettingsError: such an option, or faiss is not installed.
            DataError: no index.
        """
        from selfsent.search.index import Index

        if self.encoded is not None:
            raise SettingsError("--index holds vectors already: leave out --encoded")
        if self.id_column is not None or self.keep:
            raise SettingsError("--index shows the columns that it was made with: leave out --id-column and --keep")
        self.refuse_unread("a corpus")
        self.check_files()
        return Index(Path(str(self.index)))

    def encoder_of(self, index: Index) -> Encoder:
        """The encoder of an index, by its stored name or `--model`.

        Raises:
            BaseEncoderError: the encoder is not found.
            DataError: another encoder.
        """
        name, seen = self.model or index.model, list[str]()
        try:
            model = self.load(name, None, seen)
        except BaseEncoderError as error:
            hint = "" if self.model else f"; the index {index.path} was made with it: say with --model where it is now"
            raise BaseEncoderError(f"{error}{hint}") from None
        index.check_model(seen[0], full_name(name))
        return model


def full_name(model: str) -> str:
    """A name of a model that is valid in any directory."""
    return str(Path(model).resolve()) if Path(model).is_dir() else model


def line_of(row: dict[str, Any], names: Sequence[str], side: str = "", repeated: bool = True) -> str:
    """A row on a terminal: carried columns, text (or row number), and number of repeats."""
    from selfsent.data.corpus.clean import clean

    cells = clean("" if (cell := row[f"{name}{side}"]) is None else str(cell) for name in names)[0]
    before = "".join(f"{shortened(cell) or '-'}  " for cell in cells)
    text = shortened(row[f"text{side}"]) if f"text{side}" in row else f"row {row[f'row{side}']}"
    repeats = row[f"repeats{side}"] if repeated else 0
    return before + text + (f"  (and {repeats:,} more row{'s' * (repeats != 1)})" if repeats else "")
