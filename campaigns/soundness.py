"""The soundness campaign: tens of thousands of random instances. `make soundness`, not `make test`.

1. What is exact stays below every bound of the mechanism's own promise, over all mechanisms,
   priors (zeros, ties, one heavy record, 1e-300), knowledge, tolerances, epsilon from 0 to 700.
2. The linear program stays below every black-box bound.
3. Intervals of estimates hold the exact value as often as they say.
4. What was calibrated meets its target when assessed again.
5. Audits refute a true claim no more often than stated.
6. One release is itself, two tell no less than one, over all mechanisms.
7. No pair of records, and no random prior, is riskier than the worst prior that was found.
8. Bounds of tiny promises stay above what is attained, by 40-digit arithmetic.
9. Bounds from divergences stay above mechanisms with these divergences, whose best is a program,
   and above random channels; total variation stays below Pinsker's.
10. Promises for groups stay above the profiles of random chains of neighbours.

    python campaigns/soundness.py [--scale 1.0] [--seed 0] [--out docs/soundness.md]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import frame
import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from dprad import (
    ZCDP,
    ApproxDP,
    DpradError,
    GaussianDP,
    Prior,
    PureDP,
    RenyiDP,
    Threat,
    assess,
    audit,
    bounds,
    calibrate,
    mechanisms,
    worst_prior,
)
from dprad.game.game import play
from dprad.mechanisms import catalogue
from oracles import (
    brute_force,
    gaussian_gap,
    gaussian_optimum,
    lp_optimum,
    moment_optimum,
    random_channel,
    random_instance,
    renyi,
)

EPSILONS = (0.0, 1e-15, 1e-12, 1e-9, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 38.0, 41.2, 80.0, 300.0, 700.0)
SLACK = 1e-9  # of the value
ROUNDING = 1e-14  # sums of probabilities that cancel


def random_prior(rng, m):
    """Values 0 .. m-1 with awkward probabilities."""
    kind = rng.integers(8)
    weights = rng.random(m) + 1e-3
    if kind == 0:
        weights[:] = 1.0
    elif kind == 1:
        weights = np.round(weights * 3) + (np.arange(m) == 0)
    elif kind == 2:
        weights[rng.random(m) < 0.4] = 0.0
        weights[0] = 1.0
    elif kind == 3:
        weights[rng.integers(m)] = 1e6
    elif kind == 4:
        weights[rng.integers(m)] = 1e-300
    elif kind == 5:
        weights = 10.0 ** rng.uniform(-12, 0, m)
    elif kind == 6:  # one record has nearly all
        weights *= 10.0 ** rng.uniform(-20, -6)
        weights[rng.integers(m)] = 1.0
    return Prior.from_counts(dict(enumerate(weights.tolist())))


def random_threat(rng, m):
    """Any knowledge with any loss: exact, on a line, a function, a matrix."""
    parts = rng.integers(1, 4)
    known = ["nothing", "nothing", "everything", lambda table: [int(v) % parts for v in table]]
    knows = known[rng.integers(4)]
    loss = rng.integers(5)
    if loss == 0:
        eta = float(rng.choice([0.0, 1.0, 2.5, m]))
        return Threat(knows=knows, loss="absolute", eta=eta)
    if loss == 1:
        # around a circle
        return Threat(knows=knows, eta=1.0, loss=lambda a, b: np.abs(np.subtract.outer(a, b)) % m)
    if loss == 2:
        counts = (rng.random((m, m)) < 0.3) | np.eye(m, dtype=bool)
        return Threat(knows=knows, loss=counts)
    return Threat(knows=knows)


def random_mechanism(rng, prior, threat):
    name = str(rng.choice([n for n in catalogue.FAMILIES if n not in ("she", "rappor")]))
    family, takes = catalogue.FAMILIES[name], catalogue.card(name).names
    if family.noise.name == "sigma":
        given = {"sigma": float(10.0 ** rng.uniform(-1, 2))}
    else:
        given = {family.noise.name: float(rng.choice(EPSILONS))}
    if "reports" in takes:
        given["reports"] = int(rng.integers(1, 5))
    if "delta" in takes and rng.random() < 0.3:
        given["delta"] = float(rng.choice([0.0, 1e-300, 1e-9, 0.01, 0.3, 1.0]))
    if "clamp" in takes and rng.random() < 0.3:
        given["clamp"] = (0.0, float(prior.size))
    kind, arguments = catalogue.parts(name, given, prior, threat)
    return name, kind(**arguments)


def exact_below_bounds(rng, seen):
    m = int(rng.integers(2, 9))
    prior, threat = random_prior(rng, m), random_threat(rng, m)
    try:
        name, mechanism = random_mechanism(rng, prior, threat)
        risk = assess(mechanism, prior=prior, threat=threat, trials=400, confidence=1 - 1e-9)
        promise = mechanism.guarantee
    except DpradError as error:
        seen[f"refused: {str(error)[:60]}"] += 1
        return None
    least = risk.interval[0]
    most = min(
        b.value
        for b in bounds.evaluate(promise, play(prior, threat))
        if b.measure == "rad" and b.value is not None
    )
    seen[name] += 1
    within = 0.0 <= risk.rad <= prior.unlike and 0.0 <= risk.normalised <= 1.0
    if least > most * (1 + SLACK) + ROUNDING or not within:
        return f"{mechanism} {prior.probabilities} {threat}: {least} > {most}"
    return ""


def program_below_bounds(rng, seen):
    instance = random_instance(rng, int(rng.integers(1, 5)))
    epsilon = float(rng.choice([0.0, 0.1, 0.5, 1.0, 2.0, 4.0]) * rng.uniform(0.5, 1.0))
    delta = float(rng.choice([0.0, 0.0, 1e-3, 0.05, 0.3, 1.0]))
    absent = bool(rng.random() < 0.3)
    optimum = lp_optimum(instance, [(np.exp(epsilon), delta)], absent=absent)
    near = "add-remove" if absent else "replace-one"
    found = bounds.evaluate(
        ApproxDP(epsilon, delta, neighbours=near), play(instance.prior, instance.threat)
    )
    seen[near] += 1
    for b in found:
        if b.measure == "rad" and b.value is not None and b.value < optimum - 1e-7:
            return f"{b.name} {b.value} < {optimum}: {instance}, {epsilon}, {delta}, {near}"
    return ""


def interval_holds(rng, seen):
    """Whether a 90% interval holds the exact value; told apart from violations."""
    m, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    one, two = (random_channel(rng, m, outputs) for _ in range(2))
    both = np.einsum("ij,ik->ijk", one, two).reshape(m, -1)
    prior, threat = random_prior(rng, m), random_threat(rng, m)
    exact = assess(mechanisms.Channel(both), prior=prior, threat=threat).rad
    chain = mechanisms.Composed([mechanisms.Channel(one), mechanisms.Channel(two)])
    found = assess(
        chain, prior=prior, threat=threat, trials=300, confidence=0.9, rng=int(rng.integers(2**31))
    )
    low, high = found.interval
    seen["held" if low - 1e-12 <= exact <= high + 1e-12 else "missed"] += 1
    return ""


def calibration_meets_target(rng, seen):
    m = int(rng.integers(2, 9))
    prior, threat = random_prior(rng, m), random_threat(rng, m)
    target = float(10.0 ** rng.uniform(-3, -0.2))
    name = str(rng.choice(["grr", "oue", "subset", "sue", "laplace", "geometric", "gaussian"]))
    try:
        family, arguments = catalogue.parts(name, {}, prior, threat)
        plan = calibrate(
            family, parameter=catalogue.card(name).takes[0].name, max_risk=target, prior=prior,
            threat=threat, **arguments,
        )  # fmt: skip
    except DpradError as error:
        seen["refused" if "calibrate" not in str(error) else "nothing to calibrate"] += 1
        return None
    again = assess(plan.mechanism, prior=prior, threat=threat)
    seen[name] += 1
    return "" if again.interval[1] <= target else f"{plan.mechanism}: {again.rad} > {target}"


def audit_is_fair(rng, seen):
    """Whether a 90% audit refutes a tight, true claim."""
    epsilon = float(rng.choice([0.2, 1.0, 3.0]))
    size = int(rng.integers(2, 6))
    mechanism = [mechanisms.GRR, mechanisms.OUE, mechanisms.SUE][rng.integers(3)](
        epsilon=epsilon, size=size
    )
    found = audit(
        mechanism, claim=PureDP(epsilon, neighbours="replace-one"), prior=Prior.uniform(size),
        trials=500, confidence=0.9, sequential=bool(rng.random() < 0.5),
        rng=int(rng.integers(2**31)),
    )  # fmt: skip
    seen[found.verdict] += 1
    return ""


def releases_add_up(rng, seen):
    """One is itself; two, or one beside something weak, tell no less."""
    m = int(rng.integers(2, 6))
    prior, threat = random_prior(rng, m), random_threat(rng, m)
    asked = {"prior": prior, "threat": threat, "trials": 300, "confidence": 1 - 1e-9}
    try:
        name, mechanism = random_mechanism(rng, prior, threat)
        one = assess(mechanism, **asked)
        alone = assess(mechanisms.Repeated(mechanism, 1), **asked)
        two = assess(mechanisms.Repeated(mechanism, 2), **asked)
        noise = mechanism.noise.name
        changed = {noise: 1e3 if noise == "sigma" else 0.01}
        if hasattr(mechanism, "epsilon_one"):
            changed["epsilon_one"] = 0.005
        weak = replace(mechanism, **changed)
        beside = assess(mechanisms.Composed([mechanism, weak]), **asked)
    except DpradError as error:
        seen[f"refused: {str(error)[:60]}"] += 1
        return None
    seen[name] += 1
    if alone.rad != one.rad:
        return f"Repeated({mechanism}, 1) {alone.rad} != {one.rad}"
    for other in (two, beside):
        if other.interval[1] < one.interval[0] * (1 - SLACK) - ROUNDING:
            what = f"{other.subject} {other.interval} < {one.interval}"
            return f"{what}: {prior.probabilities} {threat}"
    return ""


def worst_is_worst(rng, seen):
    m, outputs = (int(k) for k in rng.integers(2, 7, 2))
    matrix = rng.dirichlet(np.full(outputs, float(rng.choice([0.2, 1.0, 3.0]))), m)
    channel = mechanisms.Channel(matrix)
    threat = random_threat(rng, m)
    try:
        found = worst_prior(channel, threat=threat)
    except DpradError as error:
        seen[f"refused: {str(error)[:60]}"] += 1
        return None
    seen["found"] += 1
    if found.risk.rad > found.bound.rad * (1 + SLACK):
        return f"{found.risk.rad} above the bound {found.bound.rad}: {matrix.tolist()}"
    tried = [np.isin(np.arange(m), pair) / 2 for pair in combinations(range(m), 2)]
    tried += list(rng.dirichlet(np.ones(m), 20))
    for weight in tried:
        prior = Prior.from_counts(dict(enumerate(weight.tolist())))
        other = assess(channel, prior=prior, threat=threat).rad
        if other > found.risk.rad + 1e-12:
            return f"{other} > {found.risk.rad} at {weight}: {matrix.tolist()}"
    return ""


def tiny_promises(rng, seen):
    m = int(rng.choice([2, 3, 7, 50, 1000]))
    mu = float(10.0 ** rng.uniform(-18, -1))
    game = play(Prior.uniform(m), Threat())
    for near, truth in (
        ("replace-one", gaussian_optimum(mu, m)),
        ("add-remove", gaussian_gap(mu, 1 / m)),
    ):
        for b in bounds.evaluate(GaussianDP(mu, neighbours=near), game):
            if b.measure == "rad" and b.value is not None and b.value < truth * (1 - 1e-14):
                return f"{b.name} {b.value} < {truth}: mu = {mu}, m = {m}, {near}"
    seen["sound"] += 1
    return ""


def divergences_hold(rng, seen):
    """Half by the program for equal records, half by random channels with any question."""
    near = {"neighbours": "replace-one"}
    if rng.random() < 0.5:
        m, everything = int(rng.integers(2, 30)), bool(rng.random() < 0.5)
        rho = float(10.0 ** rng.uniform(-3.5, 0.9))
        promise, truth = ZCDP(rho, **near), moment_optimum(m, everything, rho)
        game = play(Prior.uniform(m), Threat(knows="everything" if everything else "nothing"))
        seen["program"] += 1
    else:
        m = int(rng.integers(2, 5))
        instance = random_instance(rng, m)
        channel = random_channel(rng, m, int(rng.integers(2, 6)))
        channel = 0.98 * channel + 0.02 / channel.shape[1]
        orders = 1.0 + np.geomspace(0.02, 60.0, 24)
        pairs = [(a, b) for a in channel for b in channel]
        limits = np.max([renyi(a, b, orders) for a, b in pairs], axis=0)
        promise, truth = RenyiDP(orders, limits, **near), brute_force(instance, channel)[0]
        game = play(instance.prior, instance.threat)
        seen["channel"] += 1
    if promise.tv > np.sqrt(promise.kl / 2):
        return f"{promise}: total variation {promise.tv} above Pinsker's"
    for b in bounds.evaluate(promise, game):
        if b.measure == "rad" and b.value is not None and b.value < truth * (1 - 1e-6) - 1e-12:
            return f"{b.name} {b.value} < {truth}: {promise}, {game}"
    return ""


def groups_hold(rng, seen):
    from model.test_units import AR, EPS, RO, chain, profile, promises_of

    size = int(rng.integers(2, 7))
    near = AR if rng.random() < 0.5 else RO
    laws = chain(rng, 2 * size, int(rng.integers(2, 5)))
    for promise in promises_of(laws, near):
        seen[near["neighbours"]] += 1
        grouped = promise.group(size)
        cases = [(laws[k + size], laws[k], grouped) for k in range(size)]
        if near == AR:
            cases.append((laws[2 * size], laws[0], grouped.replace_one()))
        for p, q, held in cases:
            true = np.maximum(profile(p, q), profile(q, p))
            if np.any(held.delta(EPS) < true - 1e-12):
                return f"{promise}.group({size}): {laws.tolist()}"
    return ""


CHECKS = {
    "exact below every bound": (exact_below_bounds, 20_000),
    "linear program below every bound": (program_below_bounds, 4_000),
    "90% intervals hold the exact value": (interval_holds, 3_000),
    "calibrated, then assessed": (calibration_meets_target, 2_000),
    "90% audits of true claims": (audit_is_fair, 3_000),
    "one release is itself, two tell no less": (releases_add_up, 3_000),
    "nothing riskier than the worst prior": (worst_is_worst, 100),
    "tiny promises": (tiny_promises, 400),
    "divergences": (divergences_hold, 1_000),
    "groups of records": (groups_hold, 500),
}


def try_one(check, title, seed, i, seen):
    return check(np.random.default_rng([seed, len(title), i]), seen)


def judge(seen, n):
    """At 90% confidence a tenth may miss; five standard deviations more is too many."""
    most = 0.1 * n + 5 * np.sqrt(0.09 * n)
    named = {"missed": "intervals missed", "violated": "true claims refuted"}
    return [f"{seen[k]} of {n} {told}" for k, told in named.items() if seen[k] > most]


if __name__ == "__main__":
    frame.run(("The soundness campaign", "make soundness"), CHECKS, try_one, judge)
