"""dp-accounting: a PrivacyLossDistribution or a DpEvent as a guarantee.

The masses of both directions are copied, so the profile is exactly that of dp-accounting, and
composition and conversion continue from there. The PLD accountant of dp-accounting 0.6 composes a
*repeated* `RandomizedResponseDpEvent` only once; here it is composed as often as it says.
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


def from_event(event: Any, *, neighbours: Neighbours = ADD_REMOVE) -> Guarantee:
    """The guarantee of a DpEvent, by the PLD accountant of dp-accounting (extra `accounting`).

    Parameters
    ----------
    event
        A DpEvent.
    neighbours
        ``"replace-one"`` or ``"add-remove"``; what the event compares.

    Returns
    -------
    Guarantee
        The composed promise.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    >>> promise = from_event(SelfComposedDpEvent(GaussianDpEvent(2.0), 4))
    >>> promise.neighbours, round(promise.tv, 2)         # 1-Gaussian DP
    ('add-remove', 0.38)

    """
    try:
        from dp_accounting import dp_event, privacy_accountant
        from dp_accounting.pld import PLDAccountant
    except ImportError:
        raise DpradError(
            "from_event needs dp-accounting: pip install 'dprad[accounting]'."
        ) from None
    one_of(neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE))
    kinds = privacy_accountant.NeighboringRelation
    relation = kinds.REPLACE_ONE if neighbours == REPLACE_ONE else kinds.ADD_OR_REMOVE_ONE
    if not isinstance(event, dp_event.DpEvent):
        raise DpradError(f"from_event takes a DpEvent, but got a {type(event).__name__}.")

    def leaves(part: Any, count: int) -> list[tuple[Any, int]]:
        if isinstance(part, dp_event.SelfComposedDpEvent):
            return leaves(part.event, count * part.count)
        if isinstance(part, dp_event.ComposedDpEvent):
            return [leaf for p in part.events for leaf in leaves(p, count)]
        return [(part, count)]

    result: Guarantee | None = None
    for leaf, count in leaves(event, 1):
        alone = isinstance(leaf, dp_event.RandomizedResponseDpEvent)
        accountant = PLDAccountant(relation)
        try:
            accountant.compose(leaf, 1 if alone else count)
        except (privacy_accountant.UnsupportedEventError, ValueError) as error:
            raise DpradError(f"dp-accounting cannot account for this event: {error}") from None
        if accountant._contains_non_dp_event:
            raise DpradError(f"the event promises nothing: {leaf}.")
        promise = from_pld(accountant._pld, neighbours=neighbours)
        promise = promise.repeated(count) if alone else promise
        result = promise if result is None else result.compose(promise)
    if result is None:
        raise DpradError("the event is empty: nothing was released.")
    return result


def _read(pmf: Any) -> PrivacyLoss:
    dense = pmf.to_dense_pmf()
    masses = np.array(dense._probs, dtype=float)
    return PrivacyLoss(
        float(dense._discretization),
        int(dense._lower_loss),
        np.maximum(masses, 0.0),
        min(1.0, float(dense._infinity_mass)),
    )._small()
