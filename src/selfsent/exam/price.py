"""Costs of a search: seconds of the processor for texts and queries, megabytes of the index and of memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from statistics import median
from typing import Any

import numpy as np

from selfsent.data.corpus.passages import split_passages
from selfsent.data.corpus.sentences import split_sentences
from selfsent.data.vector_files import inner
from selfsent.lexical import Analyzer, language_of
from selfsent.models.bases import resolve
from selfsent.models.opening import open_table
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.passages import InPassages
from selfsent.scorers.programs import Program
from selfsent.scorers.rerank import Reranked
from selfsent.scorers.scorer import PairScorer, Scorer

TEXTS, QUERIES = 100_000, 10_000
"""Texts and queries that a price is of."""
SAMPLE, ASKED, REPEATS = 128, 16, 3
"""Texts and queries that are timed, and how often, each time with other texts; the median counts."""
_STEADY = 0.5
"""Seconds above which once is enough."""
_POSTING, _HALF = 5, 2
"""Bytes of a posting and of a number of a vector in an index, about."""
_MEGA = 1e6


@dataclass(frozen=True)
class Price:
    """Costs of a search.

    Args:
        encoding: seconds of the processor for 100,000 texts like these.
        query: milliseconds of the processor for one query, among the texts of the exam.
        index: megabytes on disk for 100,000 texts: texts, words and vectors, about.
        memory: megabytes of the model's weights and of the vectors of 100,000 texts.
        needs: `API` or `GPU`, if it was measured with one. Seconds of an API are those waited for it.
    """

    encoding: float
    query: float
    index: float
    memory: float
    needs: str = ""

    @property
    def total(self) -> float:
        """Seconds of the processor for 100,000 texts and 10,000 queries."""
        return self.encoding + self.query / 1000 * QUERIES

    def to_json(self) -> dict[str, Any]:
        """The price as JSON data."""
        return asdict(self)

    @property
    def cells(self) -> list[str]:
        """Cells of a table: seconds, milliseconds, megabytes, megabytes, needs."""
        return [*map(significant, (self.encoding, self.query, self.index, self.memory)), self.needs]


def significant(value: float) -> str:
    """A number with two digits that count, as people write it.

    Examples:
        >>> significant(1234.5), significant(12.34), significant(0.0567), significant(0)
        ('1,200', '12', '0.057', '0')
    """
    if value <= 0:
        return "0"
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def price_of(load: Callable[[], Scorer], models: Sequence[str], queries: Sequence[str], texts: Sequence[str]) -> Price:
    """Measure the price of a search on a sample of texts and queries.

    Args:
        load: makes the scorer, without vectors in its memory.
        models: directories or names of the encoders in it, whose weights count as memory.
        queries: some queries.
        texts: all texts that are searched.
    """
    rows = np.random.default_rng(0).permutation(len(texts))
    samples = [[texts[row] for row in rows[n * SAMPLE : (n + 1) * SAMPLE]] for n in range(REPEATS)]
    samples = [each for each in samples if len(each) == SAMPLE] or [[texts[row] for row in rows[:SAMPLE]]]
    sample, asked = samples[0], list(queries[: ASKED + 3])
    searched = load()
    reranker = searched.reranker if isinstance(searched, Reranked) else None

    def first() -> Scorer:
        loaded = load()
        return loaded.first if isinstance(loaded, Reranked) else loaded

    ones, more = list[float](), list[float]()
    for each in samples:
        scorer = first()
        ones.append(_seconds(scorer, asked[:1], each))
        known = _seconds(scorer, asked[1:2], each)  # one query, and texts whose vectors are in memory
        more.append(_seconds(scorer, asked, each) - known)
        if ones[-1] > _STEADY:
            break
    one, query = median(ones), max(0.0, median(more)) / max(1, len(asked) - 3)
    if reranker is not None:
        query += reranker.candidates * _seconds_a_text(reranker.scorer, asked[0], sample)
    inner_scorer = searched.first if isinstance(searched, Reranked) else searched
    size, parts = _size_of(inner_scorer), sum(_parts_of(inner_scorer, text) for text in sample)
    scale = TEXTS / len(sample)
    vectors = parts * size * _HALF * scale / _MEGA
    index = (sum(len(text.encode()) for text in sample) + _POSTING * _postings(sample)) * scale / _MEGA
    weights = sum(_weights_of(model) for model in models)
    needs = "API" if _remote(searched) else _device_of(models)
    return Price(one * scale, query * 1000, index + vectors, weights + vectors, needs)


def with_scan(price: Price, scorer: Scorer, queries: Sequence[str], texts: Sequence[str]) -> Price:
    """A price with the time to compare a query with all texts, which the scorer has encoded.

    Args:
        price: of `price_of`.
        scorer: that has searched these texts for these queries.
        queries: some.
        texts: all.
    """
    scorer = scorer.first if isinstance(scorer, Reranked) else scorer
    asked, held = scorer.query_document_vectors(queries, texts, search=True)
    runs = list[float]()
    for _ in range(REPEATS):
        start = time.process_time()
        inner(asked[: 2 * ASKED], held)
        runs.append((time.process_time() - start) / max(1, min(2 * ASKED, len(queries))))
    taken = median(runs)
    return replace(price, query=price.query + taken * 1000)


def _seconds(scorer: Scorer, queries: Sequence[str], texts: Sequence[str]) -> float:
    """Seconds for a search, once the scorer is warm."""
    scorer.query_document_vectors(["what comes first"], ["a text to begin with", "another one"], search=True)
    clock = clock_of(scorer)
    start = clock()
    scorer.query_document_vectors(queries, texts, search=True)
    return clock() - start


def _seconds_a_text(scorer: Scorer, query: str, texts: Sequence[str]) -> float:
    """Seconds that a reranker needs for one text that it has not seen."""
    clock = clock_of(scorer)
    if not isinstance(scorer, PairScorer):
        # The reranker of a search keeps vectors: its encoder is asked without them.
        scorer(["warm"])
        start = clock()
        scorer(texts)
        return (clock() - start) / len(texts)
    scorer.similarity(["warm"], ["warmer"])
    start = clock()
    scorer.similarity([query] * len(texts), texts)
    return (clock() - start) / len(texts)


def clock_of(scorer: Scorer) -> Callable[[], float]:
    """The time of the processor; for an API, which others compute, the time that passes."""
    return time.perf_counter if encoder_in(scorer).remote else time.process_time


def _remote(scorer: Scorer) -> bool:
    """Whether an API takes part in a search."""
    parts = [scorer.first, scorer.reranker.scorer] if isinstance(scorer, Reranked) else [scorer]
    return any(encoder_in(each).remote for each in parts)


def _device_of(models: Sequence[str]) -> str:
    """`GPU`, if transformers among these models compute on one."""
    if all(open_table(resolve(each)) is not None for each in models):
        return ""
    from selfsent.models.precision import inference_device

    return "" if inference_device().type == "cpu" else "GPU"


def encoder_in(scorer: Scorer) -> Scorer:
    """The encoder of a search, without words, passages and programs."""
    while isinstance(scorer, Hybrid | InPassages | Program):
        scorer = scorer.scorer
    return scorer


def _parts_of(scorer: Scorer, text: str) -> int:
    """Vectors that a search holds of a text."""
    if isinstance(scorer, InPassages):
        return len(split_passages(text, scorer.words) or [text])
    if isinstance(scorer, Program) and scorer.kind == "sentences":
        return 1 + len(split_sentences(text) or [text])
    return 1


def _size_of(scorer: Scorer) -> int:
    """Numbers in a vector of a search; 0 without vectors."""
    encoder = encoder_in(scorer)
    return int(encoder(["a text"]).shape[1]) if encoder.has_vectors else 0


def _postings(texts: Sequence[str]) -> int:
    analyzer = Analyzer(language_of(texts))
    return len([*chain.from_iterable(set(analyzer(text)) for text in texts)])


def _weights_of(model: str) -> float:
    """Megabytes of the weights of a model in a directory."""
    return sum(path.stat().st_size for path in resolve(model).rglob("*.safetensors")) / _MEGA


def as_json(price: Price | None) -> dict[str, Any]:
    """A price as JSON data; empty without one."""
    return {} if price is None else {"price": price.to_json()}
