"""Vectors of a frozen encoder that are kept beside a corpus."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

import tiny
from selfsent.data.corpus import read_corpus
from selfsent.errors import Damaged, OutputError, TrainingError
from selfsent.locks import lock_range
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.training import teacher_vectors
from selfsent.training.teacher_vectors import kept_vectors

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
    """How many sentences were encoded, each time; ten at once."""
    counts = []

    def counted(model, texts):
        counts.append(len(texts))
        return encode(model, texts)

    monkeypatch.setattr(teacher_vectors, "_PART", {"cpu": 10})
    monkeypatch.setattr(teacher_vectors, "encode", counted)
    return counts


def kept(corpus, base, rows=ALL, length=512, precision="float32", told=lambda count: None):
    return kept_vectors(corpus, "text", rows, load_encoder(base), str(base), length, precision, told=told)


def test_vectors_are_those_of_the_encoder_and_made_once(corpus, base, encoded):
    told = []
    found = kept(corpus, base, ALL[::-1], told=told.append)
    assert found.dtype == np.float16
    assert found == pytest.approx(encode(load_encoder(base), SENTENCES), rel=1e-3, abs=1e-4)
    assert (told[0], sum(told)) == (0, 90)
    assert encoded == [10] * 9
    assert np.array_equal(kept(corpus, base, told=told.append), found)
    assert (len(encoded), sum(told)) == (9, 180)


def test_no_more_is_read_of_a_sentence_than_asked_for(corpus, base):
    encoder = load_encoder(base)
    encoder.tokenizer.model_max_length = 5
    assert kept(corpus, base, length=5) == pytest.approx(encode(encoder, SENTENCES), rel=1e-3, abs=1e-3)


def test_of_more_rows_only_what_is_missing_is_made(corpus, base, encoded):
    few = np.array([40, 3, 77])
    before = kept(corpus, base, few)[few].copy()
    assert encoded == [3]
    after = kept(corpus, base)
    assert sum(encoded) == 90
    assert np.array_equal(after[few], before)
    assert after == pytest.approx(encode(load_encoder(base), SENTENCES), rel=1e-3, abs=1e-4)


def test_an_interrupted_encoding_goes_on_and_ends_the_same(corpus, base, encoded, monkeypatch):
    whole = kept(corpus, base)[ALL].copy()
    (folder,) = corpus.directory.glob("vectors-*")
    shutil.rmtree(folder)
    encoded.clear()
    working = teacher_vectors.encode

    def die(model, texts):
        if len(encoded) == 4:
            raise KeyboardInterrupt
        return working(model, texts)

    monkeypatch.setattr(teacher_vectors, "encode", die)
    with pytest.raises(KeyboardInterrupt):
        kept(corpus, base)
    monkeypatch.setattr(teacher_vectors, "encode", working)
    told = []
    assert np.array_equal(kept(corpus, base, told=told.append), whole)
    assert encoded == [10] * 9
    assert (told[0], sum(told)) == (40, 90)


def test_whatever_changes_vectors_has_a_table_of_its_own(corpus, base, base_of, tmp_path):
    others = {"length": {"length": 5}, "precision": {"precision": "bfloat16"}}
    for count, changes in enumerate(({}, *others.values()), 1):
        kept(corpus, base, **changes)
        assert len(list(corpus.directory.glob("vectors-*"))) == count
    kept(corpus, base_of("bert", seed=5))
    for pooling in ("cls", "max"):  # of the same weights
        load_encoder(base, pooling).save(tmp_path / pooling)
        kept(corpus, tmp_path / pooling)
    assert len(list(corpus.directory.glob("vectors-*"))) == 6
    copied = shutil.copytree(base, tmp_path / "copy")
    kept(corpus, copied)
    assert len(list(corpus.directory.glob("vectors-*"))) == 6


def test_a_table_without_its_vectors_is_made_again(corpus, base, encoded):
    whole = kept(corpus, base)[ALL].copy()
    (folder,) = corpus.directory.glob("vectors-*")
    (folder / "vectors.bin").unlink()
    assert np.array_equal(kept(corpus, base), whole)


def test_a_full_disk_is_one_line(corpus, base, encoded, monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(teacher_vectors.os, "fsync", full)
    monkeypatch.setattr(teacher_vectors, "write_json", lambda path, value: None)
    with pytest.raises(OutputError, match=r"vectors\.bin cannot be written: No space left"):
        kept(corpus, base)
    monkeypatch.undo()
    assert kept(corpus, base) == pytest.approx(encode(load_encoder(base), SENTENCES), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("value", [np.nan, 1e5])
def test_vectors_that_are_no_numbers_are_refused(value, corpus, base, monkeypatch):
    monkeypatch.setattr(teacher_vectors, "encode", lambda model, texts: np.full((len(texts), 32), value, np.float32))
    with pytest.raises(TrainingError, match="not finite"):
        kept(corpus, base)


def test_bytes_of_a_lock_are_held_once(tmp_path):
    other = (
        "import sys; from pathlib import Path; from selfsent.locks import lock_range\n"
        "with lock_range(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), False) as mine: print(mine)"
    )

    def has(start, end):
        command = [sys.executable, "-c", other, str(tmp_path / "lock"), str(start), str(end)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "True"

    with lock_range(tmp_path / "lock", 10, 20, patient=False) as mine:
        assert mine
        assert not has(0, 11)
        assert not has(19, 20)
        assert has(20, 30)
    assert has(0, 11)


SHARED = """
import sys
import numpy as np
from pathlib import Path
from selfsent.data.corpus.table import Corpus
from selfsent.models.loading import load_encoder
from selfsent.training import teacher_vectors

corpus, base, first, last, output = Corpus(Path(sys.argv[1])), *sys.argv[2:]
working, made = teacher_vectors.encode, []
teacher_vectors._PART = {"cpu": 10}
teacher_vectors.encode = lambda model, texts: made.append(len(texts)) or working(model, texts)
print("ready", flush=True)
sys.stdin.readline()
rows = np.arange(int(first), int(last))
found = teacher_vectors.kept_vectors(corpus, "text", rows, load_encoder(base), base, 512, "float32")
np.save(output, found[rows])
print(sum(made))
"""


def test_two_processes_share_the_work(corpus, base, tmp_path):
    spans = [(0, 70), (5, 90)]
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                SHARED,
                str(corpus.directory),
                str(base),
                *map(str, span),
                str(tmp_path / f"{n}.npy"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n, span in enumerate(spans)
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    made = [int(process.communicate(timeout=300)[0]) for process in running]
    assert sum(made) == 90  # none of them twice
    slow = encode(load_encoder(base), SENTENCES)
    for n, (first, last) in enumerate(spans):
        assert np.load(tmp_path / f"{n}.npy") == pytest.approx(slow[first:last], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("file", "value"), [("vectors.bin", 0x40), ("sums.bin", 1), ("done.bin", 0x40)])
def test_a_damaged_vector_alone_is_made_again(corpus, base, encoded, file, value):
    whole = kept(corpus, base)[ALL].copy()
    (folder,) = corpus.directory.glob("vectors-*")
    data = bytearray((folder / file).read_bytes())
    data[33 * (len(data) // 90) + 1 if file != "done.bin" else 33] ^= value
    (folder / file).write_bytes(bytes(data))
    encoded.clear()
    with pytest.warns(Damaged, match="vectors-.* is damaged"):
        again = kept(corpus, base)
    # Alone, a sentence may come out otherwise in the last bit, by which float16 may round it otherwise.
    assert again == pytest.approx(whole, rel=2e-3, abs=1e-4)
    assert encoded == [1]
