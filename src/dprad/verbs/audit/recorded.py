"""audit_outputs: an audit of runs that somebody has made already; nothing is called.

A table has one row per run: a secret (which data set it was), and what came out. Bets are placed
row by row as in `audit`. They need a secret that is a fair coin given all before; so rows are taken
in the order of fresh coin flips, the next one of the secret that the coin shows, until a secret has
none left (`drawn`). Given their secrets rows are independent, so this is right whatever decided
on the secrets: coins, or a design with equal numbers.

In one run (`one_run=True`) the rows are many secrets of a single data set. Then the coins must be
those of whoever made the data set, and are checked.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from dprad import bounds
from dprad.errors import DpradError, number, record
from dprad.game.question import Question
from dprad.model.audits import Audit
from dprad.model.guarantees import Guarantee, PureDP
from dprad.model.priors import Prior
from dprad.numerics.arrays import FloatArray, IntArray
from dprad.numerics.random import Seed, seed
from dprad.verbs.audit.conclude import extra, risk_interval
from dprad.verbs.audit.many import bet_on_all
from dprad.verbs.audit.one_run import one_run as in_one_run
from dprad.verbs.audit.plan import CONVERTED, NOBODY, check_claim
from dprad.verbs.audit.rows import Case, Runs, Said, bet
from dprad.verbs.audit.versus import candidates, choose_pair

# Rows of each secret that are needed at least; the share of rows that chooses among more than two
# secrets, and most rows of each.
FEWEST, STUDY, MOST = 20, 0.1, 400


def audit_outputs(
    table: Any,
    *,
    claim: Guarantee,
    secret: str = "secret",
    absent: Any = NOBODY,
    confidence: float = 0.95,
    bits: bool = False,
    rng: Seed = 0,
    one_run: bool = False,
) -> Audit:
    """Test a promise on runs that were made already: a table of secrets and outputs.

    Parameters
    ----------
    table
        A data frame, the path of a CSV or Parquet file, or a list of pairs (secret, output). One
        row per run. Rows must be independent given their secrets, and all runs must be there.
    claim
        The claimed guarantee.
    secret
        The column that says which data set it was: two values, or more. All other columns are
        outputs, such as the score of a canary.
    absent
        The value of the secret that means: without the person. An add-remove claim is then tested
        as it stands. Default: "out" or "absent", if the column has it.
    confidence
        Confidence of the verdict, strictly between 0 and 1.
    bits
        Also look at the lowest bits of floating-point outputs.
    rng
        Seed, `SeedSequence` or `Generator`, for the order of the rows.
    one_run
        The rows are not runs but secrets of one data set that was released once: each was decided
        by its own fair coin (with more than two values: all equally likely). For PureDP and
        ApproxDP.

    Returns
    -------
    Audit
        As of `audit`; there is no model-based estimate.

    Examples
    --------
    >>> import dprad, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> runs = [(z, z + rng.laplace(0, 0.25)) for z in [0, 1] * 500]
    >>> result = dprad.audit_outputs(runs, claim=dprad.PureDP(1.0, neighbours="replace-one"))
    >>> result.verdict, 2 < result.epsilon_lower < 4
    ('violated', True)

    """
    begin = time.monotonic()
    check_claim(claim)
    alpha = 1.0 - number(confidence, "confidence", low=0, high=1)
    if not 0 < alpha < 1:
        raise DpradError(f"confidence must lie strictly between 0 and 1, but is {confidence!r}.")
    case = Case.of(Runs.of(table, secret, absent), claim, alpha, bits, seed(rng))
    if one_run:
        said = in_one_run(case)
    elif len(case.runs.values) == 2:
        said = _two(case, (0, 1), {}, alpha)
    else:
        said = _several(case)
    return _audit(case, said, time.monotonic() - begin)


# -- many runs -------------------------------------------------------------------------------------
def drawn(secret: IntArray, chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """Rows in the order of independent draws of the secret, until one has none left.

    When to stop is known from draws so far, never from the next one.
    """
    draws = rng.choice(len(chances), size=len(secret), p=chances)
    rows, end = np.zeros(len(secret), dtype=np.intp), len(secret)
    places = [np.flatnonzero(draws == z) for z in range(len(chances))]
    own = [rng.permutation(np.flatnonzero(secret == z)) for z in range(len(chances))]
    for where, mine in zip(places, own, strict=True):
        if len(where) >= len(mine):
            end = min(end, int(where[len(mine) - 1]) + 1)
        some = min(len(where), len(mine))
        rows[where[:some]] = mine[:some]
    return rows[:end]


def _two(case: Case, pair: tuple[int, int], studied: dict[int, IntArray], error: float) -> Said:
    """Two data sets; rows in `studied` are learned from, not bet on."""
    runs, session = case.runs, case.session()
    left = np.isin(runs.secret, pair)
    for second, z in enumerate(pair if studied else ()):
        session.study(runs.take(studied[z]), np.full(len(studied[z]), second))
        left[studied[z]] = False
    rows = np.flatnonzero(left)
    secret = (runs.secret[rows] == pair[1]).astype(np.intp)
    if min(np.bincount(secret, minlength=2)) < FEWEST:
        raise DpradError(
            f"an audit needs at least {FEWEST} rows of each secret, and more to learn from."
        )
    order = drawn(secret, np.array([0.5, 0.5]), case.random(1))
    said = bet(case, session, runs.take(rows[order]), secret[order], error)
    notes = [_used(len(order), len(rows))]
    if len(runs.values) > 2:
        named = [_named(runs, z) for z in sorted(pair, reverse=runs.in_out)]
        notes.append(f"compared {named[0]} and {named[1]} of {len(runs.values):,}")
    learned = sum(map(len, studied.values()))
    return replace(said, notes=(*notes, *said.notes), studied=learned)


def _used(bet: int, rows: int) -> str:
    return (
        f"{bet:,} of {rows:,} rows were taken in the order of fair coin flips, until a secret had "
        "none left"
    )


def _named(runs: Runs, z: int) -> str:
    if runs.in_out and z == 0:
        return "a data set without it"
    value = runs.values[z]
    return f"record {record(value.item() if isinstance(value, np.generic) else value, z + 1)}"


def _several(case: Case) -> Said:
    """More than two secrets: the two easiest to tell apart; and all, if the claim is pure."""
    runs, rng = case.runs, case.random(0)
    times = np.bincount(runs.secret)
    if times.min() < 2 * FEWEST:
        raise DpradError(
            f"with more than two secrets an audit needs at least {2 * FEWEST} rows of each, but "
            "one has fewer. Leave it out, or check that the column is the secret."
        )
    some = candidates(times.astype(float), rng)
    some = np.unique(np.r_[0, some]) if runs.in_out else some
    first: dict[int, IntArray] = {}
    for z in some.tolist():
        mine = rng.permutation(np.flatnonzero(runs.secret == z))
        first[z] = mine[: min(MOST, max(FEWEST, int(STUDY * len(mine))))]
    samples = {z: runs.take(where) for z, where in first.items()}
    pair = choose_pair(samples, case.tested, case.seed, 0 if runs.in_out else None)
    chosen = {z: first[z] for z in pair}
    if runs.in_out or not isinstance(case.tested, PureDP):
        return _two(case, pair, chosen, case.alpha)
    half, prior = case.alpha / 2, times / times.sum()
    order = drawn(runs.secret, prior, case.random(2))
    every = bet_on_all(case, order, prior, half)
    every = replace(every, notes=(_used(len(order), len(runs.secret)), *every.notes))
    return every.beside(_two(case, pair, chosen, half))


# -- the result ------------------------------------------------------------------------------------
def _audit(case: Case, said: Said, seconds: float) -> Audit:
    question = Question.of(Prior.uniform(said.secrets))
    game = question.table("audit")
    converted = case.claim.neighbours != case.tested.neighbours
    return Audit(
        verdict="violated" if said.violated else "consistent",
        epsilon_lower=said.low,
        epsilon_claimed=case.point[0],
        delta=case.point[1],
        rad_claimed=bounds.least(bounds.evaluate(case.claim, game), "rad")[1],
        epsilon_estimate=None,
        epsilon_interval=None,
        rad=extra(said.tally, game),
        rad_interval=risk_interval(said.tally, game, case.alpha, sequential=True),
        confidence=1.0 - case.alpha,
        trials=said.tally.runs,
        studied=said.studied,
        passes=said.tally.passes,
        successes=said.tally.successes,
        in_out=case.runs.in_out,
        evidence=said.evidence,
        wealth=said.wealth,
        would_find=said.would_find,
        carried=said.carried,
        differ=said.differ,
        sequential=False,
        claim=case.claim.describe(),
        threat=question.describe(),
        prior=repr(question.prior),
        notes=((CONVERTED,) if converted else ()) + said.notes,
        seconds=seconds,
    )
