"""The questions of the page and their answers, as plain data.

A `Question` describes its population, attacker and release in the terms of scenario files, so that
the page can show the Python code, the command and the scenario that give the same answer.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprad.data.files import Limits
from dprad.errors import DpradError
from dprad.exact import Sampling
from dprad.game.question import Question as Prepared
from dprad.mechanisms import catalogue
from dprad.mechanisms.additive import WholeNoise
from dprad.model import explain
from dprad.model.parameters import EPSILON
from dprad.model.priors import Prior
from dprad.model.results import Calibration, Risk
from dprad.model.threats import Threat
from dprad.show.scenario.file import Scenario
from dprad.show.scenario.release import Release

PROMISE, RELEASE = "promise", "release"
# The range of the slider of each parameter.
SLIDERS = {name: p.slider for name, p in catalogue.NUMBERS.items() if p.slider is not None}
# Noise on numbers is not offered for tables with more values than this: it would take too long.
MANY = 2000
# Limits on uploaded files.
LIMITS = Limits(columns=12, rows=5_000_000, distinct=20_000, seconds=30.0)
# Most values, and their largest range, for mechanisms whose risk takes quadratic time.
FEW, SPAN = 300, 20_000.0
# How far from the records whole-number noise is summed, to keep the page responsive.
REACH = 9.0 * SPAN
# Draws, where a risk can only be estimated.
DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A prior and how it is written in a scenario file, in Python and as options."""

    title: str
    prior: Prior
    toml: str
    python: str
    options: str | None  # None: only a scenario file can express it
    releases: tuple[Release, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Population, attacker, release."""

    population: Population
    knows: Any = "nothing"
    target: str | None = None
    eta: float = 0.0
    mechanism: str = "grr"  # a short name, "promise", or "release K" of the population's scenario
    value: float = 1.0

    @property
    def base(self) -> Release | None:
        """The scenario's release that is selected, if any."""
        kind, _, number = self.mechanism.partition(" ")
        return self.population.releases[int(number)] if kind == RELEASE else None

    @property
    def prior(self) -> Prior:
        """Of the population."""
        return self.population.prior

    @property
    def parameter(self) -> str:
        """What the slider turns."""
        return parameter_of(self.population, self.mechanism)

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
    def query(self) -> Any:
        """What the mechanism reads: the target if there is one."""
        if self.base is not None:
            return self.base.query
        return None if self.mechanism == PROMISE else self.target

    @property
    def release(self) -> Release:
        """As a scenario has it."""
        if self.base is not None:
            return replace(self.base, numbers=self.base.numbers | {self.parameter: self.value})
        if self.mechanism == PROMISE:
            numbers = {"epsilon": self.value, "neighbours": "replace-one"}
            return Release("any mechanism with this promise", None, numbers, None)
        title = catalogue.card(self.mechanism).title
        return Release(title, self.mechanism, {self.parameter: self.value}, self.query)

    def risk(self) -> Risk:
        """The answer."""
        return self._answered(self.prepared)

    @property
    def prepared(self) -> Prepared:
        """Population and attacker, prepared."""
        return Prepared.of(self.prior, self.threat)

    def _answered(self, question: Prepared) -> Risk:
        made = None if self.release.mechanism is None else self.subject
        if isinstance(made, WholeNoise) and made.reach > REACH:
            raise DpradError(
                f"{self.parameter} is too large here: the sum would take too long. Use Laplace "
                "or Gaussian noise instead, which has nearly the same risk."
            )
        return self.release.risk(question, Sampling(trials=DRAWS))

    @property
    def subject(self) -> Any:
        """The mechanism or the promise."""
        return self.release.subject(self.prior, self.threat)

    def error(self) -> str:
        """What the noise costs, in words; nothing for a promise."""
        if self.release.mechanism is None:
            return ""
        subject = self.subject
        reach, variance = subject.error(0.95), subject.variance(1000)
        if reach is not None:
            return f"The noise stays within {explain.amount(reach)} in 95 of 100 cases."
        if variance is None:
            return ""
        spread = 100 * variance**0.5
        if spread > 100:
            return "1,000 reports of this kind give no usable estimate."
        return f"A share estimated from 1,000 people is off by about {spread:.2g} points."

    def plan(self, max_risk: float) -> Calibration:
        """How much noise for an accepted risk."""
        return self.release.plan(self.prepared, max_risk, Sampling())

    def line(self, values: list[float]) -> list[Risk]:
        """Risks at other values of the parameter."""
        question = self.prepared
        return [replace(self, value=v)._answered(question) for v in values]

    # -- the same question elsewhere ---------------------------------------------------------------
    def python(self) -> str:
        """A program that gives the same answer."""
        threat = [f"knows={self.knows!r}"]
        threat += [f"target={[self.target]!r}"] if self.target is not None else []
        threat += [f'loss="absolute", eta={self.eta:g}'] if self.eta > 0 else []
        family, arguments = self.release.parts(self.prior, self.threat)
        home = "dprad" if self.release.mechanism is None else "mechanisms"
        inside = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
        subject = f"{home}.{family.__name__}({inside})"
        query = f", query={self.query!r}" if self.query is not None else ""
        return (
            "import dprad\nfrom dprad import mechanisms, patients, scenario\n\n"
            f"prior = {self.population.python}\n"
            f"threat = dprad.Threat({', '.join(threat)})\n"
            f"risk = dprad.assess({subject}, prior=prior, threat=threat{query})\n"
            "print(risk)"
        )

    def command(self) -> str:
        """A command that gives the same answer; with a scenario file if options do not suffice."""
        release = self.release
        if self.population.options is None or not self._in_options():
            return "dprad assess scenario.toml   # the scenario below, downloaded"
        parts = ["dprad assess"]
        parts += [f"--mechanism {release.mechanism}"] if release.mechanism is not None else []
        parts += [
            f"--{k} {v if isinstance(v, str) else f'{v:.12g}'}" for k, v in release.numbers.items()
        ]
        parts.append(self.population.options)
        knows = self.knows if isinstance(self.knows, str) else ",".join(self.knows)
        parts += [f"--knows {_quoted(knows)}"] if knows != "nothing" else []
        parts += [f"--target {_quoted(self.target)}"] if self.target is not None else []
        parts += [f"--loss absolute --eta {self.eta:g}"] if self.eta > 0 else []
        saved = "patients.csv" in self.population.options
        before = "dprad demo --save patients.csv\n" if saved else ""
        return before + " ".join(parts)

    def _in_options(self) -> bool:
        """Whether options can express it: no commas in names, and only the target is read."""
        names = [] if isinstance(self.knows, str) else list(self.knows)
        names += [] if self.target is None else [self.target]
        reads = self.query not in (None, self.target)
        return not (reads or "clamp" in self.release.numbers or any("," in n for n in names))

    def toml(self, accepted: float | None = None) -> str:
        """A scenario file that asks the same."""
        lines = ['title = "Made by dprad explore"', "", "[population]", self.population.toml]
        lines += ["", "[[threats]]", f"knows = {_toml(self.knows)}"]
        lines += [f"target = {_toml([self.target])}"] if self.target is not None else []
        lines += ['loss = "absolute"', f"eta = {self.eta!r}"] if self.eta > 0 else []
        lines += ["", "[[releases]]"]
        release = self.release
        lines += [f"mechanism = {_toml(release.mechanism)}"] if release.mechanism else []
        lines += [f"{k} = {_toml(v)}" for k, v in release.numbers.items()]
        lines += [f"query = {_toml(self.query)}"] if self.query is not None else []
        if accepted is not None:
            lines += ["", "[accepted]", f"risk = {accepted!r}"]
        return "\n".join(lines) + "\n"

    def scenario(self, accepted: float | None) -> Scenario:
        """The question as a scenario, on the population of the page."""
        return Scenario(
            title="Made by dprad explore",
            name="scenario.toml",
            text=self.toml(accepted),
            prior=self.prior,
            population=tomllib.loads(self.population.toml),
            questions=(("the attacker", self.prepared),),
            releases=(self.release,),
            accepted=accepted,
            worst=False,
            decided={},
            audit=None,
            folder=Path(),
        )


def mechanisms_for(population: Population, target: str | None) -> dict[str, str]:
    """Names and titles of the mechanisms that can run here."""
    columns = population.prior.columns
    numeric = False
    if target is not None or len(columns) == 1:
        values = population.prior.column(target or columns[0])
        numeric = values.dtype.kind in "if" and len(values) > 1
    size = population.prior.size or 0
    few = size <= MANY
    kinds = ("codes", "numbers", "range") if numeric and few else ("codes",)
    own = {f"{RELEASE} {k}": f"{r.name} (scenario)" for k, r in enumerate(population.releases)}
    wide = numeric and (size > FEW or float(values.max()) - float(values.min()) > SPAN)
    costs = {"quick", "line", "square"} - ({"square"} if wide else set())
    costs = costs if few else {"quick"}
    cards = [c for c in map(catalogue.card, catalogue.FAMILIES) if c.reads in kinds]
    offered = {c.name: c.title for c in cards if c.cost in costs}
    return own | {PROMISE: "only the promise (epsilon, replaced records)"} | offered


def parameter_of(population: Population, mechanism: str) -> str:
    """The parameter that sets the noise."""
    kind, _, number = mechanism.partition(" ")
    if kind == RELEASE:
        return population.releases[int(number)].parameter
    known = mechanism in catalogue.FAMILIES
    return catalogue.card(mechanism).takes[0].name if known else EPSILON.name


def of_scenario(scenario: Scenario) -> Population:
    """A scenario's population, with its releases."""
    about = scenario.population
    toml = "\n".join(f"{k} = {_toml(v)}" for k, v in about.items())
    options = _options(about)
    python = f"scenario.load({scenario.name!r}).prior"
    title = f"{scenario.title} (scenario)"
    return Population(title, scenario.prior, toml, python, options, scenario.releases)


def _options(about: dict[str, Any]) -> str | None:
    """The population as options, if possible."""
    if "uniform" in about:
        return f"--uniform {about['uniform']}"
    if "data" not in about or any("," in c for c in about.get("columns", [])):
        return None
    parts = [f"--data {_quoted(about['data'])}"]
    if "columns" in about:
        parts.append(f"--columns {_quoted(','.join(about['columns']))}")
    parts += [
        f"--{k} {_quoted(about[k])}"
        for k in ("weight", "missing", "encoding", "decimal")
        if k in about
    ]
    parts += ["--domain {}:{}".format(*about["domain"])] if "domain" in about else []
    return " ".join(parts)


def patients() -> Population:
    """The built-in table."""
    from dprad.data import patients as table

    return Population(
        "20,000 synthetic patients (built in)",
        table.prior(),
        'builtin = "patients"',
        "patients.prior()",
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
    """A table of the user, within limits; errors use the user's name for it."""
    try:
        prior = Prior.from_data(path, limits=LIMITS)
    except DpradError as error:
        said = str(error).replace(path, name)
        hint = " On this page: save it as UTF-8, then load it again." if "encoding=" in said else ""
        raise DpradError(said + hint) from None
    quoted = _toml(name)
    return Population(
        name,
        prior,
        f"data = {quoted}",
        f"dprad.Prior.from_data({name!r})",
        f"--data {_quoted(name)}",
    )


def _toml(value: Any) -> str:
    """Strings, lists and numbers of TOML are those of JSON; tables are not."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items()) + " }"
    text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")


def _quoted(text: str) -> str:
    return shlex.quote(text)
