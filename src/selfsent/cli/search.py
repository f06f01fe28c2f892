"""`selfsent search` and `selfsent pairs`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from selfsent.cli.console import notice, show, shown
from selfsent.cli.options import FILES, Asking, is_text
from selfsent.cli.outputs import as_line
from selfsent.cli.results import LANGUAGE, LEXICAL_WEIGHT, Results, line_of
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.index import Index
    from selfsent.index.calibration import Calibration
    from selfsent.models.encoding import Model
    from selfsent.scorers.rerank import Reranker
    from selfsent.search import Hit

    Found = list[list[Hit]]

NEAR = 0.4
"""Cosine below which a text without a word of the query is no answer."""
AUTO, AUTO_QUERIES, AUTO_TEXTS = "auto", 400, 2000
"""The value of --lexical-weight that asks for an exam, and how many queries and texts that one has at most."""


@dataclass(kw_only=True)
class Search(Results, Asking):
    """Find the texts of a corpus nearest to a query.

      selfsent search runs/tickets tickets.csv --text-column body "printer does not answer"
      selfsent search --index tickets.index "printer does not answer" --where team=sales --top 3 --json -

    A text counts by the cosine of its vector and by BM25, the words that it shares with the query. With --rerank the
    best of them are put in order by a stronger model.
    """

    usage = (
        "selfsent search [MODEL] CORPUS QUERY [QUERY ...] [options]\n"
        "       selfsent search --index DIR QUERY [QUERY ...] [options]"
    )

    main_options = "text_column id_column keep top index where rerank lexical_weight encoded output json"

    words: tuple[str, ...] = setting(
        (),
        f"a model (default: the table that ships for the language); a corpus: {FILES}; and queries",
        positional=True,
        nargs="*",
        metavar="MODEL CORPUS QUERY",
    )
    index: str | None = setting(None, "the directory of an index, in place of MODEL and CORPUS")
    top: int = setting(10, "texts to find for each query", minimum=1)
    lexical_weight: Any = setting(
        None,
        "a text's score is (cosine + X x words) / (1 + X), where words is BM25 as a share of what the query can reach;"
        " 0: the cosine alone; auto: chosen by an exam from these texts (default: the model's own, such as 1.5 for"
        " bundled)",
        **{"parse": lambda text: _weight(text), "metavar": "X", "flags": LEXICAL_WEIGHT},
    )
    language: str | None = LANGUAGE
    rerank: str | None = setting(
        None,
        "a stronger model that puts the best of them in order: a sentence encoder, by its cosine and words, or a"
        " cross-encoder, by its score",
        metavar="MODEL",
    )
    candidates: int | None = setting(
        None, "texts that --rerank reads for each query, --top at least (default: 200)", minimum=1, needs="rerank"
    )
    answer_rate: float | None = setting(
        None,
        "say that nothing is here, in place of poor hits, so that this share of queries that have an answer still get"
        " one, such as 0.9; measured on queries from the texts, once for an index, which keeps it",
        above=0,
    )
    queries: str | None = setting(
        None,
        "a table of queries that have an answer among the texts (column query, perhaps relevant), by which"
        " --answer-rate is measured in place of drawn ones",
        needs="answer_rate",
    )
    where: tuple[str, ...] = setting(
        (),
        "search only rows of the index whose column meets a condition, such as team=sales, team=sales,support,"
        " team!=sales, priority>2 or created>=2024-01-01; give it again for more, all of which must hold",
        **{"repeat": True, "metavar": "CONDITION", "needs": "index"},
    )

    def run(self) -> None:
        """Search and show the hits."""
        from selfsent.search.tables import hit_columns, hit_rows

        queries = self._checked_queries()
        reranker, measure = None, "cosine"
        if self.rerank is not None:
            from selfsent.scorers.load_scorer import as_reranker

            reranker = as_reranker(self.rerank, self.candidates, fast=self.fast, int8=self.int8)
            measure = "score" if reranker.crosses else measure
        searched = self._in_corpus if self.index is None else self._in_index
        source, found, about, names, unit = searched(queries, reranker)
        if reranker:
            about |= {"rerank": self.rerank, "candidates": max(self.top, reranker.candidates)}
        columns = hit_columns(source, measure)
        asked = list(zip(queries, found, strict=True))
        rows = [list(hit_rows(query, hits, source, measure, self.where)) for query, hits in asked]
        about["word_weight"] = about["lexical_weight"]  # deprecated
        about["queries"] = [
            {"query": query, "hits": [{k: v for k, v in hit.items() if k != "query"} for hit in hits]}
            | ({} if self.answer_rate is None else {"answered": bool(hits)})
            for query, hits in zip(queries, rows, strict=True)
        ]
        self._tell_nothing_near(asked, about, measure)
        count = counted(sum(map(len, rows)), unit)
        plain = {self.json: lambda: as_line(about)}
        if self.write(chain.from_iterable(rows), columns, count, plain) or self.output:
            return
        for query, hits, described in zip(queries, found, rows, strict=True):
            if len(queries) > 1:
                show(f"# {query}")
            for hit, row in zip(hits, described, strict=True):
                show(f"{hit.score:.3f}  {line_of(row, names)}")

    def _checked_queries(self) -> list[str]:
        """The queries, cleaned, once the words and options of the command fit together.

        Raises:
            SettingsError: they do not.
        """
        from selfsent.data.corpus.clean import clean
        from selfsent.index.calibration import check_answer_rate
        from selfsent.lexical.hybrid import check_weight

        if self.lexical_weight == AUTO and (self.index is not None or self.rerank is not None):
            problem = "--lexical-weight auto is for the texts and their model"
            raise SettingsError(f"{problem}: leave out --index and --rerank")
        if self.lexical_weight not in (None, AUTO):
            check_weight(self.lexical_weight)
        if self.index is None and self.words and is_text(self.words[0]):
            self.words = ("", *self.words)  # a model named by its texts
        expected = ("QUERY",) if self.index is not None else ("MODEL", "CORPUS", "QUERY")
        if lacking := expected[len(self.words) :]:
            self.parser.error(f"the following arguments are required: {', '.join(lacking)}")
        given = self.words[len(expected) - 1 :]
        queries = clean(given)[0]
        if not all(queries):
            raise SettingsError("the query is empty")
        # Path.is_file() would raise for a query too long for a file name.
        if files := [query for query in given if Path(query).suffix and os.path.isfile(query)]:  # noqa: PTH113
            problem = f"{files[0]} is a file, not a query: give several files as a folder or a pattern in quotes"
            raise SettingsError(problem)
        if self.index is not None and len(given) > 1 and os.path.isdir(given[0]):  # noqa: PTH112
            raise SettingsError(f"an index knows its model: leave out {given[0]}, or give it as --model")
        if self.answer_rate is not None:
            check_answer_rate(self.answer_rate)
        return queries

    def _tell_nothing_near(
        self, asked: Sequence[tuple[str, Sequence[Hit]]], about: Mapping[str, Any], measure: str
    ) -> None:
        """Notice each query that has no hit, or none that is near."""
        from selfsent.index.calibration import nothing_here

        for query, hits in asked:
            if not hits and self.answer_rate is not None:
                notice(f"{query!r}: {nothing_here(self.answer_rate, about['measured_on'])}")
                continue
            if not hits and self.where:
                notice(f"no text meets --where {' '.join(self.where)}{self._meant()}")
                continue
            # With BM25, a query without a common word, and far from all texts, has no answer here.
            far = all(hit.lexical_score == 0 and hit.dense_score < NEAR for hit in hits)
            if about["lexical_weight"] and measure == "cosine" and far:
                notice(f"nothing is near {query!r}: no text shares a word with it, and no cosine reaches {NEAR}")

    def _in_corpus(
        self, queries: list[str], reranker: Reranker | None
    ) -> tuple[Corpus, Found, dict[str, Any], list[str], str]:
        """The corpus, the hits, the facts for `--json`, the columns to show, and a noun for a text."""
        from selfsent.data.vector_files import VectorsFile
        from selfsent.lexical import Analyzer
        from selfsent.search import encode_to_file, search
        from selfsent.search.exact import corpus_language

        name, source = self.words[:2]
        Analyzer(self.language)  # reject an unknown language now
        self.check_files(source)
        corpus, stored = self.read_with_vectors(source, min_rows=1)
        name = name or self.table_for(corpus)
        model = self.load(name, corpus)
        if self.lexical_weight == AUTO:
            self.lexical_weight = _chosen_weight(model, corpus)
        weight = (reranker or model).lexical_weight if self.lexical_weight is None else self.lexical_weight
        about: dict[str, Any] = {"model": name, "corpus": source, "lexical_weight": weight}
        if weight or (reranker and model.lexical_weight):
            about["language"] = self.language or corpus_language(corpus) or "none"
        with TemporaryDirectory(prefix="selfsent-") as folder, shown("searching") as progress:
            if self.answer_rate is not None and stored is None:  # read twice
                encode_to_file(model, corpus, Path(folder) / "vectors.npy", progress, "document")
                stored = VectorsFile(Path(folder) / "vectors.npy")
            how = progress, stored, self.lexical_weight, about.get("language"), reranker
            found = search(model, corpus, queries, self.top, *how)
            if self.answer_rate is not None:
                from selfsent.exam.calibrate import calibrate

                weight, language, asked = self.lexical_weight, about.get("language"), self._answered()
                made = calibrate(corpus, model, weight, progress, asked, reranker, None, language, stored)
                about |= made.about(self.answer_rate)
                cutoff = made.cutoff(self.answer_rate)
                found = [[hit for hit in hits if hit.score >= cutoff] for hits in found]
        return corpus, found, about, list(self.metadata_columns()), corpus.report.unit

    def _answered(self) -> list[str] | None:
        """The queries of --queries, if given."""
        from selfsent.evaluation.tasks.judged import answered_queries

        return None if self.queries is None else answered_queries(Path(self.queries))

    def _meant(self) -> str:
        """The end of a line on conditions that no text meets: similar conditions that some text does."""
        from selfsent.index import Index

        meant = Index(Path(str(self.index))).meant(self.where)
        return f"; did you mean {' and '.join(meant)}?" if meant else ""

    def _in_index(
        self, queries: list[str], reranker: Reranker | None
    ) -> tuple[Index, Found, dict[str, Any], list[str], str]:
        """As `_in_corpus`.

        Raises:
            SettingsError: an option for reading a corpus, or faiss is not installed.
            DataError: no index, or one of another model.
        """
        from selfsent.data.corpus.batch import POSITIONS
        from selfsent.index import Index
        from selfsent.models.encoding import encode

        for name, has in {"encoded": "vectors", "id_column": "ids", "keep": "columns", "language": "stems"}.items():
            if getattr(self, name):
                raise SettingsError(f"--index has the {has} that it was made with: leave out `{name}`")
        self.refuse_unread("a corpus")
        self.check_files()
        index = Index(Path(str(self.index)))
        weight = index.lexical_weight if self.lexical_weight is None else self.lexical_weight
        if reranker and self.lexical_weight is None:
            weight = reranker.lexical_weight
        encoder, query_map = self.encoder_of(index)
        vectors = encode(encoder, queries, side="query")
        vectors = vectors if query_map is None else query_map(vectors)
        about: dict[str, Any] = {"index": self.index, "lexical_weight": weight, "language": index.language or "none"}
        if self.answer_rate is not None:
            calibration = calibrated(index, encoder, self.answer_rate, weight, reranker, self._answered())
            about |= calibration.about(self.answer_rate)
        if self.where:
            about["where"] = list(self.where)
        names = [name for name in index.columns if name not in (*POSITIONS, "text")]
        unit = index.part or "text"
        found = index.search(
            vectors, self.top, queries, self.lexical_weight, reranker, None, self.where, self.answer_rate
        )
        return index, found, about, names, unit


def calibrated(
    index: Index,
    encoder: Model,
    answer_rate: float,
    weight: float,
    reranker: Reranker | None = None,
    queries: Sequence[str] | None = None,
) -> Calibration:
    """The calibration of an index; measured now, and told, if there is none, or for given queries."""
    try:
        if queries is None:
            return index.calibration(weight, reranker)
    except SettingsError:
        pass
    from selfsent.exam.calibrate import calibrate

    with shown("measuring the cut-off") as progress:
        made = calibrate(index, encoder, weight, progress, queries, reranker, answer_rate=answer_rate)
    notice(f"answer rates of {index.path} are measured on {made.made_of}")
    return made


def _weight(text: str) -> float | str:
    try:
        return text if text == AUTO else float(text)
    except ValueError:
        raise SettingsError(f"{text!r} is no number, and not {AUTO}") from None


def _chosen_weight(model: Model, corpus: Corpus) -> float:
    """The weight of words by an exam from the texts; the model's own if nothing can be asked."""
    from selfsent.exam.compare import chosen_weight
    from selfsent.exam.draw import draw_exam
    from selfsent.exam.texts import texts_of
    from selfsent.scorers.load_scorer import scorer_of

    try:
        exam = draw_exam(texts_of(corpus), AUTO_QUERIES, searched=AUTO_TEXTS)
    except DataError:
        few = "too few texts have three sentences to ask for one"
        notice(f"--lexical-weight {AUTO}: {model.lexical_weight:g}, the model's own, as {few}")
        return model.lexical_weight
    weight = chosen_weight(scorer_of(model, "the model"), exam.task)
    kept = " is kept: no other is ahead by more than chance" if weight == model.lexical_weight else ""
    notice(f"--lexical-weight {AUTO}: {weight:g}{kept}, by {exam.summary}")
    return weight
