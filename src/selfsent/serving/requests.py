"""Bodies of requests as dataclasses, read from JSON and described as OpenAPI."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

from selfsent.data.corpus.clean import clean
from selfsent.errors import SettingsError, guess
from selfsent.lexical.hybrid import LARGEST
from selfsent.models.encoding import Side
from selfsent.report.pages import render
from selfsent.serving.limits import Limits
from selfsent.settings import check_limits, choices_of, kinds_of, setting
from selfsent.version import __version__

_T = TypeVar("_T", bound="Request")
_TEXTS = {"type": "array", "items": {"type": "string"}}
_SCHEMAS: dict[Any, dict[str, Any]] = {
    **{str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"}},
    tuple[str, ...]: {"anyOf": [{"type": "string"}, _TEXTS]},
}
_SIDES: dict[str, Side | None] = {
    **dict.fromkeys(("query", "search_query", "retrieval.query"), "query"),
    **dict.fromkeys(("document", "passage", "search_document", "retrieval.passage"), "document"),
    **dict.fromkeys(("similarity", "text-matching", "classification", "clustering", "separation"), None),
}
"""Kinds of texts in the words of OpenAI, Cohere, Voyage, NVIDIA and Jina, by their role in a search."""
_RENAMED = {"word_weight": "lexical_weight"}
"""Deprecated names in requests, and the names that replace them."""
_CONDITIONS = 20, 1000
"""Maximum number of conditions, and of characters of one: the database has limits of its own."""


@dataclass(frozen=True)
class Request:
    """A body of a request."""

    strict: ClassVar[bool] = True
    """Whether unknown names are refused."""

    def __post_init__(self) -> None:
        check_limits(self)


@dataclass(frozen=True)
class SearchRequest(Request):
    """Body of `POST /search`."""

    query: str = setting(MISSING, "what to look for")
    top: int = setting(10, "hits", minimum=1, maximum=100)
    where: tuple[str, ...] = setting((), "what columns must hold, such as team=sales; all of several")
    lexical_weight: float | None = setting(
        None, "a hit's score is (cosine + X x words) / (1 + X); left out: the index's own", minimum=0, maximum=LARGEST
    )
    answer_rate: float | None = setting(
        None,
        "leave out hits below a cut-off that this share of queries with an answer reach, such as 0.9; if none is left,"
        " answered is false",
        **{"minimum": 0.01, "maximum": 0.9999},
    )
    length: int = setting(2000, "characters of each text in the answer", minimum=0, maximum=1 << 16)
    mark: bool = setting(False, "cut each text into parts, of which every second one is a word of the query")


@dataclass(frozen=True)
class JudgeRequest(Request):
    """Body of `POST /judge`."""

    query: str = setting(MISSING, "what was looked for")
    id: str = setting(MISSING, "of the text that was found")
    relevant: bool | None = setting(None, "whether the text answers the query; null takes the judgement back")


@dataclass(frozen=True)
class EmbeddingsRequest(Request):
    """Body of `POST /v1/embeddings`; `start` is the number of its first text, if it is a piece of a longer one."""

    strict: ClassVar[bool] = False

    input: tuple[str, ...] = setting(MISSING, "a text, or a list of texts; lists of token numbers are refused")
    model: str = setting("", "any name: the answer says which model it was")
    encoding_format: Literal["float", "base64"] = setting("float", "numbers, or little-endian float32 in base64")
    dimensions: int | None = setting(None, "keep the first N numbers of a vector", minimum=1)
    input_type: str | None = setting(
        None, "what the texts are, for models with prompts: query and document have their own", choices=tuple(_SIDES)
    )
    task: str | None = setting(None, "another name for input_type", choices=tuple(_SIDES))
    start: int = 0

    @property
    def side(self) -> Side | None:
        """The role of the texts in a search; None where they are of one kind."""
        return _SIDES[self.input_type or self.task or "similarity"]


def parse(kind: type[_T], body: bytes, limits: Limits) -> _T:
    """The request in a body.

    Raises:
        SettingsError: it is no JSON, lacks something, or has something of a wrong type or out of range.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise SettingsError("the body is no JSON, or is nested too deeply") from None
    if not isinstance(given, dict):
        raise SettingsError("the body must be an object")
    given = {new if (new := _RENAMED.get(name, name)) not in given else name: value for name, value in given.items()}
    known, kinds = {item.name: item for item in fields(kind) if item.metadata}, kinds_of(kind)
    if kind.strict and (odd := [name[:60] for name in given if name not in known]):
        raise SettingsError(f"there is no {odd[0]!r}; {guess(odd[0], known)}")
    set_ = {name: value for name, value in given.items() if name in known and value is not None}
    values = {name: _typed(name, value, kinds[name], limits) for name, value in set_.items()}
    if lacking := [name for name, item in known.items() if item.default is MISSING and name not in values]:
        raise SettingsError(f"{lacking[0]} is missing")
    try:
        return kind(**values)
    except OverflowError:
        raise SettingsError("a number is out of range") from None


def _typed(name: str, value: Any, kinds: tuple[Any, ...], limits: Limits) -> Any:
    """A value of JSON as its field has it; numbers are left to `check_limits`."""
    if {int, float} & {*kinds}:
        return value
    if kinds == (bool,):
        if not isinstance(value, bool):
            raise SettingsError(f"{name} must be true or false")
        return value
    several = kinds == (tuple[str, ...],)
    texts = value if several and isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        tokens = "; send texts, not tokens (LangChain: check_embedding_ctx_length=False)" if name == "input" else ""
        raise SettingsError(f"{name} must be a text{' or a list of texts' * several}{tokens}")
    most, longest = (limits.max_texts, limits.max_characters) if name in ("query", "input") else _CONDITIONS
    if len(texts) > most or max(map(len, texts), default=0) > longest:
        raise SettingsError(f"{name} is too long: at most {most:,} texts of {longest:,} characters are read")
    # JSON can spell lone surrogates, which no tokenizer reads; only a query is cleaned like the texts of the index.
    texts = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    texts = clean(texts)[0] if name == "query" else texts
    if name in ("query", "input") and not (texts and all(map(str.strip, texts))):
        raise SettingsError(f"{name} is empty, or one of its texts is")
    return tuple(texts) if several else texts[0]


def _schema(kind: type[Request]) -> dict[str, Any]:
    """The JSON schema of a request, from its declaration."""
    kinds, choices, found = kinds_of(kind), choices_of(kind), {}
    named = [item for item in fields(kind) if item.metadata]
    for item in named:
        about = {"enum": [*choices[item.name]]} if item.name in choices else _SCHEMAS[kinds[item.name][0]]
        more = {name: item.metadata[name] for name in ("description", "minimum", "maximum") if name in item.metadata}
        default = {} if item.default in (MISSING, None, ()) else {"default": item.default}
        found[item.name] = about | more | default
    required = [item.name for item in named if item.default is MISSING]
    return {"type": "object", "properties": found, "required": required}


def openapi(secured: bool, judged: bool = False) -> str:
    """The OpenAPI description of the service.

    Args:
        secured: whether a token is asked for.
        judged: whether hits are judged.
    """
    schemas = {"search": _schema(SearchRequest), "embeddings": _schema(EmbeddingsRequest)}
    schemas |= {"judge": _schema(JudgeRequest)} if judged else {}
    return render("openapi.json", version=__version__, secured=secured, judged=judged, **schemas)
