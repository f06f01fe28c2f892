"""Initial weights by counting: an encoder that is a continuous bag of words before its first step.

A small budget of masked language modelling is mostly spent on learning how frequent words are, and which words are
alike. Both are known from counts that take seconds. So the word embeddings start as factors of the pointwise mutual
information of neighbouring words (Levy, Goldberg and Dagan, 2015: counts weighted by distance, singular vectors without
their values), each head of the first layer looks at one neighbour, and the output predicts a masked word from them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from selfsent.data.token_table import TokenTable

_CHUNK, _TOKENS = 1_000_000, 50_000_000
"""Tokens counted at a time, and at most."""
_FREQUENT = 1e-3
"""a in a / (a + p(w)), which keeps frequent words short (Arora, Liang and Ma, 2017)."""
_WORD_NORM, _POSITION_NORM = 0.69, 0.57
"""Mean norm of the words' and of the positions' part of an embedding."""
_PEAK = 6.4
"""Attention score of the neighbour a head looks at; the others' scores are near zero."""
_LINEAR = 2.5
"""Offset into the linear part of GELU, so that states pass it; the layer norm after it removes the offset."""


def count_pairs(table: TokenTable, vocabulary: int, window: int = 5, chunk: int = _CHUNK) -> tuple[Any, np.ndarray]:
    """Counts of token pairs at most `window` apart in a sentence, weighted 1/distance, and counts of tokens.

    Args:
        table: the tokens; of a huge corpus an even sample is counted.
        vocabulary: number of token ids.
        window: the largest distance.
        chunk: tokens counted at once.

    Returns:
        A symmetric (vocabulary, vocabulary) matrix of float32 in scipy's compressed rows, and (vocabulary,) counts.
    """
    from scipy.sparse import coo_array, csr_array

    counts: Any = csr_array((vocabulary, vocabulary), dtype=np.float32)
    frequency = np.zeros(vocabulary, dtype=np.int64)
    sentences = np.arange(0, len(table), max(1, -(-int(table.offsets[-1]) // _TOKENS)))
    cuts = np.unique(np.cumsum(table.lengths(sentences)) // chunk, return_index=True)[1][1:]
    for rows in np.split(sentences, cuts):
        tokens = table[rows]
        ids, sentence = tokens.ids, tokens.sentence
        frequency += np.bincount(ids, minlength=vocabulary)
        for distance in range(1, window + 1):
            same = sentence[distance:] == sentence[:-distance]
            weights = np.full(int(same.sum()), 1 / distance, dtype=np.float32)
            pairs = ids[:-distance][same], ids[distance:][same]
            counts = counts + coo_array((weights, pairs), shape=counts.shape).tocsr()
    return (counts + counts.T).tocsr(), frequency


def positive_information(counts: Any) -> Any:
    """max(0, log p(w, c) / (p(w) p(c))) of (vocabulary, vocabulary) counts, in scipy's compressed rows."""
    total = np.maximum(np.asarray(counts.sum(1), dtype=np.float64), 1e-12)
    found = counts.tocoo()
    row, column = found.coords
    information = np.log(found.data) - np.log(total[row]) - np.log(total[column] / total.sum())
    found.data = np.maximum(information, 0).astype(np.float32)
    return found.tocsr()


@torch.no_grad()
def start_from_counts(model: Any, table: TokenTable, mask: int, seed: int) -> None:
    """Initialise a BERT from counts of a text.

    Args:
        model: the language model, with two heads or more of an even size; it is changed.
        table: the text.
        mask: id of the mask token, which starts near zero.
        seed: of the factorisation.
    """
    from sklearn.utils.extmath import randomized_svd

    config, words = model.config, model.get_input_embeddings().weight
    size = config.hidden_size // config.num_attention_heads
    counts, frequency = count_pairs(table, len(words))
    words.normal_(0, 0.002)
    words[:, :size].normal_(0, 0.1 * _WORD_NORM / math.sqrt(config.hidden_size - size))
    most = min(config.hidden_size - size, len(frequency) - 1)
    vectors, _, _ = randomized_svd(positive_information(counts), most, random_state=seed)
    vectors *= (_FREQUENT / (_FREQUENT + frequency / max(1, frequency.sum())))[:, None]
    vectors = np.asarray(vectors * (_WORD_NORM / max(float(np.linalg.norm(vectors, axis=1).mean()), 1e-12)))
    words[:, size : size + vectors.shape[1]] += torch.from_numpy(vectors).to(words)
    words[mask].normal_(0, 0.01)
    _look_at_neighbours(model.bert, size, config.num_attention_heads)
    transform = model.cls.predictions.transform.dense
    transform.weight.normal_(0, 0.005).add_(torch.eye(config.hidden_size))
    transform.bias.fill_(_LINEAR)
    unigram = (frequency + 1.0) / (frequency.sum() + len(frequency))
    model.get_output_embeddings().bias.copy_(torch.from_numpy(np.log(unigram)))


def _look_at_neighbours(bert: Any, size: int, heads: int) -> None:
    """Make each head of the first layer copy the word at −1, +1, −2, +2 and so on.

    The first head-sized part of the embeddings holds position codes, cosines and sines of evenly spaced frequencies. A
    head's query reads them, its key reads them turned by its offset, so that they meet where the offset is right.
    """
    frequencies = math.pi * (torch.arange(size // 2) + 0.5) / (size // 2)
    positions = bert.embeddings.position_embeddings.weight
    angles = torch.arange(len(positions))[:, None] * frequencies
    positions.normal_(0, 0.005)
    positions[:, :size] = _POSITION_NORM / math.sqrt(size // 2) * torch.cat([angles.cos(), angles.sin()], dim=1)
    attention, hidden = bert.encoder.layer[0].attention, positions.shape[1]
    query, key = attention.self.query.weight, attention.self.key.weight
    value, out = attention.self.value.weight.normal_(0, 0.01), attention.output.dense.weight.normal_(0, 0.01)
    share = _POSITION_NORM**2 / (_POSITION_NORM**2 + _WORD_NORM**2)
    gain = math.sqrt(_PEAK * math.sqrt(size) / (share * hidden))
    inside = torch.arange(min(size, hidden - size))
    for head in range(heads):
        rows, offset = slice(head * size, (head + 1) * size), (head // 2 + 1) * (-1, 1)[head % 2]
        cosines, sines = (torch.diag(turn(offset * frequencies)) for turn in (torch.cos, torch.sin))
        query[rows, :size] += gain * torch.eye(size)
        key[rows, :size] += gain * torch.cat([torch.cat([cosines, sines], 1), torch.cat([-sines, cosines], 1)])
        value[head * size + inside, size + inside] += 1
        out[size + inside, head * size + inside] += 1
