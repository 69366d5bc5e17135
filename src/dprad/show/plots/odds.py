"""Two grids of 100 dots: right guesses about a person not in the data, and about one who is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dprad.show.plots.style import COLOURS, INK, axis

if TYPE_CHECKING:
    from dprad.model.results import Risk

SIDE = 10


def dots(risk: Risk) -> tuple[int | None, int]:
    """Filled dots without and with the person, of 100.

    A bound gives only the difference of the odds: then the odds that it allows, from those of a
    blind guess; or, if these are not known, one grid of the extra ones.
    """
    if risk.success_in is not None and risk.success_out is not None:
        return round(100 * risk.success_out), round(100 * risk.success_in)
    if risk.baseline is not None and not risk.threat["membership"]:
        more = min(100, math.ceil(100 * risk.rad - 1e-9))
        top = max(min(math.ceil(100 * risk.rero - 1e-9), 100), more)  # never right more often
        out = min(round(100 * risk.baseline), top - more)
        return out, out + more
    return None, min(100, math.ceil(100 * risk.rad - 1e-9))


def grids(risk: Risk) -> list[tuple[str, str, list[str]]]:
    """Title, count and 100 dots ("anyway", "extra" or "no") of each grid."""
    out, inside = dots(risk)
    if out is None:
        title = "Right only because the person takes part"
        return [(title, f"at most {inside} of 100", ["extra"] * inside + ["no"] * (100 - inside))]
    anyway = min(out, inside)
    first = ["anyway"] * out + ["no"] * (100 - out)
    second = ["anyway"] * anyway + ["extra"] * (inside - anyway) + ["no"] * (100 - inside)
    least = "" if risk.success_in is not None else "up to "
    return [
        ("Not in the data", f"{out} of 100", first),
        ("In the data", f"{least}{inside} of 100", second),
    ]


def plot_odds(risk: Risk, ax: Any = None) -> Any:
    """Draw the odds as two grids of 100 dots: the person not in the data, and in the data.

    Parameters
    ----------
    risk
        A risk.
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
    >>> plot_odds(dprad.assess(promise, prior=prior)) is not None
    True

    """
    ax = axis(ax)
    colours = {"anyway": COLOURS[0], "extra": COLOURS[1]}
    for k, (title, count, kinds) in enumerate(grids(risk)):
        left = k * (SIDE + 3)
        for i, kind in enumerate(kinds):
            face = colours.get(kind, "none")
            edge = colours.get(kind, INK)
            x, y = left + i % SIDE, -(i // SIDE)
            ax.plot(x, y, "o", markersize=7, markerfacecolor=face, markeredgecolor=edge, mew=0.6)
        ax.text(left + SIDE / 2 - 0.5, 1.2, f"{title}: {count}", ha="center")
    ax.set_aspect("equal")
    ax.axis("off")
    return ax
