"""`selfsent pairs`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfsent.cli.console import doing, notice, show, shown
from selfsent.cli.options import MODEL_OR_TABLE, ONE_CORPUS, is_text
from selfsent.cli.outputs import as_line
from selfsent.cli.results import LANGUAGE, LEXICAL_WEIGHT, Results, line_of
from selfsent.display import counted
from selfsent.settings import setting


@dataclass(kw_only=True)
class Pairs(Results):
    """Find the most similar pairs of texts in a corpus.

      selfsent pairs runs/tickets tickets.csv --text-column body --top 20
      selfsent pairs bundled tickets.csv --text-column body --id-column id --threshold 0.9 --output doubles.csv

    Different texts are compared by the cosine of their vectors and by the words that they share: all pairs, unless
    --approximate is given.
    """

    main_options = "text_column id_column keep top threshold lexical_weight approximate output families json"

    model: str | None = MODEL_OR_TABLE
    corpus: str = ONE_CORPUS
    top: int = setting(100, "pairs at most", minimum=1)
    threshold: float = setting(-1.0, "smallest score that counts, as it is shown", minimum=-1, maximum=1)
    lexical_weight: float = setting(
        0.5,
        "a pair's score is (cosine + X x words) / (1 + X), where words is how many words both texts share, by TF-IDF;"
        " 0: the cosine alone",
        flags=LEXICAL_WEIGHT,
    )
    language: str | None = LANGUAGE
    approximate: bool = setting(False, "for millions of texts: likely neighbours only, recall measured (extra `index`)")

    families: str | None = setting(
        None, "write the pairs as families, one line each, and what differs: a .csv, .tsv, .jsonl or .parquet file"
    )

    def run(self) -> None:
        """Find and show the pairs."""
        from selfsent.lexical import Analyzer
        from selfsent.lexical.hybrid import check_weight
        from selfsent.search.dedup import families_of_pairs, table_columns, table_rows
        from selfsent.search.ivf import require_faiss
        from selfsent.search.pairs import approximate_pairs, by_tfidf, candidates_for, most_similar_pairs
        from selfsent.search.tables import pair_columns, pair_rows, write_table

        weight = self.lexical_weight
        check_weight(weight)
        Analyzer(self.language)
        if self.approximate:
            require_faiss()
        if self.model is None and not is_text(self.corpus):
            self.parser.error("the following arguments are required: CORPUS")
        self.check_files(self.corpus, families=self.families)
        corpus, stored = self.read_with_vectors(self.corpus)
        self.model = self.model or self.table_for(corpus)
        vectors = self.vectors(self.load(self.model, corpus), corpus, stored)
        wanted, min_cosine = candidates_for(self.top, self.threshold, weight)
        about: dict[str, Any] = {"model": self.model, "corpus": self.corpus, "lexical_weight": weight}
        about["word_weight"] = weight  # deprecated
        with shown("comparing") as progress:
            if self.approximate:
                pairs, recall = approximate_pairs(vectors, self.top, min_cosine, candidates=wanted, progress=progress)
                about["recall"] = recall
            else:
                pairs = most_similar_pairs(vectors, wanted, min_cosine, progress)
        if self.approximate:
            share = "unknown: no such pair has a text of the sample" if recall is None else f"{recall:.1%}"
            notice(f"share of the most similar pairs that --approximate finds, measured on a sample: {share}")
        if weight:
            with doing() as now:
                now("weighing words")
                pairs = by_tfidf(pairs, corpus, self.top, self.threshold, weight, self.language)
        if self.families:
            found = families_of_pairs(pairs, corpus, weight)
            write_table(table_rows(found, corpus), table_columns(), Path(self.families), self.safe_csv)
            notice(f"{counted(len(found.families), 'family', 'families')} in {self.families}")
        about["pairs"] = rows = list(pair_rows(pairs, corpus, weight))
        count, files = counted(len(pairs), "pair"), {self.json: lambda: as_line(about)}
        if not self.write(rows, pair_columns(corpus), count, files) and not self.output:
            for row in rows:
                one, other = (line_of(row, self.metadata_columns(), side) for side in "12")
                show(f"{row['score']:.3f}  {one}\n       {other}")
        if not pairs:
            notice(f"no pair has a score of {self.threshold} or more")
