"""An encoder behind an API in OpenAI's format: `api_encoder:encoder`."""

import json
import os
import urllib.request
from collections.abc import Callable, Sequence

import numpy as np

URL = os.environ.get("EMBEDDINGS_URL", "http://localhost:8080/v1/embeddings")
MODEL = os.environ.get("EMBEDDINGS_MODEL", "default")
KEY = os.environ.get("EMBEDDINGS_KEY", "")
BATCH = 64


def embed(texts: Sequence[str]) -> np.ndarray:
    """Vectors (n, d) of n texts. This sends the texts to the address above."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    vectors = []
    for start in range(0, len(texts), BATCH):
        body = json.dumps({"model": MODEL, "input": list(texts[start : start + BATCH])}).encode()
        with urllib.request.urlopen(urllib.request.Request(URL, body, headers), timeout=60) as answer:
            found = json.load(answer)["data"]
        vectors += [item["embedding"] for item in sorted(found, key=lambda item: item["index"])]
    return np.asarray(vectors, np.float32)


def encoder() -> Callable[[Sequence[str]], np.ndarray]:
    """What selfsent calls once. If queries are encoded differently, return an object with encode, encode_query, ..."""
    return embed
