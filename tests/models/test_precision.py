"""Which number format the arithmetic runs in."""

from __future__ import annotations

import pytest
import torch

from selfsent.models import precision


@pytest.mark.parametrize(("gain", "chosen"), [(2.5, "bfloat16"), (0.5, "float32")])
def test_a_cpu_with_the_instructions_must_also_be_fast_at_them(
    monkeypatch: pytest.MonkeyPatch, gain: float, chosen: str
) -> None:
    monkeypatch.setattr(precision, "processor_multiplies_bfloat16", lambda: True)
    monkeypatch.setattr(precision, "gain_of_bfloat16", lambda: gain)
    assert precision.resolve_precision("auto", "cpu") == chosen
    assert precision.quick_precision("cpu", fast=True) == chosen
    assert precision.resolve_precision("bfloat16", "cpu") == "bfloat16"  # who says so gets it


def test_a_cpu_without_the_instructions_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed() -> float:
        raise AssertionError

    monkeypatch.setattr(precision, "processor_multiplies_bfloat16", lambda: False)
    monkeypatch.setattr(precision, "gain_of_bfloat16", timed)
    assert precision.resolve_precision("auto", "cpu") == "float32"


def test_timing_leaves_random_numbers_alone() -> None:
    precision.gain_of_bfloat16.cache_clear()
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert precision.gain_of_bfloat16() > 0
    assert torch.equal(torch.rand(3), expected)
