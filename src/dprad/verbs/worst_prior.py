"""worst_prior: for which population is a mechanism riskiest?

RAD grows with 1 - kappa, so the paper's rule (two equally likely records) is not the worst case,
but the best pair of records is a good start. Promising priors are found on a sketch of the
mechanism (`ascent.py`) and assessed, and the best is improved one record at a time. Where there is
no sketch, all pairs are tried, and the best improved. The result is a lower bound on the worst
case, reported with an upper bound that is proven for every prior.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dprad.errors import DpradError, whole
from dprad.exact.likelihood import remembered
from dprad.game.question import Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.foreign import as_mechanism
from dprad.model.guarantees import Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Risk, WorstPrior
from dprad.model.threats import Threat
from dprad.numerics.arrays import FloatArray
from dprad.numerics.random import Seed, seed
from dprad.runtime.progress import Meter, Stop
from dprad.verbs.ascent import Sketch
from dprad.verbs.assess import answer, assess, sampled

# Most priors assessed: where the risk is exact, and where it is an estimate.
BUDGET, ROUGH_BUDGET = 6_000, 500
# Fewest draws for the risk of the prior that was found, and the confidence of its interval.
FINAL, CONFIDENCE = 20_000, 0.95
# Seconds after which a search says how far it is, unless told otherwise.
QUIET = 5.0
# Share of the budget for pairs, and the number of pairs from which the search climbs.
FOR_PAIRS, KEPT = 0.5, 3
# Where risks are estimates: how many priors are compared again, with how many times the draws.
LEADING, LONGER = 4, 4
# Steps by which a record's probability is changed.
STEPS = (0.5, 0.2, 0.05, 0.01, 0.002)
FINE = (*STEPS[2:], 4e-4, 1e-4)


@remembered()
def worst_prior(
    mechanism: Any,
    *,
    threat: Threat | None = None,
    size: int | None = None,
    values: Iterable[Any] | None = None,
    trials: int = 4_000,
    rng: Seed = 0,
    max_seconds: float | None = None,
    progress: bool | None = None,
) -> WorstPrior:
    """Search for the prior with the largest extra risk.

    Costs some hundred calls of `assess`, at most 6,000 (500 where the risk is an estimate). The
    result says how many priors were tried, and whether the search ended before it was done.

    Parameters
    ----------
    mechanism
        A mechanism, as for `assess`.
    threat
        The attacker, as for `assess`.
    size
        The number of possible records. A categorical mechanism has values 0, 1, ... (default: all
        of them). A numeric one gets evenly spaced numbers within its clamp, bounds or sensitivity
        (default: 10).
    values
        The possible records themselves, instead of `size`.
    trials
        Number of draws, where the risk is estimated. The risk of the prior found is assessed again,
        with at least 20,000.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.
    max_seconds
        Stop after this many seconds with the riskiest prior found by then.
    progress
        Whether to report progress on standard error. Default: if it takes more than 5 seconds.

    Returns
    -------
    WorstPrior
        ``worst.prior`` was found and has risk ``worst.risk``, so the worst case is at least this.
        ``worst.bound`` is proven for every prior.

    Examples
    --------
    >>> import dprad
    >>> worst = dprad.worst_prior(dprad.mechanisms.GRR(epsilon=1.0, size=10))
    >>> round(worst.risk.rad, 3)        # the uniform prior: 0.132, not the two-point one: 0.073
    0.132

    """
    threat = Threat() if threat is None else threat
    if isinstance(mechanism, Guarantee):
        raise DpradError(
            "worst_prior takes a mechanism. Assess a guarantee for every prior at once: "
            "assess(guarantee, prior=Prior.unknown())."
        )
    stop = Stop(time.monotonic(), max_seconds)
    subject, start = as_mechanism(mechanism, "worst_prior"), seed(rng)
    support = _values(subject, size) if values is None else _given(values, size)
    promise = subject.guarantee
    if promise is None:
        raise DpradError(
            "worst_prior needs the promise of the mechanism, for a bound that holds for every "
            "prior: guarantee=..."
        )
    bound = assess(promise, prior=Prior.unknown(), threat=threat)

    def made(weight: FloatArray) -> Prior:
        return Prior.from_counts(dict(zip(support, weight.tolist(), strict=True)))

    def risk(weight: FloatArray) -> tuple[float, bool]:
        found = again(weight, trials, 0)
        return found.rad, found.kind == "estimate"

    def again(weight: FloatArray, draws: int, which: int) -> Risk:
        sampling = sampled(draws, CONFIDENCE, start + which)
        return answer(subject, Question.of(made(weight), threat), sampling, own=False)

    search = _Search(risk, len(support), progress, stop)
    every = Question.of(made(np.ones(len(support))), threat).listed
    best = search.best(Sketch.of(subject.prepared(every), every, start))
    if search.rough and not stop.now():
        # the largest of many estimates was also lucky: compare the leading ones on longer runs
        best = max(search.leading(), key=lambda weight: again(weight, LONGER * trials, 1).rad)
    prior, final = made(best), again(best, max(trials, FINAL), 2)
    tried, stopped = len(search.seen), search.spent
    return WorstPrior(prior=prior, risk=final, bound=bound, tried=tried, stopped=stopped)


def _values(mechanism: Mechanism, size: int | None) -> list[Any]:
    count = 10 if size is None else whole(size, "size", low=1)
    values = mechanism.spread(count)
    own = values == list(range(len(values)))  # codes, which are given by the mechanism
    if size is not None and own and len(values) != count:
        raise DpradError(f"size must be that of the mechanism, {len(values)}, but is {size!r}.")
    return values


def _given(values: Iterable[Any], size: int | None) -> list[Any]:
    """Distinct records, as given."""
    if size is not None:
        raise DpradError("give either size or values.")
    try:
        given = [v.item() if isinstance(v, np.generic) else v for v in values]
        distinct = list(dict.fromkeys(given))
    except TypeError:
        raise DpradError("values must be a list of records, but is something else.") from None
    if len(distinct) < max(len(given), 1):
        raise DpradError("values must be distinct records, at least one.")
    return distinct


class _SpentError(Exception):
    """The budget is used up, or the time."""


class _Search:
    """Priors that were assessed, and the riskiest of them."""

    def __init__(
        self,
        risk: Callable[[FloatArray], tuple[float, bool]],
        size: int,
        progress: bool | None,
        stop: Stop,
    ) -> None:
        self.assess, self.size, self.progress, self.stop = risk, size, progress, stop
        self.seen: dict[bytes, float] = {}
        self.top: tuple[float, FloatArray] = (-1.0, np.full(size, 1.0 / size))
        self.budget, self.rough, self.spent = BUDGET, False, False
        self.meter = Meter(progress is True, BUDGET, time.monotonic(), what="priors")

    def best(self, sketch: Sketch | None) -> FloatArray:
        """Climb from the best that a sketch suggests; else try all pairs, then climb from the best
        of them and from some typical priors.
        """
        try:
            usual = self._usual()
            for weight in usual:
                self.risk(weight)
            if sketch is not None:
                for weight in sketch.candidates(usual):
                    self.risk(weight)
                self._climb(self.top[1], STEPS[2:])
                before = 0.0
                while self.top[0] > before * (1 + 1e-9) and not self.rough:
                    before = self.top[0]
                    self._climb(self.top[1], FINE)
                return self.top[1]
            pairs = [(self.risk(w), i, w) for i, w in enumerate(self._pairs())]
            pairs.sort(key=lambda pair: (-pair[0], pair[1]))
            for weight in (*usual, *(w for _, _, w in pairs[:KEPT])):
                self._climb(weight)
            self._climb(self.top[1])
        except _SpentError:
            self.spent = True
        finally:
            self.meter.close()
        return self.top[1]

    def risk(self, weight: FloatArray) -> float:
        """The risk of a prior; each prior is assessed once."""
        key = np.round(weight, 12).tobytes()
        if key not in self.seen:
            if len(self.seen) >= self.budget or (self.seen and self.stop.now()):
                raise _SpentError
            value, rough = self.assess(weight)
            if rough:
                self.rough = True
                self.budget = self.meter.total = ROUGH_BUDGET
            self.seen[key] = value
            if self.progress is None and time.monotonic() - self.meter.begin > QUIET:
                self.meter.wanted = True
            self.meter.show(len(self.seen))
            if value > self.top[0]:
                self.top = value, weight
        return self.seen[key]

    def leading(self) -> list[FloatArray]:
        """The riskiest of those assessed, and the typical ones."""
        keys = sorted(self.seen, key=lambda key: -self.seen[key])[:LEADING]
        return [*self._usual(), *(np.frombuffer(key) for key in keys)]

    def _usual(self) -> list[FloatArray]:
        """Typical priors: uniform, one heavy record, some spread out."""
        m = self.size
        uniform, heavy, spread = np.ones(m), np.full(m, 0.5 / max(m - 1, 1)), np.zeros(m)
        heavy[m // 2] = 0.5
        spread[:: max(1, m // 4)] = 1.0
        return [w / w.sum() for w in (uniform, heavy, spread)]

    def _pairs(self) -> list[FloatArray]:
        """Two equally likely records: all pairs, or all pairs of as many records as the budget
        allows.
        """
        most = int(np.sqrt(2 * FOR_PAIRS * self.budget))
        some = np.unique(np.linspace(0, self.size - 1, min(self.size, most)).astype(int))
        priors: list[FloatArray] = []
        for i, j in itertools.combinations(some.tolist(), 2):
            weight = np.zeros(self.size)
            weight[[i, j]] = 0.5
            priors.append(weight)
        return priors

    def _climb(self, weight: FloatArray, steps: tuple[float, ...] = STEPS) -> None:
        """Move probability to or from one record at a time, as long as the risk rises."""
        value = self.risk(weight)
        for step in steps:
            while True:
                before = value
                for i, share in itertools.product(range(self.size), (step, -step)):
                    moved = weight * (1.0 - share) if share > 0 else weight.copy()
                    moved[i] = moved[i] + share if share > 0 else moved[i] * (1.0 + share)
                    moved /= moved.sum()
                    risk = self.risk(moved)
                    if risk > value * (1 + 1e-9):
                        weight, value = moved, risk
                if value <= before * (1 + 1e-6):
                    break
