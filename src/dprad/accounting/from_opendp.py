"""OpenDP: a Measurement as a BlackBox with the guarantee of its privacy map, and a Context as a
guarantee.

What the promise compares depends on the metric. SymmetricDistance and InsertDeleteDistance count
rows that come or go: at distance 1 the promise is add-remove, which says more than the replace-one
promise at distance 2. But if the number of rows is fixed, no data sets are at distance 1, and the
map promises anything there: then distance 2 is read. ChangeOneDistance and HammingDistance count
replaced records. For distances of numbers and vectors, the range of the query must be given. Other
metrics are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dprad.errors import DpradError, number
from dprad.mechanisms.black_box import BlackBox
from dprad.model.guarantees import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    ApproxDP,
    Guarantee,
    Neighbours,
    Profile,
    PureDP,
)

ROWS = ("SymmetricDistance", "InsertDeleteDistance")
CHANGES = ("ChangeOneDistance", "HammingDistance", "DiscreteDistance")
SPANS = ("AbsoluteDistance", "L1Distance", "L2Distance")
# Where two promises are compared.
GRID = np.array([0.0, 0.1, 0.3, 1.0, 3.0])


def from_opendp(
    measurement: Any,
    *,
    span: float | None = None,
    records: Callable[[Any], Any] | None = None,
) -> BlackBox:
    """An OpenDP measurement as a mechanism to audit or simulate, with its promise.

    Parameters
    ----------
    measurement
        An OpenDP Measurement.
    span
        For AbsoluteDistance, L1Distance and L2Distance: how far replacing one record can move the
        query, in that distance.
    records
        Maps one record to the input of the measurement; default: the record itself. For a
        measurement on data sets: ``lambda record: others + [record]``.

    Returns
    -------
    BlackBox
        With its guarantee.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> laplace = space >> dp.m.then_laplace(scale=2.0)
    >>> round(from_opendp(laplace, span=1.0).guarantee.epsilon, 6)
    0.5

    """
    try:
        metric, measure = str(measurement.input_metric), str(measurement.output_measure)
        privacy = measurement.map
    except AttributeError:
        raise DpradError(
            f"from_opendp takes a Measurement of OpenDP, but got a {type(measurement).__name__}."
        ) from None
    name = _named(metric)
    if name in SPANS:
        if span is None:
            raise DpradError(
                f"the promise over {name} depends on how far the query moves: give span=, its "
                "range when one record is replaced."
            )
        promise = _promise(privacy, number(span, "span", low=0), measure, REPLACE_ONE)
    elif span is not None:
        raise DpradError(f"span goes with {', '.join(SPANS)}; the metric here is {metric}.")
    elif name in ROWS:
        promise = _of_rows(privacy, measure, _sized(measurement))
    elif name in CHANGES:
        promise = _promise(privacy, 1, measure, REPLACE_ONE)
    else:
        raise DpradError(
            f"one replaced record has no known distance in {metric}. Known are "
            f"{', '.join((*SPANS, *ROWS, *CHANGES))}."
        )

    def run(record: Any) -> Any:
        return measurement(record if records is None else records(record))

    return BlackBox(run, guarantee=promise)


def from_context(context: Any) -> Guarantee:
    """The whole budget of an OpenDP Context, whether spent or not, for its privacy unit.

    Parameters
    ----------
    context
        An OpenDP Context.

    Returns
    -------
    Guarantee
        Add-remove for a unit of `contributions`, replace-one for a unit of `changes`.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> context = dp.Context.compositor(
    ...     data=[1, 2, 3],
    ...     privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ...     split_evenly_over=2,
    ...     domain=dp.vector_domain(dp.atom_domain(bounds=(0, 10))),
    ... )
    >>> from_context(context)
    PureDP(1.0, neighbours='add-remove')

    """
    try:
        accountant, distance, spent = context.accountant, context.d_in, context.d_out
        metric, measure = str(accountant.input_metric), str(accountant.output_measure)
    except AttributeError:
        raise DpradError(
            f"from_context takes a Context of OpenDP, but got a {type(context).__name__}."
        ) from None
    name = _named(metric)
    if name in ROWS and not _sized(accountant):
        neighbours = ADD_REMOVE
    elif name in CHANGES or (name in ROWS and distance >= 2):
        neighbours = REPLACE_ONE
    elif name in ROWS:
        raise DpradError(
            "the number of rows is fixed, so no data sets differ by one contribution and the "
            "budget promises nothing: use dp.unit_of(contributions=2), or changes=1."
        )
    else:
        raise DpradError(f"the privacy unit is not known in {metric}.")
    if spent is not None:
        return _of(spent, measure, neighbours)
    return _promise(accountant.map, distance, measure, neighbours)


def _named(metric: str) -> str:
    return metric.split("(")[0].split("<")[0]


def _sized(measurement: Any) -> bool:
    """Whether its data sets have a fixed number of rows."""
    return getattr(measurement.input_domain, "size", None) is not None


def _of_rows(privacy: Callable[[Any], Any], measure: str, sized: bool) -> Guarantee:
    """Add-remove at distance 1, unless that is void or says less than distance 2."""
    replaced = _promise(privacy, 2, measure, REPLACE_ONE)
    if sized:
        return replaced
    added = _promise(privacy, 1, measure, ADD_REMOVE)
    # where data sets at distance 1 exist, two such steps lead to distance 2: group privacy
    group = (1.0 + np.exp(GRID)) * added.delta(GRID) * (1.0 + 1e-6) + 1e-12
    follows = bool(np.all(replaced.delta(2 * GRID) <= group))
    return added if follows and added.replace_one().tv <= replaced.tv + 1e-9 else replaced


def _promise(
    privacy: Callable[[Any], Any], distance: float, measure: str, neighbours: Neighbours
) -> Guarantee:
    try:
        spent = privacy(distance)
    except Exception:
        # maps of whole numbers refuse fractions (a query that is rounded may move by one more), and
        # those of fractions whole numbers
        try:
            spent = privacy(math.ceil(distance) if isinstance(distance, float) else float(distance))
        except Exception as error:
            raise DpradError(f"the privacy map refuses distance {distance!r}: {error}") from None
    return _of(spent, measure, neighbours)


def _of(spent: Any, measure: str, neighbours: Neighbours) -> Guarantee:
    """A privacy loss in the words of OpenDP as a guarantee."""
    if measure.startswith("Approximate") and "MaxDivergence" in measure:
        return ApproxDP(spent[0], spent[1], neighbours=neighbours)
    if measure.startswith("MaxDivergence"):
        return PureDP(spent, neighbours=neighbours)
    if measure.startswith("ZeroConcentratedDivergence"):
        return ZCDP(spent, neighbours=neighbours)
    if measure.startswith("SmoothedMaxDivergence"):
        return Profile(lambda epsilon: spent.delta(epsilon), neighbours=neighbours)
    raise DpradError(f"the privacy measure {measure} is not known here.")
