"""The token table: a corpus tokenised once, memory-mapped, and read by row."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from selfsent.data.corpus import Corpus
from selfsent.data.ragged import ranges
from selfsent.data.tokenizing import CachedTokenizer
from selfsent.data.views.tokens import Tokens
from selfsent.files import atomic_directory
from selfsent.integrity import checksums, damaged, is_signed, signed, warn_damaged

_FORMAT = 1
_ABOUT, _FILES = "tokens.json", ("ids.bin", "starts.bin", "offsets.npy")
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
        self.offsets: np.ndarray = np.load(directory / "offsets.npy", mmap_mode="r")
        self.ids = self._mapped(directory / "ids.bin", about["dtype"])
        self.word_starts = self._mapped(directory / "starts.bin", "bool")

    def _mapped(self, path: Path, dtype: str) -> np.ndarray:
        size = int(self.offsets[-1])
        return np.memmap(path, np.dtype(dtype), "r", shape=(size,)) if size else np.empty(0, np.dtype(dtype))

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
    advance: Callable[[int], None] = lambda count: None,
    longest: int = LONGEST,
    before: str = "",
) -> TokenTable:
    """Tokenise a text column, or open the table made before by the same tokenizer.

    The name of the table is a hash of the tokenizer.

    Args:
        corpus: the corpus.
        tokenizer: a transformers tokenizer.
        column: the text column.
        advance: called with the number of sentences done since the last call.
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
    with atomic_directory(directory) as temporary:
        _write(corpus, CachedTokenizer(Tokenizer.from_str(content)), column, longest, before, temporary, advance)
    return TokenTable(directory)


def _write(
    corpus: Corpus,
    reader: CachedTokenizer,
    column: str,
    longest: int,
    before: str,
    directory: Path,
    advance: Callable[[int], None],
) -> None:
    size = reader.tokenizer.get_vocab_size(with_added_tokens=True)
    dtype = np.dtype(np.uint16 if size <= 2**16 else np.uint32)
    offsets = np.zeros(len(corpus) + 1, dtype=np.int64)
    done = 0
    with (directory / "ids.bin").open("wb") as ids, (directory / "starts.bin").open("wb") as starts:
        for texts in corpus.batches(column, size=4096):
            read = reader([before + text for text in texts] if before else texts).select(np.arange(len(texts)), longest)
            ids.write(read.ids.astype(dtype).tobytes())
            starts.write(read.word_starts.tobytes())
            offsets[done + 1 : done + 1 + len(texts)] = read.lengths
            done += len(texts)
            advance(len(texts))
    np.cumsum(offsets, out=offsets)
    np.save(directory / "offsets.npy", offsets)
    about = {"dtype": dtype.name, "rows": done, "tokens": int(offsets[-1]), "sums": checksums(directory, _FILES)}
    (directory / _ABOUT).write_text(json.dumps(signed(about)))
