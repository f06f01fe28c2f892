"""An encoder behind an API in OpenAI's format: `api_encoder:encoder`."""

import base64
import json
import os
import urllib.request
from collections.abc import Callable, Sequence

import numpy as np

from selfsent.errors import DataError

URL = os.environ.get("EMBEDDINGS_URL", "http://localhost:8080/v1/embeddings")
MODEL = os.environ.get("EMBEDDINGS_MODEL", "default")
KEY = os.environ.get("EMBEDDINGS_KEY", "")
BATCH, SECONDS = 64, 60


def embed(texts: Sequence[str]) -> np.ndarray:
    """Vectors (n, d) of n texts. This sends the texts to the address above."""
    parts = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    return np.asarray([vector for part in parts for vector in asked(part)], np.float32)


def asked(texts: Sequence[str]) -> list[np.ndarray]:
    """The vector of each text. A request that is too slow or too large is halved."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    body = json.dumps({"model": MODEL, "input": list(texts)}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(URL, body, headers), timeout=SECONDS) as answer:
            found = {item["index"]: numbers(item["embedding"]) for item in json.load(answer)["data"]}
        return [found[number] for number in range(len(texts))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        halves = isinstance(error, TimeoutError) or getattr(error, "code", None) in (400, 413, 504)
        if not halves or len(texts) == 1:
            raise DataError(f"{URL} gave no vectors of {len(texts)} texts: {error!r}") from error
    middle = len(texts) // 2
    return asked(texts[:middle]) + asked(texts[middle:])


def numbers(vector: list[float] | str) -> np.ndarray:
    """A vector as a list, or as some servers send it, base64 of float32."""
    return np.frombuffer(base64.b64decode(vector), "<f4") if isinstance(vector, str) else np.asarray(vector, np.float32)


def encoder() -> Callable[[Sequence[str]], np.ndarray]:
    """What selfsent calls once. If queries are encoded differently, return an object with encode, encode_query, ..."""
    return embed
