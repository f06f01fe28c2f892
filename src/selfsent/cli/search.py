"""`selfsent search`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.cli.console import counting, notice, show
from selfsent.cli.outputs import write_outputs
from selfsent.cli.results import Searching, as_line, line_of
from selfsent.errors import DataError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search import Hit, Index

    Found = list[list[Hit]]


@dataclass(kw_only=True)
class Search(Searching):
    """Find the texts of a corpus nearest to a query.

    Find the texts of a corpus nearest to a query: by the cosine of their vectors and by BM25, the words that they
    share with it.
    """

    usage: ClassVar = (
        "selfsent search MODEL CORPUS QUERY [QUERY ...] [options]\n"
        "       selfsent search --index DIR QUERY [QUERY ...] [options]"
    )

    words: tuple[str, ...] = setting(
        (),
        "a directory, a hub id, or bundled; a corpus, as for selfsent train; and what to look for",
        positional=True,
        nargs="*",
        metavar="MODEL CORPUS QUERY",
    )
    top: int = setting(10, "texts to find for each query", minimum=1)
    word_weight: float | None = setting(
        None,
        "a text's score is (cosine + W x words) / (1 + W), where words is BM25 as a share of what the query can"
        " reach; 0: the cosine alone (default: the model's own, such as 1.5 for bundled)",
        metavar="W",
    )
    model: str | None = setting(None, "where the model of --index is now (default: where it was)", metavar="MODEL")

    def run(self) -> None:
        """Search."""
        from selfsent.data.corpus.clean import clean
        from selfsent.lexical.weight import check_weight
        from selfsent.search.index import Index
        from selfsent.search.tables import hit_columns, hits_with_texts

        if self.word_weight is not None:
            check_weight(self.word_weight)
        given = self.take_words("QUERY")
        queries = clean(given)[0]
        if not all(queries):
            raise SettingsError("the query is empty")
        # Of a query that is too long for a name, Path.is_file() would raise.
        if files := [query for query in given if Path(query).suffix and os.path.isfile(query)]:  # noqa: PTH113
            raise SettingsError(
                f"{files[0]} is a file, not a query: give several files as a folder or a pattern in quotes"
            )
        place, found, how = self._in_corpus(queries) if self.index is None else self._in_index(queries)
        rows = [list(hits_with_texts(query, hits, place)) for query, hits in zip(queries, found, strict=True)]
        found_of = [
            {"query": query, "hits": [{k: v for k, v in hit.items() if k != "query"} for hit in hits]}
            for query, hits in zip(queries, rows, strict=True)
        ]
        unit = place.unit if isinstance(place, Index) else place.report.unit
        self.write_rows(chain.from_iterable(rows), hit_columns(place), sum(map(len, rows)), unit)
        if write_outputs({self.json: lambda: as_line({**self.searched, **how, "queries": found_of})}) or self.output:
            return
        names, weight = self.shown_columns(place), how["word_weight"]
        for query, hits in zip(queries, rows, strict=True):
            if len(queries) > 1:
                show(f"# {query}")
            for row in hits:
                show(f"{(row['cosine'] + weight * row['words']) / (1 + weight):.3f}  {line_of(row, names)}")

    def _in_corpus(self, queries: list[str]) -> tuple[Corpus, Found, dict[str, Any]]:
        from selfsent.lexical import Analyzer
        from selfsent.search import search
        from selfsent.search.nearest import corpus_language

        Analyzer(self.language)  # a name that is none is refused now
        corpus, stored = self.read_with_vectors(self.corpus, min_rows=1)
        model = self.load(str(self.model), corpus)
        weight = model.lexical_weight if self.word_weight is None else self.word_weight
        how: dict[str, Any] = {"word_weight": weight}
        if weight:
            how["language"] = self.language or corpus_language(corpus) or "none"
        with counting("searching") as searched:

            def advance(count: int) -> None:
                searched(count, len(corpus.input_rows))

            return corpus, search(model, corpus, queries, self.top, advance, stored, weight, how.get("language")), how

    def _in_index(self, queries: list[str]) -> tuple[Index, Found, dict[str, Any]]:
        from selfsent.models.encoding import encode
        from selfsent.search.index import TFIDF_WEIGHT

        index = self.open_index()
        if self.language is not None:
            raise SettingsError("--index knows no stems yet: leave out --language, or search the texts themselves")
        weight = TFIDF_WEIGHT if self.word_weight is None else self.word_weight
        if "words" in index.columns:  # kept before results had a column of this name
            raise DataError(
                f"{index.path} has a column 'words', as results have: rename yours and index the texts again"
            )
        if index.words is None:
            if self.word_weight:
                raise SettingsError(f"{index.path} counts no words: leave out --word-weight, or index the texts again")
            if "text" in index.columns and self.word_weight is None:
                notice(f"{index.path} was made before words were counted, so only cosines count: index the texts again")
            weight = 0.0
        vectors = encode(self.encoder_of(index), queries, side="query")
        if weight:
            notice("an index ranks by the cosine and TF-IDF, the older way; a search of the texts themselves uses BM25")
        return index, index.search(vectors, self.top, queries, weight), {"word_weight": weight}
