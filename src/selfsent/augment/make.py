"""Augmentation of a whole corpus in chunks, resumable after an interruption."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.augment.augmenter import Augmenter, Change, Sentences
from selfsent.augment.difference import Difference
from selfsent.data.corpus import Corpus
from selfsent.data.corpus.clean import clean
from selfsent.data.random import make_key
from selfsent.errors import MakerError, OutputError, SelfsentError, SettingsError
from selfsent.files import atomic_file, is_half_written, read_json, sweep_half_written, write_json
from selfsent.integrity import warn_damaged
from selfsent.locks import lock_file

ORIGINAL = "original"
"""The entry of `maker1` and `maker2` for the sentence itself."""
_VERSION = 2
"""Version of augmenters, chunks and cleaning; raise it when one of them changes."""
_ENOUGH = 20
"""Sentences in a first chunk from which on at least one must change."""
_FEW = 0.1
"""Share of changed sentences below which a notice is shown."""
_PLAN, _LOCK, _STATISTICS = "plan.json", "lock", b"statistics"

Pairing = Sequence[Augmenter]
"""One augmenter: the sentence itself and its view. Two: a view of each."""


@dataclass(frozen=True)
class Views:
    """Views that were made.

    Args:
        path: the parquet file.
        rows: pairs of views in it.
        made: views made by this call; the others were there from an earlier one.
        differences: by the name of each maker, how its views differ from the sentences.
    """

    path: Path
    rows: int
    made: int
    differences: dict[str, Difference]

    def sample(self, count: int = 5) -> list[dict[str, str]]:
        """Rows spread over the file, with all columns."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            groups = sorted({file.num_row_groups * number // count for number in range(count)})
            found: list[dict[str, str]] = []
            for table in map(file.read_row_group, groups):
                spread = np.linspace(0, len(table) - 1, min(-(-count // len(groups)), len(table)))
                found += table.take(np.unique(spread.astype(int))).to_pylist()
        return found[:count]


def augment(
    corpus: Corpus,
    pairings: Sequence[Pairing],
    output: str | Path,
    *,
    seed: int = 0,
    overwrite: bool = False,
    advance: Callable[[int], None] = lambda count: None,
    notice: Callable[[str], None] = lambda line: None,
) -> Views:
    """Make two views of every sentence of a corpus, into a parquet file.

    Its columns: `text`, `view1`, `view2`, `maker1`, `maker2`, and `document`, `label`, `score` where the corpus has
    them. What was made is kept in `OUTPUT.parts` until all is done: after an interruption the same call goes on from
    there, and the result is the same as without it.

    Args:
        corpus: the sentences.
        pairings: each gives one row a sentence; of one maker (the sentence itself and a view) or of two (two views).
        output: the file, which ends in `.parquet`.
        seed: of everything random.
        overwrite: throw away the file, and what was kept of another call.
        advance: called with the number of pairs made since the last call, those kept from before included.
        notice: called with lines the user should see.

    Raises:
        SettingsError: the makers do not go together, or something they need is not there.
        MakerError: a maker went wrong, or changes nothing.
        OutputError: the file is there already, or cannot be written.
    """
    path = Path(output)
    check_pairings(pairings)
    check_output(path, overwrite)
    parts = path.with_name(path.name + ".parts")
    with lock_file(parts / _LOCK, f"another selfsent is making {path}: wait for it, or name another output"):
        sweep_half_written(path.parent, path.name)  # the lock says that nobody is writing it
        plan = _plan(corpus, pairings, seed)
        _begin(parts, plan, overwrite)
        files: list[Path] = []
        made, differences = 0, defaultdict[str, Difference](Difference)
        try:
            for number, pairing in enumerate(pairings):
                for file, changed, new in _make(corpus, pairing, parts, number, seed, advance):
                    files.append(file)
                    made += new
                    for name, difference in changed.items():
                        differences[name] += difference
        except SelfsentError:
            if not files:  # nothing is worth keeping
                shutil.rmtree(parts, ignore_errors=True)
            raise
        rows = _join(files, path, plan)
        shutil.rmtree(parts, ignore_errors=True)
    for maker in dict.fromkeys(maker for pairing in pairings for maker in pairing):
        changed_share = 1 - differences[maker.spec].unchanged / differences[maker.spec].views
        if changed_share < _FEW:
            notice(f"{maker.spec} changed only {changed_share:.1%} of the texts: {maker.unchanged}")
    return Views(path, rows, made, dict(differences))


def check_pairings(pairings: Sequence[Pairing]) -> None:
    """Reject augmenters that cannot give two different views.

    Raises:
        SettingsError: three makers for two views, or one maker twice that says the same each time.
    """
    for pairing in pairings:
        if not 1 <= len(pairing) <= 2:
            raise SettingsError(
                f"two views come from one or two makers, not {len(pairing)}: repeat --with for more rows"
            )
        if len(pairing) == 2 and pairing[0] == pairing[1] and not pairing[0].random:
            raise SettingsError(f"{pairing[0].spec} makes the same view twice: name another maker, or another --pivot")


def check_output(path: Path, overwrite: bool) -> None:
    """Reject an output that cannot be written.

    Raises:
        OutputError: it has another ending, or is there already.
    """
    if path.suffix != ".parquet":
        raise OutputError(f"--output {path} must end in .parquet")
    if path.is_dir():
        raise OutputError(f"{path} is a directory: name a file")
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already: give --overwrite, or another --output")


def plan_key(corpus: Corpus, pairings: Sequence[Pairing], seed: int) -> str:
    """Cache key of views."""
    plan = json.dumps(_plan(corpus, pairings, seed), sort_keys=True)
    return hashlib.blake2b(plan.encode(), digest_size=8).hexdigest()


def _plan(corpus: Corpus, pairings: Sequence[Pairing], seed: int) -> dict[str, Any]:
    """Everything views depend on, as JSON; the seed only if something is random."""
    plan = {
        "version": _VERSION,
        "corpus": corpus.fingerprint,
        "makers": json.loads(json.dumps([[maker.identity() for maker in pairing] for pairing in pairings])),
    }
    return plan | ({"seed": seed} if any(maker.random for pairing in pairings for maker in pairing) else {})


def _begin(parts: Path, plan: dict[str, Any], overwrite: bool) -> None:
    """Resume from the parts of the same plan, or start over."""
    kept = [each for each in parts.glob("*") if each.name != _LOCK and not is_half_written(each)]
    if kept and not overwrite and read_json(parts / _PLAN) != plan:
        raise OutputError(f"{parts} keeps what other makers, another seed or corpus made: give --overwrite")
    for each in kept if overwrite else ():
        each.unlink(missing_ok=True)
    write_json(parts / _PLAN, plan)


def _make(
    corpus: Corpus, pairing: Pairing, parts: Path, number: int, seed: int, advance: Callable[[int], None]
) -> Iterator[tuple[Path, dict[str, Difference], int]]:
    """For each chunk: its part, how its views differ, and how many were made by this call."""
    size = min(maker.chunk for maker in pairing)
    with ExitStack() as opened:
        changes: list[Change] = []
        for start in range(0, len(corpus), size):
            rows = np.arange(start, min(start + size, len(corpus)))
            file = parts / f"{number}-{start:012d}.parquet"
            differences, new = _statistics(file), 0
            if differences is None:
                new = len(rows) * len(pairing)
                # Opened lazily: a finished plan loads nothing.
                changes = changes or [opened.enter_context(maker.start()) for maker in pairing]
                columns, differences = _chunk(corpus, rows, pairing, changes, make_key(seed, number))
                _write(file, columns, differences)
            advance(len(rows))
            yield file, differences, new


def _chunk(
    corpus: Corpus, rows: np.ndarray, pairing: Pairing, changes: Sequence[Change], key: int
) -> tuple[dict[str, list[Any]], dict[str, Difference]]:
    """The columns of some rows, and how the views differ.

    Raises:
        MakerError: these are the first rows, and a maker changes none of them.
    """
    texts = corpus.texts(rows)
    others = corpus.texts(rows, corpus.text_columns[1]) if len(corpus.text_columns) > 1 else None
    views, names = [texts] * (2 - len(pairing)), [ORIGINAL] * (2 - len(pairing))
    differences = defaultdict[str, Difference](Difference)
    for maker, change in zip(pairing, changes, strict=True):
        made, _ = clean(change(Sentences(texts, rows, others), make_key(key, len(views))))
        views.append([view or text for view, text in zip(made, texts, strict=True)])
        names.append(maker.spec)
        differences[maker.spec] += Difference.of(texts, views[-1])
    for maker in pairing if rows[0] == 0 else ():
        count = differences[maker.spec].views
        if differences[maker.spec].unchanged == count >= _ENOUGH:
            raise MakerError(f"{maker.spec} changed none of the first {count} texts: {maker.unchanged}")
    columns: dict[str, list[Any]] = {"text": texts, "view1": views[0], "view2": views[1]}
    columns |= {f"maker{place}": [name] * len(texts) for place, name in enumerate(names, start=1)}
    if corpus.documents is not None:
        columns["document"] = corpus.documents[rows].tolist()
    if corpus.labels is not None:
        labels, known = corpus.labels[rows].tolist(), corpus.label_names
        columns["label"] = [known[label] for label in labels] if known else labels
    if corpus.scores is not None:
        columns["score"] = corpus.scores[rows].tolist()
    return columns, differences


def _write(file: Path, columns: dict[str, list[Any]], differences: dict[str, Difference]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    described = json.dumps({name: asdict(difference) for name, difference in differences.items()})
    table = pa.table(columns).replace_schema_metadata({_STATISTICS: described})
    with atomic_file(file) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def _statistics(file: Path) -> dict[str, Difference] | None:
    """How the views of a part differ; None if it is not there, or damaged."""
    import pyarrow.parquet as pq

    if not file.is_file():
        return None
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            opened.read()
            described = json.loads(opened.schema_arrow.metadata[_STATISTICS])
        return {name: Difference(**sums) for name, sums in described.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        warn_damaged(file)
        return None


def _join(files: Sequence[Path], path: Path, plan: dict[str, Any]) -> int:
    """Write all parts into one file; the number of rows."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(files[0]).with_metadata({b"selfsent": json.dumps(plan)})
    rows = 0
    with atomic_file(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for file in files:
            table = pq.read_table(file)
            writer.write_table(table.replace_schema_metadata(schema.metadata))
            rows += len(table)
    return rows
