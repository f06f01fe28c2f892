"""An index on disk: texts, their vectors and columns, searchable while it is changed."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import VectorsFile, unit
from selfsent.display import counted
from selfsent.errors import ONE_STRING, DataError, SettingsError, guess
from selfsent.index import compaction, lookup, writer
from selfsent.index.calibration import Calibration, check_answer_rate, read_calibrations
from selfsent.index.conditions import Where
from selfsent.index.files import IndexFiles
from selfsent.index.limits import LIMITS, IndexLimits
from selfsent.index.reader import Reader
from selfsent.index.scan import Row, row_keys, scan_rows
from selfsent.index.writer import Added
from selfsent.lexical.hybrid import check_weight
from selfsent.models.fingerprint import fingerprint, share_space
from selfsent.models.opening import open_encoder
from selfsent.naming import name_of
from selfsent.progress import SILENT, Progress
from selfsent.renamed import callbacks_as_progress, renamed_arguments, warn_renamed
from selfsent.search.exact import Hit, rerank_hits

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.index.query_map import QueryMap
    from selfsent.models.encoding import Model
    from selfsent.scorers.rerank import Reranker

_PASSAGES, _MOST_PASSAGES = 10, 1 << 16
"""Candidates for each hit where a text has several passages, of which one is a hit; ten times as many where they are of
too few texts, until there are so many."""


class Index:
    """A directory of texts and their vectors, written by `write_index`; most of it stays on disk.

    Many threads may search one object while any process writes. A search sees one snapshot of the index, the newest. A
    forked process must open its own, and none may be open before the fork: SQLite's locks are not inherited.

    Args:
        path: the directory.
        limits: when it compacts itself, and how many candidates a query has.

    Raises:
        SettingsError: faiss is not installed, and the index has many texts.
        DataError: no index, a damaged one, or one of another version.

    Examples:
        >>> index = Index("tickets.index")  # doctest: +SKIP
        >>> query = "printer does not answer"  # doctest: +SKIP
        >>> vectors = model.encode_query([query])  # doctest: +SKIP
        >>> [hits] = index.search(vectors, top=3, texts=[query], where="team=sales")  # doctest: +SKIP
        >>> index.describe(hits)  # doctest: +SKIP
        >>> index.upsert([{"id": "t7", "body": "the printer is dead", "team": "sales"}])  # doctest: +SKIP
        >>> index.delete(["t8"])  # doctest: +SKIP
    """

    def __init__(self, path: str | Path, limits: IndexLimits = LIMITS) -> None:
        self.path = Path(path)
        self._reader = Reader(self.path, limits)
        self._values = dict[tuple[Any, ...], list[Any]]()
        """Values of columns, of the newest version alone."""

    @property
    def _files(self) -> IndexFiles:
        """The files of the newest segment version."""
        return self._reader.files

    def refresh(self) -> None:
        """Read the newest snapshot now, not within the next search."""
        with self.snapshot():
            pass

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Give all calls of this thread within the block the same snapshot, for instance for a hit and its text."""
        with self._reader.reading():
            yield

    def __len__(self) -> int:
        with self._reader.reading() as now:
            return now.snapshot.count

    @property
    def rows(self) -> int:
        """The number of the next new row."""
        with self._reader.reading() as now:
            return int(now.snapshot.rows)

    @property
    def columns(self) -> dict[str, type]:
        """Columns of `describe` with their types, without `repeats`."""
        return self._files.columns

    def values(self, column: str, maximum: int = 30) -> list[Any]:
        """The values of a metadata column, in order, without empty ones; none where there are more than `maximum`.

        Raises:
            SettingsError: there is no such column.
        """
        with self._reader.reading() as (files, db, snapshot, _):
            if column not in files.sql_columns:
                raise SettingsError(f"{self.path} has no column {column!r}; {guess(column, tuple(files.sql_columns))}")
            key = column, maximum, files.segment_version, snapshot.version
            if key not in self._values:  # reads all rows
                self._values = {old: kept for old, kept in self._values.items() if old[2:] == key[2:]}
                self._values[key] = lookup.distinct_values(files, db, column, maximum)
            return self._values[key]

    def has_id(self, name: str) -> bool:
        """Whether a row has this id, given as text; False without ids."""
        with self._reader.reading() as now:
            return lookup.has_id(now.files, now.db, name)

    def meant(self, where: Where) -> list[str]:
        """Conditions that may have been meant by those that no row meets: values alike, in other letters, say.

        Examples:
            >>> index.meant("team=Sales")  # doctest: +SKIP
            ['team=sales']
        """
        found = list[str]()
        for each in [where] if isinstance(where, str) else where or ():
            name, sign, value = (part.strip() for part in each.partition("="))
            if sign and name in self._files.sql_columns and self._files.columns[name] is str:
                known = {value.casefold(): value for value in self.values(name, 10_000)}
                likely = difflib.get_close_matches(value.casefold(), known, n=1)
                if likely and known[likely[0]] != value:
                    found.append(f"{name}={known[likely[0]]}")
        return found

    @property
    def has_old_words(self) -> bool:
        """Whether its texts were stemmed by other rules than queries are now, so that searches by words may miss some.

        The next addition, or `compact`, stems them again.
        """
        with self._reader.reading() as now:
            return not now.files.was_analyzed_by(now.analyzer)

    @property
    def model(self) -> str:
        """Name of the encoder."""
        return str(self._files.manifest["model"])

    @property
    def query_model(self) -> str:
        """Name of the encoder of queries: of the texts, too, or a student of that, or one whose vectors are mapped."""
        if (query_map := self.query_map) is not None:
            return query_map.about.model
        return str(self._files.manifest.get("query_model") or self.model)

    @property
    def query_map(self) -> QueryMap | None:
        """The map of queries of another encoder, if one is recorded: `search` takes vectors that went through it."""
        with self._reader.reading() as now:
            return now.snapshot.query_map

    def set_query_map(self, query_map: QueryMap | None) -> None:
        """Record a map of queries of another encoder, from `selfsent adapt --from OLD --to NEW`; None takes it out.

        Raises:
            DataError: it leads to vectors of another encoder than the index holds.
            OutputError: it cannot be written.

        Examples:
            >>> index.set_query_map(QueryMap.load("new.safetensors"))  # doctest: +SKIP
            >>> index.search(index.query_map(new.encode_query([query])), texts=[query])  # doctest: +SKIP
        """
        writer.set_query_map(self._files, query_map)
        self.refresh()

    @property
    def size(self) -> int:
        """Dimension of the vectors."""
        return self._files.size

    @property
    def id_column(self) -> str | None:
        """The column with the ids."""
        return self._files.id_column

    @property
    def lexical_weight(self) -> float:
        """Default weight of BM25, set by the encoder."""
        return float(self._files.manifest["lexical_weight"])

    @property
    def word_weight(self) -> float:
        """Deprecated name of `lexical_weight`."""
        warn_renamed("Index.word_weight", "Index.lexical_weight")
        return self.lexical_weight

    @property
    def language(self) -> str | None:
        """Language of the stemmer; None for words as they are."""
        language: str | None = self._files.manifest["language"]
        return language

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of `read_corpus` for rows of this index."""
        about = self._files.manifest
        how = {
            "text_column": about["text_column"],
            "clean": about["clean"],
            "metadata_columns": [*self._files.sql_columns],
        }
        passages = {} if about.get("passages") is None else {"passages": int(about["passages"])}
        return {**how, **passages, "split_sentences": self.part == "sentence"}

    @property
    def part(self) -> str | None:
        """The unit of a row: `sentence` or `passage`; None for whole texts."""
        return self._files.part

    def check_model(self, fingerprint: str, name: str, space: str = "") -> None:
        """Reject an encoder of another vector space than the index.

        Args:
            fingerprint: of the encoder.
            name: of the encoder.
            space: fingerprint of the encoder whose space it learned, if any.

        Raises:
            DataError: the spaces differ.
        """
        own = self._files.manifest["fingerprint"], self._files.manifest.get("space", "")
        if not share_space((fingerprint, space), own):
            what, hint = self.model, f"give `model` {self.model}, or index the texts again"
            if name == self.model:
                what, hint = "as it was before it changed", "index the texts again"
            other = f"{self.path} holds vectors of another model ({what}) than {name}"
            raise DataError(f"{other}, and their cosines say nothing: {hint}")

    @renamed_arguments(word_weight="lexical_weight")
    def search(
        self,
        queries: NDArray[np.float32],
        top: int = 10,
        texts: Sequence[str] | None = None,
        lexical_weight: float | None = None,
        rerank: Any = None,
        candidates: int | None = None,
        where: Where = None,
        answer_rate: float | None = None,
    ) -> list[list[Hit]]:
        """The texts nearest to each query, best first: by cosine, or by cosine + lexical_weight · BM25.

        The ranking is the one of `selfsent.search`, except for texts that are neither among the 300 nearest by the
        cosine (the IVF of a large index misses some of them) nor among the 300 best by BM25.

        Args:
            queries: (q, d) vectors of any nonzero length.
            top: texts per query.
            texts: (q,) the queries, for BM25.
            lexical_weight: of BM25; None for the encoder's. With `rerank`, as for `selfsent.search`.
            rerank: a stronger model that orders the best of these, as for `selfsent.search`. In a service make it
                once, by `as_reranker`.
            candidates: of each query for `rerank`, at least `top`; None for 200.
            where: conditions on metadata columns that a text must meet before it is ranked, all of them: `team=sales`,
                `team=sales,support`, `team!=sales`, `priority>2`, `created>=2024-01-01`.
            answer_rate: leave out hits below a cut-off which this share of queries that have an answer reach; an empty
                list says that there is nothing here. `selfsent.calibrate` measures it once, also with `rerank`.

        Raises:
            DataError: the index is damaged, or has too few texts for the answer rate.
            SettingsError: no calibration, an invalid weight or condition, vectors of another size, not one text for
                each vector, or no model that can rerank.
        """
        check_weight(0 if lexical_weight is None else lexical_weight)
        if isinstance(texts, str):
            raise SettingsError(ONE_STRING)
        if texts is not None and len(texts) != len(queries):
            raise SettingsError(f"{len(queries)} vectors of queries were given, and {len(texts)} texts of them")
        if queries.shape[1] != self.size:
            hint = "" if self.query_map is None else ": give those that `query_map` makes"
            problem = f"vectors of queries have {queries.shape[1]} numbers, those of {self.path} {self.size}"
            raise SettingsError(problem + hint)
        vectors = unit(np.ascontiguousarray(queries, np.float32))
        reranker: Reranker | None = None
        if answer_rate is not None:
            check_answer_rate(answer_rate)
        if rerank is not None:
            if texts is None:
                raise SettingsError("`rerank` reads the texts of the queries: give `texts`, too")
            from selfsent.scorers.load_scorer import as_reranker

            reranker = as_reranker(rerank, candidates)
        wanted = max(top, reranker.candidates) if reranker else top
        drawn = wanted * _PASSAGES if self.part == "passage" else wanted
        weight = self.lexical_weight if lexical_weight is None or reranker else float(lexical_weight)
        weight = 0.0 if texts is None else weight
        bm25: list[Any] = [None] * len(vectors)
        with self._reader.reading() as (files, db, snapshot, analyzer):
            if texts is not None and weight:
                bm25 = [snapshot.bm25(db, analyzer(text)) for text in texts]
            allowed, enough = snapshot.allowed(db, where), min(top, snapshot.rows)
            while True:
                found_by = snapshot.candidates(vectors, bm25, weight, drawn, allowed)
                found = lookup.best_hits(files, db, found_by, weight, wanted, where)
                both = zip(found, found_by, strict=True)
                lacking = any(len(hits) < enough and len(each.doc_ids) >= drawn for hits, each in both)
                if self.part != "passage" or drawn >= _MOST_PASSAGES or not lacking:
                    break
                drawn *= _PASSAGES
            if reranker is not None and texts is not None:
                found = rerank_hits(reranker, texts, found, self.texts, top, lexical_weight)
                weight = reranker.lexical_weight if lexical_weight is None else float(lexical_weight)
            if answer_rate is None:
                return found
            cutoff = self.calibration(weight, reranker).cutoff(answer_rate)
            return [[hit for hit in hits if hit.score >= cutoff] for hits in found]

    def calibration(self, lexical_weight: float | None = None, rerank: Reranker | None = None) -> Calibration:
        """The basis of `answer_rate`: scores measured by `selfsent.calibrate`.

        Args:
            lexical_weight: of the search; None for the index's own, or the reranker's.
            rerank: orders the hits, if any.

        Raises:
            SettingsError: none for this search, or the index has changed by more than a quarter since.
            DataError: the file is damaged.
        """
        own, by = self.lexical_weight, ("", 0)
        if rerank:
            own, by = rerank.lexical_weight, (rerank.fingerprint or rerank.scorer.name, rerank.candidates)
        of = (own if lexical_weight is None else float(lexical_weight)), *by
        self.refuse_map("answer rates are measured without a map")
        with self._reader.reading() as now:
            found = [each for each in read_calibrations(self.path) if each.of == of]
            if not found or not found[0].is_current(now.snapshot.count, now.snapshot.rows):
                why = "has changed by more than a quarter since its calibration" if found else "has no calibration"
                advice = "measure it by selfsent.calibrate, or search once with selfsent search --answer-rate"
                ordered = f" and {of[2]:,} candidates of {rerank.scorer.name}" if rerank else ""
                what = f"a weight of words of {of[0]:g}{ordered}"
                raise SettingsError(f"{self.path} {why} for {what}: {advice}")
        return found[0]

    def refuse_map(self, what: str) -> None:
        """Reject an index whose queries are mapped.

        Raises:
            SettingsError: they are.
        """
        if self.query_map is not None:
            advice = f"leave out `answer_rate`, or take the map out with selfsent index map {self.path} --remove"
            raise SettingsError(f"{what}: {advice}")

    def sample(self, most: int) -> tuple[list[str], NDArray[np.float32]]:
        """Texts (n,) of the index and their vectors (n, d), evenly spread over it; all if there are no more."""
        with self._reader.reading() as (_, db, snapshot, _):
            alive = np.flatnonzero(snapshot.alive)
            doc_ids = alive[np.arange(min(most, len(alive))) * len(alive) // max(1, min(most, len(alive)))]
            return lookup.texts_of(db, doc_ids.tolist()), snapshot.take(doc_ids)

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
        with self._reader.reading() as now:
            return lookup.describe_rows(now.files, now.db, hits, where)

    @property
    def mean_length(self) -> float:
        """Mean number of terms in a text."""
        with self._reader.reading() as now:
            return now.snapshot.mean_length

    def query_weights(self, query: str) -> dict[int, float]:
        """The words of a query as a sparse vector, for databases that hold the rows of `scan`.

        Its inner product with `Row.terms` is the `lexical_score` of a hit, and

            vector · Row.vector + lexical_weight · (this · Row.terms)

        is the sum that `search` ranks by.

        Returns:
            The weight of each term by its number, from 0 to 2^29 - 1; the weights add up to 1.

        Examples:
            >>> index.query_weights("printer does not answer")  # doctest: +SKIP
            {17624522: 0.41, 390822148: 0.59}
        """
        with self._reader.reading() as now:
            return now.snapshot.query_weights(now.db, now.analyzer(query))

    def keys(self) -> NDArray[np.int64]:
        """The keys of all rows (n,), in the order of `scan`."""
        with self._reader.reading() as now:
            return row_keys(now.files, now.db)

    def scan(self, mean_length: float | None = None, together: int = 1000) -> Iterator[list[Row]]:
        """All rows, in order, with vectors and sparse vectors of BM25, in batches.

        Args:
            mean_length: of the texts in terms, for BM25; None for the one of the index.
            together: rows of a batch.
        """
        with self._reader.reading() as now:
            length = now.snapshot.mean_length if mean_length is None else mean_length
            yield from scan_rows(now, length, together)

    def check_corpus(self, corpus: Corpus) -> None:
        """Reject a corpus whose columns or cleaners are not those of the index.

        Raises:
            SettingsError: they differ.
        """
        writer.check_alike(self._files, corpus)

    @callbacks_as_progress
    def upsert(
        self,
        corpus: Corpus | Any,
        encoder: Model | str | None = None,
        progress: Progress = SILENT,
        file: VectorsFile | None = None,
    ) -> Added:
        """Add rows; with ids, a row replaces the older ones with its id, and a row without text only removes them.

        The addition is atomic. Without ids, rows that are given twice are added twice.

        Args:
            corpus: with the columns and cleaners of the index; or rows for `read_corpus`, such as a table or a list of
                mappings, which are read with the options of the index.
            encoder: the encoder of the index, checked by its weights, or its name; None to load it by the name in the
                index.
            progress: receives the number of texts done.
            file: vectors of the corpus from `encode_to_file`; computed if None.

        Raises:
            SettingsError: other columns or cleaners than the index has.
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
            added = writer.add(self._files, model, corpus, progress, file)
        else:
            with tempfile.TemporaryDirectory() as cache:
                rows = read_corpus(corpus, cache=cache, min_rows=1, **self.reading)
                added = writer.add(self._files, model, rows, progress, file)
        self.refresh()
        return added

    def delete(self, ids: Iterable[Any]) -> int:
        """Delete the rows with these ids; returns their number. Postings and vectors are removed by a compaction.

        Raises:
            SettingsError: an index without ids, or one string.
            OutputError: it cannot be written.
        """
        if isinstance(ids, str):
            raise SettingsError(ONE_STRING.replace("texts", "ids"))
        removed = writer.delete(self._files, ids)
        self.refresh()
        return removed

    def compact(self) -> None:
        """Rewrite the index without deleted texts. `upsert` and `delete` do it automatically from time to time.

        Raises:
            OutputError: it cannot be written.
        """
        compaction.compact(self._files)
        self.refresh()

    @property
    def recall(self) -> float:
        """Recall of the ten nearest neighbours, measured on a sample when the IVF was built."""
        return float(self._files.manifest["recall"])

    @property
    def compared(self) -> float:
        """Share of the vectors that a search compares with a query, nprobe / nlist."""
        return float(min(1.0, self._files.manifest["nprobe"] / self._files.manifest["nlist"]))

    @property
    def summary(self) -> str:
        """Size and recall, in one line."""
        size = f"{counted(len(self), 'vector')} in {self.path}"
        if self.compared == 1:
            return size
        return f"{size}; recall@10 {self.recall:.1%} on a sample, by comparing {self.compared:.1%} of them with a query"
