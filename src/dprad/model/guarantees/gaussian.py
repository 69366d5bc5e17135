"""Gaussian DP (Dong, Roth and Su): as hard to tell apart as two normal distributions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dprad.errors import number
from dprad.model.gaussian_losses import gaussian_loss
from dprad.model.guarantees.base import Guarantee
from dprad.model.guarantees.neighbours import REPLACE_ONE, explains_neighbours
from dprad.model.parameters import MU
from dprad.model.privacy_loss import MAX_LOSS, PrivacyLoss
from dprad.numerics.arrays import FloatArray

# Normal distributions with closer means are compared by quadrature, on this many nodes.
CLOSE, NODES = 1.0, 20


@explains_neighbours
@dataclass(frozen=True, repr=False)
class GaussianDP(Guarantee):
    """mu-Gaussian differential privacy: as hard to tell apart as N(0, 1) and N(mu, 1).

    Parameters
    ----------
    mu
        Distance of the means, at least 0.
    neighbours
        ``"replace-one"`` (one record is exchanged) or ``"add-remove"`` (with and without the
        person).
    static
        Set it if the release is one draw of Gaussian noise on a vector of norm at most mu (in units
        of the noise), or several with vectors fixed in advance. It permits a slightly tighter
        bound. Leave it out for adaptive training.

    Examples
    --------
    >>> GaussianDP(1.0, neighbours="add-remove").replace_one().mu
    2.0

    """

    mu: float
    static: bool = field(default=False, kw_only=True)
    name: ClassVar[str] = "GaussianDP"
    short: ClassVar[str] = "gaussian"
    takes: ClassVar = (MU,)

    def __post_init__(self) -> None:
        Guarantee.__post_init__(self)
        object.__setattr__(self, "mu", number(self.mu, "mu", low=0))

    def _loss(self) -> PrivacyLoss:
        if self.mu * self.mu <= 1e-300:
            return PrivacyLoss.of_point(0.0, self.tv)
        if self.mu * self.mu / 2 - 9 * self.mu > MAX_LOSS:
            return PrivacyLoss.of_point(0.0, 1.0)
        return gaussian_loss(self.mu)

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        from scipy.special import erf, log_ndtr, ndtr

        if self.mu == 0:
            return np.zeros_like(epsilon)
        with np.errstate(over="ignore"):
            # in units of mu, no further than any density reaches
            far = np.minimum(epsilon / self.mu, 1e9)
        a, b = self.mu / 2 - far, -self.mu / 2 - far
        rounding = np.finfo(float).eps
        if self.mu <= CLOSE:
            # Phi(a) - Phi(b) - (e^eps - 1) Phi(b)
            rise = _normal_between(b, self.mu)
            value = rise - np.expm1(np.minimum(epsilon, 700.0)) * ndtr(b)
            value += rounding * (16.0 + 2.0 * b * b) * rise
        else:
            value = ndtr(a) - np.exp(np.minimum(epsilon + log_ndtr(b), 0.0))
            # what the difference may have lost to rounding
            value += rounding * (4.0 + 2.0 * np.abs(log_ndtr(b))) * ndtr(a)
        # at zero the difference has a form without cancellation
        at_zero = erf(self.mu / np.sqrt(8.0)) * (1.0 + 4.0 * rounding)
        return np.asarray(np.maximum(np.where(epsilon == 0, at_zero, value), 0.0))

    def _tradeoff(self, alpha: FloatArray) -> FloatArray:
        from scipy.special import ndtr, ndtri

        return np.asarray(ndtr(-ndtri(alpha) - self.mu))

    def _gap(self, alpha: FloatArray) -> FloatArray:
        from scipy.special import ndtri

        x = ndtri(alpha)
        finite = np.isfinite(x)
        return np.where(finite, _normal_between(np.where(finite, x, 0.0), self.mu), 0.0)

    def _repeated(self, times: int) -> Guarantee:
        return GaussianDP(self.mu * float(np.sqrt(times)), neighbours=self.neighbours)

    def _with(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, GaussianDP):
            return super()._with(other)
        return GaussianDP(float(np.hypot(self.mu, other.mu)), neighbours=self.neighbours)

    def _renyi(self, orders: FloatArray) -> FloatArray:
        return np.asarray(orders * (self.mu * self.mu / 2))

    def _group(self, size: int) -> Guarantee:
        return GaussianDP(size * self.mu, neighbours=self.neighbours, static=self.static)

    def _replace_one(self) -> Guarantee:
        return GaussianDP(2 * self.mu, neighbours=REPLACE_ONE)

    def _numbers(self) -> dict[str, float]:
        return {"mu": self.mu}

    def __repr__(self) -> str:
        extra = ", static=True" if self.static else ""
        return f"GaussianDP({self.mu!r}, neighbours={self.neighbours!r}{extra})"


def _normal_between(x: FloatArray, width: float) -> FloatArray:
    """``Phi(x + width) - Phi(x)``: by quadrature if the width is small, where nothing cancels."""
    from scipy.special import ndtr

    if width <= CLOSE:
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        t = np.asarray(x)[..., None] + width / 2 * (nodes + 1.0)
        return np.asarray(np.exp(-t * t / 2) @ weights * (width / 2 / np.sqrt(2.0 * np.pi)))
    end = x + width
    return np.asarray(np.where(x > 0, ndtr(-x) - ndtr(-end), ndtr(end) - ndtr(x)))
