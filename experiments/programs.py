"""Programs on frozen encoders: what an exam of the texts admits, and what judged queries say of it.

    python experiments/programs.py experiments/programs.yaml --data DIR --runs CACHE --minilm DIR --output FILE

An exam is drawn from the documents of a judged set. Of each program, the setting that is best on the exam's dev half is
taken, and it is admitted if it is ahead of the plain ranking on the other half. Judged queries tell whether that was
right. Everything here is small and plain: scores of all queries and all documents, in numpy.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import yaml
from harness import Row, fill, parser_of
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from selfsent import read_corpus
from selfsent.data.corpus.sentences import split_sentences
from selfsent.data.vector_files import unit
from selfsent.evaluation.results import Score
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.draw import draw_exam, texts_of
from selfsent.lexical import Analyzer
from selfsent.lexical.bm25 import BM25Stats, saturated
from selfsent.resumable import VectorsOfTexts
from selfsent.scorers.load_scorer import load_scorer
from selfsent.scorers.scorer import SearchScorer

Array = Any
Encode = Callable[[Sequence[str]], Array]
RUNS = Path(".cache/programs")
RIDGE = 0.1
"""Share of the mean eigenvalue that is added to each before whitening, as the plan of an exam does."""


@dataclass(frozen=True)
class Texts:
    """Documents as they are searched: titles, mostly empty, and sentences."""

    titles: Sequence[str]
    sentences: Sequence[Sequence[str]]

    @cached_property
    def whole(self) -> list[str]:
        """Title and sentences as one text."""
        return [
            " ".join([*([title] if title else []), *own])
            for title, own in zip(self.titles, self.sentences, strict=True)
        ]


class Words:
    """Counts of the words of texts and queries, and BM25 of any weights of a query's words.

    Args:
        texts: (n,) to search.
        queries: (q,) to ask.
    """

    def __init__(self, texts: Sequence[str], queries: Sequence[str]) -> None:
        self.analyzer = Analyzer("english")
        counter = CountVectorizer(analyzer=self.analyzer)
        self.counts = counter.fit_transform(texts).tocsr().astype(np.float32)
        self.asked = counter.transform(queries).tocsr().astype(np.float32)
        self.terms = counter.get_feature_names_out().tolist()
        lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        stats = BM25Stats.of(lengths)
        self.idf = np.asarray(stats.idf(np.bincount(self.counts.indices, minlength=len(self.terms))))
        norms = np.repeat(stats.length_norms(lengths), np.diff(self.counts.indptr))
        self.weights = csr_matrix(
            (saturated(self.counts.data, norms), self.counts.indices, self.counts.indptr), self.counts.shape
        )
        self.shares = self.counts.multiply(1 / np.maximum(lengths, 1)[:, None]).tocsr()
        """(n, terms) share of each term in its text."""

    def scores(self, asked: Any, of: Any = None) -> Array:
        """BM25 (q, n) of weights of terms (q, terms), as a share of the maximum of `of`, or their own."""
        weighed = csr_matrix(asked.multiply(self.idf[None, :]))
        whole = weighed if of is None else csr_matrix(of.multiply(self.idf[None, :]))
        total = np.asarray(whole.sum(axis=1)).ravel()
        found = (weighed @ self.weights.T).toarray()
        return found / np.where(total > 0, total, 1)[:, None]


@dataclass(frozen=True)
class Search:
    """A search: an encoder or none, words or none, over the documents of a task."""

    task: RetrievalTask
    texts: Texts
    encode: Encode | None
    weight: float
    words: Words

    @cached_property
    def queries(self) -> Array:
        """(q, d) vectors."""
        return self._vectors(self.task.queries)

    @cached_property
    def documents(self) -> Array:
        """(n, d) vectors."""
        return self._vectors(self.texts.whole)

    def _vectors(self, texts: Sequence[str]) -> Array:
        return unit(self.encode(texts)) if self.encode else np.zeros((len(texts), 1), np.float32)

    def fused(self, dense: Array | None = None, lexical: Array | None = None) -> Array:
        """(q, n) scores, the plain ones where none are given."""
        dense = self.queries @ self.documents.T if dense is None else dense
        if not self.weight:
            return dense
        return dense + self.weight * (self.words.scores(self.words.asked) if lexical is None else lexical)


def first_of(scores: Array, count: int) -> Array:
    """(q, count) the best documents of each query."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


def rocchio(search: Search, texts: int, share: float) -> Array:
    """The query's vector and the mean of the first texts' vectors (Rocchio 1971; Li et al. 2021)."""
    means = search.documents[first_of(search.fused(), texts)].mean(axis=1)
    return search.fused(unit((1 - share) * search.queries + share * unit(means)) @ search.documents.T)


def rm3(search: Search, texts: int, words: int, share: float) -> Array:
    """Words of the first texts, by their share in each and its score (Lavrenko and Croft 2001; RM3)."""
    scores, held = search.fused(), search.words
    rows, columns, values = [], [], []
    for row, found in enumerate(first_of(scores, texts)):
        model = np.asarray(held.shares[found].T @ np.maximum(scores[row, found], 0)).ravel()
        best = np.argsort(-model)[:words]
        rows += [row] * words
        columns += best.tolist()
        values += (model[best] / max(model[best].sum(), 1e-9)).tolist()
    feedback = csr_matrix((values, (rows, columns)), held.asked.shape)
    own = held.asked.multiply(1 / np.maximum(np.asarray(held.asked.sum(axis=1)), 1)).tocsr()
    return search.fused(lexical=held.scores((1 - share) * own + share * feedback))


def sentence(search: Search, share: float) -> Array:
    """The best sentence of a document, beside the vector of all of it."""
    parts = [
        [*([title] if title else []), *own] or [""]
        for title, own in zip(search.texts.titles, search.texts.sentences, strict=True)
    ]
    ends = np.cumsum([0, *map(len, parts)])
    assert search.encode is not None
    held = unit(search.encode([part for own in parts for part in own]))
    best = np.maximum.reduceat(search.queries @ held.T, ends[:-1], axis=1)
    return search.fused((1 - share) * (search.queries @ search.documents.T) + share * best)


def hubs(search: Search, nearest: int, share: float) -> Array:
    """A text near to many others is near to any query: its mean similarity to its nearest is taken off (CSLS)."""
    alike = search.documents @ search.documents.T
    np.fill_diagonal(alike, -1)
    crowd = np.sort(alike, axis=1)[:, -nearest:].mean(axis=1)
    return search.fused(search.queries @ search.documents.T - share * crowd[None, :])


def whitening(search: Search, strength: float) -> Array:
    """Z = (u − μ) U (Λ + ridge)^(−s/2) for queries and documents, fitted on documents."""
    mean = search.documents.mean(axis=0)
    values, directions = np.linalg.eigh(np.cov(search.documents.T, bias=True))
    scale = (np.maximum(values, 0) + RIDGE * values.mean()) ** (-strength / 2)

    def whitened(vectors: Array) -> Array:
        return unit(((vectors - mean) @ directions * scale).astype(np.float32))

    return search.fused(whitened(search.queries) @ whitened(search.documents).T)


def spectrum(search: Search) -> Array:
    """Whitening as strong as the spectrum is uneven: 1 − its effective rank / d (Roy and Vetterli 2007)."""
    values = np.maximum(np.linalg.eigvalsh(np.cov(search.documents.T, bias=True)), 1e-12)
    shares = values / values.sum()
    rank = np.exp(-(shares * np.log(shares)).sum())
    return whitening(search, 1 - rank / len(values))


def near(search: Search, words: int, least: float, share: float, table: Encode) -> Array:
    """Words near the query's by the vectors of a table, at so much of the rarer one's weight."""
    held = search.words
    forms = {
        stem: form for text in search.texts.whole for form in text.lower().split() for stem in held.analyzer(form)[:1]
    }
    vectors = unit(table([forms.get(term, term) for term in held.terms]))
    asked = held.asked.tocoo()
    used = np.unique(asked.col)
    rows, columns, values = [], [], []
    for term, alike in zip(used, vectors[used] @ vectors.T, strict=True):
        alike[term] = -1
        best = [other for other in np.argsort(-alike)[:words] if alike[other] >= least]
        rows += [term] * len(best)
        columns += best
        values += [share * alike[other] * min(1.0, held.idf[term] / held.idf[other]) for other in best]
    added = csr_matrix((values, (rows, columns)), (len(held.terms),) * 2)
    return search.fused(lexical=held.scores(held.asked + held.asked @ added, held.asked))


def fields(search: Search, share: float) -> Array:
    """Title and body of a text, each by itself: so much of the title's score is added."""
    titles = search.texts.titles
    has = np.array([bool(title) for title in titles], np.float32)
    dense = search.queries @ search._vectors([title or "untitled" for title in titles]).T * has
    plain = Words(titles, search.task.queries) if has.any() else None
    lexical = search.weight * plain.scores(plain.asked) if plain and search.weight else 0.0
    return search.fused() + share * ((dense if search.encode else 0) + lexical)


DENSE = {
    "rocchio": rocchio,
    "sentence": sentence,
    "hubs": hubs,
    "whitening": whitening,
    "strengths": whitening,
    "spectrum": spectrum,
}
LEXICAL = {"rm3": rm3, "near": near}
PROGRAMS = {**DENSE, **LEXICAL, "fields": fields}


class Given(SearchScorer):
    """Scores (q, n) that were computed before, as a scorer of their task."""

    def __init__(self, scores: Array) -> None:
        super().__init__(None, "given")
        self.scores = scores

    def __getitem__(self, rows: slice) -> Given:
        return Given(self.scores[rows])

    def __matmul__(self, other: Any) -> Array:
        return self.scores

    @property
    def T(self) -> Given:  # noqa: N802 - as in numpy
        """Itself: `@` needs no right side."""
        return self

    def query_document_vectors(self, queries: Sequence[str], texts: Sequence[str], search: bool = False) -> Any:
        """The scores, twice."""
        return self, self


def score_of(task: RetrievalTask, scores: Array) -> Score:
    """NDCG@10 of scores (q, n)."""
    return task.score(Given(scores))


def judged(folder: Path) -> tuple[dict[str, RetrievalTask], Texts]:
    """The judged tasks of a set by split, and its documents."""
    splits = [split for split in sorted(folder.glob("qrels/*.parquet")) if split.stem != "train"]
    tasks = {split.stem: read_task(folder, folder.name, split.stem) for split in splits}
    table = pq.read_table(folder / "corpus.parquet").to_pydict()
    titles = [" ".join(title.split()) for title in table["title"]]
    texts = Texts(titles, [split_sentences(" ".join(text.split())) for text in table["text"]])
    assert all(len(texts.whole) == len(task.documents) for task in tasks.values())
    again = {name: RetrievalTask(name, task.queries, texts.whole, task.grades) for name, task in tasks.items()}
    return again, texts


def examined(folder: Path, queries: int, seed: int) -> tuple[dict[str, RetrievalTask], Texts]:
    """The halves of an exam of a set's documents, and these."""
    titled = any(pq.read_table(folder / "corpus.parquet", columns=["title"])["title"].to_pylist())
    columns = ("id", "title") if titled else ("id",)
    corpus = read_corpus(
        str(folder / "corpus.parquet"), text_column="text", metadata_columns=columns, split_sentences=False
    )
    exam = draw_exam(texts_of(corpus, "title" if titled else None, "id"), queries, seed=seed)
    texts = Texts([" ".join(text.titles[:1]) for text in exam.documents], [text.sentences for text in exam.documents])
    return dict(zip(("exam dev", "exam test"), exam.halves, strict=True)), texts


@dataclass
class Set:
    """Searches of an exam and of judged queries, of one set."""

    folder: Path
    queries: int
    seed: int

    @cached_property
    def parts(self) -> list[tuple[dict[str, RetrievalTask], Texts]]:
        """The exam, and the judged queries."""
        return [examined(self.folder, self.queries, self.seed), judged(self.folder)]

    @cached_property
    def words(self) -> dict[str, Words]:
        """By part: words of its documents and queries."""
        return {name: Words(texts.whole, task.queries) for tasks, texts in self.parts for name, task in tasks.items()}

    def searches(self, encode: Encode | None, weight: float) -> dict[str, Search]:
        """By part: a search of one ranking."""
        return {
            name: Search(task, texts, encode, weight, self.words[name])
            for tasks, texts in self.parts
            for name, task in tasks.items()
        }


def tried(searches: Mapping[str, Search], program: Callable[..., Array], settings: Sequence[Mapping[str, Any]]) -> Row:
    """A program on one ranking of one set: the setting that dev takes, and its gain on every part.

    Args:
        searches: by part.
        program: its function.
        settings: to choose among.
    """
    plain = {name: score_of(search.task, search.fused()) for name, search in searches.items()}
    scores: dict[str, list[Score]] = {}
    for name, search in searches.items():
        scores[name] = [score_of(search.task, program(search, **each)) for each in settings]
    best = int(np.argmax([score.score for score in scores["exam dev"]]))
    row: Row = {"chosen": dict(settings[best]), "n": {name: score.n for name, score in plain.items()}}
    for name, each in scores.items():
        more = each[best].minus(plain[name])
        row[name] = [plain[name].score, more.difference, more.low, more.high]
        if name != "test":
            row[f"{name}, all"] = [score.score - plain[name].score for score in each]
    return row


def runs_in(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The rows: a set, a ranking, a program."""
    recipe = yaml.safe_load(options.recipe.read_text(encoding="utf-8"))
    data = Path(options.data or os.environ["SELFSENT_DATA"]) / "retrieval"
    cache = folder.parent.parent / "vectors"
    scorers = {"bundled": load_scorer("bundled"), "minilm": load_scorer(str(options.minilm), fast=True)}
    encoders = {name: VectorsOfTexts(cache / f"{name}.sqlite", scorer) for name, scorer in scorers.items()}
    for name, seed in product(recipe["sets"], recipe["seeds"]):
        each = Set(data / name, recipe["queries"], seed)
        for ranking in recipe["rankings"]:
            alone, _, words = ranking.partition("+")
            encoder = encoders.get(alone)
            weight = scorers[alone].lexical_weight * bool(words) if encoder else 1.0
            searches = cache_of(each, encoder, weight)
            for program, settings in recipe["programs"].items():
                untitled = program == "fields" and name in ("counsel", "scitldr")
                if untitled or (program in LEXICAL and not weight) or (program in DENSE and encoder is None):
                    continue
                function = PROGRAMS[program]
                if program == "near":
                    function = partial(near, table=encoders["bundled"])
                yield f"{name} | {ranking} | {program} | seed {seed}", partial(run, searches, function, settings)


def run(searches: Callable[[], dict[str, Search]], program: Any, settings: Sequence[Mapping[str, Any]]) -> Row:
    """A row, whose searches are made when it is due."""
    return tried(searches(), program, settings)


def cache_of(each: Set, encoder: Encode | None, weight: float) -> Callable[[], dict[str, Search]]:
    """The searches of a ranking, made once when a row needs them."""
    made: list[dict[str, Search]] = []

    def searches() -> dict[str, Search]:
        if not made:
            made.append(each.searches(encoder, weight))
        return made[0]

    return searches


def table(rows: Mapping[str, Row]) -> str:
    """The rows by program as Markdown: how often an exam admits it, and what judged queries say of these and of all.

    Admitted is what the exam's dev half has ahead of the plain ranking. Intervals of means are of resampled cases.
    """
    of: dict[str, list[Row]] = {}
    for key, row in rows.items():
        of.setdefault(key.split(" | ")[2], []).append(row)
    head = "| program | cases | gain | admitted | of these won | gain | lost beyond chance |"
    lines = [head, "|---|--:|--:|--:|--:|--:|--:|"]
    for name, each in [*of.items(), ("all", [*rows.values()])]:
        admitted = [row for row in each if row["exam dev"][1] > 0]
        won, lost = sum(row["test"][1] > 0 for row in admitted), sum(row["test"][3] < 0 for row in admitted)
        lines.append(f"| {name} | {len(each)} | {gain(each)} | {len(admitted)} | {won} | {gain(admitted)} | {lost} |")
    return "\n".join(lines)


def gain(rows: Sequence[Row]) -> str:
    """The mean gain of cases on judged tests, with a 95 % interval by resampling cases."""
    if not rows:
        return ""
    gains = np.array([row["test"][1] for row in rows])
    means = gains[np.random.default_rng(0).integers(len(gains), size=(10_000, len(gains)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return f"{gains.mean():+.2f} [{low:+.2f}, {high:+.2f}]"


def main() -> None:
    """Fill the table, or print it."""
    parser = parser_of(__doc__, RUNS)
    parser.add_argument("--minilm", type=Path, required=True, help="directory of all-MiniLM-L6-v2")
    options = parser.parse_args()
    fill(
        options, partial(runs_in, options), lambda row: {n: row[n][1] for n in ("exam dev", "exam test", "test")}, table
    )


if __name__ == "__main__":
    main()
