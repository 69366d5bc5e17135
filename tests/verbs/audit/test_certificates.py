"""Bets with known chances: against closed forms; false-alarm rates of tight mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from dprad.verbs.audit.certificates import (
    log_wealth,
    lower_mean,
    lower_proportion,
    refuted,
    upper_proportion,
)
from dprad.verbs.audit.tally import Tally
from effort import some

ALPHA = 0.05


def test_one_sided_proportions():
    for s, n in ((0, 10), (1, 10), (3, 10), (10, 10), (1, 1), (400, 1000)):
        low, high = lower_proportion(s, n, 0.05), upper_proportion(s, n, 0.05)
        assert low == pytest.approx(beta.ppf(0.05, s, n - s + 1) if s else 0.0)
        assert high == pytest.approx(beta.ppf(0.95, s + 1, n - s) if s < n else 1.0)
        if s:
            assert binom.sf(s - 1, n, low) == pytest.approx(0.05)


@pytest.mark.parametrize("m", [2, 5, 100])
def test_the_cap_of_randomised_response(m):
    """Right guesses at the chance of GRR: the certificate is the inverse of that chance."""
    truth, n = math.exp(1.5) / (math.exp(1.5) + m - 1), 1_000_000
    for sequential in (False, True):
        found = refuted({1 / m: (n, round(truth * n))}, ALPHA, sequential)
        assert 1.5 - 0.1 * math.sqrt(m) < found < 1.5


def test_fixed_size_is_tighter_than_anytime():
    fixed, anytime = (refuted({0.5: (10_000, 7000)}, ALPHA, s) for s in (False, True))
    assert anytime < fixed < math.log(7 / 3)


def test_everything_revealed():
    assert refuted({0.5: (1000, 1000)}, ALPHA, False) > 5
    assert refuted({0.5: (1000, 1000)}, ALPHA, True) > 4


def test_no_bet_no_certificate():
    assert refuted({}, ALPHA, False) == refuted({}, ALPHA, True) == 0.0
    assert log_wealth({}, 1.0) == 0.0


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("size", [1, 2])
def test_false_alarms_of_tight_mechanisms(sequential, size):
    """Bets on one or two of four records, randomised response, at 95%."""
    rng, m, epsilon, n = np.random.default_rng(1), 4, 1.0, 400
    k = size / m
    truth = k * math.exp(epsilon) / (k * math.exp(epsilon) + 1 - k)
    alarms = 0
    for _ in range(audits := some(2000, 400)):
        right = rng.random(n) < truth
        for look in (100, 200, 300, 400) if sequential else (n,):
            if refuted({k: (look, int(right[:look].sum()))}, ALPHA, sequential) > epsilon:
                alarms += 1
                break
    assert alarms <= binom.isf(1e-6, audits, 0.05)


def test_false_alarms_with_several_priors_and_passes():
    """Guesses of different blind chance, made or passed by the output: 1,000 audits at 90%."""
    rng, epsilon = np.random.default_rng(2), 0.8
    pi = np.array([0.6, 0.3, 0.1])
    e, n, alarms = math.exp(epsilon), 500, 0
    for _ in range(1000):
        z = rng.choice(3, size=n, p=pi)
        lie = rng.random(n) >= e / (e + 2)
        out = np.where(lie, (z + rng.integers(1, 3, n)) % 3, z)
        blind = np.where(out == 0, np.nan, pi[out])  # passes on the likeliest output
        alarms += refuted(Tally.of(blind, out == z, None).staked, 0.1, False) > epsilon
    assert alarms <= 150  # binomial(1000, 0.1) exceeds this with probability below 1e-6


def test_betting_covers_a_mean():
    """Terms in [-1, 1]; 1,000 samples at 90%, looked at ten times each."""
    rng, misses = np.random.default_rng(3), 0
    for _ in range(1000):
        x = rng.choice([1.0, 0.0, -1.0], size=300, p=[0.15, 0.8, 0.05])
        for look in range(30, 301, 30):
            values, counts = np.unique(x[:look], return_counts=True)
            if lower_mean(values, counts.astype(float), 0.1) > 0.1:
                misses += 1
                break
    assert misses <= 150


def test_tallies_add_up_and_travel(rng):
    parts = []
    for _ in range(5):
        blind = rng.choice([0.25, 0.5, np.nan], size=50)
        right = (rng.random(50) < 0.5) & ~np.isnan(blind)
        bets = rng.choice([0.1, np.nan], size=50), rng.random(50) < 0.2
        parts.append(Tally.of(blind, right, rng.random(50) < 0.3, bets))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.runs == 250 and total.passes + sum(n for n, _ in total.groups.values()) == 250
    assert Tally.from_plain(total.to_plain()) == total
    assert sum(parts[::-1], Tally()) == total


def test_nothing_tried_nothing_known():
    assert (lower_proportion(0, 0, 0.05), upper_proportion(0, 0, 0.05)) == (0.0, 1.0)


@pytest.mark.parametrize("groups", [{0.2: (400, 170)}, {0.2: (300, 130), 0.5: (100, 77)}])
def test_the_posterior_cap_by_hand(groups):
    def chance(k, epsilon):
        return k * math.exp(epsilon) / (k * math.exp(epsilon) + 1 - k)

    def likelihood(epsilon):
        return sum(
            s * math.log(chance(k, epsilon)) + (n - s) * math.log(1 - chance(k, epsilon))
            for k, (n, s) in groups.items()
        )

    def wealth(epsilon):
        beyond = np.geomspace(0.01, 8.0, 20)
        return float(
            np.mean([math.exp(likelihood(epsilon + b) - likelihood(epsilon)) for b in beyond])
        )

    anytime = refuted(groups, ALPHA, True)
    assert anytime > 0.1
    assert log_wealth(groups, 0.3) == pytest.approx(math.log(wealth(0.3)), rel=1e-9)
    assert wealth(anytime - 1e-6) >= 1 / ALPHA >= wealth(anytime + 1e-6)
    fixed = refuted(groups, ALPHA, False)
    if len(groups) == 1:
        low = beta.ppf(ALPHA, 170, 231)
        assert chance(0.2, fixed) == pytest.approx(low, rel=1e-9)
    else:
        assert fixed == anytime


def test_certain_and_impossible_guesses_say_nothing():
    """A guess that is right for sure, or never, has no odds; it is left out."""
    plain, more = {0.2: (400, 170)}, {0.2: (400, 170), 1.0: (100, 100), 0.0: (100, 0)}
    assert refuted(more, ALPHA, False) == refuted(plain, ALPHA, False) > 0
    worse = {0.2: (400, 60)}
    assert refuted(worse, ALPHA, False) == refuted(worse, ALPHA, True) == 0.0


def test_a_mean_by_hand():
    values, counts = np.array([-1.0, 0.1, 1.0]), np.array([20.0, 300.0, 180.0])

    def wealth(mu):
        return float(
            np.mean(
                [
                    math.exp(sum(c * math.log(1 + s / (1 + mu) * (x - mu)) for x, c in pairs))
                    for s in np.geomspace(1e-4, 0.9, 40)
                ]
            )
        )

    pairs = list(zip(values, counts, strict=True))
    found = lower_mean(values, counts, ALPHA)
    assert 0.2 < found < float(values @ counts) / 500
    assert wealth(found - 1e-7) >= 1 / ALPHA >= wealth(found + 1e-7)
    assert lower_mean(values, np.zeros(3), ALPHA) == -1.0
    assert lower_mean(np.array([-1.0]), np.array([50.0]), ALPHA) == -1.0
