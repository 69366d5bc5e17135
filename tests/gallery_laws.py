"""Likelihood ratios of the gallery: ln p(output | second) / p(output | first), by formulas,
enumeration and integration.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

INF = math.inf
# Noise of the four steps, and the counts of noisy max with the gap.
SIGMA = 0.3
COUNTS = ((1.0, 0.0, 0.0), (0.0, 1.0, 1.0))


def ratio(second, first):
    """ln of a ratio; infinities where one is 0."""
    if second == 0 or first == 0:
        return INF if second > 0 else -INF
    return math.log(second / first)


def moved(y, by=1.0, scale=1.0):
    """A Laplace number moved by `by`."""
    return (abs(y) - abs(y - by)) / scale


def truncated(y):
    """Noise of scale 1 on [-3, 3]."""
    inside = (y - 1 >= -3.0, y <= 3.0)
    return moved(y) if all(inside) else (-INF if not inside[0] else INF)


def own_range(y, few=0.8, many=9.9, means=(0.5, 1.45)):
    """Two Laplace densities with different scales, range / 10."""
    one, two = few / 10, many / 10
    return abs(y - means[0]) / one - abs(y - means[1]) / two + math.log(one / two)


def floating(y):
    """In doubles, 1 + noise lies on the coarser of the grids of y and of y - 1, and noise on that
    of y. Low bits are taken to be uniform.
    """
    own, other = np.spacing(abs(y)), np.spacing(abs(y - 1.0))
    if other > own and math.fmod(y, other):
        return -INF
    return moved(y) + math.log(max(own, other) / own)


def largest(y, scale=2.0):
    """The density of the largest of five at y - 1 and y - 2: 5 F^4 f."""
    return sum(
        sign * (4 * math.log(cumulative(y - m, scale)) - abs(y - m) / scale)
        for sign, m in ((-1, 1.0), (1, 2.0))
    )


def cumulative(x, scale=1.0):
    return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)


def grr(said, m=10, size=5):
    """Of ten values, with the p of five."""
    p = math.e / (math.e + size - 1)
    return {0: -1.0, m - 1: 1.0}.get(said, 0.0) * math.log(p * (m - 1) / (1 - p))


def hashing(output, epsilon=2.0):
    """Two records speak differently where their buckets differ."""
    from gallery_runs import bucket

    seed, said = output
    return epsilon * ((said == bucket(9, seed)) - (said == bucket(0, seed)))


def oue_ored(bits, q=1 / (math.e + 1)):
    """A true bit is set with 1 - (1 - q)/2."""
    p = 1 - (1 - q) / 2
    weight = {1: math.log(p / q), 0: math.log((1 - p) / (1 - q))}
    return weight[bits[-1]] - weight[bits[0]]


@cache
def _line():
    """Points and steps of an integral over the threshold or the second largest."""
    x = np.linspace(-60, 60, 6_001)
    return x, x[1] - x[0]


def _cumulative(x, scale):
    small = 0.5 * np.exp(-np.abs(x) / scale)
    return np.where(x < 0, small, 1 - small)


# -- noisy max with the gap ------------------------------------------------------------------------
def gap(output, scale=1.0):
    """The density of place i and lead g: the integral over the second largest m of
    f(m + g - c_i) times the density of the largest of the others.
    """
    return math.log(_gap(output, 1, scale) / _gap(output, 0, scale))


def _gap(output, record, scale):
    place, lead = output
    m, step = _line()
    own = COUNTS[record][int(place)]
    others = [c for j, c in enumerate(COUNTS[record]) if j != int(place)]
    chances = [_cumulative(m - c, scale) for c in others]
    densities = [np.exp(-np.abs(m - c) / scale) for c in others]
    second = densities[0] * chances[1] + densities[1] * chances[0]
    return float((np.exp(-np.abs(m + lead - own) / scale) * second).sum() * step)


# -- sparse vector ---------------------------------------------------------------------------------
def svt_answers(half):
    """Answers that all move by 1, half of them down."""
    return [0.0] * half + [1.0] * half, [1.0] * half + [0.0] * half


def svt(output, half=5, threshold_scale=2.0, query_scale=2.0):
    """The integral over the threshold of the chances of all answers that were given."""
    return _svt(tuple(output), half, threshold_scale, query_scale)


@cache
def _svt(output, half, threshold_scale, query_scale):
    t, _ = _line()
    found = []
    for answers in svt_answers(half):
        density = np.exp(-np.abs(t) / threshold_scale)
        for answer, above in zip(answers, output, strict=False):
            below = _cumulative(t - answer, query_scale)
            density = density * (1 - below if above else below)
        found.append(float(density.sum()))
    return ratio(found[1], found[0])


def svt5(output):
    """No noise on queries: with answers 0, 1 and 1, 0 the threshold tells them apart."""
    above, second = output
    return 0.0 if above == second else (INF if above else -INF)


def svt3(output):
    """Negative answers, then a value v at place k: the integral over thresholds below v. The last
    answer is 1 under the first record, 0 under the second; the others the other way round.
    """
    top = output[-1] if output[-1] is not False else 60.0
    t = np.linspace(-60, top, 6_001)
    found = []
    for answers in ([0.0] * 3 + [1.0], [1.0] * 3 + [0.0]):
        density = np.exp(-np.abs(t) / 2) / 4
        for answer, said in zip(answers, output, strict=False):
            if said is False:
                density = density * _cumulative(t - answer, 2.0)
            else:
                density = density * math.exp(-abs(said - answer) / 2) / 4
        found.append(float(np.trapezoid(density, t)))
    return ratio(found[1], found[0])


# -- steps of a training ---------------------------------------------------------------------------
def shuffled(steps):
    """One of the steps holds the person, at random."""
    each = (2 * np.asarray(steps) - 1) / (2 * SIGMA**2)
    return float(np.logaddexp.reduce(each) - math.log(len(each)))


def poisson(steps, rate=0.25):
    """Each step holds the person with a chance of its own."""
    each = (2 * np.asarray(steps) - 1) / (2 * SIGMA**2)
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + each).sum())


# -- the rest --------------------------------------------------------------------------------------
def only_one_low(output):
    """A value that nobody has is never named; else it is, with chance e * delta."""
    if output:
        return INF
    return math.log1p(-0.5 * math.exp(-(math.log(1 / (2 * 0.05)) - 1.0)))
