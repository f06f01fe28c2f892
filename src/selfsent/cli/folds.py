"""`selfsent analyse folds`: supervised training on scored pairs, tested by cross-validation."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from selfsent.cli.options import add_dataclass_options
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.errors import SettingsError
from selfsent.settings import Settings

_SPLITS = ("10-fold", "cross-topic")


def add_parser(kinds: Any) -> None:
    """Add the analysis."""
    about = "Train on all folds but one and test on that one, in turn: the protocol for supervised models on arguments."
    parser = kinds.add_parser("folds", help="supervised training, tested by cross-validation", description=about)
    parser.add_argument("--task", default="afs", metavar="NAME", help="afs, ukp-aspect or bws (default: afs)")
    parser.add_argument(
        "--split",
        choices=_SPLITS,
        default="cross-topic",
        help="test on one topic after the other, or on tenths of the pairs, whose sentences also occur in training"
        " (default: cross-topic)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--method", default="cosine", metavar="NAME", help="a method for scored pairs (default: cosine)")
    how.add_argument("--trainer", metavar="MODULE:FUNCTION", help="your own: (pairs, scores) -> a model with encode")
    parser.add_argument("--base", default="bundled", metavar="ENCODER", help="as for selfsent train")
    parser.add_argument("--output", metavar="DIR", help="for the runs of --method; those that are there are used")
    parser.add_argument("--json", metavar="FILE", help="everything, as one object; - for standard output alone")
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA, then the hub)")
    unset = argparse.Namespace(**{item.name: None for item in dataclasses.fields(Settings)})
    group = parser.add_argument_group("settings of the runs (the defaults are the method's)")
    add_dataclass_options(group, Settings, unset)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Train and test on every fold."""
    from selfsent.cli.console import doing, notice, show
    from selfsent.evaluation.arguments import ARGUMENTS, cross_validate
    from selfsent.evaluation.datasets import Store
    from selfsent.evaluation.encoders import load_object
    from selfsent.evaluation.results import Result

    check_outputs({"--json": options.json})
    datasets = {dataset.name: dataset for dataset in ARGUMENTS}
    if options.task not in datasets:
        raise SettingsError(f"{options.task} has no folds; --task must be {', '.join(datasets)}")
    if not (options.trainer or options.output):
        raise SettingsError("--method needs a place for its runs: give --output, or --trainer instead")
    with doing() as now:
        trainer = load_object(options.trainer) if options.trainer else _runs(options, now)
        score = cross_validate(datasets[options.task], trainer, Store(options.data), options.split)
    name = options.trainer or f"{options.method} on {options.base}"
    result = Result(f"{name}, {options.split}", {score.name: score})
    for line in result.warnings:
        notice(f"warning: {line}")
    if not write_outputs({options.json: lambda: json.dumps(result.to_json(), ensure_ascii=False) + "\n"}):
        show(result.table())
        show(score.signature)


def _runs(
    options: argparse.Namespace, now: Callable[[str], None]
) -> Callable[[list[tuple[str, str]], list[float]], str]:
    """A trainer that makes a run of each fold; a finished run is read, one that was stopped goes on."""
    from selfsent import api
    from selfsent.cli.console import notice
    from selfsent.corpus import read_corpus
    from selfsent.files import write_text

    names = {item.name for item in dataclasses.fields(Settings)}
    changes = {name: value for name, value in vars(options).items() if name in names}
    numbers = count(1)

    def train(pairs: list[tuple[str, str]], scores: list[float]) -> str:
        fold = f"fold-{next(numbers):02d}"
        now(f"training without {fold}")
        file = Path(options.output) / f"{fold}.jsonl"
        rows = zip(pairs, scores, strict=True)
        lines = (json.dumps({"a": a, "b": b, "score": score}, ensure_ascii=False) for (a, b), score in rows)
        write_text(file, "".join(f"{line}\n" for line in lines))

        def corpus() -> Any:
            return read_corpus(str(file), text_columns=("a", "b"), score_column="score")

        place = Path(options.output) / fold
        api.train(corpus, options.method, options.base, place, resume=True, data=options.data, **changes)
        notice(f"trained without {fold}, on {len(pairs):,} pairs")
        return str(place / "model")

    return train
