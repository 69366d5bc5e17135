"""Support mechanisms: does the closed form scale like a sort, and are a million OUE reports cheap?

(a) The closed form for OUE at m = 10^6 with 1,000 fibers against m = 10^5, and numpy's argsort of
the same probabilities: the ratio of the two growth factors should be at most 1.3.
(d) A million OUE reports at m = 3052 against drawing m floats a report: at least 8 times as fast.
"""

from __future__ import annotations

import time

import numpy as np

from dprad import Prior, Threat
from dprad.exact import support
from dprad.game.game import play
from dprad.mechanisms import OUE


def best(function, repeats=5):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def growth():
    seconds = {}
    for m in (10**5, 10**6):
        rng = np.random.default_rng(0)
        prior = Prior.from_probabilities(rng.dirichlet(np.ones(m)))
        game = play(prior, Threat(knows=lambda s: (s % 1000).tolist()))
        mechanism, codes, pi = OUE(epsilon=2.0, size=m), np.arange(m), prior.probabilities
        seconds[m] = (
            best(lambda: support.closed_form(mechanism, game, codes, pi)),  # noqa: B023
            best(lambda: np.argsort(pi)),  # noqa: B023
        )
    ours, sort = (seconds[10**6][k] / seconds[10**5][k] for k in range(2))
    print("support solver, 10^6 against 10^5 values, 1,000 fibers")
    print(f"  grows by {ours:.1f}, argsort by {sort:.1f}: ratio {ours / sort:.2f} (target <= 1.3)")


def reports():
    m, runs, block = 3052, 1_000_000, 20_000
    for epsilon in (1.0, 4.0):
        mechanism = OUE(epsilon=epsilon, size=m)
        rng = np.random.default_rng(1)
        codes = rng.integers(m, size=block)
        ours = best(lambda: mechanism.sample(codes, rng), 3) * runs / block  # noqa: B023
        few = 2_000

        def floats():
            bits = rng.random((few, m)) < mechanism.q  # noqa: B023
            bits[np.arange(few), codes[:few]] = rng.random(few) < 0.5  # noqa: B023

        plain = best(floats, 3) * runs / few
        entropy = -(
            mechanism.q * np.log2(mechanism.q) + (1 - mechanism.q) * np.log2(1 - mechanism.q)
        )
        print(f"a million OUE reports, m = {m}, epsilon = {epsilon:g}")
        print(f"  floats / ours: {plain / ours:.1f} (target >= 8), one core")
        print(
            f"  output {m / 8 * runs / 1e6:.0f} MB; entropy {entropy:.2f} bits a bit, about "
            f"{mechanism_bits(mechanism.q):.1f} drawn, 64 for floats"
        )


def mechanism_bits(q):
    """Random bits drawn for each bit of output: words for the digits, and the sparse rest."""
    from dprad.mechanisms.bits import _digits

    digits, j, left = _digits(q)
    used = digits - ((j & -j).bit_length() - 1) if j else 0
    return used + 64 * left


if __name__ == "__main__":
    growth()
    reports()
