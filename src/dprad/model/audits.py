"""What an audit returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dprad.model import explain_audit
from dprad.model.results import Result


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit(Result):
    """What counted runs say about a promise.

    Attributes
    ----------
    verdict
        "violated": the claim is refuted at `confidence`; "consistent": it is not, which says
        nothing unless `conclusive`.
    epsilon_lower
        Certified: at the stated confidence the mechanism is not epsilon-DP (with `delta`) for any
        smaller epsilon, whatever it is.
    epsilon_claimed, delta, rad_claimed
        The claim as tested, and the largest extra risk it allows.
    epsilon_estimate, epsilon_interval
        Model-based: the epsilon at which the supposed mechanism behaves like this; None without a
        model. It refutes nothing.
    rad, rad_interval
        The extra risk of the attack, and its confidence interval.
    trials, passes, successes
        Counted runs, and how many of them were passes and right guesses. `studied` calls chose
        which records to compare; nothing was bet on these.
    in_out
        Whether a record was compared with none.
    evidence
        What was bet on.
    wealth
        Calls, and the logarithm of the wealth of the bets against the claim by then: it refutes the
        claim once it exceeds ``ln(1/(1 - confidence))``.
    would_find
        The least epsilon that such calls would have refuted in 19 of 20 audits, had every call
        shown it; None if no epsilon: then nothing could have been found.
    carried
        Which learners the bets came from, and their shares.
    differ
        The coordinates of the outputs that differ clearly between the two records, most first (up
        to three): by their places, within `show_records` by their names.
    notes
        Remarks on the audit.
    trace
        If requested: the number of runs, what was certified by then (valid at every time), and the
        model-based estimate or None.
    unverified
        Calls of an earlier session that the result rests on and that were not run again.

    Examples
    --------
    >>> import dprad
    >>> coin = dprad.mechanisms.GRR(epsilon=1.0, size=2)
    >>> result = dprad.audit(coin, claim=coin.guarantee, prior=dprad.Prior.uniform(2), trials=2000)
    >>> result.verdict
    'consistent'

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
    in_out: bool
    evidence: str
    wealth: tuple[tuple[int, float], ...]
    would_find: float | None
    carried: tuple[tuple[str, float], ...]
    differ: tuple[str, ...]
    sequential: bool
    claim: dict[str, Any]
    threat: dict[str, Any]
    prior: str
    notes: tuple[str, ...]
    seconds: float
    trace: tuple[tuple[int, float, float | None], ...] = ()
    unverified: int = 0

    @property
    def conclusive(self) -> bool:
        """Whether the claim was refuted, or could have been."""
        return self.verdict == "violated" or self.would_find is not None

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data; an infinite epsilon is the string "infinite".

        Returns
        -------
        dict
            Only numbers, strings, lists and dicts.

        """
        plain = {f: getattr(self, f) for f in self.__slots__}
        for name in ("epsilon_estimate", "epsilon_interval"):
            plain[name] = _finite(plain[name])
        return plain

    def __str__(self) -> str:
        return explain_audit.audit(self)


class AuditInterrupt(KeyboardInterrupt):
    """Ctrl-C during an audit, with what was known by then: `result`. A loop over audits ends.

    Examples
    --------
    >>> import dprad
    >>> def stopped(record, rng):
    ...     if rng.random() < 0.001:
    ...         raise KeyboardInterrupt
    ...     return record
    >>> claim = dprad.PureDP(1.0, neighbours="replace-one")
    >>> try:
    ...     dprad.audit(stopped, claim=claim, prior=dprad.Prior.uniform(2))
    ... except dprad.AuditInterrupt as stop:
    ...     stop.result.verdict
    'violated'

    """

    def __init__(self, result: Audit) -> None:
        super().__init__(result)
        self.result = result


def _finite(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_finite(v) for v in value]
    return "infinite" if value == float("inf") else value
