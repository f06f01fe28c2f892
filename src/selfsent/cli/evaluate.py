"""`selfsent evaluate`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_fast_options, quick
from selfsent.cli.options import add_corpus_options, read, refuse_unread
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.errors import SettingsError
from selfsent.models.heads.options import POOLINGS
from selfsent.naming import names

if TYPE_CHECKING:
    from selfsent.evaluation import Result


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "evaluate",
        help="score a model, or several side by side",
        description="Score models by published protocols, on files of your own, or without labels on the held-out"
        " documents of a corpus. Several models stand side by side, each with a paired p-value against the first.",
    )
    parser.add_argument(
        "model",
        nargs="*",
        metavar="MODEL",
        help="a directory (also a run's), a hub id, bundled, module:factory; tfidf, bm25 or counts; glove:FILE,"
        " nostop:FILE or sif:FILE (means of word vectors); dm:FILE or dbow:FILE (paragraph vectors, trained on FILE the"
        " first time); or a file of --vectors; MODEL+words for an encoder and the words that texts"
        " share, as search ranks",
    )
    parser.add_argument(
        "--bases", type=names, default=(), metavar="MODEL[,MODEL]", help="more models, as selfsent compare takes them"
    )
    _add_tasks(parser)
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA, then the hub)")
    parser.add_argument(
        "--pooling",
        choices=POOLINGS,
        help="score the transformer alone with this pooling, without what else the model has; cross-encoders too",
    )
    add_fast_options(parser)
    parser.add_argument(
        "--classifier",
        choices=("exact", "senteval"),
        default="exact",
        help="logistic regression for the suite transfer and --labels. exact: at its minimum; senteval: stopped early,"
        " as for published scores (default: exact)",
    )
    parser.add_argument(
        "--vectors",
        metavar="FILE",
        help="write the vectors of one model and their texts: the file can stand for the model",
    )
    parser.add_argument(
        "--seeds", action="store_true", help="put runs that differ only in their seed into one row: mean ± deviation"
    )
    parser.add_argument("--published", action="store_true", help="add the rows of the papers' tables for the suite")
    forms = parser.add_argument_group("results in files (- is standard output, which then gets nothing else)")
    forms.add_argument("--json", metavar="FILE", help="everything, as one object")
    forms.add_argument("--markdown", metavar="FILE", help="the tables, with signatures")
    forms.add_argument(
        "--page", metavar="FILE", help="an HTML page: scores as dots with their intervals, and the tables"
    )
    forms.add_argument("--csv", metavar="FILE", help="a row for every model and task")
    add_corpus_options(parser, for_documents=True)
    parser.set_defaults(run=run)


def _add_tasks(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group(
        "what to score", "Files of your own are .csv, .jsonl or .parquet with these columns, or tab-separated."
    )
    what.add_argument("--suite", metavar="NAME", help="sts, sts17, stsb-cross, tatoeba, transfer, useb or afs")
    what.add_argument(
        "--task", action="append", metavar="NAME", help="a task such as stsb; may be repeated, or NAME,NAME"
    )
    what.add_argument("--documents", nargs="+", metavar="CORPUS", help="a corpus with documents: the label-free score")
    what.add_argument(
        "--hold-out", type=int, metavar="N", help="score N of its documents, as many as selfsent train kept apart"
    )
    what.add_argument(
        "--judges",
        type=names,
        default=(),
        metavar="NAME[,NAME]",
        help="label-free scores of its documents: context, title, halves, document, crops, robust, spectrum, or all;"
        " the last three need no documents (default: context)",
    )
    what.add_argument("--pairs", metavar="FILE", help="sentence1, sentence2, score: Spearman of the cosine")
    what.add_argument("--relevance", metavar="FILE", help="query, text (a relevant one): MRR@10")
    what.add_argument(
        "--labels",
        metavar="FILE",
        help="text, label: accuracy of logistic regression; beside it that of the nearest neighbour, and k-means",
    )
    what.add_argument(
        "--columns",
        type=names,
        metavar="A,B[,C]",
        help="what your file calls these columns, such as body,team; beside --text-column the other one alone",
    )
    what.add_argument("--id-column", dest="ids", metavar="NAME", help="column with ids, which no score reads")
    what.add_argument(
        "--retrieval",
        action="append",
        default=[],
        metavar="DIR",
        help="search with judged answers: nDCG@10, beside it MRR@10, recall@100 and MAP. A folder in BEIR's layout"
        " (corpus, queries, qrels/SPLIT: .jsonl, .tsv or .parquet), or a hub id such as mteb/scifact; may be repeated",
    )
    what.add_argument("--split", metavar="NAME", help="whose judgements of --retrieval are taken (default: test)")


def run(options: argparse.Namespace) -> None:
    """Score every model, and print or write the results."""
    options.model = [*options.model, *options.bases]
    if not options.model:
        raise SettingsError("no model to score: name one or several, such as bundled, tfidf or a directory")
    from selfsent.cli.console import notice, show
    from selfsent.evaluation.hybrid import without_words
    from selfsent.report.evaluation import Report

    own = [options.pairs, options.relevance, options.labels]
    read_too = [*(options.documents or ()), *(options.without or ()), *own, *options.retrieval]
    alone = [without_words(model) or model for model in options.model]
    behind = [model.partition(":")[2] for model in alone]  # as in glove:FILE
    read_too += filter(os.path.isfile, [*alone, *behind])
    files = {f"--{name}": getattr(options, name) for name in ("json", "markdown", "csv", "page", "vectors")}
    check_outputs(files, read_too)
    _check_vectors(options)
    if not options.documents:
        refuse_unread(options, "--documents", ("clean", "text_column") if any(own) else ())
        if options.hold_out is not None:
            raise SettingsError("--hold-out says how many documents of --documents to score: give --documents, too")
    if options.split and not options.retrieval:
        raise SettingsError("--split says which judgements of --retrieval to take: give --retrieval, too")
    published = None
    if options.published:
        from selfsent.papers.published import Published

        published = Published(options.suite)
    report = Report(_scored(options), published)
    for line in report.remarks:
        notice(line)
    if write_outputs(
        {
            options.json: lambda: json.dumps(report.to_json(), ensure_ascii=False) + "\n",
            options.markdown: report.to_markdown,
            options.csv: report.to_csv,
            options.page: report.to_page,
        }
    ):
        return
    for table in report.tables:
        show(table)
    show("\n".join(report.signatures))


def _columns(options: argparse.Namespace, own: dict[str, str | None]) -> Sequence[Any] | None:
    """The columns of a file of one's own, its text as --text-column has it where that does not belong to --documents.

    Raises:
        SettingsError: it is not said of which file --text-column names the text, or --columns does so, too.
    """
    if options.documents or not options.text_column:
        return options.columns or None
    given = [kind for kind, path in own.items() if path]
    if given not in (["relevance"], ["labels"]) or len(options.columns or ()) > 1:
        raise SettingsError("--text-column is the text of --relevance or --labels: name the other column by --columns")
    both = [options.text_column, *(options.columns or ["label" if own["labels"] else "query"])]
    return both if own["labels"] else both[::-1]


def _check_vectors(options: argparse.Namespace) -> None:
    from selfsent.data.vector_files import check_format

    if options.vectors is None:
        return
    if len(options.model) > 1:
        raise SettingsError("--vectors keeps the vectors of one model: give one model")
    check_format(Path(options.vectors))


def _scored(options: argparse.Namespace) -> list[Result]:
    """The results in the order of the models; with --seeds, one for each group of runs."""
    from selfsent.cli.console import doing
    from selfsent.evaluation import check_request, evaluate
    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.encoders import FittedEncoder, PairEncoder, as_encoder, check_model, check_pooling
    from selfsent.evaluation.side_by_side import mean_over_seeds, seeds_of_runs
    from selfsent.evaluation.tasks.beir import read_tasks

    own = {"pairs": options.pairs, "relevance": options.relevance, "labels": options.labels}
    groups = seeds_of_runs(options.model) if options.seeds else [[model] for model in options.model]
    tasks = [name for given in options.task or () for name in names(given)]
    # Everything that can be wrong is found out now, not after the first model has been scored.
    store = Store(options.data)
    asked = {"suite": options.suite, "task": tasks or None, "judges": options.judges, **own}
    asked |= {"columns": _columns(options, own), "clean": options.clean}
    asked |= {"retrieval": read_tasks(options.retrieval, options.split or "test", store.mirror)}
    check_request(**asked, documents=bool(options.documents))
    for model in options.model:
        check_model(model)
        if options.pooling:
            check_pooling(model)
    documents = read(options, options.documents) if options.documents else None
    bits = quick(options)
    with doing() as now:

        def scored(model: str) -> Result:
            def progress(task: str) -> None:
                now(f"{model}: {task}")

            encoder = as_encoder(model, **bits, pooling=options.pooling)
            if options.vectors and not encoder.has_vectors:
                what = "is a cross-encoder" if isinstance(encoder, PairEncoder) else "counts words"
                raise SettingsError(f"{model} {what} and has no vectors to keep: leave out --vectors")
            if options.vectors and isinstance(encoder, FittedEncoder):
                raise SettingsError(f"{model} makes other vectors for each task: leave out --vectors")
            how = {"classifier": options.classifier, "progress": progress, "hold_out": options.hold_out}
            result = evaluate(encoder, documents=documents, data=store, **how, **asked)
            if options.vectors:
                encoder.write(Path(options.vectors))
            return result

        by_group = [[scored(model) for model in group] for group in groups]
    return [mean_over_seeds(results) if len(results) > 1 else results[0] for results in by_group]
