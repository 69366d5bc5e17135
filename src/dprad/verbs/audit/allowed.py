"""What a claim allows to be predicted, and what is paid for predicting more (Theorem H).

A secret z is a fair coin between two data sets, an output follows. Whoever predicts the secret by a
law r is paid ``e = r/s``, where s is the law closest to r that the claim allows: under every law
that the claim allows, e is one on average or less. So the product over runs exceeds 1/alpha with
probability at most alpha, ever, whatever was learned on the way. Proof: docs/theory/audit.md.

*Pure epsilon.* The claim bounds the posterior of the secret given the output: its log-odds lie in
[-epsilon, epsilon]. The closest allowed posterior is the predicted one, clipped (`posterior_bets`).

*Any claim.* Let x say whether the output is in a set chosen beforehand, a and b its chance without
and with the second record. The claim says b <= 1 - f(a). `cell_bets` pays r/s for the predicted
(a, b) and a point s near the closest one of the curve, divided by the largest mean that the claim
allows, which is a value of its profile: so the search for s need not be exact. It serves to
choose thresholds and to forecast; what is bet on is in `portfolio.py`.
"""

from __future__ import annotations

import numpy as np

from dprad.model.guarantees import Guarantee
from dprad.numerics.arrays import FloatArray

# Points of the search along a curve, and how often it is refined.
POINTS, ROUNDS = 17, 6
# Predicted chances stay this far from 0 and 1.
EDGE = 1e-12


def posterior_bets(odds: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Log of the pay, odds x epsilons x secret (0, 1), for predicted log-odds of the second
    record.
    """
    clipped = np.clip(odds[:, None], -epsilon, epsilon)
    one = np.logaddexp(0.0, -clipped) - np.logaddexp(0.0, -odds)[:, None]
    zero = np.logaddexp(0.0, clipped) - np.logaddexp(0.0, odds)[:, None]
    return np.stack([zero, one], axis=-1)


def cell_bets(a: FloatArray, b: FloatArray, claim: Guarantee) -> FloatArray:
    """The pay, predictions x secret (0, 1) x cell (out, in); ones where the claim allows (a, b)."""
    a, b = (np.clip(np.asarray(x, dtype=float), EDGE, 1.0 - EDGE) for x in (a, b))
    swap = a > b  # then the roles of the two data sets are exchanged
    low, high = np.minimum(a, b), np.maximum(a, b)
    beyond = high > 1.0 - np.asarray(claim.tradeoff(low), dtype=float)
    pay = np.ones((len(low), 2, 2))
    if np.any(beyond):
        pay[beyond] = _pay(low[beyond], high[beyond], claim)
    pay[swap] = pay[swap][:, ::-1]
    return pay


def _pay(a: FloatArray, b: FloatArray, claim: Guarantee) -> FloatArray:
    s0, s1 = _closest(a, b, claim)
    inside = np.stack([a / s0, b / s1], axis=1)
    outside = np.stack([(1.0 - a) / (1.0 - s0), (1.0 - b) / (1.0 - s1)], axis=1)
    # the mean under chances (a', b') is linear in them; the largest one on the curve
    rise = (inside - outside) / 2
    slope = np.maximum(-rise[:, 0], 0.0) / np.maximum(rise[:, 1], 1e-300)
    with np.errstate(divide="ignore"):
        most = np.asarray(claim.delta(np.clip(np.log(slope), -700.0, 700.0)), dtype=float)
    mean = outside.sum(axis=1) / 2 + np.maximum(rise[:, 1], 0.0) * most
    scale = np.maximum(mean, 1.0) * (1.0 + 1e-12)
    return np.asarray(np.stack([outside, inside], axis=-1) / scale[:, None, None])


def _closest(a: FloatArray, b: FloatArray, claim: Guarantee) -> tuple[FloatArray, FloatArray]:
    """A point of the curve close to (a, b), in relative entropy: between a and b, by refinement."""
    low, high = a.copy(), b.copy()
    for _ in range(ROUNDS):
        share = np.linspace(0.0, 1.0, POINTS)
        tried = low[:, None] + (high - low)[:, None] * share
        value = np.clip(1.0 - np.asarray(claim.tradeoff(tried), dtype=float), EDGE, 1.0 - EDGE)
        far = _entropy(a[:, None], tried) + _entropy(b[:, None], value)
        best = np.argmin(far, axis=1)
        row = np.arange(len(a))
        low = tried[row, np.maximum(best - 1, 0)]
        high = tried[row, np.minimum(best + 1, POINTS - 1)]
    s0 = (low + high) / 2
    return s0, np.clip(1.0 - np.asarray(claim.tradeoff(s0), dtype=float), EDGE, 1.0 - EDGE)


def _entropy(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)))


def growth(a: FloatArray, b: FloatArray, pay: FloatArray) -> FloatArray:
    """Mean log of the pay per run, if the chances are (a, b)."""
    log = np.log(pay)
    zero = (1.0 - a) * log[:, 0, 0] + a * log[:, 0, 1]
    one = (1.0 - b) * log[:, 1, 0] + b * log[:, 1, 1]
    return np.asarray((zero + one) / 2)
