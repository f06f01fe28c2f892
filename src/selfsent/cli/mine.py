"""`selfsent mine`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal

from selfsent.cli.console import notice, shown
from selfsent.cli.options import CORPUS, MODEL, Reading
from selfsent.cli.outputs import check_outputs
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import PairOptions, setting


@dataclass(kw_only=True)
class Mine(PairOptions, Reading):
    """Find hard negatives: texts that rank high for a text, and are not its partner.

    Reads pairs, and writes a table with a row for each negative: the two texts and the negative, on which mnrl trains,
    and the scores of partner and negative.

      selfsent mine bundled faq.csv --text-columns question,answer --output mined.parquet
      selfsent train mined.parquet --text-columns question,answer,negative --method mnrl --output runs/faq

    Was the command interrupted? Give it again, and it goes on where it stopped.
    """

    model: str = MODEL
    corpus: tuple[str, ...] = CORPUS
    output: str = setting(MISSING, "a .csv, .tsv, .jsonl or .parquet file")
    negatives: int = setting(3, "negatives of each pair", minimum=1, maximum=100)
    retriever: Literal["base", "words", "both"] = setting(
        "both",
        "ranking that finds them. base: the model's cosine; words: BM25; both: as search ranks",
        flags=("--retriever", "--by"),
    )
    max_relative_score: float = setting(
        0.95,
        "maximum score of a hard negative, relative to the partner's",
        flags=("--max-relative-score", "--at-most"),
        above=0.0,
        maximum=1.0,
    )

    def run(self) -> None:
        """Mine, and write the table."""
        from selfsent.api import mine
        from selfsent.search.tables import check_table, write_table

        check_table(Path(self.output))
        check_outputs({"--output": self.output}, [*self.corpus, *self.exclude])
        if len(self.text_columns) != 2:
            raise SettingsError("mine reads pairs: give two text_columns, such as text_columns=question,answer")
        corpus = self.read(self.corpus, summarise=True)
        with shown("mining") as progress:
            found = mine(self.model, corpus, self.negatives, self.retriever, self.max_relative_score, progress)
        first, second = self.text_columns
        written = 0

        def rows() -> Iterator[dict[str, Any]]:
            nonlocal written
            queries, partners = (corpus.texts(column=column) for column in self.text_columns)
            for row, (query, partner) in enumerate(zip(queries, partners, strict=True)):
                own, *scores = found.scores[row].tolist()
                for other, score in zip(found.rows[row].tolist(), scores, strict=True):
                    if score > -float("inf"):
                        written += 1
                        numbers = {"score": round(own, 6), "negative_score": round(score, 6)}
                        yield {first: query, second: partner, "negative": partners[other], **numbers}

        kinds = {first: str, second: str, "negative": str, "score": float, "negative_score": float}
        write_table(rows(), kinds, Path(self.output))
        missing = len(corpus) * self.negatives - written
        few = (
            f"; {missing:,} more would be above {self.max_relative_score:.0%} of the partner's score" if missing else ""
        )
        notice(f"{counted(written, 'hard negative')} of {counted(len(corpus), 'pair')} in {self.output}{few}")
