"""`selfsent search` and `selfsent pairs`."""

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
    from selfsent.evaluation.rerank import Reranker
    from selfsent.search import Hit, Index, Pair

    Found = list[list[Hit]]


@dataclass(kw_only=True)
class Search(Searching):
    """Find the texts of a corpus nearest to a query.

    A text counts by the cosine of its vector and by BM25, the words that it shares with the query. With --rerank the
    best of them are put in order by a stronger model.
    """

    usage: ClassVar = (
        "selfsent search MODEL CORPUS QUERY [QUERY ...] [options]\n"
        "       selfsent search --index DIR QUERY [QUERY ...] [options]"
    )

    words: tuple[str, ...] = setting(
        (),
        "model; corpus, as for selfsent train; and queries",
        positional=True,
        nargs="*",
        metavar="MODEL CORPUS QUERY",
    )
    top: int = setting(10, "texts to find for each query", minimum=1)
    word_weight: float | None = setting(
        None,
        "a text's score is (cosine + X x words) / (1 + X), where words is BM25 as a share of what the query can reach;"
        " 0: the cosine alone (default: the model's own, such as 1.5 for bundled)",
    )
    rerank: str | None = setting(
        None,
        "a stronger model that puts the best of them in order: a sentence encoder, by its cosine and words, or a"
        " cross-encoder, by its score",
        metavar="MODEL",
    )
    candidates: int | None = setting(
        None, "texts that --rerank reads for each query, --top at least (default: 100)", minimum=1
    )
    model: str | None = setting(None, "where the model of --index is now (default: where it was)")

    def run(self) -> None:
        """Search and show the hits."""
        from selfsent.data.corpus.clean import clean
        from selfsent.lexical.scores import check_weight
        from selfsent.search.tables import hit_columns, hit_rows

        if self.word_weight is not None:
            check_weight(self.word_weight)
        given = self.take_words("QUERY")
        queries = clean(given)[0]
        if not all(queries):
            raise SettingsError("the query is empty")
        # Path.is_file() would raise for a query too long for a file name.
        if files := [query for query in given if Path(query).suffix and os.path.isfile(query)]:  # noqa: PTH113
            raise SettingsError(
                f"{files[0]} is a file, not a query: give several files as a folder or a pattern in quotes"
            )
        if self.candidates and not self.rerank:
            raise SettingsError("--candidates says how many texts --rerank reads: give --rerank, too")
        reranker = None
        if self.rerank is not None:
            from selfsent.evaluation.encoders import as_reranker

            reranker = as_reranker(self.rerank, self.candidates, fast=self.fast, int8=self.int8)
        source, found, how = (self._in_corpus if self.index is None else self._in_index)(queries, reranker)
        if reranker:
            how |= {"rerank": self.rerank, "candidates": max(self.top, reranker.candidates)}
        measure = "score" if reranker and reranker.crosses else "cosine"
        columns = hit_columns(source, measure)
        rows = [list(hit_rows(query, hits, source, measure)) for query, hits in zip(queries, found, strict=True)]
        found_of = [
            {"query": query, "hits": [{k: v for k, v in hit.items() if k != "query"} for hit in hits]}
            for query, hits in zip(queries, rows, strict=True)
        ]
        unit = self.unit(source)
        self.write_rows(chain.from_iterable(rows), columns, sum(map(len, rows)), unit)
        if write_outputs({self.json: lambda: as_line({**self.searched, **how, "queries": found_of})}) or self.output:
            return
        names, weight = self.shown_columns(source), how["word_weight"]
        for query, hits in zip(queries, rows, strict=True):
            if len(queries) > 1:
                show(f"# {query}")
            for row in hits:
                show(f"{(row[measure] + weight * row['words']) / (1 + weight):.3f}  {line_of(row, names)}")

    def _in_corpus(self, queries: list[str], reranker: Reranker | None) -> tuple[Corpus, Found, dict[str, Any]]:
        from selfsent.lexical import Analyzer
        from selfsent.search import search
        from selfsent.search.nearest import corpus_language

        Analyzer(self.language)  # reject an unknown language now
        corpus, stored = self.read_with_vectors(self.corpus, min_rows=1)
        model = self.load(str(self.model), corpus)
        how: dict[str, Any] = {"word_weight": self._weight((reranker or model).lexical_weight)}
        if how["word_weight"] or (reranker and model.lexical_weight):
            how["language"] = self.language or corpus_language(corpus) or "none"
        with counting("searching") as searched:

            def advance(count: int) -> None:
                searched(count, len(corpus.input_rows))

            about = advance, stored, self.word_weight, how.get("language"), reranker
            return corpus, search(model, corpus, queries, self.top, *about), how

    def _weight(self, own: float) -> float:
        return own if self.word_weight is None else self.word_weight

    def _in_index(self, queries: list[str], reranker: Reranker | None) -> tuple[Index, Found, dict[str, Any]]:
        from selfsent.models.encoding import encode
        from selfsent.search.index import TFIDF_WEIGHT

        index = self.open_index()
        if self.language is not None:
            raise SettingsError("--index knows no stems yet: leave out --language, or search the texts themselves")
        weight = self._weight(TFIDF_WEIGHT)
        if "words" in index.columns:  # from before results had a column of this name
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
        return index, index.search(vectors, self.top, queries, weight, reranker), {"word_weight": weight}


@dataclass(kw_only=True)
class Pairs(Searching):
    """Find the most similar pairs of texts in a corpus.

    Different texts are compared by the cosine of their vectors and by the words that they share: all pairs, unless
    --approximate or --index is given.
    """

    usage: ClassVar = "selfsent pairs MODEL CORPUS [options]\n       selfsent pairs --index DIR [options]"

    words: tuple[str, ...] = setting(
        (), "model; and corpus, as for selfsent train", positional=True, nargs="*", metavar="MODEL CORPUS"
    )
    top: int = setting(100, "pairs at most", minimum=1)
    threshold: float = setting(-1.0, "smallest score that counts, as it is shown", minimum=-1, maximum=1)
    word_weight: float | None = setting(
        None,
        "a pair's score is (cosine + X x words) / (1 + X), where words is how many words both texts share, by TF-IDF;"
        " 0: the cosine alone (default: 0.5)",
    )
    approximate: bool = setting(
        False, "for millions of texts: compare likely neighbours alone, and measure the recall (extra `index`)"
    )

    def run(self) -> None:
        """Find and show the pairs."""
        from selfsent.lexical import Analyzer
        from selfsent.lexical.scores import PAIR_WEIGHT, check_weight
        from selfsent.search.ivf import require_faiss
        from selfsent.search.pairs import by_words, candidates_for, pairs_in_ivf
        from selfsent.search.tables import pair_columns, pair_rows

        weight = PAIR_WEIGHT if self.word_weight is None else self.word_weight
        check_weight(weight)
        Analyzer(self.language)
        self.take_words()
        source: Corpus | Index
        if self.index is not None:
            source = self.open_index()
            if "text" not in source.columns:
                if self.word_weight or self.language:
                    raise SettingsError(f"{source.path} has no texts: leave out --word-weight and --language")
                weight = 0.0
            count, least = candidates_for(self.top, self.threshold, weight)
            with counting("comparing") as compared:
                size = len(source)
                pairs, recall = pairs_in_ivf(
                    source.ivf, self.top, least, advance=lambda n: compared(n, size), candidates=count
                )
        else:
            if self.approximate:
                require_faiss()
            source, pairs, recall = self._in_corpus(*candidates_for(self.top, self.threshold, weight))
        measured = self.approximate or self.index is not None
        if measured:
            share = "unknown: no such pair has a text of the sample" if recall is None else f"{recall:.1%}"
            notice(f"share of the most similar pairs that the index finds, measured on a sample: {share}")
        if weight:
            pairs = by_words(pairs, source, self.top, self.threshold, weight, self.language)
        rows = list(pair_rows(pairs, source, weight))
        about: dict[str, Any] = {**self.searched, "word_weight": weight, "pairs": rows}
        about |= {"recall": recall} if measured else {}
        self.write_rows(rows, pair_columns(source), len(pairs), "pair")
        if not write_outputs({self.json: lambda: as_line(about)}) and not self.output:
            names = self.shown_columns(source)
            for row in rows:
                show(f"{row['score']:.3f}  {line_of(row, names, '1')}\n       {line_of(row, names, '2')}")
        if not pairs:
            notice(f"no pair has a score of {self.threshold} or more")

    def _in_corpus(self, count: int, least: float) -> tuple[Corpus, list[Pair], float | None]:
        """The pairs by cosine, and the recall of an approximate search."""
        from selfsent.search.pairs import approximate_pairs, most_similar_pairs

        corpus, stored = self.read_with_vectors(self.corpus)
        model = self.load(str(self.model), corpus)
        vectors = self.vectors(model, corpus, stored)
        with counting("comparing") as compared:
            if not self.approximate:
                return corpus, most_similar_pairs(vectors, count, least, lambda n: compared(n, len(vectors))), None
            return corpus, *approximate_pairs(
                vectors, self.top, least, advance=lambda n: compared(n, len(vectors)), candidates=count
            )
