"""What the verbs return: frozen data that prints as a plain sentence.

`Risk` holds the number and everything needed to explain it; the texts are in `explain.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dprad.model import explain, explain_plan
from dprad.model.priors import Prior


class Result:
    """Common to all results: a short repr, a few sentences in a notebook, and a hash."""

    __slots__ = ()
    brief: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.brief)
        return f"{type(self).__name__}({inside})"

    def __hash__(self) -> int:
        # equal results have equal numbers; not every compared field can be hashed
        return hash((type(self), *(getattr(self, name) for name in self.brief)))

    def _repr_html_(self) -> str:
        return explain.html(str(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One bound of the table: its value, or why it does not apply.

    Attributes
    ----------
    name
        Short name, such as ``"theorem-1"``.
    title
        Title for display.
    source
        Where the bound is from.
    measure
        ``"rad"`` (extra risk) or ``"rero"`` (success probability, for comparison).
    value
        The bound; None if it does not apply.
    reason
        Why it does not apply; empty if it does.

    Examples
    --------
    >>> import dprad
    >>> promise = dprad.PureDP(1.0, neighbours="replace-one")
    >>> risk = dprad.assess(promise, prior=dprad.Prior.uniform(2))
    >>> bound = risk.bounds[0]
    >>> bound.name, round(bound.value, 4)
    ('theorem-b', 0.2311)

    """

    name: str
    title: str
    source: str
    measure: str
    value: float | None
    reason: str

    @property
    def applies(self) -> bool:
        """Whether the bound has a value here."""
        return self.value is not None

    def to_dict(self) -> dict[str, Any]:
        """The bound as plain data."""
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Risk(Result):
    """The extra risk of taking part: RAD, and what it rests on.

    Attributes
    ----------
    rad
        Success with the person in the data minus success without: exact, an upper bound or an
        estimate, as `kind` says.
    interval
        Where the RAD of the best attack lies: a point if exact, ``(0, bound)`` for a bound, a
        confidence interval for an estimate.
    kind
        ``"exact"``, ``"upper-bound"`` or ``"estimate"``.
    method
        The theorem or solver that gave the number.
    success_in
        How often the RAD-optimal attack is right with the person in the data; None if only a bound
        on the difference is known. Ties go to the likeliest guess.
    success_out
        The same without the person in the data.
    rero
        Success probability of the attack that maximises it (a different attack), or a bound on it.
    baseline
        The chance of the best blind guess, without any release; None if the prior is unknown.
    kappa
        Probability that two random people have the same record.
    normalised
        ``rad / (1 - kappa)``; 0 if kappa = 1.
    bounds
        Every bound in the table with its value, or the reason why it does not apply.
    subject
        The promise or mechanism, as plain data.
    threat
        The attacker, as plain data.
    prior
        A one-line summary of the population.
    assumptions
        What must hold for the number to be right.
    worst
        `rad` is an average over people; this is the largest own risk of a single person, the same
        for every attacker who can name them. None where it was not asked for.
    worst_interval, worst_kind
        As `interval` and `kind`.
    worst_record
        Whose it is: a record of the prior; None if the prior is unknown.
    any_prior
        Where the prior is doubtful (few rows, or too many unique ones): the average and the
        largest risk that hold for every prior; None elsewhere.
    readings
        Where the promise does not say which neighbours it compares: the risk of either reading,
        by name. `rad` is the larger. None elsewhere.
    notes
        What else its reader should know, in sentences.
    doubts
        Why the guarantee may not hold as stated, so that no limit counts as kept; empty elsewhere.

    Examples
    --------
    >>> import dprad
    >>> promise = dprad.PureDP(1.0, neighbours="replace-one")
    >>> risk = dprad.assess(promise, prior=dprad.Prior.uniform(2))
    >>> risk.kind, round(risk.rad, 4)
    ('upper-bound', 0.2311)

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
    worst: float | None = None
    worst_interval: tuple[float, float] | None = None
    worst_kind: str | None = None
    worst_record: Any = field(default=None, compare=False)
    any_prior: tuple[float, float] | None = None
    readings: dict[str, float] | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def attribute_advantage(self) -> float | None:
        """The attribute advantage (Yeom et al.): RAD of an exact guess; None for other threats."""
        exact = self.threat["loss"] == "exact" and not self.threat["membership"]
        return self.rad if exact else None

    @property
    def membership_advantage(self) -> float | None:
        """True positive rate minus false positive rate, ``rad / (1 - kappa)``, if the whole
        record is known.
        """
        whole = self.threat["knows"] == "everything" or self.threat["target"] == "record"
        return self.normalised if self.threat["membership"] and whole else None

    def details(self) -> str:
        """Further explanation, line by line: the blind guess, the bounds that apply, the
        assumptions.

        Returns
        -------
        str
            Several lines of text.

        Examples
        --------
        >>> import dprad
        >>> promise = dprad.PureDP(1.0, neighbours="replace-one")
        >>> risk = dprad.assess(promise, prior=dprad.Prior.uniform(2))
        >>> print(risk.details().splitlines()[0])
        A blind guess, without any release, is right in 50 of 100 tries.

        """
        return explain.details(self)

    def to_dict(self) -> dict[str, Any]:
        """The risk as plain data, with the attribute names as keys; no record is among them.

        Returns
        -------
        dict
            Only numbers, strings, lists and dicts.

        Examples
        --------
        >>> import dprad
        >>> promise = dprad.PureDP(1.0, neighbours="replace-one")
        >>> risk = dprad.assess(promise, prior=dprad.Prior.uniform(2))
        >>> risk.to_dict()["kind"]
        'upper-bound'

        """
        omitted = ("bounds", "worst_record")
        plain = {f: getattr(self, f) for f in self.__slots__ if f not in omitted}
        for name in ("interval", "assumptions", "notes", "doubts"):
            plain[name] = list(plain[name])
        for name in ("worst_interval", "any_prior"):
            plain[name] = None if plain[name] is None else list(plain[name])
        for name in ("attribute_advantage", "membership_advantage"):
            plain[name] = getattr(self, name)
        plain["bounds"] = [b.to_dict() for b in self.bounds]
        return plain

    def __str__(self) -> str:
        return explain.risk(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration(Result):
    """The least noise that keeps the risk within an accepted limit.

    Attributes
    ----------
    mechanism
        The mechanism (or guarantee) to use.
    family
        The name of what was calibrated.
    parameter
        The name of the free parameter.
    value
        The value it must have.
    rising
        Whether larger values are riskier.
    risk
        The risk of that mechanism, assessed again; its upper end is at most `max_risk`.
    max_risk
        The accepted risk.
    measure
        What was held to the limit; see `calibrate`.
    error
        The bound that additive noise stays within in 95 of 100 cases; None for other mechanisms.
    evaluations
        How many values were tried.
    tolerance
        How close (relatively) a value with less noise fails.
    limited
        Whether the value is the end of the range searched: less noise was not tried.

    Examples
    --------
    >>> import dprad
    >>> plan = dprad.calibrate(dprad.mechanisms.GRR, max_risk=0.1, prior=dprad.Prior.uniform(2))
    >>> plan.parameter, round(plan.value, 6)
    ('epsilon', 0.405465)

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
    limited: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The calibration as plain data, with the attribute names as keys.

        Returns
        -------
        dict
            Only numbers, strings, lists and dicts.

        """
        plain = {f: getattr(self, f) for f in self.__slots__}
        return plain | {"mechanism": self.risk.subject, "risk": self.risk.to_dict()}

    def __str__(self) -> str:
        return explain_plan.calibration(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WorstPrior(Result):
    """The riskiest prior that a search found, and a bound for every prior.

    The largest risk over all priors lies between ``risk.rad`` and ``bound.rad``.

    Attributes
    ----------
    prior, risk
        The riskiest prior found, and its risk.
    bound
        An upper bound that holds for every prior.
    tried, stopped
        How many priors were assessed, and whether the search ended before it was done.

    Examples
    --------
    >>> import dprad
    >>> worst = dprad.worst_prior(dprad.mechanisms.GRR(epsilon=1.0, size=2))
    >>> worst.risk.rad <= worst.bound.rad
    True

    """

    brief: ClassVar = ("prior", "risk", "bound")
    __hash__ = Result.__hash__

    prior: Prior
    risk: Risk
    bound: Risk
    tried: int
    stopped: bool

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data; the prior is a list of [record, probability].

        Returns
        -------
        dict
            Only numbers, strings, lists and dicts.

        """
        assert self.prior.support is not None and self.prior.probabilities is not None
        table = zip(self.prior.support.tolist(), self.prior.probabilities.tolist(), strict=True)
        plain = {"risk": self.risk.to_dict(), "bound": self.bound.to_dict()}
        done = {"tried": self.tried, "stopped": self.stopped}
        return {"prior": [list(row) for row in table], **plain, **done}

    def __str__(self) -> str:
        return explain_plan.worst(self)
