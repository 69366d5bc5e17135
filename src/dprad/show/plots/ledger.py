"""The joint risk over the releases of a ledger, and what further ones would add."""

from __future__ import annotations

from typing import Any

from dprad.show.plots.style import COLOURS, axis, plain

# Most names below the axis.
NAMES = 12


def plot_ledger(standing: Any, ax: Any = None) -> Any:
    """The joint risk after each release: what it added stands out. The limit is a line.

    Parameters
    ----------
    standing
        A result of `Ledger.status`.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    matplotlib axis
        Drawn on.

    """
    ax = axis(ax)
    steps = standing.steps
    place = range(len(steps))
    before = [s.risk - s.added for s in steps]
    ax.bar(place, before, color=COLOURS[5], alpha=0.5, label="before")
    ax.bar(place, [max(s.added, 0.0) for s in steps], bottom=before, color=COLOURS[0],
           label="added by this release")  # fmt: skip
    shown = list(place)[:: max(1, -(-len(steps) // NAMES))]
    names = [f"{plain(steps[k].entry.name, 18)}\n{steps[k].entry.date}" for k in shown]
    ax.set_xticks(shown, names, fontsize=8, rotation=30, ha="right")
    return _limited(ax, standing.asked.max_risk, [s.risk for s in steps])


def plot_plan(plan: Any, ax: Any = None) -> Any:
    """The joint risk after each further release with the noise of now, and the limit.

    Parameters
    ----------
    plan
        A result of `Ledger.plan`.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    matplotlib axis
        Drawn on.

    """
    ax = axis(ax)
    count, risk = zip(*plan.curve, strict=True)
    ax.plot(
        count, risk, "o-", color=COLOURS[0], label=f"like {plain(plan.like.name)}, noise of now"
    )
    ax.set_xlabel("further releases")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return _limited(ax, plan.asked.max_risk, risk)


def _limited(ax: Any, limit: float | None, risks: Any) -> Any:
    if limit is not None:
        ax.axhline(limit, color=COLOURS[6], linewidth=1)
        ax.annotate(
            f"accepted {limit:g}", (0, limit), xycoords=("axes fraction", "data"),
            xytext=(3, 3), textcoords="offset points",
        )  # fmt: skip
    ax.set_ylabel("joint extra risk")
    ax.set_ylim(0, 1.15 * max([*risks, limit or 0.0, 1e-6]))
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return ax
