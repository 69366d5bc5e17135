"""Independent oracles, written from the definitions and sharing no code with the package.

`lp_optimum`: the largest RAD over all mechanisms with a given promise, as a linear program.
`brute_force`: RAD of a channel by enumerating outputs, fibers and guesses.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import mpmath as mp
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import dprad


@dataclass
class Instance:
    """A random question: success[z, g] says whether guess g is right about record z."""

    pi: np.ndarray
    fiber: np.ndarray
    success: np.ndarray
    prior: dprad.Prior
    threat: dprad.Threat
    weight: np.ndarray | None = None  # of each record as a target, if not that of the prior

    @property
    def targets(self) -> np.ndarray:
        return self.pi if self.weight is None else self.weight


def random_instance(rng: np.random.Generator, m: int, *, knows=None, kind=None) -> Instance:
    """Random prior (ties, zeros, a heavy record), knowledge and success relation."""
    style = rng.integers(5)
    if style == 0:
        pi = np.full(m, 1.0 / m)
    elif style == 1:
        pi = rng.dirichlet(np.full(m, 0.3))
    elif style == 2:
        weights = rng.integers(0 if m > 2 else 1, 4, size=m).astype(float)
        weights[rng.integers(m)] += 1
        pi = weights / weights.sum()
    elif style == 3:
        pi = np.full(m, 0.3 / max(m - 1, 1))
        pi[rng.integers(m)] += 1.0 - pi.sum()
    else:
        pi = rng.dirichlet(np.ones(m))
    pi = pi / pi.sum()
    knows = knows or rng.choice(["nothing", "everything", "part"])
    if knows == "nothing":
        fiber, known = np.zeros(m, dtype=int), "nothing"
    elif knows == "everything":
        fiber, known = np.arange(m), "everything"
    else:
        fiber = rng.integers(2, size=m)
        labels = fiber.tolist()
        known = lambda _support: labels  # noqa: E731
    kind = kind or rng.choice(["exact", "absolute", "matrix", "classes"])
    prior = dprad.Prior.from_probabilities(pi)
    if kind == "exact":
        success = np.eye(m, dtype=bool)
        threat = dprad.Threat(knows=known)
    elif kind == "absolute":
        eta = int(rng.integers(0, 3))
        success = np.abs(np.subtract.outer(np.arange(m), np.arange(m))) <= eta
        threat = dprad.Threat(knows=known, loss="absolute", eta=eta)
    elif kind == "classes":
        group = rng.integers(2, size=m)
        success = group[:, None] == group[None, :]
        threat = dprad.Threat(knows=known, loss=success)
    else:
        success = rng.random((m, m)) < 0.4
        success[0, 0] = True
        threat = dprad.Threat(knows=known, loss=sparse.csr_array(success))
    return Instance(pi, fiber, success, prior, threat)


def of_a_group(rng: np.random.Generator, instance: Instance) -> Instance:
    """The same question about a random group: targets from it, replacements from everybody."""
    m = len(instance.pi)
    inside = rng.random(m) < rng.choice([0.2, 0.5, 0.9])
    inside[rng.choice(m, p=instance.pi)] = True
    weight = np.where(inside, instance.pi, 0.0)
    threat = replace(instance.threat, group=lambda _support: inside)
    return replace(instance, threat=threat, weight=weight / weight.sum())


def attacks(instance: Instance) -> np.ndarray:
    """Every set of records an attack can be right about: one success set, or none, a fiber (none
    only if some guess is right about nobody of positive probability, where one must guess).
    """
    choices = []
    for x in np.unique(instance.fiber):
        inside = instance.fiber == x
        options = {tuple(inside & instance.success[:, g]) for g in range(len(instance.pi))}
        if not instance.threat.must_guess:
            options |= {tuple(np.zeros_like(inside))}
        choices.append([np.array(o) for o in options])
    sets = {tuple(np.logical_or.reduce(pick)) for pick in itertools.product(*choices)}
    return np.array(sorted(sets), dtype=bool)


def lp_optimum(instance: Instance, points, *, absent: bool = False) -> float:
    """The largest RAD over all mechanisms with delta(E) <= d for every (E, d) in `points`.

    Replace-one: between all pairs of records. `absent`: between each record and no record.
    """
    pi, sets = instance.pi, attacks(instance)
    m, columns = len(pi), len(sets)
    laws = m + int(absent)  # the last law is that without the record
    pairs = (
        [(z, m) for z in range(m)] + [(m, z) for z in range(m)]
        if absent
        else [(a, b) for a in range(m) for b in range(m) if a != b]
    )
    if not pairs:
        return 0.0  # one record: nothing to learn
    value = np.zeros((columns, laws))
    value[:, :m] = instance.targets * sets - pi * (sets @ instance.targets)[:, None]
    size = columns * laws

    def law(k):
        return np.arange(columns) * laws + k

    rows, cols, data, limit = [], [], [], []
    extra, count = size, 0
    for e, d in points:
        for a, b in pairs:
            # slack[o] >= p_a(o) - e p_b(o), sum of slack <= d
            slack = np.arange(extra, extra + columns) if d > 0 else None
            at = np.arange(count, count + columns)
            for index, sign in ((law(a), 1.0), (law(b), -e)):
                rows.append(at), cols.append(index), data.append(np.full(columns, sign))
            limit.extend([0.0] * columns)
            count += columns
            if slack is not None:
                rows.append(at), cols.append(slack), data.append(np.full(columns, -1.0))
                rows.append(np.full(columns, count)), cols.append(slack)
                data.append(np.ones(columns))
                limit.append(d)
                count += 1
                extra += columns
    bound = sparse.csr_array(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols))), shape=(count, extra)
    )
    total = sparse.csr_array(
        (np.ones(size), (np.tile(np.arange(laws), columns), np.arange(size))), shape=(laws, extra)
    )
    objective = np.zeros(extra)
    objective[:size] = -value.ravel()
    found = linprog(
        objective, A_ub=bound, b_ub=limit, A_eq=total, b_eq=np.ones(laws), bounds=(0, 1)
    )
    assert found.status == 0, found.message
    return -found.fun


def brute_force(instance: Instance, channel: np.ndarray) -> tuple[float, float]:
    """RAD and ReRo of the best attacks on a channel, by plain loops; passing allowed."""
    pi, w = instance.pi, instance.targets
    rad = rero = 0.0
    for output in channel.T:
        pbar = float(pi @ output)
        for x in set(instance.fiber.tolist()):
            gains, hits = ([], []) if instance.threat.must_guess else ([0.0], [0.0])
            for g in range(len(pi)):
                inside = (instance.fiber == x) & instance.success[:, g]
                gains.append(sum(w[z] * (output[z] - pbar) for z in np.flatnonzero(inside)))
                hits.append(sum(w[z] * output[z] for z in np.flatnonzero(inside)))
            rad += max(gains)
            rero += max(hits)
    return rad, rero


def random_channel(rng: np.random.Generator, m: int, outputs: int) -> np.ndarray:
    channel = rng.dirichlet(np.full(outputs, rng.choice([0.3, 1.0, 5.0])), size=m)
    if rng.random() < 0.3:
        channel[:, rng.integers(outputs)] = 0.0
        channel += 1e-3
    return channel / channel.sum(axis=1, keepdims=True)


# -- many digits -----------------------------------------------------------------------------------
def _digits(mu):
    return mp.workdps(40 + max(0, int(-2 * np.log10(mu))))


def _between(x, mu):
    """Phi(x + mu) - Phi(x)."""
    return (mp.erf((x + mu) / mp.sqrt(2)) - mp.erf(x / mp.sqrt(2))) / 2


def _quantile(a):
    return mp.sqrt(2) * mp.erfinv(2 * a - 1)


def gaussian_gap(mu, alpha):
    """1 - f(alpha) - alpha of mu-Gaussian DP."""
    with _digits(mu):
        return float(_between(_quantile(mp.mpf(alpha)), mp.mpf(mu)))


def gaussian_optimum(mu, m):
    """(m-1)/m (1 - m a) with f(a) = (m-1) a: nothing known, m equally likely records."""
    with _digits(mu):
        width, size = mp.mpf(mu), mp.mpf(m)
        # with a = (1 - t)/m that is 1 - f(a) - a = t
        start = _between(_quantile(1 / size), width)
        t = mp.findroot(
            lambda t: _between(_quantile((1 - t) / size), width) - t, (start, start * 0.99)
        )
        return float(t * (size - 1) / size)


# -- Rényi divergences ---------------------------------------------------------------------------
def renyi(p: np.ndarray, q: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """The divergence of p from q at these orders; order 1 is Kullback-Leibler."""
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(p), np.log(q)
    plain = float(np.sum(np.where(p > 0, p * (log_p - log_q), 0.0)))
    moment = np.log(np.exp(np.outer(orders, log_p) + np.outer(1 - orders, log_q)).sum(axis=1))
    return np.where(orders == 1, plain, moment / np.where(orders == 1, np.inf, orders - 1))


def moment_optimum(m: int, everything: bool, rho: float) -> float:
    """The largest RAD of a family of mechanisms that are rho-zero-concentrated, m equal records.

    A public level has a ratio r, and a random set of w records holds the true one so much more
    often that a pair has masses q, r q and 1 - q - r q at the ratios r, 1/r and 1: RAD and the
    moments are linear in the masses q of the levels. Orders are read densely, with a margin.
    """
    r = np.exp(np.linspace(0.0, 9.0 * np.sqrt(rho) + rho, 241)[1:])
    w = np.arange(1, m)[:, None] if everything else np.ones((1, 1))
    cost = (m / w + r * m / (m - w)).min(axis=0)
    rows, limits = [(m - 1) / m * cost, (r - 1) * np.log(r)], [1.0, rho]
    for k in 1.0 + np.geomspace(0.003, 40.0, 140) / np.sqrt(rho):
        log_moment = (k - 1) * k * rho * (1 - 1e-4)
        if log_moment < 300:
            rows.append(np.expm1(k * np.log(r)) + r * np.expm1(-k * np.log(r)))
            limits.append(np.expm1(log_moment))
    # a mass that alone breaks a limit by far is zero
    share = np.minimum(np.array(rows) / (r - 1) / np.array(limits)[:, None], 1e9)
    found = linprog(-np.ones(len(r)), A_ub=share, b_ub=np.ones(len(limits)))
    assert found.status == 0, found.message
    return -found.fun * (m - 1) / m
