"""Vectors of an API in OpenAI's format, as many services and servers have it: `api:MODEL`."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from urllib.parse import unquote

import numpy as np

from selfsent.augment.endpoint import Endpoint, RefusedError
from selfsent.data.vector_files import Vectors
from selfsent.errors import AugmenterError, DataError, SettingsError
from selfsent.models.encoding import Side

PREFIX = "api:"
ADDRESS = "OPENAI_BASE_URL"
"""The environment variable with the address, as OpenAI's own client reads it; the key is in `OPENAI_API_KEY`."""
_BATCH = 64
"""Maximum number of texts sent together."""
_LARGEST = 1 << 26
"""Maximum size of an answer in bytes."""
_TOO_LARGE = (400, 413, 422)
"""Statuses with which servers refuse too many texts."""
_ODD = (ValueError, RecursionError, TypeError, KeyError, IndexError, AttributeError)


_PROMPT = "prompt"
"""The field that no server gets: it is put before the texts."""
_TEXTS = "input"
"""The field of the request that holds the texts."""


def api_model(name: str) -> str:
    """The server's name of the model in `api:MODEL`; empty for other names."""
    return name.removeprefix(PREFIX).partition("?")[0] if name.startswith(PREFIX) else ""


def fields_of(name: str) -> dict[str, tuple[str, str]]:
    r"""The fields of `api:MODEL?FIELD=QUERY|DOCUMENT&...`, each with its value for queries and for documents.

    Raises:
        SettingsError: another form.

    Examples:
        >>> fields_of("api:e5?prompt=query: |passage: "), fields_of("api:e5?input_type=query|passage&prompt=Find:%0A|")
        ({'prompt': ('query: ', 'passage: ')}, {'input_type': ('query', 'passage'), 'prompt': ('Find:\n', '')})
    """
    _, asked, fields = name.partition("?")
    found = {}
    for each in fields.split("&") if asked else ():
        field, _, values = each.partition("=")
        query, both, document = values.partition("|")
        if not (field and both):
            problem = f"{name} gives no {field or 'field'} for queries and for documents"
            raise SettingsError(f"{problem}: write {PREFIX}{api_model(name)}?{field or _PROMPT}=QUERY|DOCUMENT")
        if field in found:
            raise SettingsError(f"{name} gives {field} twice: leave one out")
        if field == _TEXTS:
            raise SettingsError(f"{name} gives the field {field}, in which the texts are sent: leave it out")
        found[field] = unquote(query), unquote(document)
    return found


def address_of(name: str) -> str:
    """The address that `api:MODEL` is asked at, with the model and its fields; empty for other names.

    Raises:
        SettingsError: no address in the environment.
    """
    if not api_model(name):
        return ""
    if not (url := os.environ.get(ADDRESS, "")):
        advice = f"set {ADDRESS}, as to http://localhost:8080/v1 (its key, if it wants one, is OPENAI_API_KEY)"
        raise SettingsError(f"{name} is encoded by an API, and no address is known: {advice}")
    return f"{url.rstrip('/')}#{name.removeprefix(PREFIX)}"


class ApiVectors:
    """Vectors of an API's encoder: n texts -> (n, d). The texts are sent to the address in `OPENAI_BASE_URL`.

    Requests that are too large or too slow are halved, and so are those after them. A server that is busy or down is
    asked again.

    Queries and documents of a search may differ in fields of the request: `api:MODEL?input_type=query|passage`; the
    field `prompt` is put before the texts. Texts of one kind get the value for queries if both have one, as with the
    prompts of an encoder here (`Prompts`).

    Args:
        name: `api:MODEL`, perhaps with fields (see `fields_of`).
        timeout: seconds until an answer is given up.
        pause: seconds before a question is sent again; twice as long each time.

    Raises:
        SettingsError: no address in the environment, a key that would be sent unencrypted, or fields of another form.

    Examples:
        >>> vectors = ApiVectors("api:text-embedding-3-small")  # doctest: +SKIP
        >>> vectors(["a sentence", "another one"]).shape  # doctest: +SKIP
        (2, 1536)
    """

    def __init__(self, name: str, timeout: float = 60, pause: float = 1) -> None:
        self.fields = fields_of(name)
        """By the name of a field: its value for queries and for documents."""
        self._endpoint = Endpoint(address_of(name).partition("#")[0], api_model(name), timeout, pause=pause)
        self._size = _BATCH

    def __call__(self, texts: Sequence[str], side: Side | None = None) -> Vectors:
        """The vectors of texts, (n, d), float32.

        Args:
            texts: (n,) of them.
            side: of a search; None for texts of one kind.

        Raises:
            DataError: the API refuses, or gives no vectors.
        """
        values = self.fields.items()
        if side is None:
            fields = {field: query for field, (query, document) in values if query and document}
        else:
            fields = {field: both[side == "document"] for field, both in values if both[side == "document"]}
        prompt = fields.pop(_PROMPT, "")
        texts = [prompt + text for text in texts] if prompt else texts
        parts: list[Vectors] = []
        start = 0
        while start < len(texts):
            part = texts[start : start + self._size]
            if (found := self._asked(part, fields)) is None:
                self._size = len(part) // 2
            else:
                parts.append(found)
                start += len(part)
        try:
            return np.concatenate(parts)
        except ValueError:
            raise DataError(f"{self._endpoint.url} gave vectors of several sizes") from None

    def _asked(self, texts: Sequence[str], fields: dict[str, str]) -> Vectors | None:
        """The vectors of texts; None where fewer should be asked for at once."""
        several = len(texts) > 1
        try:
            found, reason = self._endpoint.ask(
                "embeddings",
                {_TEXTS: list(texts), **fields},
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
        items = enumerate(json.loads(body)["data"])
        found = {item.get("index", place): _numbers(item["embedding"]) for place, item in items}
        rows = [found[number] for number in range(count)]
    except _ODD:
        return None
    return rows if len({row.shape for row in rows}) == 1 and rows[0].ndim == 1 and rows[0].size else None


def _numbers(vector: list[float] | str) -> Vectors:
    """A vector from a list, or, as some servers send it, from base64 of float32."""
    return np.frombuffer(base64.b64decode(vector), "<f4") if isinstance(vector, str) else np.asarray(vector, np.float32)
