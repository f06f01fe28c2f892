"""Trials: the rows of a plan on an exam, each as long as it can still win."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.display import counted
from selfsent.errors import DataError, OutputError, SelfsentError, SettingsError
from selfsent.evaluation.results import Score, has_read
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.doubts import doubts
from selfsent.exam.exam import NAME, SPLITS
from selfsent.exam.plan import FOLDER, RESULT, TRAINED, Plan, Planned, Row, Tried
from selfsent.exam.price import Price, encoder_in, price_of, with_scan
from selfsent.files import cache_folder, write_json, write_text
from selfsent.models.fingerprint import files_fingerprint
from selfsent.models.prompts import Prompts
from selfsent.progress import SILENT, Progress
from selfsent.resumable import key_of
from selfsent.scorers.api import address_of, api_model
from selfsent.scorers.lexical import LEXICAL, without_words
from selfsent.scorers.load_scorer import as_reranker, is_directory_or_id, load_scorer
from selfsent.scorers.passages import passages_in
from selfsent.scorers.programs import program_in
from selfsent.scorers.rerank import Reranked, reranking
from selfsent.scorers.scorer import Scorer
from selfsent.stats.resampling import Floats

LOOKS = (0.25, 0.5, 1.0)
"""Shares of the dev queries at which a row may be stopped."""
MIN_QUERIES = 50
"""Queries that a look needs."""
ENOUGH = 200
"""Texts that are not asked for, which a training needs."""
_SLOW = 60.0
"""Seconds for 100,000 texts above which vectors are kept on disk."""
_FORMAT = 1

Train = Callable[[Path, Mapping[str, Any], Path], None]
"""Trains on a file of texts with options, into a directory."""


def try_plan(plan: Plan, folder: Path, train: Train, progress: Progress = SILENT, **bits: Any) -> Planned:
    """Try the rows of a plan on an exam, each as long as it can still win; rows that were tried before are read.

    A row that is dearer than the best so far is stopped where it is behind that on a quarter, half or all of the dev
    queries, by an interval that holds for all of these looks together. The rows that are left are asked the test
    queries, which nobody has looked at before, so their intervals are the usual ones.

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
        if found.takes_part and (leader is None or found.on_dev > leader.on_dev):
            leader = found
    about = f"{counted(len(test.queries), 'query', 'queries')} among {len(test.documents):,} texts"
    scores = [each.on_test for each in tried if each.takes_part]
    odd = doubts(dev.documents, max(scores)) if scores else ()
    done = Planned(tried, plan.worth, plan.cheap, about, odd)
    write_json(folder / FOLDER / RESULT, done.to_json())
    return done


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
        ends = [*(end for share in LOOKS[:-1] if (end := int(share * len(order))) >= MIN_QUERIES), len(order)]
        self.prefixes = [self.dev.part(order[:end]) for end in ends]
        """The dev queries of each look, in a drawn order."""
        self.parts = [*(self.dev.part(order[a:b]) for a, b in pairwise([0, *ends])), self.test]
        """The queries that each look adds to the one before; test at the end."""

    def of(self, row: Row, leader: Tried | None) -> Tried:
        """Try a row."""
        model = row.model.replace(TRAINED, str(self._trained(row))) if row.train is not None else row.model
        encoders = encoders_in(model)
        data = [self.dev._data, self.test._data]
        plain = asdict(replace(row, name="", after=None))
        about = [_FORMAT, plain, [*map(files_fingerprint, encoders)], *map(address_of, apis_in(model)), data]
        path = self.folder / "rows" / f"{key_of([about, dict(self.bits)])}.json"
        known = _read(path)
        blocks = [np.asarray(block) for block in known.get("blocks", [])]
        price = Price(**known["price"]) if "price" in known else None
        fresh = partial(loaded, model, row.candidates, row.prompts, **self.bits)
        scorer: Scorer | None = None
        tried, looks = Tried(row, model), len(self.parts) - 1
        scores = self.scores[row.name] = []
        for number, part in enumerate(self.parts):
            if number == len(blocks):
                if scorer is None:
                    price = price or price_of(fresh, encoders, self.test.queries, part.documents)
                    scorer = kept(fresh(), model, price, row.prompts)
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
            if leader is not None and tried.total > leader.total:
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
    """The encoders of directories and hub ids in the name of a search, without words and passages.

    Examples:
        >>> encoders_in("bundled+words+passages:60"), encoders_in("bm25"), encoders_in("bundled+rerank:sent/minilm")
        (['bundled'], [], ['bundled', 'sent/minilm'])
    """
    return [each for each in _models_in(model) if each not in LEXICAL and is_directory_or_id(each)]


def apis_in(model: str) -> list[str]:
    """The encoders of APIs in the name of a search.

    Examples:
        >>> apis_in("bundled+rerank:api:small"), apis_in("api:small+words"), apis_in("bundled")
        (['api:small'], ['api:small'], [])
    """
    return [each for each in _models_in(model) if api_model(each)]


def _models_in(model: str) -> list[str]:
    if both := reranking(model):
        return [name for each in both for name in _models_in(each)]
    if parts := passages_in(model):
        return _models_in(parts[0])
    if programmed := program_in(model):
        return _models_in(programmed[0])
    if alone := without_words(model):
        return _models_in(alone)
    return [model]


def loaded(model: str, candidates: int | None = None, prompts: Mapping[str, str] | None = None, **bits: Any) -> Scorer:
    """The scorer of a row, with so many reranked candidates, and these prompts in place of the model's own.

    Raises:
        SettingsError: candidates without a reranker, or prompts for what takes none.
    """
    both = reranking(model)
    if candidates is None:
        return load_scorer(model, prompts=None if prompts is None else Prompts(**prompts), **bits)
    if not both:
        raise SettingsError(f"{model} reranks nothing, so `candidates` says nothing: leave it out")
    return Reranked(load_scorer(both[0], **bits), as_reranker(both[1], candidates, **bits))


def kept(scorer: Scorer, model: str, price: Price, prompts: Mapping[str, str] | None = None) -> Scorer:
    """A scorer that keeps the vectors of texts in the cache folder if encoding takes long, or is an API's."""
    encoder = encoder_in(scorer)
    names = encoders_in(model)
    if encoder.has_vectors and (encoder.remote or (len(names) == 1 and price.encoding > _SLOW)):
        key: list[Any] = [encoder.remote] if encoder.remote else [files_fingerprint(names[0]), encoder.pooling]
        key += [] if prompts is None else [dict(prompts)]
        encoder.keep(cache_folder() / "vectors" / f"{key_of([_FORMAT, *key])}.sqlite")
    return scorer
