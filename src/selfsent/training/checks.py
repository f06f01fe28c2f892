"""Checks of a run's data before the first step: its labels, and faults that would go unnoticed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from selfsent.data.batches import Batches
from selfsent.data.corpus import Corpus
from selfsent.data.views.noise import MaskTokens, Noise
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError
from selfsent.methods.method import Labels
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder

_SENTENCES, _WORDS = 8, 6
_MOST_CLASSES = 1000
_NO_CLASS = ("", "-")
"""Labels of rows on which annotators did not agree, as in SNLI."""


KnownLabels = tuple[np.ndarray, tuple[str, ...]]
"""(corpus rows,) int64 classes 0, 1, ... or float32 scores; names of the classes in the corpus, none with scores."""


def facts_of(corpus: Corpus) -> dict[str, Any]:
    """Facts of a corpus that options may depend on."""
    classes = 0 if corpus.labels is None else len(corpus.label_names or np.unique(corpus.labels))
    scores = _scores(corpus)
    largest = 0.0 if scores is None else float(scores.max())
    known = {"classes": classes if classes > 1 else None, "largest": largest if largest > 0 else None}
    return {"columns": len(corpus.input_columns), **known}


def labels_of(wanted: Labels, method: str, corpus: Corpus, rows: np.ndarray) -> KnownLabels:
    """The labels of all rows.

    Args:
        wanted: labels that the method needs.
        method: its name, for messages.
        corpus: the corpus with the labels.
        rows: (sentences,) rows to train on; their labels must differ.

    Raises:
        SettingsError: labels are missing, of another kind, out of range, or all the same.
    """
    found = _classes(wanted, method, corpus) if wanted.kind == "class" else (_scaled(wanted, method, corpus), ())
    values, names = found
    chosen = values[rows]
    if (chosen == chosen[0]).all():
        same = names[int(chosen[0])] if names else f"{chosen[0]:g}"
        problem = f"all {len(rows):,} rows have the same {wanted.kind}, {same}: {method} has nothing to learn"
        raise SettingsError(problem)
    return found


def _classes(wanted: Labels, method: str, corpus: Corpus) -> KnownLabels:
    if corpus.labels is None:
        why = "the labels of the corpus are no whole numbers" if corpus.scores is not None else "the corpus has none"
        raise SettingsError(f"{method} needs a class for each row, and {why}: name their column with label_column")
    labels = np.asarray(corpus.labels)
    if corpus.label_names is not None:
        names, codes = corpus.label_names, labels
        none = np.flatnonzero(np.isin(labels, [at for at, name in enumerate(names) if name.strip() in _NO_CLASS]))
    else:
        numbers, codes = np.unique(labels, return_inverse=True)
        names = tuple(map(str, numbers.tolist()))
        none = np.flatnonzero(labels < 0)
    if len(none):
        name = repr(names[codes[none[0]]])
        raise SettingsError(f"row {none[0] + 1} of the corpus has the class {name}, which means none: leave it out")
    most = wanted.classes or _MOST_CLASSES
    if len(names) > most:
        limit = f"classes={most}" if wanted.classes else f"{most:,}"
        problem = f"the label column holds {len(names):,} classes, more than {limit}"
        raise SettingsError(f"{problem}: is it the right column?")
    return codes.astype(np.int64), names


def _scaled(wanted: Labels, method: str, corpus: Corpus) -> np.ndarray:
    scores = _scores(corpus)
    if scores is None:
        names = corpus.label_names
        why = "the corpus has none" if names is None else f"the label column holds names, such as {names[0]!r}"
        raise SettingsError(f"{method} needs a score for each row, and {why}: give score_column{wanted.hint}")
    low, high = float(scores.min()), float(scores.max())
    scale = wanted.scale or 1.0
    if not wanted.low <= low / scale <= high / scale <= wanted.high:
        possible = low >= 0 or wanted.low < 0
        advice = f"give scale={max(abs(low), abs(high)):g}" if possible else "add a number to all of them"
        left = f"divided by scale={scale:g} leaves {method}'s range of {wanted.low:g} to {wanted.high:g}"
        raise SettingsError(f"scores reach from {low:g} to {high:g}, which {left}: {advice}")
    return scores.astype(np.float32)


def _scores(corpus: Corpus) -> np.ndarray | None:
    """Scores, or labels that are whole numbers."""
    if corpus.scores is not None:
        return np.asarray(corpus.scores)
    return None if corpus.labels is None or corpus.label_names is not None else np.asarray(corpus.labels)


@torch.no_grad()
def reject_constant(model: Encoder, template: Template) -> None:
    """Reject an encoder that gives one vector to sentences which begin with the same word, whatever follows.

    Raises:
        SettingsError: it does, as a causal model with `cls` pooling must: its first token sees no other.
    """
    ordinary = np.flatnonzero(template.ordinary)
    ids = ordinary[np.random.default_rng(0).integers(len(ordinary), size=(_SENTENCES, _WORDS))]
    ids[:, 0] = ids[0, 0]
    lengths, rows = np.full(_SENTENCES, _WORDS), np.arange(_SENTENCES)
    packed = template.pack(Tokens(ids.ravel(), lengths, np.ones(ids.size, dtype=bool), rows), ids.size)
    with without_dropout(model):
        unit = F.normalize(model(packed.to(model.device)).float(), dim=-1)
    if float((unit - unit[:1]).norm(dim=-1).max()) < 1e-5:
        problem = f"sentences that begin alike all have the same vector with pooling={model.pooling}"
        advice = "the first token of a causal model sees no other; give pooling=mean or lasttoken"
        raise SettingsError(f"{problem}: {advice}")


def reject_wordless(tokenizer: Any, noise: Noise, texts: Sequence[str]) -> None:
    """Reject noise on words where most sentences are a single word, so that it could change none of them.

    Raises:
        SettingsError: most sentences are, as in scripts without spaces.
    """
    if isinstance(noise, MaskTokens):
        return
    encoded = tokenizer(list(texts), add_special_tokens=False)
    single = sum(len(set(encoded.word_ids(number))) < 2 for number in range(len(texts)))
    if single > len(texts) / 2:
        problem = f"noise on words can do nothing: {single} of {len(texts)} texts are one word to this base's tokenizer"
        advice = "put spaces between the words first, or do without noise, such as with crop_words=0"
        raise SettingsError(f"{problem}; {advice}")


def reject_alike(batches: Batches) -> None:
    """Reject a corpus with only one text in its first batch, once truncated and damaged: nothing could be learned.

    Raises:
        SettingsError: it does, such as where the tokenizer knows none of the words.
    """
    rows = batches.rows_at(0)
    views = [view for view in batches.views_of(rows, 0) if view.given_targets is None]
    if len(rows) > 1 and views and all(bool((view.texts == view.texts[0]).all()) for view in views):
        problem = "all sentences of a batch are the same to this base once cut and damaged"
        advice = "raise max_length, weaken the noise, or take a base that knows the language"
        raise SettingsError(f"{problem}, so that nothing can be learned: {advice}")
