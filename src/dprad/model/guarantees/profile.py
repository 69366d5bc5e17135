"""Any privacy profile, given as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprad.errors import DpradError, told
from dprad.model.guarantees.base import Guarantee
from dprad.model.guarantees.neighbours import explains_neighbours
from dprad.model.privacy_loss import MAX_LOSS, PrivacyLoss
from dprad.numerics.arrays import FloatArray

# A difference of floats may leave [0, 1] by this.
ROUNDING = 1e-12
# A profile below this counts as zero when its range is determined.
NEGLIGIBLE = 1e-18


@explains_neighbours
@dataclass(frozen=True, repr=False)
class Profile(Guarantee):
    """Any privacy profile, given as a function.

    A true profile is convex in e^epsilon and obeys ``delta(-e) = 1 - exp(-e) (1 - delta(e))``.
    Where the function does not, the smaller value that this implies is used. The function is
    evaluated about 8,000 times, once.

    Parameters
    ----------
    function
        Maps epsilon >= 0 to delta, or to an upper bound on it.
    neighbours
        ``"replace-one"`` (one record is exchanged) or ``"add-remove"`` (with and without the
        person).

    Examples
    --------
    >>> import math
    >>> promise = Profile(lambda eps: math.exp(-eps) / 4, neighbours="replace-one")
    >>> round(promise.tv, 9)
    0.25

    """

    function: Callable[[Any], Any]
    name: ClassVar[str] = "Profile"

    def __post_init__(self) -> None:
        Guarantee.__post_init__(self)
        if not callable(self.function):
            raise DpradError(
                "function must be a callable epsilon -> delta, but is a "
                f"{type(self.function).__name__}."
            )
        self._read(np.linspace(0.0, 10.0, 11))

    def _read(self, epsilon: FloatArray) -> FloatArray:
        flat = np.ravel(epsilon)
        try:
            value = np.array([float(self.function(float(e))) for e in flat])
        except Exception as error:
            raise DpradError(f"function must return a number, but raised {told(error)}.") from None
        value = value.reshape(epsilon.shape)
        bad = ~((value >= -ROUNDING) & (value <= 1 + ROUNDING))
        if np.any(bad):
            where = float(np.ravel(epsilon)[np.ravel(bad)][0])
            raise DpradError(
                f"function must return a delta between 0 and 1, but returned "
                f"{float(np.ravel(value)[np.ravel(bad)][0])!r} at epsilon = {where:g}."
            )
        return np.asarray(np.clip(value, 0.0, 1.0))

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(self._read(epsilon), self.loss.delta(epsilon)))

    def _loss(self) -> PrivacyLoss:
        top = 1.0
        ends = self._read(np.array([MAX_LOSS]))[0]
        # no need to look beyond where the profile has reached its limit
        while top < MAX_LOSS and self._read(np.array([top]))[0] > max(NEGLIGIBLE, ends):
            top *= 1.25
        return PrivacyLoss.of_profile(self._read, min(top, MAX_LOSS))

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Profile({name}, neighbours={self.neighbours!r})"
