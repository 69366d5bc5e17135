"""Figures: each function takes results and an optional axis, and returns the axis.

The report, the web page and notebooks use the same functions. Colours are those of Okabe and Ito,
which are safe for colour-blind readers; lines also differ in dash.
"""

from __future__ import annotations

from dprad.show.plots.bounds import plot_bounds
from dprad.show.plots.curve import plot_risk
from dprad.show.plots.frontier import plot_frontier
from dprad.show.plots.groups import plot_groups
from dprad.show.plots.knowledge import plot_knowledge
from dprad.show.plots.ledger import plot_ledger, plot_plan
from dprad.show.plots.odds import plot_odds
from dprad.show.plots.promise import plot_promise
from dprad.show.plots.trace import plot_audit, plot_wealth

__all__ = [
    "plot_audit",
    "plot_bounds",
    "plot_frontier",
    "plot_groups",
    "plot_knowledge",
    "plot_ledger",
    "plot_odds",
    "plot_plan",
    "plot_promise",
    "plot_risk",
    "plot_wealth",
]
