"""Pieces of densities that are narrower than places are rounded: against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dprad import Prior, assess
from dprad.exact import own, stepwise
from dprad.exact.ends import Ends, Places
from dprad.mechanisms import Hybrid, Piecewise, Staircase


def staircase(points, epsilon, step, gamma=None):
    """Chances of all pieces, within four steps (at a large epsilon the rest is nothing)."""
    share = Fraction(1 / (1 + math.exp(epsilon / 2)) if gamma is None else gamma)
    step, points = Fraction(step), [Fraction(p) for p in points]
    ends = {p + step * (k + s * share) for p in points for k in range(-4, 5) for s in (-1, 0, 1)}
    ends = sorted(ends)
    top = -math.expm1(-epsilon) / 2 / (share + Fraction(math.exp(-epsilon)) * (1 - share))

    def density(t, p):
        away = abs(t - p) / step
        k = math.floor(away)
        return top * math.exp(-epsilon * (k if away - k < share else k + 1))

    return np.array(
        [
            [density((a + b) / 2, p) * float((b - a) / step) for a, b in pairwise(ends)]
            for p in points
        ]
    )


def piecewise(points, epsilon, bounds):
    """Chances of all pieces. Windows are e^{-eps/2} long, to all digits of a number."""
    low, high = map(Fraction, bounds)
    half = Fraction(math.exp(-epsilon / 2))
    reach = (1 + half) / (1 - half)
    begin = [(reach + 1) / 2 * (2 * (Fraction(p) - low) / (high - low) - 1) for p in points]
    begin = [b - (reach - 1) / 2 for b in begin]
    ends = sorted({*begin, *(b + reach - 1 for b in begin), -reach, reach})
    inside = 1 / (1 + half) / (reach - 1)
    return np.array(
        [
            [
                float((inside if w < (a + b) / 2 < w + reach - 1 else inside * half**2) * (b - a))
                for a, b in pairwise(ends)
            ]
            for w in begin
        ]
    )


def risks(channel, pi):
    """RAD of whoever knows nothing, and the largest own risk."""
    ahead = channel - pi @ channel
    most = np.maximum((pi[:, None] * ahead).max(axis=0), 0.0).sum()
    return most, np.maximum(ahead, 0.0).sum(axis=1).max()


def agrees(mechanism, channel, points, counts):
    assert channel.sum(axis=1) == pytest.approx(np.ones(len(points)), abs=1e-14)
    prior = Prior.from_counts(dict(zip(points, counts, strict=True)))
    rad, worst = risks(channel, np.array(counts) / sum(counts))
    for zones_of in (stepwise.zones_of, lambda *_: None):  # by zones, and by columns
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stepwise, "zones_of", zones_of)
            patch.setattr(own, "zones_of", zones_of)
            risk = assess(mechanism, prior=prior)
        assert risk.kind == risk.worst_kind == "exact"
        assert risk.rad == pytest.approx(rad, abs=1e-14)
        assert risk.interval[0] - 1e-14 <= rad <= risk.interval[1] + 1e-14
        assert risk.worst == pytest.approx(worst, abs=1e-13)
        assert risk.worst_interval[0] <= worst <= risk.worst_interval[1]


@pytest.mark.parametrize("gamma", [None, 1e-9])
@pytest.mark.parametrize("epsilon", [20.0, 25.0, 30.0, 36.0, 40.0, 60.0])
def test_high_parts_of_staircases(epsilon, gamma):
    """Where nobody is, they are a billion times as high as anybody's chance."""
    cases = [[0.0, 1.0, 2.0], [5.0, 10.0, 15.0], [0.001, 0.002, 0.7, 0.700001, 5.001]]
    for points in cases:
        mechanism = Staircase(epsilon=epsilon, sensitivity=points[-1], gamma=gamma)
        channel = staircase(points, epsilon, points[-1], gamma)
        agrees(mechanism, channel, points, [3, 5, 6, 1, 2][: len(points)])


@pytest.mark.parametrize("epsilon", [5.0, 20.0, 35.0, 41.12032890172159, 43.5, 60.0])
@pytest.mark.parametrize("near", [1e-6, 2e-7])
def test_windows_of_piecewise_reports(epsilon, near):
    """Two that overlap, and one far away."""
    counts = [0.8213015645453736, 0.8275573150954998, 0.9341044081009071, 0.7]
    for points in ([0.0, near, 0.9828692432911701, 0.9828692432911701 + near], [0.1, 0.7 + near]):
        bounds = (0.0, 1000.0)
        channel = piecewise(points, epsilon, bounds)
        agrees(Piecewise(epsilon=epsilon, bounds=bounds), channel, points, counts[: len(points)])


def test_hybrid_reports():
    points, epsilon, bounds = [0.0, 1e-6, 0.9828692432911701], 41.12032890172159, (0.0, 1000.0)
    share = -math.expm1(-epsilon / 2)
    up = (1 + (np.array(points) / 500 - 1) * math.tanh(epsilon / 2)) / 2
    two = np.stack([1 - up, up], axis=1)
    channel = np.hstack([share * piecewise(points, epsilon, bounds), (1 - share) * two])
    agrees(Hybrid(epsilon=epsilon, bounds=bounds), channel, points, [3.0, 4.0, 1.0])


def test_ends_are_sorted_as_fractions_are(rng):
    """Places that differ by less than a number can tell."""
    values = np.sort(np.r_[0.1, 0.3, 0.1 + 1e-16 * rng.integers(1, 9, 3), rng.random(5), 1.1, 1e6])
    moves = [0.0, 1e-17, 0.1, -1.0, 1e-9]
    ends = Ends.of([Places.of(values).moved(by) for by in moves], [Places.of(0.5)])
    families = [[Fraction(v) + Fraction(by) for v in values.tolist()] for by in moves]
    expected = sorted({*(x for family in families for x in family), Fraction(1, 2)})
    exact = [
        Fraction(a) + Fraction(b)
        for a, b in zip(ends.place.main.tolist(), ends.place.rest.tolist(), strict=True)
    ]
    assert exact == expected
    assert ends.width == pytest.approx([float(b - a) for a, b in pairwise(exact)], rel=1e-15)
    counts = [[sum(x <= end for x in family) for end in expected] for family in families]
    assert np.array_equal(ends.passed, counts)
    few = ends.within(Places.of(0.1), Places.of(0.5))
    assert few.place.main[0] == 0.1 and few.place.main[-1] == 0.5
    assert len(few.width) == few.passed.shape[1] - 1
