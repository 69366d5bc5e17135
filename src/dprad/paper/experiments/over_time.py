"""Memoised protocols: what every further report tells, for 100 values and two pairs of budgets."""

from __future__ import annotations

from typing import Any

from dprad.mechanisms import LGRR, LOLOHA, LOSUE, LOUE, LSOUE, LSUE, DBitFlip
from dprad.model.priors import Prior
from dprad.paper.experiments import Made, Options, Row
from dprad.show.plots.style import COLOURS
from dprad.verbs.assess import assess

SIZE = 100
BUDGETS = ((2.0, 1.0), (4.0, 1.2))
REPORTS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200, 365)


def makers(inf: float, one: float, reports: int) -> dict[str, Any]:
    """All protocols with these budgets."""
    asked: dict[str, Any] = {
        "size": SIZE, "epsilon_inf": inf, "epsilon_one": one, "reports": reports
    }  # fmt: skip
    return {
        "L-SUE (basic RAPPOR)": LSUE(**asked),
        "L-OSUE": LOSUE(**asked),
        "L-OUE": LOUE(**asked),
        "L-SOUE": LSOUE(**asked),
        "L-GRR": LGRR(**asked),
        "L-GRR, as published": LGRR(**asked, published=True),
        "LOLOHA": LOLOHA(**asked),
        "dBitFlipPM, 16 of 100 bits": DBitFlip(
            size=SIZE, epsilon_inf=inf, bits=16, reports=reports
        ),
    }


def run(options: Options) -> Made:
    """A row for each pair of budgets, protocol and number of reports."""
    prior = Prior.uniform(SIZE)
    rows: list[Row] = []
    for inf, one in BUDGETS:
        for t in REPORTS[::4] if options.quick else REPORTS:
            for name, mechanism in makers(inf, one, t).items():
                risk = assess(mechanism, prior=prior)
                rows.append(
                    {
                        "epsilon_inf": inf,
                        "epsilon_one": one,
                        "protocol": name,
                        "reports": t,
                        "epsilon": mechanism.guarantee.epsilon,
                        "rad": risk.rad,
                        "kind": risk.kind,
                        "variance": mechanism.variance(1),
                    }
                )
    return Made(
        name=options.name,
        rows=rows,
        parameters={"values": SIZE, "prior": "uniform"},
        sentences=_sentences(rows),
        draw=lambda figure: _draw(figure, rows),
        size=(9.0, 6.4),
        shown=("epsilon_inf", "epsilon_one", "protocol", "reports", "epsilon", "rad", "variance"),
    )  # fmt: skip


def _sentences(rows: list[Row]) -> tuple[str, ...]:
    """How fast the promise of one report is gone."""
    words = []
    few = next(t for t in sorted({r["reports"] for r in rows}) if t >= 5)
    for inf, one in BUDGETS:
        own = [r for r in rows if r["epsilon_inf"] == inf]
        after = [r["epsilon"] for r in own if r["reports"] == few and r["protocol"].startswith("L-")
                 and "published" not in r["protocol"]]  # fmt: skip
        words.append(
            f"At epsilon_inf = {inf:g} and epsilon_one = {one:g} the unary chains and L-GRR "
            f"promise {min(after):.3f} to {max(after):.3f} after {few} reports."
        )
    exact = sum(r["kind"] == "exact" for r in rows)
    return (
        "Above: the promise after so many reports about a value that stays the same. Below: the "
        "extra risk of an attacker who knows nothing and guesses the value. " + " ".join(words),
        "So epsilon_one protects about one report: if an attacker sees a month of them, "
        "only epsilon_inf counts. The promise is about the most telling sequence of reports, which "
        "is rare for L-GRR and many values: its risk rises later than its epsilon. The published "
        "second round of L-GRR adds more noise than was asked for; so its risk rises later still, "
        "and its variance is higher by far.",
        f"{exact} of {len(rows)} risks are exact. dBitFlipPM repeats one answer: it has no second "
        "round, and one report tells all.",
    )


def _draw(figure: Any, rows: list[Row]) -> None:
    axes = figure.subplots(2, len(BUDGETS), sharex=True, sharey="row")
    names = list(dict.fromkeys(r["protocol"] for r in rows))
    for column, (inf, one) in zip(axes.T, BUDGETS, strict=True):
        for k, name in enumerate(names):
            own = [r for r in rows if r["protocol"] == name and r["epsilon_inf"] == inf]
            at = [r["reports"] for r in own]
            style: Any = {"color": COLOURS[k % len(COLOURS)], "label": name}
            if "published" in name:
                style["linestyle"] = "--"
            if name.startswith("dBit"):
                style |= {"color": "black", "linestyle": ":"}
            for ax, what in zip(column, ("epsilon", "rad"), strict=True):
                ax.plot(at, [r[what] for r in own], **style)
        column[0].axhline(one, color="grey", linewidth=0.8, linestyle=":")
        column[0].set(title=f"epsilon_inf = {inf:g}, epsilon_one = {one:g}")
        column[0].set_xscale("log")
        column[1].set(xlabel="reports seen", yscale="log")
    axes[0, 0].set(ylabel="epsilon of all reports", ylim=(0, None))
    axes[1, 0].set_ylabel("extra risk (RAD)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4,
                  frameon=False)  # fmt: skip
