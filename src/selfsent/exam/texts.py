"""The documents of a corpus, to draw an exam from, and those among them that a run has not read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.clean import clean, letters_of
from selfsent.data.corpus.mail import quoted_mail
from selfsent.data.corpus.sentences import split_sentences
from selfsent.errors import DataError, RunError
from selfsent.exam.exam import Text
from selfsent.models.bases import resolve
from selfsent.models.texts_read import TextsRead


def texts_of(
    corpus: Corpus, title: str | None = None, name: str | None = None, mails: Sequence[str] = ()
) -> list[Text]:
    """The documents of a corpus: rows that share one, or else each row.

    Args:
        corpus: read with `metadata_columns`, not split.
        title: metadata column with titles.
        name: metadata column with ids; by default documents are counted.
        mails: metadata columns with mails as they were, whose quotes the corpus is without.

    Raises:
        DataError: an id is empty, or two documents have the same.
    """
    inputs = corpus.input_rows
    rows = np.asarray(inputs.corpus_rows)
    known = np.flatnonzero(rows >= 0)
    described = inputs.describe(known)
    titles = defaultdict[int, dict[str, None]](dict)
    if title is not None:
        for row, text in zip(rows[known].tolist(), clean(map(_plain, described[title]))[0], strict=True):
            titles[row] |= {text: None} if text else {}
    firsts = np.searchsorted(known, inputs.first)
    quoted = [""] * len(corpus)
    for column in mails:
        mail = clean(quoted_mail(_plain(described[column][first])) for first in firsts)[0]
        quoted = [before or found for before, found in zip(quoted, mail, strict=True)]
    names = [str(number) for number in range(len(corpus))]
    if name is not None:
        names = [" ".join(_plain(described[name][first]).split()) for first in firsts]
        if odd := next((each for each, count in Counter(names).items() if count > 1 or not each), None):
            raise DataError(f"column {name}: the id {odd!r} is empty or that of two texts; leave out id_column")
    groups: dict[int, list[int]] = defaultdict(list)
    for row, document in enumerate(range(len(corpus)) if corpus.documents is None else corpus.documents.tolist()):
        groups[document].append(row)
    texts, found = corpus.texts(), list[Text]()
    for first, *others in groups.values():
        sentences = [texts[row] for row in (first, *others)] if others else split_sentences(texts[first])
        quotes = split_sentences(quoted[first])
        found.append(Text(names[first], tuple(titles[first]), tuple(sentences), tuple(quotes)))
    return found


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def unread(run: Path, texts: Sequence[Text]) -> set[str]:
    """The sentences, as their letters, of the documents of which a run has read none, by the record that it carries.

    Args:
        run: its directory, or a model's.
        texts: the documents.

    Raises:
        RunError: there is no such run, or it carries no record.
    """
    if not run.is_dir():
        raise RunError(f"{run} is no run of selfsent train")
    record = TextsRead.read(resolve(run))
    if not record:
        raise RunError(f"{run} carries no record of what it has read, as earlier versions did not: train it again")
    shares = record.shares([text.body for text in texts])
    return {*letters_of(s for text, share in zip(texts, shares, strict=True) if not share for s in text.sentences)}
