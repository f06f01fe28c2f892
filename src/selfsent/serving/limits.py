"""The largest requests that the service takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from selfsent.settings import setting


@dataclass
class Limits:
    """Limits of requests; options of `selfsent serve`."""

    title: ClassVar[str] = "limits"
    max_body: int = setting(4 << 20, "bytes of a request", minimum=1024)
    max_texts: int = setting(2048, "texts in a request for embeddings", minimum=1)
    max_characters: int = setting(32_768, "characters of a text or query", minimum=1)
    max_waiting: int = setting(1000, "pieces of work that wait; who comes later is told to come again", minimum=1)
    timeout: float = setting(30.0, "seconds to send a request, and as many to answer it", above=0, maximum=3600)
