"""A plan: configurations of a search from cheap to dear, tried on an exam as long as they can still win."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from selfsent.display import counted, span, table_of
from selfsent.errors import DataError, OutputError, SelfsentError, SettingsError
from selfsent.evaluation.results import Score, has_read
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.draw import NAME, SPLITS
from selfsent.exam.price import Price, as_json, price_of, significant, with_scan
from selfsent.files import cache_folder, write_json, write_text
from selfsent.models.fingerprint import files_fingerprint
from selfsent.progress import SILENT, Progress
from selfsent.resumable import key_of
from selfsent.scorers.lexical import LEXICAL, Hybrid, without_words
from selfsent.scorers.load_scorer import as_reranker, is_directory_or_id, load_scorer
from selfsent.scorers.passages import InPassages, passages_in
from selfsent.scorers.rerank import Reranked, reranking
from selfsent.scorers.scorer import Scorer
from selfsent.stats.resampling import Difference, Floats

TRAINED = "TRAINED"
"""Stands for the model that a row trains."""
FOLDER, RESULT = "plan", "plan.json"
"""Folder in an exam, and its file with the result."""
LOOKS = (0.25, 0.5, 1.0)
"""Shares of the dev queries at which a row may be stopped."""
LEAST = 50
"""Queries that a look needs."""
ENOUGH = 200
"""Texts that are not asked for, which a training needs."""
_SLOW = 60.0
"""Seconds for 100,000 texts above which vectors are kept on disk."""
_FORMAT = 1

Train = Callable[[Path, Mapping[str, Any], Path], None]
"""Trains on a file of texts with options, into a directory."""


@dataclass(frozen=True)
class Row:
    """A configuration.

    Args:
        name: as people would say it.
        model: as for `load_scorer`.
        train: options of a training, whose model is `TRAINED` in `model`.
        candidates: texts of a query that are reranked.
        after: name of a row: this one is left out if that one was stopped.
    """

    name: str
    model: str
    train: Mapping[str, Any] | None = None
    candidates: int | None = None
    after: str | None = None


@dataclass(frozen=True)
class Plan:
    """Rows, from cheap to dear.

    Args:
        rows: to try.
        worth: points that ten times the price must bring.
        cheap: seconds of the processor for 100,000 texts and 10,000 queries up to which the price does not matter.

    Raises:
        SettingsError: no rows, two of one name, or one after a row that does not come before it.
    """

    rows: Sequence[Row]
    worth: float = 1.0
    cheap: float = 600.0

    def __post_init__(self) -> None:
        seen = set[str]()
        for row in self.rows:
            if row.name in seen:
                raise SettingsError(f"two rows of the plan are called {row.name}: give each a name of its own")
            if row.after is not None and row.after not in seen:
                raise SettingsError(f"the row {row.name} comes after {row.after}, which is no row before it")
            if (TRAINED in row.model) != (row.train is not None):
                raise SettingsError(f"the row {row.name}: {TRAINED} in `model` goes with `train`, and only with it")
            seen.add(row.name)
        if not self.rows:
            raise SettingsError("the plan has no rows: give some, or take --plan standard")


@dataclass(frozen=True)
class Tried:
    """A row with its result.

    Args:
        row: the configuration.
        model: its model, with the trained one in it.
        dev: its score on the dev queries, or on those that were asked until it was stopped; None if left out.
        test: its score on the test queries; None if stopped or left out.
        price: its costs.
        line: why it was stopped or left out; empty otherwise.
        read: whether the model has read answers, so that it takes no part.
    """

    row: Row
    model: str = ""
    dev: Score | None = None
    test: Score | None = None
    price: Price | None = None
    line: str = ""
    read: bool = False

    @property
    def takes_part(self) -> bool:
        """Whether it was asked everything, and has not read the answers."""
        return self.test is not None and not self.read

    def to_json(self) -> dict[str, Any]:
        """The row as JSON data."""
        plain: dict[str, Any] = {"name": self.row.name, "model": self.model, **as_json(self.price)}
        plain |= {half: score.to_json() for half, score in (("dev", self.dev), ("test", self.test)) if score}
        plain |= {"candidates": self.row.candidates} if self.row.candidates else {}
        return plain | ({"line": self.line} if self.line else {})


@dataclass(frozen=True)
class Planned:
    """The result of a plan.

    Args:
        tried: the rows in their order.
        worth: see `Plan`.
        cheap: see `Plan`.
        about: name of the exam's documents and queries, in words.
    """

    tried: Sequence[Tried]
    worth: float = 1.0
    cheap: float = 600.0
    about: str = ""

    @cached_property
    def best(self) -> Tried | None:
        """The row with the best score on dev of those that take part."""
        found = [each for each in self.tried if each.takes_part]
        return max(found, key=lambda each: each.dev.score if each.dev else 0) if found else None

    @cached_property
    def taken(self) -> Tried | None:
        """The row to take: the best of the cheap ones, unless a dearer one is ahead by what its price must bring.

        That is on dev, and by the lower end of an interval that holds for all dearer rows together.
        """
        found = sorted((each for each in self.tried if each.takes_part), key=_total)
        if not found:
            return None
        cheap = [each for each in found if _total(each) <= self.cheap] or found[:1]
        taken, dearer = max(cheap, key=_dev), found[len(cheap) :]
        for each in dearer:
            asked = self.worth * log10(_total(each) / max(_total(taken), self.cheap))
            if each.dev and taken.dev and each.dev.minus(taken.dev, len(dearer)).low > asked:
                taken = each
        return taken

    @cached_property
    def efficient(self) -> list[str]:
        """Names of the rows that no cheaper one equals, on test."""
        found, top = list[str](), float("-inf")
        for each in sorted((each for each in self.tried if each.takes_part), key=_total):
            assert each.test is not None
            if each.test.score > top:
                top = each.test.score
                found.append(each.row.name)
        return found

    @property
    def sentence(self) -> str:
        """The row to take, and price and gain of another one."""
        taken, best = self.taken, self.best
        if taken is None or best is None or taken.test is None or best.test is None:
            return "No verdict: no row was asked everything without having read the answers."
        if best is not taken:
            more = best.test.minus(taken.test)
            price = f"at {times(_total(best) / max(_total(taken), 1e-9))} the price"
            if more.low > 0:
                return f"Take {taken.row.name}; {best.row.name} finds {points(more)} more {price}."
            found = f"{more.difference:+.1f} points, {more.low:+.1f} to {more.high:+.1f}"
            return f"Take {taken.row.name}; {best.row.name} is not ahead of it beyond chance ({found}) {price}."
        cheaper = [each for each in self.tried if each.row.name in self.efficient and _total(each) < _total(best)]
        if not cheaper:
            return f"Take {taken.row.name}: nothing that is cheaper or dearer finds more."
        other = max(cheaper, key=_total)
        assert other.test is not None
        more, price = best.test.minus(other.test), times(_total(best) / max(_total(other), 1e-9))
        if more.low > 0:
            return f"Take {taken.row.name}; it finds {points(more)} more than {other.row.name}, at {price} the price."
        found = f"{more.difference:+.1f} points, {more.low:+.1f} to {more.high:+.1f}"
        beyond = f"it is not ahead of {other.row.name} beyond chance ({found})"
        return f"Take {taken.row.name}; {beyond}, at {price} the price."

    def table(self) -> Table:
        """The rows in the order of the plan."""
        rows = [
            [each.row.name, *_scored(each), *(each.price.cells if each.price else [""] * 4), self.mark(each)]
            for each in self.tried
        ]
        heads = ("search", "score", "95 % interval", "s encoding", "ms query", "MB index", "MB memory", "")
        return table_of(heads, rows, left=(0, 7), styles={self.taken.row.name: "bold"} if self.taken else {})

    def short_table(self) -> Table:
        """The table without megabytes, and with the rest below, for a terminal."""
        rows = [[each.row.name, *_scored(each), *(each.price.cells[:2] if each.price else [])] for each in self.tried]
        heads = ("search", "score", "95 % interval", "encoding", "query")
        below = ["encoding: seconds of the processor for 100,000 texts; query: milliseconds", *self.lines]
        title = f"{NAME}: nDCG@10 on {self.about}"
        styles = {self.taken.row.name: "bold"} if self.taken else {}
        return table_of(heads, rows, title=title, caption="\n".join(below), styles=styles)

    def mark(self, tried: Tried) -> str:
        """A row's place in a word or two; `line` of a row says why it was stopped or left out."""
        if tried is self.taken:
            return "take this"
        if tried.line:
            return "apart" if tried.read else "left out" if tried.dev is None else "stopped"
        return "efficient" if tried.row.name in self.efficient else ""

    @property
    def lines(self) -> list[str]:
        """Why rows were stopped or left out, or take no part."""
        return [f"{each.row.name}: {each.line}" for each in self.tried if each.line]

    def to_json(self) -> dict[str, Any]:
        """The sentence, the choice and the rows as JSON data."""
        taken = {} if self.taken is None else {"take": self.taken.row.name}
        rows = [each.to_json() for each in self.tried]
        return {"sentence": self.sentence, **taken, "efficient": self.efficient, "rows": rows, "worth": self.worth}


def _total(tried: Tried) -> float:
    return tried.price.total if tried.price else 0.0


def _scored(tried: Tried) -> list[str]:
    score = tried.test or tried.dev
    return [f"{score.score:.2f}", span(score.low, score.high)] if score else ["", ""]


def points(more: Difference) -> str:
    """A gain in words: `3.1 points (1.4 to 4.9)`."""
    return f"{more.difference:.1f} points ({more.low:.1f} to {more.high:.1f})"


def times(ratio: float) -> str:
    """A ratio of prices in words.

    Example:
        >>> times(61.2), times(1.04), times(3.31)
        ('61 times', 'about', '3.3 times')
    """
    return "about" if ratio < 1.15 else f"{significant(ratio)} times"


def try_plan(plan: Plan, folder: Path, train: Train, progress: Progress = SILENT, **bits: Any) -> Planned:
    """Try the rows of a plan on an exam, each as long as it can still win; rows that were tried before are read.

    A row that is dearer than the best so far is stopped where it is behind that on a quarter, half or all of the dev
    queries, by an interval that holds for all of these looks together. What is left is asked the test queries, which
    nobody has looked at before, so their intervals are the usual ones.

    Args:
        plan: rows from cheap to dear.
        folder: an exam; results and trained models are kept in `plan/`.
        train: trains a model.
        progress: receives the name of each row.
        **bits: `fast` and `int8`, as for `load_scorer`.

    Raises:
        DataError: no exam.
        OutputError: `plan/` cannot be written. Other faults leave out their row.
    """
    dev, test = (read_task(folder, NAME, split) for split in SPLITS)
    trial = _Trial(folder / FOLDER, dev, test, train, bits)
    tried, leader = list[Tried](), None
    for row in plan.rows:
        progress.notice(row.name)
        before = next((each for each in tried if each.row.name == row.after), None)
        if before is not None and (before.test is None or before.read):
            tried.append(Tried(row, line=f"left out, as {row.after} was"))
            continue
        try:
            found = trial.of(row, leader)
        except OutputError:
            raise
        except SelfsentError as error:
            tried.append(Tried(row, line=f"left out: {error}"))
            continue
        tried.append(found)
        if found.takes_part and (leader is None or _dev(found) > _dev(leader)):
            leader = found
    about = f"{counted(len(test.queries), 'query', 'queries')} among {len(test.documents):,} texts"
    done = Planned(tried, plan.worth, plan.cheap, about)
    write_json(folder / FOLDER / RESULT, done.to_json())
    return done


def _dev(tried: Tried) -> float:
    assert tried.dev is not None
    return tried.dev.score


@dataclass
class _Trial:
    """Rows on one exam."""

    folder: Path
    dev: RetrievalTask
    test: RetrievalTask
    train: Train
    bits: Mapping[str, Any]
    scores: dict[str, list[Score]] = field(default_factory=dict)
    """By row: its scores at each look."""

    def __post_init__(self) -> None:
        order = np.random.default_rng(0).permutation(len(self.dev.queries)).tolist()
        ends = [*(end for share in LOOKS[:-1] if (end := int(share * len(order))) >= LEAST), len(order)]
        self.prefixes = [self.dev.part(order[:end]) for end in ends]
        """The dev queries of each look, in a drawn order."""
        self.parts = [*(self.dev.part(order[a:b]) for a, b in pairwise([0, *ends])), self.test]
        """The queries that each look adds to the one before; test at the end."""

    def of(self, row: Row, leader: Tried | None) -> Tried:
        """Try a row."""
        model = row.model.replace(TRAINED, str(self._trained(row))) if row.train is not None else row.model
        encoders = encoders_in(model)
        data = [self.dev._data, self.test._data]
        about = [_FORMAT, asdict(replace(row, name="", after=None)), [*map(files_fingerprint, encoders)], data]
        path = self.folder / "rows" / f"{key_of([about, dict(self.bits)])}.json"
        known = _read(path)
        blocks = [np.asarray(block) for block in known.get("blocks", [])]
        price = Price(**known["price"]) if "price" in known else None
        fresh = partial(loaded, model, row.candidates, **self.bits)
        scorer: Scorer | None = None
        tried, looks = Tried(row, model), len(self.parts) - 1
        scores = self.scores[row.name] = []
        for number, part in enumerate(self.parts):
            if number == len(blocks):
                if scorer is None:
                    price = price or price_of(fresh, encoders, self.test.queries, part.documents)
                    scorer = kept(fresh(), model, price)
                blocks.append(part.measured(scorer))
                if not number:
                    assert price is not None
                    price = with_scan(price, scorer, part.queries, part.documents)
                    answers = {*self.dev.answers, *self.test.answers}
                    read = self.dev.read_by(scorer.texts_read) | self.test.read_by(scorer.texts_read)
                    known |= {"how": scorer.measure, "pooling": scorer.pooling}
                    known |= {"price": price.to_json(), "read": bool(has_read(len(read), len(answers)))}
                write_text(path, json.dumps(known | {"blocks": [block.tolist() for block in blocks]}))
            how = known["how"], known["pooling"]
            tried = replace(tried, price=price, read=known["read"])
            if number == looks:
                return replace(tried, test=self.test.score_of(blocks[-1], *how), line=_read_line(tried))
            score = self.prefixes[number].score_of(_joined(blocks[: number + 1]), *how)
            scores.append(score)
            tried = replace(tried, dev=score)
            if leader is not None and _total(tried) > _total(leader):
                less = score.minus(self.scores[leader.row.name][number], looks)
                if less.high < 0:
                    behind = f"{-less.difference:.2f} points behind {leader.row.name} ({-less.high:.2f} at least)"
                    return replace(tried, line=f"stopped after {counted(score.n, 'query', 'queries')}: {behind}")
        raise AssertionError("the last part is test")

    def _trained(self, row: Row) -> Path:
        """The model that a row trains, on the texts that the exam does not ask for.

        Raises:
            DataError: there are too few.
        """
        assert row.train is not None
        asked = {*self.dev.answers, *self.test.answers}
        texts = [text for number, text in enumerate(self.test.documents) if number not in asked]
        if len(texts) < ENOUGH:
            few = counted(len(texts), "text")
            raise DataError(f"{few} are not asked for, and a training needs {ENOUGH}: draw fewer queries")
        output = self.folder / "trained" / key_of([_FORMAT, dict(row.train), texts])[:16]
        if not (output / "model").is_dir():
            lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
            source = output.with_suffix(".jsonl")
            write_text(source, lines)
            self.train(source, row.train, output)
        return output / "model"


def _read_line(tried: Tried) -> str:
    return "has read the answers: no part in the verdict" if tried.read else ""


def _joined(blocks: Sequence[Floats]) -> Floats:
    return np.concatenate(blocks)


def _read(path: Path) -> dict[str, Any]:
    """The record of a row; nothing if the file is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and {"how", "pooling", "price", "read", "blocks"} <= found.keys() else {}


def encoders_in(model: str) -> list[str]:
    """The encoders in the name of a search, without words and passages; those of directories and hub ids.

    Example:
        >>> encoders_in("bundled+words+passages:60"), encoders_in("bm25"), encoders_in("bundled+rerank:sent/minilm")
        (['bundled'], [], ['bundled', 'sent/minilm'])
    """
    if both := reranking(model):
        return [name for each in both for name in encoders_in(each)]
    if parts := passages_in(model):
        return encoders_in(parts[0])
    if alone := without_words(model):
        return encoders_in(alone)
    return [model] if model not in LEXICAL and is_directory_or_id(model) else []


def loaded(model: str, candidates: int | None = None, **bits: Any) -> Scorer:
    """The scorer of a row, with so many reranked candidates.

    Raises:
        SettingsError: candidates without a reranker.
    """
    both = reranking(model)
    if candidates is None:
        return load_scorer(model, **bits)
    if not both:
        raise SettingsError(f"{model} reranks nothing, so `candidates` says nothing: leave it out")
    return Reranked(load_scorer(both[0], **bits), as_reranker(both[1], candidates, **bits))


def kept(scorer: Scorer, model: str, price: Price) -> Scorer:
    """A scorer that keeps the vectors of texts in the cache folder if encoding takes long."""
    encoder = scorer
    while isinstance(encoder, Hybrid | InPassages):
        encoder = encoder.scorer
    names = encoders_in(model)
    if len(names) == 1 and encoder.has_vectors and price.encoding > _SLOW:
        key = key_of([_FORMAT, files_fingerprint(names[0]), encoder.pooling])
        encoder.keep(cache_folder() / "vectors" / f"{key}.sqlite")
    return scorer
