"""dp-accounting: a PrivacyLossDistribution as a guarantee.

The masses of both directions are copied, so the profile is exactly that of dp-accounting, and
composition and conversion continue from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprad.errors import DpradError, one_of
from dprad.model.guarantees import (
    ADD_REMOVE,
    REPLACE_ONE,
    UNKNOWN,
    Guarantee,
    Neighbours,
    of_directions,
)
from dprad.model.privacy_loss import PrivacyLoss


def from_pld(pld: Any, *, neighbours: Neighbours) -> Guarantee:
    """The guarantee of a PrivacyLossDistribution of dp-accounting.

    Parameters
    ----------
    pld
        A pessimistic PrivacyLossDistribution.
    neighbours
        ``"replace-one"`` or ``"add-remove"``; the distribution does not say.

    Returns
    -------
    Guarantee
        With the same profile.

    Examples
    --------
    >>> from dp_accounting.pld import privacy_loss_distribution
    >>> pld = privacy_loss_distribution.from_laplace_mechanism(1.0)
    >>> round(from_pld(pld, neighbours="add-remove").tv, 4)         # 1 - exp(-1/2)
    0.3935

    """
    one_of(neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE, UNKNOWN))
    try:
        safe = pld._pmf_remove._pessimistic_estimate and pld._pmf_add._pessimistic_estimate
        present = _read(pld._pmf_remove)
        absent = None if pld._symmetric else _read(pld._pmf_add)
    except AttributeError:
        raise DpradError(
            "from_pld takes a PrivacyLossDistribution of dp-accounting, but got a "
            f"{type(pld).__name__}."
        ) from None
    if not safe:
        raise DpradError(
            "the distribution is an optimistic estimate, which promises too much. Make it with "
            "pessimistic_estimate=True."
        )
    return of_directions(present, absent, neighbours)


def _read(pmf: Any) -> PrivacyLoss:
    dense = pmf.to_dense_pmf()
    masses = np.array(dense._probs, dtype=float)
    return PrivacyLoss(
        float(dense._discretization),
        int(dense._lower_loss),
        np.maximum(masses, 0.0),
        min(1.0, float(dense._infinity_mass)),
    )._small()
