"""Privacy profiles from bounds on Rényi divergences, as small as the bounds allow.

For a pair (P, Q) the profile at E is ``P(S) - E Q(S)``, S the outputs with likelihood ratio above
E. Telling only whether the output is in S lowers every divergence, so two outputs are enough: with
``a = P(S)`` and ``b = Q(S)``

    delta(E) <= max a - E b   subject to   G(a, b) = a^k b^(1-k) + (1-a)^k (1-b)^(1-k) <= M_k ,

``M_k = exp((k-1) R(k))`` for every order k, and the Kullback-Leibler divergence at most R(1). G is
convex, so at *any* point (a, b) its tangent bounds the whole set: with ``E = -G_b / G_a``,

    delta(E) <= a - E b + (M_k - G) / G_a .

The points are taken near the edge, where this is tight. The largest profile is convex in E, so
chords between such values are valid too.
"""

from __future__ import annotations

import numpy as np

from dprad.numerics.arrays import FloatArray

# Log-odds of b at which tangents are taken: closely around one half, widely in the tails.
ODDS = np.r_[np.arange(-40.0, -8.0, 0.25), np.arange(-8.0, 8.0, 0.0625), np.arange(8.0, 24.0, 0.5)]
BISECTIONS = 28
EPS = float(np.finfo(float).eps)


def log_tail(epsilon: FloatArray, orders: FloatArray, renyi: FloatArray) -> FloatArray:
    """``log min_k exp((k-1)(R(k) - epsilon)) (1 - 1/k)^(k-1) / k`` (Canonne, Kamath, Steinke).

    Orders along the last axis, or one for each epsilon. The tangents above are better near zero,
    this in the tails.
    """
    rest = (orders - 1.0) * np.log1p(-1.0 / orders) - np.log(orders)
    with np.errstate(over="ignore"):
        return np.asarray((orders - 1.0) * (renyi - epsilon) + rest)


def tangents(orders: FloatArray, renyi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points (epsilon, delta) above the largest profile, epsilon ascending from 0.

    An order of one is the Kullback-Leibler divergence. O(orders * 400 * 28).
    """
    k, limit = orders[:, None], np.where(orders > 1.0, (orders - 1.0) * renyi, renyi)[:, None]
    low = np.full((len(orders), len(ODDS)), np.log(1e-9))
    high = np.full_like(low, np.log(200.0))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        inside = _divergence(k, ODDS + np.exp(middle)) <= limit
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    epsilon, delta = (x.ravel() for x in _tangent(k, limit, ODDS + np.exp(low)))
    # the profile at 1/E follows from that at E
    mirrored = epsilon < 0
    delta = np.where(mirrored, -np.expm1(-epsilon) + delta * np.exp(-epsilon), delta)
    epsilon = np.abs(epsilon)
    delta = np.where(mirrored, delta + 4 * EPS * np.exp(epsilon), delta)
    order = np.argsort(epsilon, kind="stable")
    return epsilon[order], np.clip(delta[order], 0.0, 1.0)


def _logs(odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log p and log(1 - p) of these log-odds."""
    return -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)


def _divergence(k: FloatArray, odds: FloatArray) -> FloatArray:
    """Log G, or the Kullback-Leibler divergence where k is one, of a at `odds` and b at ODDS."""
    (a, not_a), (b, not_b) = _logs(odds), _logs(ODDS)
    moment = np.logaddexp(k * a + (1 - k) * b, k * not_a + (1 - k) * not_b)
    plain = np.exp(a) * (a - b) + np.exp(not_a) * (not_a - not_b)
    return np.asarray(np.where(k > 1.0, moment, plain))


def _tangent(k: FloatArray, limit: FloatArray, odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The epsilon at which the tangent at (a, b) is steepest, and the delta it proves."""
    (a, not_a), (b, not_b) = _logs(odds), _logs(ODDS)
    u, v = a - b, not_a - not_b  # u > 0 > v
    g = _divergence(k, odds)
    size = 8.0 + k * (np.abs(a) + np.abs(b) + np.abs(not_a) + np.abs(not_b))
    plain = k <= 1.0
    safe = np.where(plain, 2.0, k)
    with np.errstate(over="ignore"):
        # logarithms of -G_b / G_a and of G_a
        wide = np.log1p(-np.exp(safe * (v - u))) - np.log1p(-np.exp((safe - 1) * (v - u)))
        log_e = np.log((safe - 1) / safe) + u + wide
        log_slope = np.log(safe) + (safe - 1) * u + np.log1p(-np.exp((safe - 1) * (v - u)))
        log_e = np.where(plain, u + np.log1p(-np.exp(v - u)) - np.log(u - v), log_e)
        left = np.where(plain, 0.0, g) + np.log(
            np.where(plain, np.maximum(limit - g, 0.0), np.expm1(np.maximum(limit - g, 0.0)))
            + EPS * size
        )
        rest = np.exp(left - np.where(plain, np.log(u - v), log_slope))
        value = np.exp(a) - np.exp(log_e + b) + rest
    value += 8 * EPS * (np.exp(a) + np.exp(log_e + b))
    return log_e, np.where(np.isfinite(value) & np.isfinite(log_e), value, 1.0)
