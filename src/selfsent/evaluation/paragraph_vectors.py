"""Paragraph vectors (Le and Mikolov, 2014), trained by gensim on the user's sentences, as an encoder."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus, check_corpus, read_corpus
from selfsent.data.vector_files import Vectors
from selfsent.data.word_vectors import need_gensim
from selfsent.display import counted
from selfsent.errors import DataError
from selfsent.evaluation.cache import cached_directory
from selfsent.evaluation.word_vectors import words_of
from selfsent.progress import Progress, shown

KINDS = ("dm", "dbow")
SIZE = 100
"""Dimension, as in Hill et al. (2016), table 1."""
LEAST = 5
"""Minimum frequency of a word; gensim's default, like all other settings."""
EPOCHS = 20
"""Passes over the corpus: a common value; fewer leave the vectors of a small corpus near their initial values."""
INFERRED = 50
"""Passes over a new sentence."""
SEED = 1
_VERSION = 1
"""Cache version: bump when training changes."""
_INPUT, _OUTPUT, _WORDS = "input.f32", "output.f32", "words.parquet"


def paragraphs_file(model: str) -> tuple[str, str] | None:
    """The kind and the corpus of `dm:FILE` or `dbow:FILE`; None for any other name."""
    kind, _, source = model.partition(":")
    return (kind, source) if kind in KINDS and source else None


class ParagraphVectors:
    """Paragraph vectors of the distributed memory (`dm`) or the bag of words (`dbow`): n texts -> (n, 100).

    A sentence's vector predicts its words: alone (dbow), or in a mean with the vectors of the words around (dm); by
    negative sampling. A new sentence's vector is found by gradient steps on it alone, as in the paper's section 2.3. It
    starts from random numbers seeded by its words, so the same words always have the same vector. A text without known
    words has a zero vector.

    The trained model is cached as words, counts and numbers: gensim's own files are pickles, which may run code. It is
    retrained when the corpus changes.

    Args:
        kind: `dm` or `dbow`.
        source: the corpus, as for `read_corpus`; a row is a sentence.
        progress: receives a notice and the progress of training; by default they are shown.
    """

    def __init__(self, kind: str, source: str, progress: Progress | None = None) -> None:
        self.kind, self.source, self._progress = kind, source, progress

    def check(self) -> None:
        """Check quickly that it can be trained.

        Raises:
            CorpusError: the corpus cannot be read.
            SettingsError: gensim is not installed.
        """
        need_gensim(f"{self.kind}:{self.source}")
        check_corpus(self.source)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, (n, 100), float32; the first call may train.

        Raises:
            CorpusError: the corpus cannot be read.
            DataError: no word is frequent enough in it.
            OutputError: the cache cannot be written.
            SettingsError: gensim is not installed.
        """
        return np.stack([self._inferred(_lower(text)) for text in texts]) if texts else np.zeros((0, SIZE), np.float32)

    def _inferred(self, words: list[str]) -> NDArray[np.float32]:
        """As `infer_vector` of gensim, with random numbers reproducible across processes."""
        from gensim.models.doc2vec import train_document_dbow, train_document_dm

        model = self._model
        words = [word for word in words if word in model.wv.key_to_index]
        if not words:
            return np.zeros(SIZE, np.float32)
        model.random = np.random.RandomState(zlib.crc32(" ".join(words).encode(errors="replace")))
        vector = ((model.random.random_sample((1, SIZE)) - 0.5) / SIZE).astype(np.float32)
        step = train_document_dm if self.kind == "dm" else train_document_dbow
        fixed = {"learn_words": False, "learn_hidden": False, "doctags_lockf": np.ones(1, np.float32)}
        for rate in np.linspace(model.alpha, model.min_alpha, INFERRED):
            step(model, words, [0], rate, doctag_vectors=vector, **fixed)
        return np.asarray(vector[0], np.float32)

    @cached_property
    def _model(self) -> Any:
        """The trained Doc2Vec of gensim, without the vectors of the corpus."""
        import pyarrow.parquet as pq

        need_gensim(f"{self.kind}:{self.source}")
        corpus = read_corpus(self.source)
        identity = repr((_VERSION, self.kind, SIZE, LEAST, EPOCHS, SEED, corpus.fingerprint))
        directory = cached_directory(
            "paragraph-vectors",
            identity,
            (_INPUT, _OUTPUT, _WORDS),
            lambda folder: _write(self._trained(corpus), folder),
        )
        table = pq.read_table(directory / _WORDS)
        words, counts = (table[name].to_pylist() for name in ("word", "count"))
        model = _new(self.kind)
        model.build_vocab_from_freq(dict(zip(words, counts, strict=True)))
        # Words of equal frequency may come in another order.
        model.wv.index_to_key, model.wv.key_to_index = words, {word: row for row, word in enumerate(words)}
        model.wv.vectors, model.syn1neg = (
            np.fromfile(directory / name, np.float32).reshape(len(words), SIZE) for name in (_INPUT, _OUTPUT)
        )
        return model

    def _trained(self, corpus: Corpus) -> Any:
        from gensim.models.callbacks import CallbackAny2Vec

        name, documents, model = f"{self.kind}:{self.source}", _Documents(corpus), _new(self.kind)
        with shown(self._progress, quiet=False) as progress:
            progress.notice(
                f"{name}: training paragraph vectors on {corpus.report.counted(len(corpus))}, this once; they are kept"
                " in the cache"
            )

            class EpochEnd(CallbackAny2Vec):  # type: ignore[misc]  # gensim ships no types
                def on_epoch_end(self, model: Any) -> None:
                    progress.count(f"training {name}", len(corpus), EPOCHS * len(corpus))

            model.build_vocab(documents)
            if not len(model.wv):
                raise DataError(f"{name}: no word is in the corpus {counted(LEAST, 'time')} or more")
            model.train(documents, total_examples=model.corpus_count, epochs=EPOCHS, callbacks=[EpochEnd()])
        return model


class _Documents:
    """The sentences of a corpus as gensim reads them, reiterable."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def __iter__(self) -> Iterator[Any]:
        from gensim.models.doc2vec import TaggedDocument

        texts = (text for batch in self._corpus.batches() for text in batch)
        return (TaggedDocument(_lower(text), [row]) for row, text in enumerate(texts))


def _lower(text: str) -> list[str]:
    return words_of(text.lower())


def _new(kind: str) -> Any:
    """A Doc2Vec without vocabulary, with one worker for reproducibility."""
    from gensim.models.doc2vec import Doc2Vec

    return Doc2Vec(
        dm=int(kind == "dm"), vector_size=SIZE, min_count=LEAST, epochs=EPOCHS, workers=1, seed=SEED, hashfxn=_hash
    )


def _hash(word: str) -> int:
    """A hash of a word; Python's own differs between processes."""
    return zlib.crc32(word.encode(errors="replace"))


def _write(model: Any, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = list(model.wv.index_to_key)
    counts = [int(model.wv.get_vecattr(word, "count")) for word in words]
    pq.write_table(pa.table({"word": words, "count": counts}), folder / _WORDS)
    for name, numbers in ((_INPUT, model.wv.vectors), (_OUTPUT, model.syn1neg)):
        np.ascontiguousarray(numbers, np.float32).tofile(folder / name)
