"""The audits of the paper and of LDP Auditor: against exact values, by hand, and when undefined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import beta, binom

from dprad import DpradError, Prior, assess, paper
from dprad.mechanisms import GRR, OUE, HadamardResponse, Laplace, SubsetSelection
from dprad.mechanisms import bits as packed
from dprad.paper.audit import paper_audit
from dprad.paper.auditor import ceiling, ldp_auditor, lower_bound
from dprad.paper.black_box import black_box_audit, black_box_epsilon
from dprad.paper.experiments import ldp_attacks, ldp_audit


# -- Eq. ldp_audit ---------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [2, 3, 50, 3052])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 12.0])
def test_the_formula_inverts_the_risk_of_grr(size, epsilon):
    rad = assess(GRR(epsilon=epsilon, size=size), prior=Prior.uniform(size)).rad
    assert black_box_epsilon(rad, size) == pytest.approx(epsilon, abs=1e-7)


@pytest.mark.parametrize("size", [2, 3, 7, 49, 3052])
def test_the_formula_is_undefined_if_all_guesses_are_right_or_none(size):
    runs = 100 * size
    for hits in (0, runs):
        assert black_box_epsilon((hits - runs / size) / runs, size) is None
    one_wrong = black_box_epsilon((runs - 1 - runs / size) / runs, size)
    assert one_wrong == pytest.approx(math.log((runs - 1) * (size - 1)))
    assert black_box_epsilon(-0.5 / size, size) < 0


def test_a_function_is_audited():
    def run(record, rng):
        return record if rng.random() < 0.6 else int(rng.integers(4))

    truth = math.log(0.7 / 0.1)
    found = black_box_audit(run, size=4, trials=8000, repetitions=3)
    assert found.epsilon == pytest.approx(truth, abs=0.15) and found.undefined == 0
    assert found.epsilon == pytest.approx(np.mean(found.estimates))
    assert found.deviation == pytest.approx(np.std(found.estimates))
    assert found == black_box_audit(run, size=4, trials=8000, repetitions=3)
    # an output of another kind needs an attack
    with pytest.raises(DpradError, match="attack must be given"):
        black_box_audit(lambda r, rng: [run(r, rng)], size=4, trials=100)
    again = black_box_audit(
        lambda r, rng: [run(r, rng)], lambda output: output[0], size=4, trials=8000, repetitions=3
    )
    assert again == found


def test_many_at_once():
    grr = GRR(epsilon=1.0, size=6)
    plain = black_box_audit(grr, trials=30_000)
    whole = black_box_audit(
        lambda records, rng: grr.sample(records, rng), size=6, trials=30_000, vectorised=True
    )
    assert whole == plain and plain.epsilon == pytest.approx(1.0, abs=0.1)
    turned = black_box_audit(grr, lambda o: (o + 1) % 6, trials=30_000, vectorised=True)
    assert turned.epsilon < 0


def test_the_optimal_attack_is_the_default():
    oue = OUE(epsilon=2.0, size=8)
    found = black_box_audit(oue, trials=40_000, repetitions=2)
    exact = assess(oue, prior=Prior.uniform(8)).rad
    assert np.mean(found.rads) == pytest.approx(exact, abs=5 * math.sqrt(0.25 / 80_000))

    def first(bits):
        return int(np.argmax(packed.unpack(bits, 8)))

    assert black_box_audit(oue, first, trials=4000).epsilon < found.epsilon


def test_who_always_passes_gains_nothing():
    found = black_box_audit(lambda record: record, lambda output: None, size=5, trials=100)
    assert found.rads == (0.0,) * 5 and found.epsilon == 0.0


def test_undefined_estimates_are_named_and_counted():
    found = black_box_audit(lambda record: record, size=7, trials=70, repetitions=4)
    assert found.estimates == (None,) * 4 and found.undefined == 4
    assert found.epsilon is None and found.deviation is None and found.above(0.0) == 0
    assert "4 of 4 estimates undefined" in str(found)


# -- Theorem 2 inverted ----------------------------------------------------------------------------
def test_the_paper_s_audit_names_undefined_estimates():
    found = paper_audit(
        OUE(epsilon=16.0, size=20), prior=Prior.uniform(20), trials=400, repetitions=12
    )
    defined = [e for e in found.estimates if e is not None]
    assert 0 < len(defined) < 12 and found.undefined == 12 - len(defined)
    assert all(math.isfinite(e) for e in defined) and found.epsilon is None


def test_a_pass_is_not_counted_as_bad_luck():
    """OUE often reports nothing: that must not lower the measured risk. Six deviations."""
    oue, n = OUE(epsilon=8.0, size=3), 200_000
    found = paper_audit(oue, prior=Prior.uniform(3), trials=n, repetitions=1)
    exact = assess(oue, prior=Prior.uniform(3)).rad
    assert found.rads[0] == pytest.approx(exact, abs=6 * math.sqrt(0.25 / n))


def test_the_paper_s_audit_takes_no_function():
    with pytest.raises(DpradError, match="use black_box_audit"):
        paper_audit(lambda r: r, prior=Prior.uniform(3))


# -- LDP Auditor -----------------------------------------------------------------------------------
def rates(mechanism):
    """Exact chances of the guess 0 on input 0 and on input m-1, from the definitions."""
    m, e = mechanism.size, math.exp(mechanism.epsilon)
    if isinstance(mechanism, GRR):
        return e / (e + m - 1), 1 / (e + m - 1)
    if isinstance(mechanism, SubsetSelection):
        w = int(packed.count(mechanism.sample([0], np.random.default_rng(0)))[0])
        p = w * e / (w * e + m - w)
        own = p / w
        return own, (1 - own) / (m - 1)
    ones = np.arange(m)
    others = binom.pmf(ones, m - 1, 1 / (e + 1))
    own = 0.5 * (others / (ones + 1)).sum() + 0.5 * others[0] / m
    return own, (1 - own) / (m - 1)


@pytest.mark.parametrize("kind", [GRR, SubsetSelection, OUE])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_counts_are_those_of_the_exact_chances(kind, epsilon):
    """Two-sided binomial tails of 1e-6, twelve counts."""
    mechanism, n = kind(epsilon=epsilon, size=12), 20_000
    found = ldp_auditor(mechanism, runs=n, repetitions=1)
    for count, rate in zip(found.counts[0], rates(mechanism), strict=True):
        assert binom.ppf(5e-7, n, rate) <= count <= binom.isf(5e-7, n, rate)
    assert found.estimates[0] == lower_bound(*found.counts[0], n)


def test_the_bound_by_hand():
    n, tp, fp = 1000, 700, 90
    low = beta.ppf(0.0025, tp, n - tp + 1)
    high = beta.isf(0.0025, fp + 1, n - fp)
    assert lower_bound(tp, fp, n) == pytest.approx(math.log(low / high))
    assert lower_bound(tp, fp, n, delta=0.1) == pytest.approx(math.log((low - 0.1) / high))
    assert lower_bound(5, 5, n, delta=0.1) is None and lower_bound(0, 5, n) is None
    assert ceiling(10**6) == pytest.approx(math.log(1e6 / -math.log(0.0025)), abs=1e-4)


def test_each_bound_holds_with_its_confidence():
    """GRR on two values at alpha = 1/2: at most 1/4 above the truth; sampled as binomials."""
    random, n, (own, other) = np.random.default_rng(3), 400, rates(GRR(epsilon=1.0, size=2))
    tries = 2000
    pairs = zip(random.binomial(n, own, tries), random.binomial(n, other, tries), strict=True)
    above = sum(lower_bound(int(t), int(f), n, alpha=0.5) > 1.0 for t, f in pairs)
    assert above <= binom.isf(1e-6, tries, 0.25)
    assert above > 0  # so the test could fail


def test_an_empty_report_is_guessed_at_random():
    """OUE of two values with a large epsilon: half of the reports are empty."""
    found = ldp_auditor(OUE(epsilon=30.0, size=2), runs=40_000, repetitions=1)
    tp, fp = found.counts[0]
    assert tp / 40_000 == pytest.approx(0.75, abs=0.02)
    assert fp / 40_000 == pytest.approx(0.25, abs=0.02)


def test_a_function_and_its_own_attack():
    def run(record, rng):
        return "yes" if rng.random() < (0.8 if record == 0 else 0.1) else "no"

    found = ldp_auditor(run, lambda o: 0 if o == "yes" else 1, size=2, runs=4000)
    assert 1.8 < found.epsilon < math.log(8) and found.confidence == 0.995
    assert found.undefined == 0 and len(set(found.counts)) > 1
    never = ldp_auditor(run, lambda o: None, size=2, runs=50, repetitions=2)
    assert never.estimates == (None, None) and never.counts == ((0, 0), (0, 0))


@pytest.mark.parametrize("audit", [black_box_audit, ldp_auditor])
def test_bad_input(audit):
    for words, run, given in (
        ("size must be given", lambda r: r, {}),
        ("that of the mechanism, 3", GRR(epsilon=1.0, size=3), {"size": 4}),
        ("reads numbers", Laplace(epsilon=1.0), {"size": 4}),
        ("reads numbers", Laplace(epsilon=1.0), {}),
        ("rng must be a seed", GRR(epsilon=1.0, size=3), {"rng": -1}),
        ("attack must be a function", lambda r: r, {"size": 3, "attack": 7}),
        ("one guess per output", lambda r: r, {"size": 3, "attack": len, "vectorised": True}),
        ("must be a function of a record", 3, {"size": 3}),
        ("repetitions", GRR(epsilon=1.0, size=3), {"repetitions": 0}),
    ):
        with pytest.raises(DpradError, match=words):
            audit(run, **given)
    if audit is ldp_auditor:
        with pytest.raises(DpradError, match="attack must be given for a HadamardResponse"):
            audit(HadamardResponse(epsilon=1.0, size=4))


def test_bounds_from_impossible_counts_are_refused():
    for given in ((11, 0, 10), (-1, 0, 10), (0, 11, 10), (1, 0.5, 10), (1, 0, 0)):
        with pytest.raises(DpradError, match="must be"):
            lower_bound(*given)
    for alpha in (0, 1, -0.1, 2):
        with pytest.raises(DpradError, match="alpha must be"):
            lower_bound(5, 0, 10, alpha=alpha)
    with pytest.raises(DpradError, match="runs must be"):
        ceiling(0)


def test_public_names_are_functions():
    for name, function in (
        ("black_box_audit", black_box_audit),
        ("black_box_epsilon", black_box_epsilon),
        ("ldp_auditor", ldp_auditor),
    ):
        assert getattr(paper, name) is function and name in paper.__all__
    with pytest.raises(AttributeError, match="no attribute"):
        paper.nothing  # noqa: B018


# -- what the pages say ----------------------------------------------------------------------------
def test_sentences_count_what_is_defined():
    def row(epsilon, lost, above):
        return {"mechanism": "GRR", "places": "Porto", "epsilon": epsilon} | {
            f"{name}_{what}": value
            for name in ("rad_based", "black_box")
            for what, value in (("undefined", lost), ("above", above))
        }

    text = ldp_audit._paper([row(1, 0, 2), row(2, 3, 1)], 5)
    assert "above the truth in 3 of 7 defined estimates (10 in all)" in text
    assert "GRR, Porto: 3 at 2." in text
    assert "All are defined." in ldp_audit._paper([row(1, 0, 2)], 5)


def audited(epsilon, **columns):
    return {
        "places": "Porto",
        "mechanism": "GRR",
        "epsilon": epsilon,
        "rad_based": epsilon + 0.1,
        "ldp_auditor": epsilon - 0.5,
        "ldp_auditor_above": 0,
        "model_mean": epsilon,
        "model_first": epsilon + 0.2,
        "model_first_low": epsilon + 0.1,
        "model_first_high": epsilon + 0.3,
        "certified": epsilon - 0.2,
        "violated": 0,
    } | columns


def test_the_cap_and_the_nearer_estimate_are_told():
    rows = [audited(1), audited(2, rad_based=3.0), audited(3, rad_based=None)]
    text = ldp_audit._auditor(rows, 1_000_000, 5)
    assert "cannot exceed 12.03" in text and "12.25 in its text, 12.02 in its plot" in text
    assert "nearer to the truth in 1 of 2 cells where both have a mean" in text


def test_the_interval_is_that_of_the_first_audit():
    rows = [audited(1), audited(2, model_first_low=1.9)]
    assert "It holds the truth in 1 of 2 cells" in ldp_audit._ours(rows, 5)
    for row in rows:
        row |= {f"{name}_{what}": 0 for name in ("rad_based", "ldp_auditor")
                for what in ("deviation", "undefined")}  # fmt: skip
    ax = Figure().add_subplot()
    ldp_audit._panel(ax, rows, None, 5)
    shown = {line.get_label(): line for line in ax.lines}
    assert list(shown["ours, the first"].get_ydata()) == [1.2, 2.2]
    assert list(shown["ours, model-based, mean of 5 (moved right)"].get_ydata()) == [1, 2]
    assert any(c.get_label() == "ours, interval of the first of 5 (95%)" for c in ax.collections)


def test_the_order_is_that_of_the_table():
    def rows(one, two):
        cell = {"places": "Porto", "values": 9, "epsilon": 1}
        return [cell | {"mechanism": "GRR", "rad": one}, cell | {"mechanism": "OUE", "rad": two}]

    assert "1 of 1 cells (equal in 0), as in" in ldp_attacks._order(rows(0.2, 0.1), "GRR", "OUE")
    assert "(equal in 1), as in" in ldp_attacks._order(rows(0.1, 0.1), "GRR", "OUE")
    text = ldp_attacks._order(rows(0.1, 0.15), "GRR", "OUE")
    assert "0 of 1 cells" in text and "not in Porto 1, where it is below by up to 50.0%" in text
