"""How soon is an encoder better? Seconds from the command to the score, beside sentence-transformers on the same pairs.

    python benchmarks/time_to_score.py --corpus python:stdlib --base bundled
    python benchmarks/time_to_score.py --plot docs/images/time-to-score.svg

Both sides train on neighbours with the same loss, rate, batch size and steps: ours with `selfsent train`, whose time
includes reading, cleaning, its scores before and after, card and map; theirs with the script that a user would write
(peer_neighbours.py), which gets its pairs as a file and scores nothing. Each point is a whole command of so many steps.
The peer takes whichever of float32 and bfloat16 was faster in a short run, and the rate that ended highest of several:
our loss holds on to the base, which lets it learn at rates at which the peer's forgets. Scored afterwards alike:
context, on the documents that `train` kept apart from both sides, and STS-B.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from harness import kept, machine, measured

from selfsent import read_corpus
from selfsent.data.corpus import Corpus
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.suites import evaluate
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.files import write_json
from selfsent.methods import get_method
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.scorers.load_scorer import scorer_of
from selfsent.training.plan import Plan

STYLES = (
    ("selfsent", "selfsent train", "oC0-"),
    ("selfsent --keep-base 0", "selfsent train --keep-base 0", "^C2-."),
    ("peer", "sentence-transformers", "sC1--"),
)
"""Side, what it is called, marker with colour and line."""
SAME = 0.1
"""Points of a score that make no difference: its intervals are ten times as wide."""
WITHIN = 1
"""How far a neighbour is, as by default."""


def write_pairs(corpus: Corpus, rows: np.ndarray, path: Path, count: int) -> None:
    """A file of pairs, each sentence with one beside it in its document, pass after pass over the rows until enough."""
    documents, kept, draw = np.asarray(corpus.documents), set(rows.tolist()), random.Random(0)
    beside = {
        row: [
            other
            for other in (row - WITHIN, row + WITHIN)
            if other in kept and 0 <= other < len(documents) and documents[other] == documents[row]
        ]
        for row in rows.tolist()
    }
    able, texts = [row for row in beside if beside[row]], corpus.texts()
    text = dict(enumerate(texts))
    with path.open("w", encoding="utf-8") as file:
        written = 0
        while written < count:
            draw.shuffle(able)
            for row in able[: count - written]:
                pair = {"anchor": text[row], "positive": text[draw.choice(beside[row])]}
                file.write(json.dumps(pair) + "\n")
            written += min(len(able), count - written)


def scores(model: str, context: ContextTask) -> dict[str, float]:
    """Context and STS-B of a saved model."""
    encoder = scorer_of(load_encoder(model), model)
    result = evaluate(encoder, task=["stsb"], data=None)
    return {"context": context.score(encoder).score, "stsb": result.scores["stsb"].score}


def measure(options: argparse.Namespace, rows: dict[str, Any], key: str) -> None:
    """Fill in what is missing of a corpus and a base."""
    done = rows.setdefault(key, {"corpus": Path(options.corpus).name, "base": options.name or options.base})
    corpus = read_corpus(options.corpus)
    hold_out = HoldOut.of(corpus, dev=False)
    context = ContextTask(corpus, hold_out.test)
    plan = Plan.resolve(get_method("neighbours"), options.base, seed=0)
    settings = plan.settings
    whole = (settings.epochs or 1) * len(hold_out.train) // settings.batch_size
    most = min(options.steps or whole, whole)
    points = sorted({max(1, round(most / 2**halving)) for halving in range(options.points)})
    done.update(
        {"batch_size": settings.batch_size, "learning_rate": settings.learning_rate, "untrained": done.get("untrained")}
    )
    done["untrained"] = done["untrained"] or scores(options.base, context)
    with tempfile.TemporaryDirectory() as place:
        pairs, output, run = Path(place, "pairs.jsonl"), str(Path(place, "model")), str(Path(place, "run"))
        write_pairs(corpus, hold_out.train, pairs, (most + 1) * settings.batch_size)
        peer = [
            sys.executable,
            str(Path(__file__).with_name("peer_neighbours.py")),
            str(pairs),
            str(resolve(options.base)),
            output,
        ]
        peer += ["--batch-size", str(settings.batch_size), "--warmup", str(settings.warmup)]
        if "bf16" not in done:
            short = [*peer, "--steps", str(max(4, most // 40)), "--rate", "1e-5"]
            done["bf16"] = measured([*short, "--bf16"])["seconds"] < measured(short)["seconds"]
        peer += ["--bf16"] * done["bf16"]
        peer += ["--rate", str(options.peer_rate or settings.learning_rate)]
        mine = [sys.executable, "-m", "selfsent", "train", options.corpus, "--base", options.base, "--overwrite"]
        mine += ["--whiten", "0", "--output", run]
        sides = {"selfsent": mine, "peer": peer}
        if options.keep_nothing:
            sides["selfsent --keep-base 0"] = [*mine, "--keep-base", "0"]
        for steps in points:
            for side, command in sides.items():
                curve = done.setdefault(side, {})
                if str(steps) in curve:
                    continue
                seconds = measured([*command, "--steps", str(steps)])["seconds"]
                model = str(Path(run, "model")) if side != "peer" else output
                curve[str(steps)] = {"seconds": round(seconds, 2), **scores(model, context)}
                print(key, side, steps, curve[str(steps)], flush=True)
                write_json(options.output, {"machine": machine(), "rows": rows})


def times_sooner(row: dict[str, Any], side: str = "selfsent", score: str = "context") -> float:
    """How many times sooner ours is at the peer's last score; between two points ours is a straight line.

    The peer's time is that of its first point with that score: what it trained beyond gained it nothing.
    """
    peer = list(row["peer"].values())
    last = next(point for point in peer if point[score] >= peer[-1][score] - SAME)
    before = {"seconds": 0.0, **row["untrained"]}
    for point in row[side].values():
        if point[score] >= last[score] - SAME:
            share = (min(last[score], point[score]) - before[score]) / max(point[score] - before[score], 1e-9)
            least = min(one["seconds"] for one in row[side].values())  # no command is faster than its start
            sooner = before["seconds"] + max(share, 0.0) * (point["seconds"] - before["seconds"])
            return float(last["seconds"] / max(sooner, least))
        before = point
    return float("nan")


def plot(rows: dict[str, Any], path: Path) -> None:
    """Score over time, a panel for each corpus and base."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "time to score"
    figure, axes = plt.subplots(1, len(rows), figsize=(3.6 * len(rows), 3.2), layout="constrained", squeeze=False)
    for axis, row in zip(axes[0], rows.values(), strict=True):
        for side, label, style in STYLES:
            points = list(row.get(side, {}).values())
            if not points:
                continue
            axis.plot(
                [point["seconds"] for point in points], [point["context"] for point in points], style, label=label
            )
        axis.axhline(row["untrained"]["context"], color="grey", linewidth=1)
        axis.text(0, row["untrained"]["context"], " before", va="bottom", color="grey", fontsize=8)
        axis.set(title=f"{row['base']}, {row['corpus']}", xlabel="seconds from the command", xlim=(0, None))
    axes[0][0].set_ylabel("context")
    named = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(list(named.values()), list(named), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure what is missing, or draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", default="python:stdlib")
    parser.add_argument("--base", default="bundled")
    parser.add_argument("--name", help="of the base, where it is a directory")
    parser.add_argument("--steps", type=int, help="at most; by default what train takes")
    parser.add_argument("--keep-nothing", action="store_true", help="ours with --keep-base 0, too: the peer's loss")
    parser.add_argument("--peer-rate", type=float, help="the best of the peer (default: ours)")
    parser.add_argument("--points", type=int, default=4, help="each of half as many steps as the next")
    parser.add_argument("--output", type=Path, default=Path("docs/results/speed/time_to_score.json"))
    parser.add_argument("--plot", type=Path, metavar="SVG", help="draw what the output holds")
    options = parser.parse_args()
    rows = kept(options.output)
    if options.plot:
        plot(rows, options.plot)
    else:
        measure(options, rows, f"{Path(options.corpus).name} | {options.name or options.base}")
        write_json(options.output, {"machine": machine(), "rows": rows})
    for key, row in rows.items():
        for side in (side for side in row if side.startswith("selfsent")):
            print(f"{key}, {side}: at the peer's last score {times_sooner(row, side):.1f} times sooner")


if __name__ == "__main__":
    main()
