"""`selfsent evaluate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from selfsent import extensions
from selfsent.cli.console import StatusLine, doing, notice, show
from selfsent.cli.options import SPLIT_DEFAULT, Encoding, Reading, WithData
from selfsent.cli.outputs import as_line, check_outputs, write_outputs
from selfsent.errors import SettingsError
from selfsent.models.heads.options import Pooling
from selfsent.naming import name_given, names
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.evaluation import Result
    from selfsent.evaluation.tasks.retrieval import RetrievalTask
    from selfsent.exam.beside import Beside


@dataclass(kw_only=True)
class _Tasks(Reading):
    title = "what to score (files have these columns, as .csv, .jsonl or .parquet, or tab-separated)"

    split_sentences: bool | None = SPLIT_DEFAULT
    suite: str | None = setting(None, "sts, sts17, stsb-cross, tatoeba, transfer, useb or afs")
    task: tuple[str, ...] = setting((), "a task such as stsb; may be repeated, or NAME,NAME", repeat=True)
    documents: tuple[str, ...] = setting(
        (), "a corpus with documents: the label-free score; with --queries, the table to search", nargs="+"
    )
    queries: str | None = setting(
        None,
        "file: query, id (of a text of --documents that answers it; several rows, or several ids), and perhaps relevant"
        " (1 or 0, as label --queries and serve --judge write): scores of search",
        needs="id_column",
    )
    hold_out: int | None = setting(None, "score N of them, as many as selfsent train kept apart", needs="documents")
    pairs: str | None = setting(None, "file: sentence1, sentence2, score: Spearman of the cosine")
    relevance: str | None = setting(None, "file: query, text (a relevant one): scores of search, as --retrieval")
    labels: str | None = setting(None, "file: text, label: accuracy of logistic regression, nearest neighbour; k-means")
    columns: tuple[str, ...] = setting((), "what your file calls these columns; with --text-column the other one alone")
    id_column: str | None = setting(None, "column of --documents with the ids that --queries names")
    retrieval: tuple[str, ...] = setting(
        (),
        "search with judged answers: nDCG@10, MRR@10, recall@100 and MAP. A folder in BEIR's layout (corpus, queries,"
        " qrels/SPLIT: .jsonl, .tsv or .parquet), or a hub id such as mteb/scifact; may be repeated",
        repeat=True,
    )
    split: str | None = setting(None, "the split of the judgements of --retrieval (default: test)", needs="retrieval")


@dataclass(kw_only=True)
class _Files(WithData):
    title = "results in files (- is standard output, which then gets nothing else)"

    json: str | None = setting(None, "everything, as one object")
    page: str | None = setting(None, "an HTML page: scores as dots with their intervals, and the tables")


@dataclass(kw_only=True)
class Evaluate(_Tasks, _Files, Encoding):
    """Score a model, or several side by side.

      selfsent evaluate bundled runs/tickets bm25 --documents tickets.csv --text-column body
      selfsent evaluate bundled bundled+words bm25 --retrieval exams/tickets
      selfsent evaluate bundled+words bm25 --queries mine.csv --documents tickets.csv --text-column body --id-column id

    Scores come from published protocols, from files of your own, or without labels from the held-out documents of a
    corpus. Several models are shown side by side, each with a paired p-value against the first.
    """

    main_options = "documents text_column retrieval queries id_column pairs relevance labels columns task json page"

    model: tuple[str, ...] = setting(
        (),
        "a directory (also a run's), a hub id, bundled, module:factory; tfidf or bm25; glove:FILE or nostop:FILE (means"
        " of word vectors); a file of --vectors; MODEL+words for an encoder and the words that texts share, as search"
        " ranks; NAME=MODEL gives it a name of your own",
        positional=True,
        nargs="*",
    )
    pooling: Pooling | None = setting(None, "score the transformer alone, so pooled")
    classifier: Literal["exact", "senteval"] = setting(
        "exact", "logistic regression of transfer and --labels; senteval: stopped early, as for published scores"
    )
    vectors: str | None = setting(None, "write one model's vectors and texts: a file usable in place of the model")
    published: bool = setting(False, "add the rows of the papers' tables for the suite")

    def run(self) -> None:
        """Score the models."""
        if not (models := list(self.model)):
            raise SettingsError("no model to score: name one or several, such as bundled, tfidf or a directory")
        from selfsent.data.vector_files import check_format
        from selfsent.report.evaluation import Report
        from selfsent.scorers.lexical import without_words

        own = {"pairs": self.pairs, "relevance": self.relevance, "labels": self.labels}
        titles, models = [name_given(each)[0] for each in models], [name_given(each)[1] for each in models]
        if twice := [title for title in titles if title and titles.count(title) > 1]:
            raise SettingsError(f"two models are called {twice[0]}: give each a name of its own")
        alone = [without_words(model) or model for model in models]
        behind = [model.partition(":")[2] for model in alone]  # as in glove:FILE
        read_too: list[str | None] = [*self.documents, *self.exclude, *own.values(), *self.retrieval, self.queries]
        read_too += [name for name in (*alone, *behind) if os.path.isfile(name)]  # noqa: PTH113 — may be an invalid file name
        files = {f"--{name}": getattr(self, name) for name in ("json", "page", "vectors")}
        check_outputs(files, read_too)
        if self.vectors is not None:
            if len(models) > 1:
                raise SettingsError("--vectors keeps the vectors of one model: give one model")
            check_format(Path(self.vectors))
        if self.queries and (not self.documents or self.hold_out or self.passages):
            raise SettingsError(
                "--queries asks a whole table: name it by --documents, without --hold-out; for passages give models"
                " such as bundled+words+passages:120"
            )
        if not self.documents:
            self.refuse_unread("--documents", ("clean", "text_column") if any(own.values()) else ())
        published = None
        if self.published:
            if (rows := extensions.published("rows")) is None:
                raise SettingsError(f"there are no published rows to show{extensions.hint('they come')}")
            published = rows(self.suite)
        results, beside = self._scored(models, titles, own)
        report = Report(results, published, beside)
        for line in report.remarks:
            notice(line)
        if write_outputs({self.json: lambda: as_line(report.to_json()), self.page: report.to_page}):
            return
        for table in report.tables:
            show(table)

    def _columns(self, own: dict[str, str | None]) -> Sequence[Any] | None:
        """The columns of the user's file; --text-column names its text unless there is a corpus.

        Raises:
            SettingsError: --text-column is ambiguous, or contradicts --columns.
        """
        if self.documents or not self.text_column:
            return self.columns or None
        given = [kind for kind, path in own.items() if path]
        if given not in (["relevance"], ["labels"]) or len(self.columns) > 1:
            problem = "--text-column is the text of --relevance or --labels: name the other column by --columns"
            raise SettingsError(problem)
        both = [list(self.text_column), *(self.columns or ["label" if own["labels"] else "query"])]
        return both if own["labels"] else both[::-1]

    def _judged(self, others: Sequence[RetrievalTask]) -> list[RetrievalTask]:
        """The task of --queries, if given.

        Raises:
            SettingsError: another file of one's own, whose columns would be mixed up; or its name is another set's.
        """
        from selfsent.evaluation.tasks.judged import read_judged

        if not (self.queries and self.id_column):
            return []
        if self.pairs or self.relevance or self.labels:
            raise SettingsError("--queries goes without --pairs, --relevance and --labels: score these by themselves")
        table = self.read(self.documents, split_sentences=False, metadata_columns=(self.id_column,))
        task = read_judged(self.queries, table, self.id_column, self.columns or None, self.clean or None)
        if task.name in [other.name for other in others]:
            raise SettingsError(f"{self.queries} would go by the name {task.name}, which another set has: rename it")
        return [task]

    def _scored(
        self, models: Sequence[str], titles: Sequence[str | None], own: dict[str, str | None]
    ) -> tuple[list[Result], list[Beside]]:
        """The results in the order of the models, under their titles if any; and exams beside judged queries."""
        from selfsent.evaluation import check_request, evaluate
        from selfsent.evaluation.datasets.declared import Store
        from selfsent.evaluation.tasks.beir import read_tasks
        from selfsent.exam.beside import Beside
        from selfsent.exam.exam import is_exam
        from selfsent.exam.likeness import weighted_like
        from selfsent.scorers.load_scorer import PairScorer, check_model, check_pooling, load_scorer

        tasks = [name for given in self.task for name in names(given)]
        # Check everything now, not after the first model has been scored.
        store = Store(self.data)
        request: dict[str, Any] = {"suite": self.suite, "task": tasks or None, **own}
        searched = read_tasks(list(self.retrieval), self.split or "test", store.mirror)
        columns = None if self.queries else self._columns(own)
        judged = self._judged(searched)
        drawn = [task for task, where in zip(searched, self.retrieval, strict=True) if is_exam(Path(where))]
        exams = [(task, weighted_like(task, judged[0])) for task in drawn if judged]
        searched += [weighted.task for _, weighted in exams if weighted]
        request |= {"columns": columns, "clean": self.clean or None, "retrieval": [*searched, *judged]}
        check_request(**request, documents=bool(self.documents and not self.queries))
        for model in models:
            check_model(model)
            if self.pooling:
                check_pooling(model)
        documents = self.read(self.documents) if self.documents and not self.queries else None
        request |= {"documents": documents, "data": store, **self.values("classifier", "hold_out")}
        bits, results = self.bits(), []
        with doing() as now:
            progress = StatusLine(now)
            for model, title in zip(models, titles, strict=True):
                encoder = load_scorer(model, **bits, pooling=self.pooling)
                if self.vectors and not encoder.has_vectors:
                    what = "is a cross-encoder" if isinstance(encoder, PairScorer) else "counts words"
                    raise SettingsError(f"{model} {what} and has no vectors to keep: leave out --vectors")
                progress.model = title or model
                results.append(evaluate(encoder, progress=progress, name=title, **request))
                if self.vectors:
                    encoder.write(Path(self.vectors))
        return results, [Beside(results, task.name, judged[0].name, weighted) for task, weighted in exams]
