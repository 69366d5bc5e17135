"""The paper's figures: every panel and curve is drawn, and every sentence is from the table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from scipy.special import ndtr, ndtri

from dprad import DpradError, Prior, Threat, assess, bounds
from dprad.game.question import Question
from dprad.mechanisms import Density, Duchi, ExponentialInterval, Laplace, Piecewise
from dprad.model.guarantees import ADD_REMOVE, GaussianDP
from dprad.paper import nested, nested_monte_carlo
from dprad.paper.experiments import (
    Options,
    black_box,
    dpsgd,
    laplace_adult,
    laplace_utility,
    mechanisms,
    monte_carlo,
    run,
)

UNIFORM = Prior.continuous(stats.uniform(), 0, 1)
BETA = Prior.continuous(stats.beta(0.1, 0.1), 0, 1)


def drawn(draw):
    figure = Figure(layout="constrained")
    draw(figure)
    figure.canvas.draw()
    return figure


def lines(ax):
    return {line.get_label(): list(line.get_ydata()) for line in ax.lines}


def legend(figure):
    return [text.get_text() for found in figure.legends for text in found.get_texts()]


# -- DP-SGD ----------------------------------------------------------------------------------------
def rows_of_dpsgd():
    rows = []
    for i, (sigma, epsilon) in enumerate(zip(dpsgd.SIGMAS, dpsgd.EPSILONS, strict=True)):
        for j, knows in enumerate(("nothing", "label", "everything")):
            rows.append(
                {
                    "sigma": sigma,
                    "epsilon_of_the_paper": epsilon,
                    "knows": knows,
                    "paper_rero_plot": dpsgd.PAPER_RERO["dpsgd-fashion"][knows][i],
                    "hayes_one_in_eight": dpsgd.hayes_blind(sigma, 100),
                    "hayes_corrected": float(ndtr(ndtri((0.125, 0.625, 1.0)[j]) + 10 / sigma)),
                    "attack_success": 0.1 + 0.3 * j,
                    "attack_success_low": 0.09 + 0.3 * j,
                }
                | dict.fromkeys(("rad", "paper_rule", "paper_plot"), 0.01 * (i + j))
                | {"bound": 0.3, "paper_curve": 0.2, "largest_success": 0.5}
                | {"paper_rule_success": 0.15 + 0.3 * j}
            )
    return rows


def test_dpsgd_has_three_panels_with_rad_and_rero():
    rows = rows_of_dpsgd()
    figure = drawn(lambda f: dpsgd._draw(f, rows))
    assert [ax.get_title() for ax in figure.axes] == list(dpsgd.TITLES.values())
    for ax, knows in zip(figure.axes, dpsgd.TITLES, strict=True):
        own = [r for r in rows if r["knows"] == knows]
        shown = lines(ax)
        assert ax.get_ylim()[0] == 0 and "epsilon" in ax.get_xlabel()
        assert shown["ReRo, optimal attack"] == [r["attack_success"] for r in own]
        assert shown["ReRo, the paper's rule"] == [r["paper_rule_success"] for r in own]
        assert shown["ReRo bound, Hayes at 1/8"] == [r["hayes_one_in_eight"] for r in own]
        assert shown["ReRo bound, Hayes corrected"] == [r["hayes_corrected"] for r in own]
        assert len(shown["ReRo, read off the plot"]) == (5 if knows == "label" else 6)
        assert len(shown) == 11
        # hollow, and ours aside: no marker hides another
        marked = [line for line in ax.lines if line.get_linestyle() == "None"]
        assert all(line.get_fillstyle() == "none" for line in marked)
        at = {line.get_label(): line.get_xdata()[0] for line in marked}
        assert at["RAD, the paper's rule"] < at["RAD, optimal attack"]
        assert at["largest success"] < at["ReRo, the paper's rule"] < at["ReRo, optimal attack"]
    assert set(legend(figure)) == set(lines(figure.axes[0]))


def test_the_papers_rule_is_compared_with_the_papers_markers():
    rows = rows_of_dpsgd()
    for row in rows:
        row["paper_rule_success"] = row["paper_rero_plot"] or 0.7
        row["attack_success"] = row["paper_rule_success"] - 0.05
    rows[5]["paper_plot"] += 0.03
    rows[7]["paper_rule_success"] += 0.011
    rows[0]["paper_plot"] = rows[0]["paper_rule"] = 0.202
    rows[3]["paper_plot"] = rows[3]["paper_rule"] = 0.21
    text = dpsgd._beside_the_plot(rows)
    assert "(paper_rule, paper_plot) differs by 0.030 at most over 18 cells" in text
    assert "(paper_rule_success, paper_rero_plot) by 0.011 at most over 17 cells" in text
    assert "right less often in 11 of 11 cells, by up to 0.061" in text
    assert "2 of 18 of the paper's RAD markers are above its own curve, 1 of them by no" in text
    assert "at sigma 9.5, label known cannot be read" in text


def test_success_is_counted_against_both_forms_of_hayes():
    rows = rows_of_dpsgd()
    text = dpsgd._of_success(rows)
    # label: 0.4 is above all but the last two; everything: 0.7 above all but the last
    assert "above it in 9 of 12 cells (9 with confidence)" in text
    assert (
        "above that in 0 of the 12 cells with knowledge (0 of all 18 with confidence)" in text
        and "5/8" in text
    )
    rows[4]["attack_success"] = rows[4]["attack_success_low"] = 0.99
    assert "above that in 1 of the 12 cells with knowledge (1 of all 18" in dpsgd._of_success(rows)
    for row in rows:
        row["paper_rero_plot"] = None
    assert "own markers" not in dpsgd._of_success(rows)


def test_hayes_bound_as_drawn_and_corrected():
    """The label leaves five groups of candidates: P+ = 5/8, and sqrt(T)/sigma is add-remove."""
    assert dpsgd.hayes_blind(5.0, 100) == pytest.approx(ndtr(ndtri(1 / 8) + 2.0), abs=1e-12)
    table = {"candidate": list(range(8)), "label": list(dpsgd.LABELS)}
    pandas = pytest.importorskip("pandas")
    prior = Prior.from_data(pandas.DataFrame(table), columns=["candidate", "label"])
    for threat, share in (
        (Threat(target=["candidate"]), 1 / 8),
        (Threat(knows=["label"], target=["candidate"]), 5 / 8),
        (Threat(knows="everything"), 1.0),
    ):
        game = Question.of(prior, threat, None).table("test")
        promise = GaussianDP(2.0, neighbours=ADD_REMOVE)
        value = next(b.value for b in bounds.evaluate(promise, game) if b.name == "hayes")
        assert value == pytest.approx(ndtr(ndtri(share) + 2.0), abs=1e-9)


def test_the_example_with_sigma_22():
    """m = 10, T = 100, risk 0.1: the paper's own formula solved by hand, and two that hold."""
    found = dpsgd.noise_needed()
    alpha = 1 / 9  # min(1/(m-1), 1 - Phi(sqrt(T)/(2 sigma)))
    theirs = 10 / (ndtri(1 - alpha) - ndtri(1 - 10 / 9 * 0.1 - alpha))
    assert found["paper"] == pytest.approx(theirs, abs=1e-4) == pytest.approx(21.933, abs=1e-3)
    assert found["doubled"] == pytest.approx(2 * theirs, abs=1e-4)
    # 1 - f(1/m) - 1/m = 0.1, with the training without the record as reference
    best = 10 / (ndtri(0.2) - ndtri(0.1))
    assert found["best"] == pytest.approx(best, abs=1e-4) == pytest.approx(22.731, abs=1e-3)
    promise = GaussianDP(10 / found["best"], neighbours=ADD_REMOVE)
    assert assess(promise, prior=Prior.uniform(10)).rad == pytest.approx(0.1, abs=1e-6)
    assert found["risk"] == pytest.approx(ndtr(ndtri(0.1) + 10 / 22) - 0.1, abs=1e-9)
    text = dpsgd.example(**found)
    assert "gives 21.93" in text and "for 43.87" in text and "for 22.73" in text
    assert "0.1041" in text


# -- Laplace noise ---------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 5.0])
def test_trade_off_of_laplace_noise(epsilon):
    """By the Neyman-Pearson test: outputs above a threshold."""
    threshold = np.linspace(-30, 31, 20_001)
    noise = stats.laplace(scale=1 / epsilon)
    alpha, beta = noise.sf(threshold), noise.cdf(threshold - 1)
    ours = np.array([laplace_utility.laplace_tradeoff(epsilon, a) for a in alpha])
    # between 0 and 1 the test is the only one; outside the ratio is constant and mixing is as good
    assert ours == pytest.approx(beta, abs=1e-9)
    worst = [laplace_utility.worst_tradeoff(epsilon, a) for a in alpha]
    assert np.all(ours >= np.array(worst) - 1e-12)


def test_errors_at_a_risk_of_four_fifths():
    made = run(Options(name="laplace-utility", quick=True))
    last = made.rows[-1]
    assert last["risk"] == pytest.approx(0.8)
    assert last["epsilon_rero_laplace"] == pytest.approx(-math.log(0.4 * 0.2))
    assert last["error_rero_laplace"] / last["error_rad"] == pytest.approx(15.66, abs=0.01)
    assert last["error_rero_worst"] / last["error_rad"] == pytest.approx(19.02, abs=0.01)
    assert "15.7 times at risk 0.8" in made.sentences[0]
    assert "19.0 times at the same risk" in made.sentences[0]
    assert made.rows[0]["error_rero_laplace"] is None
    shown = lines(drawn(made.draw).axes[0])
    assert len(shown) == 3 and len({tuple(v) for v in shown.values()}) == 3


def test_adult_has_rad_and_success_of_both_attacks():
    made = run(Options(name="laplace-adult", quick=True))
    names = set(made.rows[0])
    assert {"attack_success", "largest_success", "published_success"} <= names
    assert not {"rero", "success"} & names
    for row in made.rows:
        assert row["attack_success"] <= row["largest_success"] + 0.1
        assert row["largest_success"] <= row["hayes"] + 1e-9
    figure = drawn(made.draw)
    assert len(figure.axes) == 6 and figure.axes[0].get_ylim()[1] > 1
    titles = [ax.get_title() for ax in figure.axes[:3]]
    names = list(dict.fromkeys(r["prior"] for r in made.rows))
    assert titles == [laplace_adult.TITLES[name] for name in names] and "Adult" not in names
    for ax, kind in zip(figure.axes[::3], ("published", "attack"), strict=True):
        shown = [list(line.get_ydata()) for line in ax.lines]
        assert len(shown) == 4 * len(laplace_adult.ETAS)
        own = [r for r in made.rows if r["prior"] == "made-up hours" and r["eta"] == 0]
        for key in ("rad", "hayes", f"{kind}_rad", f"{kind}_success"):
            assert [r[key] for r in own] in shown
    assert any("ReRo bound (Hayes)" in text for text in legend(figure))


def test_the_order_of_priors_is_read_from_the_table():
    risks = {"Adult": 0.1, "uniform": 0.2, "two points": 0.3}
    rows = [
        {"prior": p, "eta": eta, "epsilon": e, "rad": risk * e * (eta < 100)}
        for p, risk in risks.items()
        for eta in laplace_adult.ETAS
        for e in (1.0, 2.0)
    ]
    text = laplace_adult._order(rows)
    right = "two points have the largest risk at 2 of 2 epsilons, Adult the smallest at 2, uniform"
    assert text.count(f"{right} at 0") == 3 and "for Adult at eta = 0, 40, 80;" in text
    for row in rows:
        if (row["prior"], row["eta"]) == ("uniform", 0):
            row["rad"] = 0.01
    text = laplace_adult._order(rows)
    assert "at eta = 0 two points" in text and "Adult the smallest at 0, uniform at 2;" in text
    assert "uniform at eta = 40, 80;" in text


# -- mechanisms and bounds -------------------------------------------------------------------------
def test_the_order_of_mechanisms_is_read_from_the_table():
    order = {"GRR": 0.5, "subset selection": 0.4, "OUE": 0.3, "Laplace": 0.2, "Gaussian": 0.1}
    rows = [
        {"epsilon": e, "mechanism": name, "rad": risk, "theorem_1": 0.9}
        for e in (1.0, 2.0)
        for name, risk in order.items()
    ]
    text = mechanisms._sentences(rows, 13.863)[0]
    assert "subset selection is at least OUE at 2 of 2 epsilons." in text
    assert "Gaussian is the lowest at 2 of 2" in text and "the paper: 14" in text
    rows[2]["rad"], rows[0]["rad"] = 0.45, 0.95
    text = mechanisms._sentences(rows, 13.863)[0]
    assert "at least OUE at 1 of 2 epsilons (not at 1)" in text
    assert "exceeded in 1 of 10 cells" in text


def test_black_box_curves():
    made = run(Options(name="black-box", quick=True))
    shown = lines(drawn(made.draw).axes[0])
    for key, label in (black_box.PAPER | black_box.NEW).items():
        assert shown[label] == [r[key] for r in made.rows]
    assert shown["OUE, exact (Theorem 2)"] == [r["oue_exact"] for r in made.rows]
    colours = {line.get_label(): line.get_color() for line in drawn(made.draw).axes[0].lines}
    assert (
        colours[black_box.PAPER["theorem-1"]]
        == colours["Proposition 1"]
        != colours["exact optimum (new)"]
    )
    rows = [dict(r) for r in made.rows]
    assert f"{len(rows)} of {len(rows)} epsilons" in black_box._sentences(rows)[0]
    assert "equal to it from 3 on." in black_box._sentences(rows)[0]
    rows[0]["proposition-1"] = rows[0]["theorem-1"] + 0.1
    assert f"at least Proposition 1 at {len(rows) - 1}," in black_box._sentences(rows)[0]
    rows[0]["proposition-1"] = rows[0]["theorem-4"] - 0.1
    assert f"{len(rows) - 1} of {len(rows)} epsilons" in black_box._sentences(rows)[0]
    rows[0]["proposition-1"] = rows[0]["theorem-1"]
    rows[1]["theorem-1"] += 0.1
    assert f"equal to it at {len(rows) - 1} of them" in black_box._sentences(rows)[0]


# -- nested Monte Carlo ----------------------------------------------------------------------------
def test_monte_carlo_is_drawn_by_draws_and_epsilon():
    rows = [
        {
            "prior": p,
            "draws": n,
            "eta": eta,
            "epsilon": e,
            "mean": e / 20 + eta / 10,
            "low": e / 21,
            "high": e / 19 + eta / 5,
            "exact": e / 20,
        }
        for p in monte_carlo.PRIORS
        for n in monte_carlo.DRAWS
        for eta in monte_carlo.ETAS
        for e in monte_carlo.EPSILONS
    ]
    figure = drawn(lambda f: monte_carlo._draw(f, rows))
    titles = [ax.get_title() for ax in figure.axes[:4]]
    assert titles == ["N = 500", "N = 1000", "N = 2000", "N = 5000"]
    assert len(figure.axes) == 8 and all("epsilon" in ax.get_xlabel() for ax in figure.axes[4:])
    for ax in figure.axes:
        assert len(ax.containers) == len(monte_carlo.ETAS)  # curves with intervals
        assert list(ax.containers[0].lines[0].get_xdata()) == list(monte_carlo.EPSILONS)
    assert len(legend(figure)) == len(monte_carlo.ETAS) + 1


def test_intervals_are_compared_from_one_number_of_draws_to_the_next():
    rows = [
        {"prior": "uniform", "eta": 0.1, "epsilon": 1.0, "draws": n, "low": 0.0, "high": width}
        for n, width in ((1000, 0.2), (500, 0.3), (2000, 0.25))
    ]
    assert monte_carlo._narrower(rows) == (1, 2)


def test_monte_carlo_rows_come_from_the_repetitions():
    block = {"prior": "uniform", "draws": 100}
    found = [block | {"values": [[[v]]]} for v in (0.1, 0.2, 0.3)]
    row = monte_carlo._rows("uniform", 100, found, etas=(0.1,), epsilons=(4.06,))[0]
    assert row["mean"] == pytest.approx(0.2) and row["repetitions"] == 3
    assert row["exact"] == pytest.approx(0.2422, abs=1e-4)
    # scale 2/epsilon at epsilon is scale 1/epsilon at epsilon/2
    assert row["exact_scale_of_the_text"] == pytest.approx(monte_carlo.exact("uniform", 0.1, 2.03))


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("prior", [UNIFORM, BETA])
def test_repetitions_meet_the_exact_value(prior, device):
    """The mean of 40, within 4.5 standard errors: a false alarm in about 10^-5 of all seeds."""
    if device is not None:
        pytest.importorskip("torch")
    noise, etas = [ExponentialInterval(epsilon=e, factor=1.0) for e in (2.08, 5.05)], (0.25,)
    found = nested.repetitions(
        noise, prior, etas=etas, draws=150, seeds=[(7, k) for k in range(40)], device=device
    )
    assert found.shape == (40, 2, 1) and len(np.unique(found)) == found.size
    for i, mechanism in enumerate(noise):
        for j, eta in enumerate(etas):
            name = "uniform" if prior is UNIFORM else "Beta(.1, .1)"
            truth = monte_carlo.exact(name, eta, mechanism.epsilon)
            own = found[:, i, j]
            # the maximum over noisy windows is a little too large
            allowed = 4.5 * own.std() / math.sqrt(len(own)) + 0.003
            assert own.mean() == pytest.approx(truth, abs=allowed)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_running_sums_are_sums_over_windows(kind):
    from dprad.paper.arrays import Numpy, Torch

    if kind == "torch":
        pytest.importorskip("torch")
    engine = Numpy(0) if kind == "numpy" else Torch(0, "cpu")
    line = nested._line(BETA)
    z = engine.sorted(engine.records(line, (5, 300)))
    values = np.random.default_rng(1).random((5, 300))
    low = np.array([[0.0, 0.2, 0.85, 0.3]] * 5)
    begin, end = engine.within(z, engine.array(low), engine.array(low + 0.15), line)
    sums = engine.running(engine.array(values))
    found = np.asarray(engine.at(sums, end) - engine.at(sums, begin))
    for row in range(5):
        for k, a in enumerate(low[row]):
            z_row = np.asarray(z[row])
            inside = (z_row >= a) & (z_row <= a + 0.15)
            # the window that reaches the end of the line holds the records rounded to it
            inside |= (a + 0.15 >= 1 - 1e-9) & (z_row > a)
            assert found[row, k] == pytest.approx(values[row][inside].sum(), abs=1e-12)


def test_any_density_on_an_interval():
    noise = ExponentialInterval(epsilon=4.0, factor=1.0)
    same = Density(log_density=noise.log_likelihood, bounds=(0, 1))
    question = {"eta": 0.1, "draws": 300, "rng": 3}
    ours = nested_monte_carlo(noise, UNIFORM, **question)
    theirs = nested_monte_carlo(same, UNIFORM, **question)
    assert theirs.rad == pytest.approx(ours.rad, abs=1e-12)
    assert theirs.success_out == pytest.approx(ours.success_out, abs=1e-12)
    assert theirs.interval[0] <= ours.rad <= theirs.interval[1]


def test_laplace_noise_and_piecewise_reports():
    threat = Threat(loss="absolute", eta=0.1)
    noise = Laplace(epsilon=4.0)
    truth = assess(noise, prior=UNIFORM, threat=threat).rad
    found = [
        nested_monte_carlo(noise, UNIFORM, eta=0.1, draws=400, outputs=(-3, 4), rng=k).rad
        for k in range(20)
    ]
    assert np.mean(found) == pytest.approx(truth, abs=0.01)
    report = Piecewise(epsilon=4.0, bounds=(0, 1))
    table = Prior.from_counts({(i + 0.5) / 200: 1 for i in range(200)})
    truth = assess(report, prior=table, threat=threat).rad
    found = [nested_monte_carlo(report, UNIFORM, eta=0.1, draws=400, rng=k).rad for k in range(20)]
    assert np.mean(found) == pytest.approx(truth, abs=0.015)


def test_candidates_of_a_finer_grid_gain_hardly_more(monkeypatch):
    noise = ExponentialInterval(epsilon=8.02, factor=1.0)
    question = {"eta": 0.123, "draws": 500, "rng": 2}
    found = [nested_monte_carlo(noise, prior, **question).rad for prior in (UNIFORM, BETA)]
    monkeypatch.setattr(nested, "GRID", 1001)
    finer = [nested_monte_carlo(noise, prior, **question).rad for prior in (UNIFORM, BETA)]
    assert finer == pytest.approx(found, abs=2e-3)


@pytest.mark.parametrize(
    ("mechanism", "more", "words"),
    [
        (Duchi(epsilon=1.0, bounds=(0, 1)), {}, "set outputs="),
        (Duchi(epsilon=1.0, bounds=(0, 1)), {"outputs": (-3, 4)}, "atoms"),
        (Laplace(epsilon=1.0, clamp=(0, 1)), {"outputs": (0, 1)}, "atoms"),
        (Laplace(epsilon=4.0), {"outputs": (0, 1)}, "outputs elsewhere"),
        (ExponentialInterval(epsilon=1.0, bounds=(0, 0.5)), {}, "0.5"),
    ],
)
def test_what_nested_monte_carlo_refuses(mechanism, more, words):
    with pytest.raises(DpradError, match=words):
        nested_monte_carlo(mechanism, UNIFORM, eta=0.1, draws=10, **more)


def test_no_noise_at_all_and_no_information():
    silent = ExponentialInterval(epsilon=0.0)
    found = nested_monte_carlo(silent, UNIFORM, eta=0.1, draws=50)
    assert found.rad == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(DpradError, match="continuous prior"):
        nested_monte_carlo(silent, Prior.uniform(3), eta=0.1, draws=50)
