"""Words alone: BM25 of `search` and of an index beside bm25s and tantivy, with the same texts, queries and stems.

    python benchmarks/words.py --corpus wikipedia-recent.txt.zst --output docs/results/speed/words.json

Reading texts once for a hundred queries, then a thousand queries, one by one, of what was made. Our index also holds
vectors, and ranks by the words alone here. The sides alternate; medians are compared. Queries are parts of the texts.
How many of the ten first texts are those of bm25s stands beside.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer
import tantivy
from bm25s.stopwords import STOPWORDS_EN_PLUS
from sides import alternate, machine, medians

import selfsent
from selfsent.files import write_json
from selfsent.index import Index, write_index
from selfsent.lexical import BM25, Analyzer
from selfsent.lexical.hybrid import LARGEST
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder

TOP, FEW = 10, 100
Rows = list[list[int]]


def ours_once(texts: Sequence[str], queries: Sequence[str]) -> Rows:
    """As `search CORPUS` does it."""
    bm25 = BM25(queries, Analyzer("english"))
    bm25.add(texts)
    scores = (bm25.queries @ bm25.texts.T).toarray()
    best = np.argpartition(-scores, TOP, 1)[:, :TOP]
    return [rows[np.argsort(-each[rows])].tolist() for rows, each in zip(best, scores, strict=True)]


class Bm25s:
    """An index of bm25s, with its own stop words and Snowball's stems."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.stemmer = Stemmer.Stemmer("english")
        self.index = bm25s.BM25(k1=1.2, b=0.75)
        self.index.index(self._tokens(texts), show_progress=False)

    def _tokens(self, texts: Sequence[str]) -> Any:
        return bm25s.tokenize(list(texts), stopwords=[*STOPWORDS_EN_PLUS], stemmer=self.stemmer, show_progress=False)

    def __call__(self, queries: Sequence[str]) -> Rows:
        """The first rows of each query."""
        rows, _ = self.index.retrieve(self._tokens(queries), k=TOP, show_progress=False)
        return [[*map(int, each)] for each in rows]


class Tantivy:
    """An index of tantivy in memory, with its English analyzer."""

    def __init__(self, texts: Sequence[str]) -> None:
        fields = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem")
        self.index = tantivy.Index(fields.add_unsigned_field("row", stored=True).build())
        writer = self.index.writer()
        for row, text in enumerate(texts):
            writer.add_document(tantivy.Document(text=text, row=row))
        writer.commit()
        self.index.reload()
        self.searcher = self.index.searcher()

    def __call__(self, queries: Sequence[str]) -> Rows:
        """The first rows of each query."""
        found = []
        for query in queries:
            parsed, _ = self.index.parse_query_lenient(query, ["text"])
            hits = self.searcher.search(parsed, TOP).hits
            found.append([int(self.searcher.doc(address)["row"][0]) for _, address in hits])
        return found


def main() -> None:
    """Run the comparison and print the ratios last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", required=True, help="text")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    corpus = selfsent.read_corpus(options.corpus)
    texts = corpus.texts(np.arange(min(options.texts, len(corpus))))
    draw = np.random.default_rng(0)
    queries = [" ".join(texts[row].split()[:6]) for row in draw.integers(len(texts), size=options.queries)]
    with tempfile.TemporaryDirectory() as name:
        encoder, rows = load_encoder("bundled"), selfsent.read_corpus([{"text": each} for each in texts])
        write_index(encoder, rows, Path(name) / "index", "bundled", fingerprint(encoder), language="english")
        index = Index(Path(name) / "index")
        vectors = np.ones((1, index.size), np.float32)
        few = queries[:FEW]

        def ours(asked: Sequence[str]) -> Rows:
            hits = (index.search(vectors, TOP, [query], LARGEST)[0] for query in asked)
            return [[hit.row for hit in each] for each in hits]

        once: dict[str, Callable[[], Any]] = {
            "once, ours": lambda: ours_once(texts, few),
            "once, bm25s": lambda: Bm25s(texts)(few),
            "once, tantivy": lambda: Tantivy(texts)(few),
        }
        made = {"bm25s": Bm25s(texts), "tantivy": Tantivy(texts)}
        asked: dict[str, Callable[[], Any]] = {"one by one, ours": lambda: ours(queries)}
        for peer, ask in made.items():
            asked[f"one by one, {peer}"] = lambda ask=ask: [ask([query])[0] for query in queries]
        seconds, found = alternate(once | asked, options.repetitions)
    taken = medians(seconds)
    shared = {}
    for side, rows in found.items():
        peer = found[f"{side.partition(',')[0]}, bm25s"]
        shared[side] = float(np.mean([len({*a} & {*b}) / TOP for a, b in zip(rows, peer, strict=True)]))
    for side, median in taken.items():
        print(f"  {side:24} {median:8.2f} s   {shared[side]:.1%} of the ten first as bm25s")
    for kind in ("once", "one by one"):
        for peer in ("bm25s", "tantivy"):
            print(f"{kind}, {peer} {taken[f'{kind}, {peer}'] / taken[f'{kind}, ours']:.2f}x")
    if options.output:
        about = {"corpus": Path(options.corpus).name, "texts": len(texts), "queries": len(queries), "few": FEW}
        versions = {"bm25s": bm25s.__version__, "tantivy": tantivy.__version__}
        figures = {"seconds": seconds, "as bm25s": shared, "peers": versions}
        write_json(options.output, {**about, **figures, "machine": machine()})


if __name__ == "__main__":
    main()
