"""simulate_outsider: an attacker who knows the population, but not the other people in the tables.

They see the published tables, in which everybody else is counted too, and know how the population
is distributed and how many people there are. The others are drawn anew in every run. The attack
takes the others and the noise together for one normal distribution with the right mean and
covariance S, and weighs a record that adds x to the cells by
``x' S^-1 (o - mean) - x' S^-1 x / 2``.

The result is what this attack gained in these runs: an estimate, and not a bound. A better attack
may gain more, and so does whoever knows some of the others; the most that anybody can gain is
``assess`` of the same release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.attacks.optimal import best_attack
from dprad.errors import DpradError, whole
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.tables import Published, TableRelease
from dprad.model.priors import Prior
from dprad.model.results import Risk
from dprad.model.threats import Threat
from dprad.numerics.arrays import Column, FloatArray, IntArray
from dprad.numerics.random import Seed
from dprad.verbs.simulate import simulate

# Most cells of all tables together: their covariance is inverted.
CELLS = 2_000
_KNOWN = (
    "The attacker knows the population and how many people there are, but none of the others; who "
    "knows more may gain more. This is an estimate of one attack, not a bound: the safe number is "
    "that of dprad.assess, for an attacker who knows everybody else."
)


def simulate_outsider(
    release: TableRelease,
    *,
    prior: Prior,
    people: int,
    threat: Threat | None = None,
    trials: int = 10_000,
    confidence: float = 0.95,
    rng: Seed = 0,
) -> Risk:
    """What an attacker gains from tables who knows only the population: an estimate, not a bound.

    Parameters
    ----------
    release
        Tables, such as `mechanisms.Counts`, whose keys are public.
    prior
        The population, from which everybody in the tables is drawn.
    people
        How many people are in the tables.
    threat
        What the attacker knows about the person, and guesses, as for `assess`.
    trials
        Number of runs.
    confidence
        Confidence level of the interval, between 0 and 1.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.

    Returns
    -------
    Risk
        Of kind "estimate". For the safe number ask `assess`.

    Examples
    --------
    Among a thousand people one of two equally likely answers is hard to see, even without noise.

    >>> import dprad
    >>> from dprad.mechanisms import Counts
    >>> table = Counts(by=["value"], epsilon=20.0, neighbours="add-remove")
    >>> prior = dprad.Prior.uniform(2)
    >>> dprad.simulate_outsider(table, prior=prior, people=1000).interval[1] < 0.05
    True
    >>> dprad.assess(table, prior=prior).rad > 0.49
    True

    """
    if not isinstance(release, TableRelease):
        raise DpradError("simulate_outsider takes a table release, such as mechanisms.Counts.")
    question = Question.of(prior, threat)
    question.table("simulate_outsider")
    ready = release.prepared(question)
    if ready.shown:
        raise DpradError("simulate_outsider takes tables whose keys are public: no threshold.")
    if ready.width > CELLS:
        raise DpradError(
            f"simulate_outsider takes {CELLS:,} cells at most, but there are {ready.width:,}."
        )
    if ready.silent or any(part.noise.silent for part in ready.parts):
        raise DpradError("simulate_outsider takes tables with finite noise on every cell.")
    seen = _Crowd.of(ready, prior.table, whole(people, "people", low=1))
    attack = best_attack(seen, question)
    found = simulate(
        seen, attack, prior=prior, threat=threat, trials=trials, confidence=confidence, rng=rng
    )
    return replace(found, doubts=(_KNOWN,), assumptions=(_KNOWN, *found.assumptions))


@dataclass(frozen=True, eq=False)
class _Crowd(Mechanism):
    """Tables about one person and others who are drawn anew, less what is expected of them.

    `added` is what each different record adds to all cells; `score` is S^-1 times that, and `half`
    the half of ``x' S^-1 x``.
    """

    tables: Published
    mass: FloatArray
    others: int
    added: FloatArray
    score: FloatArray
    half: FloatArray

    @classmethod
    def of(cls, tables: Published, pi: FloatArray, people: int) -> _Crowd:
        """O(cells^3), once."""
        mass = np.bincount(tables.place, weights=pi, minlength=tables.kinds).astype(float)
        mass /= mass.sum()
        blocks, spread = [], []
        for part in tables.parts:
            once = np.zeros((tables.kinds, part.cells))
            once[np.arange(tables.kinds), part.cell[part.place]] = part.value[part.place]
            blocks.append(np.tile(once, part.times))
            spread.append(np.full(part.width, part.noise.line().variance()))
        added = np.concatenate(blocks, axis=1)
        centred = added - mass @ added
        covariance = (people - 1) * (centred.T * mass) @ centred + np.diag(np.concatenate(spread))
        score = np.linalg.solve(covariance, added.T)
        return cls(tables, mass, people - 1, added, score, (added * score.T).sum(axis=1) / 2)

    @property
    def guarantee(self) -> None:
        """Not asked for."""
        return

    @property
    def width(self) -> int:
        """Numbers in an output."""
        return self.tables.width

    def read(self, question: Question) -> Column:
        """The number of each record among the different ones."""
        return self.tables.read(question)

    def sample(self, records: Any, rng: np.random.Generator) -> FloatArray:
        """Noise, the person, and the others less their mean. O(n kinds cells)."""
        kinds: IntArray = np.asarray(records, dtype=np.intp)
        crowd = rng.multinomial(self.others, self.mass, size=len(kinds)) - self.others * self.mass
        return np.asarray(self.tables.sample(kinds, rng) + crowd @ self.added)

    def log_likelihood(self, outputs: Any, records: Any) -> FloatArray:
        """That of the normal distribution with the same mean and covariance, up to a constant."""
        rows, kinds = np.asarray(outputs, dtype=float), np.asarray(records, dtype=np.intp)
        shape = np.broadcast_shapes(rows.shape[:-1], kinds.shape)
        if rows.ndim > 1 and rows.shape[-2] == 1 and kinds.ndim == 1:
            return np.asarray((rows[..., 0, :] @ self.score)[:, kinds] - self.half[kinds])
        rows = np.broadcast_to(rows, (*shape, self.width))
        each = np.broadcast_to(kinds, shape)
        return np.asarray(np.einsum("...j,...j->...", rows, self.score.T[each]) - self.half[each])

    def describe(self) -> dict[str, Any]:
        """What is published, as it was described."""
        return self.tables.describe()
