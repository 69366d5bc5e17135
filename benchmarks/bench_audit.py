"""Audits: speed, and with --calls how many calls refute the broken mechanisms of the gallery.

    python benchmarks/bench_audit.py [--calls [--out docs] [--seeds 20] [--peers 5] [--only svt]]

Speed: a million audited runs over 3,052 values against a loop of single numpy runs.

Targets: 30 times as fast over the grid, 10 times in every cell. The loop is timed on fewer runs and
scaled up; the audit is run whole.
"""

from __future__ import annotations

import argparse
import time

import audit_calls
import numpy as np

from dprad import Prior, PureDP, audit
from dprad.mechanisms import GRR, OUE, SubsetSelection

SIZE, RUNS, LOOP = 3052, 1_000_000, 4_000


def loop(mechanism, rng):
    """One run at a time: a record, its report, a guess."""
    right, m = 0, SIZE
    for _ in range(LOOP):
        z = rng.integers(m)
        if isinstance(mechanism, GRR):
            lie = rng.random() >= mechanism.truth
            guess = (z + rng.integers(1, m)) % m if lie else z
        elif isinstance(mechanism, OUE):
            bits = rng.random(m) < mechanism.q
            bits[z] = rng.random() < mechanism.p
            members = np.flatnonzero(bits)
            guess = rng.choice(members) if len(members) else -1
        else:
            w = mechanism.members
            inside = rng.random() < mechanism.p
            others = rng.choice(m - 1, size=w - inside, replace=False)
            others = others + (others >= z)
            members = np.r_[others, z] if inside else others
            guess = rng.choice(members)
        right += guess == z
    return right


def speed():
    prior, total = Prior.uniform(SIZE), [0.0, 0.0]
    claim = PureDP(1.0, neighbours="replace-one")
    few = Prior.uniform(5)
    audit(GRR(epsilon=1.0, size=5), claim=claim, prior=few, trials=1000, workers=2)  # imports
    for kind in (GRR, SubsetSelection, OUE):
        for epsilon in (1.0, 4.0, 8.0):
            mechanism = kind(epsilon=epsilon, size=SIZE)
            begin = time.perf_counter()
            loop(mechanism, np.random.default_rng(0))
            slow = (time.perf_counter() - begin) * RUNS / LOOP
            begin = time.perf_counter()
            claim = PureDP(epsilon, neighbours="replace-one")
            result = audit(mechanism, claim=claim, prior=prior, trials=RUNS, rng=1, workers=2)
            fast = time.perf_counter() - begin
            total[0] += slow
            total[1] += fast
            print(
                f"{kind.__name__}, epsilon {epsilon:g}: {slow / fast:.0f} times as fast (target 10)"
            )
            print(f"  certified {result.epsilon_lower:.3f}, estimate {result.epsilon_estimate:.3f}")
    print(f"over the grid: {total[0] / total[1]:.0f} times as fast (target 30)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--peers", type=int, default=5)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    if asked.calls:
        audit_calls.main(asked.out, asked.seeds, asked.peers, asked.only)
    else:
        speed()


if __name__ == "__main__":
    main()
