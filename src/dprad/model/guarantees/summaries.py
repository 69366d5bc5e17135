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
    from dprad.model.guarantees.gaussian import GaussianDP

# Privacy losses at which profiles are compared, and the relative error of a fit.
GRID, ROUNDING = 4096, 1e-9


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

    def tpr_at(self, *, fpr: float) -> float:
        """The largest true positive rate of a test with this false positive rate, rounded up.

        Parameters
        ----------
        fpr
            False positive rate, between 0 and 1.

        Returns
        -------
        float
            ``1 - tradeoff(fpr)``.

        Examples
        --------
        >>> from dprad import PureDP
        >>> round(PureDP(1.0, neighbours="add-remove").tpr_at(fpr=0.01), 4)     # 0.01 e
        0.0272

        """
        rate = number(fpr, "fpr", low=0, high=1)
        return min(1.0, rate + float(np.clip(self._gap(np.asarray(rate)), 0.0, 1.0)))

    def ppv(self, *, prior: float, fpr: float | None = None) -> float:
        """The largest positive predictive value: how often a test that says "in" is right.

        Parameters
        ----------
        prior
            Probability that the person is in the data, before the release.
        fpr
            Only tests whose false positive rate is at least this. Without it every test counts,
            also one that hardly ever says "in": then the answer is 1 unless the promise is pure.

        Returns
        -------
        float
            ``prior tpr / (prior tpr + (1 - prior) fpr)``.

        Examples
        --------
        >>> from dprad import GaussianDP, PureDP
        >>> round(PureDP(1.0, neighbours="add-remove").ppv(prior=0.5), 4)       # e/(1 + e)
        0.7311
        >>> round(GaussianDP(1.0, neighbours="add-remove").ppv(prior=0.5, fpr=0.01), 4)
        0.9023

        """
        before = number(prior, "prior", low=0, high=1)
        if fpr is None:
            return posterior(before, self.epsilon_at(0.0))
        rate = number(fpr, "fpr", low=0, high=1)
        found, false = before * self.tpr_at(fpr=rate), (1.0 - before) * rate
        return found / (found + false) if found + false > 0 else before

    def posterior(self, *, prior: float, failure: float = 0.0) -> tuple[float, float]:
        """What an attacker can come to believe about membership, from this prior belief.

        Parameters
        ----------
        prior
            Probability that the person is in the data, before the release.
        failure
            Probability with which each end may fail, over the outputs. With 0 only a pure promise
            says anything.

        Returns
        -------
        tuple of float
            Least and largest probability after the release. ``(0, 1)`` says nothing.

        Examples
        --------
        >>> from dprad import GaussianDP, PureDP
        >>> [round(x, 4) for x in PureDP(1.0, neighbours="add-remove").posterior(prior=0.5)]
        [0.2689, 0.7311]
        >>> release = GaussianDP(1.0, neighbours="add-remove")
        >>> [round(x, 3) for x in release.posterior(prior=0.5, failure=0.05)]
        [0.076, 0.924]

        """
        before = number(prior, "prior", low=0, high=1)
        allowed = number(failure, "failure", low=0, high=1)
        most = self.epsilon_at(0.0)
        if allowed > 0:
            # P(loss > x) <= delta(e) / (1 - exp(e - x)) for every e < x
            top = 1.25 * max(float(self.loss.losses[-1]), 1e-12)
            e = np.r_[np.linspace(0.0, min(top, MAX_LOSS), GRID), *(self.point or ())[:1]]
            share = self.delta(e) / allowed
            x = e[share < 1] - np.log1p(-share[share < 1])
            most = min(most, float(x.min(initial=np.inf)))
        return 1.0 - posterior(1.0 - before, most), posterior(before, most)

    def fit_gaussian(self, *, ignore: float = 1e-10) -> GaussianDP:
        """The least mu whose curve is nowhere better than this promise: one number for a curve.

        `regret` says how much is lost. O(K) for K privacy losses.

        Parameters
        ----------
        ignore
            Most that may be left out of the promise: the largest privacy losses, up to this
            probability, for which no mu may be large enough. The promise keeps
            ``delta(e) <= fit.delta(e) + ignore``.

        Returns
        -------
        GaussianDP
            For the same neighbours.

        Examples
        --------
        >>> from dprad import PureDP
        >>> round(PureDP(1.0, neighbours="replace-one").fit_gaussian().mu, 4)
        1.232

        """
        from scipy.special import ndtri

        from dprad.model.guarantees import gaussian

        loss, left_out = self.loss, number(ignore, "ignore", low=0, high=1)
        if loss.p_infinity > left_out:
            raise DpradError(
                f"no Gaussian covers this promise: it allows everything to be revealed with "
                f"probability {loss.p_infinity:.3g}. Give ignore=... to leave that out."
            )
        # corners of the trade-off curve up to loss 0; the others are their mirror images
        inside = loss.losses >= 0
        p, q = loss.p[inside][::-1], loss.q[inside][::-1]
        skipped = int(np.count_nonzero(loss.p_infinity + np.cumsum(p) <= left_out))
        power, alarm = np.cumsum(p[skipped:]), np.cumsum(q[skipped:])
        mu = ndtri(np.minimum(power, 1.0)) - ndtri(alarm)
        least = float(np.max(mu[np.isfinite(mu)], initial=0.0))
        whom, doubts = self.neighbours, self.doubts  # type: ignore[attr-defined]
        return gaussian.GaussianDP(least * (1.0 + ROUNDING), neighbours=whom).doubted(*doubts)

    def regret(self, other: Summaries) -> float:
        """How much `other` overstates this promise: in the success of the best membership test.

        Parameters
        ----------
        other
            Such as ``promise.fit_gaussian()``.

        Returns
        -------
        float
            The largest difference, over all prior probabilities of membership, of the chances that
            the best test is right.

        Examples
        --------
        >>> from dprad import PureDP
        >>> promise = PureDP(1.0, neighbours="replace-one")
        >>> round(promise.regret(promise.fit_gaussian()), 4)
        0.0574

        """
        # of prior 1/(1 + E), the best test is right with probability (E + delta(E))/(1 + E)
        top = max(float(x.loss.losses[-1]) for x in (self, other))
        e = np.linspace(0.0, min(max(top, 1e-12), MAX_LOSS), GRID)
        return float(np.max((other.delta(e) - self.delta(e)) / (1.0 + np.exp(e)), initial=0.0))


def posterior(prior: float, epsilon: float) -> float:
    """``prior e^epsilon / (prior e^epsilon + 1 - prior)``."""
    if prior in (0.0, 1.0):
        return prior
    return float(1.0 / (1.0 + (1.0 - prior) / prior * np.exp(-epsilon)))
