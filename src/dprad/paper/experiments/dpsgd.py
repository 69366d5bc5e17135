"""DP-SGD on MNIST and Fashion-MNIST (the paper's figures dp-sgd_mnist and dp-sgd_fashion).

A perceptron with 7,960 weights, full batches, 100 steps, 999 known images and 8 candidates; three
attackers, six noise levels. The paper reports days of GPU time and draws its markers from a rule
that is not optimal; its curve is not a bound. Here: the exact posterior, both ways of estimating.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.data import datasets
from dprad.errors import DpradError
from dprad.paper.experiments import Made, Options, Row, cells
from dprad.show.plots.style import COLOURS
from dprad.training.mechanism import DPSGD
from dprad.training.risks import TrainingRisk, training_risks

SIGMAS = (75.0, 40.0, 27.0, 21.0, 9.5, 5.0)
# The authors' labels of these: an RDP accountant, add-remove, delta 1e-5.
EPSILONS = (0.512, 1.013, 1.557, 2.052, 5.016, 10.726)
LABELS = (2, 3, 3, 8, 6, 8, 7, 7)
KNOWN, STEPS, CLIP, RATE, HIDDEN = 999, 100, 0.1, 9.0, 10
# Runs per candidate with a GPU; without one, as many as the posterior form needs for this standard
# error, told by a few first ones.
RUNS, ERROR, FIRST = 1000, 0.005, 64
# Read off the paper's plots: RAD and success at the six noise levels.
PAPER = {
    "dpsgd-mnist": {
        "nothing": (0.027, 0.054, 0.066, 0.097, 0.261, 0.530),
        "label": (0.049, 0.076, 0.104, 0.143, 0.304, 0.496),
        "everything": (0.054, 0.088, 0.128, 0.167, 0.335, 0.499),
    },
    "dpsgd-fashion": {
        "nothing": (0.027, 0.052, 0.071, 0.095, 0.229, 0.463),
        "label": (0.042, 0.080, 0.104, 0.140, 0.287, 0.431),
        "everything": (0.047, 0.090, 0.126, 0.165, 0.316, 0.463),
    },
}

# Columns of the printed table.
SHOWN = (
    "sigma",
    "knows",
    "rad",
    "error",
    "counted",
    "counted_error",
    "success",
    "rero",
    "paper_rule",
    "paper_plot",
    "bound",
    "paper_curve",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Images:
    """Images, their labels, where they are from, and the candidates' numbers."""

    x: Any
    y: Any
    source: str
    which: Any


def run(options: Options) -> Made:
    """A row for every noise level and attacker."""
    import torch

    images = _data(options)
    known = 199 if options.quick else KNOWN
    steps = 20 if options.quick else STEPS
    gpu, real = torch.cuda.is_available(), "built in" not in images.source
    device = torch.cuda.get_device_name() if gpu else "processor"

    def work(cell: Row, seed: int) -> list[Row]:
        mechanism = _training(images, known=known, sigma=cell["sigma"], steps=steps)
        begin = time.monotonic()
        risks, n = _risks(mechanism, options, gpu, seed)
        spent: Row = {"run": n, "seconds": time.monotonic() - begin, "device": device}
        return [_row(options.name, cell, risk, real) | spent for risk in risks]

    grid = [{"sigma": s, "epsilon_of_the_paper": e} for s, e in zip(SIGMAS, EPSILONS, strict=True)]
    rows = cells(replace(options, workers=1), grid, work)  # one device, all of it in use
    firsts = [r for r in rows if r["knows"] == "nothing"]
    trainings, seconds = (sum(r[k] for r in firsts) for k in ("run", "seconds"))
    device = rows[0]["device"]
    return Made(
        name=options.name,
        rows=rows,
        parameters={
            "data": images.source,
            "candidates": [int(i) for i in images.which],
            "candidate_labels": [int(images.y[i]) for i in images.which],
            "known": known,
            "steps": steps,
            "clip": CLIP,
            "learning_rate": RATE,
            "hidden": HIDDEN,
            "trainings": trainings,
            "seconds": round(seconds, 1),
            "device": device,
            "torch": torch.__version__,
            "seed": options.rng,
        },
        sentences=_sentences(rows, images.source, trainings, seconds, device),
        draw=lambda figure: _draw(figure, rows),
        size=(9.0, 3.6),
        shown=SHOWN,
    )


def _training(images: _Images, *, known: int, sigma: float, steps: int) -> DPSGD:
    """The private training of the perceptron."""
    import torch

    x, y, which = images.x, images.y, images.which
    model = torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(x[0].size, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, 10),
    )
    return DPSGD(
        model=model,
        known=(x[:known], y[:known]),
        candidates=(x[which], y[which]),
        clip=CLIP,
        sigma=sigma,
        steps=steps,
        learning_rate=RATE,
    )


def _data(options: Options) -> _Images:
    """MNIST or Fashion-MNIST; the built-in digits if that is quick and no directory is given."""
    name = "mnist" if options.name == "dpsgd-mnist" else "fashion-mnist"
    source = f"{name}, training images"
    if options.quick and not datasets.given(options.data):
        x, y = datasets.digits()
        source = f"digits of scikit-learn (built in) instead of {name}"
    elif datasets.given(options.data) is None:
        try:
            x, y = datasets.images(name)
        except DpradError as error:
            raise DpradError(f"{error} --quick runs on digits that are built in.") from None
    else:
        x, y = datasets.images(name, options.data)
    which: list[int] = []
    for label in LABELS:
        which.append(next(i for i in range(1000, len(y)) if y[i] == label and i not in which))
    return _Images(x=x, y=y, source=source, which=np.array(which))


def _risks(
    mechanism: DPSGD, options: Options, gpu: bool, seed: int
) -> tuple[list[TrainingRisk], int]:
    if options.runs is not None or gpu or options.quick:
        each = options.runs or (2 if options.quick else RUNS)
        n = each * mechanism.size
        return training_risks(mechanism, trials=n, rng=seed), n
    first = training_risks(mechanism, trials=FIRST, rng=seed + 500)
    worst = max(risk.error for risk in first)
    n = max(FIRST, math.ceil(1.6 * FIRST * (worst / ERROR) ** 2))
    return training_risks(mechanism, trials=n, rng=seed), n + FIRST


def _row(name: str, cell: Row, risk: TrainingRisk, real: bool) -> Row:
    knows = risk.knows if isinstance(risk.knows, str) else "label"
    assert risk.paper_bound is not None
    return {
        **cell,
        "knows": knows,
        "trainings": risk.trainings,
        "rad": risk.rad,
        "error": risk.error,
        "low": risk.interval[0],
        "high": risk.interval[1],
        "counted": risk.counted,
        "counted_error": risk.counted_error,
        "counted_low": risk.counted_interval[0],
        "counted_high": risk.counted_interval[1],
        "success": risk.success,
        "rero": risk.rero,
        "paper_rule": risk.paper_rule,
        "paper_plot": PAPER[name][knows][SIGMAS.index(cell["sigma"])] if real else None,
        "bound": risk.bound,
        "bound_title": risk.bound_title,
        "paper_curve": risk.paper_bound,
        "exceeds_paper_curve": bool(risk.interval[0] > risk.paper_bound),
    }


def _sentences(
    rows: list[Row], source: str, trainings: int, seconds: float, device: str
) -> tuple[str, ...]:
    above = [r for r in rows if r["exceeds_paper_curve"]]
    broken = [r for r in rows if r["low"] > r["bound"]]
    plots = [r for r in rows if r["paper_plot"] is not None and r["knows"] == "nothing"][:4]
    where = f", and ABOVE OUR BOUND in {len(broken)}!" if broken else ", never above our bound."
    sentences = [
        f"{source}: {trainings:,} trainings in {seconds:.0f} s ({device}). The exact attack is "
        f"above the paper's curve in {len(above)} of {len(rows)} cells with confidence{where}",
        "The paper's curve takes sqrt(T)/sigma for the promise about a *replaced* record; it is "
        "twice that, so it is no bound. Its rule (Jensen's inequality taken for an equality, norms "
        "dropped) is not optimal: compare rad with paper_rule at small sigma where something is "
        "known.",
    ]
    if plots:
        far = max(abs(r["rad"] - r["paper_plot"]) for r in plots)
        sentences.append(
            f"Nothing known, four largest sigmas: within {far:.3f} of the paper's plot (target "
            "0.02). Other images are other gradients; the candidates' numbers in the file are "
            "below."
        )
    return tuple(sentences)


def _draw(figure: Any, rows: list[Row]) -> None:
    names = list(dict.fromkeys(r["knows"] for r in rows))
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for ax, knows in zip(axes, names, strict=True):
        own = [r for r in rows if r["knows"] == knows]
        at = [r["epsilon_of_the_paper"] for r in own]
        low, high = [r["low"] for r in own], [r["high"] for r in own]
        ax.fill_between(at, low, high, color=COLOURS[0], alpha=0.25, linewidth=0)
        for key, mark, colour, label in [
            ("rad", "-", COLOURS[0], "optimal attack"),
            ("counted", "o", COLOURS[0], "the same, counted"),
            ("paper_rule", "x", COLOURS[1], "the paper's rule"),
            ("bound", "--", COLOURS[2], "our bound"),
            ("paper_curve", ":", COLOURS[6], "the paper's curve (no bound)"),
        ]:
            ax.plot(at, [r[key] for r in own], mark, color=colour, label=label, markersize=4)
        if own[0]["paper_plot"] is not None:
            ax.plot(
                at, [r["paper_plot"] for r in own], "+", color="black", label="the paper's plot"
            )
        ax.set(title=f"knows {knows}", xlabel="epsilon (the paper's labels)", xscale="log")
    axes[0].set_ylabel("extra risk (RAD)")
    axes[0].legend(fontsize=7)
