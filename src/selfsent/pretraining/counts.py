"""Initial word embeddings by counting: factors of the pointwise mutual information of neighbouring words.

A small budget of masked language modelling is mostly spent on learning how frequent words are, and which words are
alike. Both are known from counts that take seconds. Levy, Goldberg and Dagan, 2015, "Improving distributional
similarity with lessons learned from word embeddings": counts weighted by distance, and singular vectors without their
values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from selfsent.data.token_table import TokenTable

_CHUNK, _TOKENS = 1_000_000, 50_000_000
"""Tokens counted at a time, and at most."""
_FREQUENT = 1e-3
"""a in a / (a + p(w)), which keeps frequent words short (Arora, Liang and Ma, 2017)."""
_NORM = 0.69
"""Mean norm of a word embedding."""


def count_pairs(table: TokenTable, vocabulary: int, window: int = 5) -> tuple[Any, np.ndarray]:
    """How often two tokens occur at most `window` apart in a sentence, weighted 1/distance, and how often each does.

    Args:
        table: the tokens; of a huge corpus an even sample is counted.
        vocabulary: number of token ids.
        window: the largest distance.

    Returns:
        A symmetric (vocabulary, vocabulary) matrix of float32 in scipy's compressed rows, and (vocabulary,) counts.
    """
    from scipy.sparse import coo_array, csr_array

    counts: Any = csr_array((vocabulary, vocabulary), dtype=np.float32)
    frequency = np.zeros(vocabulary, dtype=np.int64)
    sentences = np.arange(0, len(table), max(1, -(-int(table.offsets[-1]) // _TOKENS)))
    cuts = np.unique(np.cumsum(table.lengths(sentences)) // _CHUNK, return_index=True)[1][1:]
    for chunk in np.split(sentences, cuts):
        tokens = table[chunk]
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
def start_from_counts(model: Any, table: TokenTable, seed: int) -> None:
    """Give a BERT the word embeddings, and its output layer the log frequencies, that counts of a text say.

    Args:
        model: the language model; it is changed.
        table: the text.
        seed: of the factorisation.
    """
    from sklearn.utils.extmath import randomized_svd

    words = model.get_input_embeddings().weight
    counts, frequency = count_pairs(table, len(words))
    rank = min(words.shape[1], len(words) - 1)
    vectors, _, _ = randomized_svd(positive_information(counts), rank, random_state=seed)
    shorter = vectors * (_FREQUENT / (_FREQUENT + frequency / max(1, frequency.sum())))[:, None]
    shorter *= _NORM / max(float(np.linalg.norm(shorter, axis=1).mean()), 1e-12)
    words.normal_(0, 0.002)
    words[:, :rank] += torch.from_numpy(shorter).to(words)
    unigram = (frequency + 1.0) / (frequency.sum() + len(frequency))
    model.get_output_embeddings().bias.copy_(torch.from_numpy(np.log(unigram)))
