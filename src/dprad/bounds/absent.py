"""Theorem E: add-remove guarantees, with the absent record as reference.

Let Q0 be the law of the output without the person, each P_z close to it: dominating pair with
likelihood ratio l under Q0 and ``delta0(k) = E (l - k)_+``. If psi >= 0 is convex and
``P psi(u) + (1-P) psi(w) >= P (1-P) (u - w)`` for u >= w >= 0 and all P that occur, then for every
prior, knowledge and tolerance RAD <= E psi(l). Adaptive training is included. Two choices of psi:

E1, masses in [a, b]:  RAD <= inf_k (1 + b - a) delta0(k) + (k - 1) b ;
E2, any masses:        a parabola near k that turns into (sqrt|x - k| - const)^2.

Masses 0 and 1 need not be counted (such sets gain nothing), so a and b are `least` and `most`.

This is much better than converting the promise to replace-one first: 0.4377 against 0.5876 for
1-GDP when everything is known. For uniform priors and nothing known E1 is optimal (Theorem D).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dprad.game.game import Game
from dprad.model.guarantees import Guarantee
from dprad.model.privacy_loss import PrivacyLoss
from dprad.numerics.arrays import FloatArray

# Losses on which the parameters of E2 are searched.
COARSE = 1024
# Possible error of one minus a sum of probabilities.
ROUNDING = 1e-14


def theorem_e1(guarantee: Guarantee, game: Game) -> float:
    """The least over k in the grid of privacy losses; any k is valid. O(K)."""
    high, low = game.most, game.least
    present = guarantee.directions[0]
    losses = present.losses
    # delta0 compares present with absent
    excess = guarantee.delta(losses) if guarantee.symmetric else present.delta(losses)
    values = (1.0 + high - low) * excess + np.expm1(losses) * high
    return float(min(values.min(), 1.0 - low))  # the last is k = 0


def theorem_e2(guarantee: Guarantee, game: Game) -> float:  # noqa: ARG001 - holds for every game
    """The least over b and k of E psi_{b,k}(l); any b > 0 and k are valid.

    They are searched on a coarse grid of losses and the bound is evaluated on the fine one. O(K).
    """
    from scipy.optimize import minimize

    fine = guarantee.directions[0]
    coarse = fine.regrid(fine.step * max(1, len(fine.p) // COARSE))

    def psi(excess: FloatArray, b: float, k: float) -> FloatArray:
        """At the ratio 1 + excess, with k relative to one too: small differences keep digits."""
        t = np.abs(excess - k)
        near = (b + t) ** 2 / (8 * b)
        return np.asarray(np.where(t <= 2 * b, near, (np.sqrt(t) - np.sqrt(b / 8)) ** 2))

    def on(loss: PrivacyLoss) -> Callable[[FloatArray], float]:
        excess, q = np.expm1(loss.losses), loss.q
        at_zero = max(0.0, 1.0 - float(q.sum())) + ROUNDING

        def value(parameters: FloatArray) -> float:
            b, k = float(np.exp(np.clip(parameters[0], -60.0, 300.0))), float(parameters[1])
            # beyond every ratio psi grows with slope one, and E l <= 1 bounds the rest
            finite = float(q @ psi(excess, b, k)) + at_zero * float(psi(-np.ones(1), b, k)[0])
            return finite + loss.p_infinity

        return value

    spread = [float(np.log(guarantee.tv + 1e-300)), 0.0, float(fine.losses[-1]) / 2]
    best, search, exact = 1.0, on(coarse), on(fine)
    for start in spread:
        minimum = minimize(
            search,
            np.array([start, 0.0]),
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 400},
        )
        best = min(best, exact(minimum.x))
    return best
