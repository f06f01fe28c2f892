"""Do exams drawn from documents order encoders and rankings as judged queries do?

python experiments/exam.py --data DIR --vectors CACHE --model minilm=DIR --output docs/results/quality/exam.json
python experiments/exam.py --table --output docs/results/quality/exam.json

DIR holds counsel, scitldr, cranfield and cisi in BEIR's layout (parquet). Every text is encoded once, into CACHE; a run
that was killed goes on from there. What is done to the words that query and answer share was chosen on train and dev of
counsel and scitldr: a share of them left out; replaced by WordNet's synonyms or by a language model's guesses, and left
out where there is none.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import spearmanr

from selfsent.augment.augmenter import Sentences
from selfsent.augment.refill import Refiller
from selfsent.augment.synonym import Synonym
from selfsent.data.corpus import Corpus, read_corpus
from selfsent.data.corpus.clean import clean
from selfsent.errors import DataError
from selfsent.evaluation.hold_out import text_hashes
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.exam.compare import WEIGHTS
from selfsent.exam.draw import DROPPED, Exam, draw_exam, texts_of
from selfsent.files import read_json, write_json
from selfsent.lexical import BM25, Analyzer
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import load_scorer
from selfsent.scorers.scorer import Scorer
from selfsent.stats.resampling import paired_best

SETS = {"counsel": (("train", "dev"), ("test",)), "scitldr": (("train", "dev"), ("test",))}
SETS |= {"cranfield": (("test",),), "cisi": (("test",),)}
"""Groups of splits: those to choose by come first, where there are any."""
LARGE, SAMPLE = 2500, 1200
"""A larger set is thinned to a sample of documents, with the queries that they answer."""
QUERIES = 400
SENTENCES = 1000
"""Sentences of `context`."""
WAYS = ("0", "0.3", "0.4", "0.5", "0.7", "synonyms", "synonyms 0.4", "guesses 0.4")
"""Shares left out; or shared words, all or a share, get a synonym or a guess, and are left out where there is none."""
RANKINGS = ("cosine", *(f"+{weight:g}" for weight in WEIGHTS), "BM25")
OWN = {"bundled": 1.5, "bundled-encoder": 1.0, "minilm": 0.5}
"""The weights that the models have without an exam."""
TABLES = ("bundled",)
WORDS = 95  # of a text that a transformer reads, about 128 tokens
DISCOUNTS = 1 / np.log2(np.arange(2, 12))
Scores = dict[str, np.ndarray]
"""For each encoder the nDCG@10 of each ranking and query, (7, q)."""


class Store:
    """Vectors of texts in a file, one for each encoder."""

    def __init__(self, name: str, model: str, folder: Path) -> None:
        self.path, self.model = folder / f"vec_{name}.npz", model
        self.rows, self.vectors = dict[str, int](), np.zeros((0, 0), np.float16)
        if self.path.exists():
            found = np.load(self.path, allow_pickle=False)
            self.rows, self.vectors = {key: row for row, key in enumerate(found["k"].tolist())}, found["v"]
        self.encode: Callable[[list[str]], Any] | None = None

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors."""
        keys = [hashlib.blake2b(text.encode(), digest_size=12).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.rows}
        if new:
            encoder = load_scorer(self.model, fast=True)
            short = [text if self.model in TABLES else " ".join(text.split()[:WORDS]) for text in new.values()]
            vectors = encoder(short).astype(np.float16)
            self.vectors = np.concatenate([self.vectors, vectors]) if self.rows else vectors
            self.rows |= {key: len(self.rows) + row for row, key in enumerate(new)}
            np.savez(self.path, v=self.vectors, k=np.array(list(self.rows)))
            print(f"{self.path.name}: {len(new)} texts", flush=True)
        found = self.vectors[[self.rows[key] for key in keys]].astype(np.float32)
        return found / (np.linalg.norm(found, axis=1, keepdims=True) + 1e-9)


def ndcg(scores: np.ndarray, grades: Sequence[dict[int, float]]) -> np.ndarray:
    """nDCG@10 of each query, in points."""
    top = np.argpartition(-scores, 10, axis=1)[:, :10]
    top = np.take_along_axis(top, np.argsort(-np.take_along_axis(scores, top, 1), axis=1), 1)
    gains = np.array([[max(0.0, g.get(int(row), 0)) for row in rows] for rows, g in zip(top, grades, strict=True)])
    ideal = [sorted((grade for grade in each.values() if grade > 0), reverse=True)[:10] for each in grades]
    return 100 * gains @ DISCOUNTS / np.array([np.dot(each, DISCOUNTS[: len(each)]) for each in ideal])


def scored(
    queries: Sequence[str], documents: Sequence[str], grades: Sequence[dict[int, float]], stores: dict[str, Store]
) -> Scores:
    """All encoders and rankings."""
    bm25 = BM25(queries, Analyzer("english"))
    bm25.add(documents)
    words, found = (bm25.queries @ bm25.texts.T).toarray().astype(np.float32), dict[str, np.ndarray]()
    alone = ndcg(words, grades)
    for name, store in stores.items():
        cosine = store(queries) @ store(documents).T
        found[name] = np.stack([*(ndcg(cosine + weight * words, grades) for weight in (0, *WEIGHTS)), alone])
    return found


def read(folder: Path, groups: Sequence[Sequence[str]]) -> tuple[list[dict[str, str]], list[Any]]:
    """Documents, and for each group of splits its queries and grades."""
    documents = pq.read_table(folder / "corpus.parquet").to_pylist()
    if len(documents) > LARGE:
        chosen = random.Random(7).sample(range(len(documents)), SAMPLE)
        documents = [documents[row] for row in sorted(chosen)]
    place = {document["id"]: row for row, document in enumerate(documents)}
    texts = {each["id"]: each["text"] for each in pq.read_table(folder / "queries.parquet").to_pylist()}
    found = []
    for group in groups:
        grades: dict[str, dict[int, float]] = {}
        for split in group:
            for row in pq.read_table(folder / "qrels" / f"{split}.parquet").to_pylist():
                if row["document"] in place:
                    grades.setdefault(row["query"], {})[place[row["document"]]] = row["grade"]
        grades = {query: each for query, each in grades.items() if max(each.values()) > 0}
        found.append(([texts[query] for query in grades], list(grades.values())))
    return documents, found


def drawn(
    documents: list[dict[str, str]], way: str, seed: int, most: int
) -> tuple[list[str], list[str], list[dict[int, float]]]:
    """An exam's queries, documents and grades."""
    table = {name: [document[name] for document in documents] for name in ("title", "text")}
    kind, _, share = way.rpartition(" ") if way[-1].isdigit() else (way, "", "1")
    corpus = read_corpus(table, carry="title")
    exam = draw_exam(texts_of(corpus, "title"), most, seed=seed, dropped=0 if kind else float(share))
    texts = clean(" ".join([*text.titles[:1], text.body]).strip() or "-" for text in exam.documents)[0]
    queries = list(reworded(exam, kind, float(share), seed)) if kind else [query.text for query in exam.queries]
    return queries, texts, [dict.fromkeys(q.answers, 1.0) for q in exam.queries]


def reworded(exam: Exam, kind: str, share: float, seed: int) -> Iterator[str]:
    """The queries with a share of the shared words replaced; DROPPED of those without a replacement are left out."""
    analyzer, replace = Analyzer("english"), Synonyms() if kind == "synonyms" else Guesses()
    for query in exam.queries:
        shared, words = {*analyzer(exam.documents[query.answers[0]].body)}, query.text.split()
        chance = np.random.default_rng([seed, *text_hashes([query.text])]).random(len(words))
        chosen = [n for n, word in enumerate(words) if shared & {*analyzer(word)} and chance[n] < max(share, DROPPED)]
        found = replace(query.text, [n for n in chosen if chance[n] < share])
        for n in chosen:
            new = found.get(n, words[n])
            if new != words[n] and analyzer(new) and not shared & {*analyzer(new)}:
                words[n] = new
            elif chance[n] < DROPPED:
                words[n] = ""
        left = " ".join(filter(None, words))
        yield left if analyzer(left) else query.text


class Synonyms:
    """Words by WordNet's first sense."""

    def __init__(self) -> None:
        self.change = Synonym(ratio=1.0).start()

    def __call__(self, text: str, chosen: list[int]) -> dict[int, str]:
        """The text of words, by their position; a comparative may have become two words, and then there is none."""
        new = self.change(Sentences([text], np.arange(1)), 0)[0].split()
        return {n: new[n] for n in chosen} if len(new) == len(text.split()) else {}


class Guesses(Refiller):
    """The best other guess of `bundled-raw` for words of one token."""

    def __init__(self) -> None:
        super().__init__("bundled-raw", 0.5, best=True)

    def _hidden(self, ids: np.ndarray, row: int, key: int) -> np.ndarray:
        return np.arange(len(ids)) == row

    def __call__(self, text: str, chosen: list[int]) -> dict[int, str]:
        """The text of words, by their position."""
        ends = [match.end() for match in re.finditer(r"\S+", text)]
        known = self.model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        held: dict[int, list[int]] = {n: [] for n in range(len(ends))}
        for row, ((begin, _), piece) in enumerate(zip(known["offset_mapping"], known["input_ids"], strict=True)):
            if self.vocabulary.kinds[piece] >= 0:
                held[bisect_right(ends, begin)].append(row)
        alone = {n: held[n][0] for n in chosen if len(held[n]) == 1}
        changed = self.change(Sentences([text] * len(alone), np.array([*alone.values()])), 0) if alone else []
        return {n: new.split()[n] for n, new in zip(alone, changed, strict=True)}


def context(documents: list[dict[str, str]], stores: dict[str, Store]) -> dict[str, np.ndarray] | None:
    """The same choice by `context`: a sentence finds the next one; None where texts do not split."""
    corpus = read_corpus({"text": [f"{each['title']}\n\n{each['text']}" for each in documents]}, split_sentences=True)
    try:
        task = ContextTask(corpus, sampled(corpus))
    except DataError:
        return None
    found = {}
    for name, store in stores.items():
        encoder = Scorer(store, name)
        scores = [
            task.score(encoder),
            *(task.score(Hybrid(encoder, weight)) for weight in WEIGHTS),
            task.lexical["bm25"],
        ]
        found[name] = np.array([score.score for score in scores])
    return found


def sampled(corpus: Corpus) -> np.ndarray:
    """Rows of whole documents, in the order of a hash, up to SENTENCES."""
    _, first, member, size = np.unique(corpus.documents, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(text_hashes(corpus.texts(first)), kind="stable")
    return np.flatnonzero(np.isin(member, order[np.cumsum(size[order]) <= SENTENCES]))


def samples_of(rows: np.ndarray) -> np.ndarray:
    """Means over 1,000 resamples of the queries, (rankings, 1000)."""
    count = rows.shape[1]
    return rows @ np.random.default_rng(0).multinomial(count, [1 / count] * count, 1000).T / count


def decisions(scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """The difference of each pair of (encoder, ranking), and whether its paired 95 % interval excludes zero."""
    each = np.concatenate([rows[:-1] for rows in scores.values()] + [next(iter(scores.values()))[-1:]])
    samples, (one, other) = samples_of(each), np.triu_indices(len(each), 1)
    low, high = np.percentile(samples[one] - samples[other], [2.5, 97.5], axis=1)
    return (each[one] - each[other]).mean(1), (low > 0) | (high < 0)


def careful(rows: np.ndarray, own: int) -> int:
    """The best ranking with vectors, if it is ahead of the model's own weight by more than chance; else that one."""
    means, samples = rows[:-1].mean(1), samples_of(rows[:-1])
    ahead = paired_best(means, float(means[own]), samples, samples[own]).low > 0
    return int(means.argmax()) if ahead else own


def against(exam: Scores, judged: Scores, by_context: dict[str, np.ndarray] | None) -> dict[str, Any]:
    """How well an exam chooses: rank correlation, regrets, gains over the cosine, and agreement of what it decides."""
    means, right = ({name: rows.mean(1) for name, rows in each.items()} for each in (exam, judged))
    own = {name: 1 + WEIGHTS.index(OWN[name]) for name in means}
    chosen = {
        "exam": {name: int(each.argmax()) for name, each in means.items()},
        "careful": {name: careful(rows, own[name]) for name, rows in exam.items()},
        "own weight": own,
        "context": {} if by_context is None else {name: int(each.argmax()) for name, each in by_context.items()},
    }
    flat = [np.concatenate(list(each.values())) for each in (means, right)]
    (found, decided), (truth, known) = decisions(exam), decisions(judged)
    agree = np.sign(found) == np.sign(truth)
    return {
        "rank_correlation": float(spearmanr(*flat)[0]),
        "rank_correlation_of_context": by_context
        and float(spearmanr(np.concatenate([*by_context.values()]), flat[1])[0]),
        "chosen": {rule: {name: RANKINGS[row] for name, row in each.items()} for rule, each in chosen.items()},
        "regret": {
            rule: {name: round(float(right[name].max() - right[name][row]), 2) for name, row in each.items()}
            for rule, each in chosen.items()
        },
        "over_cosine": {
            rule: {name: round(float(right[name][row] - right[name][0]), 2) for name, row in each.items()}
            for rule, each in chosen.items()
        },
        "regret_of_all": round(float(flat[1].max() - flat[1][flat[0].argmax()]), 2),
        "decided": int(decided.sum()),
        "agreeing": int((decided & agree).sum()),
        "contradicted": int((decided & known & ~agree).sum()),
        "pairs": len(found),
    }


def run(options: argparse.Namespace) -> None:
    """Score exams, and add them to the output."""
    models = {"bundled": "bundled", "bundled-encoder": "bundled-encoder"}
    models |= dict(each.split("=", 1) for each in options.model)
    stores = {name: Store(name, model, options.vectors) for name, model in models.items() if name in options.encoders}
    results = read_json(options.output)
    for name, groups in SETS.items():
        if name not in options.sets:
            continue
        documents, asked = read(options.data / name, groups)
        whole = [f"{each['title']} {each['text']}".strip() or "-" for each in documents]
        judged = [scored(queries, whole, grades, stores) for queries, grades in asked]
        exams = results.get(name, {}).get("exams", {})
        found: dict[str, Any] = {"documents": len(documents), "judged": {}, "exams": exams}
        for group, scores in zip(groups, judged, strict=True):
            means = {encoder: rows.mean(1).round(2).tolist() for encoder, rows in scores.items()}
            found["judged"]["+".join(group)] = {"n": len(next(iter(scores.values()))[0]), "scores": means}
        by_context = context(documents, stores) if options.context else None
        for way, seed, most in product(options.ways, range(options.seeds), options.queries):
            queries, texts, grades = drawn(documents, way, seed, most)
            exam = scored(queries, texts, grades, stores)
            what = f", seed {seed}" * (seed > 0) + f", {most} queries" * (most != QUERIES)
            exams[f"{way}{what}"] = {
                "n": len(queries),
                "scores": {encoder: rows.mean(1).round(2).tolist() for encoder, rows in exam.items()},
                "against": {"+".join(g): against(exam, j, by_context) for g, j in zip(groups, judged, strict=True)},
            }
        results[name] = found
        write_json(options.output, results)
        print(name, flush=True)


def show(results: dict[str, Any]) -> None:
    """The tables of the log."""
    rules = ("exam", "careful", "own weight", "context")
    print(f"| queries | words left out | rank correlation | {' | '.join(rules)} | decided | agreeing | contradicted |")
    for name, found in results.items():
        for group in found["judged"]:
            for share, exam in found["exams"].items():
                each = exam["against"][group]
                cells = [f"{name} {group}", share, f"{each['rank_correlation']:.2f}"]
                cells += [" ".join(f"{value:.2f}" for value in each["regret"][rule].values()) for rule in rules]
                cells += [f"{each['decided']} of {each['pairs']}", each["agreeing"], each["contradicted"]]
                print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--model", action="append", default=[], help="NAME=DIR")
    parser.add_argument("--encoders", nargs="+", default=list(OWN))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--queries", type=int, nargs="+", default=[QUERIES])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--context", action="store_true", help="choose by context, too")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        run(given)
    show(read_json(given.output))
