"""`selfsent analyse corpus-size`: how the score grows with the number of training sentences."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selfsent.cli.analysis_parts import add_common, check_files, finish, plain_of, table_of
from selfsent.cli.encoding import quick
from selfsent.cli.options import add_corpus_options, add_dataclass_options, read
from selfsent.errors import SettingsError
from selfsent.settings import Settings


def add_corpus_size(kinds: Any) -> None:
    """Add the analysis."""
    about = "How the score grows with the number of training sentences."
    parser = kinds.add_parser("corpus-size", help="how much text helps", description=about)
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help="as for selfsent train")
    parser.add_argument("--output", required=True, metavar="DIR", help="where the runs go; finished ones are used")
    parser.add_argument("--method", default="tsdae", metavar="NAME", help="see selfsent methods (default: tsdae)")
    parser.add_argument("--base", metavar="ENCODER", help="as for selfsent train")
    parser.add_argument("--sizes", metavar="N,N", help="sentences (default: a 64th, 16th and 4th of them, and all)")
    parser.add_argument("--seeds", default="0", metavar="N,N", help="seeds, with a run for each (default: 0)")
    parser.add_argument("--task", metavar="NAME", help="score on a task (default: label-free, on held-out documents)")
    add_corpus_options(parser)
    unset = argparse.Namespace(**{item.name: None for item in dataclasses.fields(Settings)})
    group = parser.add_argument_group("settings of the runs (the defaults are the method's)")
    add_dataclass_options(group, Settings, unset)
    add_common(parser, _corpus_size)


def _corpus_size(options: argparse.Namespace) -> None:
    from selfsent.cli.console import doing, notice
    from selfsent.evaluation.tasks.analysis import corpus_size_curve
    from selfsent.methods import get_method
    from selfsent.report.plots import plot_corpus_size
    from selfsent.training.plan import make_plan

    check_files(options)
    if hasattr(options, "seed"):
        raise SettingsError("corpus-size trains with several seeds: give --seeds instead of --seed")
    seeds = _numbers("--seeds", options.seeds, least=0)
    sizes = _numbers("--sizes", options.sizes, least=2) if options.sizes else None
    names = {item.name for item in dataclasses.fields(Settings)}
    changes = {name: value for name, value in vars(options).items() if name in names}
    if make_plan(get_method(options.method), options.base).reads_documents:
        raise SettingsError(
            f"corpus-size draws sentences one by one, and {options.method} reads what stands beside them: name another"
            " --method"
        )
    train_rows, score, metric, corpus = _training(options)
    everything = len(train_rows)
    sizes = sizes or sorted({max(2, everything // part) for part in (64, 16, 4, 1)})
    if max(sizes) > everything:
        raise SettingsError(f"--sizes asks for {max(sizes):,} texts; there are {everything:,} to train on")

    with doing() as now:

        def train_and_score(size: int, seed: int) -> float:
            import numpy as np

            from selfsent import api

            now(f"{corpus.report.counted(size)}, seed {seed}")
            rows = np.sort(np.random.default_rng(seed).choice(train_rows, size, replace=False))
            place = Path(options.output) / f"{size}-{seed}"
            # A finished run is read, one that was stopped goes on.
            api.train(
                corpus.texts(rows),
                options.method,
                options.base,
                place,
                seed=seed,
                resume=True,
                data=options.data,
                **changes,
            )
            found = score(str(place / "model"))
            notice(f"{corpus.report.counted(size)}, seed {seed}: {metric} {found:.2f}")
            return found

        points = corpus_size_curve(train_and_score, sizes, seeds)
    cells = ([f"{p.size:,}", f"{p.mean:.2f}" + (f" ± {p.deviation:.2f}" if len(seeds) > 1 else "")] for p in points)
    plain = {
        "method": options.method,
        "base": options.base,
        "metric": metric,
        "seeds": seeds,
        "curve": plain_of(points),
    }
    finish(
        options, table_of([f"{corpus.report.unit}s", metric], cells), plain, lambda: plot_corpus_size(points, metric)
    )


def _training(options: argparse.Namespace) -> tuple[Any, Callable[[str], float], str, Any]:
    """Rows to train on, what scores a model, what that is called, and the corpus."""
    import numpy as np

    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.encoders import as_encoder
    from selfsent.evaluation.suites import TASKS, check_request
    from selfsent.evaluation.tasks.context import SCORE_NAME, ContextTask, split_documents
    from selfsent.report.scoring import check_dev_data

    store = Store(options.data)
    by_task = options.task and options.task != SCORE_NAME
    if by_task:
        check_request(task=options.task)
        check_dev_data(options.task, store)
    corpus = read(options, options.corpus)
    bits = quick(options)
    if by_task:
        run = TASKS[options.task]
        everything = np.arange(len(corpus))
        return everything, lambda m: run(as_encoder(m, **bits), store).score, options.task, corpus
    train_rows, held = split_documents(corpus)
    task = ContextTask(corpus, held)
    return train_rows, lambda m: task.score(as_encoder(m, **bits)).score, SCORE_NAME, corpus


def _numbers(flag: str, text: str, least: int) -> list[int]:
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise SettingsError(
            f"{flag} is {text}; it must be whole numbers with commas between, such as 1000,10000"
        ) from None
    if numbers[0] < least:
        raise SettingsError(f"{flag} has {numbers[0]}; each must be at least {least}")
    return numbers
