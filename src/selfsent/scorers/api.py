"""Vectors of an API in OpenAI's format, as many services and servers have it: `api:MODEL`."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence

import numpy as np

from selfsent.augment.endpoint import Endpoint, RefusedError
from selfsent.data.vector_files import Vectors
from selfsent.errors import AugmenterError, DataError, SettingsError

PREFIX = "api:"
ADDRESS = "OPENAI_BASE_URL"
"""The environment variable with the address, as OpenAI's own client reads it; the key is in `OPENAI_API_KEY`."""
_BATCH = 64
"""Maximum number of texts sent together."""
_LARGEST = 1 << 26
"""Maximum size of an answer in bytes."""
_TOO_LARGE = (400, 413)
"""Statuses with which servers refuse too many texts."""
_ODD = (ValueError, RecursionError, TypeError, KeyError, IndexError)


def api_model(name: str) -> str:
    """The server's name of the model in `api:MODEL`; empty for other names."""
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""


def address_of(name: str) -> str:
    """The address that `api:MODEL` is asked at, with the model; empty for other names.

    Raises:
        SettingsError: no address in the environment.
    """
    if not (model := api_model(name)):
        return ""
    if not (url := os.environ.get(ADDRESS, "")):
        advice = f"set {ADDRESS}, as to http://localhost:8080/v1 (its key, if it wants one, is OPENAI_API_KEY)"
        raise SettingsError(f"{name} is encoded by an API, and no address is known: {advice}")
    return f"{url.rstrip('/')}#{model}"


class ApiVectors:
    """Vectors of an API's encoder: n texts -> (n, d). The texts are sent to the address in `OPENAI_BASE_URL`.

    Requests that are too large or too slow are halved, and so are those after them. A server that is busy or down is
    asked again.

    Args:
        name: `api:MODEL`.
        timeout: seconds until an answer is given up.
        pause: seconds before a question is sent again; twice as long each time.

    Raises:
        SettingsError: no address in the environment, or a key that would be sent unencrypted.

    Example:
        >>> vectors = ApiVectors("api:text-embedding-3-small")  # doctest: +SKIP
        >>> vectors(["a sentence", "another one"]).shape  # doctest: +SKIP
        (2, 1536)
    """

    def __init__(self, name: str, timeout: float = 60, pause: float = 1) -> None:
        url, _, model = address_of(name).rpartition("#")
        self._endpoint = Endpoint(url, model, timeout, pause=pause)
        self._size = _BATCH

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, (n, d), float32.

        Raises:
            DataError: the API refuses, or gives no vectors.
        """
        parts: list[Vectors] = []
        start = 0
        while start < len(texts):
            part = texts[start : start + self._size]
            if (found := self._asked(part)) is None:
                self._size = len(part) // 2
            else:
                parts.append(found)
                start += len(part)
        try:
            return np.concatenate(parts)
        except ValueError:
            raise DataError(f"{self._endpoint.url} gave vectors of several sizes") from None

    def _asked(self, texts: Sequence[str]) -> Vectors | None:
        """The vectors of texts; None where fewer should be asked for at once."""
        several = len(texts) > 1
        try:
            found, reason = self._endpoint.ask(
                "embeddings",
                {"input": list(texts)},
                lambda body: _read(body, len(texts)),
                _LARGEST,
                retry_slow=not several,
            )
        except RefusedError as error:
            if several and error.status in _TOO_LARGE:
                return None
            raise DataError(str(error)) from None
        except AugmenterError as error:
            raise DataError(str(error)) from None
        if found is not None:
            return np.stack(found)
        if several and reason == "too slow":
            return None
        raise DataError(f"{self._endpoint.url} gave no vectors of {len(texts)} texts ({reason})")


def _read(body: bytes, count: int) -> list[Vectors] | None:
    """The vectors in an answer, in the order of the texts; None if there are others."""
    try:
        found = {item["index"]: _numbers(item["embedding"]) for item in json.loads(body)["data"]}
        rows = [found[number] for number in range(count)]
    except _ODD:
        return None
    return rows if len({row.shape for row in rows}) == 1 and rows[0].ndim == 1 and rows[0].size else None


def _numbers(vector: list[float] | str) -> Vectors:
    """A vector from a list, or, as some servers send it, from base64 of float32."""
    return np.frombuffer(base64.b64decode(vector), "<f4") if isinstance(vector, str) else np.asarray(vector, np.float32)
