"""What promises allow a membership test: its true positive rate against its false positive rate."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dprad.errors import DpradError
from dprad.show.plots.style import COLOURS, INK, axis, plain

if TYPE_CHECKING:
    from dprad.model.guarantees import Guarantee

# False positive rates that are drawn, and the one that is marked.
LOW, POINTS, MARKED = 1e-4, 120, 0.01
DASHES = ("-", "--", ":", "-.")


def plot_promise(promises: Mapping[str, Guarantee], ax: Any = None) -> Any:
    """Draw the best membership test that each promise allows. The dots are `tpr_at(fpr=0.01)`; the
    largest difference to a blind guess is `advantage`.

    Parameters
    ----------
    promises
        Guarantees by name.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    Axes
        The axis drawn on.

    Examples
    --------
    >>> import dprad
    >>> plot_promise({"mu = 1": dprad.GaussianDP(1.0, neighbours="add-remove")}).get_ylabel()
    'true positive rate'

    """
    if not promises:
        raise DpradError("promises must be guarantees by name, but there are none.")
    ax = axis(ax)
    rates = np.logspace(np.log10(LOW), 0.0, POINTS)
    for (name, promise), colour, dash in zip(
        promises.items(), cycle(COLOURS), cycle(DASHES), strict=False
    ):
        found = [promise.tpr_at(fpr=float(rate)) for rate in rates]
        ax.plot(rates, found, color=colour, linestyle=dash, label=plain(name, 40))
        ax.plot(MARKED, promise.tpr_at(fpr=MARKED), "o", color=colour, markersize=4)
    ax.plot(rates, rates, color=INK, linewidth=0.8, label="blind guesses")
    ax.set(xscale="log", yscale="log", xlim=(LOW, 1.0), ylim=(LOW, 1.1))
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("true positive rate")
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return ax
