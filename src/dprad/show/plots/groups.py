"""Risk by group: a bar for each, most exposed first, and the average over everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprad.model import explain
from dprad.model.groups import named, part
from dprad.show.plots.style import COLOURS, INK, axis, plain

if TYPE_CHECKING:
    from dprad.model.groups import Groups

# Most bars.
BARS = 15


def plot_groups(groups: Groups, ax: Any = None) -> Any:
    """Draw the extra risk of the most exposed groups, 15 at most, with their shares.

    Parameters
    ----------
    groups
        A result of `by_group`.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    Axes
        The axis drawn on.

    Examples
    --------
    >>> import dprad
    >>> prior = dprad.Prior.from_counts({"healthy": 90, "ill": 10})
    >>> table = dprad.by_group(dprad.mechanisms.GRR(epsilon=1.0, size=2), prior=prior, by="record")
    >>> [label.get_text() for label in plot_groups(table).get_yticklabels()]
    ['ill (10%)', 'healthy (90%)']

    """
    ax = axis(ax)
    shown = groups.groups[:BARS]
    risks, at = [group.rad for group in shown], range(len(shown))[::-1]
    ax.barh(at, risks, color=COLOURS[0])
    estimated = [k for k, group in enumerate(shown) if group.kind == "estimate"]
    if estimated:
        ends = [shown[k].interval for k in estimated]
        below = [max(risks[k] - low, 0.0) for k, (low, _) in zip(estimated, ends, strict=True)]
        above = [max(high - risks[k], 0.0) for k, (_, high) in zip(estimated, ends, strict=True)]
        ax.errorbar([risks[k] for k in estimated], [at[k] for k in estimated],
                    xerr=[below, above], fmt="none", ecolor=INK, capsize=2)  # fmt: skip
    labels = [explain.bounded(g.rad, g.interval, g.kind) for g in shown]
    for label, y, group in zip(labels, at, shown, strict=True):
        ax.annotate(label, (group.interval[1], y), xytext=(4, 0), textcoords="offset points",
                    va="center", fontsize=9)  # fmt: skip
    average = explain.number(groups.overall)
    ax.axvline(groups.overall.rad, color=COLOURS[1], linestyle="--", label=f"average: {average}")
    ax.set_yticks(at, [f"{plain(named(g.name), 32)} ({part(g.share)})" for g in shown])
    more = len(groups) - len(shown)
    ax.set_xlabel("extra risk" + (f" ({more:,} more groups not shown)" if more else ""))
    longest = max(len(label) for label in labels)  # room for the numbers beside the bars
    ax.set_xlim(0, (max(g.interval[1] for g in shown) or 1.0) * (1.05 + 0.02 * longest))
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0))
    return ax
