"""Search for answers and summaries after training on documents that hold the queries, and on documents that do not.

    python experiments/leaks.py --text TEXT --output docs/results/quality/leaks.json
    python experiments/leaks.py --output docs/results/quality/leaks.json --table

TEXT has forum-counsel and science-abstracts, whose documents hold a question and its answer, or a summary and its
abstract, `together`. `apart` are the answers, or the abstracts, of `retrieval/` of the data mirror: what is searched,
and no query. The rows are those of static.yaml, and on documents apart of neighbours.yaml, too, 7,680 sentences each.
What is done already is not done again. Every row is scored on the test queries, by the cosine and with words; beside
nDCG@10 stands the paired difference to the base. Counsellors' answers have the MRR@10 of experiments/domain.py, too.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from domain import score_domain
from grid import is_same_with_any_seed, keep, kept, merged, spread, train_row
from sides import MINILM, base_of

from selfsent import read_corpus
from selfsent.data.corpus import Corpus
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.hybrid import Hybrid
from selfsent.evaluation.results import Score
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.models.loading import load_encoder
from selfsent.models.precision import inference_device, resolve_precision
from selfsent.recipes import read_document
from selfsent.report.scoring import scored

HERE, RECIPE = Path(__file__).parent, Path(__file__).name
TOGETHER = {"counsel": "forum-counsel.txt.zst", "scitldr": "science-abstracts.txt.zst"}
IN_PART = {
    "neighbours, whitened by 0.25": {"method": "neighbours", "whiten": 0.25},
    "whitening by 0.25": {"method": "whitening", "strength": 0.25},
}
"""Rows of the table beside those of static.yaml."""
OF_MINILM = ("untrained", "neighbours", "bootstrap", "ntxent", "ct", "simcse, picked words")
SENTENCES, TOKENS = 7680, 128


def jobs() -> Iterator[tuple[str, dict[str, Any], str, dict[str, Any]]]:
    """Base, recipe, title and settings of every row."""
    recipe = read_document(HERE / "static.yaml")
    yield from (("bundled", recipe, title, row) for title, row in (recipe["rows"] | IN_PART).items())
    recipe = read_document(HERE / "neighbours.yaml")
    yield from ((MINILM, recipe, title, recipe["rows"][title]) for title in OF_MINILM)


@cache
def task(name: str, data: Path) -> RetrievalTask:
    """The test queries of a set, and all its documents."""
    folder = data / "retrieval" / name
    documents, queries = (pq.read_table(folder / f"{part}.parquet").to_pydict() for part in ("corpus", "queries"))
    places = {document: place for place, document in enumerate(documents["id"])}
    grades: dict[str, dict[int, float]] = {query: {} for query in queries["id"]}
    for row in pq.read_table(folder / "qrels" / "test.parquet").to_pylist():
        grades[row["query"]][places[row["document"]]] = row["grade"]
    return RetrievalTask(name, queries["text"], documents["text"], list(grades.values()), documents["id"])


def corpus_of(name: str, where: str, text: Path, data: Path) -> Corpus:
    """The text of a set to train on."""
    if where == "together":
        return read_corpus(text / TOGETHER[name])
    return read_corpus(data / "retrieval" / name / "corpus.parquet", split_sentences=True)


def load(model: str) -> Encoder:
    """A model as it is scored, a transformer cut at so many tokens."""
    encoder = load_encoder(model)
    if encoder.has_transformer:
        encoder.tokenizer.model_max_length = TOKENS
    return scored(encoder, "the encoder")


def score(encoder: Encoder, name: str, data: Path) -> dict[str, Score]:
    """The scores of an encoder by the cosine and with words."""
    return {row: task(name, data).score(each) for row, each in (("cosine", encoder), ("+words", Hybrid(encoder)))}


def plain(found: Score) -> dict[str, Any]:
    """What is kept of a score."""
    return {"ndcg@10": rounded(found.score, found.low, found.high), **found.metrics}


def rounded(*values: float) -> list[float]:
    """As they are written."""
    return [round(float(value), 4) for value in values]


def run_all(text: Path, data: Path, runs: Path, output: Path, only: str) -> None:
    """Every row that is missing, and whose key has `only` in it."""
    for name in TOGETHER:
        if name not in kept(output):
            keep(output, RECIPE, name, {row: plain(found) for row, found in task(name, data).lexical.items()})
    of_base = cache(load)
    untrained = cache(lambda base, name: score(of_base(base_of(base)), name, data))
    for where, (base, recipe, title, row), name, seed in product(("apart", "together"), jobs(), TOGETHER, (0, 1, 2)):
        key = f"{name} | {base} | {title} | {where} | seed {seed}"
        if seed not in recipe["seeds"] or (seed and is_same_with_any_seed(row)) or key in kept(output):
            continue
        if only not in key or (where == "together" and (base, title) != ("bundled", "neighbours")):
            continue
        settings = {**merged(recipe.get("all", {}), row), "base": base_of(base)}
        if row:
            settings["precision"] = resolve_precision("auto", inference_device())
        corpus = corpus_of(name, where, text, data)
        rows = HoldOut(np.arange(len(corpus)), None, None).thinned(SENTENCES).train
        model, run = train_row(settings, seed, corpus, rows, runs)
        encoder = load(model) if row else of_base(model)
        scores: dict[str, Any] = {}
        for way, found in score(encoder, name, data).items():
            gain = found.minus(untrained(base, name)[way])
            scores[way] = {**plain(found), "over the base": rounded(gain.difference, gain.low, gain.high)}
            if name == "counsel":
                each = encoder if way == "cosine" else Hybrid(encoder)
                scores[way]["answers"] = score_domain("counsel-answers", each, str(data))
        keep(output, RECIPE, key, {**settings, "base": base, **run, "scores": scores})
        print(key, *(f"{way} {each['ndcg@10'][0]:.2f}" for way, each in scores.items()), flush=True)


def table(rows: dict[str, Any]) -> str:
    """The rows as Markdown, means and deviations over seeds."""
    lines = ["| set, base, training, text | nDCG@10 | over the base | with words | answers | with words |"]
    lines += ["|---|--:|--:|--:|--:|--:|"]
    runs: dict[str, list[Any]] = {}
    for key, row in rows.items():
        if "scores" in row:
            runs.setdefault(key.rpartition(" | ")[0], []).append(row["scores"])
        else:
            lines.append(f"| {key}: BM25 | {row['bm25']['ndcg@10'][0]:.2f} | | | | |")
    for key, found in runs.items():
        ways = [[each[way] for each in found] for way in ("cosine", "+words")]
        cells = [spread([each[what][0] for each in ways[0]]) for what in ("ndcg@10", "over the base")]
        cells += [spread([each["ndcg@10"][0] for each in ways[1]])]
        cells += [spread([each["answers"][0] for each in way if "answers" in each]) for way in ways]
        lines.append(f"| {key.replace(' | ', ', ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, default=Path(), metavar="DIR", help="where the files of the corpora are")
    parser.add_argument("--runs", type=Path, default=Path("runs/leaks"))
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose names hold this")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="print what the output holds as Markdown, and run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.table:
        run_all(options.text, Path(os.environ["SELFSENT_DATA"]), options.runs, options.output, options.only)
    print(table(kept(options.output)))


if __name__ == "__main__":
    main()
