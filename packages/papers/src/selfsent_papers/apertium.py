"""Translation by Apertium (Forcada et al. 2011): rules and dictionaries, offline, of Debian's packages.

It made the views of our BSL rows; the paper's are Google's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess  # nosec B404 # fixed programs, without a shell
from collections.abc import Sequence
from pathlib import Path

from selfsent.errors import AugmenterError, SettingsError

PATIENCE = 600
"""Seconds for the texts of one call, after which the programs count as hung."""
_RESERVED = re.compile(r"([\[\]{}^$/\\@<>])")
_ESCAPED = re.compile(r"\\(.)")
# Words that a dictionary lacks are marked: * unknown, @ without translation, # without inflected form.
_MARK = re.compile(r"(?<![\\\w])[*@#](?=\\?\w)")
_BLANK = re.compile(r"\[\]|\[\[/?[^\]]*\]\]")
_ENDS = (".", "!", "?")
# A sentinel that passes unchanged; behind it, each program of the pipeline ends its output with one more empty answer.
_END = "[end]"
# The statistical tagger has state: it tagged 36 of 300 sentences differently after other sentences. A new tagger for
# each sentence takes two to four times as long, but makes translations depend on the sentence alone.
_TAGGER = re.compile(r"apertium-tagger -z -g \$2 ('[^']*')")
_FORGETFUL = r"""while IFS= read -r -d '' text; do apertium-tagger -g $2 \1 <<<"$text"; printf '\\0'; done"""


def mode_file(language: str, target: str) -> Path:
    """The mode file, which lists the programs of a pair of languages.

    Args:
        language: to translate from, such as `eng`.
        target: to translate to, such as `spa`.

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


class Apertium:
    """A translator for a pair of languages: n texts -> n texts, each by itself.

    Args:
        language: to translate from, such as `eng`.
        target: to translate to, such as `spa`.

    Raises:
        SettingsError: Apertium, or this pair of languages, is not installed.

    Examples:
        >>> Apertium("eng", "spa")(["The cat sat on the mat."])  # doctest: +SKIP
    """

    def __init__(self, language: str, target: str) -> None:
        self.name, self.path = f"apertium {language}-{target}", mode_file(language, target)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The translations of texts.

        Raises:
            AugmenterError: the programs fail, hang, or give more or fewer answers than there are texts.
        """
        script = self._run(["apertium-wblank-mode", "-z", str(self.path)], "")
        # The first argument suppresses marks of unknown words, the second belongs to the tagger.
        command = ["bash", "-c", _TAGGER.sub(_FORGETFUL, script), "bash", "-n", ""]
        answers = self._run(command, "".join(f"{text}\0" for text in [*map(_marked, texts), _END]))
        *found, end = answers.split("\0")[: len(texts) + 1]
        if end.strip() != _END:
            raise AugmenterError(f"{self.name} gave more or fewer answers than there were texts")
        return [_plain(answer, text) for answer, text in zip(found, texts, strict=True)]

    def _run(self, command: list[str], given: str) -> str:
        try:
            done = subprocess.run(  # nosec B603 # fixed programs, without a shell
                command, input=given.encode(), capture_output=True, timeout=PATIENCE, start_new_session=True
            )
            text = done.stdout.decode()
        except subprocess.TimeoutExpired:
            raise AugmenterError(f"{self.name} has not answered for {PATIENCE} seconds") from None
        except OSError as error:
            raise AugmenterError(f"{self.name} cannot be started: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise AugmenterError(f"{self.name} gave an answer that is not UTF-8") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise AugmenterError(f"{self.name} failed" + "".join(f"; it says: {line[:200]}" for line in said))
        return text


def _marked(text: str) -> str:
    """A text in Apertium's stream format, with a final full stop, which the tagger needs."""
    text = " ".join(text.replace("\0", " ").split())
    return _RESERVED.sub(r"\\\1", text) + ("[]" if text.endswith(_ENDS) else ".[]")


def _plain(answer: str, text: str) -> str:
    """A translation without marks, and without a full stop that was added."""
    answer = " ".join(_ESCAPED.sub(r"\1", _MARK.sub("", _BLANK.sub("", answer))).split())
    return answer if text.rstrip().endswith(_ENDS) else answer.removesuffix(".").rstrip()
