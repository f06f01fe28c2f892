import numpy as np
import pytest

from naive.looks import lower_and_upper
from selfsent.stats.metrics import average, mean
from selfsent.stats.resampling import bootstrap, interval, paired, paired_best, point


def test_coverage_of_the_interval_is_near_its_level():
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(150):
        low, high = interval(bootstrap(mean(rng.normal(5, 2, 60)), 60, resamples=300, seed=trial))
        covered += low <= 5 <= high
    assert 0.89 <= covered / 150 <= 0.99


def test_grouped_weights_are_those_of_whole_groups():
    groups = np.array([7, 3, 7, 9, 3])

    def same_within_groups(weights):
        assert (weights[:, 0] == weights[:, 2]).all()
        assert (weights[:, 1] == weights[:, 4]).all()
        return weights.sum(1)

    sizes = bootstrap(same_within_groups, 5, groups=groups, resamples=50)
    assert sizes.min() >= 3  # three groups are drawn, each of at least one item
    assert sizes.std() > 0


def test_parts_keep_their_size_and_are_drawn_within_themselves():
    parts = [np.array([4, 0]), np.array([1, 2, 3])]

    def sizes_kept(weights):
        assert (weights[:, parts[0]].sum(1) == 2).all()
        assert (weights[:, parts[1]].sum(1) == 3).all()
        return weights[:, 2]

    assert set(bootstrap(sizes_kept, 5, strata=parts, resamples=200)) == {0, 1, 2, 3}


def test_the_interval_of_a_mean_over_parts_ignores_how_far_the_parts_are_apart():
    rng = np.random.default_rng(3)
    values, parts = rng.normal(size=90), [np.arange(30), np.arange(30, 90)]
    far = values + np.r_[np.zeros(30), np.full(60, 100.0)]

    def width(sample):
        statistic = average([mean(sample[part]) for part in parts], parts, sized=True)
        low, high = interval(bootstrap(statistic, 90, strata=parts))
        return high - low

    assert width(far) == pytest.approx(width(values))
    assert interval(bootstrap(mean(far), 90))[1] - interval(bootstrap(mean(far), 90))[0] > 10 * width(values)


def test_same_seed_gives_the_same_resamples_and_another_does_not():
    values = mean(np.arange(20.0))
    assert (bootstrap(values, 20, seed=4) == bootstrap(values, 20, seed=4)).all()
    assert (bootstrap(values, 20, seed=4) != bootstrap(values, 20, seed=5)).any()
    assert point(mean([1.0, 2.0, 6.0]), 3) == 3.0


def test_a_paired_difference_is_surer_than_two_intervals():
    rng = np.random.default_rng(2)
    hard = rng.normal(0, 5, 200)
    a, b = hard + 0.5 + rng.normal(0, 0.1, 200), hard
    samples = [bootstrap(mean(values), 200, seed=3) for values in (a, b)]
    assert interval(samples[0])[0] < interval(samples[1])[1]
    difference = paired(a.mean(), b.mean(), *samples)
    assert difference.low > 0.4
    assert difference.p < 0.01
    assert difference.difference == pytest.approx(a.mean() - b.mean())
    assert paired(4.0, 4.0, samples[0], samples[0]).p == 1.0
    with pytest.raises(ValueError, match="not paired"):
        paired(0, 0, np.zeros(3), np.zeros(4))


def test_p_values_of_a_true_null_are_not_small_too_often():
    rng = np.random.default_rng(5)
    small = 0
    for trial in range(200):
        a, b = rng.normal(size=(2, 80))
        samples = [bootstrap(mean(values), 80, resamples=200, seed=trial) for values in (a, b)]
        small += paired(a.mean(), b.mean(), *samples).p < 0.05
    assert small / 200 < 0.12


def test_the_best_of_one_is_that_one_and_of_many_less_sure():
    rng = np.random.default_rng(6)
    weights = rng.multinomial(100, np.full(100, 0.01), 2000) / 100
    values = rng.normal(size=(20, 100))
    values[0] += 0.1 - values[0].mean()
    scores, samples, nothing = values.mean(1), values @ weights.T, np.zeros(2000)
    one = paired_best(scores[:1], 0.0, samples[:1], nothing)
    alone = paired(scores[0], 0.0, samples[0], nothing)
    assert (one.low, one.high, one.p) == pytest.approx((alone.low, alone.high, alone.p), abs=0.05)
    best = paired_best(scores, 0.0, samples, nothing)
    alone = paired(scores.max(), 0.0, samples[scores.argmax()], nothing)
    assert alone.p < 0.06 < 0.2 < best.p
    assert best.low < 0 < alone.low
    assert best.high == alone.high


def test_an_interval_for_several_looks_leaves_out_a_share_of_the_five_per_cent():
    a, b = np.random.default_rng(0).normal(size=(2, 1000))
    for looks in (1, 2, 3, 10):
        found = paired(1.0, 0.5, a, b, looks)
        assert (found.low, found.high) == pytest.approx(lower_and_upper((a - b).tolist(), looks))
    wide, narrow = paired(1.0, 0.5, a, b - 1, 3), paired(1.0, 0.5, a, b - 1)
    assert wide.high > narrow.high
    assert wide.p == pytest.approx(min(1, 3 * narrow.p))


def test_equal_systems_are_rarely_stopped_although_they_are_looked_at_three_times():
    rng, stopped = np.random.default_rng(1), {1: 0, 3: 0}
    for _ in range(400):
        each = rng.normal(size=400)
        samples = [bootstrap(mean(each[:end]), end) for end in (100, 200, 400)]
        for looks in stopped:
            stopped[looks] += any(paired(0, 0, look, np.zeros(1000), looks).high < 0 for look in samples)
    # 2.5 % may be stopped wrongly, give or take 0.8 for 400 trials; three looks without correction stop more.
    assert stopped[3] <= 400 * 0.041
    assert stopped[1] >= 400 * 0.045
