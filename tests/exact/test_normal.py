"""Gaussian noise by pieces: against panels, against sums over many outputs, and its ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dprad import Prior, Threat, assess, calibrate
from dprad.exact import gaining, line, normal
from dprad.mechanisms import Gaussian

KNOWN = [["a"], ["a", "b"], "nothing", "everything"]


def people(rng, fibers, values):
    """Fibers of many sizes; weights that are counts, or of any size."""
    gaps = rng.choice([0.01, 1.0, 1.0, 2.0, 5.0, 40.0], size=values)
    x, counts = np.cumsum(gaps).tolist(), {}
    for a in range(fibers):
        for _ in range(int(rng.integers(1, 12))):
            kind = [rng.gamma(0.3) + 1e-12, float(rng.integers(1, 4)), 1e-9, 1.0]
            person = (a, x[rng.integers(values)], int(rng.integers(2)))
            counts[person] = float(kind[rng.integers(4)])
    return Prior.from_counts(counts, columns=["a", "h", "b"]), x[-1] - x[0]


def noise(rng, prior, span):
    """Of all sizes, clamped at times."""
    sigma, hours = span * 10 ** rng.uniform(-2.5, 2), [row[1] for row in prior.support]
    ends = [min(hours) - rng.gamma(1.0) * sigma, max(hours) + rng.gamma(1.0) * sigma]
    return Gaussian(
        sigma=sigma, sensitivity=span, clamp=tuple(ends) if rng.random() < 0.3 else None
    )


@pytest.mark.parametrize("seed", range(6))
def test_as_panels(seed, monkeypatch):
    rng, taken, real = np.random.default_rng(seed), [], line.solve_normal

    def solved(*given):
        taken.append(real(*given))
        return taken[-1]

    for turn in range(16):
        prior, span = people(rng, int(rng.integers(1, 30)), int(rng.integers(2, 25)))
        mechanism = noise(rng, prior, span)
        asked = {"prior": prior, "threat": Threat(knows=KNOWN[turn % 4]), "query": "h"}
        monkeypatch.setattr(line, "solve_normal", solved)
        fast = assess(mechanism, **asked)
        monkeypatch.setattr(line, "solve_normal", lambda *_: None)
        slow = assess(mechanism, **asked)
        low, high = fast.interval
        assert low <= slow.interval[1] + 1e-15 and slow.interval[0] <= high + 1e-15
        assert high - low <= 2.1 * normal.ROUNDING * 25 and fast.rad == high
        assert fast.rero == pytest.approx(slow.rero, abs=2e-9)
        assert fast.success_out == pytest.approx(slow.success_out, abs=1e-5)
    assert sum(found is not None for found in taken) >= 12


@pytest.mark.parametrize("knows", [["a"], "nothing"])
def test_as_a_sum_over_many_outputs(knows):
    """Plain loops over people and fibers; a sum over cells of outputs is a lower bound."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        prior, span = people(rng, 4, 6)
        sigma = span * float(rng.choice([0.05, 0.3, 2.0]))
        rows, pi = prior.support, prior.probabilities
        h = np.array([row[1] for row in rows])
        edges = np.linspace(h.min() - 9 * sigma, h.max() + 9 * sigma, 40_001)
        p = np.diff(norm.cdf((edges - h[:, None]) / sigma), axis=1)
        mean, total = pi @ p, 0.0
        fibers = [row[0] if knows != "nothing" else 0 for row in rows]
        for fiber in set(fibers):
            best = np.zeros(len(mean))
            for z, own in enumerate(fibers):
                if own == fiber:
                    best = np.maximum(best, pi[z] * (p[z] - mean))
            total += best.sum()
        risk = assess(
            Gaussian(sigma=sigma, sensitivity=span),
            prior=prior, threat=Threat(knows=knows), query="h",
        )  # fmt: skip
        # as panels and pieces differ in where gains change sign, a cell loses its square
        assert total - 1e-12 <= risk.interval[1] and risk.interval[0] <= total + 1e-6


def test_where_a_guess_falls_behind():
    """Just before its end it is ahead of the other, just behind it is not; a pass included."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        m = int(rng.integers(2, 12))
        x = np.cumsum(rng.choice([0.01, 0.3, 2.0, 20.0], size=m))
        mass = rng.dirichlet(np.full(m, 0.5)) + 1e-9
        mass /= mass.sum()
        c, d = rng.integers(m, size=2)
        share = float(rng.choice([0.0, 1.0, rng.random(), 1 - 1e-9]))
        at = [np.array([v]) for v in (x[c], x[d], share)]
        end = float(gaining.until(at[0], x, mass, at[1], at[2])[0])

        def lead(s, x=x, mass=mass, c=c, d=d, share=share):
            """Relative to the density of c."""
            p = np.exp((x - x[c]) * s - (x - x[c]) ** 2 / 2)
            return 1.0 - share * p[d] - (1.0 - share) * (mass @ p)

        assert 0.0 <= end <= gaining.REACH
        assert all(lead(s) >= -1e-12 for s in np.linspace(0.0, end, 9)[:-1])
        if end < gaining.REACH:
            assert abs(lead(end)) < 1e-10 and lead(end + 0.1) < 1e-14


def test_any_distance_is_exact():
    """Far beyond the reach of panels, and of floats in units of the noise."""
    for far in (1e5, 1e12, 1e300):
        prior = Prior.from_counts({0.0: 1.0, far: 2.0, 2 * far: 1.0})
        mechanism = Gaussian(sigma=1.0, sensitivity=2 * far, clamp=(-1.0, 2 * far))
        risk = assess(mechanism, prior=prior)
        assert risk.kind == "exact" and risk.rad == pytest.approx(1 - 3 / 8, abs=1e-12)
        assert risk.rero == pytest.approx(1.0)


def test_many_values_are_left_to_panels(monkeypatch):
    monkeypatch.setattr(normal, "FEW", 3)
    mechanism = Gaussian(sigma=2.0, sensitivity=9.0)
    assert assess(mechanism, prior=Prior.uniform(4)).method != normal._METHOD
    assert assess(mechanism, prior=Prior.uniform(3)).method == normal._METHOD
    everything = Threat(knows="everything")  # as many fibers as values
    assert assess(mechanism, prior=Prior.uniform(4), threat=everything).method == normal._METHOD


def test_a_calibration_meets_its_target_where_a_part_is_known():
    prior, span = people(np.random.default_rng(3), 300, 40)
    asked = {"prior": prior, "threat": Threat(knows=["a"]), "query": "h"}
    plan = calibrate(Gaussian, max_risk=0.05, sensitivity=span, **asked)
    assert plan.risk.interval[1] <= 0.05
    less = Gaussian(sigma=plan.value * (1 - 2e-7), sensitivity=span)
    assert assess(less, **asked).interval[1] > 0.05
