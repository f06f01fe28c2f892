"""Paragraph vectors (Le and Mikolov, 2014), trained by gensim on the user's sentences, as an encoder."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus, check_corpus, read_corpus
from selfsent.data.vector_files import Vectors
from selfsent.errors import DataError, SettingsError
from selfsent.files import atomic_directory, cache_folder, read_json
from selfsent.integrity import checksums, damaged, warn_damaged
from selfsent.lexical.analyzer import words_of
from selfsent.progress import Progress, shown

SIZE = 100
"""Dimension, as in Hill et al. (2016), table 1."""
LEAST = 5
"""Minimum frequency of a word; gensim's default, like all other settings."""
EPOCHS = 20
"""Passes over the corpus: a common value; fewer leave the vectors of a small corpus near their initial values."""
INFERRED = 50
"""Passes over a new sentence."""
_VERSION = 1
"""Version of the cached model: raise it when training changes."""
_FILES, _SUMS = ("input.f32", "output.f32", "words.json"), "sums.json"


class ParagraphVectors:
    """Paragraph vectors of the distributed memory (`dm`) or the bag of words (`dbow`): n texts -> (n, 100).

    A sentence's vector predicts its words: alone (dbow), or in a mean with the vectors of the words around (dm); by
    negative sampling. A new sentence's vector is found by gradient steps on it alone, as in the paper's section 2.3. It
    starts from random numbers seeded by its words, so the same words always have the same vector. A text without known
    words has a zero vector.

    The trained model is cached as words and numbers: gensim's own files are pickles, which may run code.

    Args:
        kind: `dm` or `dbow`.
        source: the corpus, as for `read_corpus`; a row is a sentence.
        progress: receives a notice and the progress of training; by default they are shown.

    Examples:
        >>> vectors = ParagraphVectors("dbow", "sentences.txt")(["a cat sat", "dogs bark"])  # doctest: +SKIP
    """

    def __init__(self, kind: str, source: str, progress: Progress | None = None) -> None:
        self.kind, self.source, self._progress = kind, source, progress

    def check(self) -> None:
        """Check quickly that it can be trained.

        Raises:
            CorpusError: the corpus cannot be read.
            SettingsError: gensim is not installed.
        """
        try:
            import gensim.models.doc2vec  # noqa: F401 — it is there
        except ImportError:
            problem = f"{self.kind}:{self.source} needs gensim: pip install 'selfsent-papers[words]'"
            raise SettingsError(problem) from None
        check_corpus(self.source)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, (n, 100), float32; the first call may train.

        Raises:
            CorpusError: the corpus cannot be read.
            DataError: no word is frequent enough in it.
            OutputError: the cache cannot be written.
        """
        return np.stack([self._infer(_lower(text)) for text in texts]) if texts else np.zeros((0, SIZE), np.float32)

    def _infer(self, words: list[str]) -> NDArray[np.float32]:
        """As `infer_vector` of gensim, with random numbers reproducible across processes."""
        from gensim.models.doc2vec import train_document_dbow, train_document_dm

        model = self._model
        words = [word for word in words if word in model.wv.key_to_index]
        if not words:
            return np.zeros(SIZE, np.float32)
        model.random = np.random.RandomState(_hash(" ".join(words)))
        vector = ((model.random.random_sample((1, SIZE)) - 0.5) / SIZE).astype(np.float32)
        step = train_document_dm if self.kind == "dm" else train_document_dbow
        fixed = {"learn_words": False, "learn_hidden": False, "doctags_lockf": np.ones(1, np.float32)}
        for rate in np.linspace(model.alpha, model.min_alpha, INFERRED):
            step(model, words, [0], rate, doctag_vectors=vector, **fixed)
        return np.asarray(vector[0], np.float32)

    @cached_property
    def _model(self) -> Any:
        """The trained Doc2Vec of gensim, without the vectors of the corpus."""
        corpus = read_corpus(self.source)
        identity = repr((_VERSION, self.kind, SIZE, LEAST, EPOCHS, corpus.fingerprint)).encode()
        directory = cache_folder() / "paragraph-vectors" / blake2b(identity, digest_size=8).hexdigest()
        sums = read_json(directory / _SUMS)
        if not sums.keys() >= {*_FILES} or damaged(directory, sums):
            if directory.is_dir():
                warn_damaged(directory)
            with atomic_directory(directory) as folder:
                _write(self._trained(corpus), folder)
        words, counts = json.loads((directory / _FILES[2]).read_text(encoding="utf-8"))
        model = _new(self.kind)
        model.build_vocab_from_freq(dict(zip(words, counts, strict=True)))
        # Words of equal frequency may come in another order.
        model.wv.index_to_key, model.wv.key_to_index = words, {word: row for row, word in enumerate(words)}
        model.wv.vectors, model.syn1neg = (
            np.fromfile(directory / name, np.float32).reshape(len(words), SIZE) for name in _FILES[:2]
        )
        return model

    def _trained(self, corpus: Corpus) -> Any:
        name, documents, model = f"{self.kind}:{self.source}", _Documents(corpus), _new(self.kind)
        with shown(self._progress, quiet=False) as progress:
            rows = corpus.report.counted(len(corpus))
            progress.notice(f"{name}: training paragraph vectors on {rows}, this once; they are kept in the cache")
            model.build_vocab(documents)
            if not len(model.wv):
                raise DataError(f"{name}: no word is in the corpus {LEAST} times or more")
            model.train(documents, total_examples=model.corpus_count, epochs=EPOCHS)
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
        dm=int(kind == "dm"), vector_size=SIZE, min_count=LEAST, epochs=EPOCHS, workers=1, seed=1, hashfxn=_hash
    )


def _hash(word: str) -> int:
    """A hash of a word; Python's own differs between processes."""
    return zlib.crc32(word.encode(errors="replace"))


def _write(model: Any, folder: Path) -> None:
    words = list(model.wv.index_to_key)
    counts = [int(model.wv.get_vecattr(word, "count")) for word in words]
    (folder / _FILES[2]).write_text(json.dumps([words, counts]), encoding="utf-8")
    for name, numbers in zip(_FILES, (model.wv.vectors, model.syn1neg), strict=False):
        np.ascontiguousarray(numbers, np.float32).tofile(folder / name)
    (folder / _SUMS).write_text(json.dumps(checksums(folder, _FILES)), encoding="utf-8")
