"""dp-accounting: a DpEvent or an accountant as a guarantee.

An event is read part by part: by the PLD accountant, which is nearly exact; zero-concentrated DP as
it is; and what only the RDP accountant knows (sampling without replacement, trees, repeat and
select) by its moments. The PLD accountant of dp-accounting 0.6 composes a *repeated*
`RandomizedResponseDpEvent` only once; here it is composed as often as it says.

An event states its noise in units of the norm of one record, and a replaced record moves the sum by
twice that. The PLD accountant counts it so; the RDP accountant of version 0.6 does not, and says
half the distance for REPLACE_ONE. So there the noise is halved before it is asked.

REPLACE_SPECIAL, where a record is replaced by one that says nothing, is read as add-remove: it
compares with and without the person as well.
"""

from __future__ import annotations

from typing import Any

from dprad.accounting.from_pld import from_pld
from dprad.errors import DpradError, one_of
from dprad.model.guarantees import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    Guarantee,
    Neighbours,
    RenyiDP,
)


def from_event(event: Any, *, neighbours: Neighbours = ADD_REMOVE) -> Guarantee:
    """The guarantee of a DpEvent, by the accountants of dp-accounting (extra `accounting`).

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
    one_of(neighbours, "neighbours", (REPLACE_ONE, ADD_REMOVE))
    events = _dp_event()
    if not isinstance(event, events.DpEvent):
        raise DpradError(f"from_event takes a DpEvent, but got a {type(event).__name__}.")
    from dp_accounting.privacy_accountant import NeighboringRelation as Relation

    relation = Relation.REPLACE_ONE if neighbours == REPLACE_ONE else Relation.ADD_OR_REMOVE_ONE
    return _composed(event, relation, neighbours)


def from_accountant(accountant: Any) -> Guarantee:
    """The guarantee that a PLDAccountant or an RdpAccountant of dp-accounting has counted.

    Parameters
    ----------
    accountant
        A PLDAccountant, or one for REPLACE_ONE: its events are read again, as by `from_event`.
        Another RdpAccountant: its moments are read; ``from_event(accountant.ledger)`` says more
        where the PLD accountant knows the events.

    Returns
    -------
    Guarantee
        With the neighbours of the accountant.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> from dp_accounting.rdp import RdpAccountant
    >>> promise = from_accountant(RdpAccountant().compose(GaussianDpEvent(2.0), 4))
    >>> promise.neighbours, round(promise.tv, 2)         # 1-Gaussian DP has 0.38
    ('add-remove', 0.48)

    """
    _dp_event()
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation as Relation
    from dp_accounting.rdp import RdpAccountant

    if not isinstance(accountant, PLDAccountant | RdpAccountant):
        raise DpradError(
            "from_accountant takes a PLDAccountant or an RdpAccountant of dp-accounting, but got "
            f"a {type(accountant).__name__}."
        )
    relation = accountant.neighboring_relation
    neighbours = REPLACE_ONE if relation == Relation.REPLACE_ONE else ADD_REMOVE
    if isinstance(accountant, PLDAccountant) or neighbours == REPLACE_ONE:
        return _composed(accountant.ledger, relation, neighbours)
    if not accountant._rdp.any():
        raise DpradError("the accountant has counted nothing: nothing was released.")
    return _moments(accountant, neighbours)


def _dp_event() -> Any:
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise DpradError(
            "from_event and from_accountant need dp-accounting: pip install 'dprad[accounting]'."
        ) from None
    return dp_event


def _composed(event: Any, relation: Any, neighbours: Neighbours) -> Guarantee:
    events = _dp_event()

    def leaves(part: Any, count: int) -> list[tuple[Any, int]]:
        if isinstance(part, events.SelfComposedDpEvent):
            return leaves(part.event, count * part.count)
        if isinstance(part, events.ComposedDpEvent):
            return [leaf for p in part.events for leaf in leaves(p, count)]
        return [] if isinstance(part, events.NoOpDpEvent) else [(part, count)]

    parts = [_leaf(leaf, n, relation, neighbours) for leaf, n in leaves(event, 1)]
    if not parts:
        raise DpradError("the event is empty: nothing was released.")
    return parts[0].compose(*parts[1:])


def _leaf(event: Any, count: int, relation: Any, neighbours: Neighbours) -> Guarantee:
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation, UnsupportedEventError
    from dp_accounting.rdp import RdpAccountant

    events = _dp_event()
    if isinstance(event, events.ZCDpEvent) and event.xi == 0:
        return ZCDP(event.rho, neighbours=neighbours).repeated(count)
    if isinstance(event, events.SingleEpochTreeAggregationDpEvent) and neighbours == ADD_REMOVE:
        relation = NeighboringRelation.REPLACE_SPECIAL
    try:
        exact = PLDAccountant(relation)
        if exact.supports(event):
            alone = isinstance(event, events.RandomizedResponseDpEvent)
            exact.compose(event, 1 if alone else count)
            if exact._contains_non_dp_event:
                raise DpradError(f"the event promises nothing: {event}.")
            promise = from_pld(exact._pld, neighbours=neighbours)
            return promise.repeated(count) if alone else promise
        by_moments = RdpAccountant(neighboring_relation=relation)
        read = _halved(event) if neighbours == REPLACE_ONE else event
        return _moments(by_moments.compose(read, count), neighbours)
    except DpradError:
        raise
    except (UnsupportedEventError, ValueError) as error:
        raise DpradError(f"dp-accounting cannot account for this event: {error}") from None


def _halved(event: Any) -> Any:
    """The same event with half the noise, so that a replaced record moves the sum by one."""
    import attr

    events = _dp_event()
    if isinstance(event, events.GaussianDpEvent | events.LaplaceDpEvent):
        return attr.evolve(event, noise_multiplier=event.noise_multiplier / 2)
    if isinstance(event, events.ComposedDpEvent):
        return attr.evolve(event, events=[_halved(inner) for inner in event.events])
    inner = getattr(event, "event", None)
    return event if inner is None else attr.evolve(event, event=_halved(inner))


def _moments(accountant: Any, neighbours: Neighbours) -> Guarantee:
    if not (accountant._rdp < float("inf")).any():
        raise DpradError("the events promise nothing: every moment is infinite.")
    orders, spent = accountant._orders, accountant._rdp
    return RenyiDP(orders[orders > 1].tolist(), spent[orders > 1].tolist(), neighbours=neighbours)
