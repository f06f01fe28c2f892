"""Prompts: texts in front of a query, of a document, and of a text where all are of one kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from selfsent.errors import SettingsError
from selfsent.files import read_json

DOCUMENT = ("document", "passage", "corpus")
"""Names of a prompt for documents."""
_ALIKE = ("STS", "sts", "similarity", "text-matching")
"""Names of a prompt for texts that are compared with each other."""


@dataclass(frozen=True)
class Prompts:
    """The prompts that a run trains with, and its model is saved with; each mostly empty.

    Args:
        query: before what searches: `encode_query` of sentence-transformers puts it.
        document: before what is searched: `encode_document` puts it.
        symmetric: before texts of one kind: `encode` puts it.

    Examples:
        >>> Prompts.among({"query": "query: ", "passage": "passage: "})
        Prompts(query='query: ', document='passage: ', symmetric='query: ')
    """

    query: str = ""
    document: str = ""
    symmetric: str = ""

    @classmethod
    def among(cls, known: Mapping[str, str], default: str | None = None) -> Self:
        """The prompts of a model by the names that it has for them.

        Texts of one kind take the model's default, else its prompt for similarity. Else they take that for queries, if
        no text goes without: E5's card asks for it. A model whose documents go without has seen bare texts.
        """
        query, document = known.get("query") or "", next(filter(None, map(known.get, DOCUMENT)), "")
        name = default or next((name for name in _ALIKE if name in known), None)
        return cls(query, document, known.get(name) or "" if name else query and document and query)

    @classmethod
    def of(cls, directory: Path, query: str | None = None, document: str | None = None, keep: bool = True) -> Self:
        """The prompts of a saved model, unless given here; none where its own are not kept.

        Raises:
            SettingsError: one is given, and none are to be kept.
        """
        given = {name: text for name, text in (("query", query), ("document", document)) if text is not None}
        if not keep:
            if given:
                problem = f"`{next(iter(given))}_prompt` is a prompt, and prompts=False takes none: give one of them"
                raise SettingsError(problem)
            return cls()
        about = read_json(directory / "config_sentence_transformers.json")
        own = about.get("prompts")
        known = {name: text for name, text in own.items() if isinstance(text, str)} if isinstance(own, dict) else {}
        return cls.among(known | given, about.get("default_prompt_name"))

    def put(self, model: Any) -> None:
        """Make them the prompts of an encoder: of `encode`, `encode_query` and `encode_document` once it is saved."""
        peer, own = getattr(model, "sentence_transformer", model), {"query": self.query, "document": self.document}
        peer.prompts = {**peer.prompts, **own}
        names = (name for name, text in peer.prompts.items() if text and text == self.symmetric)
        peer.default_prompt_name = next(names, None)

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    @property
    def summary(self) -> str:
        """All of them, in a line."""
        kinds = {"queries": self.query, "documents": self.document, "texts of one kind": self.symmetric}
        return ", ".join(f"{text!r} before {kind}" for kind, text in kinds.items() if text)
