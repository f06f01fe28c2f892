"""Declarations of options: `setting` fields, from which flags, YAML keys and Python signatures are made."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral, Number
from typing import Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from selfsent.errors import SettingsError
from selfsent.naming import name_of
from selfsent.renamed import renamed_arguments, warn_renamed

Schedule = Literal["constant", "linear", "cosine", "step"]
Optimizer = Literal["adamw", "rmsprop", "sgd"]
Precision = Literal["auto", "bfloat16", "float32"]
DURATIONS = ("steps", "epochs", "budget")
"""The settings that set the length of training; one at a time."""
WITHOUT_STEPS = ("max_length", "precision", "seed")
"""The settings that apply to methods without steps."""
_MAX_INTEGER = 1 << 53
"""Largest integer that is exact in a float."""
_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


def _cached(function: _F) -> _F:
    """Cache results by class; mypy takes dataclasses for unhashable."""
    return cast(_F, cache(function))


def setting(default: Any, description: str, **limits: Any) -> Any:
    """A dataclass field with its help text and limits.

    Args:
        default: the value when nothing is given; `dataclasses.MISSING` for a required option.
        description: one line for the help text.
        **limits: `minimum` and `maximum` (inclusive), `above` (exclusive), `choices` (unless the type is a
            `Literal`); `formerly`, a deprecated name. For the command line alone: `flags` in place of the field's name
            (the first is shown in errors; none for a setting of Python and recipes alone), `nargs`, `const`, `metavar`,
            `repeat` for an option that may be given several times, `positional`, and `parse` from a string.
    """
    return field(default=default, metadata={"description": description, **limits})


def parse_duration(text: str) -> float:
    """Seconds in `90s`, `5m`, `1.5h`, `1h30m`, `30d` or a plain number of seconds.

    Raises:
        SettingsError: the text is not a duration, or not a positive one.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text, re.ASCII)
    plain = len(parts) > 1 and any(not unit for _, unit in parts)
    if not parts or plain or "".join(number + unit for number, unit in parts) != text:
        raise SettingsError(f"{text!r} is not a duration: write 90s, 5m or 1h30m")
    seconds = sum(float(number) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[unit] for number, unit in parts)
    if seconds <= 0:
        raise SettingsError(f"a duration must be above zero, not {text!r}")
    return seconds


def format_duration(seconds: float) -> str:
    """A duration in words: `0.4 s`, `45 s`, `7.5 minutes` or `2.1 hours`."""
    if round(seconds) <= 120:
        return f"{seconds:.0f} s" if seconds >= 2 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


@dataclass(frozen=True)
class Settings:
    """Settings of training. One of `steps`, `epochs` and `budget` sets its length.

    Raises:
        SettingsError: a value is out of range.
    """

    batch_size: int = setting(64, "sentences in a batch, over all processes", minimum=1)
    learning_rate: float = setting(5e-5, "peak learning rate", above=0.0)
    steps: int | None = setting(None, "optimiser steps", minimum=1)
    epochs: float | None = setting(None, "passes over the corpus", above=0.0, maximum=1e6)
    budget: float | None = setting(None, "seconds the run takes, or 90s, 5m or 1h", above=0.0, parse=parse_duration)
    schedule: Schedule = setting("linear", "learning rate after warm-up; step: down by a fifth every 500 steps")
    warmup: float = setting(0.1, "share of the steps spent warming up; a number of steps when 1 or more", minimum=0.0)
    weight_decay: float = setting(0.0, "weight decay, not on biases and layer norms", minimum=0.0)
    optimizer: Optimizer = setting("adamw", "optimiser", flags=())
    epsilon: float = setting(1e-8, "epsilon of the optimiser", above=0.0, flags=())
    beta2: float = setting(
        0.999, "decay rate of AdamW's mean of squared gradients", above=0.0, maximum=0.999999, flags=()
    )
    alpha: float = setting(0.99, "decay rate of RMSprop's mean of squared gradients", minimum=0.0, maximum=1.0)
    clip: float = setting(1.0, "largest norm of the gradient; 0 does not clip", minimum=0.0)
    accumulate: int = setting(1, "micro-batches a batch is cut into, to save memory", minimum=1)
    mini_batch_size: int | None = setting(
        None, "sentences in the encoder at a time, to save memory: the loss still compares the whole batch", minimum=1
    )
    max_length: int = setting(128, "tokens kept of a sentence, special tokens included", minimum=4)
    precision: Precision = setting("auto", "auto: bfloat16 where a short timing finds it faster")
    seed: int = setting(0, "seed of everything random", minimum=0, maximum=2**31 - 1)

    def __post_init__(self) -> None:
        check_limits(self)
        given = [name for name in DURATIONS if getattr(self, name) is not None]
        if len(given) > 1:
            raise SettingsError(f"`{given[0]}` and `{given[1]}` both say how long to train: give one of them")
        if self.accumulate > self.batch_size:
            raise SettingsError(f"accumulate={self.accumulate} cannot exceed batch_size={self.batch_size}")

    def summary(self) -> str:
        """The main settings in one line."""
        names = ("batch_size", "learning_rate", "steps", "epochs", "budget", "max_length", "seed")
        values = ((name.replace("_", " "), getattr(self, name)) for name in names)
        units = {"budget": " s"}
        return ", ".join(f"{name} {value:g}{units.get(name, '')}" for name, value in values if value is not None)

    def replace(self, **changes: Any) -> Settings:
        """Copy the settings with some values changed; a new `steps`, `epochs` or `budget` replaces whichever was set.

        Raises:
            SettingsError: a value is out of range.
        """
        if any(changes.get(name) is not None for name in DURATIONS):
            changes = {**dict.fromkeys(DURATIONS), **changes}
        return dataclasses.replace(self, **changes)

    def but(self, **changes: Any) -> Settings:
        """Deprecated: `replace`."""
        warn_renamed("Settings.but", "Settings.replace")
        return self.replace(**changes)


@dataclass
class CorpusOptions:
    """Options of `read_corpus` for sentences; the others are for pairs, or for Python alone."""

    title: ClassVar[str] = "corpus"
    text_column: tuple[str, ...] = setting((), "column with texts (default: text); several are joined", repeat=True)
    document_column: str | None = setting(None, "column that says which document a text belongs to")
    split_sentences: bool | None = setting(False, "each text holds several sentences: split it")
    passages: int | None = setting(None, "split long texts into passages of N words at most, at the ends of sentences")
    clean: tuple[str, ...] = setting((), "take out of each text first: html, mail, urls, separators (such as =====)")
    exclude: tuple[str, ...] = setting(
        (), "leave out rows with a text of this corpus, such as a test set", flags=("--without",), repeat=True
    )


@dataclass
class PairOptions:
    """Options of `read_corpus` for pairs, triples and labels."""

    title: ClassVar[str] = "corpus of pairs or triples"
    text_columns: tuple[str, ...] = setting((), "two or three columns with texts, for pairs or triples")
    label_column: str | None = setting(None, "column with classes: names or whole numbers")
    score_column: str | None = setting(None, "column with numbers, such as similarities")


@_cached
def kinds_of(options: Any) -> dict[str, tuple[Any, ...]]:
    """The types of a dataclass' fields, the members of a union one by one, without None."""
    hints = get_type_hints(options)
    found = {}
    for item in dataclasses.fields(options):
        kind = hints[item.name]
        parts = (kind,) if get_origin(kind) in (Literal, tuple, list, dict) else get_args(kind) or (kind,)
        found[item.name] = tuple(part for part in parts if part is not type(None))
    return found


@_cached
def choices_of(options: type[Any]) -> dict[str, tuple[Any, ...]]:
    """The allowed values of the fields of a settings dataclass that have them, by name."""
    found = {item.name: tuple(item.metadata.get("choices", ())) for item in dataclasses.fields(options)}
    for name, kinds in kinds_of(options).items():
        for kind in kinds:
            if get_origin(kind) is Literal:
                found[name] = get_args(kind)
    return {name: allowed for name, allowed in found.items() if allowed}


def parse_value(text: str, item: dataclasses.Field[Any], kinds: tuple[Any, ...]) -> Any:
    """The value of a field in a string, as flags and specs have it.

    Raises:
        SettingsError: the string is no duration.
        ValueError: the string is no number.
    """
    if parse := item.metadata.get("parse"):
        return parse(text)
    for kind in (int, float):
        if kind in kinds:
            return kind(text)
    return text


def _converted(value: Any, item: dataclasses.Field[Any], kinds: tuple[Any, ...]) -> Any:
    """A Python value as its field has it: numbers of numpy become Python's, `5m` seconds, and a run its directory.

    Raises:
        SettingsError: the value has another type.
    """
    name, number = item.name, isinstance(value, Number) and not isinstance(value, bool | complex)
    if not number:
        value = name_of(value)
    if isinstance(value, str) and "parse" in item.metadata:
        return parse_value(value, item, kinds)
    if not number or not {int, float} & {*kinds}:
        if {int, float} & {*kinds} and not {str, bool} & {*kinds}:
            raise SettingsError(f"{name} is {value!r}; it must be a number")
        return value
    if isinstance(value, Integral):
        return int(value)
    value = float(value)
    if float in kinds or not math.isfinite(value):
        return value
    if not value.is_integer():
        raise SettingsError(f"{name} is {value}; it must be a whole number")
    return int(value)


_LIMITS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, limit: value >= limit),
    "above": ("above", lambda value, limit: value > limit),
    "maximum": ("at most", lambda value, limit: value <= limit),
}


def check_limits(options: Any) -> None:
    """Check every field of a settings dataclass against its type, and the limits in its metadata.

    Raises:
        SettingsError: naming the first field that is out of range.
    """
    kinds, choices = kinds_of(type(options)), choices_of(type(options))
    for item in dataclasses.fields(options):
        value, name = getattr(options, item.name), item.name
        if value is None or value is item.default or not item.metadata:
            continue
        if type(value) not in kinds[name] or "parse" in item.metadata:
            value = _converted(value, item, kinds[name])
            object.__setattr__(options, name, value)
        if isinstance(value, bool):
            continue
        if isinstance(value, int) and abs(value) > _MAX_INTEGER:
            raise SettingsError(f"{name} is out of range; it must be at most {_MAX_INTEGER:,}")
        if isinstance(value, float) and not math.isfinite(value):
            raise SettingsError(f"{name} is {value}; it must be a finite number")
        if value not in (allowed := choices.get(name, (value,))):
            raise SettingsError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
        for limit, (words, holds) in _LIMITS.items():
            if limit in item.metadata and not holds(value, item.metadata[limit]):
                raise SettingsError(f"{name} is {value}; it must be {words} {item.metadata[limit]}")


def with_signature_of(*declared: type[Any]) -> Callable[[_F], _F]:
    """Give a function that ends in `**changes` a signature with the fields of dataclasses, for help and completion."""

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        *own, changes = signature.parameters.values()
        more = [
            inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=f"{item.type}")
            for kind in declared
            for item in dataclasses.fields(kind)
            if item.metadata and item.name not in signature.parameters
        ]
        spelled = signature.replace(parameters=[*own, *more, changes])
        function.__signature__ = spelled  # type: ignore[attr-defined]
        return function

    return decorate


def split_arguments(kind: type[_T], changes: Mapping[str, Any]) -> tuple[_T, dict[str, Any]]:
    """A settings dataclass made of the keyword arguments that are its fields, and the other arguments."""
    own = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    rest = {name: value for name, value in changes.items() if name not in own}
    return kind(**{name: value for name, value in changes.items() if name in own}), rest


@_cached
def former_names(kind: type[Any]) -> dict[str, str]:
    """Names of a settings dataclass' fields by their deprecated names."""
    fields = dataclasses.fields(kind)
    return {item.metadata["formerly"]: item.name for item in fields if "formerly" in item.metadata}


def accept_former_names(kind: type[Any]) -> None:
    """Make the constructor of a settings dataclass take deprecated names of its fields, with a warning."""
    if (names := former_names(kind)) and not hasattr(kind.__init__, "__wrapped__"):
        kind.__init__ = renamed_arguments(**names)(kind.__init__)


def with_current_names(changes: Mapping[str, Any], *kinds: type[Any]) -> dict[str, Any]:
    """Arguments with the deprecated names of dataclasses' fields replaced, with a warning for each."""
    names = {old: new for kind in kinds for old, new in former_names(kind).items()}
    return renamed_arguments(**names)(dict)(**changes)


def non_defaults(options: Any) -> dict[str, Any]:
    """The fields of a settings dataclass that differ from their defaults."""
    values = {item.name: (getattr(options, item.name), item.default) for item in dataclasses.fields(options)}
    return {name: value for name, (value, default) in values.items() if value != default}
