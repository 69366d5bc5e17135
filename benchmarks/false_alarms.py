"""How often does an audit refute a promise that is kept? At 95% confidence, at most 5%."""

from __future__ import annotations

import sys
from pathlib import Path

from scipy.stats import binomtest

from dprad import Prior, PureDP, audit
from dprad.mechanisms import GRR, OUE, Laplace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from gallery import SOUND

AUDITS, CALLS = 50, 2000


def main():
    subjects = [(name, run, values) for name, run, values, _ in SOUND if "ignores" not in name]
    subjects += [
        ("GRR, optimal attack", GRR(epsilon=1.0, size=6), range(6)),
        ("OUE, optimal attack", OUE(epsilon=1.0, size=6), range(6)),
        ("Laplace, optimal attack", Laplace(epsilon=1.0), [0, 1]),
    ]
    alarms = total = 0
    print("| subject | fixed | sequential |\n|---|---|---|")
    for name, run, values in subjects:
        found = []
        for sequential in (False, True):
            violated = sum(
                audit(
                    run,
                    claim=PureDP(1.0, neighbours="replace-one"),
                    prior=Prior.from_counts(dict.fromkeys(values, 1)),
                    trials=CALLS,
                    sequential=sequential,
                    rng=seed,
                ).verdict
                == "violated"
                for seed in range(AUDITS)
            )
            found.append(violated)
            alarms, total = alarms + violated, total + AUDITS
        print(f"| {name} | {found[0]} of {AUDITS} | {found[1]} of {AUDITS} |", flush=True)
    p = binomtest(alarms, total, 0.05, alternative="greater").pvalue
    print(f"all: {alarms} of {total} ({alarms / total:.1%}); more than 5%? p = {p:.3f}")


if __name__ == "__main__":
    main()
