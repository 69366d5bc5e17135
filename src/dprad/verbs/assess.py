"""assess: what does this epsilon, or this noise, mean for this data and this attacker?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dprad import bounds
from dprad.errors import DpradError, number, whole
from dprad.exact import Sampling, solve, solve_continuous
from dprad.exact.even import answers, own_even, solve_even
from dprad.exact.likelihood import remembered
from dprad.exact.own import Own, own_risks, promise_of, promised_tv
from dprad.game.game import Classes, Even, Game, play
from dprad.game.query import Query
from dprad.game.question import Posed, Question
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.composed import Composed
from dprad.mechanisms.foreign import as_mechanism
from dprad.model import explain
from dprad.model.guarantees import ADD_REMOVE, REPLACE_ONE, UNKNOWN, ZCDP, Guarantee
from dprad.model.priors import Prior
from dprad.model.results import Risk
from dprad.model.threats import Threat
from dprad.numerics.arrays import complements
from dprad.numerics.random import Seed, seed
from dprad.runtime.memory import limit
from dprad.runtime.workers import crew
from dprad.verbs.alike import NEVER_WRONG, alike, never_wrong

# Draws of an estimate, if the interval then reaches no further than this to both sides.
DRAWS, AIM = 20_000, 0.001
_INFORMED = "The attacker may know every other record, the prior and the mechanism."
_FORCED = "The attacker must always guess; one who may pass can gain more."
_SAMPLE = "The prior describes the population"
_INDEPENDENT = "Records of different people are independent draws from the prior."
_FREE = "Nothing is assumed about the population: the number holds for every prior."
_PROMISE = "The promise is kept; this is not tested here."
_COMPARES = {
    REPLACE_ONE: "The promise compares data sets in which one record is replaced.",
    ADD_REMOVE: "The promise compares data sets with and without the person.",
    UNKNOWN: "The promise compares data sets with and without the person, or with one record "
    "replaced; the worse counts.",
}
_FIXED = "The releases are fixed beforehand: none was chosen after another one was seen."
_IMPLEMENTED = "The implementation draws exactly from the mechanism's distribution."


@remembered()
def assess(
    subject: Any,
    *,
    prior: Prior,
    threat: Threat | None = None,
    query: Query | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Seed = 0,
    workers: int = 1,
    memory: float | str | None = None,
) -> Risk:
    """The extra risk of taking part in a release.

    Parameters
    ----------
    subject
        A guarantee (what is promised) gives the tightest valid bound; all bounds are in
        ``risk.bounds``. A mechanism (what is run) gives the exact risk.
    prior
        The population: ``Prior.from_data(...)``, or ``Prior.unknown()`` to assume nothing.
    threat
        The attacker. By default they know nothing and must guess the whole record exactly.
    query
        What the mechanism reads from a record: a column, a list of columns, a comparison such as
        ``'smoker = "yes"'`` (1 where it holds, else 0), or a callable on the support. Default: the
        only column, else the target if it is a single column, else the whole record.
    trials
        Number of draws, used only where the risk must be estimated (large compositions, and
        tolerances with large unary encodings). Default: 20,000, or as many as an interval of
        +-0.001 needs, if that takes no more than seconds.
    confidence
        Confidence level of the interval, between 0 and 1.
    rng
        Seed, `SeedSequence` or `Generator`. The same seed gives the same result.
    workers
        Number of threads, for draws and for sums over very many outputs. It does not change the
        result.
    memory
        Memory limit, in bytes or as "500 MB"; default: what the machine has. A tighter limit is
        slower. A question that does not fit raises a `DpradError`.

    Returns
    -------
    Risk
        ``risk.rad``, the average over people, and ``risk.worst``, the largest own risk of one;
        ``risk.kind`` says whether the number is exact, an upper bound or an estimate.

    Examples
    --------
    Randomised response with two answers at epsilon = ln 3 is right 3 times in 4:

    >>> import math, dprad
    >>> risk = dprad.assess(dprad.mechanisms.GRR(epsilon=math.log(3), size=2),
    ...                     prior=dprad.Prior.uniform(2))
    >>> round(risk.rad, 12), round(risk.success_in, 12), risk.kind
    (0.25, 0.75, 'exact')

    """
    sampling = sampled(trials, confidence, rng, workers)
    with limit(memory), crew(sampling.workers):
        return answer(subject, Question.of(prior, threat, query), sampling)


def sampled(trials: int | None, confidence: float, rng: Seed, workers: int = 1) -> Sampling:
    """Validated settings for a risk that can only be estimated."""
    return Sampling(
        trials=DRAWS if trials is None else whole(trials, "trials", low=2),
        aim=AIM if trials is None else None,
        confidence=number(confidence, "confidence", low=0, high=1),
        seed=seed(rng),
        workers=whole(workers, "workers", low=1),
    )


def answer(subject: Any, question: Question, sampling: Sampling, *, own: bool = True) -> Risk:
    """The risk of a guarantee or a mechanism, for a prepared question; also of one person if `own`
    is asked for.
    """
    risk = _answered(subject, question, sampling, own)
    if never_wrong(question, risk):
        risk = replace(risk, doubts=(*risk.doubts, NEVER_WRONG))
    reason = alike(subject, question, risk)
    if not reason:
        return risk
    said = (_doubtful(reason) if _SAMPLE in s else s for s in risk.assumptions)
    promise = subject if isinstance(subject, Guarantee) else None
    return _free(replace(risk, assumptions=tuple(said)), promise, question)


def _answered(subject: Any, question: Question, sampling: Sampling, own: bool) -> Risk:
    if isinstance(subject, Guarantee):
        if question.query is not None:
            raise DpradError("query says what a mechanism reads; leave it out for a guarantee.")
        return _doubted(_promised(subject, question), subject, question)
    either = "a guarantee (such as dprad.PureDP) or "
    mechanism = as_mechanism(subject, "assess", also=either).prepared(question)
    if not answers(mechanism, question):
        question = question.listed
    risk = _run(mechanism, question, sampling)
    if own:
        risk = replace(risk, **worst_of(mechanism, question, sampling))
    if risk.worst_kind != "upper-bound" and not question.prior.doubt:
        return risk
    # the numbers for one person, or for every prior, rest on it; one value alone promises nothing
    promise = None if question.prior.doubt and question.prior.size == 1 else promise_of(mechanism)
    doubts = () if promise is None else promise.doubts
    risk = replace(risk, doubts=doubts, assumptions=(*doubts, *risk.assumptions))
    return _doubted(risk, promise, question)


def _doubted(risk: Risk, promise: Guarantee | None, question: Question) -> Risk:
    """With what holds for every prior, where this one is doubtful; of a group, that of one person:
    it may consist of one.
    """
    return _free(risk, promise, question) if question.prior.doubt else risk


def _free(risk: Risk, promise: Guarantee | None, question: Question) -> Risk:
    if promise is None:
        return replace(risk, any_prior=(1.0, 1.0))
    most = promise.replace_one().tv
    if question.threat.group is not None:
        return replace(risk, any_prior=(most, most))
    table = bounds.evaluate(promise, play(Prior.unknown(), Threat(knows="everything")))
    return replace(risk, any_prior=(bounds.least(table, "rad")[1], most))


def worst_of(mechanism: Mechanism, question: Question, sampling: Sampling) -> dict[str, Any]:
    """The largest own risk of a person who is asked about (Proposition I)."""
    question = question if answers(mechanism, question) else question.listed
    prior, game = question.prior, question.game
    if isinstance(game, Even):
        return _worst_even(mechanism, prior, game)
    if not isinstance(game, Classes):
        most = promised_tv(mechanism)
        return _worst((0.0, most), most, "upper-bound", None)
    own = own_of(mechanism, question, sampling)
    asked = np.flatnonzero(own.place >= 0)
    members = question.threat.inside(prior)
    asked = asked if members is None else asked[members[asked]]
    values = own.place[asked]
    first = int(np.argmax(own.high[values]))
    found = np.unique(values)
    interval = float(own.low[found].max()), float(own.high[found].max())
    rad = float(own.rad[values[first]])
    assert prior.records is not None
    return _worst(interval, rad, own.kind, prior.records.record(asked[first]))


def _worst_even(mechanism: Mechanism, prior: Prior, game: Even) -> dict[str, Any]:
    """The same of very many equally likely values."""
    found = own_even(mechanism, game)
    assert found is not None and prior.records is not None
    own, place = found
    interval = float(own.low[0]), float(own.high[0])
    return _worst(interval, float(own.rad[0]), own.kind, prior.records.record(place))


def own_of(mechanism: Mechanism, question: Question, sampling: Sampling) -> Own:
    """The own risk of every record of a finite prior."""
    assert isinstance(question.game, Classes)
    return own_risks(mechanism, mechanism.read(question), question.game.pi, sampling)


def _worst(interval: tuple[float, float], rad: float, kind: str, record: Any) -> dict[str, Any]:
    if kind == "upper-bound":
        rad, interval = interval[1], (0.0, interval[1])
    return {
        "worst": rad,
        "worst_interval": interval,
        "worst_kind": kind,
        "worst_record": record,
    }


def _promised(guarantee: Guarantee, question: Question) -> Risk:
    prior, game = question.prior, question.game
    table = bounds.evaluate(guarantee, game)
    (best, rad), (_, rero) = bounds.least(table, "rad"), bounds.least(table, "rero")
    readings, notes = _readings(guarantee, game, rad), []
    if readings is not None:
        notes.append(
            "The promise does not say what it compares: the extra risk is at most "
            f"{explain.above(readings[REPLACE_ONE])} if one record is replaced, and at most "
            f"{explain.above(readings[ADD_REMOVE])} if a person is added or removed. The larger "
            "counts; ask which it is."
        )
    if isinstance(guarantee, ZCDP) and rad > 0:
        smaller = bounds.least(bounds.evaluate(guarantee.gaussian, game), "rad")[1]
        notes.append(
            "This covers every mechanism with this rho. If the noise is Gaussian, state "
            f"GaussianDP with mu = sqrt(2 rho) = {guarantee.gaussian.mu:.4g} instead: the extra "
            f"risk is then at most {explain.above(smaller)}."
        )
    return Risk(
        rad=rad,
        interval=(0.0, rad),
        kind="upper-bound",
        method=best.title,
        success_in=None,
        success_out=None,
        rero=rero,
        baseline=None if prior.kind == "unknown" else game.p_plus / game.share,
        kappa=prior.kappa,
        normalised=_normalised(rad, question),
        bounds=table,
        subject=guarantee.describe(),
        threat=question.describe(),
        prior=repr(prior),
        assumptions=(
            *guarantee.doubts,
            _PROMISE,
            _COMPARES[guarantee.neighbours],
            *_attacker(question),
            *_population(prior),
            _INDEPENDENT,
        ),
        readings=readings,
        notes=tuple(notes),
        doubts=guarantee.doubts,
        **_promised_worst(guarantee, question),
    )


def _readings(guarantee: Guarantee, game: Game, rad: float) -> dict[str, float] | None:
    """What an unstated promise allows, read either way. Its own table is that for add-remove,
    which covers both: of a mechanism that keeps it for replaced records, any record may stand for
    the absent one.
    """
    if guarantee.neighbours != UNKNOWN:
        return None
    table = bounds.evaluate(guarantee.reading(REPLACE_ONE), game)
    return {REPLACE_ONE: min(rad, bounds.least(table, "rad")[1]), ADD_REMOVE: rad}


def _promised_worst(guarantee: Guarantee, question: Question) -> dict[str, Any]:
    """What the promise allows for one person: ``(1 - pi_z) TV``, largest for the rarest record."""
    prior, tv = question.prior, guarantee.replace_one().tv
    if isinstance(question.game, Even):
        assert prior.records is not None
        most = tv * question.game.unlike
        return _worst((0.0, most), most, "upper-bound", prior.records.record(0))
    if not isinstance(question.game, Classes):
        return _worst((0.0, tv), tv, "upper-bound", None)
    members, pi = question.threat.inside(prior), question.game.pi
    asked = np.flatnonzero(pi > 0 if members is None else (pi > 0) & members)
    rarest = asked[np.argmin(pi[asked])]
    most = tv * float(complements(pi)[rarest])
    assert prior.records is not None
    return _worst((0.0, most), most, "upper-bound", prior.records.record(int(rarest)))


def _run(mechanism: Mechanism, question: Question, sampling: Sampling) -> Risk:
    prior, game = question.prior, question.game
    if prior.kind == "unknown":
        raise DpradError(
            f"{mechanism.describe()['kind']} needs a prior, but it is unknown. For an answer "
            "that needs none, assess its promise: assess(mechanism.guarantee, ...)."
        )
    counted = solve_even(mechanism, game) if isinstance(game, Even) else None
    if counted is not None:
        solution = counted
    elif isinstance(game, Classes):
        solution = solve(mechanism, Posed(game, mechanism.read(question)), sampling)
    elif question.query is not None:
        raise DpradError("query needs a table of records; a continuous prior is a single number.")
    else:
        solution = solve_continuous(
            mechanism, prior, question.threat.eta, game, lambda p: solve(mechanism, p, sampling)
        )
    # rounding can leave a risk of -1e-17 or a success of 1 + 1e-16
    share = game.share
    most = min(game.unlike, prior.unlike) if share == 1.0 else game.unlike / share
    rad = float(min(max(solution.rad / share, 0.0), most))
    out = float(min(max(solution.success_out / share, 0.0), 1.0))
    low, high = solution.interval or (solution.rad, solution.rad)
    bound = solution.kind == "upper-bound"
    several = isinstance(mechanism, Composed) and mechanism.runs > 1
    assumed = (mechanism.assumes, _FIXED if several else None)
    return Risk(
        rad=rad,
        interval=_within((low / share, high / share), most),
        kind=solution.kind,
        method=solution.method,
        success_in=None if bound else min(1.0, out + rad),
        success_out=None if bound else out,
        rero=float(min(1.0, solution.rero / share)),
        baseline=float(game.p_plus / share),
        kappa=prior.kappa,
        normalised=_normalised(rad, question),
        bounds=(),
        subject=mechanism.describe(),
        threat=question.describe(),
        prior=repr(prior),
        assumptions=(
            _IMPLEMENTED,
            *(said for said in assumed if said is not None),
            *_attacker(question),
            *_population(prior),
            _INDEPENDENT,
        ),
    )


def _attacker(question: Question) -> tuple[str, ...]:
    """What the attacker may do."""
    return (_INFORMED, _FORCED) if question.threat.must_guess else (_INFORMED,)


def _within(interval: tuple[float, float], most: float) -> tuple[float, float]:
    low, high = (float(min(max(x, 0.0), most)) for x in interval)
    return low, high


def _population(prior: Prior) -> tuple[str, ...]:
    """What is assumed about the population, and what was missing in the rows."""
    gaps = "" if prior.missing is None else prior.missing.sentence()
    return (_described(prior), gaps) if gaps else (_described(prior),)


def _described(prior: Prior) -> str:
    """What is assumed about the population, and whether the counted rows support it."""
    if prior.kind == "unknown":
        return _FREE
    if prior.doubt:
        return _doubtful(prior.doubt)
    said = f"{_SAMPLE}; counted from a sample, it is an estimate."
    if prior.rows is None:
        return said
    return f"{said} Each row is one person: whoever has several is exposed more."


def _doubtful(reason: str) -> str:
    return (
        f"{_SAMPLE}. Doubtful here: {reason}, so the prior describes the sample rather than the "
        "population, and the risk may be higher. Choose fewer columns or coarser values, or count "
        "more rows."
    )


def _normalised(rad: float, question: Question) -> float:
    """The share of the largest risk possible: of a group, relative to its own."""
    game, unlike = question.game, question.prior.unlike
    if game.share < 1.0:
        unlike = game.unlike / game.share
    return min(1.0, rad / unlike) if unlike > 0 else 0.0
