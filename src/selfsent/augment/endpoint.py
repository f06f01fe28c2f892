"""A language model behind an OpenAI-compatible address: Ollama, vLLM, llama.cpp's server, or a paid service."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from selfsent.errors import AugmenterError, SettingsError, first_line

KEY = "OPENAI_API_KEY"
"""The environment variable with the key, if the server wants one."""
_LARGEST = 1 << 20
"""Maximum size of an answer in bytes."""
_TOKENS = 2048
"""Tokens that a model may write, its thoughts included."""
_LONGEST_WAIT = 60.0
_SLOW = "too slow"
"""The reason where an answer was given up."""
_PATIENCE = 4
"""Questions in a row that may be too slow."""
_THOUGHTS = re.compile(r"\A.*</think>|<think>.*", re.DOTALL)
"""Servers whose prompt ends with the opening tag send the closing one alone; an answer cut off has no closing one."""
_LOCAL = ("localhost", "127.0.0.1", "::1")
T = TypeVar("T")
_ODD = (ValueError, RecursionError, TypeError, KeyError, IndexError, AttributeError)
"""Exceptions raised by an answer that is no JSON, or of another form."""


class RefusedError(AugmenterError):
    """A server refused a question, which it would refuse again.

    Args:
        message: one line.
        status: of its answer.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Endpoint:
    """Answers of a language model, each asked for again if the server is busy or down.

    A question that was too slow is not sent again: most servers still write the answer that nobody waits for. As many
    answer one question after the other, several that are asked at a time have so many times as long.

    The key is taken from `OPENAI_API_KEY`. It is in no message, and goes to no other address.

    Args:
        url: as `http://localhost:11434/v1`.
        model: the server's name for it.
        timeout: seconds until an answer is given up that is asked for alone.
        tries: times a question is sent.
        parallel: questions at a time.
        pause: seconds before a question is sent again; twice as long each time.

    Raises:
        SettingsError: no address, no model, or a key that would be sent unencrypted.
    """

    def __init__(
        self, url: str, model: str, timeout: float = 60, tries: int = 4, parallel: int = 4, pause: float = 1
    ) -> None:
        import httpx

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise SettingsError(f"{parts.hostname or url} is no address like http://localhost:11434/v1")
        if not model:
            raise SettingsError(f"{url} serves models by name: give llm, such as llm=llama3.2")
        key = os.environ.get(KEY, "")
        if key and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise SettingsError(f"{url} would be sent {KEY} unencrypted: give an https address, or unset it")
        self.url, self.model, self.failed = url.rstrip("/"), model, Counter[str]()
        self._timeout, self._tries, self._parallel, self._pause = timeout, tries, parallel, pause
        self._slow = 0
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._client = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def answers(self, prompts: Sequence[str]) -> list[str]:
        """(n,) an answer to each prompt (n,); empty, and counted in `failed`, where there is none.

        Raises:
            AugmenterError: the server refuses, or answers none of them.
        """
        together = min(self._parallel, len(prompts))
        with ThreadPoolExecutor(self._parallel) as pool:
            try:
                found = list(pool.map(lambda prompt: self._answer(prompt, together), prompts))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if prompts and not any(found):
            raise self._unanswered(len(prompts), self.failed.most_common(1)[0][0])
        return found

    def _unanswered(self, count: int, reason: str) -> AugmenterError:
        said = f"{self.url} gave no answer to {count} questions in a row ({reason}). What was made is kept:"
        if reason == _SLOW:
            return AugmenterError(f"{said} give a `timeout` above {self._timeout:g}, or a smaller model")
        return AugmenterError(f"{said} give the same command again when it answers")

    def _answer(self, prompt: str, together: int) -> str:
        """One answer; empty after so many tries."""
        message = {"role": "user", "content": prompt}
        question = {"messages": [message], "max_completion_tokens": _TOKENS, "stream": False}
        found, reason = self.ask("chat/completions", question, _text_of, retry_slow=False, together=together)
        self._slow = self._slow + 1 if reason == _SLOW else 0
        if found:
            return found
        self.failed[reason] += 1
        if self._slow >= _PATIENCE:
            raise self._unanswered(self._slow, reason)
        return ""

    def ask(
        self,
        path: str,
        question: Mapping[str, Any],
        read: Callable[[bytes], T | None],
        largest: int = _LARGEST,
        retry_slow: bool = True,
        together: int = 1,
    ) -> tuple[T | None, str]:
        """The answer as `read` gives it; None, and the reason, after the last try.

        Args:
            path: below the address.
            question: fields sent beside the model's name.
            read: from the body to what is of use in it; None or empty where nothing is.
            largest: bytes of an answer that are read.
            retry_slow: whether a question whose answer was given up is sent again.
            together: questions under way at a time.

        Raises:
            RefusedError: the server refuses the question itself.
        """
        import httpx

        for number in range(self._tries):
            wait = self._pause * 2**number
            try:
                status, body, after = self._post(path, question, largest, self._timeout * together)
            except httpx.HTTPError as error:
                reason = _SLOW if isinstance(error, httpx.TimeoutException) else first_line(error)
                if reason == _SLOW and not retry_slow:
                    break
            else:
                if status < 300 and (answer := read(body)):
                    return answer, ""
                reason = f"status {status}" if status >= 300 else "no usable answer"
                if 300 <= status < 500 and status not in (408, 409, 425, 429):
                    raise RefusedError(f"{self.url} refused with status {status}{_why(status, body)}", status)
                wait = min(_LONGEST_WAIT, max(wait, after))
            if number + 1 < self._tries:
                time.sleep(wait)
        return None, reason

    def _post(self, path: str, question: Mapping[str, Any], largest: int, limit: float) -> tuple[int, bytes, float]:
        """Status, body and the seconds that the server asks to wait."""
        import httpx

        end, body = time.monotonic() + limit, bytearray()
        asked, until = {"model": self.model, **question}, httpx.Timeout(self._timeout, read=limit)
        with self._client.stream("POST", f"{self.url}/{path}", json=asked, timeout=until) as response:
            for part in response.iter_bytes():
                body += part
                if len(body) > largest:
                    return response.status_code, b"", 0.0
                if time.monotonic() > end:  # a trickle
                    raise httpx.ReadTimeout(_SLOW)
            after = response.headers.get("Retry-After", "")
            return response.status_code, bytes(body), float(after) if after.isdigit() else 0.0


def without_thoughts(answer: str) -> str:
    """The answer of a language model without what it thought before.

    Examples:
        >>> without_thoughts("The user wants a title.</think>Printers")
        'Printers'
    """
    return _THOUGHTS.sub("", answer)


def _text_of(body: bytes) -> str:
    """The text in an answer, without a last line that was cut off; empty if there is none."""
    try:
        choice = json.loads(body)["choices"][0]
        found, cut = choice["message"]["content"], choice.get("finish_reason") == "length"
    except _ODD:
        return ""
    if not isinstance(found, str):
        return ""
    return (cut and found.rstrip().rpartition("\n")[0]) or found


def _why(status: int, body: bytes) -> str:
    """The server's reason for a refusal; empty where it may repeat the key."""
    if status in (401, 403):
        return f": is {KEY} set, and right?"
    try:
        error = json.loads(body)["error"]
        said = error if isinstance(error, str) else error["message"]
    except _ODD:
        return ""
    key = os.environ.get(KEY, "")
    return f": {said[:200]}" if isinstance(said, str) and said and not (key and key in said) else ""
