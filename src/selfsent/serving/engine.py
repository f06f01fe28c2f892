"""The blocking half of the service: batches of requests become vectors, hits and answers."""

from __future__ import annotations

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.data.vector_files import unit
from selfsent.errors import SettingsError
from selfsent.index import Index
from selfsent.index.calibration import nothing_here
from selfsent.lexical import Analyzer
from selfsent.models.encoding import encode, token_ids
from selfsent.models.table import Table
from selfsent.search.exact import Hit
from selfsent.serving.batches import CHARACTERS, TOGETHER
from selfsent.serving.requests import EmbeddingsRequest, SearchRequest

if TYPE_CHECKING:
    from selfsent.index.query_map import QueryMap
    from selfsent.models.encoding import Model

Piece = SearchRequest | EmbeddingsRequest


def size_of(piece: Piece) -> int:
    """Characters in a piece of work."""
    return len(piece.query) if isinstance(piece, SearchRequest) else sum(map(len, piece.input))


def pieces_of(request: EmbeddingsRequest) -> Iterator[EmbeddingsRequest]:
    """A request in pieces, between which others get their turn."""
    start = characters = 0
    for end, text in enumerate(request.input):
        characters += len(text)
        if end > start and (end - start == TOGETHER or characters > CHARACTERS):
            yield replace(request, input=request.input[start:end], start=start)
            start, characters = end, len(text)
    yield replace(request, input=request.input[start:], start=start)


class Engine:
    """An index and its encoder, for a few threads.

    Args:
        index: to search.
        encoder: of queries.
        answer_rate: of searches that give none; None to show all hits.
        query_map: of its vectors to those of the index, if they are of another encoder. `/v1/embeddings` gives the
            encoder's own vectors.
    """

    def __init__(
        self,
        index: Index,
        encoder: Model,
        answer_rate: float | None = None,
        query_map: QueryMap | None = None,
    ) -> None:
        self._answer_rate = answer_rate
        # A thread that encodes may not end the other's dropout.
        self.index, self._encoder = index, encoder if isinstance(encoder, Table) else encoder.eval()
        self._map = query_map
        self._encoding = threading.Lock()  # tokenizers of transformers are for one thread

    @property
    def model(self) -> str:
        """The name of the encoder, without the folders above a directory."""
        name = self.index.model if self._map is None else self._map.about.model
        path = Path(name)
        return "/".join(path.parts[-2:]) if path.is_absolute() else name

    @property
    def about(self) -> dict[str, Any]:
        """Description of the index, in a few words."""
        columns = {name: kind.__name__ for name, kind in self.index.columns.items() if name != "text"}
        texts, words = len(self.index), [name for name, kind in columns.items() if kind in ("str", "bool")]
        values = {name: found for name in words if 1 < len(found := self.index.values(name)) < texts}
        return {"model": self.model, "texts": texts, "columns": columns, "values": values}

    def with_rate(self, request: SearchRequest) -> SearchRequest:
        """A request with the answer rate of the service, if it gives none and words weigh as in the index."""
        own = request.lexical_weight in (None, self.index.lexical_weight)
        return replace(request, answer_rate=self._answer_rate) if own and request.answer_rate is None else request

    def _rate(self, request: SearchRequest) -> dict[str, Any]:
        """The basis of a request's answer rate; a service that has one measures it again when it is time."""
        if request.answer_rate is None:
            return {}
        try:
            made = self.index.calibration(request.lexical_weight)
        except SettingsError:
            # Not for requests with another weight: it takes seconds.
            if self._answer_rate is None or request.lexical_weight not in (None, self.index.lexical_weight):
                raise
            from selfsent.exam.calibrate import calibrate  # which reads texts, and so needs more packages

            made = calibrate(self.index, self._encoder)
        return made.about(request.answer_rate)

    def work(self, pieces: Sequence[Piece]) -> list[Any]:
        """For each piece its answer, or the exception that it met: other pieces of a batch do not suffer from it."""
        groups: defaultdict[Any, list[int]] = defaultdict(list)
        for number, piece in enumerate(pieces):
            groups[_kind_of(piece)].append(number)
        found: list[Any] = [None] * len(pieces)
        for (way, *_), numbers in groups.items():
            try:
                answers: Sequence[Any] = getattr(self, way)([pieces[number] for number in numbers])
            except Exception as error:
                answers = [error] * len(numbers)
            for number, answer in zip(numbers, answers, strict=True):
                found[number] = answer
        return found

    def _search(self, requests: Sequence[SearchRequest]) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
        """The hits, and what is said of the answer rate, of requests that differ in their queries alone."""
        one, texts = requests[0], [request.query for request in requests]
        with self._encoding:
            vectors = encode(self._encoder, texts, side="query")
            about = self._rate(one)
        vectors = vectors if self._map is None else self._map(vectors)
        with self.index.snapshot():
            found = self.index.search(
                vectors, one.top, texts, one.lexical_weight, where=one.where, answer_rate=one.answer_rate
            )
            rows = iter(self.index.describe(chain.from_iterable(found), one.where))
            told = [self._told(request, hits, rows) for request, hits in zip(requests, found, strict=True)]
        return [(hits, _answer(about, hits)) for hits in told]

    def _told(
        self, request: SearchRequest, hits: Sequence[Hit], rows: Iterator[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """The hits of a request as its answer has them, with their columns, which are the next of `rows`."""
        told = []
        for hit in hits:
            scores = {"score": hit.score, "cosine": hit.dense_score, "words": hit.lexical_score}
            row: dict[str, Any] = {name: round(score, 6) for name, score in scores.items()} | next(rows)
            row["text"] = row["text"][: request.length]
            told.append(row)
        if request.mark:
            analyzer = Analyzer(self.index.language)
            terms = set(analyzer(request.query))
            for row in told:
                row["parts"] = analyzer.split_at(row.pop("text"), terms)
        return told

    def _embed(self, requests: Sequence[EmbeddingsRequest]) -> list[tuple[list[str], int]]:
        """For each request the entries of its answer as JSON, and the number of tokens."""
        one, width = requests[0], self._encoder.embedding_size
        if one.dimensions is not None and one.dimensions > width:
            raise SettingsError(f"dimensions is {one.dimensions}; the vectors of this model have {width}")
        texts = [text for request in requests for text in request.input]
        with self._encoding:
            vectors = unit(unit(encode(self._encoder, texts, side=one.side))[:, : one.dimensions])
            counts = [len(ids) for ids in token_ids(self._encoder, texts)]
        told, start = [], 0
        for request in requests:
            part, entries = slice(start, start + len(request.input)), []
            for at, vector in enumerate(vectors[part], request.start):
                entries.append(json.dumps({"object": "embedding", "index": at, "embedding": _spelled(vector, one)}))
            told.append((entries, sum(counts[part])))
            start += len(request.input)
        return told


def _answer(about: dict[str, Any], hits: Sequence[Any]) -> dict[str, Any]:
    """The part of an answer on its rate, and whether there is a hit; nothing without a rate."""
    if not about:
        return {}
    message = {} if hits else {"message": nothing_here(about["answer_rate"], about["measured_on"])}
    return {"answered": bool(hits), **about, **message}


def _spelled(vector: Any, request: EmbeddingsRequest) -> Any:
    if request.encoding_format == "float":
        return vector.tolist()
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def _kind_of(piece: Piece) -> tuple[Any, ...]:
    """Key of pieces that are computed at once: the method, and the settings that it reads of the first of them."""
    if isinstance(piece, SearchRequest):
        return "_search", piece.top, piece.where, piece.lexical_weight, piece.answer_rate
    return "_embed", piece.dimensions, piece.side, piece.encoding_format
