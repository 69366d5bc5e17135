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
from dprad.exact.channel import Joint, sum_over_outputs
from dprad.exact.solution import Solution
from dprad.games import Game
from dprad.success import starts

# The error that is asked for, and how many rounds may be spent on it.
TOLERANCE = 1e-10
ROUNDS = 60
# More panels than this still open: two gains hardly differ, and panels will not tell them apart.
MAX_PANELS = 2**13
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
) -> Solution | None:
    """Records z with probability pi[z] read as values[z]. The value is the upper end.

    None where gains are too nearly equal, or values too far apart, for panels to decide.
    """
    from scipy import sparse

    sets, kept = game.sets, np.flatnonzero(pi > 0)
    assert sets is not None and game.class_of is not None and game.probabilities is not None
    base = float(values[kept].min())
    if (float(values[kept].max()) - base) / MAX_PANELS * PANELS >= sigma:
        return None
    points, place = np.unique((values[kept] - base) / sigma, return_inverse=True)
    weight = sparse.csr_array(
        (pi[kept], (game.class_of[kept], place)), shape=(len(game.probabilities), len(points))
    )
    low, high = points[0] - REACH, points[-1] + REACH
    if clamp is not None:
        ends = (clamp[0] - base) / sigma, (clamp[1] - base) / sigma
        low, high = max(low, ends[0]), min(high, ends[1])

    def joint(a: FloatArray, b: FloatArray) -> FloatArray:
        """Probability of each class together with an output in [a, b]."""
        return np.asarray(weight @ _between(a - points[:, None], b - points[:, None]))

    # beyond the ends: atoms at the clamps, or next to nothing
    outer = joint(np.array([-np.inf, high]), np.array([low, np.inf]))
    tails = sum_over_outputs(Joint(outer.sum(axis=0), lambda r, c: outer[r, c]), game, "")
    error = 0.0
    if clamp is None or low > ends[0]:
        error += float(outer[:, 0].sum())
    if clamp is None or high < ends[1]:
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
                done = owed <= share
                if rounds == ROUNDS or np.count_nonzero(~done) > MAX_PANELS:
                    return None
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
    # one set is chosen, the first of those that tie; all others are rivals
    row = np.broadcast_to(np.arange(len(total))[:, None], total.shape)
    first = np.minimum.reduceat(np.where(total >= best[run], row, len(total)), begin, axis=0)
    chosen = row == first[run]
    own = np.take_along_axis(steep, first, axis=0)
    named = sets.mass[first]
    if passing:
        idle = best <= 0.0 if game.membership else best < 0.0
        best, own, named = (np.where(idle, 0.0, x) for x in (best, own, named))
        chosen = chosen & ~idle[run]
    # a wobble of half the width times the slopes, less the head start, over the width
    reach = (own[run] + steep) * width / 2 * width - (best[run] - total)
    owed = np.maximum.reduceat(np.where(chosen, 0.0, reach), begin, axis=0)
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
