"""A continuous prior: deterministic quadrature against the paper's nested Monte Carlo, equal error.

Target: at least 100 times as fast. The error of the Monte Carlo is measured, the root mean square
over seeds; that of the quadrature is its *proven* bound, which must not exceed it.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import stats

from dprad import Prior, Threat, assess
from dprad.exact import continuous
from dprad.mechanisms import ExponentialInterval
from dprad.paper.nested import nested_monte_carlo


def main():
    mechanism = ExponentialInterval(epsilon=4.06, factor=1.0)
    cases = [
        ("uniform", Prior.continuous(stats.uniform(), 0, 1), 0.1, 5000, 6),
        ("Beta(.1, .1)", Prior.continuous(stats.beta(0.1, 0.1), 0, 1), 0.25, 5000, 3),
    ]
    for name, prior, eta, draws, seeds in cases:
        threat = Threat(loss="absolute", eta=eta)
        continuous.TOLERANCE = 1e-5
        truth = assess(mechanism, prior=prior, threat=threat).rad
        begin = time.perf_counter()
        errors = [
            nested_monte_carlo(mechanism, prior, eta=eta, draws=draws, rng=seed).rad - truth
            for seed in range(seeds)
        ]
        theirs = (time.perf_counter() - begin) / seeds
        error = float(np.sqrt(np.mean(np.square(errors))))
        continuous.TOLERANCE = error / 2
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            risk = assess(mechanism, prior=prior, threat=threat)
            times.append(time.perf_counter() - begin)
        bound = risk.interval[1] - risk.interval[0]
        print(f"exponential mechanism, {name} prior, eta = {eta}, N = {draws}")
        print(f"  nested Monte Carlo / quadrature: {theirs / min(times):.0f} (target >= 100)")
        print(f"  error: {error:.1e} (measured) against {bound:.1e} (proven)")


if __name__ == "__main__":
    main()
