"""OpenDP: a Measurement as a BlackBox with the guarantee of its privacy map.

What one replaced record means depends on the metric: distance 2 for SymmetricDistance (one out, one
in) and InsertDeleteDistance, 1 for ChangeOneDistance and HammingDistance, and for AbsoluteDistance
the range of the query, which must be given. Other metrics are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dprad.errors import DpradError, number
from dprad.mechanisms.black_box import BlackBox
from dprad.model.guarantees import REPLACE_ONE, ApproxDP, Guarantee, Profile, PureDP

_DISTANCE = {
    "SymmetricDistance": 2,
    "InsertDeleteDistance": 2,
    "ChangeOneDistance": 1,
    "HammingDistance": 1,
    "DiscreteDistance": 1,
}


def from_opendp(
    measurement: Any,
    *,
    span: float | None = None,
    records: Callable[[Any], Any] | None = None,
) -> BlackBox:
    """An OpenDP measurement as a mechanism to audit or simulate, with its replace-one promise.

    Parameters
    ----------
    measurement
        An OpenDP Measurement.
    span
        For AbsoluteDistance: how far replacing one record can move the query (its range).
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
    name = metric.split("(")[0].split("<")[0]
    if name == "AbsoluteDistance":
        if span is None:
            raise DpradError(
                "the promise over AbsoluteDistance depends on how far the number moves: give "
                "span=, the range of the query when one record is replaced."
            )
        distance: float = number(span, "span", low=0)
    elif name in _DISTANCE:
        if span is not None:
            raise DpradError(f"span goes with AbsoluteDistance; the metric here is {metric}.")
        distance = _DISTANCE[name]
    else:
        raise DpradError(
            f"one replaced record has no known distance in {metric}. Known are "
            f"AbsoluteDistance, {', '.join(_DISTANCE)}."
        )
    promise = _promise(privacy, distance, measure)

    def run(record: Any) -> Any:
        return measurement(record if records is None else records(record))

    return BlackBox(run, guarantee=promise)


def _promise(privacy: Callable[[Any], Any], distance: float, measure: str) -> Guarantee:
    try:
        spent = privacy(distance)
    except Exception:
        # maps of whole numbers refuse fractions (a query that is rounded may move by one more), and
        # those of fractions whole numbers
        try:
            spent = privacy(math.ceil(distance) if isinstance(distance, float) else float(distance))
        except Exception as error:
            raise DpradError(f"the privacy map refuses distance {distance!r}: {error}") from None
    if measure.startswith("Approximate") and "MaxDivergence" in measure:
        return ApproxDP(spent[0], spent[1], neighbours=REPLACE_ONE)
    if measure.startswith("MaxDivergence"):
        return PureDP(spent, neighbours=REPLACE_ONE)
    if measure.startswith("ZeroConcentratedDivergence"):
        return concentrated(spent)
    if measure.startswith("SmoothedMaxDivergence"):
        return Profile(lambda epsilon: spent.delta(epsilon), neighbours=REPLACE_ONE)
    raise DpradError(f"the privacy measure {measure} is not known here.")


def concentrated(rho: float) -> Profile:
    """The promise of rho-zCDP as a profile: the least over orders a of Canonne et al. (2020).

    ``delta(eps) = min_a exp((a-1)(a rho - eps)) (1 - 1/a)^a / (a - 1)``; every order is valid.
    """
    budget = number(rho, "rho", low=0)
    order = 1.0 + np.geomspace(1e-4, 1e6, 2000)
    base = order * np.log1p(-1.0 / order) - np.log(order - 1.0)

    def delta(epsilon: float) -> float:
        log = (order - 1.0) * (order * budget - epsilon) + base
        return float(min(1.0, np.exp(min(0.0, float(log.min())))))

    return Profile(delta, neighbours=REPLACE_ONE)
