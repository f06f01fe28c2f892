"""An index on disk: texts, their vectors and columns, which changes while it is searched."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from os import getpid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import VectorsFile, unit
from selfsent.display import counted
from selfsent.errors import ONE_STRING, DataError, SettingsError
from selfsent.lexical import Analyzer
from selfsent.lexical.scores import check_weight
from selfsent.models.fingerprint import fingerprint, share_space
from selfsent.models.opening import open_encoder
from selfsent.naming import name_of
from selfsent.search import index_writer
from selfsent.search.index_files import READ_WHOLE, ROW, IndexFiles, condition, in_groups, of_newest, stamp_of
from selfsent.search.index_state import Best, State
from selfsent.search.index_writer import Added
from selfsent.search.nearest import Hit, rerank_hits

if TYPE_CHECKING:
    import sqlite3

    from selfsent.data.corpus import Corpus
    from selfsent.evaluation.rerank import Reranker
    from selfsent.models.encoding import Model

    Where = str | Sequence[str] | None


class Index:
    """A directory of texts and their vectors, written by `write_index`. Most of it stays on disk.

    Many threads may search one object, while any process writes. A search sees one state of the index, the newest. A
    process that is forked must open its own, and before that none may be open: SQLite's locks are not inherited.

    Args:
        path: the directory.

    Raises:
        SettingsError: faiss is not installed, and the index has many texts.
        DataError: no index, a damaged one, or one of another version.

    Example:
        >>> index = Index("tickets.index")  # doctest: +SKIP
        >>> query = "printer does not answer"  # doctest: +SKIP
        >>> vectors = model.encode_query([query])  # doctest: +SKIP
        >>> [hits] = index.search(vectors, top=3, texts=[query], where="team=sales")  # doctest: +SKIP
        >>> index.describe(hits)  # doctest: +SKIP
        >>> index.upsert([{"id": "t7", "body": "the printer is dead", "team": "sales"}])  # doctest: +SKIP
        >>> index.delete(["t8"])  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._threads, self._lock = threading.local(), threading.Lock()
        self._open(check=True)

    def _open(self, check: bool = False) -> None:
        """Hold the newest generation and its newest state."""

        def state_of(files: IndexFiles) -> State:
            with files.errors(), closing(files.connect()) as db:
                db.execute("BEGIN")
                if check:
                    files.check(db, READ_WHOLE)
                return State(files, db)

        self._files, self._state = of_newest(self.path, state_of)

    def refresh(self) -> None:
        """Read what was written since, now and not within the next search."""
        with self.snapshot():
            pass

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Whatever this thread asks within the block sees one state of the index, for instance a hit and its text."""
        with self._reading():
            yield

    @contextmanager
    def _reading(self) -> Iterator[tuple[IndexFiles, sqlite3.Connection, State]]:
        """The files, a connection of this thread in a transaction, and the state that it sees."""
        if (held := getattr(self._threads, "held", None)) is not None:
            yield held
            return
        files, db = self._connected()
        with files.errors():
            state = self._state
            db.execute("BEGIN")
            try:
                [version] = db.execute("SELECT version FROM state").fetchone()
                if files is not self._files or version != state.version:
                    state = self._newer(files, db, version)
                self._threads.held = files, db, state
                yield files, db, state
            finally:
                self._threads.held = None
                db.execute("COMMIT")

    def _connected(self) -> tuple[IndexFiles, sqlite3.Connection]:
        """The newest generation, and the connection of this thread to it."""
        with self._lock:
            if stamp_of(self.path) != self._files.stamp:
                self._open()
            files = self._files
        known: tuple[int, IndexFiles, sqlite3.Connection] | None = getattr(self._threads, "known", None)
        if known is not None and known[0] == getpid():  # no connection survives a fork
            if known[1] is files:
                return known[1:]
            known[2].close()
        with files.errors():
            files, db = of_newest(self.path, IndexFiles.connect, files)
        self._threads.known, self._threads.analyzer = (getpid(), files, db), Analyzer(self.language)
        return files, db

    def _newer(self, files: IndexFiles, db: sqlite3.Connection, version: int) -> State:
        """The state of a version; the newest is kept."""
        with self._lock:
            if files is self._files and self._state.version == version:
                return self._state
            state = State(files, db)
            if files is self._files and version > self._state.version:
                self._state = state
            return state

    def __len__(self) -> int:
        with self._reading() as (_, _, state):
            return state.count

    @property
    def rows(self) -> int:
        """The number that the next new row gets."""
        with self._reading() as (_, _, state):
            return int(state.rows)

    @property
    def columns(self) -> dict[str, type]:
        """Columns of `describe` with their types, without `repeats`."""
        return self._files.columns

    @property
    def model(self) -> str:
        """Name of the encoder."""
        return str(self._files.manifest["model"])

    @property
    def query_model(self) -> str:
        """Name of the encoder of queries: that of the texts, or a student of it."""
        return str(self._files.manifest.get("query_model") or self.model)

    @property
    def size(self) -> int:
        """Numbers in a vector."""
        return self._files.size

    @property
    def id_column(self) -> str | None:
        """The column with the ids."""
        return self._files.id_column

    @property
    def word_weight(self) -> float:
        """Weight of words, that of the encoder unless a search says another one."""
        return float(self._files.manifest["word_weight"])

    @property
    def language(self) -> str | None:
        """Language of the stems; None for words as they are."""
        language: str | None = self._files.manifest["language"]
        return language

    def check_model(self, fingerprint: str, name: str, space: str = "") -> None:
        """Reject an encoder whose vectors are not of the space of those in the index.

        Args:
            fingerprint: of the encoder.
            name: of the encoder.
            space: fingerprint of the encoder whose space it learned, if any.

        Raises:
            DataError: it is another one.
        """
        own = self._files.manifest["fingerprint"], self._files.manifest.get("space", "")
        if not share_space((fingerprint, space), own):
            what, hint = self.model, f"give `model` {self.model}, or index the texts again"
            if name == self.model:
                what, hint = "as it was before it changed", "index the texts again"
            other = f"{self.path} holds vectors of another model ({what}) than {name}"
            raise DataError(f"{other}, and their cosines say nothing: {hint}")

    def search(
        self,
        queries: NDArray[np.float32],
        top: int = 10,
        texts: Sequence[str] | None = None,
        word_weight: float | None = None,
        rerank: Any = None,
        candidates: int | None = None,
        where: Where = None,
    ) -> list[list[Hit]]:
        """The texts nearest to each query, best first: by cosine, or by cosine + word_weight · BM25.

        As `selfsent.search` ranks the same texts, but for those that are neither among the 300 nearest, of which the
        lists of an index of many texts miss some, nor among the 300 best by words.

        Args:
            queries: (q, d), of any length but 0.
            top: texts per query.
            texts: of the queries, for words to count.
            word_weight: of the words; None for the encoder's. With `rerank`, as for `selfsent.search`.
            rerank: a stronger model that puts the best of these in order, as for `selfsent.search`. In a service make
                it once, by `as_reranker`.
            candidates: of each query, `top` at least; None for 200.
            where: conditions on carried columns, all of which a text must meet before it is ranked: `team=sales`,
                `team=sales,support`, `team!=sales`, `priority>2`, `created>=2024-01-01`.

        Raises:
            DataError: the index is damaged.
            SettingsError: an invalid weight or condition, vectors of another size, not one text for each vector, or no
                model that can rerank.
        """
        check_weight(0 if word_weight is None else word_weight)
        if isinstance(texts, str):
            raise SettingsError(ONE_STRING)
        if texts is not None and len(texts) != len(queries):
            raise SettingsError(f"{len(queries)} vectors of queries were given, and {len(texts)} texts of them")
        if queries.shape[1] != self.size:
            raise SettingsError(f"vectors of queries have {queries.shape[1]} numbers, those of {self.path} {self.size}")
        vectors = unit(np.ascontiguousarray(queries, np.float32))
        reranker: Reranker | None = None
        if rerank is not None:
            if texts is None:
                raise SettingsError("`rerank` reads the texts of the queries: give `texts`, too")
            from selfsent.evaluation.load_scorer import as_reranker

            reranker = as_reranker(rerank, candidates)
        most = max(top, reranker.candidates) if reranker else top
        weight = self.word_weight if word_weight is None or reranker else word_weight
        weight = 0.0 if texts is None else weight
        words: list[Any] = [None] * len(vectors)
        with self._reading() as (files, db, state):
            if texts is not None and weight:
                words = [state.words(db, self._threads.analyzer(text)) for text in texts]
            best = state.best(vectors, words, weight, most, state.allowed(db, where))
            found = [self._hits(files, db, each, weight, where) for each in best]
            if reranker is None or texts is None:
                return found
            return rerank_hits(reranker, texts, found, self.texts, top, word_weight)

    def _sentence(self, number: int) -> int | None:
        return number & ((1 << ROW) - 1) if "sentence" in self.columns else None

    def _hits(self, files: IndexFiles, db: sqlite3.Connection, best: Best, weight: float, where: Where) -> list[Hit]:
        """The best texts of a query, each by its first input that meets a condition."""
        clause, values = condition(where, files.columns)
        also, cell = f" AND {clause}" if clause else "", files.id_cell or "NULL"
        slots, scores, first = best.slots.tolist(), best.scores / np.float32(1 + weight), dict[int, Any]()
        for group, marks in in_groups(slots):
            query = f"SELECT slot, MIN(number), {cell} FROM inputs WHERE slot IN ({marks}){also} GROUP BY slot"
            first |= {slot: rest for slot, *rest in db.execute(query, [*group, *values])}
        hits = []
        cells = zip(slots, best.cosines.tolist(), best.words.tolist(), scores.tolist(), strict=True)
        for slot, cosine, words, score in cells:
            number, name = first[slot]
            hits.append(Hit(number >> ROW, cosine, words, score, name, self._sentence(number)))
        return hits

    def texts(self, hits: Iterable[Hit | int]) -> list[str]:
        """The texts of hits or rows."""
        return [row["text"] for row in self.describe(hits)]

    def describe(self, hits: Iterable[Hit | int], where: Where = None) -> list[dict[str, Any]]:
        """The columns of hits or rows, with `repeats` before `text`.

        Args:
            hits: from `search`, or numbers of rows.
            where: conditions of the search; further rows with the same text count as `repeats` if they meet them.

        Raises:
            DataError: a row that is not, or no longer, in the index; see `snapshot`.
        """
        rows = ((each.row, each.sentence or 0) if isinstance(each, Hit) else (int(each), 0) for each in hits)
        numbers, found = [(row << ROW) + sentence for row, sentence in rows], dict[int, Any]()
        with self._reading() as (files, db, _):
            clause, values = condition(where, files.columns)
            cells = "".join(f", {cell}" for cell in files.cells.values())
            alike = f"slot = inputs.slot{f' AND {clause}' if clause else ''}"
            about = f"number, text, (SELECT COUNT(*) FROM inputs AS other WHERE other.{alike}){cells}"
            flags = [name for name in files.cells if files.columns[name] is bool]
            for group, marks in in_groups(numbers):
                query = f"SELECT {about} FROM inputs JOIN texts USING(slot) WHERE number IN ({marks})"
                for number, text, count, *rest in db.execute(query, [*values, *group]):
                    own = dict(zip(files.cells, rest, strict=True))
                    own |= {name: bool(own[name]) for name in flags if own[name] is not None}
                    sentence = {"sentence": self._sentence(number)} if "sentence" in files.columns else {}
                    found[number] = {"row": number >> ROW, **sentence, **own, "repeats": count - 1, "text": text}
        if missing := [number for number in numbers if number not in found]:
            raise DataError(f"{self.path} holds no row {missing[0] >> ROW}, or no longer: see `snapshot`")
        return [found[number] for number in numbers]

    def check_corpus(self, corpus: Corpus) -> None:
        """Reject a corpus whose columns or cleaners are not those of the index.

        Raises:
            SettingsError: they differ.
        """
        index_writer.check_alike(self._files, corpus)

    def upsert(
        self,
        corpus: Corpus | Any,
        encoder: Model | str | None = None,
        advance: Callable[[int], None] = lambda count: None,
        file: VectorsFile | None = None,
    ) -> Added:
        """Add rows; with ids, a row takes the place of those with its id, and one without text only removes them.

        A row is there as a whole or not at all, whatever happens. Rows of an index without ids are added again if they
        are given again.

        Args:
            corpus: with the columns and cleaners of the index; or rows that `read_corpus` reads, such as a table or a
                list of mappings, which are then read as the corpus of the index was.
            encoder: of the index, checked by its weights, or its name; loaded by the name in the index if None.
            advance: called with the number of texts done since the last call.
            file: vectors of the corpus from `encode_to_file`; computed if None.

        Raises:
            SettingsError: other columns or cleaners than those of the index.
            DataError: another encoder, or a damaged index or file.
            OutputError: it cannot be written.
        """
        from selfsent.data.corpus import Corpus, read_corpus

        model = open_encoder(encoder or self.model)
        self.check_model(fingerprint(model), str(name_of(encoder or self.model)), model.space)
        if model.embedding_size > self.size:
            model = model.twin()
            model.cut(self.size)
        if isinstance(corpus, Corpus):
            added = index_writer.add(self._files, model, corpus, advance, file)
        else:
            about = self._files.manifest
            how = {"text_column": about["text_column"], "clean": about["clean"], "carry": [*self._files.cells]}
            with tempfile.TemporaryDirectory() as cache:
                rows = read_corpus(corpus, split_sentences="sentence" in self.columns, cache=cache, min_rows=1, **how)
                added = index_writer.add(self._files, model, rows, advance, file)
        self.refresh()
        return added

    def delete(self, ids: Iterable[Any]) -> int:
        """Delete the rows with these ids; returns how many there were. Words and vectors go when it is compacted.

        Raises:
            SettingsError: an index without ids, or one string.
            OutputError: it cannot be written.
        """
        if isinstance(ids, str):
            raise SettingsError(ONE_STRING.replace("texts", "ids"))
        removed = index_writer.delete(self._files, ids)
        self.refresh()
        return removed

    def compact(self) -> None:
        """Write the index anew without what is deleted. Adding and deleting do so by themselves from time to time.

        Raises:
            OutputError: it cannot be written.
        """
        index_writer.compact(self._files)
        self.refresh()

    @property
    def recall(self) -> float:
        """Share of the ten nearest neighbours that a search finds, on a sample, when the lists were made."""
        return float(self._files.manifest["recall"])

    @property
    def compared(self) -> float:
        """Share of the lists that a search compares with a query."""
        return float(min(1.0, self._files.manifest["probed"] / self._files.manifest["cells"]))

    @property
    def summary(self) -> str:
        """Size and recall, in one line."""
        size = f"{counted(len(self), 'vector')} in {self.path}"
        if self.compared == 1:
            return size
        return f"{size}; recall@10 {self.recall:.1%} on a sample, by comparing {self.compared:.1%} of them with a query"
