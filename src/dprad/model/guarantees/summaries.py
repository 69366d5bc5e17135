"""What can be read off a guarantee: its profile, its trade-off curve, and the usual summaries.

All summaries compare the neighbours of the promise as stated: with add-remove neighbours they are
about a test for membership.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dprad.errors import DpradError, number
from dprad.model.privacy_loss import MAX_LOSS, PrivacyLoss
from dprad.numerics.arrays import FloatArray, like, real
from dprad.numerics.bisection import first

if TYPE_CHECKING:
    pass


class Summaries:
    """The readings of a guarantee, from its profile, its trade-off curve and its pair of losses."""

    if TYPE_CHECKING:

        @property
        def loss(self) -> PrivacyLoss: ...  # noqa: D102

        @property
        def point(self) -> tuple[float, float] | None: ...  # noqa: D102

        def _delta(self, epsilon: FloatArray) -> FloatArray: ...
        def _tradeoff(self, alpha: FloatArray) -> FloatArray: ...
        def _gap(self, alpha: FloatArray) -> FloatArray: ...

    def delta(self, epsilon: Any) -> Any:
        """The profile: the least delta such that (epsilon, delta)-DP is promised.

        Parameters
        ----------
        epsilon
            A number or an array. Negative values are allowed: ``delta(-e) = 1 - exp(-e) (1 -
            delta(e))``.

        Returns
        -------
        float or ndarray
            Values between 0 and 1.

        Examples
        --------
        >>> from dprad import PureDP
        >>> promise = PureDP(1.0, neighbours="replace-one")
        >>> promise.delta(1.0)
        0.0

        """
        eps = real(epsilon, "epsilon")
        size = np.abs(eps)
        value = np.clip(self._delta(size), 0.0, 1.0)
        mirrored = -np.expm1(-size) + np.exp(-size) * value  # no difference next to one
        return like(epsilon, np.where(eps >= 0, value, mirrored))

    def tradeoff(self, alpha: Any) -> Any:
        """The trade-off curve f: the least miss rate of a test with false-alarm rate alpha.

        Parameters
        ----------
        alpha
            False-alarm rate, a number or an array.

        Returns
        -------
        float or ndarray
            Values between 0 and 1.

        Examples
        --------
        >>> from dprad import PureDP
        >>> promise = PureDP(1.0, neighbours="replace-one")
        >>> round(promise.tradeoff(0.1), 6)         # 1 - 0.1 e
        0.728172

        """
        a = real(alpha, "alpha")
        if np.any((a < 0) | (a > 1)):
            raise DpradError(f"alpha must be between 0 and 1, but is {alpha!r}.")
        return like(alpha, np.clip(self._tradeoff(a), 0.0, 1.0))

    def gap(self, alpha: float) -> float:
        """``1 - f(alpha) - alpha``: how much a test beats guessing, to all digits or rounded up.

        Parameters
        ----------
        alpha
            False-alarm rate.

        Returns
        -------
        float
            At least 0.

        Examples
        --------
        >>> from dprad import GaussianDP
        >>> tiny = GaussianDP(1e-20, neighbours="replace-one")
        >>> f"{tiny.gap(0.5):.6e}"     # 1e-20/sqrt(2 pi)
        '3.989423e-21'

        """
        a = number(alpha, "alpha", low=0, high=1)
        return float(np.clip(self._gap(np.asarray(a)), 0.0, 1.0 - a))

    @property
    def tv(self) -> float:
        """Total variation between neighbours, ``delta(0)``."""
        return float(self.delta(0.0))

    @property
    def advantage(self) -> float:
        """The most by which a test is right more often than it raises false alarms: `tv`."""
        return self.tv

    @property
    def bayes_security(self) -> float:
        """The share of errors left to a test between equally likely neighbours: 1 - `tv`."""
        return 1.0 - self.tv

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon such that (epsilon, delta)-DP is promised, rounded up.

        Parameters
        ----------
        delta
            Between 0 and 1.

        Returns
        -------
        float
            May be infinite.

        Examples
        --------
        >>> from dprad import GaussianDP
        >>> round(GaussianDP(1.0, neighbours="replace-one").epsilon_at(1e-5), 3)
        4.377

        """
        goal = number(delta, "delta", low=0, high=1)
        if self.point is not None and goal == self.point[1]:
            return self.point[0]
        if self.delta(MAX_LOSS) > goal:
            return float("inf")
        return first(lambda e: bool(self.delta(e) <= goal), 0.0, MAX_LOSS, relative=1e-12)
