"""Unary encodings: one bit per value, flipped independently (SUE, OUE, and any p and q).

The bit of the true value is one with probability p, every other with q < p. Two records differ in
two bits, so the mechanism is epsilon-LDP with ``e^epsilon = p (1-q) / (q (1-p))``. SUE (the basic
RAPPOR) has p + q = 1; OUE has p = 1/2, q = 1/(e^epsilon + 1), which estimates frequencies best.
Outputs are packed bits (`bits.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, number, whole
from dprad.mechanisms import bits as packed
from dprad.mechanisms.base import Card, quotient
from dprad.mechanisms.bits import Words
from dprad.mechanisms.categorical import categories, check_parameters
from dprad.mechanisms.support import SetMechanism, Supports
from dprad.model.guarantees import REPLACE_ONE, ApproxDP, PureDP
from dprad.model.parameters import DELTA, EPSILON
from dprad.numerics.arrays import FloatArray, IntArray


class Bits(SetMechanism):
    """Common to all unary encodings; subclasses define size, p and q."""

    __slots__ = ()
    size: int
    p: float
    q: float

    @property
    def log_ratio(self) -> float:
        """Log of P_in/P_out, p (1-q) / (q (1-p))."""
        p, q = self.p, self.q
        with np.errstate(divide="ignore"):
            return float(np.log(p) + np.log1p(-q) - np.log(q) - np.log1p(-p)) if p > q else 0.0

    @property
    def independent(self) -> bool:
        """Bits are."""
        return True

    @property
    def supports(self) -> Supports:
        """Independent bits."""
        p, q = self.p, self.q
        return Supports(
            log_ratio=self.log_ratio,
            hit=lambda n: p * (1.0 - q) ** np.arange(n + 1),
            miss=lambda n: (1.0 - p) * (1.0 - q) ** np.arange(n + 1),
            full=lambda k: float(p * q**k),
        )

    def sample(self, records: Any, rng: np.random.Generator) -> Words:
        """One packed row of bits per record. O(n size / 64) words."""
        codes = categories(records, self.size, type(self).__name__).reshape(-1)
        bits = packed.bernoulli(self.q, len(codes), self.size, rng)
        packed.put(bits, codes, rng.random(len(codes)) < self.p)
        return bits

    def log_likelihood(self, outputs: Words, records: Any) -> FloatArray:
        """Log-probability of outputs given records; broadcasts over the leading axes."""
        own = packed.contains(outputs, records)
        count = packed.count(outputs)

        def others(ones: IntArray) -> FloatArray:
            zeros = self.size - 1 - ones
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.where(ones > 0, ones * np.log(self.q), 0.0)
                return found + np.where(zeros > 0, zeros * np.log1p(-self.q), 0.0)

        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.log(self.p) + others(count - 1)
            outside = np.log1p(-self.p) + others(count)
        return np.asarray(np.where(own, inside, outside))

    def variance(self, people: int = 1) -> float:
        """Variance of the estimated frequency of a rare value from `people` reports."""
        return quotient(self.q * (1.0 - self.q), people * (self.p - self.q) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryEncoding(Bits):
    """Unary encoding with given probabilities of a one.

    Parameters
    ----------
    size
        Number of possible values; the codes are 0 .. size-1.
    p
        Probability of a one in the bit of the true value.
    q
        Probability of a one in every other bit; at most p.

    Examples
    --------
    >>> round(UnaryEncoding(size=5, p=0.5, q=0.25).guarantee.epsilon, 6)     # ln 3
    1.098612

    """

    size: int
    p: float
    q: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size", low=1))
        object.__setattr__(self, "p", number(self.p, "p", low=0, high=1))
        object.__setattr__(self, "q", number(self.q, "q", low=0, high=1))
        if not self.q <= self.p:
            raise DpradError(f"q must be at most p, but q = {self.q!r} and p = {self.p!r}.")

    @property
    def guarantee(self) -> ApproxDP:
        """Pure DP if both bits can err, else the total variation of two bits."""
        ratio = self.supports.log_ratio if self.size > 1 else 0.0
        if np.isfinite(ratio):
            return PureDP(ratio, neighbours=REPLACE_ONE)
        return ApproxDP(0.0, self.p - self.q, neighbours=REPLACE_ONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OUE(Bits):
    """Optimal unary encoding: p = 1/2, q = 1/(e^epsilon + 1).

    Its risk never exceeds (m-1)/(2m), however large epsilon is.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    size
        Number of possible values; the codes are 0 .. size-1.

    Examples
    --------
    >>> import math
    >>> OUE(epsilon=math.log(3), size=5).q
    0.25

    """

    epsilon: float
    size: int

    card: ClassVar = Card(
        name="oue",
        title="optimal unary encoding",
        takes=(EPSILON,),
        reads="codes",
        cost="quick",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def log_ratio(self) -> float:
        """Epsilon, to the last digit."""
        return self.epsilon

    @property
    def p(self) -> float:  # type: ignore[override]
        """The true bit is a fair coin."""
        return 0.5

    @property
    def q(self) -> float:  # type: ignore[override]
        """Chance that another bit is one."""
        shrink = float(np.exp(-self.epsilon))
        return shrink / (1.0 + shrink)

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for replaced records."""
        return PureDP(self.epsilon if self.size > 1 else 0.0, neighbours=REPLACE_ONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SUE(Bits):
    """Symmetric unary encoding (basic RAPPOR): every bit is true with probability p.

    With `delta`, p solves ``p^2 - e^epsilon (1-p)^2 = delta``: two records differ in two bits.

    Parameters
    ----------
    epsilon
        Privacy loss, at least 0. Smaller is more private.
    size
        Number of possible values; the codes are 0 .. size-1.
    delta
        Probability of failure; 0 for pure DP.

    Examples
    --------
    >>> import math
    >>> round(SUE(epsilon=2 * math.log(3), size=5).p, 12)     # 3/(3 + 1)
    0.75

    """

    epsilon: float
    size: int
    delta: float = 0.0

    card: ClassVar = Card(
        name="sue",
        title="symmetric unary encoding",
        takes=(EPSILON, DELTA),
        reads="codes",
        cost="quick",
    )
    noise: ClassVar = EPSILON

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def log_ratio(self) -> float:
        """Epsilon, to the last digit, where delta is 0."""
        return self.epsilon if self.delta == 0.0 else Bits.log_ratio.__get__(self)

    @property
    def p(self) -> float:  # type: ignore[override]
        """Chance that a bit tells the truth."""
        return 1.0 - self.q

    @property
    def q(self) -> float:  # type: ignore[override]
        """(root - 1)/(e - 1) = (1 - delta)/(1 + root), root = sqrt(e - delta (e - 1))."""
        half = float(np.exp(-self.epsilon / 2))
        gap = float(-np.expm1(-self.epsilon))  # (e - 1)/e
        # 1/(1 + root) with root = e^(eps/2) sqrt(1 - delta gap), free of overflow
        return (1.0 - self.delta) * half / (half + float(np.sqrt(1.0 - self.delta * gap)))

    @property
    def guarantee(self) -> ApproxDP:
        """(epsilon, delta)-DP for replaced records."""
        epsilon = self.epsilon if self.size > 1 else 0.0
        if self.delta == 0.0:
            return PureDP(epsilon, neighbours=REPLACE_ONE)
        return ApproxDP(epsilon, self.delta if self.size > 1 else 0.0, neighbours=REPLACE_ONE)
