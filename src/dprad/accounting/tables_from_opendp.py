"""OpenDP: a count, a count by categories or a sum as a table release.

A measurement does not tell its noise. But the distance of data sets that differ in one person is 1
under OpenDP's metrics of data sets, so its privacy map at 1 is the epsilon (or rho) of the release,
and what is published is described by the caller. If the map is not tight, the risk is overstated.
"""

from __future__ import annotations

from typing import Any

from dprad.errors import DpradError
from dprad.mechanisms.tables import Sums, TableRelease
from dprad.model.guarantees import ADD_REMOVE, REPLACE_ONE

_NEIGHBOURS = {
    "SymmetricDistance": ADD_REMOVE,
    "InsertDeleteDistance": ADD_REMOVE,
    "ChangeOneDistance": REPLACE_ONE,
    "HammingDistance": REPLACE_ONE,
}
# The amount, and the noise that OpenDP adds to whole and to other numbers.
_MEASURES = {
    "MaxDivergence": ("epsilon", "geometric", "laplace"),
    "ZeroConcentratedDivergence": ("rho", "discrete-gaussian", "gaussian"),
}


def release_from_opendp(
    measurement: Any, kind: type[TableRelease], **description: Any
) -> TableRelease:
    """An OpenDP measurement on a data set as a table release, with the epsilon of its privacy map.

    Parameters
    ----------
    measurement
        A Measurement of OpenDP that adds noise to one count, a count by categories, or a sum. What
        it publishes must be what is described: the measurement does not tell.
    kind
        `mechanisms.Counts`, `Sums` or `Histogram`.
    **description
        Its arguments, such as ``by=["diagnosis"]``, except the amount of noise. Default noise:
        whole numbers for counts, other numbers for sums.

    Returns
    -------
    TableRelease
        For `assess`, `calibrate` and the others.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from dprad.mechanisms import Counts
    >>> dp.enable_features("contrib")
    >>> space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    >>> counted = dp.t.then_count_by_categories(categories=["asthma", "lung"])
    >>> release = release_from_opendp(space >> counted >> dp.m.then_laplace(scale=2.0),
    ...                               Counts, by=["diagnosis"])
    >>> release.epsilon, release.noise, release.neighbours
    (0.5, 'geometric', 'add-remove')

    """
    try:
        metric, measure = str(measurement.input_metric), str(measurement.output_measure)
        privacy = measurement.map
    except AttributeError:
        raise DpradError(
            "release_from_opendp takes a Measurement of OpenDP, but got a "
            f"{type(measurement).__name__}."
        ) from None
    if not isinstance(kind, type) or not issubclass(kind, TableRelease):
        raise DpradError("kind must be a table release, such as dprad.mechanisms.Counts.")
    near = _NEIGHBOURS.get(metric.split("(")[0].split("<")[0])
    known = _MEASURES.get(measure.split("(")[0].split("<")[0])
    if near is None:
        raise DpradError(
            f"the metric {metric} does not say what one person changes. Known are "
            f"{', '.join(_NEIGHBOURS)}: give the whole measurement, from the data set on."
        )
    if known is None:
        raise DpradError(
            f"the noise cannot be told from the privacy measure {measure}. Known are "
            f"{' and '.join(_MEASURES)}; describe the release with scale= instead."
        )
    amount, whole, other = known
    noise = other if issubclass(kind, Sums) else whole
    given: dict[str, Any] = {"noise": noise, "neighbours": near, amount: float(privacy(1))}
    return kind(**given | description)
