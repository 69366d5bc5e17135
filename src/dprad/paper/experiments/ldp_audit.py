"""Audits of the same mechanisms (figures audit_porto, audit_beijing).

As the paper draws them: its RAD-based audit (the measured RAD through the inverse of the exact
risk) and LDP Auditor, five times each, with deviations. Beside them its formula for a black box
(Eq. ldp_audit), and ours: model-based with an interval, and certified.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from dprad.model.guarantees import REPLACE_ONE, PureDP
from dprad.model.priors import Prior
from dprad.paper.audit import paper_audit
from dprad.paper.auditor import ALPHA, ceiling, ldp_auditor
from dprad.paper.black_box import black_box_epsilon
from dprad.paper.experiments import Made, Options, Row, cells
from dprad.paper.experiments.ldp_attacks import KINDS, RUNS, grid
from dprad.paper.runs import Estimates
from dprad.show.plots.style import COLOURS
from dprad.verbs.audit import audit
from dprad.verbs.audit.model import HIGHEST

REPEATS = 5
# LDP Auditor and the paper's audit at these epsilons, read off the paper's plots for Porto.
READ_AT = (4, 8, 12, 16)
AUDITOR = {
    "GRR": (3.81, 7.76, 10.98, 12.02),
    "subset selection": (3.10, 7.82, 11.20, 12.02),
    "OUE": (3.11, 7.05, 7.74, 7.71),
}
RAD_BASED = {
    "GRR": (4.01, 8.01, 12.00, 16.03),
    "subset selection": (4.01, 8.01, 12.02, 16.03),
    "OUE": (4.02, 8.01, 9.0, 9.0),
}
# Where LDP Auditor ends, as the paper's text says.
PRINTED_CAP = 12.25
# Where the bisection of the authors' published code for OUE ends.
CEILING = 9
# The top of the axis, where undefined estimates are counted.
TOP = 21.5


def run(options: Options) -> Made:
    """A row for each place, mechanism and epsilon; five repetitions."""
    sizes, wanted = grid(options)
    trials = options.runs or (3000 if options.quick else RUNS)
    repeats = 2 if options.quick else REPEATS

    def work(cell: Row, seed: int) -> list[Row]:
        return [_row(cell, seed, trials, repeats)]

    rows = cells(options, wanted, work)
    return Made(
        name=options.name,
        rows=rows,
        parameters={
            "runs": trials,
            "runs of LDP Auditor": f"{trials} on each of two values",
            "repetitions": repeats,
            "confidence": f"0.95 (ours), {1 - ALPHA / 2:g} (LDP Auditor)",
            "values": list(sizes.values()),
        },
        sentences=(
            _paper(rows, repeats),
            _auditor(rows, trials, repeats),
            _ours(rows, repeats),
            _past(rows),
            _read(rows),
        ),
        draw=lambda figure: _draw(figure, rows, list(sizes), repeats),
        size=(9.5, 6.2) if len(sizes) > 1 else (9.5, 3.4),
        shown=(
            "places",
            "mechanism",
            "epsilon",
            "rad_based",
            "rad_based_deviation",
            "rad_based_undefined",
            "black_box",
            "black_box_undefined",
            "ldp_auditor",
            "ldp_auditor_deviation",
            "model_mean",
            "model_first",
            "model_first_low",
            "model_first_high",
            "certified",
        ),
    )


def _row(cell: Row, seed: int, trials: int, repeats: int) -> Row:
    """All audits of one mechanism, each repeated."""
    epsilon, m = float(cell["epsilon"]), cell["values"]
    mechanism = KINDS[cell["mechanism"]](epsilon=epsilon, size=m)
    prior = Prior.uniform(m)
    with np.errstate(invalid="ignore"):
        paper = paper_audit(mechanism, prior=prior, trials=trials, repetitions=repeats, rng=seed)
    box = Estimates(estimates=tuple(black_box_epsilon(rad, m) for rad in paper.rads))
    theirs = ldp_auditor(mechanism, runs=trials, repetitions=repeats, rng=seed)
    claim = PureDP(epsilon, neighbours=REPLACE_ONE)
    with warnings.catch_warnings():
        # that few runs cannot refute a large claim is known
        warnings.simplefilter("ignore")
        audits = [
            audit(mechanism, claim=claim, prior=prior, trials=trials, rng=100 * seed + k)
            for k in range(repeats)
        ]
    found = [a.epsilon_estimate for a in audits]
    model = Estimates(estimates=tuple(e if e is not None and math.isfinite(e) else None
                                      for e in found))  # fmt: skip
    low, high = audits[0].epsilon_interval or (0.0, math.inf)
    return cell | {
        **_columns("rad_based", paper, epsilon),
        **_columns("black_box", box, epsilon),
        **_columns("ldp_auditor", theirs, epsilon),
        **_columns("model_mean", model, epsilon),
        "model_first": model.estimates[0],
        "model_first_low": float(low),
        "model_first_high": float(high) if math.isfinite(high) else None,
        "certified": float(np.mean([a.epsilon_lower for a in audits])),
        "violated": sum(a.verdict == "violated" for a in audits),
    }


def _columns(name: str, found: Estimates, truth: float) -> Row:
    """Mean and deviation (empty if an estimate is undefined), and how many are what."""
    return {
        name: found.epsilon,
        f"{name}_deviation": found.deviation,
        f"{name}_undefined": found.undefined,
        f"{name}_above": found.above(truth),
    }


def _paper(rows: list[Row], repeats: int) -> str:
    """The paper's point estimates: how often they are undefined, and how often too high."""

    def told(name: str, some: list[Row]) -> str:
        every = len(some) * repeats
        defined = every - sum(r[f"{name}_undefined"] for r in some)
        above = sum(r[f"{name}_above"] for r in some)
        return f"above the truth in {above} of {defined} defined estimates ({every} in all)"

    lost: dict[str, list[str]] = {}
    for r in rows:
        if r["rad_based_undefined"]:
            each = lost.setdefault(f"{r['mechanism']}, {r['places']}", [])
            each.append(f"{r['rad_based_undefined']} at {r['epsilon']}")
    where = "; ".join(f"{kind}: {', '.join(each)}" for kind, each in lost.items())
    grr = [r for r in rows if r["mechanism"] == "GRR"]
    return (
        f"The paper's RAD-based estimate is {told('rad_based', rows)}: it cannot be a test. "
        + (
            f"It is undefined, since the measured RAD is above that of every epsilon up to "
            f"{HIGHEST:g}, in {sum(r['rad_based_undefined'] for r in rows)} estimates: "
            f"{where}. "
            "A mean is given only where all repetitions are defined. "
            if where
            else "All are defined. "
        )
        + f"Its formula for a black box is {told('black_box', grr)} on GRR, which meets the bound, "
        f"and {told('black_box', [r for r in rows if r not in grr])} on the two others, of which "
        "only subset selection of one value, that is GRR, does."
    )


def _auditor(rows: list[Row], trials: int, repeats: int) -> str:
    """LDP Auditor: valid, and capped."""
    above = sum(r["ldp_auditor_above"] for r in rows)
    means = [r["ldp_auditor"] for r in rows if r["ldp_auditor"] is not None]
    both = [r for r in rows if r["ldp_auditor"] is not None and r["rad_based"] is not None]
    nearer = sum(
        abs(r["rad_based"] - r["epsilon"]) < abs(r["ldp_auditor"] - r["epsilon"]) for r in both
    )
    return (
        f"LDP Auditor, run here: each of its numbers is a lower confidence bound "
        f"({100 * (1 - ALPHA / 2):g}%) for one pair of values, and {above} of "
        f"{len(rows) * repeats} are above the truth. With {trials:,} runs on each value it cannot "
        f"exceed {ceiling(trials):.2f}; the largest mean is {max(means):.2f} (the paper, with "
        f"{RUNS:,} runs: about {PRINTED_CAP:g} in its text, {max(AUDITOR['GRR']):.2f} in its plot)."
        f" The paper's RAD-based estimate is nearer to the truth in {nearer} of {len(both)} cells "
        "where both have a mean."
    )


def _ours(rows: list[Row], repeats: int) -> str:
    """Ours: intervals that hold, certificates that refute nothing true, and who is higher."""
    held = sum(
        r["model_first_low"] <= r["epsilon"] <= (r["model_first_high"] or math.inf) for r in rows
    )
    false = sum(r["violated"] for r in rows)
    both = [r for r in rows if r["ldp_auditor"] is not None]
    more = sum(r["certified"] > r["ldp_auditor"] for r in both)
    return (
        f"Ours: model_mean is the mean of {repeats} model-based audits; the interval (95%) beside "
        "it is that of the first of them alone (model_first_low, model_first_high), so the mean "
        f"can lie outside. It holds the truth in {held} of {len(rows)} cells; the "
        f"certified bound (95%) refuted a true claim in {false} of {len(rows) * repeats} audits. "
        f"It is above that of LDP Auditor in {more} of {len(both)} cells, with half the runs, but "
        f"at a lower confidence."
    )


def _past(rows: list[Row]) -> str:
    past = [r for r in rows if r["mechanism"] == "OUE" and r["epsilon"] > CEILING]
    told = [f"{r['rad_based']:.2f} at {r['epsilon']} ({r['places']})"
            for r in past if r["rad_based"] is not None]  # fmt: skip
    return (
        f"The paper's OUE estimates stop at {CEILING}: its published code searches epsilon by "
        f"bisection between 0 and {CEILING}. Without that ceiling the same estimator gives "
        f"{', '.join(told) or 'no mean'}. The risk of OUE approaches (m - 1)/(2m), so beyond 12 "
        "hardly anything depends on epsilon: the deviation grows, and estimates become undefined."
    )


def _read(rows: list[Row]) -> str:
    """How far the runs here are from the paper's plots."""
    at = {(r["mechanism"], r["epsilon"]): r for r in rows if r["places"] == "Porto"}

    def far(name: str, table: Mapping[str, tuple[float, ...]], skip: int = 99) -> str:
        pairs = [
            abs(at[kind, e][name] - read)
            for kind, values in table.items()
            for e, read in zip(READ_AT, values, strict=True)
            if (kind, e) in at and at[kind, e][name] is not None
            if kind != "OUE" or e <= skip
        ]
        return f"{max(pairs):.2f} at most ({len(pairs)} readings)" if pairs else "not compared"

    return (
        "Distance from the paper's plots for Porto, read at epsilon 4, 8, 12, 16: LDP Auditor "
        f"{far('ldp_auditor', AUDITOR)}; RAD-based, without OUE past the ceiling, "
        f"{far('rad_based', RAD_BASED, CEILING)}."
    )


def _draw(figure: Any, rows: list[Row], places: list[str], repeats: int) -> None:
    axes = figure.subplots(len(places), 3, sharex=True, sharey=True, squeeze=False)
    for line, place in zip(axes, places, strict=True):
        for ax, kind in zip(line, KINDS, strict=True):
            own = [r for r in rows if r["places"] == place and r["mechanism"] == kind]
            _panel(ax, own, kind if place == "Porto" else None, repeats)
            ax.set_title(f"{kind}, {place}", fontsize=9)
            ax.set_ylim(0, TOP)
        line[0].set_ylabel("estimated epsilon")
    for ax in axes[-1]:
        ax.set_xlabel("epsilon (theory)")
    axes[0][0].plot(
        [], [], "", color=COLOURS[0], marker="$1$", linewidth=0, markersize=5,
        label=f"RAD-based, undefined of {repeats}",
    )  # fmt: skip
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7.5)


def _panel(ax: Any, own: list[Row], read: str | None, repeats: int) -> None:
    """One mechanism at one place."""
    at = np.array([r["epsilon"] for r in own], dtype=float)

    def column(name: str) -> Any:
        return np.array([np.nan if r[name] is None else r[name] for r in own], dtype=float)

    style: Any = {"markersize": 3.5, "linewidth": 0, "elinewidth": 0.8, "capsize": 1.5}
    ax.plot([0, 20], [0, 20], color=COLOURS[6], linewidth=1, label="truth")
    ax.errorbar(
        at, column("rad_based"), yerr=column("rad_based_deviation"), fmt="s", color=COLOURS[0],
        label="RAD-based (paper), deviation", **style,
    )  # fmt: skip
    ax.errorbar(
        at, column("ldp_auditor"), yerr=column("ldp_auditor_deviation"), fmt="^", color=COLOURS[2],
        label="LDP Auditor, deviation", **style,
    )  # fmt: skip
    if read is not None:
        cross: Any = {"markersize": 6, "linewidth": 0, "zorder": 5}
        ax.plot(READ_AT, RAD_BASED[read], "x", color=COLOURS[0], label="read off the paper's plot",
                **cross)  # fmt: skip
        ax.plot(READ_AT, AUDITOR[read], "x", color=COLOURS[2], **cross)
    mean, first = column("model_mean"), column("model_first")
    low, high = column("model_first_low"), column("model_first_high")
    open_ = np.isnan(high)
    mean[open_] = first[open_] = np.nan  # an estimate without an upper end says nothing
    ends = np.where(open_, TOP, high)
    ax.vlines(at + 0.3, low, ends, color=COLOURS[1], linewidth=1.5,
              label=f"ours, interval of the first of {repeats} (95%)")  # fmt: skip
    if not np.isnan(first).all():
        ax.plot(at + 0.3, first, "_", color=COLOURS[1], markersize=4, label="ours, the first")
    ax.plot(at + 0.45, mean, "o", color=COLOURS[1], markersize=2.5, fillstyle="none",
            label=f"ours, model-based, mean of {repeats} (moved right)")  # fmt: skip
    ax.plot(at, column("certified"), "-", color=COLOURS[1], linewidth=1, label="ours, certified")
    for r in own:
        if r["rad_based_undefined"]:
            ax.text(r["epsilon"], TOP - 0.3, str(r["rad_based_undefined"]), fontsize=6,
                    color=COLOURS[0], ha="center", va="top")  # fmt: skip
