"""Risk against the noise parameter, one line per mechanism or promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dprad.show.plots.style import COLOURS, DASHES, axis, plain

if TYPE_CHECKING:
    from dprad.model.results import Risk

Line = tuple[Sequence[float], Sequence["Risk"]]


def plot_risk(
    lines: Mapping[str, Line],
    ax: Any = None,
    *,
    parameter: str = "epsilon",
    accepted: float | None = None,
    at: Mapping[str, float] | float | None = None,
) -> Any:
    """Draw risk against the noise; bounds are dashed, estimates have a band.

    Parameters
    ----------
    lines
        ``{name: (values, risks)}``.
    ax
        A matplotlib axis; default: a new figure.
    parameter
        Label of the horizontal axis.
    accepted
        The accepted risk, drawn as a line.
    at
        The value in use: a number, or one per line, by name.

    Returns
    -------
    Axes
        The axis drawn on.

    Examples
    --------
    >>> import dprad
    >>> epsilons = [0.5, 1.0, 2.0]
    >>> risks = [dprad.assess(dprad.mechanisms.GRR(epsilon=e, size=4), prior=dprad.Prior.uniform(4))
    ...          for e in epsilons]
    >>> plot_risk({"GRR": (epsilons, risks)}, accepted=0.1).get_ylabel()
    'extra risk'

    """
    ax = axis(ax)
    for k, (name, (values, risks)) in enumerate(lines.items()):
        colour = COLOURS[k % len(COLOURS)]
        bound = bool(risks) and risks[0].kind == "upper-bound"
        label = plain(name) + (" (bound)" if bound else "")
        dash: Any = "--" if bound else DASHES[0]
        ax.plot(values, [r.rad for r in risks], color=colour, linestyle=dash, label=label)
        if any(r.kind == "estimate" for r in risks):
            low, high = ([r.interval[i] for r in risks] for i in (0, 1))
            ax.fill_between(values, low, high, color=colour, alpha=0.2, linewidth=0)
    if accepted is not None:
        ax.axhline(accepted, color=COLOURS[6], linewidth=1)
        ax.annotate(
            f"accepted {accepted:g}", (1, accepted), xycoords=("axes fraction", "data"),
            xytext=(0, 3), textcoords="offset points", ha="right",
        )  # fmt: skip
    if isinstance(at, Mapping):
        for k, (name, (values, risks)) in enumerate(lines.items()):
            if name in at:
                nearest = min(range(len(values)), key=lambda i: abs(values[i] - at[name]))
                ax.plot(at[name], risks[nearest].rad, "o", color=COLOURS[k % len(COLOURS)])
    elif at is not None:
        ax.axvline(at, color=COLOURS[6], linewidth=1, linestyle=":")
    ax.set_xlabel(parameter)
    ax.set_ylabel("extra risk")
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    ax.legend(loc="best")
    return ax
