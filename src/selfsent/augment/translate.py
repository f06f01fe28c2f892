"""Back-translation: the views of BSL (Zhang et al. 2021, section 4.1)."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from selfsent.augment.augmenter import Augmenter, Change, Sentences, state_of
from selfsent.errors import BaseEncoderError, MakerError, SettingsError, first_line
from selfsent.settings import setting

Translator = Callable[[Sequence[str]], list[str]]
"""(n,) texts -> (n,) texts of another language."""
Generate = Callable[[list[list[int]]], list[list[int]]]
"""Token ids of sentences -> token ids of their translations."""

_TOKENS = 2048
"""Tokens, padding included, in one batch."""
_LONGEST = 256
_LARGEST_OUTPUT = 1 << 26
"""Bytes that a program may write, beside sixteen times its input."""
_SHORT = {"eng": "en", "spa": "es", "cat": "ca", "deu": "de", "fra": "fr", "ara": "ar", "tur": "tr", "zho": "zh"}
"""Names of languages as opus-mt's models write them."""


@dataclass(frozen=True)
class Translate(Augmenter):
    """The sentence, translated into another language and back."""

    name = "translate"
    about = "translated into another language and back"
    random = False
    unchanged = "is the corpus in another language than --language says?"

    engine: Literal["marian", "command"] = setting(
        "marian", "marian: neural models; command: programs that map lines to lines"
    )
    pivot: str = setting("spa", "language to go through")
    language: str = setting("eng", "language of the corpus")
    there: str | None = setting(
        None, "marian: model into the pivot, directory or hub id (default: opus-mt's); command: the program"
    )
    back: str | None = setting(None, "the same for the way back")
    beams: int = setting(1, "marian: beam size", minimum=1)
    patience: float = setting(120.0, "command: seconds without output after which a program counts as hung", above=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine == "command":
            if not (self.there and self.back):
                raise SettingsError("translate --engine command needs two programs: give --there and --back")
            for line in (self.there, self.back):
                _words(line)  # rejects what is no command

    @property
    def chunk(self) -> int:
        """Small, as models make a few views a second; larger for programs, which are started for each chunk."""
        return super().chunk if self.engine == "command" else 32

    @property
    def always(self) -> tuple[str, ...]:
        """Engine and pivot; the pivot of programs is unknown."""
        return ("engine",) if self.engine == "command" else ("engine", "pivot")

    def identity(self) -> Any:
        """Everything the translation depends on, the files of models and programs included."""
        used = [name for way in self._ways() for name in way]
        if self.engine == "command":
            # A script or model passed to an interpreter matters as much as the interpreter.
            paths = [[shutil.which(program) or program, *filter(_is_file, rest)] for program, *rest in self._ways()]
            used = [path for each in paths for path in each]
        kept = ("engine", "pivot", "language", "there", "back", "beams")
        return [self.name, *(getattr(self, name) for name in kept), *map(state_of, used)]

    @contextmanager
    def start(self) -> Iterator[Change]:
        """Load both models, or find both programs."""
        there, back = (
            _program(way, self.patience) if self.engine == "command" else marian(way[0], self.beams)
            for way in self._ways()
        )

        def change(sentences: Sentences, key: int) -> list[str]:
            return back(there(sentences.texts))

        yield change

    def _ways(self) -> list[list[str]]:
        """For each direction, the model, or the words of the command."""
        if self.engine == "command":
            return [_words(line or "") for line in (self.there, self.back)]
        language, pivot = (_SHORT.get(name, name) for name in (self.language, self.pivot))
        pairs = (self.there, f"{language}-{pivot}"), (self.back, f"{pivot}-{language}")
        return [[given or f"Helsinki-NLP/opus-mt-{pair}"] for given, pair in pairs]


def _is_file(word: str) -> bool:
    return Path(word).is_file()


def _words(line: str) -> list[str]:
    """The words of a command, as a shell reads them."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise SettingsError(f"{line!r} is no command: {str(error).lower()}") from None
    if not words:
        raise SettingsError(f"{line!r} is no command: it is empty")
    return words


def _program(words: list[str], patience: float) -> Translator:
    """A translator that starts a program for each call: it reads lines, and writes one for each.

    Raises:
        SettingsError: there is no such program.
        MakerError: from the translator, if the program hangs, or gives more or fewer lines.
    """
    if shutil.which(words[0]) is None:
        raise SettingsError(f"there is no program {words[0]} to translate with")

    def translate(texts: Sequence[str]) -> list[str]:
        lines = "".join(f"{text}\n" for text in texts).encode()
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as errors:

            def fail(what: str) -> MakerError:
                errors.seek(0)
                last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                return MakerError(f"{shlex.join(words)} {what}" + "".join(f"; it says: {line[:200]}" for line in last))

            given.write(lines)
            given.seek(0)
            # A session of its own: Ctrl-C reaches selfsent alone, which then kills the whole process group.
            process = subprocess.Popen(words, stdin=given, stdout=answers, stderr=errors, start_new_session=True)
            try:
                size, since = 0, time.monotonic()
                while process.poll() is None:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.05)
                    written = os.fstat(answers.fileno()).st_size
                    if written > _LARGEST_OUTPUT + 16 * len(lines):  # endless output would fill the disk
                        raise fail("gave more answers than there were texts")
                    if written > size:
                        size, since = written, time.monotonic()
                    elif time.monotonic() - since > patience:
                        raise fail(f"has not answered for {patience:g} seconds")
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            answers.seek(0)
            try:
                text = answers.read().decode()
            except UnicodeDecodeError:
                raise fail("gave an answer that is not UTF-8") from None
            found = text.removesuffix("\n").split("\n") if text else []
            if len(found) != len(texts):
                raise fail(f"gave {len(found)} answers to {len(texts)} texts")
            return found

    return translate


def marian(model: str, beams: int) -> Translator:
    """A translator that a neural model makes: Marian and its like through transformers, or through ctranslate2.

    Args:
        model: a directory, or a hub id; a directory that ctranslate2's converter wrote, if that is installed.
        beams: beam size; 1 is greedy.

    Raises:
        BaseEncoderError: there is no such model, or it cannot be loaded.
    """
    from selfsent.foreign.transformers import silent

    try:
        with silent():
            tokenizer, generate = (_converted if (Path(model) / "model.bin").is_file() else _original)(model, beams)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise BaseEncoderError(f"{model} cannot be loaded as a translator: {first_line(error)}") from None

    def translate(texts: Sequence[str]) -> list[str]:
        encoded = tokenizer(list(texts), truncation=True, max_length=_LONGEST)["input_ids"]
        translated = [""] * len(texts)
        for chosen in batches([len(ids) for ids in encoded]):
            answers = generate([encoded[n] for n in chosen])
            for n, text in zip(chosen, tokenizer.batch_decode(answers, skip_special_tokens=True), strict=True):
                translated[n] = text
        return translated

    return translate


def batches(lengths: Sequence[int], tokens: int = _TOKENS) -> Iterator[list[int]]:
    """Indices of sentences of similar length, as many at a time as fit into a padded block."""
    order = sorted(range(len(lengths)), key=lambda n: -lengths[n])
    begin = 0
    while begin < len(order):
        chosen = order[begin : begin + max(1, tokens // max(1, lengths[order[begin]]))]
        yield chosen
        begin += len(chosen)


def _original(model: str, beams: int) -> tuple[Any, Generate]:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    options = {"dtype": torch.float32, "use_safetensors": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    network = AutoModelForSeq2SeqLM.from_pretrained(model, **options).eval()

    @torch.inference_mode()
    def generate(ids: list[list[int]]) -> list[list[int]]:
        block = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        length = min(_LONGEST, 2 * max(map(len, ids)) + 8)
        return list(network.generate(**block, num_beams=beams, do_sample=False, max_new_tokens=length).tolist())

    return tokenizer, generate


def _converted(model: str, beams: int) -> tuple[Any, Generate]:
    """A model that ctranslate2 converted, its tokenizer's files beside it."""
    import ctranslate2
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    network = ctranslate2.Translator(model, device="cpu", intra_threads=0)

    def generate(ids: list[list[int]]) -> list[list[int]]:
        tokens = [tokenizer.convert_ids_to_tokens(one) for one in ids]
        found = network.translate_batch(tokens, beam_size=beams, max_decoding_length=_LONGEST)
        return [tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]

    return tokenizer, generate
