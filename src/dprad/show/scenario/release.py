"""Release: what is published, in the terms of a scenario file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprad.errors import DpradError
from dprad.exact import Sampling
from dprad.game.question import Question
from dprad.mechanisms import catalogue
from dprad.mechanisms.base import Mechanism
from dprad.model import explain
from dprad.model.parameters import TV, UNITS
from dprad.model.predicates import comparisons, is_predicate
from dprad.model.priors import Prior
from dprad.model.results import Calibration, Risk
from dprad.model.threats import Threat
from dprad.verbs.assess import answer
from dprad.verbs.calibrate import turned
from dprad.verbs.dial import Dial

Numbers = dict[str, Any]
# What mechanisms read that add noise to numbers; and up to so many of these are like categories.
NOISY, FEW = ("numbers", "range"), 10


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A mechanism by short name with its parameters, or a promise (`mechanism` is None), with
    reasons to doubt it.
    """

    name: str
    mechanism: str | None
    numbers: Numbers
    query: Any
    doubts: tuple[str, ...] = ()

    @property
    def parameter(self) -> str:
        """The parameter that sets the noise: epsilon, sigma, mu, rho or tv."""
        if self.mechanism is not None:
            return catalogue.amount(self.mechanism, self.numbers)
        return next(k for k in catalogue.PROMISES if k in self.numbers)

    def subject(self, prior: Prior, threat: Threat) -> Any:
        """What `assess` takes."""
        if self.mechanism is None:
            return catalogue.promise(self.numbers).doubted(*self.doubts)
        family, arguments = self.parts(prior, threat)
        return family(**arguments)

    def parts(self, prior: Prior, threat: Threat, *, without: str = "") -> tuple[Any, Numbers]:
        """The class and its arguments, except the one named by `without`."""
        numbers = {k: v for k, v in self.numbers.items() if k != without}
        if self.mechanism is not None:
            return catalogue.parts(self.mechanism, numbers, prior, threat, self.query)
        alone = {k: v for k, v in numbers.items() if k not in UNITS}
        made = catalogue.kind({*alone, self.parameter} - {"neighbours"})
        return catalogue.counted(made, self.units), alone

    @property
    def units(self) -> Numbers:
        """How many releases, and records that change together, a promise is about."""
        return {k: v for k, v in self.numbers.items() if k in UNITS}

    @property
    def keys(self) -> Numbers:
        """The keys of this release in a scenario file, but for its name."""
        if self.mechanism not in catalogue.TABLES:
            named = {"mechanism": self.mechanism, **self.numbers, "query": self.query}
            return {k: v for k, v in named.items() if v is not None}
        first = catalogue.card(self.mechanism).words[0]
        rest = {k: v for k, v in self.numbers.items() if k != first}
        return {self.mechanism: self.numbers[first], **rest}

    def asks(self, prior: Prior) -> bool:
        """Whether it reads a comparison: yes or no."""
        return isinstance(self.query, str) and is_predicate(self.query, prior.columns)

    def columns(self, prior: Prior) -> tuple[str, ...]:
        """The columns that it is said to read; none if that depends on the attacker. A promise may
        be about all of them.
        """
        if self.mechanism is None:
            return prior.columns
        where = self.numbers.get("where")
        asked = [q for q in (self.query, where) if isinstance(q, str) and q not in prior.columns]
        said = [self.query, self.numbers.get("by"), self.numbers.get("of")]
        said += [list(where)] if isinstance(where, Mapping) else []
        said += [part.name for text in asked for part in comparisons(text)]
        return tuple(name for name in _texts(said) if name in prior.columns)

    def read_as_numbers(self, prior: Prior, targets: Sequence[str]) -> tuple[str, ...]:
        """The columns that it may read as numbers; without a query, what attackers are after."""
        if self.mechanism in catalogue.TABLES:
            return (self.numbers["of"],) if isinstance(self.numbers.get("of"), str) else ()
        noisy = self.mechanism is None or catalogue.card(self.mechanism).reads in NOISY
        if not noisy or self.asks(prior):
            return ()
        return self.columns(prior) or tuple(targets)

    def at(self, value: float) -> Release:
        """The same with another amount of noise."""
        return replace(self, numbers=self.numbers | {self.parameter: value})

    def posed(self, question: Question) -> Question:
        """The question with the query of this release; a promise has none."""
        return replace(question, query=self.query)

    def check(self, question: Question) -> bool:
        """Refuse what cannot be read from the records, as `risk` would. O(m)."""
        subject = self.subject(question.prior, question.threat)
        if isinstance(subject, Mechanism):
            subject.read(self.posed(question))
        return True

    def risk(self, question: Question, sampling: Sampling, *, own: bool = True) -> Risk:
        """The risk of this release; also of one person if `own` is asked for."""
        subject = self.subject(question.prior, question.threat)
        return answer(subject, self.posed(question), sampling, own=own)

    @property
    def rising(self) -> bool:
        """Whether more of the parameter means more risk."""
        return catalogue.NUMBERS[self.parameter].rising is not False

    def plan(
        self, question: Question, max_risk: float, sampling: Sampling, *, worst: bool = False
    ) -> Calibration:
        """The least noise for an accepted risk, on average or of the most exposed person."""
        if self.mechanism is None and self.parameter == TV.name:
            raise DpradError("a total variation cannot be calibrated: calibrate a mechanism.")
        family, arguments = self.parts(question.prior, question.threat, without=self.parameter)
        posed = self.posed(question)
        dial = Dial.of(family, self.parameter, None, arguments, posed)
        measure = "worst" if worst else "rad"
        made = turned(dial, posed, max_risk, sampling, measure=measure)
        return replace(made, risk=replace(made.risk, doubts=self.doubts)) if self.doubts else made


def unasked(releases: Sequence[Release], prior: Prior, threats: Iterable[Threat]) -> str:
    """Which columns are read by a release, though no attacker is after them, or after being near
    to a number: sentences, or nothing. O(m log m).
    """
    asked, near = set[str](), set[str]()
    if prior.kind != "finite":
        return ""
    for threat in threats:
        everything = bool(threat.describe(prior.columns)["membership"])
        after = prior.columns if everything else threat.target_columns(prior)
        asked |= set(after)
        near |= set(after if everything or threat.loss != "exact" else ())
    read = dict.fromkeys(name for release in releases for name in release.columns(prior))
    said = []
    left = [repr(name) for name in read if name not in asked]
    if left:
        how = "is read" if len(left) == 1 else "are read"
        how = "may be read" if any(r.mechanism is None for r in releases) else how
        said.append(
            f"No attacker asked about guesses {explain.listed(left)}, which {how} by a release."
        )
    numbers = dict.fromkeys(n for r in releases for n in r.read_as_numbers(prior, sorted(asked)))
    exact = [repr(n) for n in numbers if n in asked - near and _many(prior, n)]
    if exact:
        said.append(
            f"Every attacker asked about must guess {explain.listed(exact)} exactly; one who is "
            "content to be near may gain much more (loss absolute, with a tolerance eta)."
        )
    return " ".join(said)


def _many(prior: Prior, name: str) -> bool:
    """Whether a column has so many numbers that being near counts."""
    values = prior.column(name)
    if isinstance(values, range):
        return len(values) > FEW
    return values.dtype.kind in "iuf" and len(np.unique(values)) > FEW


def _texts(said: Any) -> Iterator[str]:
    """The texts in a list of lists."""
    for part in said if isinstance(said, list | tuple) else ():
        if isinstance(part, str):
            yield part
        else:
            yield from _texts(part)
