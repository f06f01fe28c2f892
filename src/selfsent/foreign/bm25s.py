"""The lists of stop words in bm25s, whose package imports scipy first."""

from __future__ import annotations

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


def stop_words(language: str) -> tuple[str, ...]:
    """The stop words of a language, by its English name; none where bm25s has no list: it has those of twelve."""
    name = "EN_PLUS" if language == "english" else language.upper()
    return tuple(getattr(_lists(), f"STOPWORDS_{name}", ()))
