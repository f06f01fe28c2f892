"""Translation by Apertium (Forcada et al. 2011): its programs kept alive, several pipelines side by side."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from selfsent.augment.processes import Program
from selfsent.errors import MakerError, SettingsError

Translator = Callable[[Sequence[str]], list[str]]
"""(n,) texts -> (n,) texts of another language."""

_RESERVED = re.compile(r"([\[\]{}^$/\\@<>])")
_ESCAPED = re.compile(r"\\(.)")
# Words that a dictionary lacks are marked: * unknown, @ without translation, # without inflected form.
_MARK = re.compile(r"(?<![\\\w])[*@#](?=\\?\w)")
_ENDS = (".", "!", "?")
# A sentinel that passes through unchanged: if it does not come back last, a text had more than one answer.
_END = "[end]"
_BLANK = re.compile(r"\[\]|\[\[/?[^\]]*\]\]")

# The statistical tagger has state: it tagged 36 of 300 sentences differently after other sentences. A new tagger for
# each sentence takes two to four times as long, but makes translations depend on the sentence alone.
_TAGGER = re.compile(r"apertium-tagger -z -g \$2 ('[^']*')")
_FORGETFUL = r"""while IFS= read -r -d '' text; do apertium-tagger -g $2 \1 <<<"$text"; printf '\\0'; done"""


def mode_file(language: str, target: str) -> Path:
    """The mode file, which lists the programs of a pipeline.

    Raises:
        SettingsError: Apertium, or this pair of languages, is not installed.
    """
    folder = Path(os.environ.get("APERTIUM_DATADIR", "/usr/share/apertium")) / "modes"
    if shutil.which("apertium-wblank-mode") is None or not folder.is_dir():
        raise SettingsError("apertium is not installed: on Debian, apt install apertium apertium-eng-spa")
    path = folder / f"{language}-{target}.mode"
    if not path.is_file():
        there = ", ".join(sorted(mode.stem for mode in folder.glob("*.mode"))) or "none"
        raise SettingsError(f"apertium does not translate {language}-{target}; installed are {there}")
    return path


@contextmanager
def apertium(language: str, target: str, pipelines: int, patience: float) -> Iterator[Translator]:
    """A translator for a pair of languages.

    Args:
        language: to translate from, as in `eng`.
        target: to translate to, as in `spa`.
        pipelines: how many run side by side; each is a dozen programs.
        patience: seconds without an answer after which a pipeline counts as hung.

    Raises:
        SettingsError: it is not installed.
        MakerError: a pipeline broke.
    """
    path = mode_file(language, target)
    script = subprocess.run(["apertium-wblank-mode", "-z", str(path)], capture_output=True, text=True, check=True)
    # The first argument suppresses marks of unknown words, the second belongs to the tagger.
    command = ["bash", "-c", _TAGGER.sub(_FORGETFUL, script.stdout), "bash", "-n", ""]
    with ExitStack() as opened:
        pool = opened.enter_context(ThreadPoolExecutor(pipelines))
        name = f"apertium {language}-{target}"
        running = [opened.enter_context(closing(Program(name, command, b"\0", patience))) for _ in range(pipelines)]

        def answers(program: Program, texts: Sequence[str]) -> list[str]:
            *found, end = program.answers([*map(_marked, texts), _END])
            if end.strip() != _END:
                raise MakerError(f"{name} gave more answers than there were texts")
            return [_plain(answer, text) for answer, text in zip(found, texts, strict=True)]

        def translate(texts: Sequence[str]) -> list[str]:
            translated = [""] * len(texts)
            shares = pool.map(answers, running, (texts[number::pipelines] for number in range(pipelines)))
            for number, share in enumerate(shares):
                translated[number::pipelines] = share
            return translated

        yield translate


def _marked(text: str) -> str:
    """A text in Apertium's stream format, with a final full stop, which the tagger needs."""
    return _RESERVED.sub(r"\\\1", text) + ("[]" if text.endswith(_ENDS) else ".[]")


def _plain(answer: str, text: str) -> str:
    """A translation without marks, and without a full stop that was added."""
    answer = " ".join(_ESCAPED.sub(r"\1", _MARK.sub("", _BLANK.sub("", answer))).split())
    return answer if text.endswith(_ENDS) else answer.removesuffix(".").rstrip()
