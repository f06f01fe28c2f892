"""Starting weights: an encoder that has seen no step yet, and already is a continuous bag of words.

A small budget of masked language modelling is mostly spent on learning how frequent words are, and which words are
alike. Both are known from counts that take seconds. So the embeddings start as factors of the pointwise mutual
information of neighbouring words, the first layer's heads as a soft look at the words at −1, +1, −2, +2, and so on,
and head and output bias such that the mean of these neighbours is what a masked word is predicted from.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from selfsent.data.token_table import TokenTable
from selfsent.errors import SettingsError
from selfsent.pretraining.cooccurrence import count_pairs, factors, positive_information
from selfsent.pretraining.options import Shape, Start
from selfsent.pretraining.shape import new_language_model

_WORD_NORM, _POSITION_NORM = 0.69, 0.57
"""Mean norm of the words' and of the positions' part of an embedding."""
_PEAK = 6.4
"""Attention score of the neighbour a head looks at; that of the others is near zero."""
_FREQUENT = 1e-3
"""a in a / (a + p(w)), which keeps frequent words short (Arora, Liang and Ma, 2017)."""
_LINEAR = 2.5
"""Where GELU is a straight line: states shifted there pass, and the layer norm behind it takes the shift away."""


def check_start(start: Start, shape: Shape) -> None:
    """Refuse a start that the shape has no room for.

    Raises:
        SettingsError: it has none.
    """
    if start != "random" and shape.heads < 2:
        raise SettingsError(
            f"--start {start} keeps the width of one head for positions: give --heads 2 or more, or --start random"
        )


def make_start(start: Start, shape: Shape, tokenizer: Any, table: TokenTable, sentences: np.ndarray, seed: int) -> Any:
    """The language model before its first step.

    Args:
        start: `counts` (all of it), `look` (the first layer only) or `random`.
        shape: the size of the encoder.
        tokenizer: its tokenizer.
        table: the tokens of the corpus.
        sentences: (sentences,) rows of the table that are trained on.
        seed: of all that is random.
    """
    torch.manual_seed(seed)
    model = new_language_model(shape, tokenizer)
    if start == "random":
        return model
    look_around(model, shape)
    if start == "counts":
        vocabulary = len(tokenizer)
        frequency = count_tokens(table, sentences, vocabulary)
        information = positive_information(count_pairs(table, sentences, vocabulary))
        vectors, _ = factors(information, shape.hidden_size - shape.head_size, seed)
        embed(model, shape, vectors, frequency / max(1, frequency.sum()))
        forget_mask(model, shape, tokenizer.mask_token_id)
        predict_from_neighbours(model, shape, frequency)
    return model


def count_tokens(table: TokenTable, sentences: np.ndarray, vocabulary: int) -> np.ndarray:
    """(vocabulary,) how often each token occurs in the sentences, (sentences,)."""
    counts = np.zeros(vocabulary, dtype=np.int64)
    for chunk in np.array_split(sentences, max(1, len(sentences) // 100_000)):
        counts += np.bincount(table[chunk].ids, minlength=vocabulary)
    return counts


@torch.no_grad()
def look_around(model: Any, shape: Shape) -> None:
    """Let each head of the first layer look softly at one neighbour: −1, +1, −2, +2 and so on.

    The first head-sized part of the embeddings holds position codes, cosines and sines of evenly spaced frequencies. A
    head's query reads them, its key reads them turned by its offset, so that they meet where the offset is right.
    """
    size, half = shape.head_size, shape.head_size // 2
    frequencies = math.pi * (torch.arange(half) + 0.5) / half
    positions = model.bert.embeddings.position_embeddings.weight
    angles = torch.arange(len(positions))[:, None] * frequencies
    positions.normal_(0, 0.005)
    positions[:, :size] = _POSITION_NORM / math.sqrt(half) * torch.cat([angles.cos(), angles.sin()], dim=1)
    words = model.bert.embeddings.word_embeddings.weight
    words.normal_(0, _WORD_NORM / math.sqrt(shape.hidden_size - size))
    words[:, :size] *= 0.1
    attention = model.bert.encoder.layer[0].attention
    share = _POSITION_NORM**2 / (_POSITION_NORM**2 + _WORD_NORM**2)
    gain = math.sqrt(_PEAK * math.sqrt(size) / (share * shape.hidden_size))
    for head in range(shape.heads):
        rows, offset = slice(head * size, (head + 1) * size), (head // 2 + 1) * (-1, 1)[head % 2]
        attention.self.query.weight[rows, :size] += gain * torch.eye(size)
        attention.self.key.weight[rows, :size] += gain * _turn(offset * frequencies)
    for layer in (attention.self.value, attention.output.dense):
        layer.weight.normal_(0, 0.96 / math.sqrt(shape.hidden_size))


def _turn(angles: Tensor) -> Tensor:
    """(2 n, 2 n) what takes the code of position j, cosines then sines, to that of j less the offset of the angles."""
    cosines, sines = torch.diag(angles.cos()), torch.diag(angles.sin())
    return torch.cat([torch.cat([cosines, sines], 1), torch.cat([-sines, cosines], 1)])


@torch.no_grad()
def embed(model: Any, shape: Shape, vectors: np.ndarray, share: np.ndarray) -> None:
    """Put word vectors where the embeddings have room for them, frequent words shorter.

    Args:
        model: the language model.
        shape: its size.
        vectors: (vocabulary, at most hidden size less head size).
        share: (vocabulary,) share of the tokens that each word makes up.
    """
    weighted = torch.from_numpy(vectors * (_FREQUENT / (_FREQUENT + share))[:, None]).float()
    weighted *= _WORD_NORM / weighted.norm(dim=1).mean().clamp_min(1e-12)
    words = model.bert.embeddings.word_embeddings.weight[:, shape.head_size :]
    words.normal_(0, 0.002)
    words[:, : weighted.shape[1]] += weighted


@torch.no_grad()
def forget_mask(model: Any, shape: Shape, mask: int) -> None:
    """Let the mask token say next to nothing of itself."""
    model.bert.embeddings.word_embeddings.weight[mask].normal_(0, 0.01)


@torch.no_grad()
def predict_from_neighbours(model: Any, shape: Shape, frequency: np.ndarray) -> None:
    """Hand the neighbours' leading components on to the output, unchanged, with the log frequency as its bias."""
    size = shape.head_size
    attention = model.bert.encoder.layer[0].attention
    value, out = attention.self.value.weight, attention.output.dense.weight
    value.normal_(0, 0.01)
    out.normal_(0, 0.01)
    width = min(size, shape.hidden_size - size)
    for head in range(shape.heads):
        inside = torch.arange(width)
        value[head * size + inside, size + inside] += 1
        out[size + inside, head * size + inside] += 1
    transform = model.cls.predictions.transform.dense
    transform.weight.normal_(0, 0.005)
    transform.weight += torch.eye(shape.hidden_size)
    transform.bias.fill_(_LINEAR)
    unigram = (frequency + 1.0) / (frequency.sum() + len(frequency))
    model.cls.predictions.bias.copy_(torch.from_numpy(np.log(unigram)).float())
