"""What is made of a corpus before the first step, once: vocabulary, tokens, held-out part and starting weights."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.token_table import LONGEST, TokenTable, build_table
from selfsent.distributed import rank, wait
from selfsent.errors import BaseEncoderError, RunError, SettingsError
from selfsent.files import whole_directory, write_json
from selfsent.integrity import checksums, damaged, is_signed, signed
from selfsent.models.bases import resolve
from selfsent.pretraining.blocks import split
from selfsent.pretraining.options import POSITIONS, Options, Shape, VocabularyOptions
from selfsent.pretraining.start import make_start
from selfsent.pretraining.vocabulary import train_vocabulary
from selfsent.progress import Progress

Notice = Callable[[str], None]
_ABOUT = "prepared.json"


@dataclass(frozen=True)
class Prepared:
    """A folder in the run directory that holds all a run needs; the corpus is not read again.

    What is damaged raises a `RunError`: runs are copied from machine to machine.

    Args:
        folder: `vocabulary/`, `tokens-.../`, `rows/`, `start/` and, when all is there, `prepared.json`.
    """

    folder: Path

    @property
    def is_whole(self) -> bool:
        """Whether everything is there."""
        return (self.folder / _ABOUT).is_file()

    @property
    def about(self) -> dict[str, Any]:
        """Figures of the text."""
        with self._saying():
            found: dict[str, Any] = json.loads((self.folder / _ABOUT).read_text(encoding="utf-8"))
            odd = damaged(self.folder, found.get("sums", {})) if is_signed(found) else _ABOUT
            if odd:
                raise ValueError(f"{odd} is not as it was written")
        return found

    @property
    def vocabulary(self) -> Path:
        """Directory of the tokenizer."""
        return self.folder / "vocabulary"

    @property
    def start(self) -> Path:
        """Directory of the language model before its first step."""
        return self.folder / "start"

    @property
    def table(self) -> TokenTable:
        """The tokens of the corpus."""
        with self._saying():
            return TokenTable(self.folder / self.about["table"])

    def rows(self, part: str) -> np.ndarray:
        """Rows of the corpus to `train` on, or `held` out."""
        with self._saying():
            found: np.ndarray = np.load(self.folder / "rows" / f"{part}.npy", allow_pickle=False)
        return found

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{self.folder} is damaged ({error}): copy the whole run again, or --overwrite it") from None


def load_tokenizer(
    name: str | Path, changes: Collection[str] = (), special: Sequence[str] = ("cls", "sep", "pad", "mask")
) -> Any:
    """A tokenizer that an encoder came with, for a new encoder.

    Args:
        name: its directory, a finished run, a hub id or `bundled-raw`.
        changes: the options that were given, among which those of a vocabulary would go unread.
        special: the special tokens it must have.

    Raises:
        SettingsError: there is one of those.
        BaseEncoderError: there is none, or it lacks one of them.
    """
    from transformers import AutoTokenizer

    directory = resolve(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise BaseEncoderError(f"{name} has no tokenizer that can be loaded: {str(error).splitlines()[0]}") from None
    if not getattr(tokenizer, "is_fast", False):
        raise BaseEncoderError(f"{name} has no fast tokenizer: choose another --tokenizer")
    for kind in special:
        if getattr(tokenizer, f"{kind}_token_id") is None:
            raise BaseEncoderError(f"the tokenizer of {name} has no {kind} token: choose another --tokenizer")
    vocabulary = {item.name for item in dataclasses.fields(VocabularyOptions)}
    if unread := vocabulary.intersection(changes):
        flag = min(unread).replace("_", "-")
        raise SettingsError(f"--tokenizer brings a vocabulary of its own: leave out --{flag}")
    tokenizer.model_max_length = POSITIONS
    return tokenizer


def tokenizer_digest(tokenizer: Any) -> str:
    """A short digest of what a tokenizer does."""
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()[:16]


def prepare(
    prepared: Prepared,
    corpus: Corpus,
    given: Any | None,
    shape: Shape,
    options: Options,
    seed: int,
    progress: Progress,
) -> None:
    """Make what is not there yet; on one process, for all.

    Args:
        prepared: the folder.
        corpus: the text.
        given: a tokenizer to use; None to train one.
        shape: the encoder.
        options: how large a vocabulary, how much to hold out, which start.
        seed: of all that is random.
        progress: hears what is being done.

    Raises:
        SettingsError, CorpusError: the options do not fit the text.
    """
    if rank() == 0 and not prepared.is_whole:
        tokenizer = _vocabulary(prepared, corpus, given, options, progress.notice)
        advance = partial(progress.count, "tokenising", total=len(corpus))
        table = build_table(corpus, tokenizer, corpus.text_columns[0], advance, prepared.folder)
        train, held = split(corpus, table, options.held_out, seed)
        with whole_directory(prepared.folder / "rows") as temporary:
            np.save(temporary / "train.npy", train)
            np.save(temporary / "held.npy", held)
        progress.notice(f"starting weights: {options.start}")
        with whole_directory(prepared.start) as temporary:
            make_start(options.start, shape, tokenizer, table, train, seed).save_pretrained(temporary)
            tokenizer.save_pretrained(temporary)
        name = next(folder.name for folder in prepared.folder.glob("tokens-*"))
        made = (path for path in prepared.folder.glob("[!.]*/*") if path.parent.name != name)
        sums = checksums(prepared.folder, sorted(str(path.relative_to(prepared.folder)) for path in made))
        about = {"table": name, **_figures(corpus, table, train, held), "sums": sums}
        write_json(prepared.folder / _ABOUT, signed(json.loads(json.dumps(about))))
    wait()


def _vocabulary(prepared: Prepared, corpus: Corpus, given: Any | None, options: Options, notice: Notice) -> Any:
    from transformers import AutoTokenizer

    if not prepared.vocabulary.is_dir():
        if given is None:
            notice(f"vocabulary: at most {options.vocabulary_size:,} pieces of {corpus.report.counted(len(corpus))}")
        tokenizer = given or train_vocabulary(corpus, options.vocabulary_size, options.cased, options.vocabulary_kind)
        if given is None and len(tokenizer) < options.vocabulary_size:
            notice(f"vocabulary: there are no more than {len(tokenizer):,} pieces in so much text")
        with whole_directory(prepared.vocabulary) as temporary:
            tokenizer.save_pretrained(temporary)
    return AutoTokenizer.from_pretrained(prepared.vocabulary, local_files_only=True)


def _figures(corpus: Corpus, table: TokenTable, train: np.ndarray, held: np.ndarray) -> dict[str, Any]:
    lengths = table.lengths(held)
    whole = held[lengths < LONGEST]  # of the others the characters are known, but not of which tokens
    characters = sum(map(len, corpus.texts(whole)))
    return {
        "train_tokens": int(table.lengths(train).sum()),
        "held_out_tokens": int(lengths.sum()),
        "characters_per_token": characters / max(1, int(table.lengths(whole).sum())),
        "cut": int((table.lengths(np.arange(len(table))) == LONGEST).sum()),
    }
