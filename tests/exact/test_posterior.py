"""Compositions by posterior Monte Carlo: the interval against exact values, over seeds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dprad import DpradError, Prior, Threat, assess
from dprad.exact.posterior import estimate
from dprad.exact.solution import Sampling
from dprad.game.question import Question
from dprad.mechanisms import (
    GRR,
    OUE,
    Channel,
    Composed,
    Gaussian,
    Laplace,
    Repeated,
)
from dprad.numerics.intervals import betting
from dprad.runtime import progress as clock
from oracles import random_channel, random_instance


def product(*channels):
    """The channel of independent outputs seen together."""
    result = channels[0]
    for channel in channels[1:]:
        result = (result[:, :, None] * channel[:, None, :]).reshape(len(result), -1)
    return result


def estimated(mechanism, *, prior, threat=None, trials=20_000, confidence=0.9999, seed=0):
    """By draws, also where there is an exact answer."""
    game = Question.of(prior, threat).game
    read = mechanism.read(Question.of(prior, threat))
    sampling = Sampling(trials=trials, confidence=confidence, seed=seed)
    return estimate(mechanism, game, read, game.pi, sampling)


def grr_matrix(mechanism):
    return np.full((mechanism.size,) * 2, mechanism.lie) + mechanism.gap * np.eye(mechanism.size)


def oue_matrix(mechanism):
    """One bit a value: p for the true one, q for the others."""
    m = mechanism.size
    bits = np.array(list(itertools.product([0, 1], repeat=m)))
    one = np.where(np.eye(m, dtype=bool), mechanism.p, mechanism.q)
    return np.array([np.prod(np.where(bits == 1, row, 1 - row), axis=1) for row in one])


@pytest.mark.parametrize("seed", range(8))
def test_repeated_randomised_response(seed):
    """Ten reports over three values: 59,049 outputs, enumerated."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, 3)
    mechanism = GRR(epsilon=float(rng.uniform(0.1, 0.8)), size=3)
    exact = assess(
        Channel(product(*[grr_matrix(mechanism)] * 10)),
        prior=instance.prior,
        threat=instance.threat,
    )
    asked = {"prior": instance.prior, "threat": instance.threat}
    counted = assess(Repeated(mechanism, 10), **asked)
    assert counted.kind == "exact" and counted.rad == pytest.approx(exact.rad, abs=1e-11)
    assert counted.worst == pytest.approx(exact.worst, abs=1e-11)
    risk = estimated(Repeated(mechanism, 10), trials=4000, seed=seed, **asked)
    assert risk.kind == "estimate"
    assert risk.interval[0] - 1e-12 <= exact.rad <= risk.interval[1] + 1e-12
    assert risk.rad == pytest.approx(exact.rad, abs=0.03)
    assert risk.rero == pytest.approx(exact.rero, abs=0.03)
    assert risk.success_out == pytest.approx(exact.success_out, abs=0.05)


def test_a_mixed_composition(rng):
    grr, oue = GRR(epsilon=0.7, size=4), OUE(epsilon=1.1, size=4)
    prior = Prior.from_probabilities(rng.dirichlet(np.ones(4)))
    for threat in (Threat(), Threat(knows="everything"), Threat(loss="absolute", eta=1)):
        exact = assess(
            Channel(product(grr_matrix(grr), oue_matrix(oue))), prior=prior, threat=threat
        ).rad
        risk = estimated(Composed([grr, oue]), prior=prior, threat=threat, trials=8000)
        assert risk.interval[0] - 1e-12 <= exact <= risk.interval[1] + 1e-12


def test_repeated_gaussian_is_a_gaussian():
    """The mean of k outputs is sufficient: noise of sigma / sqrt k."""
    prior = Prior.from_counts({i: 1 + i % 2 for i in range(6)})
    exact = assess(Gaussian(sigma=2.0, sensitivity=5), prior=prior).rad
    four = Repeated(Gaussian(sigma=4.0, sensitivity=5), 4)
    risk = estimated(four, prior=prior, seed=3)
    assert risk.interval[0] <= exact <= risk.interval[1]
    assert assess(four, prior=prior).rad == exact


def test_repeated_laplace():
    """Five outputs of two records: sums of clipped log-ratios, by a fine grid and convolution."""
    rate, distance, times = 0.8, 1.0, 5
    # log-ratio of one output: -r and r are atoms, between them the density is that of the noise
    r, cells = rate * distance, 2000
    edges = np.linspace(-r, r, cells + 1)
    t = (edges + r) / (2 * rate)  # the output at which the log-ratio is that, from record 0
    below = 0.5 * np.exp(-rate * (distance - t))  # distribution function under record `distance`
    under = np.r_[0.5 * np.exp(-r), np.diff(below), 0.5]
    centre = np.r_[-r, (edges[1:] + edges[:-1]) / 2, r]
    grid = np.zeros(2 * cells + 1)
    index = np.rint((centre + r) / (2 * r) * (2 * cells)).astype(int)
    np.add.at(grid, index, under)
    law = grid
    for _ in range(times - 1):
        law = np.convolve(law, grid)
    losses = np.linspace(-times * r, times * r, len(law))
    tv = np.sum(law[losses > 0] * -np.expm1(-losses[losses > 0]))
    exact = tv / 2  # two equally likely records
    risk = assess(
        Repeated(Laplace(epsilon=rate, sensitivity=1), times),
        prior=Prior.uniform(2),
        confidence=0.9999,
    )
    assert risk.interval[0] - 1e-3 <= exact <= risk.interval[1] + 1e-3


def test_coverage_over_seeds():
    """A 90% interval that is conservative: misses in 200 seeds stay below 10% (alarm 1e-6)."""
    mechanism, prior = GRR(epsilon=0.6, size=3), Prior.from_counts({0: 3, 1: 2, 2: 1})
    exact = assess(Channel(product(*[grr_matrix(mechanism)] * 3)), prior=prior).rad
    misses = 0
    for seed in range(200):
        risk = estimated(Repeated(mechanism, 3), prior=prior, trials=200, confidence=0.9, seed=seed)
        misses += not risk.interval[0] <= exact <= risk.interval[1]
    assert misses <= 44  # binomial(200, 0.1) exceeds this with probability below 1e-6


def test_betting_covers_skewed_means(rng):
    """Rare large terms, the hard case: 2,000 samples, nominal 95%."""
    misses = 0
    for _ in range(2000):
        terms = (rng.random(200) < 0.01).astype(float)
        low, high = betting(terms, 0.95)
        misses += not low <= 0.01 <= high
    assert misses <= 160  # binomial(2000, 0.05) exceeds this with probability below 1e-6


def test_the_same_seed_gives_the_same_result():
    question = {"prior": Prior.uniform(3), "trials": 500}
    mechanism = Repeated(Laplace(epsilon=1, sensitivity=2), 2)
    assert assess(mechanism, rng=5, **question).rad == assess(mechanism, rng=5, **question).rad
    assert assess(mechanism, rng=5, **question).rad != assess(mechanism, rng=6, **question).rad


def test_one_mechanism_needs_no_sampling(rng):
    channel = Channel(random_channel(rng, 3, 4))
    one = assess(Repeated(channel, 1), prior=Prior.uniform(3))
    assert one.kind == "exact" and one.rad == assess(channel, prior=Prior.uniform(3)).rad


def test_a_composition_stays_below_its_promise():
    prior = Prior.uniform(4)
    mechanism = Repeated(GRR(epsilon=0.5, size=4), 5)
    bound = assess(mechanism.guarantee, prior=prior).rad
    assert assess(mechanism, prior=prior).interval[0] <= bound


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Composed([]), "one or more mechanisms"),
        (lambda: Composed([3]), "one or more mechanisms"),
        (lambda: Composed([GRR(epsilon=1, size=2), GRR(epsilon=1, size=3)]), "read the same"),
        (lambda: Repeated(GRR(epsilon=1, size=2), 0), "times"),
        (lambda: assess(GRR(epsilon=1, size=2), prior=Prior.uniform(2), trials=1), "trials"),
        (lambda: assess(GRR(epsilon=1, size=2), prior=Prior.uniform(2), rng=-1), "rng"),
        (
            lambda: assess(GRR(epsilon=1, size=2), prior=Prior.uniform(2), confidence=2),
            "confidence",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(DpradError, match=words):
        call()


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_betting_by_hand(confidence, rng):
    """The wealth of both bettors at the ends of the interval, term by term."""
    x = rng.beta(2, 5, size=200)
    needed = np.log(2 / (1 - confidence))

    def wealth(terms, m):
        """Bets that the mean is above m; the stakes are those of `x` itself."""
        total, sum_, spread = 0.0, 0.5, 0.25
        for t in range(200):
            variance = spread / (t + 1)
            stake = min(np.sqrt(2 * needed / (200 * variance)), 0.75 / m)
            total += np.log(1 + stake * (terms[t] - m))
            sum_ += x[t]
            spread += (x[t] - sum_ / (t + 2)) ** 2
        return total

    low, high = betting(x, confidence)
    assert wealth(x, low - 1e-6) >= needed >= wealth(x, low + 1e-6)
    assert wealth(1 - x, 1 - high - 1e-6) >= needed >= wealth(1 - x, 1 - high + 1e-6)
    assert low < x.mean() < high and betting(x, 1.0) == (0.0, 1.0)


def test_what_cannot_be_refuted_is_the_whole_range():
    assert betting(np.zeros(3), 0.95)[0] == 0.0 and betting(np.ones(3), 0.95)[1] == 1.0
    low, high = betting(np.ones(2), 0.999)
    assert low < 0.5 and high == 1.0


def test_no_guess_is_ever_right():
    """The only guess that counts is about a record that does not occur."""
    prior, never = Prior.from_probabilities([0.5, 0.5, 0.0]), Threat(loss=np.diag([0, 0, 1]) == 1)
    risk = assess(Repeated(GRR(epsilon=1.0, size=3), 2), prior=prior, threat=never)
    assert (risk.rad, risk.success_out, risk.rero) == (0.0, 0.0, 0.0)


def test_one_guess_that_counts():
    """About one record of three: as exact as its channel says."""
    prior, one = Prior.from_probabilities([0.5, 0.3, 0.2]), Threat(loss=np.diag([1, 0, 0]) == 1)
    grr = GRR(epsilon=1.0, size=3)
    exact = assess(Channel(product(grr_matrix(grr), grr_matrix(grr))), prior=prior, threat=one)
    risk = estimated(Repeated(grr, 2), prior=prior, threat=one)
    assert exact.rad > 0.1 and risk.interval[0] <= exact.rad <= risk.interval[1]


def test_as_many_draws_as_were_asked_for():
    told = []
    both = Composed([Laplace(epsilon=1.0, sensitivity=2)] * 2)
    with clock.listen(lambda what, done, total: told.append((what, done, total))):
        assess(both, prior=Prior.uniform(3), trials=20_001)
    assert [t[1:] for t in told if t[0] == "draws"] == [
        (8192, 20_001), (16_384, 20_001), (20_001, 20_001)
    ]  # fmt: skip
    assert told[-1] == ("people", 3, 3)
