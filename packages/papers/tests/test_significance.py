"""Welch's interval and Holm's correction, against scipy and against slow versions."""

import itertools

import numpy as np
import pytest
from scipy.stats import t as student, ttest_ind

from selfsent.errors import SettingsError
from selfsent_papers.significance import contrast, holm, welch


@pytest.mark.parametrize("sizes", [(5, 5), (5, 3), (2, 40)])
def test_welch_is_that_of_scipy(sizes):
    generator = np.random.default_rng(sum(sizes))
    first, second = generator.normal(1, 3, sizes[0]), generator.normal(0, 0.5, sizes[1])
    found, known = welch(first, second), ttest_ind(first, second, equal_var=False)
    interval = known.confidence_interval(0.95)
    assert (found.p, found.degrees) == pytest.approx((known.pvalue, known.df))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.difference == pytest.approx(first.mean() - second.mean())


def test_an_untrained_encoder_has_no_variance_and_the_other_side_has_all_degrees_of_freedom():
    found, known = welch([1.0, 2.0, 4.0], [0.1] * 5), ttest_ind([0.9, 1.9, 3.9], [0.0] * 5, equal_var=False)
    assert found.degrees == pytest.approx(2)
    assert found.p == pytest.approx(known.pvalue)


def test_two_without_variance_differ_or_do_not():
    assert (welch([3.0, 3.0], [1.0, 1.0]).p, welch([0.1] * 3, [0.1] * 3).p) == (0.0, 1.0)
    assert (welch([3.0, 3.0], [1.0, 1.0]).low, welch([3.0, 3.0], [1.0, 1.0]).high) == (2.0, 2.0)


def test_one_seed_decides_nothing():
    with pytest.raises(SettingsError, match="at least two seeds"):
        welch([1.0, 2.0], [1.0])


def test_a_difference_of_differences_is_welch_of_what_is_left_without_variance():
    first, second, known = [1.0, 2.0, 5.0], [0.0, 0.5, 0.7], [[3.0, 3.0], [1.0, 1.0]]
    found, two = contrast([first, second, *known], [1, -1, -1, 1]), welch(first, second)
    assert (found.difference, found.low) == pytest.approx((two.difference - 2, two.low - 2))
    assert found.degrees == pytest.approx(two.degrees)


def test_a_difference_of_differences_has_the_variances_of_all_four():
    generator = np.random.default_rng(0)
    sides = generator.normal(0, [[1], [2], [3], [4]], (4, 6))
    found = contrast(sides, [1, -1, -1, 1])
    variances = [sum((x - sum(side) / 6) ** 2 for x in side) / 5 / 6 for side in sides]
    degrees = sum(variances) ** 2 / sum(each**2 / 5 for each in variances)
    assert (found.high - found.low) / 2 == pytest.approx(student.ppf(0.975, degrees) * sum(variances) ** 0.5)


def closed_holm(values):
    """By closure: the largest Bonferroni p-value of all families of which a test is a member."""
    places = range(len(values))
    families = [each for size in places for each in itertools.combinations(places, size + 1)]
    return [
        max(min(1.0, len(family) * min(values[other] for other in family)) for family in families if place in family)
        for place in places
    ]


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_the_closure_of_bonferroni(seed):
    values = [*np.random.default_rng(seed).uniform(0, 0.2, 5), 1.0]
    assert holm(values) == pytest.approx(closed_holm(values))


def test_holm_of_ties_and_of_none():
    assert holm([0.02, 0.02, 0.02]) == pytest.approx([0.06, 0.06, 0.06])
    assert holm([]) == []


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(SettingsError, match=r"1\.5 is no p-value"):
        holm([0.1, 1.5])
    with pytest.raises(SettingsError, match="nan"):
        holm([float("nan")])
