"""What the words that texts share add to the cosine of their vectors, from several bases, trained and not.

    python experiments/words.py --output docs/results/quality/words.json --text DIR --base minilm=DIR
    python experiments/words.py --output docs/results/quality/words.json --table

Each base as it is, and after `neighbours` on 7,680 sentences of a corpus, is scored on the corpus' development
documents with several weights of the words: `selfsent.evaluation.words.WEIGHT` was chosen by these. With that weight
and without it is then scored on the documents of `selfsent evaluate --documents` and on labelled tasks, and the
difference paired. The first three corpora are trained on. What is done already is not done again.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from domain import DOMAIN, domain_rows
from grid import context_task, finished, keep, open_corpus, train_row

from selfsent.evaluation.datasets.declared import Store
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.lexical import LexicalEncoder
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.evaluation.words import WEIGHT, WithWords
from selfsent.models.loading import load_encoder
from selfsent.report.scoring import scored

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0)
SENTENCES, TRAINED = 7680, 3
CORPORA = {
    "stdlib": "python:stdlib",
    "newsgroups": "forum-newsgroups.txt.zst",
    "counsel": "forum-counsel.txt.zst",
    "bbc": "news-bbc.txt.zst",
    "tech-docs": "tech-docs.txt.zst",
    "science": "science-abstracts.txt.zst",
    "medquad": "medical-medquad.txt.zst",
    "podcasts": "podcasts-changelog.txt.zst",
    "wikipedia": "wikipedia-recent.txt.zst",
}
LABELLED = ("counsel-answers", "scitldr", "banking77-test", "newsgroups-test", "counsel-topics-test", "bbc")
PAIRS = ("stsb", "twitterpara", "ukp-aspect")
RECIPE = "words.py"
Scores = dict[str, list[float]]


def on_documents(task: ContextTask, encoder: Encoder) -> Scores:
    """Score and interval with each weight, and of TF-IDF."""
    named = {f"{weight:g}": WithWords(encoder, weight) for weight in WEIGHTS}
    found = {name: task.score(one) for name, one in {**named, "tfidf": LexicalEncoder("tfidf")}.items()}
    return {name: [score.score, score.low, score.high] for name, score in found.items()}


def labelled(name: str, encoder: Encoder, data: str | None) -> Scores:
    """Scores without words and with, and their difference with its interval over texts."""
    alone, both = (100 * DOMAIN[name](one, domain_rows(name, data)) for one in (encoder, WithWords(encoder)))
    gain = both - alone
    half = 1.96 * gain.std(ddof=1) / len(gain) ** 0.5
    return {
        "0": [alone.mean()],
        f"{WEIGHT:g}": [both.mean()],
        "gain": [gain.mean(), gain.mean() - half, gain.mean() + half],
    }


def paired(score: Callable[[Encoder], Score], encoder: Encoder) -> Scores:
    """The same by the bootstrap, of a task whose scores can be paired."""
    alone, both = score(encoder), score(WithWords(encoder))
    gain = both.minus(alone)
    return {
        "0": [alone.score],
        f"{WEIGHT:g}": [both.score],
        "gain": [float(gain.difference), float(gain.low), float(gain.high)],
    }


def over_documents(task: ContextTask, encoder: Encoder) -> Scores:
    """The same of documents, with TF-IDF's score."""
    return {**paired(task.score, encoder), "tfidf": [task.lexical["tfidf"].score]}


def table(rows: dict[str, Any]) -> str:
    """All rows as Markdown: those of weights, then those of one weight."""
    by_weight = {key: row for key, row in rows.items() if " | dev" in key}
    lines = [
        "| | TF-IDF | " + " | ".join(f"{weight:g}" for weight in WEIGHTS) + " |",
        "|---|" + "--:|" * (1 + len(WEIGHTS)),
    ]
    for key, row in by_weight.items():
        best = max(WEIGHTS, key=lambda weight: row["scores"][f"{weight:g}"][0])
        cells = [
            f"**{row['scores'][f'{weight:g}'][0]:.2f}**" if weight == best else f"{row['scores'][f'{weight:g}'][0]:.2f}"
            for weight in WEIGHTS
        ]
        lines.append(f"| {key.replace(' | ', ', ')} | {row['scores']['tfidf'][0]:.2f} | {' | '.join(cells)} |")
    lines += ["", "| | cosine | and words | gain |", "|---|--:|--:|--:|"]
    for key, row in rows.items():
        if key not in by_weight:
            found = row["scores"]
            gain, low, high = found["gain"]
            line = f"{found['0'][0]:.2f} | {found[f'{WEIGHT:g}'][0]:.2f} | {gain:+.2f} ({low:+.2f} to {high:+.2f})"
            lines.append(f"| {key.replace(' | ', ', ')} | {line} |")
    return "\n".join(lines)


def main() -> None:
    """Score what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/words"))
    parser.add_argument("--data", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")
    parser.add_argument("--text", type=Path, default=Path(), metavar="DIR", help="where the files of the corpora are")
    parser.add_argument("--base", action="append", default=[], metavar="NAME=DIR", help="another base")
    parser.add_argument("--table", action="store_true", help="print what the output holds as Markdown, and run nothing")
    options = parser.parse_args()
    if options.table:
        print(table(finished(options.output)))
        return
    warnings.simplefilter("ignore")
    places = {"bundled": "bundled", "bundled-encoder": "bundled-encoder"}
    places |= dict(given.split("=", 1) for given in options.base)
    bases = {name: scored(load_encoder(place), name) for name, place in places.items()}
    store = Store(options.data)

    def done(key: str, score: Callable[[], Scores]) -> None:
        if key not in finished(options.output):
            scores = score()
            keep(options.output, RECIPE, key, {"scores": scores})
            print(key, *(f"{name} {each[0]:.2f}" for name, each in scores.items()), flush=True)

    for name, encoder in bases.items():
        for labels in LABELLED:
            done(f"{labels} | {name}", partial(labelled, labels, encoder, options.data))
        for pairs in PAIRS:
            done(f"{pairs} | {name}", partial(paired, partial(TASKS[pairs], store=store), encoder))
    for number, (of, file) in enumerate(CORPORA.items()):
        for part, score in (("dev", on_documents), ("test", over_documents)):
            corpus, hold_out = open_corpus({"context": part}, file if ":" in file else [file], options.text)
            task, rows = context_task({"context": part}, corpus, hold_out), hold_out.thinned(SENTENCES).train
            assert task is not None
            for name, encoder in bases.items():
                done(f"{of} | {name} | {part}", partial(score, task, encoder))
                key = f"{of} | {name}, trained | {part}"
                if number < TRAINED and key not in finished(options.output):
                    row = {"method": "neighbours", "base": places[name]}
                    model, _ = train_row(row, 0, corpus, rows, options.runs / f"{of}-{part}-{name}")
                    done(key, partial(score, task, scored(load_encoder(model), name)))


if __name__ == "__main__":
    main()
