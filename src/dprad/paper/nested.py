"""The paper's nested Monte Carlo for a continuous prior (its appendix), for comparison.

Outputs t_1 .. t_N uniform on the interval, for each one a sample of records for ``pbar(t)`` and
another for the gain of the few windows at which it can be largest; average, times the length L of
the interval. Its error bound, with the paper's slips repaired (docs/theory/errata.md): M the
largest density, P+ the heaviest window, k candidates,

    Pr[|error| >= s L] <=   2 exp(-N s^2/(18 M^2))
                          + exp(-N (s/3 - M sqrt(2 ln(2k)/N_z))_+^2/(2 M^2))
                          + exp(-2 N (s/(3 P+) - M/(2 sqrt(N_p)))_+^2/M^2) .

Hoeffding's inequality over outputs asks for fresh inner samples for every one. The bound is about
the best of the candidates, which are found on a grid: a window between two of its points may gain
a little more. `assess` does not use this: quadrature is exact, and hundreds of times faster
(`benchmarks/bench_continuous.py`).

A repetition sorts its records once for each output; the gain of a window is then a difference of
two running sums, for any number of mechanisms and tolerances. All of it in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprad.errors import DpradError, interval, number, whole
from dprad.exact.solution import Solution
from dprad.mechanisms.bounded import Piecewise
from dprad.mechanisms.density import Density
from dprad.mechanisms.exponential import CutLaplace
from dprad.model.priors import Prior
from dprad.numerics.arrays import FloatArray
from dprad.numerics.bisection import first
from dprad.numerics.random import Seed, seed
from dprad.paper.arrays import Line, Numpy, Torch

# Guesses among which the candidates are looked for.
GRID = 101
# Windows that can be the best: both ends of the line and two turning points.
CANDIDATES = 4
# Outputs and records at which a density is tried: for its integral, and for its largest value.
OUTPUTS, RECORDS = 20_001, 41
# How far the integral of a density may be from 1.
SLACK = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows:
    """Guesses on a grid, and the mass that enters and leaves from one to the next."""

    eta: float
    guess: FloatArray
    entering: FloatArray
    leaving: FloatArray
    heaviest: float

    @classmethod
    def of(cls, line: Line, eta: float) -> _Windows:
        """Of half-width eta. Windows that just reach an end of the line are among them."""
        ends = np.clip([line.low + eta, line.high - eta], line.low, line.high)
        grid = np.linspace(line.low, line.high, GRID)
        guess = np.unique(np.concatenate([grid, ends]))
        above, below = np.diff(line.cdf(guess + eta)), np.diff(line.cdf(guess - eta))
        heaviest = float(line.mass(guess, eta).max())
        return cls(eta=eta, guess=guess, entering=above, leaving=below, heaviest=heaviest)


def nested_monte_carlo(
    mechanism: Any,
    prior: Prior,
    *,
    eta: float,
    draws: int,
    outputs: tuple[float, float] | None = None,
    confidence: float = 0.95,
    rng: Seed = 0,
) -> Solution:
    """The extra risk by the paper's nested Monte Carlo: nothing known, a guess counts within eta.

    Takes n² time for n draws of outputs and of records. `assess` is exact and faster; this is for
    comparison.

    Parameters
    ----------
    mechanism
        Anything with ``log_likelihood(outputs, records)`` whose outputs have a density on an
        interval.
    prior
        A continuous prior, as of `Prior.continuous`.
    eta
        A guess counts within this distance.
    draws
        Number of outputs, and of records for each.
    outputs
        Interval (low, high) of the outputs. Default: what `ExponentialInterval`, `BoundedLaplace`,
        `Piecewise` and `Density` say; needed for others.
    confidence
        Confidence level of the interval, between 0 and 1. The interval rests on the largest
        density, which is exact for the exponential mechanism and found on a grid for others.
    rng
        Seed. The same seed gives the same result.

    Returns
    -------
    Solution
        ``rad``, ``success_out``, ``rero`` (the success rate of the same guesses) and ``interval``,
        the paper's error bound, repaired. The bound is crude: for few draws (some thousands, where
        epsilon is large) the interval is (0, 1).

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
    line = _line(prior)
    number(eta, "eta", low=0)
    n = whole(draws, "draws", low=2)
    ends = _outputs(mechanism, line, outputs)
    windows = _Windows.of(line, eta)
    guesses: list[tuple[FloatArray, FloatArray]] = []
    gain = _repetition([mechanism], line, [windows], n, ends, Numpy(seed(rng)), guesses)[0, 0]
    length = ends[1] - ends[0]
    error = length * _error(n, _top(mechanism, line, ends), windows.heaviest, confidence)
    luck = sum(float((line.mass(x, eta) * pbar).sum()) for x, pbar in guesses) * length / n
    rad = float(gain)
    return Solution(
        rad=rad,
        success_out=luck,
        rero=rad + luck,
        method=f"the paper's nested Monte Carlo, {n:,} draws",
        kind="estimate",
        interval=(max(0.0, rad - error), min(1.0, rad + error)),
    )


def repetitions(
    mechanisms: Sequence[CutLaplace],
    prior: Prior,
    *,
    etas: Sequence[float],
    draws: int,
    seeds: Sequence[Any],
    device: str | None = None,
) -> FloatArray:
    """Estimates, repetitions x mechanisms x tolerances; one repetition for every seed.

    The draws of a repetition serve all mechanisms and tolerances, so its estimates depend on each
    other; repetitions are independent. `device`: one of PyTorch's ("cuda", "cpu"), or None for
    NumPy; each has random numbers of its own.
    """
    line = _line(prior)
    ends = _outputs(mechanisms[0], line, None)
    if any(not isinstance(m, CutLaplace) or m.bounds != ends for m in mechanisms):
        raise DpradError("repetitions take exponential mechanisms with the same bounds.")
    windows = [_Windows.of(line, eta) for eta in etas]
    found = []
    for one in seeds:
        engine = Numpy(one) if device is None else Torch(one, device)
        found.append(_repetition(mechanisms, line, windows, draws, ends, engine))
    return np.array(found)


def guaranteed(mechanism: Any, prior: Prior, *, eta: float, draws: int, level: float) -> float:
    """How far the estimate may be from the truth by the error bound, not cut off at 1."""
    line = _line(prior)
    ends = _outputs(mechanism, line, None)
    heaviest = _Windows.of(line, eta).heaviest
    return (ends[1] - ends[0]) * _error(draws, _top(mechanism, line, ends), heaviest, level)


# -- one repetition --------------------------------------------------------------------------------
def _repetition(
    mechanisms: Sequence[Any],
    line: Line,
    windows: Sequence[_Windows],
    n: int,
    ends: tuple[float, float],
    engine: Any,
    guesses: list[tuple[FloatArray, FloatArray]] | None = None,
) -> FloatArray:
    """The estimates, mechanisms x windows. The guesses are kept, with pbar, if there is a list."""
    total = [[0.0] * len(windows) for _ in mechanisms]
    step = max(1, engine.block // n)
    for k in range(0, n, step):
        t = engine.uniform(*ends, min(step, n - k))
        records = engine.records(line, (len(t), n))
        averages = [_density(m, t, records, engine).mean(1)[:, None] for m in mechanisms]
        z = engine.sorted(engine.records(line, (len(t), n)))
        sums = [engine.running(_density(m, t, z, engine)) for m in mechanisms]
        for j, window in enumerate(windows):
            for i, mechanism in enumerate(mechanisms):
                x = _candidates(mechanism, t, averages[i], window, line, engine)
                begin, end = engine.within(z, x - window.eta, x + window.eta, line)
                gains = engine.at(sums[i], end) - engine.at(sums[i], begin)
                gains = (gains - averages[i] * (end - begin)) / n
                best = gains.argmax(1)[:, None]
                total[i][j] = total[i][j] + engine.at(gains, best).sum()
                if guesses is not None:
                    guesses.append((engine.at(x, best)[:, 0], averages[i][:, 0]))
    return (ends[1] - ends[0]) * np.array([[float(v) for v in row] for row in total]) / n


def _density(mechanism: Any, t: Any, z: Any, engine: Any) -> Any:
    """Density of outputs (rows) given records (rows x columns, or one line for all rows)."""
    if not isinstance(mechanism, CutLaplace):
        return np.exp(mechanism.log_likelihood(t[:, None], z))
    (low, high), rate, xp = mechanism.bounds, mechanism.rate, engine.xp
    if rate == 0:
        return xp.zeros_like(t[:, None] + z) + 1.0 / (high - low)
    total = -xp.expm1(-rate * (z - low)) - xp.expm1(-rate * (high - z))
    return rate * xp.exp(-rate * xp.abs(t[:, None] - z)) / total


def _candidates(
    mechanism: Any, t: Any, average: Any, window: _Windows, line: Line, engine: Any
) -> Any:
    """The paper's candidates: where the gain stops growing, the largest first.

    From one guess to the next a little mass enters the window and a little leaves it; the density
    there is taken in the middle. If there are fewer, the best one stands in for the rest.
    """
    middle = (window.guess[1:] + window.guess[:-1]) / 2
    change = 0.0
    for sign, mass in ((1.0, window.entering), (-1.0, window.leaving)):
        at = engine.array(np.clip(middle + sign * window.eta, line.low, line.high))
        change = change + sign * (_density(mechanism, t, at, engine) - average) * engine.array(mass)
    gain = engine.running(change)
    turns = engine.xp.ones_like(gain, dtype=bool)
    turns[:, 1:] &= change >= 0
    turns[:, :-1] &= change <= 0
    gain[~turns] = -np.inf
    values, places = engine.largest(gain, CANDIDATES)
    places = engine.xp.where(values > -np.inf, places, places[:, :1])
    return engine.array(window.guess)[places]


# -- the error bound and what it needs -------------------------------------------------------------
def _line(prior: Prior) -> Line:
    if not isinstance(prior, Prior) or prior.continuous_on is None:
        kind = prior.kind if isinstance(prior, Prior) else type(prior).__name__
        raise DpradError(
            f"nested Monte Carlo takes a continuous prior, but got one that is {kind}."
        )
    distribution, low, high = prior.continuous_on
    begin, end = float(distribution.cdf(low)), float(distribution.cdf(high))
    return Line(distribution=distribution, low=low, high=high, begin=begin, end=end)


def _outputs(mechanism: Any, line: Line, given: tuple[float, float] | None) -> tuple[float, float]:
    """The interval of the outputs, checked: there the density must integrate to 1."""
    if given is not None:
        ends = interval(given, "outputs")
    elif isinstance(mechanism, CutLaplace | Density):
        ends = mechanism.bounds
    elif isinstance(mechanism, Piecewise) and mechanism.epsilon > 0:
        middle, reach = sum(mechanism.bounds) / 2, mechanism.half * mechanism.reach
        ends = (middle - reach, middle + reach)
    else:
        raise DpradError(
            "nested Monte Carlo needs to know where the outputs lie. ExponentialInterval, "
            f"BoundedLaplace, Piecewise and Density say it; for {type(mechanism).__name__} set "
            "outputs=(low, high)."
        )
    if hasattr(mechanism, "reads"):
        mechanism.reads(np.array([line.low, line.high]))
    if not isinstance(mechanism, CutLaplace):
        integral = _values(mechanism, line, ends).mean(axis=1) * (ends[1] - ends[0])
        off = float(np.abs(integral - 1.0).max())
        if not off <= SLACK:
            raise DpradError(
                f"the density of {type(mechanism).__name__} between {ends[0]:g} and {ends[1]:g} "
                f"integrates to something {off:.2g} away from 1: it has atoms, or outputs "
                "elsewhere. Nested Monte Carlo integrates a density; use dprad.assess."
            )
    return ends


def _values(mechanism: Any, line: Line, ends: tuple[float, float]) -> FloatArray:
    """Densities of many outputs (columns) given some records (rows)."""
    half = (ends[1] - ends[0]) / OUTPUTS / 2
    t = np.linspace(ends[0] + half, ends[1] - half, OUTPUTS)
    z = np.linspace(line.low, line.high, RECORDS)[:, None]
    return np.asarray(np.exp(mechanism.log_likelihood(t, z)))


def _top(mechanism: Any, line: Line, ends: tuple[float, float]) -> float:
    """The largest density."""
    if not isinstance(mechanism, CutLaplace):
        return float(_values(mechanism, line, ends).max())
    if mechanism.rate == 0:
        return 1.0 / (ends[1] - ends[0])
    return float(mechanism.rate / mechanism.total(np.array([line.low, line.high])).min())


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
