"""The token table: a corpus tokenised once, memory-mapped, and read by row."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.writer import ArrayFile
from selfsent.data.ragged import ranges
from selfsent.data.tokenizing import CachedTokenizer
from selfsent.data.views.tokens import Tokens
from selfsent.files import atomic_directory
from selfsent.integrity import checksums, damaged, is_signed, signed, warn_damaged
from selfsent.progress import SILENT, Progress

_FORMAT = 3
_ABOUT, _FILES = "tokens.json", ("ids.npy", "starts.npy", "offsets.npy")
LONGEST = 512
"""Tokens stored of a sentence, unless training reads more; training truncates further, to `max_length`."""


class TokenTable:
    """The tokens of one text column of a corpus, without special tokens.

    Args:
        directory: written by `build_table`.

    Raises:
        OSError, ValueError, KeyError, TypeError: it is missing or damaged.
    """

    def __init__(self, directory: Path) -> None:
        about = json.loads((directory / _ABOUT).read_text())
        odd = damaged(directory, about.get("sums", {})) if is_signed(about) else _ABOUT
        if odd:
            raise ValueError(f"{directory / odd} is not as it was written")
        files = (np.load(directory / name, mmap_mode="r", allow_pickle=False) for name in _FILES)
        self.ids, self.word_starts, self.offsets = files

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """(chosen,) tokens of the sentences at `rows`, (chosen,)."""
        return np.asarray(self.offsets[rows + 1] - self.offsets[rows])

    def __getitem__(self, rows: np.ndarray) -> Tokens:
        """The tokens of the sentences at `rows`, (chosen,), in that order."""
        lengths = self.lengths(rows)
        index = ranges(self.offsets[rows], lengths)
        return Tokens(self.ids[index].astype(np.int64), lengths, self.word_starts[index], rows)


def build_table(
    corpus: Corpus,
    tokenizer: Any,
    column: str,
    progress: Progress = SILENT,
    longest: int = LONGEST,
    before: str = "",
) -> TokenTable:
    """Tokenise a text column, or open the table made before by the same tokenizer.

    The name of the table is a hash of the tokenizer.

    Args:
        corpus: the corpus.
        tokenizer: a transformers tokenizer.
        column: the text column.
        progress: receives the number of sentences done.
        longest: tokens that are kept of a sentence.
        before: stands before each sentence: the end of a prompt, see `seam`.
    """
    content = tokenizer.backend_tokenizer.to_str()
    about = f"{_FORMAT}|{longest}|{column}|{content}" + (f"|{before}" if before else "")
    key = hashlib.sha256(about.encode()).hexdigest()[:16]
    directory = corpus.directory / f"tokens-{key}"
    if directory.exists():
        try:
            return TokenTable(directory)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            warn_damaged(directory)
            shutil.rmtree(directory, ignore_errors=True)
    reader = CachedTokenizer(Tokenizer.from_str(content))
    narrow = reader.tokenizer.get_vocab_size(with_added_tokens=True) <= 2**16
    with atomic_directory(directory) as temporary, ExitStack() as opened:
        kinds = np.uint16 if narrow else np.uint32, np.bool_, np.int64
        files = [ArrayFile(temporary / name, kind, opened) for name, kind in zip(_FILES, kinds, strict=True)]
        ids, starts, offsets = files
        offsets.append(np.zeros(1))
        advance, done = progress.counting("tokenising", len(corpus)), 0
        for texts in corpus.batches(column, size=4096):
            read = reader([before + text for text in texts] if before else texts).select(np.arange(len(texts)), longest)
            ids.append(read.ids)
            starts.append(read.word_starts)
            offsets.append(done + np.cumsum(read.lengths))
            done += len(read.ids)
            advance(len(texts))
        for file in files:
            file.close()
        (temporary / _ABOUT).write_text(json.dumps(signed({"sums": checksums(temporary, _FILES)})))
    return TokenTable(directory)
