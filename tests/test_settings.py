import math

import numpy as np
import pytest

from selfsent.errors import SettingsError
from selfsent.settings import Settings, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1.5h", 5400), ("1h30m", 5400), ("1m0.5s", 60.5), ("12", 12), ("2d", 172_800)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5 m", "m", "-5m", "5w", "1m30", "0s", "0", "1e3", "five", "٣m", "5m!"])
def test_what_is_no_duration(text):
    with pytest.raises(SettingsError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 0),
        ("learning_rate", 0.0),
        ("learning_rate", -1e-5),
        ("learning_rate", math.nan),
        ("learning_rate", math.inf),
        ("epochs", math.inf),
        ("epochs", 0.0),
        ("steps", 0),
        ("budget", -1.0),
        ("schedule", "steps"),
        ("precision", "float16"),
        ("accumulate", 0),
        ("max_length", 3),
        ("seed", -1),
        ("seed", 2**31),
        ("warmup", math.nan),
        ("steps", "2"),
        ("steps", True),
        ("steps", 10**30),
        ("learning_rate", 10**400),
        ("learning_rate", "1e-4"),
        ("batch_size", 8.5),
    ],
)
def test_a_value_out_of_range_is_named(name, value):
    with pytest.raises(SettingsError, match=f"^{name} is "):
        Settings(**{name: value})


@pytest.mark.parametrize("pair", [("steps", "epochs"), ("steps", "budget"), ("epochs", "budget")])
def test_only_one_length(pair):
    with pytest.raises(SettingsError, match="both say how long to train"):
        Settings(**dict.fromkeys(pair, 2))


def test_a_batch_has_at_least_a_sentence_a_part():
    assert Settings(batch_size=2, accumulate=2).accumulate == 2
    with pytest.raises(SettingsError, match="accumulate"):
        Settings(batch_size=2, accumulate=3)


def test_a_new_length_replaces_the_old_one():
    settings = Settings(steps=10)
    assert settings.replace(epochs=2.0) == Settings(epochs=2.0)
    assert settings.replace(seed=3) == Settings(steps=10, seed=3)
    assert settings.steps == 10


def test_the_summary_names_what_is_set():
    assert Settings(steps=10, learning_rate=3e-5).summary() == (
        "batch size 64, learning rate 3e-05, steps 10, max length 128, seed 0"
    )


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.42, "0.4 s"), (45.2, "45 s"), (120.2, "120 s"), (450, "7.5 minutes"), (7560, "2.1 hours")]
)
def test_a_duration_as_it_is_said(seconds, said):
    assert format_duration(seconds) == said


def test_numbers_of_numpy_and_durations_are_taken_from_python():
    settings = Settings(seed=np.int64(3), batch_size=8.0, learning_rate=np.float32(0.5), budget="5m")
    values = settings.seed, settings.batch_size, settings.learning_rate, settings.budget
    assert values == (3, 8, 0.5, 300)
    assert [type(value) for value in values] == [int, int, float, float]
