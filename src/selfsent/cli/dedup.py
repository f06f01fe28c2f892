"""`selfsent dedup`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.cli.console import doing, notice, show, shown
from selfsent.cli.options import JSON, ONE_CORPUS
from selfsent.cli.outputs import as_line, check_outputs, write_outputs
from selfsent.cli.results import LANGUAGE, LEXICAL_WEIGHT, WithVectors
from selfsent.display import counted, shortened
from selfsent.errors import SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search.similarity import Similarity

_SHOWN = 10


@dataclass(kw_only=True)
class Dedup(WithVectors):
    """Write a table without near-copies, and the families of those.

      selfsent dedup tickets.csv --text-column body --id-column id --output unique.csv
      selfsent dedup tickets.csv --text-column body --level meaning --keep-row newest:updated --output unique.csv

    The output has the format and all columns of the input, and one row of each family of copies. The families, with
    what differs, are a table of their own beside it, and a page (.html) for people. Every row that goes is close to the
    one that is kept for it, and no two kept rows are close.
    """

    main_options = "text_column id_column output level precision threshold keep_row guard families overwrite json"

    corpus: str = ONE_CORPUS
    output: str = setting(MISSING, "the table without copies, in the format of the input")
    families: str | None = setting(
        None, "the families, a .csv, .tsv, .jsonl or .parquet file, and a page .html (default: families.csv by OUTPUT)"
    )
    level: str = setting(
        "near",
        "exact: equal once cleaned; near: nearly the same words; meaning: alike to an encoder",
        choices=("exact", "near", "meaning"),
    )
    threshold: float | None = setting(
        None, "minimum similarity of a copy (default: 0.8 for near, 0.85 for meaning)", minimum=0, maximum=1
    )
    precision: float | None = setting(
        None, "choose the threshold at which this share of the copies are copies, such as 0.99", above=0, maximum=1
    )
    keep_row: str = setting("first", "row of a family that stays: first, longest, or newest:COLUMN (dates or numbers)")
    guard: tuple[str, ...] = setting(
        (), "never take texts for copies of which these were changed: numbers, negations, names, order (of words)"
    )
    model: str = setting("bundled", "encoder of --level meaning: a directory, a hub id, or bundled")
    lexical_weight: float = setting(0.5, "weight of words in --level meaning", flags=LEXICAL_WEIGHT)
    language: str | None = LANGUAGE
    overwrite: bool = setting(False, "replace files that are there already")
    json: str | None = JSON
    safe_csv: bool = setting(False, "put ' before texts of the families that a spreadsheet takes for formulas")

    def metadata_columns(self) -> tuple[str, ...]:
        """The input columns to copy, from --id-column, --keep and --keep-row."""
        from selfsent.search.dedup import NEWEST

        column = self.keep_row.removeprefix(NEWEST)
        return tuple(dict.fromkeys([*super().metadata_columns(), *([column] if column != self.keep_row else [])]))

    def run(self) -> None:
        """Find the copies, write both tables and the page."""
        from selfsent.data.corpus.copying import check_copy, copy_rows
        from selfsent.files import write_text
        from selfsent.report.families_page import families_page
        from selfsent.search.dedup import deduplicate, table_columns, table_rows
        from selfsent.search.tables import write_table

        table, page = self._check()
        check_copy(self.corpus, Path(self.output))
        corpus, stored = self.read_with_vectors(self.corpus, min_rows=1)
        similarity = self._similarity(corpus, stored)
        with shown("comparing") as progress:
            how: dict[str, Any] = self.values("level", "threshold", "keep_row", "guard", "precision")
            found = deduplicate(corpus, **how, similarity=similarity, progress=progress)
        if found.precision is not None:
            notice(f"minimum similarity {found.threshold:g}: {found.precision}")
        with doing() as now:
            now("writing the families")
            families = list(table_rows(found, corpus))
            write_table(families, table_columns(), table, self.safe_csv)
        about = {"corpus": corpus.source, "level": found.level, "least similarity": found.threshold}
        about |= {} if found.precision is None else {"precision": str(found.precision)}
        write_text(page, families_page(families, len(corpus.input_rows), found, about))
        keep = np.zeros(len(corpus.input_rows), bool)
        keep[found.kept] = True
        with shown("writing") as progress:
            copy_rows(self.corpus, Path(self.output), keep, self._columns(), progress)
        plain = {"corpus": self.corpus, "level": found.level, "threshold": found.threshold, "rows": len(keep)}
        plain |= {"precision": None if found.precision is None else asdict(found.precision)}
        plain |= {"kept": len(found.kept), "families": families}
        if not write_outputs({self.json: lambda: as_line(plain)}):
            _show(families, table)
        notice(f"{counted(len(found.kept), 'row')} of {len(keep):,} in {self.output}; families in {table} and {page}")

    def _check(self) -> tuple[Path, Path]:
        """Reject options and files before any slow work; the files of the families."""
        from selfsent.files import check_new_file
        from selfsent.search.dedup import check_dedup
        from selfsent.search.tables import check_table

        check_dedup(self.level, self.keep_row, self.guard, self.threshold, self.precision)
        if self.split_sentences:
            raise SettingsError("dedup writes rows of a table, and a sentence is no row: leave out --split-sentences")
        if self.exclude:
            raise SettingsError("dedup compares a table with itself: leave out --without")
        table = Path(self.families) if self.families else Path(self.output).with_name("families.csv")
        check_table(table)
        page = table.with_suffix(".html")
        files = {"--output": self.output, "--families": str(table), "its page": str(page), "--json": self.json}
        check_outputs(files, [self.corpus, self.encoded])
        for path in (Path(self.output), table, page):
            check_new_file(path, self.overwrite)
        return table, page

    def _similarity(self, corpus: Corpus, stored: Any) -> Similarity | None:
        from selfsent.search.similarity import Similarity, encoding_of

        if self.level != "meaning":
            return None
        model = self.load(self.model, corpus)
        vectors = self.vectors(model, corpus, stored, on_disk=True)
        return Similarity(corpus, vectors, self.lexical_weight, self.language, encoding_of(model))

    def _columns(self) -> Any:
        from selfsent.data.corpus.batch import Columns

        texts = (self.texts,) if isinstance(self.texts, str) else tuple(self.texts)
        return Columns(texts, self.document_column, metadata=self.metadata_columns())


def _show(families: Sequence[dict[str, Any]], table: Path) -> None:
    """The largest families on the terminal."""
    largest = sorted(families, key=lambda row: -row["rows"])[:_SHOWN]
    for row in largest:
        show(f"{row['rows']:,} rows  {row['kept']}  {shortened(row['text'], 200)}")
        for line in row["differs"].splitlines()[:3]:
            show(f"        {shortened(line, 200)}")
    if len(families) > len(largest):
        notice(f"the largest {len(largest)} of {counted(len(families), 'family', 'families')}; all in {table}")
