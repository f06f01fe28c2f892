"""The public functions: `train`, with a hold-out, scores before and after, and a card; `encode`, `pairs` and others."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.evaluation.hold_out import HoldOut
from selfsent.lexical.hybrid import PAIR_WEIGHT, check_weight
from selfsent.methods.ranking import Retriever
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import Side, encode as encode_texts, warn_on_truncation
from selfsent.models.export import Exported, check_export, export as export_graph
from selfsent.models.loading import load_encoder
from selfsent.models.opening import open_encoder
from selfsent.models.table import Table
from selfsent.naming import name_of
from selfsent.pipeline import AnyBase, AnyMethod, CheckedRun, Request, Source, train_once
from selfsent.progress import SILENT, Progress, shown
from selfsent.renamed import callbacks_as_progress, renamed_arguments
from selfsent.report.run import Run
from selfsent.search import Clusters, Pair, encode_corpus, find_clusters, most_similar_pairs
from selfsent.search.clusters import without_content
from selfsent.search.dedup import Deduplicated, Level, check_dedup, deduplicate
from selfsent.search.differences import Guard
from selfsent.search.exact import corpus_language
from selfsent.search.pairs import by_tfidf, candidates_for, in_input
from selfsent.search.similarity import Similarity, encoding_of
from selfsent.settings import Settings, with_signature_of
from selfsent.training.fit import isolated_rng
from selfsent.training.hard_negatives import HardNegatives, mine as mine_hard_negatives
from selfsent.training.run_config import ModelOptions, RunConfig


def check_train(
    method: AnyMethod = None,
    base: AnyBase = None,
    output: AnyBase = None,
    resume: bool = False,
    overwrite: bool = False,
    **arguments: Any,
) -> CheckedRun:
    """Check the arguments of `train`; the result, with its `plan`, can be given to `train` as `checked`.

    Raises:
        SelfsentError: a fault of the base, the settings or the run directory, in one line.
    """
    checked = Request.of(method, base, resume=resume, **arguments).checked()
    return checked if output is None else checked.into(Path(output), resume, overwrite)


@with_signature_of(RunConfig, ModelOptions, Settings)
def train(
    corpus: Source,
    method: AnyMethod = None,
    base: AnyBase = None,
    output: AnyBase = "run",
    *,
    hold_out: HoldOut | int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    quiet: bool = False,
    checked: CheckedRun | None = None,
    **changes: Any,
) -> Run:
    """Train a sentence encoder, and score it before and after if the corpus has documents or pairs.

    Args:
        corpus: sentences, or pairs and triples with or without labels: a corpus, or anything `read_corpus` reads.
        method: name of a method of `selfsent.METHODS`, or its options, such as `SimCSE(temperature=0.05)`. None for
            the best for the corpus: `neighbours` if sentences have neighbours in documents (long texts, one per row,
            are split into documents).
        base: the encoder to start from: `bundled` or another shipped one, a directory, a run, or a hub id. None for the
            best shipped one that the method can train.
        output: the run directory: `run.json`, `metrics.jsonl`, `checkpoints/` and, at the end, `model/`.
        hold_out: number of documents to hold out for the score (and as many again for `dev="context"`), 0 for none; or
            an existing split. None for a tenth, at least 500, and a fifth of fewer than 1,000. Pairs that share a text
            count as one document.
        resume: continue the run in `output`.
        overwrite: discard the run in `output`.
        progress: receives notices and the progress of the run. By default they are shown, with bars in terminals and
            notebooks.
        quiet: show nothing.
        checked: the result of `check_train` for these arguments, which are then not read again.
        **changes: the options in the signature, and those of the method and the head. `augmentations` are
            one or two augmenters, such as `["synonym"]` or `["translate:pivot=spa", "translate:pivot=cat"]`: their
            texts become the two columns of the method, and are cached with the corpus.

    Raises:
        SelfsentError: a fault of the corpus, the base, the settings or the run directory, in one line.
    """
    with shown(progress, quiet) as display, isolated_rng():
        if checked is None:
            checked = check_train(method, base, output or "run", resume, overwrite, hold_out=hold_out, **changes)
        return train_once(corpus, checked, display)


Model = Encoder | Table | str | PathLike[str]
"""An encoder, or the name of one: a run, a directory, `bundled`, a hub id."""


def encode(model: Model, texts: Sequence[str], *, side: Side | None = None) -> NDArray[np.float32]:
    """The vectors of texts, (n, d); zeros for texts without tokens.

    Args:
        model: the encoder.
        texts: (n,) sentences.
        side: `query` or `document`, for models with prompts.

    Raises:
        SelfsentError: no such encoder, or one string instead of a list.
    """
    opened = open_encoder(model)
    with warn_on_truncation(opened):
        return encode_texts(opened, texts, side=side)


@renamed_arguments(word_weight="lexical_weight")
def pairs(
    model: Model,
    corpus: Corpus,
    top: int = 100,
    threshold: float = -1.0,
    lexical_weight: float = PAIR_WEIGHT,
    language: str | None = None,
) -> list[Pair]:
    """The most similar pairs of distinct texts, by the cosine of their vectors and their common words.

    `first` and `second` are rows of the input, the first ones with these texts.

    Args:
        model: the encoder.
        corpus: the texts.
        top: maximum number of pairs.
        threshold: minimum score, from -1 to 1.
        lexical_weight: of TF-IDF relative to the cosine; 0 for the cosine alone.
        language: of the stemmer; by default the language of most texts.

    Raises:
        SelfsentError: no such encoder or language, or an invalid weight.
    """
    check_weight(lexical_weight)
    vectors = encode_corpus(model, corpus)
    found = most_similar_pairs(vectors, *candidates_for(top, threshold, lexical_weight))
    if lexical_weight:
        found = by_tfidf(found, corpus, top, threshold, lexical_weight, language)
    return in_input(found, corpus)


def dedup(
    corpus: Corpus,
    level: Level = "near",
    *,
    model: Model = "bundled",
    threshold: float | None = None,
    precision: float | None = None,
    keep_row: str = "first",
    guard: Sequence[Guard] = (),
    lexical_weight: float = PAIR_WEIGHT,
    language: str | None = None,
    progress: Progress = SILENT,
) -> Deduplicated:
    """The rows of the input that stay without near-copies, and the families of near-copies.

    Each row that goes is close to the one that is kept for it, and no two kept rows are close.

    Args:
        corpus: the texts, read with `metadata_columns=()` or more, so that rows of the input are known.
        level: `exact`: equal once cleaned; `near`: nearly the same words; `meaning`: alike to an encoder, and by words.
        model: the encoder of `meaning`.
        threshold: least similarity of a copy, 0 to 1; None for 0.8 (near) and 0.85 (meaning).
        precision: choose the threshold at which this share of the copies are copies, such as 0.99; the estimate is
            `precision` of the result.
        keep_row: the row of a family that stays: `first`, `longest`, or `newest:COLUMN` by a carried column of dates or
            numbers.
        guard: changes that no copy may have: `numbers`, `negations`, `names`, `order` of words.
        lexical_weight: of the words beside the cosine, for `meaning`.
        language: of the stemmer, for `meaning`; by default the language of most texts.
        progress: receives the number of texts done.

    Raises:
        SelfsentError: no such option, encoder or column.

    Examples:
        >>> from selfsent import read_corpus
        >>> texts = ["The printer in room 4 is jammed", "the printer in room 4 is jammed!", "It rains"]
        >>> dedup(read_corpus(texts, metadata_columns=())).kept.tolist()
        [0, 2]
    """
    check_dedup(level, keep_row, guard, threshold, precision)
    check_weight(lexical_weight)
    similarity = None
    if level == "meaning":
        opened = open_encoder(model)
        vectors = encode_corpus(opened, corpus, progress, on_disk=True)
        similarity = Similarity(corpus, vectors, lexical_weight, language, encoding_of(opened))
    return deduplicate(corpus, level, threshold, keep_row, guard, precision, similarity, progress)


@callbacks_as_progress
@renamed_arguments(by="retriever", at_most="max_relative_score")
def mine(
    model: str | PathLike[str],
    corpus: Corpus,
    negatives: int = 3,
    retriever: Retriever = "both",
    max_relative_score: float = 0.95,
    progress: Progress = SILENT,
) -> HardNegatives:
    """Hard negatives of pairs: second texts that rank high for a first text, and are not its partner.

    They are kept with the corpus, so that they are mined once.

    Args:
        model: a name of an encoder.
        corpus: pairs.
        negatives: of each pair.
        retriever: ranking that finds them. base: cosine; words: BM25; both: as `search` ranks.
        max_relative_score: maximum score of a negative, relative to the partner's (Moreira et al. 2024,
            arXiv:2407.15831).
        progress: receives the number of rows done.

    Returns:
        Two arrays. `rows`, (pairs, negatives), has the row of each negative, whose second text it is, and the row
        itself where there are fewer. `scores`, (pairs, 1 + negatives), has those of the partner and of the negatives,
        −inf where there are fewer.

    Raises:
        SelfsentError: no such encoder, or no pairs.
    """
    if len(corpus.input_columns) < 2:
        raise SettingsError("negatives are mined for pairs: read the corpus with two text_columns")
    rows, name = np.arange(len(corpus)), str(model)
    return mine_hard_negatives(corpus, rows, name, negatives, retriever, max_relative_score, progress=progress)


def cluster(model: Model, corpus: Corpus, clusters: int | None = None, seed: int = 0) -> Clusters:
    """Groups of texts with similar meaning, largest first: for each row of the input (or sentence of it) its number.

    Args:
        model: the encoder.
        corpus: the texts; a row without one is in no group (-1).
        clusters: number of groups, by k-means; None for as many as the texts have, with outliers, and texts of nothing
            but courtesies, left out (-1).
        seed: of the first centres.

    Raises:
        SelfsentError: no such encoder, fewer than two groups, or fewer texts than groups.
    """
    empty = without_content((text for batch in corpus.batches() for text in batch), corpus_language(corpus))
    found = find_clusters(encode_corpus(model, corpus), clusters, seed, corpus.input_rows.repeats, empty)
    rows = np.asarray(corpus.input_rows.corpus_rows)
    cosine = np.where(rows < 0, np.float32(0), found.cosine[rows])
    return Clusters(np.where(rows < 0, -1, found.cluster[rows]), cosine, count=len(found.sizes))


def export(model: Model, output: str | Path, *, normalize: bool = False, overwrite: bool = False) -> Exported:
    """Write a directory with an encoder as an ONNX graph, from token ids to sentence vectors.

    Raises:
        SelfsentError: missing packages, an encoder that cannot be exported, or an unwritable directory.
    """
    check_export(Path(output), overwrite)
    encoder = name_of(model)
    return export_graph(load_encoder(encoder) if isinstance(encoder, str) else encoder, Path(output), normalize)
