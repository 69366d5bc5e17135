"""Would stratified or antithetic draws shorten the intervals of table releases? They hardly do.

Printed are variances of a mean over those of as many independent draws: of groups of 16 records
drawn evenly from the prior, and of pairs with the same record and opposite noise. Groups, and
pairs, are independent of each other, so intervals from their means would be valid.
"""

from __future__ import annotations

import numpy as np
from bench_tables import PAIRS, THIRD, table

from dprad import Threat
from dprad.data import patients
from dprad.exact.posterior import brackets, expanded
from dprad.game.question import Question
from dprad.mechanisms import Marginals

DRAWS, GROUP, BLOCK = 8192, 16, 64
NEIGHBOUR = Threat(knows=["age", "region", "smoker"], target=["diagnosis"])


def ratios(release, prior, threat):
    """Of stratified and of antithetic draws."""
    question = Question.of(prior, threat)
    ready, game = release.prepared(question), question.game
    weight, points = game.at_values(ready.read(question), game.pi)
    mass = np.asarray(weight.sum(axis=0)).reshape(-1)
    upto = np.cumsum(mass / mass.sum())
    rng = np.random.default_rng(0)

    def drawn(uniform):
        return points[np.minimum(np.searchsorted(upto, uniform), len(points) - 1)]

    def gains(rows):
        parts = [expanded(rows[a : a + BLOCK]) for a in range(0, len(rows), BLOCK)]
        logs = (ready.log_likelihood(part, points) for part in parts)
        return np.concatenate([brackets(game, weight, log)[0] for log in logs])

    alone = gains(ready.sample(drawn(rng.random(DRAWS)), rng)).var()
    evenly = (np.arange(GROUP) + rng.random((DRAWS // GROUP, 1))) / GROUP
    groups = gains(ready.sample(drawn(evenly.reshape(-1)), rng)).reshape(-1, GROUP).mean(axis=1)
    kinds = drawn(rng.random(DRAWS // 2))
    rows = ready.sample(kinds, rng)
    own, at = np.zeros_like(rows), 0
    for part in ready.parts:
        place = part.place[kinds]
        own[np.arange(len(rows)), at + part.cell[place]] = part.value[place]
        at += part.width
    pairs = (gains(rows) + gains(2 * own - rows)) / 2
    return GROUP * groups.var() / alone, 2 * pairs.var() / alone


def main():
    both = [["age", "diagnosis"], ["region", "diagnosis"]]
    for noise in ("laplace", "geometric", "gaussian"):
        amount = {"rho": 0.5} if noise == "gaussian" else {"epsilon": 1.0}
        release = Marginals(both, noise=noise, neighbours="add-remove", **amount)
        for name, threat in (("nothing known", Threat()), ("a neighbour", NEIGHBOUR)):
            groups, pairs = ratios(release, patients.prior(), threat)
            print(f"patients, {noise}, {name}: stratified {groups:.2f}, antithetic {pairs:.2f}")
    release = Marginals(PAIRS, noise="gaussian", rho=0.5, neighbours="replace-one")
    for name, threat in (("nothing known", Threat()), ("third column", THIRD)):
        groups, pairs = ratios(release, table(40, 8, 5), threat)
        print(f"1,600 records, {name}: stratified {groups:.2f}, antithetic {pairs:.2f}")


if __name__ == "__main__":
    main()
