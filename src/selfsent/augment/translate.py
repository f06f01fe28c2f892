"""Back-translation: the views of BSL (Zhang et al. 2021, section 4.1)."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from selfsent.augment.apertium import Translator, apertium, mode_file
from selfsent.augment.augmenter import Augmenter, Change, Sentences, state_of
from selfsent.errors import SettingsError
from selfsent.settings import setting


@dataclass(frozen=True)
class Translate(Augmenter):
    """The sentence, translated into another language and back."""

    name = "translate"
    about = "translated into another language and back"
    random = False
    unchanged = "is the corpus in another language than --language says?"

    engine: Literal["apertium", "marian", "command"] = setting(
        "apertium",
        "apertium: rules, Debian's packages; marian: neural models; command: programs that map lines to lines",
    )
    pivot: str = setting("spa", "language to go through, as the engine names it")
    language: str = setting("eng", "language of the corpus, as the engine names it")
    there: str | None = setting(
        None, "marian: model into the pivot, directory or hub id (default: opus-mt's); command: the program"
    )
    back: str | None = setting(None, "the same for the way back")
    beams: int = setting(1, "marian: translations followed at once", minimum=1)
    pipelines: int | None = setting(
        None, "apertium: pipelines side by side (default: one for each two cores)", minimum=1
    )
    patience: float = setting(120.0, "seconds without an answer after which a program counts as hung", above=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine == "command" and not (self.there and self.back):
            raise SettingsError("translate --engine command needs two programs: give --there and --back")
        if self.engine == "apertium" and (self.there or self.back):
            raise SettingsError("--there and --back belong to --engine marian or command")
        if self.engine == "command":
            list(self._ways())  # rejects what is no command

    @property
    def chunk(self) -> int:
        """Small, as some engines make three views a second; larger for programs, which are started for each chunk."""
        return super().chunk if self.engine == "command" else 32

    @property
    def always(self) -> tuple[str, ...]:
        """Engine and pivot; the pivot of programs is unknown."""
        return ("engine",) if self.engine == "command" else ("engine", "pivot")

    def identity(self) -> Any:
        """Everything the translation depends on: not the number of pipelines, nor the patience."""
        kept = ("engine", "pivot", "language", "there", "back", "beams")
        used = [path for paths, _ in self._ways() for path in paths]
        return [self.name, *(getattr(self, name) for name in kept), *map(state_of, used)]

    @contextmanager
    def start(self) -> Iterator[Change]:
        """Start both ways."""
        with ExitStack() as opened:
            there, back = (opened.enter_context(way()) for _, way in self._ways())

            def change(sentences: Sentences, key: int) -> list[str]:
                return back(there(sentences.texts))

            yield change

    def _ways(self) -> Iterator[tuple[list[str | Path], Callable[[], AbstractContextManager[Translator]]]]:
        """For each direction, the files that it depends on, and what opens its translator."""
        if self.engine == "apertium":
            pipelines = self.pipelines or max(1, (os.cpu_count() or 1) // 2)
            for way in ((self.language, self.pivot), (self.pivot, self.language)):
                yield [mode_file(*way)], partial(apertium, *way, pipelines, self.patience)
        elif self.engine == "marian":
            from selfsent.augment.marian import marian

            language, pivot = (_SHORT.get(name, name) for name in (self.language, self.pivot))
            for given, pair in ((self.there, f"{language}-{pivot}"), (self.back, f"{pivot}-{language}")):
                model = given or f"Helsinki-NLP/opus-mt-{pair}"
                yield [model], partial(marian, model, self.beams)
        else:
            for line in (self.there, self.back):
                program, *arguments = words = _words(line or "")
                # A script or model passed to an interpreter matters as much as the interpreter.
                files = [word for word in arguments if Path(word).is_file()]
                yield [shutil.which(program) or program, *files], partial(_command, words, self.patience)


_SHORT = {"eng": "en", "spa": "es", "cat": "ca", "deu": "de", "fra": "fr", "ara": "ar", "tur": "tr", "zho": "zh"}
"""Names of languages as opus-mt's models write them."""


def _words(line: str) -> list[str]:
    """The words of a command, as a shell reads them."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise SettingsError(f"{line!r} is no command: {str(error).lower()}") from None
    if not words:
        raise SettingsError(f"{line!r} is no command: it is empty")
    return words


@contextmanager
def _command(words: list[str], patience: float) -> Iterator[Translator]:
    """A program that maps lines to lines; started anew for every chunk, as it may hold its answers back to the end."""
    from selfsent.augment.processes import Program

    if shutil.which(words[0]) is None:
        raise SettingsError(f"there is no program {words[0]} to translate with")

    def translate(texts: Sequence[str]) -> list[str]:
        with closing(Program(shlex.join(words), words, b"\n", patience)) as program:
            return program.answers(texts, last=True)

    yield translate
