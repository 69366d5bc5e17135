"""Gaussian noise: panels with a proven error.

Cut the line into panels and let the attack name one set a panel and fiber: its RAD is a finite sum
of differences of the distribution function, exact, and a lower bound on RAD*. In a panel of width w
the gain of a set S stays within ``L_S w/2`` of its average, L_S a bound on its slope there; so what
another set T could add to the choice S is at most
``w ((L_S + L_T) w/2 - (average_S - average_T))_+``. Their sum is the error bound. Panels that owe
any are halved until the bound is met: only those in which the best guess changes survive, so the
work grows with the number of changes and of digits.

O(C (m + R)) a round for C changes, m values and R sets; some thirty rounds.
"""

from __future__ import annotations

import numpy as np

from dprad.arrays import FloatArray, IntArray
from dprad.errors import DpradError
from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.solution import Solution
from dprad.games import Game
from dprad.success import starts

# The error that is asked for, and how many rounds may be spent on it.
TOLERANCE = 1e-10
ROUNDS = 60
# Two sets whose gains hardly differ are never told apart: then the error is what it is.
MAX_PANELS = 2**16
# Panels to begin with, for each standard deviation.
PANELS = 8
# Beyond so many standard deviations from every record there is nothing (1e-19 of probability).
REACH = 9.0
# Entries of a block of panels.
BLOCK_ENTRIES = 2**20


def solve_gaussian(
    sigma: float,
    clamp: tuple[float, float] | None,
    game: Game,
    values: FloatArray,
    pi: FloatArray,
) -> Solution:
    """Records z with probability pi[z] read as values[z]. The value is the upper end."""
    from scipy import sparse

    sets, kept = game.sets, np.flatnonzero(pi > 0)
    assert sets is not None and game.class_of is not None and game.probabilities is not None
    points, place = np.unique(values[kept] / sigma, return_inverse=True)
    weight = sparse.csr_array(
        (pi[kept], (game.class_of[kept], place)), shape=(len(game.probabilities), len(points))
    )
    low, high = points[0] - REACH, points[-1] + REACH
    if clamp is not None:
        low, high = max(low, clamp[0] / sigma), min(high, clamp[1] / sigma)

    def joint(a: FloatArray, b: FloatArray) -> FloatArray:
        """Probability of each class together with an output in [a, b]."""
        return np.asarray(weight @ _between(a - points[:, None], b - points[:, None]))

    # beyond the ends: atoms at the clamps, or next to nothing
    outer = joint(np.array([-np.inf, high]), np.array([low, np.inf]))
    tails = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, "")
    error = 0.0
    if clamp is None or low > clamp[0] / sigma:
        error += float(outer[:, 0].sum())
    if clamp is None or high < clamp[1] / sigma:
        error += float(outer[:, 1].sum())
    rad, luck, rero = tails.rad, tails.success_out, tails.rero
    rero_error = error
    if len(sets.mass) and low < high:
        count = max(1, int(np.ceil((high - low) * PANELS)))
        edges = np.linspace(low, high, count + 1)
        begin = starts(sets.fiber)
        step = max(1, BLOCK_ENTRIES // max(len(points), len(sets.mass)))
        for passing in (True, False):
            panels = np.stack([edges[:-1], edges[1:]])
            for rounds in range(ROUNDS + 1):
                owed = np.zeros(panels.shape[1])
                value, lucky = np.zeros(panels.shape[1]), np.zeros(panels.shape[1])
                for k in range(0, panels.shape[1], step):
                    a, b = panels[:, k : k + step]
                    w = joint(a, b)
                    slope = np.asarray(weight @ _steepest(a - points[:, None], b - points[:, None]))
                    part = _panel(w, slope, b - a, game, begin, passing)
                    value[k : k + step], lucky[k : k + step], owed[k : k + step] = part
                # panels that owe their share or less are done
                share = TOLERANCE / (4 * max(1, panels.shape[1]))
                done = (owed <= share) | (rounds == ROUNDS) | (panels.shape[1] > MAX_PANELS)
                if passing:
                    rad += float(value[done].sum())
                    luck += float(lucky[done].sum())
                    error += float(owed[done].sum())
                else:
                    rero += float(value[done].sum())
                    rero_error += float(owed[done].sum())
                panels = panels[:, ~done]
                if panels.shape[1] == 0:
                    break
                middle = panels.mean(axis=0)
                panels = np.stack([np.r_[panels[0], middle], np.r_[middle, panels[1]]])
    if error > 1e-6:
        raise DpradError(
            f"the risk of this Gaussian mechanism could only be found to {error:.1e}. Merge values "
            "that are closer than a millionth of sigma, or assess its promise."
        )
    return Solution(
        rad=rad + error,
        success_out=luck,
        rero=rero + rero_error,
        method=_METHOD,
        interval=(rad, rad + error),
    )


_METHOD = "exact, by panels with a proven error"


def _panel(
    w: FloatArray,
    slope: FloatArray,
    width: FloatArray,
    game: Game,
    begin: IntArray,
    passing: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each panel: the best constant choice, its luck, and what other choices could add."""
    sets, pi = game.sets, game.probabilities
    assert sets is not None and pi is not None
    pbar = w.sum(axis=0)
    total, steep = sets.sums(w), sets.sums(slope)
    if passing:
        # a set of all classes gains nothing, exactly; rounding must not make it compete
        partial = (sets.sizes < len(pi))[:, None]
        total = np.where(partial, total - sets.mass[:, None] * pbar, 0.0)
        steep = np.where(partial, steep + sets.mass[:, None] * slope.sum(axis=0), 0.0)
    run = np.repeat(np.arange(len(begin)), np.diff(np.r_[begin, len(total)]))
    best = np.maximum.reduceat(total, begin, axis=0)
    chosen = total >= best[run]
    own = np.maximum.reduceat(np.where(chosen, steep, 0.0), begin, axis=0)
    named = np.maximum.reduceat(np.where(chosen, sets.mass[:, None], 0.0), begin, axis=0)
    if passing:
        idle = best <= 0.0 if game.membership else best < 0.0
        best, own, named = (np.where(idle, 0.0, x) for x in (best, own, named))
    # a wobble of half the width times the slopes, less the head start, over the width
    reach = (own[run] + steep) * width / 2 * width - (best[run] - total)
    owed = np.maximum.reduceat(np.where(total < best[run], reach, 0.0), begin, axis=0)
    if passing:
        owed = np.maximum(owed, np.where(idle, 0.0, own * width / 2 * width - best))
    return best.sum(axis=0), (named * pbar).sum(axis=0), np.maximum(owed, 0.0).sum(axis=0)


def _between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Pr[a < N <= b], taken in the smaller tail."""
    from scipy.special import ndtr

    return np.asarray(np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a)))


def _steepest(a: FloatArray, b: FloatArray) -> FloatArray:
    """The largest |slope| of the normal density on [a, b]: at +-1 if inside, else at an end."""

    def at(x: FloatArray) -> FloatArray:
        return np.asarray(np.abs(x) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))

    peak = ((a <= 1) & (b >= 1)) | ((a <= -1) & (b >= -1))
    return np.where(peak, np.exp(-0.5) / np.sqrt(2 * np.pi), np.maximum(at(a), at(b)))
