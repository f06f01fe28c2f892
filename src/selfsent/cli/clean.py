"""`selfsent clean`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.console import notice
from selfsent.cli.options import CORPUS, WithMetadata
from selfsent.cli.outputs import check_outputs
from selfsent.display import counted
from selfsent.settings import setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selfsent.data.corpus import Corpus


@dataclass(kw_only=True)
class Clean(WithMetadata):
    """Write the text as selfsent reads it, to look at what --clean leaves.

    The file has a line for each row of the input, also for empty ones (with --split-sentences for each sentence): its
    number, the columns of --id-column and --keep, and the text.
    """

    corpus: tuple[str, ...] = CORPUS
    output: str = setting(MISSING, "a .csv, .tsv, .jsonl or .parquet file")
    safe_csv: bool = setting(False, "put ' before texts of a .csv or .tsv that a spreadsheet takes for formulas")

    def run(self) -> None:
        """Read the text, and write it."""
        from selfsent.search.tables import check_table, write_table

        check_outputs({"--output": self.output}, [*self.corpus, *self.exclude])
        check_table(Path(self.output))
        corpus = self.read(self.corpus, min_rows=1, summarise=True)
        columns = {**corpus.input_rows.columns, "text": str}
        write_table(_rows(corpus), columns, Path(self.output), self.safe_csv)
        notice(f"{counted(len(corpus.input_rows), corpus.input_rows.unit)} in {self.output}")


def _rows(corpus: Corpus, together: int = 4096) -> Iterator[dict[str, Any]]:
    import numpy as np

    inputs = corpus.input_rows
    for start in range(0, len(inputs), together):
        here = np.arange(start, min(start + together, len(inputs)))
        rows = np.asarray(inputs.corpus_rows[here])
        texts = iter(corpus.texts(rows[rows >= 0]))
        columns = inputs.describe(here) | {"text": [next(texts) if row >= 0 else "" for row in rows.tolist()]}
        yield from (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
