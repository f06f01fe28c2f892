"""Where the vectors of a corpus come from: the encoder, or a file that `selfsent encode` wrote with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.display import counted
from selfsent.errors import DataError
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import Side, encode, encode_stream, prompt_of
from selfsent.search.encoder import opened
from selfsent.search.rows import TextsInOrder, sentences
from selfsent.search.vectors import unit

COMPARED = 16
"""Rows of each part of a file that are encoded, to see whether its vectors are this model's of this corpus."""
SAME, FAR = 0.99, 0.9
"""Cosine that they have on average at least, and each of them; computed in 8 bits they have a little less than 1."""


def corpus_vectors(
    model: Encoder, corpus: Corpus, file: VectorsFile | None = None, side: Side | None = None
) -> Iterator[NDArray[np.float32]]:
    """The vectors of a corpus' distinct sentences in order, some thousand at a time: computed, or from a file.

    Texts of the file are compared with the corpus, all of them; vectors with those of the model, a sample.

    Args:
        model: the encoder.
        corpus: the sentences.
        file: as `encode_to_file` writes it.
        side: of a search.

    Raises:
        DataError: the file is damaged, or holds other vectors than the model has for these sentences.
    """
    if file is None:
        yield from encode_stream(model, sentences(corpus), side)
        return
    check_rows(file, corpus)
    if file.size != model.embedding_size:
        raise DataError(f"{file.path} holds vectors of {file.size} numbers; this model's have {model.embedding_size}")
    inputs, texts, done = corpus.input_rows, TextsInOrder(corpus), 0
    draw, hint = np.random.default_rng(0), hint_of_prompt(model) if side else ""
    for vectors, stored in file.parts():
        pieces = np.arange(done, done + len(vectors))
        if stored is not None and stored != (expected := texts.take(len(vectors))):
            row = next(i for i, (text, other) in enumerate(zip(expected, stored, strict=True)) if text != other)
            raise DataError(f"{file.path} holds vectors of another corpus: row {done + row} is {stored[row][:60]!r}")
        if not (finite := np.isfinite(vectors).all(1)).all():
            raise DataError(f"{file.path} holds numbers that are not finite in row {done + int(np.argmin(finite))}")
        rows = np.asarray(inputs.corpus_rows[pieces])
        if len(filled := np.flatnonzero(rows >= 0)):
            chosen = np.append(draw.permutation(filled[:-1])[: COMPARED - 1], filled[-1])
            compare(file, vectors[chosen], encode(model, corpus.texts(rows[chosen]), side=side), pieces[chosen], hint)
        yield vectors[inputs.is_first(pieces)]
        done += len(vectors)


def check_rows(file: VectorsFile, corpus: Corpus) -> None:
    """Find out quickly whether a file can hold the vectors of a corpus.

    Raises:
        DataError: it holds another number of them.
    """
    if file.rows != (rows := len(corpus.input_rows)):
        kind = corpus.input_rows.unit
        raise DataError(
            f"{file.path} holds {counted(file.rows, 'vector')}; this corpus has {counted(rows, kind)}: encode it"
            f" again, with the same options (each {kind} has a vector, also an empty or a repeated one)"
        )


def compare(
    file: VectorsFile,
    stored: NDArray[np.float32],
    computed: NDArray[np.float32],
    rows: NDArray[np.int64],
    hint: str = "",
) -> None:
    """Refuse vectors (n, d) of some rows (n,) of a file that are not those the model has for their texts.

    Raises:
        DataError: they are others.
    """
    cosines = (unit(stored) * unit(computed)).sum(1)
    # Both are zero where the tokenizer leaves nothing of a text.
    cosines[~stored.any(1) & ~computed.any(1)] = 1
    if not (cosines.mean() >= SAME and cosines.min() >= FAR):
        worst = int(np.argmin(cosines))
        raise DataError(
            f"{file.path} holds other vectors than this model has for these texts: cosine {cosines[worst]:.2f} in row"
            f" {rows[worst]}{hint}"
        )


def hint_of_prompt(model: Encoder) -> str:
    """What is said, where the vectors of texts to be searched are others than a model's, if it wants a prompt there."""
    return ": encode with --prompt document" if prompt_of(model, "document") != prompt_of(model) else ""


def encode_corpus(
    model: Encoder | str | os.PathLike[str],
    corpus: Corpus,
    advance: Callable[[int], None] = lambda count: None,
    file: VectorsFile | None = None,
) -> NDArray[np.float32]:
    """The vectors of a corpus' distinct sentences in memory, (n, d), each of length 1.

    Args:
        model: the encoder, or the name of one.
        corpus: the sentences.
        advance: called with the number of rows of the input done since the last call.
        file: with their vectors, as `encode_to_file` writes it; without it they are computed.

    Raises:
        DataError: the file is damaged, or holds other vectors.
    """
    model = opened(model)
    vectors = np.empty((len(corpus), model.embedding_size), dtype=np.float32)
    done, tell = 0, corpus.input_rows.progress_callback(advance)
    for part in corpus_vectors(model, corpus, file):
        vectors[done : done + len(part)] = unit(part)
        done += len(part)
        tell(len(part))
    return vectors
