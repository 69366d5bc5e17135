"""Risk against error, with a line through the mechanisms that no other beats on both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprad.errors import DpradError
from dprad.show.plots.style import COLOURS, INK, axis, plain

if TYPE_CHECKING:
    from dprad.model.comparisons import Comparison


def plot_frontier(table: Comparison, ax: Any = None) -> Any:
    """Draw a comparison: the 95% error, or else the standard deviation, against the risk.

    Parameters
    ----------
    table
        A result of `compare`.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    Axes
        The axis drawn on.

    Examples
    --------
    >>> import dprad
    >>> from dprad.mechanisms import GRR, OUE
    >>> table = dprad.compare([GRR(epsilon=1, size=5), OUE(epsilon=1, size=5)],
    ...                       prior=dprad.Prior.uniform(5))
    >>> plot_frontier(table).get_ylabel()
    'extra risk'

    """
    ax = axis(ax)
    rows = [(c, c.error if c.error is not None else _deviation(c)) for c in table]
    shown = [(c, e) for c, e in rows if e is not None]
    if not shown:
        raise DpradError("none of these mechanisms has an error to draw.")
    best = sorted([(e, c.risk.rad) for c, e in shown if c.frontier])
    ax.plot([e for e, _ in best], [r for _, r in best], color=COLOURS[0], linewidth=1)
    for c, e in shown:
        face = COLOURS[0] if c.frontier else "none"
        ax.plot(e, c.risk.rad, "o", markerfacecolor=face, markeredgecolor=COLOURS[0])
        ax.annotate(
            plain(c.name, 28), (e, c.risk.rad), xytext=(5, 4), textcoords="offset points",
            fontsize=8, color=INK,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlabel("error (smaller is more useful)")
    ax.set_ylabel("extra risk")
    ax.set_ylim(bottom=0)
    ax.margins(x=0.15)
    return ax


def _deviation(candidate: Any) -> float | None:
    return None if candidate.variance is None else float(candidate.variance**0.5)
