"""How often does an audit refute a promise that is kept, and only just? At 95%, at most 5%.

    python benchmarks/false_alarms.py [--audits 200] [--only Gauss] [--out docs/theory/audit.md]

Two data sets are told apart by learned bets (`Session`), looked at after every call: the claim is
refuted if the wealth ever reaches 20. Named mechanisms, and audits with and without a person,
are run by `audit`: of a fixed number of calls (one look), and sequentially (many). In one run every
call is a secret of its own, and there is one look. Every mechanism is tight: its claim is the best
one. Audits are added to those on the page: a run may be cut in pieces.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from dprad import ApproxDP, GaussianDP, Prior, PureDP, audit, audit_outputs
from dprad.mechanisms import GRR, OUE
from dprad.verbs.audit.session import Session

REPLACE, ADD = {"neighbours": "replace-one"}, {"neighbours": "add-remove"}
ALPHA, CHUNK = 0.05, 64


def response(z, rng, epsilon=1.0):
    return np.where(rng.random(len(z)) < 1 / (1 + math.exp(-epsilon)), z, 1 - z)


def revealed(z, rng, delta=0.05):
    return np.where(rng.random(len(z)) < delta, 2 + z, response(z, rng))


def ten_answers(z, rng):
    """Ten randomised responses, each with a tenth of epsilon 1; half of them are about the other
    record.
    """
    told = np.where(np.arange(10) < 5, z[:, None], 1 - z[:, None])
    return np.where(rng.random(told.shape) < 1 / (1 + math.exp(-0.1)), told, 1 - told)


def in_range(z, rng):
    """Laplace, epsilon 1, cut off where the same is known of both: a third at either end."""
    return np.clip(z + rng.laplace(size=len(z)), 0.0, 1.0)


def in_or_out(record, rng):
    """A count, with the person or without."""
    return (record is not None) + rng.laplace()


def truth_or_coin(record, rng):
    """Present people are told with delta, else randomised response."""
    z = int(record is not None)
    if rng.random() < 0.05:
        return 2 + z
    return z if rng.random() < 1 / (1 + math.exp(-1.0)) else 1 - z


TOLD_APART = {
    "randomised response, epsilon 1": (PureDP(1.0, **REPLACE), response),
    "Laplace, epsilon 1": (PureDP(1.0, **REPLACE), lambda z, rng: z + rng.laplace(size=len(z))),
    "Laplace, kept within a range": (PureDP(1.0, **REPLACE), in_range),
    "ten randomised answers": (PureDP(1.0, **REPLACE), ten_answers),
    "Laplace, two numbers": (
        PureDP(2.0, **REPLACE), lambda z, rng: z[:, None] + rng.laplace(size=(len(z), 2))
    ),
    "revealed with delta 0.05, else randomised response": (
        ApproxDP(1.0, 0.05, **REPLACE), revealed
    ),
    "Gaussian, mu 1": (GaussianDP(1.0, **REPLACE), lambda z, rng: z + rng.normal(size=len(z))),
}  # fmt: skip
PERSON = Prior.from_counts({"Ann": 1})
AUDITED = {
    "added or removed, Laplace": (
        in_or_out, {"claim": PureDP(1.0, **ADD), "prior": PERSON, "absent": None}
    ),
    "added or removed, delta 0.05": (
        truth_or_coin, {"claim": ApproxDP(1.0, 0.05, **ADD), "prior": PERSON, "absent": None}
    ),
    "GRR of 6, bets on sets": (
        GRR(epsilon=1.0, size=6), {"claim": PureDP(1.0, **REPLACE), "prior": Prior.uniform(6)}
    ),
    "OUE of 6, bets on sets": (
        OUE(epsilon=1.0, size=6), {"claim": PureDP(1.0, **REPLACE), "prior": Prior.uniform(6)}
    ),
}  # fmt: skip
IN_ONE_RUN = {
    "one run, randomised response": (PureDP(1.0, **REPLACE), response),
    "one run, Laplace": (PureDP(1.0, **REPLACE), lambda z, rng: z + rng.laplace(size=len(z))),
    "one run, revealed with delta 0.001": (
        ApproxDP(1.0, 0.001, **REPLACE), lambda z, rng: revealed(z, rng, 0.001)
    ),
}  # fmt: skip


def alarm(task):
    """Whether the claim was refuted: at the end, and at any look."""
    name, seed, calls = task
    if name in IN_ONE_RUN:
        claim, run = IN_ONE_RUN[name]
        rng = np.random.default_rng([seed, 98])
        z = rng.integers(2, size=calls)
        rows = list(zip(z.tolist(), run(z, rng).tolist(), strict=True))
        found = audit_outputs(rows, claim=claim, one_run=True, confidence=1 - ALPHA, rng=seed)
        return (found.verdict == "violated",) * 2
    if name in AUDITED:
        run, question = AUDITED[name]
        found = [
            audit(run, trials=calls, sequential=s, rng=seed, **question).verdict == "violated"
            for s in (False, True)
        ]
        return tuple(found)
    claim, run = TOLD_APART[name]
    rng = np.random.default_rng([seed, 99])
    session = Session(claim, seed)
    for _ in range(calls // CHUNK):
        z = rng.integers(2, size=CHUNK)
        session.take(run(z, rng), z)
    return session.log_wealth() >= -math.log(ALPHA), session.best >= -math.log(ALPHA)


def measured(names, before, asked):
    """Name -> alarms at the end, at any look, audits: with those of `before`."""
    rows, end = dict(before), time.monotonic() + asked.seconds
    with ProcessPoolExecutor(asked.workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        for i, name in enumerate(names):
            until = time.monotonic() + (end - time.monotonic()) / (len(names) - i)
            last, ever, made = before.get(name, (0, 0, 0))
            while made < asked.audits and time.monotonic() < until:
                seeds = range(made, min(made + 20, asked.audits))
                found = list(pool.map(alarm, [(name, s, asked.calls) for s in seeds]))
                last, ever = (n + sum(f[k] for f in found) for k, n in ((0, last), (1, ever)))
                made += len(found)
            rows[name] = last, ever, made
            print(name, rows[name], flush=True)
    return rows


def summary(found):
    """Both columns, and the row with most alarms. They are not added: of learned bets the second
    holds the first.
    """
    rows = [(name, *counts) for name, counts in found.items()]
    n = sum(row[3] for row in rows)
    words = []
    for k, when in ((1, "at the end"), (2, "at any look")):
        alarms = sum(row[k] for row in rows)
        high = binomtest(alarms, n).proportion_ci(0.99).high
        words.append(
            f"{alarms:,} of {n:,} audits refuted a true claim {when}, {alarms / n:.1%} (with 99% "
            f"confidence at most {high:.1%}; 5% are allowed)."
        )
    name, most, m = max(((r[0], max(r[1:3]), r[3]) for r in rows), key=lambda r: r[1] / r[2])
    p = binomtest(most, m, ALPHA, alternative="greater").pvalue
    words.append(
        f"Most often: {name}, {most} of {m} ({most / m:.1%}; were the rate 5%, as many or more "
        f"would be seen with probability {p:.2f})."
    )
    return " ".join(words)


MARK, HEAD = "<!-- measured -->\n", "| subject | at the end | at any look |\n|---|---|---|"


def on_page(text):
    """What was measured before."""
    found = {}
    for name, last, ever, made in re.findall(
        r"^\| (.+) \| (\d+) of \d+ \| (\d+) of (\d+) \|$", text, re.MULTILINE
    ):
        found[name] = int(last), int(ever), int(made)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--audits", type=int, default=220)
    parser.add_argument("--calls", type=int, default=640)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    text, _, before = (asked.out.read_text() if asked.out else "").partition(MARK)
    names = [*TOLD_APART, *AUDITED, *IN_ONE_RUN]
    found = measured([n for n in names if asked.only in n], on_page(before), asked)
    found = {name: found[name] for name in names if name in found}
    rows = [
        f"| {n} | {last} of {made} | {ever} of {made} |" for n, (last, ever, made) in found.items()
    ]
    words = summary(found)
    print("\n".join([HEAD, *rows, "", words]))
    if asked.out:
        day = datetime.now(UTC).date().isoformat()
        head = f"Audits of {asked.calls} calls each at 95%, measured on {day}:\n"
        asked.out.write_text("\n".join([text + MARK + head, HEAD, *rows, "", words]) + "\n")


if __name__ == "__main__":
    main()
