"""What is killed while it writes leaves an index as it was before, or as it is afterwards."""

import os
import random
import signal
import sqlite3
import time

import pytest

import tiny
from forks import told_by
from selfsent.data.corpus import read_corpus
from selfsent.files import is_half_written
from selfsent.index import Index, write_index
from selfsent.index.files import IndexFiles
from selfsent.index.limits import IndexLimits
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint

TEXTS, LIMITS = tiny.make_sentences(400), IndexLimits(max_unindexed=20)


def changes(draw, ids):
    """What the next step does, and the ids with their texts after it."""
    after = dict(ids)
    upserted = {draw.randrange(60): draw.choice(TEXTS) for _ in range(6)}
    deleted = draw.sample(sorted(after), min(3, len(after) - 5))
    if (kind := draw.choice(["upsert", "upsert", "delete", "compact"])) == "upsert":
        after |= upserted
    elif kind == "delete":
        after = {each: text for each, text in after.items() if each not in deleted}
    return (kind, upserted, deleted), after


def apply(index, encoder, change):
    kind, upserted, deleted = change
    if kind == "upsert":
        index.upsert([{"id": each, "text": text} for each, text in upserted.items()], encoder)
    elif kind == "delete":
        index.delete(deleted)
    else:
        index.compact()


def held(path, encoder):
    """The ids and texts of an index, once every table and every vector has been found to agree."""
    index = Index(path, LIMITS)
    with sqlite3.connect(IndexFiles(path).rows) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT c0, text FROM inputs LEFT JOIN texts USING(doc_id)").fetchall()
        assert db.execute("SELECT COUNT(*) FROM texts").fetchone() == (len({text for _, text in rows}),)
    assert len({each for each, _ in rows}) == len(rows)
    texts = sorted({text for _, text in rows})
    assert len(index) == len(texts)
    for hits, text in zip(index.search(encode(encoder, texts), 1, texts, lexical_weight=0.5), texts, strict=True):
        assert index.texts(hits) == [text]
        assert hits[0].dense_score == pytest.approx(1, abs=1e-2)
        assert hits[0].lexical_score > 0
    return dict(rows)


def forked(work):
    """The id of a process that does some work: SQLite's locks are not inherited, so none is open where it is forked."""
    if child := os.fork():
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("times", [8, pytest.param(60, marks=pytest.mark.full)])
def test_killed_at_any_moment(times, encoder, tmp_path):
    draw, ids = random.Random(0), dict(enumerate(TEXTS[:40]))
    rows = [{"id": each, "text": text} for each, text in ids.items()]
    corpus = read_corpus(rows, metadata_columns="id", cache=tmp_path / "cache")
    how = {"id_column": "id", "min_recall": 0.01, "limits": LIMITS}
    write_index(encoder, corpus, tmp_path / "i", "name", fingerprint(encoder), **how)
    encode(encoder, TEXTS[:2])
    seconds, killed = 0.1, 0
    for _ in range(times):
        change, after = changes(draw, ids)
        started = time.perf_counter()
        child = forked(lambda change=change: apply(Index(tmp_path / "i", LIMITS), encoder, change))
        time.sleep(draw.uniform(0, 1.2) * seconds)
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            killed += 1
        else:
            seconds = 0.5 * seconds + 0.5 * (time.perf_counter() - started)
        found = told_by(lambda: held(tmp_path / "i", encoder))
        assert found in ((ids, after) if os.WIFSIGNALED(status) else (after,))
        ids = found
        if os.WIFSIGNALED(status):
            seconds *= 1.1
    assert killed
    leftovers = [
        path.name for path in (tmp_path / "i").iterdir() if "rows" not in path.name and not is_half_written(path)
    ]
    assert len(leftovers) <= 3  # manifest, checksums, vectors
