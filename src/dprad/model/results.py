"""What the verbs return: frozen data that prints as a plain sentence.

`Risk` holds the number and all that is needed to explain it; the words are in `explain.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from dprad.model import explain
from dprad.model.priors import Prior


class Result:
    """What all results share: short in a console, a few sentences in a notebook, and a hash."""

    __slots__ = ()
    brief: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.brief)
        return f"{type(self).__name__}({inside})"

    def __hash__(self) -> int:
        # equal results have equal numbers; not everything that is compared can be hashed
        return hash((type(self), *(getattr(self, name) for name in self.brief)))

    def _repr_html_(self) -> str:
        return explain.html(str(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One bound of the table: its value, or why it does not apply.

    `measure` is ``"rad"`` (extra risk) or ``"rero"`` (success probability, for comparison).
    """

    name: str
    title: str
    source: str
    measure: str
    value: float | None
    reason: str

    @property
    def applies(self) -> bool:
        """Whether it has a value here."""
        return self.value is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Risk(Result):
    """The extra risk of taking part: RAD, with what it rests on.

    Attributes
    ----------
    rad
        Success with the person in the data less success without: exact, an upper bound or an
        estimate, as `kind` says.
    interval
        Where the RAD of the best attack lies: a point if exact, ``(0, bound)`` for a bound, a
        confidence interval for an estimate.
    method
        The theorem or solver that gave the number.
    success_in, success_out
        How often the RAD-optimal attack is right with the person in the data, and without; None
        where only a bound on their difference is known. Ties go to the likeliest guess.
    rero
        Success probability of the attack that maximises it (another one), or a bound on it.
    baseline
        The chance of the best blind guess, without any release; None if the prior is unknown.
    kappa
        Probability that two random people have the same record.
    normalised
        ``rad / (1 - kappa)``; 0 if kappa = 1.
    bounds
        Every bound in the table with its value, or the reason why it does not apply.
    subject
        The promise or mechanism, as plain data; `threat` likewise.
    assumptions
        What must hold for the number to be right.

    """

    brief: ClassVar = ("rad", "interval", "kind", "method")
    __hash__ = Result.__hash__

    rad: float
    interval: tuple[float, float]
    kind: str
    method: str
    success_in: float | None
    success_out: float | None
    rero: float
    baseline: float | None
    kappa: float
    normalised: float
    bounds: tuple[Bound, ...]
    subject: dict[str, Any]
    threat: dict[str, Any]
    prior: str
    assumptions: tuple[str, ...]

    @property
    def attribute_advantage(self) -> float | None:
        """The attribute advantage (Yeom et al.): RAD of an exact guess; None for other threats."""
        exact = self.threat["loss"] == "exact" and not self.threat["membership"]
        return self.rad if exact else None

    @property
    def membership_advantage(self) -> float | None:
        """True less false positive rate, ``rad / (1 - kappa)``, if the whole record is known."""
        whole = self.threat["knows"] == "everything" or self.threat["target"] == "record"
        return self.normalised if self.threat["membership"] and whole else None

    def details(self) -> str:
        """What else is worth knowing, line by line: luck, bounds that apply, assumptions."""
        return explain.details(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the names of the attributes as keys."""
        plain = {f: getattr(self, f) for f in self.__slots__ if f != "bounds"}
        plain["interval"], plain["assumptions"] = list(self.interval), list(self.assumptions)
        for name in ("attribute_advantage", "membership_advantage"):
            plain[name] = getattr(self, name)
        plain["bounds"] = [b.to_dict() for b in self.bounds]
        return plain

    def __str__(self) -> str:
        return explain.risk(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration(Result):
    """The least noise that keeps to an accepted risk.

    Attributes
    ----------
    mechanism
        The mechanism (or guarantee) to use.
    family
        What was calibrated, by name.
    parameter, value
        What was free, and what it must be. If it is `rising`, larger values are riskier.
    risk
        The risk of that mechanism, assessed again; its upper end is at most `max_risk`.
    error
        How far the noise goes in 95 of 100 cases, where it is additive; else None.
    evaluations, tolerance
        How many values were tried, and how near (relatively) a weaker one fails.

    """

    brief: ClassVar = ("family", "parameter", "value", "max_risk", "risk")
    __hash__ = Result.__hash__

    mechanism: Any
    family: str
    parameter: str
    value: float
    rising: bool
    risk: Risk
    max_risk: float
    measure: str
    error: float | None
    evaluations: int
    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the names of the attributes as keys."""
        plain = {f: getattr(self, f) for f in self.__slots__}
        return plain | {"mechanism": self.mechanism.describe(), "risk": self.risk.to_dict()}

    def __str__(self) -> str:
        return explain.calibration(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Candidate(Result):
    """One line of a comparison. `frontier`: no other has less risk and less error."""

    brief: ClassVar = ("name", "risk", "error", "variance", "frontier")
    __hash__ = Result.__hash__

    name: str
    mechanism: Any
    risk: Risk
    error: float | None
    variance: float | None
    frontier: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {f: getattr(self, f) for f in self.__slots__}
        return plain | {"mechanism": self.mechanism.describe(), "risk": self.risk.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Result):
    """Risk and error side by side, least risk first. Iterates over its `candidates`."""

    brief: ClassVar = ("candidates",)
    __hash__ = Result.__hash__

    candidates: tuple[Candidate, ...]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"candidates": [c.to_dict() for c in self.candidates]}

    def __str__(self) -> str:
        return explain.comparison(self)

    def _repr_html_(self) -> str:
        return explain.html_table(explain.rows(self))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WorstPrior(Result):
    """The riskiest prior that a search found, and what holds for every prior.

    The largest risk over all priors lies between ``risk.rad`` and ``bound.rad``.
    """

    brief: ClassVar = ("prior", "risk", "bound")
    __hash__ = Result.__hash__

    prior: Prior
    risk: Risk
    bound: Risk

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        assert self.prior.support is not None and self.prior.probabilities is not None
        table = zip(self.prior.support.tolist(), self.prior.probabilities.tolist(), strict=True)
        risks = {"risk": self.risk.to_dict(), "bound": self.bound.to_dict()}
        return {"prior": [list(row) for row in table], **risks}

    def __str__(self) -> str:
        return explain.worst(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit(Result):
    """What counted runs say about a promise.

    Attributes
    ----------
    verdict
        "violated": the claim is refuted at `confidence`; "consistent": it is not.
    epsilon_lower
        Certified: at the stated confidence the mechanism is not epsilon-DP (with `delta`) for any
        smaller epsilon, whatever it is.
    epsilon_claimed, delta, rad_claimed
        The claim, for replaced records, and the extra risk it allows at most.
    epsilon_estimate, epsilon_interval
        Model-based: the epsilon at which the mechanism it is supposed to be behaves like this;
        None without a model. It refutes nothing.
    rad, rad_interval
        The extra risk of the attack, and its confidence interval.
    trials, passes, successes
        Counted runs, and of these the passes and the right guesses. `studied` calls were not
        counted, they taught the attack.
    certificates
        Every certificate and the epsilon it refutes; they share the confidence.
    notes
        What else one should know.
    trace
        If it was asked for: runs, what was certified after so many (valid at every time), and the
        model-based estimate or None.

    """

    brief: ClassVar = ("verdict", "epsilon_lower", "epsilon_claimed", "trials", "confidence")
    __hash__ = Result.__hash__

    verdict: str
    epsilon_lower: float
    epsilon_claimed: float
    delta: float
    rad_claimed: float
    epsilon_estimate: float | None
    epsilon_interval: tuple[float, float] | None
    rad: float
    rad_interval: tuple[float, float]
    confidence: float
    trials: int
    studied: int
    passes: int
    successes: int
    certificates: tuple[tuple[str, float], ...]
    sequential: bool
    claim: dict[str, Any]
    threat: dict[str, Any]
    prior: str
    notes: tuple[str, ...]
    seconds: float
    trace: tuple[tuple[int, float, float | None], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an epsilon without limit is the word "infinite"."""
        plain = {f: getattr(self, f) for f in self.__slots__}
        for name in ("epsilon_estimate", "epsilon_interval"):
            plain[name] = _finite(plain[name])
        return plain

    def __str__(self) -> str:
        return explain.audit(self)


def _finite(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_finite(v) for v in value]
    return "infinite" if value == float("inf") else value
