"""Commands that show or write rows of a corpus: shared options, stored vectors, files of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.cli.console import notice, shown
from selfsent.cli.options import JSON, Encoding, WithMetadata
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.display import shortened
from selfsent.settings import setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from selfsent.data.corpus import Corpus
    from selfsent.data.vector_files import VectorsFile
    from selfsent.models.encoding import Model

LEXICAL_WEIGHT = ("--lexical-weight", "--word-weight")
"""The flag of the weight of BM25 or TF-IDF, and its deprecated name."""
LANGUAGE: Any = setting(None, "language of stems to compare words by, or none (default: the language of most texts)")


@dataclass(kw_only=True)
class WithVectors(WithMetadata, Encoding):
    """A command on the vectors of a corpus."""

    encoded: str | None = setting(None, "what selfsent encode or an engine wrote for this corpus, not to encode again")

    def read_with_vectors(self, source: str | tuple[str, ...], min_rows: int = 2) -> tuple[Corpus, VectorsFile | None]:
        """The corpus, with at least so many distinct sentences, and the file of `--encoded`.

        Raises:
            DataError: `--encoded` holds no vectors, or not one per row.
        """
        from selfsent.data.vector_files import VectorsFile
        from selfsent.search.vectors import check_rows

        stored = None if self.encoded is None else VectorsFile(Path(self.encoded))
        corpus = self.read(source, min_rows=min_rows)
        if stored is not None:
            check_rows(stored, corpus)
        return corpus, stored

    def vectors(
        self, model: Model, corpus: Corpus, stored: VectorsFile | None, on_disk: bool = False
    ) -> NDArray[np.float32]:
        """The vectors of the corpus' distinct texts, from `--encoded` or computed, in memory or a temporary file."""
        from selfsent.search import encode_corpus

        with shown("encoding") as progress:
            return encode_corpus(model, corpus, progress, stored, on_disk)


@dataclass(kw_only=True)
class Results(WithVectors):
    """A command with a table of texts as its result."""

    title: ClassVar[str] = "results"
    output: str | None = setting(None, "write a .csv, .tsv, .jsonl or .parquet file")
    json: str | None = JSON
    safe_csv: bool = setting(False, "put ' before texts of a .csv or .tsv that a spreadsheet takes for formulas")

    def check_files(
        self, source: str | None = None, page: str | None = None, also: str | None = None, families: str | None = None
    ) -> None:
        """Reject files that cannot be written, or would replace an input."""
        from selfsent.search.tables import check_table

        files = {"--output": self.output, "--json": self.json, "--page": page, "--families": families}
        check_outputs(files, [source, also, self.encoded, *self.exclude])
        for table in filter(None, (self.output, families)):
            check_table(Path(table))

    def write(
        self,
        rows: Iterable[dict[str, Any]],
        columns: Mapping[str, type],
        count: str,
        files: Mapping[str | None, Callable[[], str]],
    ) -> bool:
        """Write the table to `--output`, and texts to their files; returns whether standard output got one.

        Args:
            rows: of the table.
            columns: of the table, with their types.
            count: size of the table in words.
            files: file, `-` or None -> function that returns its text.
        """
        from selfsent.search.tables import write_table

        if self.output:
            write_table(rows, columns, Path(self.output), self.safe_csv)
            notice(f"{count} in {self.output}")
        return write_outputs(files)


def line_of(row: dict[str, Any], names: Sequence[str], side: str = "", repeated: bool = True) -> str:
    """A row on a terminal: metadata columns, text (or row number), and number of repeats."""
    from selfsent.data.corpus.clean import clean

    cells = clean("" if (cell := row[f"{name}{side}"]) is None else str(cell) for name in names)[0]
    before = "".join(f"{shortened(cell) or '-'}  " for cell in cells)
    text = shortened(row[f"text{side}"]) if f"text{side}" in row else f"row {row['row']}"
    repeats = row[f"repeats{side}"] if repeated else 0
    return before + text + (f"  (and {repeats:,} more row{'s' * (repeats != 1)})" if repeats else "")
