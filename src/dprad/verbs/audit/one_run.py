"""One run with many secrets: what right guesses of them say.

n fair coins decide on n records of one data set; it is released once, and coins are guessed from
the output. Let r guesses be made (which ones may depend on the output, not on the coins) and W of
them be right. If the release is (epsilon, delta)-DP,

    P[W >= v] <= P[B >= v] + 2 n delta max_i P[v > B >= v - i] / i,  B ~ Bin(r, e^eps/(1 + e^eps)).

That is Theorem 5.2 of Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run"
(2023). For a pure claim the second term vanishes, and the first follows from Theorem H4 of
docs/theory/audit.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dprad.errors import DpradError
from dprad.model.guarantees import ApproxDP
from dprad.numerics.arrays import Column, FloatArray, IntArray
from dprad.verbs.audit import certificates
from dprad.verbs.audit.coordinates import Reader
from dprad.verbs.audit.findable import Tested, least_found
from dprad.verbs.audit.flatten import huge
from dprad.verbs.audit.learners import together
from dprad.verbs.audit.many import bet_on_all
from dprad.verbs.audit.rows import Case, Runs, Said, bet
from dprad.verbs.audit.session import GRID, first_crossing
from dprad.verbs.audit.tally import Tally

# How unlikely the secrets may be if they are fair coins.
UNFAIR = 1e-6
# The share of rows that a score is learned from, if there is not one column of numbers.
LEARNED = 0.25
STEINKE = "guesses in one run (Steinke, Nasr and Jagielski 2023, Theorem 5.2)"
# A score with more digits does not come twice by chance.
DIGITS = 6
COPIES = (
    "the same numbers come again and again. If rows are copies of others, leave these out: a copy "
    "has no coin of its own, and the verdict would be wrong"
)
HALF = (
    "exactly half of the secrets are of each kind: if that was arranged, and not left to a coin "
    "for each, the verdict does not hold"
)
# The share of the error that bets get beside guesses, which need nothing to be learned.
BETS = 0.25
# The fewest guesses that are tried, and the grid of epsilons (coarser than for bets).
FEWEST, COARSE = 12, GRID[::4]


def chance_of(right: int, guesses: int, secrets: int, epsilon: float, delta: float) -> float:
    """The most likely that so many guesses are right under (epsilon, delta)-DP; at most 1.

    Examples
    --------
    >>> round(chance_of(100, 100, 100, 3.0, 0.0), 5), chance_of(100, 100, 100, 3.0, 1e-3) < 0.21
    (0.00776, True)

    """
    from scipy.special import bdtr, expit

    if right <= 0:
        return 1.0
    sure = float(expit(epsilon))
    # P[B <= v - 1 - i] for i = 0 .. v
    upto = np.r_[bdtr(np.arange(right - 1, -1, -1), guesses, sure), 0.0]
    beyond = float(bdtr(guesses - right, guesses, 1.0 - sure))  # as many wrong ones, or fewer
    if delta == 0.0:
        return beyond
    near = float(np.max((upto[0] - upto[1:]) / np.arange(1, right + 1)))
    return min(1.0, beyond + 2.0 * secrets * delta * near)


@dataclass(frozen=True, slots=True)
class Guesses:
    """Several ways to guess, fixed before the coins were seen: how many guesses, how many of them
    were right, and the way's share of the error.
    """

    secrets: int
    ways: tuple[tuple[int, int, float], ...]

    @classmethod
    def of(cls, score: FloatArray, secret: IntArray) -> Guesses:
        """High scores are guessed to be of one secret, low ones of the other: of all rows, of the
        farther half, quarter ... on each side; and the other way round.
        """
        order = np.argsort(score, kind="stable")
        below, share, ways = split(score[order]), 0.25, []
        sides = [below, len(score) - below]
        while sum(sides) >= min(FEWEST, len(score)):
            low, high = order[: sides[0]], order[len(order) - sides[1] :]
            right = int(np.count_nonzero(secret[low] == 0) + np.count_nonzero(secret[high] == 1))
            ways += [(sum(sides), right, share), (sum(sides), sum(sides) - right, share)]
            sides, share = [n // 2 for n in sides], share / 2
        return cls(len(score), tuple(ways))

    def refutes(self, epsilon: float, delta: float, alpha: float) -> bool:
        """Whether (epsilon, delta)-DP is refuted."""
        return any(
            chance_of(right, made, self.secrets, epsilon, delta) <= share * alpha
            for made, right, share in self.ways
        )

    def refuted(self, delta: float, alpha: float) -> float:
        """The largest epsilon such that it and all smaller ones are refuted."""
        return first_crossing(lambda e: float(self.refutes(e, delta, alpha)), 0.5, COARSE)

    @property
    def plainest(self) -> tuple[int, int]:
        """Guesses and right ones if all are guessed, in the better direction."""
        made = self.ways[0][0]
        return made, max(right for n, right, _ in self.ways if n == made)


def split(ordered: FloatArray) -> int:
    """How many of these scores, in order, are low: two groups with the least squares around their
    means, after the outer twentieths are drawn in.

    Examples
    --------
    >>> split(np.array([0.1, 0.2, 0.3, 5.0, 5.1]))
    3

    """
    size = len(ordered)
    place = np.clip(np.nan_to_num(ordered, nan=1e150), -1e150, 1e150)
    x = np.clip(place, place[size // 20], place[size - 1 - size // 20])
    x = (x - x[0]) / max(float(x[-1] - x[0]), 1e-300)
    low, many = np.cumsum(x)[:-1], np.arange(1, size)
    between = low**2 / many + (x.sum() - low) ** 2 / (size - many)
    return int(np.argmax(between)) + 1


def least_told(secrets: int, epsilon: float, delta: float, alpha: float) -> float | None:
    """The least epsilon that would be refuted in 19 of 20 audits if guesses were right as often as
    those of randomised response with it; None if not even if all were.
    """
    from scipy.special import logit

    level = alpha * 0.25
    counts = np.arange(secrets // 2, secrets + 1)
    low, high = 0, len(counts) - 1
    if chance_of(secrets, secrets, secrets, epsilon, delta) > level:
        return None
    while low < high:
        middle = (low + high) // 2
        found = chance_of(int(counts[middle]), secrets, secrets, epsilon, delta) <= level
        low, high = (low, middle) if found else (middle + 1, high)
    share = certificates.lower_proportion(int(counts[high]), secrets, 0.95)
    return max(0.0, float(logit(share)))


# -- the audit -------------------------------------------------------------------------------------
def one_run(case: Case) -> Said:
    """Secrets of one data set: bets and guesses under a pure claim, else guesses."""
    runs = case.runs
    if not isinstance(case.claim, ApproxDP):
        raise DpradError(
            "in one run a claim must be PureDP or ApproxDP: nothing is proved for others. Test a "
            "point of the curve, dprad.ApproxDP(claim.epsilon_at(delta), delta, neighbours=...), "
            "or many runs."
        )
    _check_coins(runs)
    pure, several = case.point[1] == 0, len(runs.values) > 2
    if several and not pure:
        raise DpradError("in one run a claim with a delta needs a secret with two values.")
    rows = len(runs.secret)
    order = case.random(3).permutation(rows)
    single = isinstance(runs.outputs, np.ndarray) and runs.outputs.ndim == 1
    numbers = single and runs.outputs.dtype.kind in "iufb" and not huge(runs.outputs)
    if several:
        guessed = single and set(runs.outputs.tolist()) <= set(runs.values.tolist())
        error = case.alpha / 2 if guessed else case.alpha
        said = bet_on_all(case, order, np.full(len(runs.values), 1 / len(runs.values)), error)
        said = said.beside(_guessed(case, error)) if guessed else said
    elif not pure:
        said = _guesses(case, order, numbers, case.alpha)
    else:
        share = BETS if numbers else 1.0
        said = bet(case, case.session(), runs.take(order), runs.secret[order], share * case.alpha)
        if numbers:
            said = said.beside(_guesses(case, order, True, (1.0 - share) * case.alpha), share)
    note = f"one run: the {rows:,} rows are secrets of a single data set"
    copies = (COPIES,) if single and _copied(runs.outputs) else ()
    half = (HALF,) if not several and 2 * np.count_nonzero(runs.secret) == rows else ()
    return replace(said, notes=(note, *half, *copies, *said.notes))


def _copied(outputs: Column) -> bool:
    """Whether long numbers come again and again."""
    if outputs.dtype.kind != "f":
        return False
    values = np.unique(outputs)
    long = values[np.round(values, DIGITS) != values]
    return len(long) >= FEWEST and 2 * len(values) <= len(outputs)


def _check_coins(runs: Runs) -> None:
    from scipy.stats import binomtest, chisquare

    times = np.bincount(runs.secret)
    if len(times) == 2:
        luck = binomtest(int(times[0]), int(times.sum())).pvalue
    else:
        luck = chisquare(times).pvalue
    if luck < UNFAIR:
        raise DpradError(
            "in one run every secret must have been decided by its own fair coin (all values "
            "equally likely): the bets are paid at these odds. These secrets were not."
        )


def _guesses(case: Case, order: IntArray, numbers: bool, error: float) -> Said:
    """By a score: the column of numbers, or one that is learned from the first rows."""
    runs, (epsilon, delta) = case.runs, case.point
    studied, notes = 0, tuple[str, ...]()
    if numbers:
        score, secret = runs.take(order).astype(float), runs.secret[order]
    else:
        studied = int(LEARNED * len(order))
        reader = Reader(case.bits)
        first, known = reader.rows(runs.take(order[:studied])), runs.secret[order[:studied]]
        (first,) = reader.settle([first], [known])
        rest, secret = reader.rows(runs.take(order[studied:])), runs.secret[order[studied:]]
        notes = reader.notes()
        if len(np.unique(known)) < 2 or studied < 8:
            raise DpradError("there are too few rows to learn a score from; give one column.")
        score = together(first, known, case.seed)(rest)
    guesses = Guesses.of(score, secret)
    made, right = guesses.plainest
    return Said(
        evidence=STEINKE,
        violated=guesses.refutes(epsilon, delta, error),
        low=guesses.refuted(delta, error),
        tally=Tally(len(score), len(score) - made, {0.5: (made, right)}),
        would_find=least_told(len(score), epsilon, delta, error),
        notes=notes,
        studied=studied,
    )


def _guessed(case: Case, error: float) -> Said:
    """Outputs that are guesses of the secret: right ones, by Clopper and Pearson (Theorem H4)."""
    runs, size = case.runs, len(case.runs.values)
    told = runs.values[runs.secret]
    right = sum(y == z for y, z in zip(runs.outputs.tolist(), told.tolist(), strict=True))
    made = {1.0 / size: (len(told), int(right))}
    low = certificates.refuted(made, error, sequential=False)
    return Said(
        evidence="guesses of the secrets of one run",
        violated=low > case.point[0],
        low=low,
        tally=Tally(len(told), 0, made),
        would_find=least_found(Tested(case.tested, case.point, error), len(told), 1.0 / size),
        notes=(),
        secrets=size,
    )
