"""How good is a choice without labels? Train candidates on domains that have labels, and score them by all judges.

    python experiments/judges.py experiments/judges.yaml --text text --output docs/results/quality/judges.json
    python experiments/judges.py experiments/judges.yaml --output docs/results/quality/judges.json --report

What is done already is not done again. Each row of the output is one encoder: its label-free scores with intervals, its
gain over the untrained base by each of them, paired, its scores on the domain's labelled tasks and on STS-B dev, and
the cosines of some labelled pairs in --runs, from which the report says how many labels buy how much. The report is in
judges_report.py.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from domain import DOMAIN, domain_rows, score_domain
from grid import finished, keep, train_row
from judges_report import report

from selfsent import read_corpus
from selfsent.comparison.pairs import draw_pairs
from selfsent.data.corpus import Corpus
from selfsent.errors import DataError, SettingsError, TrainingError
from selfsent.evaluation.datasets.declared import DataSet, Rows, Store, fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.judges import Held, make_judges
from selfsent.evaluation.results import Score
from selfsent.evaluation.suites import TASKS
from selfsent.models.bases import resolve
from selfsent.models.heads.loading import is_static
from selfsent.models.loading import load_encoder
from selfsent.recipes import read_document
from selfsent.report.scoring import scored

HELD_SENTENCES = 3000
"""Kept apart of a corpus without documents."""


class Thinned(Store):
    """A store whose sets have no more than so many rows, drawn at random."""

    def __init__(self, data: str | None, most: int) -> None:
        super().__init__(data)
        self.most = most

    def load(self, dataset: DataSet) -> Rows:
        """Some of the rows of a data set."""
        rows = super().load(dataset)
        chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[: self.most])
        columns = {name: [values[row] for row in chosen] for name, values in rows.columns.items()}
        return Rows(rows.name, columns, fingerprint(columns))


class Place:
    """A domain and a base: text, judges, labelled pairs, and what the untrained base scores.

    Args:
        domain: its entry in the recipe.
        base: a directory or `bundled`.
        size: how much is read and scored.
        options: of the command line.
    """

    def __init__(self, domain: dict[str, Any], base: str, size: dict[str, int], options: argparse.Namespace) -> None:
        self.domain, self.base, self.size, self.data = domain, base, size, options.data
        self.corpus = self._corpus(options)
        held = self._held()
        self.train, self.held = held.thinned(size["sentences"]).train, held.dev
        assert self.held is not None
        self.judges, self.absent = make_judges(Held(self.corpus, self.held, size["judged"]))
        self.store = Thinned(self.data, size["labelled"])
        self.pairs = self._labelled_pairs() if "pairs" in domain else None
        self.untrained: dict[str, Score] = {}

    def _corpus(self, options: argparse.Namespace) -> Corpus:
        if "corpus" in self.domain:
            named = self.domain["corpus"]
            return read_corpus(named if named.startswith("python:") else options.text / named)
        path = Path(options.data or os.environ["SELFSENT_DATA"]) / self.domain["data"]
        table = pq.read_table(path)
        texts = [text for name in self.domain.get("columns", ["text"]) for text in table.column(name).to_pylist()]
        return read_corpus(list(dict.fromkeys(texts)))

    def _held(self) -> HoldOut:
        if self.corpus.documents is not None:
            return HoldOut.of(self.corpus, dev=True, notice=print)
        drawn = np.random.default_rng(0).permutation(len(self.corpus))
        count = min(HELD_SENTENCES, len(drawn) // 3)
        return HoldOut(np.sort(drawn[count:]), np.sort(drawn[:count]), None)

    def _labelled_pairs(self) -> tuple[list[str], list[str], np.ndarray]:
        """Pairs as `selfsent label` draws them, and whether their labels are the same."""
        rows = domain_rows(self.domain["pairs"], self.data)
        label = dict(zip(rows["text"], rows["label"], strict=True))
        texts = list(label)
        drawn = draw_pairs(texts, [as_encoder("bundled"), as_encoder("tfidf")], self.size["pairs"])
        left, right = ([texts[row] for row in side] for side in drawn.T)
        return left, right, np.array([label[a] == label[b] for a, b in zip(left, right, strict=True)])

    def judged(self, encoder: Encoder) -> dict[str, Score]:
        """All label-free scores."""
        return {name: judge.score(encoder) for name, judge in self.judges.items()}

    def against_untrained(self, scores: dict[str, Score]) -> dict[str, Any]:
        """The scores as they are kept, each with its paired gain over the untrained base."""
        if not self.untrained:
            self.untrained = self.judged(load(self.base))
        found = {}
        for name, score in scores.items():
            gain = score.minus(self.untrained[name])
            figures = [score.score, score.low, score.high, gain.difference, gain.low, gain.high]
            found[name] = [round(figure, 4) for figure in figures]
            if name == "spectrum":
                found |= {
                    part: [round(score.metrics[part], 4)] for part in ("uniformity", "alignment", "effective_rank")
                }
        return found

    def lexical(self) -> dict[str, dict[str, float]]:
        """The scores of TF-IDF and BM25 by the judges that they can have."""
        tasks = {name: judge for name, judge in self.judges.items() if hasattr(judge, "lexical")}
        return {
            kind: {name: round(t.lexical[kind].score, 2) for name, t in tasks.items()} for kind in ("tfidf", "bm25")
        }

    def labelled(self, encoder: Encoder) -> dict[str, list[float]]:
        """The scores on the domain's labelled tasks and on STS-B dev."""
        found = {}
        for task in (*self.domain["tasks"], "stsb-dev"):
            if task in DOMAIN:
                found[task] = score_domain(task, encoder, self.data, self.size["labelled"])
            else:
                score = TASKS[task](encoder, self.store)
                found[task] = [round(each, 4) for each in (score.score, score.low, score.high)]
        return found


def load(model: str) -> Encoder:
    """A model, as it is scored here."""
    return scored(load_encoder(model), model)


def run_row(key: str, settings: dict[str, Any], place: Place, runs: Path) -> dict[str, Any]:
    """Train and score one candidate."""
    start = time.perf_counter()
    try:
        model, kept = train_row({**settings, "base": place.base}, 0, place.corpus, place.train, runs / "model")
    except (TrainingError, SettingsError, DataError) as error:
        return {**settings, "failed": str(error).partition(": ")[0]}
    encoder, between = load(model), time.perf_counter()
    judges = place.against_untrained(place.judged(encoder))
    labels = place.labelled(encoder)
    if place.pairs is not None:
        left, right, same = place.pairs
        (runs / "pairs").mkdir(parents=True, exist_ok=True)
        np.savez(runs / "pairs" / f"{key}.npz", cosine=encoder.similarity(left, right), same=same)
    times = {"seconds of training": between - start, "seconds of scoring": time.perf_counter() - between}
    return {**settings, **kept, "judges": judges, "labelled": labels, **{k: round(v, 1) for k, v in times.items()}}


def candidates(recipe: dict[str, Any], table: bool) -> dict[str, dict[str, Any]]:
    """The settings of each candidate for a kind of base."""
    rows = {**recipe["rows"], **(recipe["more_of_tables"] if table else {})}
    shared = recipe["all"] if table else recipe["for_transformers"]
    return {title: {**shared, **row} if row else {} for title, row in rows.items()}


def main() -> None:
    """Do what is missing, or print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/judges"))
    parser.add_argument("--data", help="mirror of the labelled data sets (default: SELFSENT_DATA)")
    parser.add_argument("--text", type=Path, default=Path(), metavar="DIR", help="where the text of the domains is")
    parser.add_argument("--base", action="append", default=[], metavar="NAME=DIR", help="the directory of a named base")
    parser.add_argument("--bases", default="bundled", help="names of bases, between commas")
    parser.add_argument("--domains", help="names of domains, between commas (default: all)")
    parser.add_argument("--report", action="store_true", help="print what the output holds, and run nothing")
    options = parser.parse_args()
    recipe = read_document(options.recipe)
    if options.report:
        domains = options.domains.split(",") if options.domains else recipe["domains"]
        rows = {key: row for key, row in finished(options.output).items() if row["domain"] in domains}
        print(report(rows, recipe["development"], options.runs / "pairs"))
        return
    warnings.simplefilter("ignore")
    named = dict(given.split("=", 1) for given in options.base)
    for base in options.bases.split(","):
        directory = named.get(base, base)
        table = is_static(resolve(directory))
        for name in options.domains.split(",") if options.domains else recipe["domains"]:
            todo = {f"{name} | {base} | {title}": row for title, row in candidates(recipe, table).items()}
            todo = {key: row for key, row in todo.items() if key not in finished(options.output)}
            if not todo:
                continue
            place = Place(recipe["domains"][name], directory, recipe["tables" if table else "transformers"], options)
            for key, settings in todo.items():
                row = run_row(key, settings, place, options.runs)
                if not settings:
                    row |= {"absent": dict(place.absent), "words": place.lexical()}
                keep(options.output, options.recipe.name, key, {"domain": name, "base": base, **row})
                print(time.strftime("%H:%M:%S"), key, row.get("failed") or shown(row), flush=True)


def shown(row: dict[str, Any]) -> str:
    """The scores of a row in one line."""
    both = {**row["judges"], **row["labelled"]}
    return "  ".join(f"{name} {figures[0]:.2f}" for name, figures in both.items())


if __name__ == "__main__":
    main()
