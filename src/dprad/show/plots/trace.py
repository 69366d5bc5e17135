"""The course of an audit: its wealth, and what was certified and estimated after how many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprad.errors import DpradError
from dprad.show.plots.style import COLOURS, axis

if TYPE_CHECKING:
    from dprad.model.audits import Audit


def plot_audit(result: Audit, ax: Any = None) -> Any:
    """Draw the trace of an audit.

    Parameters
    ----------
    result
        A result of ``audit(..., trace=True)``.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    Axes
        The axis drawn on.

    Examples
    --------
    >>> import dprad
    >>> coin = dprad.mechanisms.GRR(epsilon=1.0, size=2)
    >>> result = dprad.audit(coin, claim=coin.guarantee, prior=dprad.Prior.uniform(2), trials=2000,
    ...                      trace=True)
    >>> plot_audit(result).get_ylabel()
    'epsilon'

    """
    ax = axis(ax)
    if not result.trace:
        raise DpradError("this audit has no trace: run audit(..., trace=True).")
    runs = [t for t, _, _ in result.trace]
    ax.plot(runs, [low for _, low, _ in result.trace], color=COLOURS[0], label="certified")
    guessed = [(t, e) for t, _, e in result.trace if e is not None]
    if guessed:
        ax.plot(
            [t for t, _ in guessed], [e for _, e in guessed], color=COLOURS[1], linestyle="--",
            label="estimate, for the supposed mechanism",
        )  # fmt: skip
    ax.axhline(
        result.epsilon_claimed, color=COLOURS[6], linewidth=1, linestyle=":", label="claimed"
    )
    ax.set_xscale("log")
    ax.set_xlabel("runs")
    ax.set_ylabel("epsilon")
    ax.set_ylim(bottom=0)
    ax.legend(loc="best")
    return ax


def plot_wealth(result: Audit, ax: Any = None) -> Any:
    """Draw how the evidence against the claim grew.

    Parameters
    ----------
    result
        A result of `audit`.
    ax
        A matplotlib axis; default: a new figure.

    Returns
    -------
    Axes
        The axis drawn on.

    Examples
    --------
    >>> import dprad
    >>> coin = lambda record, rng: record if rng.random() < 0.9 else 1 - record
    >>> claim = dprad.PureDP(1.0, neighbours="replace-one")
    >>> result = dprad.audit(coin, claim=claim, prior=dprad.Prior.uniform(2), trials=600)
    >>> plot_wealth(result).get_xlabel()
    'calls'

    """
    import math

    ax = axis(ax)
    calls = [0, *(n for n, _ in result.wealth)]
    tens = [0.0, *(w / math.log(10) for _, w in result.wealth)]
    needed = -math.log10(1.0 - result.confidence)
    ax.plot(calls, tens, color=COLOURS[0], label="wealth of the bets")
    ax.axhline(needed, color=COLOURS[6], linewidth=1, linestyle=":", label="refutes the claim")
    ax.set_xlabel("calls")
    ax.set_ylabel("wealth (powers of ten)")
    ax.legend(loc="best")
    return ax
