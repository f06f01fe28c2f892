import math

import pytest
import torch

from selfsent.models.health import Health, measure


def test_nearly_constant_vectors_are_a_collapse_of_a_spread_out_start_only():
    torch.manual_seed(0)
    start = measure(torch.randn(50, 16))
    near = measure(torch.ones(50, 16) + 0.01 * torch.randn(50, 16))
    assert near.mean_cosine > 0.999
    assert near.collapsed(start)
    assert not near.collapsed(near)  # a base whose vectors lie that close has not collapsed in training
    assert not start.collapsed(start)


def test_orthogonal_sentences_use_every_dimension():
    health = measure(torch.eye(8))
    assert health.mean_cosine == pytest.approx(0)
    assert health.effective_rank == pytest.approx(7, abs=1e-4)  # seven dimensions around the mean
    assert health.uniformity == pytest.approx(-4)
    assert health.alignment is None


def test_figures_against_plain_loops():
    torch.manual_seed(1)
    first, second = torch.randn(6, 4), torch.randn(6, 4)
    a, b = first / first.norm(dim=1, keepdim=True), second / second.norm(dim=1, keepdim=True)
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
    health = measure(first, second)
    assert health.mean_cosine == pytest.approx(sum(float(a[i] @ a[j]) for i, j in pairs) / 30, abs=1e-6)
    expected = math.log(sum(math.exp(-2 * float((a[i] - a[j]).square().sum())) for i, j in pairs) / 30)
    assert health.uniformity == pytest.approx(expected, abs=1e-5)
    assert health.alignment == pytest.approx(sum(float((a[i] - b[i]).square().sum()) for i in range(6)) / 6, abs=1e-6)


def test_vectors_that_are_not_finite_count_as_collapsed():
    health = measure(torch.full((5, 3), math.nan))
    assert math.isnan(health.mean_cosine)
    assert health.collapsed(Health(0.1, 3, -2))
