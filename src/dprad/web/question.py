"""What the page asks, and the answers: one question at a time, as plain data.

A `Question` knows its population, attacker and release by the words of scenario files, so that the
page can show the Python, the command and the scenario that give the same answer.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprad import catalogue
from dprad.assessment import assess
from dprad.calibration import calibrate
from dprad.errors import DpradError
from dprad.priors import Prior
from dprad.results import Calibration, Risk
from dprad.scenario.file import Release, Scenario
from dprad.threats import Threat

PROMISE = "promise"
# Where the slider of each parameter goes.
SLIDERS = {"epsilon": (0.0, 10.0, 0.05), "sigma": (0.1, 100.0, 0.1)}


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A prior and how it is written in a scenario file, in Python and as options."""

    title: str
    prior: Prior
    toml: str
    python: str
    options: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Population, attacker, release."""

    population: Population
    knows: Any = "nothing"
    target: str | None = None
    eta: float = 0.0
    mechanism: str = "grr"
    value: float = 1.0

    @property
    def prior(self) -> Prior:
        """Of the population."""
        return self.population.prior

    @property
    def parameter(self) -> str:
        """What the slider turns."""
        known = catalogue.FAMILIES.get(self.mechanism)
        return "epsilon" if known is None else known.noise

    @property
    def threat(self) -> Threat:
        """As the library takes it."""
        about: dict[str, Any] = {"knows": self.knows}
        if self.target is not None:
            about["target"] = [self.target]
        if self.eta > 0:
            about |= {"loss": "absolute", "eta": self.eta}
        return Threat(**about)

    @property
    def query(self) -> str | None:
        """What the mechanism reads: the target if there is one."""
        return None if self.mechanism == PROMISE else self.target

    @property
    def release(self) -> Release:
        """As a scenario has it."""
        if self.mechanism == PROMISE:
            numbers = {"epsilon": self.value, "neighbours": "replace-one"}
            return Release("any mechanism with this promise", None, numbers, None)
        title = catalogue.FAMILIES[self.mechanism].title
        return Release(title, self.mechanism, {self.parameter: self.value}, self.query)

    def risk(self) -> Risk:
        """The answer."""
        subject = self.release.subject(self.prior, self.threat)
        return assess(subject, prior=self.prior, threat=self.threat, query=self.query, trials=4000)

    def error(self) -> str:
        """What the noise costs, in words; nothing for a promise."""
        if self.mechanism == PROMISE:
            return ""
        subject = self.release.subject(self.prior, self.threat)
        if hasattr(subject, "error"):
            return f"The noise stays within {subject.error(0.95):.4g} in 95 of 100 cases."
        if hasattr(subject, "variance"):
            spread = subject.variance(1000) ** 0.5
            return f"A share estimated from 1,000 people is off by about {100 * spread:.2g} points."
        return ""

    def plan(self, max_risk: float) -> Calibration:
        """How much noise for an accepted risk."""
        if self.mechanism == PROMISE:
            import dprad

            return calibrate(
                dprad.PureDP, max_risk=max_risk, prior=self.prior, threat=self.threat,
                neighbours="replace-one",
            )  # fmt: skip
        family, arguments = catalogue.parts(self.mechanism, {}, self.prior, self.threat, self.query)
        return calibrate(
            family, max_risk=max_risk, prior=self.prior, threat=self.threat, query=self.query,
            parameter=self.parameter, **arguments,
        )  # fmt: skip

    def line(self, values: list[float]) -> list[Risk]:
        """Risks at other values of the parameter."""
        return [replace(self, value=v).risk() for v in values]

    # -- the same question elsewhere ---------------------------------------------------------------
    def python(self) -> str:
        """A program that gives the same answer."""
        threat = [f"knows={self.knows!r}"]
        threat += [f"target={[self.target]!r}"] if self.target is not None else []
        threat += [f'loss="absolute", eta={self.eta:g}'] if self.eta > 0 else []
        if self.mechanism == PROMISE:
            subject = f'dprad.PureDP({self.value:g}, neighbours="replace-one")'
        else:
            made = self.release.subject(self.prior, self.threat)
            family, arguments = catalogue.parts(
                self.mechanism, {self.parameter: self.value}, self.prior, self.threat, self.query
            )
            inside = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
            assert isinstance(made, family)
            subject = f"mechanisms.{family.__name__}({inside})"
        query = f", query={self.query!r}" if self.query is not None else ""
        return (
            "import dprad\nfrom dprad import mechanisms\n\n"
            f"prior = {self.population.python}\n"
            f"threat = dprad.Threat({', '.join(threat)})\n"
            f"risk = dprad.assess({subject}, prior=prior, threat=threat{query})\n"
            "print(risk)"
        )

    def command(self) -> str:
        """A command that gives the same answer."""
        parts = ["dprad assess"]
        if self.mechanism == PROMISE:
            parts.append(f"--epsilon {self.value:g} --neighbours replace-one")
        else:
            parts.append(f"--mechanism {self.mechanism} --{self.parameter} {self.value:g}")
        parts.append(self.population.options)
        knows = self.knows if isinstance(self.knows, str) else ",".join(self.knows)
        parts += [f"--knows {_quoted(knows)}"] if knows != "nothing" else []
        parts += [f"--target {_quoted(self.target)}"] if self.target is not None else []
        parts += [f"--loss absolute --eta {self.eta:g}"] if self.eta > 0 else []
        before = "dprad demo --save patients.csv\n" if "patients.csv" in parts[2] else ""
        return before + " ".join(parts)

    def toml(self, accepted: float | None = None) -> str:
        """A scenario file that asks the same."""
        lines = ['title = "Made by dprad explore"', "", "[population]", self.population.toml]
        lines += ["", "[[threats]]", f"knows = {_toml(self.knows)}"]
        lines += [f"target = {_toml([self.target])}"] if self.target is not None else []
        lines += ['loss = "absolute"', f"eta = {self.eta!r}"] if self.eta > 0 else []
        lines += ["", "[[releases]]"]
        if self.mechanism == PROMISE:
            lines += [f"epsilon = {float(self.value)!r}", 'neighbours = "replace-one"']
        else:
            lines += [f"mechanism = {_toml(self.mechanism)}"]
            lines += [f"{self.parameter} = {float(self.value)!r}"]
            lines += [f"query = {_toml(self.query)}"] if self.query is not None else []
        if accepted is not None:
            lines += ["", "[accepted]", f"risk = {accepted!r}"]
        return "\n".join(lines) + "\n"

    def scenario(self, accepted: float | None) -> Scenario:
        """The question as a scenario, on the population of the page."""
        return Scenario(
            title="Made by dprad explore",
            text=self.toml(accepted),
            prior=self.prior,
            population={},
            threats=(("the attacker", self.threat),),
            releases=(self.release,),
            accepted=accepted,
            audit=None,
            folder=Path(),
        )


def mechanisms_for(population: Population, target: str | None) -> dict[str, str]:
    """Names and titles of what can run here."""
    columns = population.prior.columns
    numeric = False
    if target is not None or len(columns) == 1:
        values = population.prior.column(target or columns[0])
        numeric = values.dtype.kind in "if" and len(values) > 1
    kinds = ("codes", "numbers", "range") if numeric else ("codes",)
    found = {n: f.title for n, f in catalogue.FAMILIES.items() if f.reads in kinds and n != "she"}
    return {PROMISE: "only the promise (epsilon, replaced records)"} | found


def patients() -> Population:
    """The built-in table."""
    from dprad import patients as table

    return Population(
        "20,000 synthetic patients (built in)",
        table.prior(),
        'builtin = "patients"',
        "dprad.patients.prior()  # import dprad.patients",
        "--data patients.csv",
    )


def uniform(size: int) -> Population:
    """Equally likely values."""
    return Population(
        f"{size} equally likely values",
        Prior.uniform(size),
        f"uniform = {size}",
        f"dprad.Prior.uniform({size})",
        f"--uniform {size}",
    )


def from_file(path: str, name: str) -> Population:
    """A table of the user's."""
    prior = Prior.from_data(path)
    if len(prior.columns) > 12:
        raise DpradError(
            f"{name} has {len(prior.columns)} columns; records of so many are nearly all "
            "different. Keep those that matter, and load it again."
        )
    quoted = _toml(name)
    return Population(
        name,
        prior,
        f"data = {quoted}",
        f"dprad.Prior.from_data({name!r})",
        f"--data {_quoted(name)}",
    )


def _toml(value: Any) -> str:
    return json.dumps(value)  # strings and lists of TOML are those of JSON, escapes included


def _quoted(text: str) -> str:
    return shlex.quote(text)
