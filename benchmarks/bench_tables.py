"""Table releases of 74 x 16 x 7 = 8,288 records: all one- and two-way marginals.

Targets, on one core: a draw in at most 1 ms; the risk within 0.002 in under 10 s; a calibration in
under 60 s; less than 500 MB at a million cells. The other thing in the run is the same posterior
from a matrix of records x cells. All times are processor time.
"""

from __future__ import annotations

import itertools
import resource
import time

import numpy as np

from dprad import Prior, Threat, assess, calibrate
from dprad.game.question import Question
from dprad.mechanisms import Counts, Marginals

PAIRS = [["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["b", "c"]]
THIRD = Threat(knows=["a", "b"], target=["c"])


def table(*sizes):
    """A prior in which the last column depends on the others."""
    rng = np.random.default_rng(0)
    weight = rng.dirichlet(np.ones(sizes[-1]), size=sizes[:-1])
    for axis, size in enumerate(sizes[:-1]):
        shape = [1] * len(sizes)
        shape[axis] = size
        weight = weight * rng.dirichlet(np.full(size, 3.0)).reshape(shape)
    records = itertools.product(*(range(size) for size in sizes))
    return Prior.from_counts(dict(zip(records, weight.reshape(-1).tolist(), strict=True)),
                             columns=list("abc"))  # fmt: skip


def spent(function):
    """Processor time, and the result."""
    begin = time.process_time()
    value = function()
    return time.process_time() - begin, value


def dense(release, prior, draws):
    """Seconds a draw with a matrix of what every record adds to every cell."""
    ready = release.prepared(Question.of(prior))
    matrix = np.zeros((ready.kinds, ready.width))
    begin = 0
    for part in ready.parts:
        matrix[np.arange(ready.kinds), begin + part.cell[part.place]] += part.value[part.place]
        begin += part.width
    scale = np.concatenate([np.full(part.width, part.noise.scale) for part in ready.parts])
    rng = np.random.default_rng(0)
    rows = ready.sample(rng.choice(ready.kinds, size=draws), rng)

    def posterior():
        for row in rows:
            np.exp(-(((row - matrix) / scale) ** 2).sum(axis=1) / 2)

    return spent(posterior)[0] / draws


def main():
    prior = table(74, 16, 7)
    release = Marginals(PAIRS, noise="gaussian", rho=0.5, neighbours="replace-one")
    assess(release, prior=prior, trials=200)  # imports
    few = spent(lambda: assess(release, prior=prior, threat=THIRD, trials=200))[0]
    seconds, risk = spent(lambda: assess(release, prior=prior, threat=THIRD, trials=2_200))
    print("8,288 records, all one- and two-way marginals, Gaussian noise, mu = 1")
    draw = (seconds - few) / 2_000
    print(f"  a draw, both average and most exposed: {1000 * draw:.2f} ms (target <= 1)")
    print(f"  dense / ours: {dense(release, prior, 10) / draw:.0f}")
    for name, threat in (("whole record", Threat()), ("third column given two", THIRD)):
        seconds, risk = spent(lambda: assess(release, prior=prior, threat=threat, trials=2_000))  # noqa: B023
        bound = assess(release.guarantee, prior=prior, threat=threat).rad
        half = (risk.interval[1] - risk.interval[0]) / 2
        print(f"  {name}: {risk.rad:.4f} +- {half:.4f} in {seconds:.1f} s (target 0.002 in 10 s), "
              f"bound of the guarantee alone {bound:.4f}")  # fmt: skip
    fixed = {"by": PAIRS, "noise": "gaussian", "neighbours": "replace-one"}
    seconds, plan = spent(
        lambda: calibrate(Marginals, max_risk=0.1, prior=prior, threat=THIRD, trials=1_000, **fixed)
    )
    print(f"  calibrated: rho = {plan.value:.4f}, risk {plan.risk.rad:.4f}, in {seconds:.1f} s "
          "(target 60 s)")  # fmt: skip
    many = table(100, 100, 100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    seconds, risk = spent(
        lambda: assess(Counts(by=["a", "b", "c"], epsilon=1.0, neighbours="add-remove"),
                       prior=many, threat=THIRD, trials=20)
    )  # fmt: skip
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"a million cells: {most:.0f} MB at most, {before:.0f} MB of them before (target < 500); "
          f"{seconds:.1f} s for 20 draws")  # fmt: skip


if __name__ == "__main__":
    main()
