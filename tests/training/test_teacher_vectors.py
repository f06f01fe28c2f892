"""Vectors of a frozen teacher, cached with a corpus."""

import multiprocessing
import shutil

import numpy as np
import pytest

import tiny
from selfsent import train
from selfsent.data.corpus import read_corpus
from selfsent.errors import Damaged, SettingsError
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.training import teacher_vectors
from selfsent.training.teacher_vectors import cached_vectors

SENTENCES = tiny.make_sentences(90, seed=4)
ALL = np.arange(len(SENTENCES))


@pytest.fixture
def corpus(tmp_path):
    return read_corpus(SENTENCES, cache=tmp_path)


@pytest.fixture
def base(base_of):
    return base_of("bert", initializer_range=0.5)


@pytest.fixture
def encoded(monkeypatch):
    """How many sentences were encoded, each time."""
    counts = []

    def counted(model, texts):
        counts.append(len(texts))
        return encode(model, texts)

    monkeypatch.setattr(teacher_vectors, "encode", counted)
    return counts


def cached(corpus, base, rows=ALL, length=512, precision="float32", advance=lambda count: None):
    """Vectors that are made ten at once."""
    how = {"advance": advance, "chunk_size": 10}
    return cached_vectors(corpus, "text", rows, load_encoder(base), str(base), length, precision, **how)


def test_vectors_are_those_of_the_encoder_and_made_once(corpus, base, encoded):
    done, few = [], np.array([40, 3, 77])
    before = cached(corpus, base, few)[few].copy()
    assert encoded == [3]
    found = cached(corpus, base, ALL[::-1], advance=done.append)
    assert found.dtype == np.float16
    assert found == pytest.approx(encode(load_encoder(base), SENTENCES), rel=1e-3, abs=1e-4)
    assert np.array_equal(found[few], before)
    assert (done[0], sum(done), sum(encoded)) == (3, 90, 90)
    assert np.array_equal(cached(corpus, base, advance=done.append), found)
    assert (sum(done), sum(encoded)) == (180, 90)


def test_no_more_than_max_length_is_read_of_a_sentence(corpus, base):
    encoder = load_encoder(base)
    encoder.tokenizer.model_max_length = 5
    assert cached(corpus, base, length=5) == pytest.approx(encode(encoder, SENTENCES), rel=1e-3, abs=1e-3)


def test_an_interrupted_run_goes_on_and_ends_the_same(corpus, base, encoded, monkeypatch):
    whole = cached(corpus, base)[ALL].copy()
    (folder,) = corpus.directory.glob("vectors-*")
    shutil.rmtree(folder)
    encoded.clear()
    working = teacher_vectors.encode

    def die(model, texts):
        if len(encoded) == 4:
            raise KeyboardInterrupt
        return working(model, texts)

    with monkeypatch.context() as patch:
        patch.setattr(teacher_vectors, "encode", die)
        with pytest.raises(KeyboardInterrupt):
            cached(corpus, base)
    done = []
    assert np.array_equal(cached(corpus, base, advance=done.append), whole)
    assert encoded == [10] * 9
    assert (done[0], sum(done)) == (40, 90)
    data = bytearray((folder / "vectors.npy").read_bytes())
    data[-1] ^= 0x40
    (folder / "vectors.npy").write_bytes(data)
    with pytest.warns(Damaged, match="vectors-.* is damaged"):
        again = cached(corpus, base)
    # Alone, a sentence may come out otherwise in the last bit, by which float16 may round it otherwise.
    assert again == pytest.approx(whole, rel=2e-3, abs=1e-4)
    assert encoded[9:] == [1]


def test_whatever_changes_vectors_has_a_table_of_its_own(corpus, base, base_of, tmp_path):
    for count, changes in enumerate(({}, {"length": 5}, {"precision": "bfloat16"}), 1):
        cached(corpus, base, **changes)
        assert len(list(corpus.directory.glob("vectors-*"))) == count
    cached(corpus, base_of("bert", seed=5))
    for pooling in ("cls", "max"):  # of the same weights
        load_encoder(base, pooling).save(tmp_path / pooling)
        cached(corpus, tmp_path / pooling)
    assert len(list(corpus.directory.glob("vectors-*"))) == 6
    cached(corpus, shutil.copytree(base, tmp_path / "copy"))
    assert len(list(corpus.directory.glob("vectors-*"))) == 6


@pytest.mark.parametrize("value", [np.nan, 1e5])
def test_vectors_that_are_no_numbers_are_refused(value, corpus, base, monkeypatch):
    monkeypatch.setattr(teacher_vectors, "encode", lambda model, texts: np.full((len(texts), 32), value, np.float32))
    with pytest.raises(SettingsError, match="not finite"):
        cached(corpus, base)


@pytest.mark.parametrize("method", ["distil", "least-squares"])
def test_a_teacher_of_no_numbers_leaves_no_run(method, corpus, base, tmp_path, monkeypatch):
    monkeypatch.setattr(teacher_vectors, "encode", lambda model, texts: np.full((len(texts), 32), np.nan, np.float32))
    with pytest.raises(SettingsError, match="not finite"):
        train(corpus, method=method, base="bundled", teacher=base, hold_out=0, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def share(corpus, base, span, output, together, made):
    """The work of a process: vectors of a span of rows, ten at once, as soon as all processes are there."""
    teacher_vectors.encode = lambda model, texts: made.put(len(texts)) or encode(model, texts)
    together.wait(60)
    rows = np.arange(*span)
    np.save(output, cached(corpus, base, rows)[rows])


def test_two_processes_share_the_work(corpus, base, tmp_path):
    spans, context = [(0, 70), (5, 90)], multiprocessing.get_context("fork")
    together, made = context.Barrier(2), context.Queue()
    running = [
        context.Process(target=share, args=(corpus, base, span, tmp_path / f"{n}.npy", together, made))
        for n, span in enumerate(spans)
    ]
    for process in running:
        process.start()
    counts = [made.get(timeout=60)]
    while sum(counts) < 90:
        counts.append(made.get(timeout=60))
    for process in running:
        process.join(60)
        assert process.exitcode == 0
    assert made.empty()  # none of them twice
    assert sum(counts) == 90
    slow = encode(load_encoder(base), SENTENCES)
    for n, (first, last) in enumerate(spans):
        assert np.load(tmp_path / f"{n}.npy") == pytest.approx(slow[first:last], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("factor", [0.0, 1.0], ids=["zero", "one vector"])
def test_a_teacher_that_tells_no_text_from_another_is_refused(corpus, base_of, tmp_path, factor):
    teacher = load_encoder(base_of(tiny.STATIC))
    rows = teacher.table.weight.detach()
    teacher.put_rows(factor * rows[:1].expand_as(rows).clone())
    teacher.save_modules(tmp_path / "teacher")
    with pytest.raises(SettingsError, match="teacher gives all of these texts the same vector"):
        cached(corpus, tmp_path / "teacher")
