"""Risk by what the attacker knows: bars for success without and with the person in the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dprad.model import explain
from dprad.show.plots.style import COLOURS, axis, plain

if TYPE_CHECKING:
    from dprad.model.results import Risk


def plot_knowledge(risks: Mapping[str, Risk], ax: Any = None) -> Any:
    """Draw risks by attacker. If only a bound is known, only the extra risk is drawn.

    Parameters
    ----------
    risks
        ``{attacker: risk}``.
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
    >>> risks = {"a stranger": dprad.assess(promise, prior=prior)}
    >>> plot_knowledge(risks).get_xlabel()
    'chance that the attacker is right'

    """
    ax = axis(ax)
    names = [plain(n) for n in risks]
    drawn = list(risks.values())
    out = [r.success_out or 0.0 for r in drawn]
    extra = [r.rad for r in drawn]
    at = range(len(drawn))[::-1]
    asked = any(explain.membership(r.threat) for r in drawn)
    ax.barh(at, out, color=COLOURS[0], label="anyway")
    ax.barh(at, extra, left=out, color=COLOURS[1], label="only because the person takes part")
    for y, o, e, r in zip(at, out, extra, drawn, strict=True):
        bound = r.kind == "upper-bound"
        said = f"at most +{explain.above(e)}" if bound else f"+{explain.nearest(e)}"
        ax.annotate(said, (o + e, y), xytext=(4, 0), textcoords="offset points", va="center")
    ax.set_yticks(at, names)
    ax.set_xlim(0, 1.15)
    ax.set_ylim(-0.6, len(drawn) - 0.4)
    ax.set_xlabel(
        "chance that the attacker is right" + (", or says 'in the data'" if asked else "")
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)
    return ax
