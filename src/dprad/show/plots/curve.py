"""Risk against the noise parameter, one line per mechanism or promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dprad.errors import number
from dprad.game.question import Question
from dprad.model.priors import Prior
from dprad.numerics.random import Seed
from dprad.show.plots.families import Line, lines_of
from dprad.show.plots.style import COLOURS, DASHES, axis, plain
from dprad.verbs.assess import sampled

if TYPE_CHECKING:
    from dprad.game.query import Query
    from dprad.model.threats import Threat


def plot_risk(
    family: Any,
    values: Iterable[float] | None = None,
    *,
    ax: Any = None,
    prior: Prior | None = None,
    threat: Threat | None = None,
    query: Query | None = None,
    parameter: str | None = None,
    accepted: float | None = None,
    at: Mapping[str, float] | float | None = None,
    trials: int = 20_000,
    rng: Seed = 0,
    **fixed: Any,
) -> Any:
    """Draw risk against the noise; bounds are dashed, estimates have a band.

    Parameters
    ----------
    family
        A mechanism or guarantee class, or a function of one number that returns an instance of one;
        a list of them; or ``{name: one of them}``. Lines that are already computed are
        ``{name: (values, risks)}``: then `values`, the question and other arguments are not needed.
    values
        The values of the free parameter, such as ``numpy.linspace(0.1, 10, 50)``.
    ax
        A matplotlib axis; default: a new figure.
    prior
        The population, as for `assess`; default: unknown.
    threat
        The attacker, as for `assess`.
    query
        What the mechanisms read from a record, as for `assess`.
    parameter
        The free parameter, as for `calibrate`, and the label of the horizontal axis.
    accepted
        The accepted risk, drawn as a line.
    at
        The value in use: a number, or one per line, by name.
    trials
        Number of draws for each value, where the risk is estimated.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.
    **fixed
        The other arguments of the families, such as ``sensitivity=100``; each gets those that it
        takes. `size` may be left out: it follows from the prior.

    Returns
    -------
    Axes
        The axis drawn on. Every line has as its data what `assess` answers.

    Examples
    --------
    >>> import dprad, numpy as np
    >>> from dprad.mechanisms import GRR, OUE
    >>> ax = plot_risk([GRR, OUE], np.linspace(0.1, 10, 50), prior=dprad.Prior.uniform(10))
    >>> ax.get_xlabel(), ax.get_ylabel(), [line.get_label() for line in ax.get_lines()]
    ('epsilon', 'extra risk', ['GRR', 'OUE'])

    """
    if accepted is not None:
        number(accepted, "accepted", low=0, high=1)
    if family and _computed(family):
        lines, label = dict(family), parameter or "epsilon"
    else:
        question = Question.of(Prior.unknown() if prior is None else prior, threat, query)
        sampling = sampled(trials, 0.95, rng)
        lines, label = lines_of(family, values, parameter, question, sampling, fixed)
    return _draw(lines, axis(ax), label, accepted, at)


def _computed(family: Any) -> bool:
    """Whether these are lines, not what they are made of."""
    return isinstance(family, Mapping) and all(
        isinstance(one, tuple | list) for one in family.values()
    )


def _draw(
    lines: Mapping[str, Line],
    ax: Any,
    parameter: str,
    accepted: float | None,
    at: Mapping[str, float] | float | None,
) -> Any:
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
