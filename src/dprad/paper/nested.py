"""The paper's nested Monte Carlo for a continuous prior (its appendix), for comparison.

Outputs t_1 .. t_N uniform on the interval, for each one a sample of records for ``pbar(t)`` and
another for the gain of the few windows at which it can be largest; average, times the length L of
the interval. Its error bound, with the paper's slips repaired (docs/theory/errata.md): M the
largest density, P+ the heaviest window, k candidates,

    Pr[|error| >= s L] <=   2 exp(-N s^2/(18 M^2))
                          + exp(-N (s/3 - M sqrt(2 ln(2k)/N_z))_+^2/(2 M^2))
                          + exp(-2 N (s/(3 P+) - M/(2 sqrt(N_p)))_+^2/M^2) .

Hoeffding's inequality over outputs asks for fresh inner samples for every one. The bound does not
count how far the candidates, found on a grid, are from the best window: that lowers the estimate by
a term of second order. `assess` does not use this: quadrature is exact, and hundreds of times
faster (`benchmarks/bench_continuous.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.exact.solution import Solution
from dprad.mechanisms.exponential import ExponentialInterval
from dprad.model.priors import Prior
from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import first

# Guesses among which the candidates are looked for.
GRID = 101
# Windows that can be the best: both ends of the line and two turning points.
CANDIDATES = 4
# Likelihoods held at once.
BLOCK_ENTRIES = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A continuous prior on an interval, with the distribution function at its two ends."""

    distribution: Any
    low: float
    high: float
    begin: float
    end: float

    def records(self, shape: tuple[int, int], random: np.random.Generator) -> FloatArray:
        """Records, drawn independently."""
        if self.begin == 0.0 and self.end == 1.0 and hasattr(self.distribution, "rvs"):
            # far faster than inverting the distribution function
            return np.asarray(self.distribution.rvs(size=shape, random_state=random))
        u = self.begin + (self.end - self.begin) * random.random(shape)
        return np.asarray(np.clip(self.distribution.ppf(u), self.low, self.high))

    def mass(self, x: FloatArray, eta: float) -> FloatArray:
        """How likely a record is within eta of each x."""
        above, below = (
            np.asarray(self.distribution.cdf(np.clip(x + s, self.low, self.high)))
            for s in (eta, -eta)
        )
        return np.asarray((above - below) / (self.end - self.begin))


def nested_monte_carlo(
    mechanism: ExponentialInterval,
    prior: Prior,
    *,
    eta: float,
    draws: int,
    confidence: float = 0.95,
    rng: int = 0,
) -> Solution:
    """Nothing known, a guess counts within eta. O(n^2) for n draws of outputs and of records.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> from dprad.mechanisms import ExponentialInterval
    >>> prior = Prior.continuous(uniform(), 0, 1)
    >>> found = nested_monte_carlo(ExponentialInterval(epsilon=4.06, factor=1.0), prior,
    ...                            eta=0.1, draws=1000)
    >>> abs(found.rad - 0.2422) < 0.02
    True

    """
    if prior.continuous_on is None or not isinstance(mechanism, ExponentialInterval):
        raise DpradError(
            "nested Monte Carlo takes an ExponentialInterval and a continuous prior, but got a "
            f"{type(mechanism).__name__} and a prior that is {prior.kind}."
        )
    number(eta, "eta", low=0)
    n = whole(draws, "draws", low=2)
    distribution, low, high = prior.continuous_on
    begin, end = float(distribution.cdf(low)), float(distribution.cdf(high))
    line = _Line(distribution=distribution, low=low, high=high, begin=begin, end=end)
    random = np.random.default_rng(rng)
    a, b = mechanism.bounds
    guess = np.linspace(low, high, GRID)
    total = success = luck = 0.0
    step = max(1, BLOCK_ENTRIES // n)
    for k in range(0, n, step):
        t = random.uniform(a, b, min(step, n - k))
        shape = (len(t), n)
        pbar = np.exp(mechanism.log_likelihood(t[:, None], line.records(shape, random))).mean(
            axis=1
        )
        chosen = guess[_candidates(mechanism, distribution, t, pbar, guess, eta, (low, high))]
        z = line.records(shape, random)
        p = np.exp(mechanism.log_likelihood(t[:, None], z))
        gains = np.stack(
            [((np.abs(z - x[:, None]) <= eta) * (p - pbar[:, None])).mean(axis=1) for x in chosen.T]
        )
        best = gains.argmax(axis=0)
        total += float(gains.max(axis=0).sum())
        lucky = line.mass(np.take_along_axis(chosen, best[:, None], axis=1)[:, 0], eta) * pbar
        luck += float(lucky.sum())
        success += float((gains.max(axis=0) + lucky).sum())
    length = b - a
    rad = length * total / n
    top = float(mechanism.rate / mechanism.total(np.array([low, high])).min())
    bound = length * _error(n, top, float(line.mass(guess, eta).max()), confidence)
    return Solution(
        rad=rad,
        success_out=length * luck / n,
        rero=length * success / n,
        method=f"the paper's nested Monte Carlo, {n:,} draws",
        kind="estimate",
        interval=(max(0.0, rad - bound), min(1.0, rad + bound)),
    )


def _candidates(
    mechanism: ExponentialInterval,
    distribution: Any,
    t: FloatArray,
    pbar: FloatArray,
    guess: FloatArray,
    eta: float,
    ends: tuple[float, float],
) -> Any:
    """The paper's candidates: where the derivative of the gain turns from plus to minus."""
    low, high = ends

    def edge(x: FloatArray) -> FloatArray:
        """The integrand at an end of the window; zero beyond the line."""
        inside = (x >= low) & (x <= high)
        z = np.clip(x, low, high)
        with np.errstate(all="ignore"):
            weight = np.nan_to_num(np.asarray(distribution.pdf(z)), posinf=1e300)
        p = np.exp(mechanism.log_likelihood(t[:, None], z))
        return np.where(inside, (p - pbar[:, None]) * weight, 0.0)

    slope = edge(guess + eta) - edge(guess - eta)
    # the gain on the grid up to a constant; the best turning points stand first
    gain = np.concatenate(
        [np.zeros((len(t), 1)), np.cumsum((slope[:, 1:] + slope[:, :-1]) / 2, axis=1)], axis=1
    )
    turns = np.ones_like(slope, dtype=bool)
    turns[:, 1:-1] = (slope[:, :-2] >= 0) & (slope[:, 2:] <= 0)
    return np.argsort(np.where(turns, -gain, np.inf), axis=1)[:, :CANDIDATES]


def _error(n: int, top: float, heaviest: float, confidence: float) -> float:
    """The least s for which the bound is at most 1 - confidence, by bisection."""
    allowed = 1.0 - number(confidence, "confidence", low=0, high=1)

    def chance(s: float) -> float:
        outer = 2 * np.exp(-n * s * s / (18 * top**2))
        inner = max(0.0, s / 3 - top * np.sqrt(2 * np.log(2 * CANDIDATES) / n))
        mean = max(0.0, s / (3 * max(heaviest, 1e-300)) - top / (2 * np.sqrt(n)))
        with np.errstate(over="ignore"):
            rest = np.exp(-n * inner**2 / (2 * top**2)) + np.exp(-2 * n * mean**2 / top**2)
        return float(outer + rest)

    high = 1.0
    while chance(high) > allowed and high < 1e6:
        high *= 2
    return first(lambda s: chance(s) <= allowed, 0.0, high)
