"""A strong model on a quick one's candidates: how many candidates, how good, how fast.

    python experiments/rerank.py quality --model NAME=DIR --data DIR --output docs/results/quality/rerank.json [--tests]
    python experiments/rerank.py speed --model NAME=DIR --texts FILE --output docs/results/speed/rerank.json
    python experiments/rerank.py table --output docs/results/quality/rerank.json

The number of candidates is chosen on the dev queries of counsel and scitldr; `--tests` scores all tests with that of
the product alone. `FILE` has a sentence a line and a blank line between documents; five sentences become one text.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from selfsent.data.corpus import Corpus, read_corpus
from selfsent.evaluation.results import Score
from selfsent.evaluation.tasks.beir import read_task
from selfsent.files import read_json, write_json
from selfsent.index import Index, write_index
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.scorers.lexical import Hybrid, LexicalScorer
from selfsent.scorers.load_scorer import as_reranker, load_scorer
from selfsent.scorers.rerank import CANDIDATES, Reranked, Reranker
from selfsent.scorers.scorer import Scorer
from selfsent.search import encode_to_file, search

CHOSEN_BY, SHOWN = ("counsel", "scitldr"), ("cranfield", "cisi", "counsel", "scitldr")
SIZES = (10, 30, 50, 100, 200, 300)
SENTENCES = 5


def gain(one: Score, other: Score) -> list[float]:
    """The difference of two scores, and its 95 % interval, by the bootstrap over queries."""
    low, high = np.percentile(one.samples - other.samples, [2.5, 97.5])
    return [round(float(value), 2) for value in (one.score - other.score, low, high)]


def quality(args: argparse.Namespace) -> None:
    """nDCG@10 of the quick models alone, of the strong one over everything, and of both together."""
    found: dict[str, Any] = read_json(args.output)
    for named in args.model:
        name, directory = named.split("=", 1)
        strong = as_reranker(directory, fast=args.fast).encoder
        for data, split in [(each, "test") for each in SHOWN] if args.tests else [(each, "dev") for each in CHOSEN_BY]:
            task = read_task(args.data / data, split=split)
            whole = task.score(Hybrid(strong))
            rows = found.setdefault(f"{name}, {data}, {split}", {})
            rows["over everything"] = {"ndcg": whole.score, "n": whole.n}
            quick: tuple[Scorer, ...] = load_scorer("bundled"), LexicalScorer("bm25")
            for first in quick:
                alone = task.score(Hybrid(first) if first.has_vectors else first)
                rows[first.name] = {"ndcg": alone.score, "recall@100": alone.metrics["recall@100"]}
                for size in (CANDIDATES,) if args.tests else SIZES:
                    score = task.score(Reranked(first, Reranker(strong, size)))
                    rows[f"{first.name}, {size}"] = {
                        "ndcg": score.score,
                        "over everything": gain(score, whole),
                        "over the first": gain(score, alone),
                    }
            write_json(args.output, found)
            print(name, data, split, rows, flush=True)


def passages(path: Path, count: int) -> list[str]:
    """Texts of five sentences each; the rest of a document is a text, too."""
    texts: dict[str, None] = {}
    for blank, lines in itertools.groupby(path.read_text("utf-8").splitlines(), lambda line: not line):
        left = [] if blank else list(lines)
        while left and len(texts) < count:
            texts[" ".join(left[:SENTENCES])] = None
            left = left[SENTENCES:]
    return list(texts)


def timed(call: Any) -> tuple[float, Any]:
    """Seconds of the processor, which others may use at the same time, and what it gave."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def speed(args: argparse.Namespace) -> None:
    """Seconds to index, and milliseconds of a query, the first time and again; a sample stands for the strong model."""
    directory = args.model[0].split("=", 1)[1]
    torch.set_num_threads(1)
    texts = passages(args.texts, args.count)
    words = sum(len(text.split()) for text in texts) / len(texts)
    queries = [text.split(". ")[0] for text in texts[:: len(texts) // args.queries]][: args.queries]
    quick, strong = load_encoder("bundled").eval(), load_encoder(directory).eval()
    found: dict[str, Any] = {"texts": len(texts), "words": round(words, 1), "queries": len(queries)}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        corpus: Corpus = read_corpus(texts, cache=cache / "corpora")

        def index() -> Index:
            write_index(quick, corpus, cache / "index", "bundled", fingerprint(quick))
            return Index(cache / "index")

        found["index, bundled, s"], opened = timed(index)
        sample = texts[:: len(texts) // args.sample][: args.sample]
        encode(strong, sample[:100])
        seconds, _ = timed(lambda: encode(strong, sample))
        found["encode, strong, s"] = seconds * len(texts) / len(sample)
        found["encode, strong, measured on"] = len(sample)
        reranker = as_reranker(strong)
        reranker.scorer.keep(cache / "kept.sqlite")

        def ask(query: str, **how: Any) -> Any:
            return opened.search(encode(quick, [query], side="query"), 10, [query], **how)

        ask(queries[-1])

        def milliseconds(**how: Any) -> list[float]:
            return [timed(lambda query=query: ask(query, **how))[0] for query in queries]

        rounds = {"index": milliseconds(), "index, rerank, first": milliseconds(rerank=reranker)}
        rounds["index, rerank, again"] = milliseconds(rerank=reranker)
        later = as_reranker(strong)  # as another process would find them
        later.encoder.keep(cache / "kept.sqlite")
        rounds["index, rerank, from disk"] = milliseconds(rerank=later)
        encode_to_file(quick, corpus, cache / "vectors.npy")
        rounds["no index"] = [timed(lambda: search(quick, corpus, [queries[0]]))[0]]
        rounds["no index, rerank"] = [timed(lambda: search(quick, corpus, [queries[0]], rerank=later))[0]]
        found |= {f"{name}, ms": round(1000 * statistics.median(each), 2) for name, each in rounds.items()}
        found["kept, bytes"] = (cache / "kept.sqlite").stat().st_size
    write_json(args.output, found)
    print(found)


def table(args: argparse.Namespace) -> None:
    """The rows in Markdown."""
    for name, rows in read_json(args.output).items():
        print(f"\n| {name} | nDCG@10 | over everything | over the first |\n|---|--:|--:|--:|")
        for row, row_of in rows.items():
            differences = (row_of.get(each) for each in ("over everything", "over the first"))
            shown = ("{:+.2f} ({:+.2f} to {:+.2f})".format(*each) if each else "" for each in differences)
            print(f"| {row} | {row_of['ndcg']:.2f} | {' | '.join(shown)} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["quality", "speed", "table"])
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--sample", type=int, default=2000)
    parser.add_argument("--fast", action="store_true", help="the strong model in bfloat16")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    {"quality": quality, "speed": speed, "table": table}[args.what](args)


if __name__ == "__main__":
    main()
