"""What the commands share that show or write rows of a corpus: their options, vectors that are there, an index."""

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
    """A command whose result is a table of texts."""

    title: ClassVar[str] = "results"
    output: str | None = setting(None, "write a .csv, .tsv, .jsonl or .parquet file")
    json: str | None = JSON
    safe_csv: bool = setting(False, "put ' before texts of a .csv or .tsv that a spreadsheet takes for formulas")
    encoded: str | None = setting(None, "what selfsent encode wrote for this model and corpus, not to encode again")

    def check_files(self, read: Sequence[str | None] = (), page: str | None = None) -> None:
        """Refuse files that cannot be written, or would replace what is read."""
        from selfsent.search.tables import check_table

        check_outputs({"--output": self.output, "--json": self.json, "--page": page}, read)
        if self.output:
            check_table(Path(self.output))

    def read_with_vectors(
        self, source: str, min_rows: int = 2, page: str | None = None
    ) -> tuple[Corpus, VectorsFile | None]:
        """The corpus, of so many distinct sentences at least, and the file of `--encoded`.

        Raises:
            SettingsError: a name does not say what its file is, or what is written would replace what is read.
            OutputError: a result cannot be written.
            DataError: `--encoded` holds no vectors, or more or fewer than there are rows.
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
        """The vectors of the corpus' distinct texts, from the file of `--encoded` or by the model."""
        from selfsent.search import encode_corpus

        with counting("reading vectors" if stored else "encoding") as done:
            return encode_corpus(model, corpus, lambda count: done(count, len(corpus.input_rows)), stored)

    def write_rows(self, rows: Iterable[dict[str, Any]], columns: Mapping[str, type], count: int, unit: str) -> None:
        """Write the table where it is wanted, and say how many it has of what."""
        from selfsent.search.tables import write_table

        if self.output:
            write_table(rows, columns, Path(self.output), self.safe_csv)
            notice(f"{counted(count, unit)} in {self.output}")


def as_line(plain: Any) -> str:
    """Plain data as a line of JSON."""
    return json.dumps(plain, ensure_ascii=False) + "\n"


@dataclass(kw_only=True)
class Searching(Results):
    """A command on a corpus, or on an index in its place."""

    words: tuple[str, ...] = ()
    language: str | None = setting(
        None, "compare words by their stems in this language, or none (default: the language of most texts)"
    )
    index: str | None = setting(None, "what selfsent index wrote, in place of MODEL and CORPUS")
    model: str | None = None
    corpus: str = ""

    def take_words(self, last: str = "") -> list[str]:
        """The words behind MODEL and CORPUS, which become `model` and `corpus`; all with `--index`.

        Args:
            last: what those behind are called; there must be one at least, or none where this is empty.

        Raises:
            SettingsError: `--model` is given without `--index`.
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
        """What was searched, for files."""
        return {"model": self.model, "corpus": self.corpus} if self.index is None else {"index": self.index}

    def shown_columns(self, place: Corpus | Index) -> list[str]:
        """The columns that a terminal shows before a text: those that were carried along."""
        from selfsent.search.index_writer import PLACES

        if self.index is None:
            return list(self.carried())
        return [name for name in getattr(place, "columns", ()) if name not in (*PLACES, "text")]

    def unit(self, place: Corpus | Index) -> str:
        """What a text is called."""
        from selfsent.search.index import Index

        if isinstance(place, Index):
            return "sentence" if "sentence" in place.columns else "text"
        return place.report.unit

    def open_index(self) -> Index:
        """The index of `--index`, beside which nothing else says what to read.

        Raises:
            SettingsError: something does, or faiss is not installed.
            DataError: there is no index.
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
        """The encoder that made the vectors of an index: by its name, or `--model`.

        Raises:
            BaseEncoderError: it is not where it was.
            DataError: it is another one.
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
    """How a model is found again from another directory."""
    return str(Path(model).resolve()) if Path(model).is_dir() else model


def line_of(row: dict[str, Any], names: Sequence[str], side: str = "", repeated: bool = True) -> str:
    """A row on a terminal: the columns that go with it, its text (or number, without texts), and its repeats."""
    from selfsent.data.corpus.clean import clean

    cells = clean("" if (cell := row[f"{name}{side}"]) is None else str(cell) for name in names)[0]
    before = "".join(f"{shortened(cell) or '-'}  " for cell in cells)
    text = shortened(row[f"text{side}"]) if f"text{side}" in row else f"row {row[f'row{side}']}"
    repeats = row[f"repeats{side}"] if repeated else 0
    return before + text + (f"  (and {repeats:,} more row{'s' * (repeats != 1)})" if repeats else "")
