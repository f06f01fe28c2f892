"""The settings every method shares: how long, how fast, in what batches. A method's own options live in its file."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from numbers import Integral, Number
from typing import Any, Literal, get_args, get_origin, get_type_hints

from selfsent.errors import SettingsError
from selfsent.naming import name_of

Schedule = Literal["constant", "linear", "cosine", "step"]
Optimizer = Literal["adamw", "rmsprop", "sgd"]
Precision = Literal["auto", "bfloat16", "float32"]
DURATIONS = ("steps", "epochs", "budget")
"""The settings that say how long; one of them does."""
WITHOUT_STEPS = ("max_length", "precision", "seed")
"""The settings that mean something to a method that takes no steps."""


_MOST = 1 << 53
"""Of whole numbers: those beyond are not exact in a float."""


def setting(default: Any, description: str, **limits: Any) -> Any:
    """A dataclass field with its help text and limits, from which the command line makes its flags.

    Args:
        default: the value when nothing is given.
        description: one line for the help text.
        **limits: `minimum` and `maximum` (inclusive), `above` (exclusive). What a `Literal` may be stands in its type.
    """
    return field(default=default, metadata={"description": description, **limits})


@dataclass(frozen=True)
class Settings:
    """How a run goes. Exactly one of `steps`, `epochs` and `budget` decides how long it takes.

    Raises:
        SettingsError: a value is out of range.
    """

    batch_size: int = setting(64, "sentences in a batch, over all processes", minimum=1)
    learning_rate: float = setting(5e-5, "peak learning rate", above=0.0)
    steps: int | None = setting(None, "optimiser steps", minimum=1)
    epochs: float | None = setting(None, "passes over the corpus", above=0.0, maximum=1e6)
    budget: float | None = setting(
        None, "how long it takes, in seconds; written as 90s, 5m or 1h on the command line", above=0.0
    )
    schedule: Schedule = setting(
        "linear",
        "learning rate after warm-up; step: down by a fifth every 500 steps, to a fifth",
    )
    warmup: float = setting(0.1, "share of the steps spent warming up; a number of steps when 1 or more", minimum=0.0)
    weight_decay: float = setting(
        0.0, "weight decay, not on biases and layer norms; decoupled, except with rmsprop", minimum=0.0
    )
    optimizer: Optimizer = setting("adamw", "optimiser: what turns gradients into steps")
    epsilon: float = setting(1e-8, "epsilon of the optimiser", above=0.0)
    beta2: float = setting(0.999, "share that AdamW's mean of squares keeps in a step", above=0.0, maximum=0.999999)
    alpha: float = setting(0.99, "share that RMSprop's mean of squares keeps in a step", minimum=0.0, maximum=1.0)
    clip: float = setting(1.0, "largest norm of the gradient; 0 does not clip", minimum=0.0)
    accumulate: int = setting(1, "micro-batches a batch is cut into, to save memory", minimum=1)
    max_length: int = setting(128, "tokens kept of a sentence, special tokens included", minimum=4)
    precision: Precision = setting("auto", "auto: bfloat16 where a short timing finds it faster")
    seed: int = setting(0, "seed of everything random", minimum=0, maximum=2**31 - 1)

    def __post_init__(self) -> None:
        if str(self.schedule) == "stairs":  # its name in 0.1.0
            object.__setattr__(self, "schedule", "step")
        check_limits(self)
        given = [name for name in DURATIONS if getattr(self, name) is not None]
        if len(given) > 1:
            raise SettingsError(f"{given[0]} and {given[1]} both say how long to train: give one of them")
        if self.accumulate > self.batch_size:
            raise SettingsError(f"accumulate ({self.accumulate}) cannot exceed batch_size ({self.batch_size})")

    def summary(self) -> str:
        """The most telling settings, in one line."""
        names = ("batch_size", "learning_rate", "steps", "epochs", "budget", "max_length", "seed")
        values = ((name.replace("_", " "), getattr(self, name)) for name in names)
        units = {"budget": " s"}
        return ", ".join(f"{name} {value:g}{units.get(name, '')}" for name, value in values if value is not None)

    def but(self, **changes: Any) -> Settings:
        """A copy with some values changed; a new `steps`, `epochs` or `budget` replaces whichever was set."""
        if any(changes.get(name) is not None for name in DURATIONS):
            changes = {**dict.fromkeys(DURATIONS), **changes}
        return dataclasses.replace(self, **changes)


def choices_of(options: type[Any]) -> dict[str, tuple[Any, ...]]:
    """What the fields of a settings dataclass may be, by name, where their type is a `Literal`.

    Args:
        options: the dataclass.
    """
    found = {}
    for name, kind in get_type_hints(options).items():
        literals = [part for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
        if literals:
            found[name] = get_args(literals[0])
    return found


def _as_kind(value: Any, kinds: set[Any], flag: str) -> Any:
    """A value from Python as its field has it: numbers of numpy become Python's, `5m` seconds, and a run its directory.

    Raises:
        SettingsError: it is something else.
    """
    value = name_of(value)
    if isinstance(value, str) and flag == "--budget":
        return parse_duration(value)
    number = isinstance(value, Number) and not isinstance(value, bool | complex)
    if not number or not kinds & {int, float}:
        if kinds & {int, float} and not kinds & {str, bool}:
            raise SettingsError(f"{flag} is {value!r}; it must be a number")
        return value
    if isinstance(value, Integral):
        if abs(int(value)) > _MOST:
            raise SettingsError(f"{flag} is out of range; it must be at most {_MOST:,}")
        return int(value)
    value = float(value)
    if float in kinds or not math.isfinite(value):
        return value
    if not value.is_integer():
        raise SettingsError(f"{flag} is {value}; it must be a whole number")
    return int(value)


def check_limits(options: Any) -> None:
    """Check every field of a settings dataclass against its type, and the limits in its metadata.

    Raises:
        SettingsError: naming the first field that is out of range.
    """
    choices, kinds = choices_of(type(options)), get_type_hints(type(options))
    for item in dataclasses.fields(options):
        value, limits = getattr(options, item.name), item.metadata
        flag = "--" + item.name.replace("_", "-")
        if value is not None:
            value = _as_kind(value, {*get_args(kinds[item.name])} or {kinds[item.name]}, flag)
            object.__setattr__(options, item.name, value)
        if value is None or isinstance(value, bool):
            continue
        if isinstance(value, float) and not math.isfinite(value):
            raise SettingsError(f"{flag} is {value}; it must be a finite number")
        if value not in (allowed := choices.get(item.name, (value,))):
            raise SettingsError(f"{flag} is {value!r}; it must be one of {', '.join(allowed)}")
        if "minimum" in limits and not value >= limits["minimum"]:
            raise SettingsError(f"{flag} is {value}; it must be at least {limits['minimum']}")
        if "above" in limits and not value > limits["above"]:
            raise SettingsError(f"{flag} is {value}; it must be above {limits['above']}")
        if "maximum" in limits and not value <= limits["maximum"]:
            raise SettingsError(f"{flag} is {value}; it must be at most {limits['maximum']}")


def parse_duration(text: str) -> float:
    """Seconds in `90s`, `5m`, `1.5h`, `1h30m` or a plain number of seconds.

    Raises:
        SettingsError: the text is not a duration, or not a positive one.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh]?)", text, re.ASCII)
    plain = len(parts) > 1 and any(not unit for _, unit in parts)
    if not parts or plain or "".join(number + unit for number, unit in parts) != text:
        raise SettingsError(f"{text!r} is not a duration: write 90s, 5m or 1h30m")
    seconds = sum(float(number) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)
    if seconds <= 0:
        raise SettingsError(f"a duration must be above zero, not {text!r}")
    return seconds


def spoken(seconds: float) -> str:
    """A duration as it is said: `0.4 s`, `45 s`, `7.5 minutes` or `2.1 hours`."""
    if round(seconds) <= 120:
        return f"{seconds:.0f} s" if seconds >= 2 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
