"""Certificates: against closed forms; false-alarm rates by simulation of tight mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from dprad import ApproxDP, Prior, Threat, assess
from dprad.auditing.certificates import (
    certify,
    lower_mean,
    lower_proportion,
    risk_inverse,
    upper_proportion,
)
from dprad.auditing.tally import Tally
from dprad.games import play
from oracles import random_instance


def test_one_sided_proportions():
    for s, n in ((0, 10), (3, 10), (10, 10), (400, 1000)):
        low, high = lower_proportion(s, n, 0.05), upper_proportion(s, n, 0.05)
        assert low == pytest.approx(beta.ppf(0.05, s, n - s + 1) if s else 0.0)
        assert high == pytest.approx(beta.ppf(0.95, s + 1, n - s) if s < n else 1.0)
        if s:
            assert binom.sf(s - 1, n, low) == pytest.approx(0.05)


@pytest.mark.parametrize("m", [2, 5, 100])
def test_the_cap_of_randomised_response(m):
    """Right guesses at the chance of GRR: the certificate is the inverse of that chance."""
    game = play(Prior.uniform(m), Threat())
    truth = math.exp(1.5) / (math.exp(1.5) + m - 1)
    n = 1_000_000
    tally = Tally(runs=n, groups={1 / m: (n, round(truth * n))})
    for sequential in (False, True):
        both, low = certify(tally, game, delta=0.0, alpha=0.05, sequential=sequential)
        assert 0 < low < truth - 1 / m
        found = {c.name: c.epsilon for c in both}
        assert 1.5 - 0.1 * math.sqrt(m) < found["posterior cap"] < 1.5
        assert 0 < found["extra risk"] <= 1.5


def test_fixed_size_is_tighter_than_anytime():
    game, n = play(Prior.uniform(2), Threat()), 10_000
    tally = Tally(runs=n, passes=0, groups={0.5: (n, 7000)})
    fixed, anytime = (
        certify(tally, game, delta=0.0, alpha=0.05, sequential=s)[0][0].epsilon
        for s in (False, True)
    )
    assert anytime < fixed < math.log(7 / 3)


@pytest.mark.parametrize("seed", range(30))
def test_the_inverse_of_the_extra_risk(seed):
    """Pushed through the bound again it gives the same risk, for any game and delta."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, int(rng.integers(2, 6)))
    game = play(instance.prior, instance.threat)
    delta = float(rng.choice([0.0, 0.01]))
    epsilon = float(rng.uniform(0.2, 3.0))
    risk = assess(
        ApproxDP(epsilon, delta, neighbours="replace-one"),
        prior=instance.prior,
        threat=instance.threat,
    ).rad
    if risk > 0:
        assert risk_inverse(risk, game, delta) <= epsilon + 1e-6
        less = risk_inverse(risk * 0.999, game, delta)
        assert less <= epsilon
    assert risk_inverse(0.0, game, delta) == 0.0
    assert risk_inverse(-0.3, game, delta) == 0.0


def test_everything_revealed():
    game, n = play(Prior.uniform(2), Threat()), 1000
    tally = Tally(runs=n, groups={0.5: (n, n)})
    assert certify(tally, game, delta=0.0, alpha=0.05, sequential=False)[0][0].epsilon > 5
    assert certify(tally, game, delta=0.0, alpha=0.05, sequential=True)[0][0].epsilon > 4


def test_no_guess_no_certificate():
    game = play(Prior.uniform(3), Threat())
    found, _ = certify(Tally(runs=100, passes=100), game, delta=0.0, alpha=0.05, sequential=False)
    assert max(c.epsilon for c in found) == 0.0


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("sequential", [False, True])
def test_false_alarms_of_tight_mechanisms(sequential, delta):
    """The extreme mechanism of the promise itself, 2,000 audits at 95%: at most 5% alarms.

    With m = 4 candidates: reveal with probability delta, else randomised response. More than 145
    alarms of 2,000 have probability below 1e-6 if the rate is 5%.
    """
    rng, m, epsilon, n = np.random.default_rng(1), 4, 1.0, 400
    game = play(Prior.uniform(m), Threat())
    truth = delta + (1 - delta) * math.exp(epsilon) / (math.exp(epsilon) + m - 1)
    alarms = 0
    for _ in range(2000):
        right = rng.random(n) < truth
        looks = (100, 200, 300, 400) if sequential else (n,)
        for look in looks:
            tally = Tally(runs=look, groups={1 / m: (look, int(right[:look].sum()))})
            found, _ = certify(tally, game, delta=delta, alpha=0.05, sequential=sequential)
            if max(c.epsilon for c in found) > epsilon:
                alarms += 1
                break
    assert alarms <= 145


def test_false_alarms_with_several_priors_and_passes():
    """Guesses of different blind chance, made or passed by the output: 1,000 audits at 90%."""
    rng, epsilon = np.random.default_rng(2), 0.8
    pi = np.array([0.6, 0.3, 0.1])
    game = play(Prior.from_probabilities(pi), Threat())
    e, n, alarms = math.exp(epsilon), 500, 0
    for _ in range(1000):
        z = rng.choice(3, size=n, p=pi)
        lie = rng.random(n) >= e / (e + 2)
        out = np.where(lie, (z + rng.integers(1, 3, n)) % 3, z)
        blind = np.where(out == 0, np.nan, pi[out])  # passes on the likeliest output
        tally = Tally.of(blind, out == z, None)
        found, _ = certify(tally, game, delta=0.0, alpha=0.1, sequential=False)
        alarms += max(c.epsilon for c in found) > epsilon
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
        parts.append(Tally.of(blind, right, rng.random(50) < 0.3))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.runs == 250 and total.passes + sum(n for n, _ in total.groups.values()) == 250
    assert Tally.from_plain(total.to_plain()) == total
    assert sum(parts[::-1], Tally()) == total
