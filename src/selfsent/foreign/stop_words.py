"""Lists of stop words: of bm25s, whose package imports scipy first, and of stopwordsiso for other languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


@cache
def _lists() -> Any:
    package = find_spec("bm25s")
    if package is not None and package.origin:
        spec = spec_from_file_location("bm25s.stopwords", Path(package.origin).with_name("stopwords.py"))
        if spec is not None and spec.loader is not None and Path(str(spec.origin)).is_file():
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    from bm25s import stopwords

    return stopwords


def _without_content(words: Sequence[str]) -> Iterator[str]:
    """Chinese stop words that hold a stop word of one sign: others are content, as `安全` (safe), `问题` (problem)."""
    signs = {word for word in words if len(word) == 1}
    content = ("任务", "应用")  # task and application, whose signs are stop words by themselves
    return (word for word in words if not signs.isdisjoint(word) and word not in content)


def stop_words(language: str, code: str) -> tuple[str, ...]:
    """The stop words of a language; none where neither package has a list. bm25s has those of fourteen languages.

    Args:
        language: its English name.
        code: its ISO 639 code.
    """
    name = "EN_PLUS" if language == "english" else language.upper()
    if found := getattr(_lists(), f"STOPWORDS_{name}", ()):
        return tuple(found) if language != "chinese" else tuple(_without_content(found))
    import stopwordsiso

    return tuple(sorted(stopwordsiso.stopwords(code)))
