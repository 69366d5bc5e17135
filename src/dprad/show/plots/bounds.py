"""All bounds that apply, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprad.errors import DpradError
from dprad.model import explain
from dprad.show.plots.style import COLOURS, axis, plain

if TYPE_CHECKING:
    from dprad.model.results import Risk


def plot_bounds(risk: Risk, ax: Any = None) -> Any:
    """Draw all bounds on the risk of a promise; the smallest is highlighted.

    Parameters
    ----------
    risk
        A risk of a guarantee.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    Axes
        The axis drawn on.

    Examples
    --------
    >>> import dprad
    >>> promise, prior = dprad.PureDP(1.0, neighbours="replace-one"), dprad.Prior.uniform(4)
    >>> plot_bounds(dprad.assess(promise, prior=prior)).get_xlabel()
    'extra risk, at most'

    """
    ax = axis(ax)
    bounds = [b for b in risk.bounds if b.measure == "rad" and b.value is not None]
    if not bounds:
        raise DpradError("this risk has no bounds to draw: assess a promise.")
    bounds.sort(key=lambda b: b.value or 0.0, reverse=True)
    names = [plain(b.title, 44) for b in bounds]
    values = [b.value or 0.0 for b in bounds]
    best = min(values)
    colours = [COLOURS[0] if v <= best * (1 + 1e-9) else COLOURS[5] for v in values]
    bars = ax.barh(range(len(bounds)), values, color=colours)
    ax.set_yticks(range(len(bounds)), names)
    ax.bar_label(bars, [explain.above(v) for v in values], padding=3, fontsize=9)
    ax.set_xlabel("extra risk, at most")
    ax.margins(x=0.15)
    return ax
