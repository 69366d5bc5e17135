"""Certificates: against closed forms; false-alarm rates by simulation of tight mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from dprad import ApproxDP, Prior, Threat, assess
from dprad.game.game import play
from dprad.verbs.audit.certificates import (
    certify,
    lower_mean,
    lower_proportion,
    risk_inverse,
    upper_proportion,
)
from dprad.verbs.audit.tally import Tally
from oracles import random_instance


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


# -- against plain formulas ------------------------------------------------------------------------
ALPHA, MAIN = 0.05, 0.05 * 0.9  # the certificate by extra risk has a tenth


def main_epsilon(tally, game, delta, sequential):
    found, _ = certify(tally, game, delta=delta, alpha=ALPHA, sequential=sequential)
    return found[0].epsilon


@pytest.mark.parametrize(
    ("m", "runs", "right", "passes"), [(2, 500, 400, 0), (5, 900, 300, 250), (40, 3000, 300, 10)]
)
@pytest.mark.parametrize("delta", [1e-6, 0.02])
def test_right_against_wrong_by_hand(m, runs, right, passes, delta):
    game, wrong = play(Prior.uniform(m), Threat()), runs - right - passes
    tally = Tally(runs=runs, passes=passes, groups={1 / m: (runs - passes, right)})
    low = beta.ppf(MAIN / 2, right, runs - right + 1)
    high = beta.ppf(1 - MAIN / 2, wrong + 1, runs - wrong)
    expected = math.log((m - 1) * (low - delta) / high)
    assert main_epsilon(tally, game, delta, False) == pytest.approx(expected, rel=1e-9)

    def wealth(epsilon):
        loss, total = math.exp(epsilon) / (m - 1), 0.0
        for share in np.geomspace(1e-4, 0.9, 40):
            stake = share / (loss + delta)
            each = right * math.log(1 + stake * (1 - delta))
            each += wrong * math.log(1 - stake * (loss + delta))
            each += passes * math.log(1 - stake * delta)
            total += math.exp(each) / 40
        return total

    anytime = main_epsilon(tally, game, delta, True)
    assert 0 < anytime < expected
    assert wealth(anytime - 1e-6) >= 1 / MAIN >= wealth(anytime + 1e-6)


def test_nothing_tried_nothing_known():
    assert (lower_proportion(0, 0, 0.05), upper_proportion(0, 0, 0.05)) == (0.0, 1.0)


def test_right_against_wrong_at_its_ends():
    game = play(Prior.uniform(4), Threat())
    few = Tally(runs=100, groups={0.25: (100, 3)})
    assert main_epsilon(few, game, 0.05, False) == 0.0  # fewer right than delta explains
    even = Tally(runs=100, groups={0.25: (100, 25)})
    assert main_epsilon(even, game, 0.01, False) == main_epsilon(even, game, 0.01, True) == 0.0
    little = Tally(runs=10_000, groups={0.25: (10_000, 3000)})
    low, high = beta.ppf(MAIN / 2, 3000, 7001), beta.ppf(1 - MAIN / 2, 7001, 3000)
    expected = math.log(3 * (low - 0.01) / high)
    assert 0 < expected < math.log(1.2)
    assert main_epsilon(little, game, 0.01, False) == pytest.approx(expected)


@pytest.mark.parametrize("groups", [{0.2: (400, 170)}, {0.2: (300, 130), 0.5: (100, 77)}])
def test_the_posterior_cap_by_hand(groups):
    pi = [0.2, 0.5, 0.3]
    game = play(Prior.from_probabilities(pi), Threat())
    tally = Tally(runs=500, passes=100, groups=groups)

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

    anytime = main_epsilon(tally, game, 0.0, True)
    assert anytime > 0.1
    assert wealth(anytime - 1e-6) >= 1 / MAIN >= wealth(anytime + 1e-6)
    fixed = main_epsilon(tally, game, 0.0, False)
    if len(groups) == 1:
        low = beta.ppf(MAIN, 170, 231)
        assert chance(0.2, fixed) == pytest.approx(low, rel=1e-9)
    else:
        assert fixed == anytime


def test_certain_and_impossible_guesses_say_nothing():
    """A guess that is right for sure, or never, has no odds; it is left out."""
    game = play(Prior.from_probabilities([0.2, 0.5, 0.3]), Threat())
    plain = Tally(runs=500, passes=100, groups={0.2: (400, 170)})
    more = Tally(runs=700, passes=100, groups={0.2: (400, 170), 1.0: (100, 100), 0.0: (100, 0)})
    assert main_epsilon(more, game, 0.0, False) == main_epsilon(plain, game, 0.0, False) > 0
    worse = Tally(runs=400, groups={0.2: (400, 60)})
    assert main_epsilon(worse, game, 0.0, False) == main_epsilon(worse, game, 0.0, True) == 0.0


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


def test_which_certificates_and_what_they_share():
    """Everything known, or several certificates: alpha is split, never spent twice."""
    known = play(Prior.uniform(3), Threat(knows="everything"))
    tally = Tally.of(np.full(400, 1 / 3), np.arange(400) < 300, np.arange(400) < 100)
    found, low = certify(tally, known, delta=0.0, alpha=ALPHA, sequential=False)
    assert [c.name for c in found] == ["extra risk"]
    values, counts = tally.terms(known=True)
    assert low == lower_mean(values, counts, ALPHA)
    blind = play(Prior.uniform(3), Threat())
    plain = Tally(runs=400, groups={1 / 3: (400, 300)})
    for delta, name in ((0.0, "posterior cap"), (0.01, "right against wrong")):
        found, low = certify(plain, blind, delta=delta, alpha=ALPHA, sequential=False)
        assert [c.name for c in found] == [name, "extra risk"]
        assert low == lower_mean(*plain.terms(known=False), ALPHA - MAIN)
    uneven = play(Prior.from_probabilities([0.5, 0.3, 0.2]), Threat())
    found, _ = certify(plain, uneven, delta=0.01, alpha=ALPHA, sequential=False)
    assert [c.name for c in found] == ["extra risk"]


@pytest.mark.parametrize("share", [0.1, 0.7])
@pytest.mark.parametrize("seed", range(6))
def test_the_inverse_is_tight(seed, share):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, 4, kind="matrix")
    game = play(instance.prior, instance.threat)
    top = assess(
        ApproxDP(4.0, 0.01, neighbours="replace-one"), prior=instance.prior, threat=instance.threat
    ).rad
    rad = share * top
    at = risk_inverse(rad, game, 0.01)

    def most(epsilon):
        promise = ApproxDP(epsilon, 0.01, neighbours="replace-one")
        return assess(promise, prior=instance.prior, threat=instance.threat).rad

    if at > 0:
        assert most(at) <= rad + 1e-9 and most(at + 1e-6) >= rad - 1e-9
    else:
        assert most(0.0) >= rad
    assert risk_inverse(2.0, game, 0.01) == 700.0  # more than any epsilon explains


def test_what_delta_alone_explains_certifies_nothing():
    game = play(Prior.uniform(4), Threat(loss="absolute", eta=1))
    assert risk_inverse(0.05, game, 0.3) == 0.0


def test_everything_revealed_against_delta():
    """Never a wrong guess, looked at again and again: a large epsilon, not an overflow."""
    game = play(Prior.uniform(50), Threat())
    tally = Tally(runs=10**6, groups={1 / 50: (10**6, 10**6)})
    assert main_epsilon(tally, game, 0.01, True) > 10
    assert main_epsilon(tally, game, 0.01, False) > 10
