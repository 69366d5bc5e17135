"""What is asked on the page: population, attackers, releases, accepted risk. Knows nothing of the
page.

Risks are those of a scenario's `answer`, so that the page and a report say the same.
"""

from __future__ import annotations

import shlex
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprad.errors import DpradError
from dprad.exact import Sampling
from dprad.game.question import Question as Prepared
from dprad.mechanisms.additive import WholeNoise
from dprad.mechanisms.catalogue import TABLES
from dprad.model import explain
from dprad.model.results import Calibration, Risk
from dprad.model.threats import Threat
from dprad.model.verdicts import Verdict, judge, upper
from dprad.show.scenario import builtin
from dprad.show.scenario.advice import Advice, advice
from dprad.show.scenario.answers import answer
from dprad.show.scenario.file import Scenario
from dprad.show.scenario.release import Release, unasked
from dprad.show.web.population import SPAN, Population, toml_of

# How far from the records whole-number noise is summed, to keep the page responsive.
REACH = 9.0 * SPAN
# Draws, where a risk can only be estimated, for a point of a chart.
DRAWS = 4000
# How often a calibration turns to another attacker, who has become the strongest.
TURNS = 4
_LOAD = 'dprad.scenario.load("scenario.toml")   # the scenario below, downloaded'


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Population, attackers, releases, and the accepted risk."""

    population: Population
    attackers: tuple[tuple[str, Threat], ...]
    releases: tuple[Release, ...]
    accepted: float | None = None
    worst: bool = False  # whether it is accepted for the most exposed person
    standard: bool = False  # whether the attackers are the standard set
    sensitive: tuple[str, ...] | None = None  # of the standard set

    def prepared(self, k: int) -> Prepared:
        """Population and one attacker, prepared."""
        return Prepared.of(self.population.prior, self.attackers[k][1])

    def risks(self, k: int) -> tuple[tuple[Risk, ...], float]:
        """What one attacker gains from all releases together, then from each alone; seconds."""
        begin = time.monotonic()
        for release in self.releases:
            made = release.mechanism and release.subject(self.population.prior, self._threat(k))
            if isinstance(made, WholeNoise) and made.reach > REACH:
                raise DpradError(
                    f"{release.parameter} is too large here: the sum would take too long. Use "
                    "Laplace or Gaussian noise instead, which has nearly the same risk."
                )
        one = replace(self, attackers=(self.attackers[k],), standard=False)
        answers = answer(one.scenario(), plans=False, audits=False)
        alone = tuple(row[0] for row in answers.risks)
        return (answers.joint[0], *alone), time.monotonic() - begin

    def _threat(self, k: int) -> Threat:
        return self.attackers[k][1]

    def plan(self, strongest: str) -> Calibration | Advice | None:
        """How much noise keeps the accepted risk for every attacker; None if none is found."""
        assert self.accepted is not None
        if len(self.releases) > 1:
            return advice(answer(self.scenario(), plans=False, audits=False))
        release, name = self.releases[0], strongest
        names = [n for n, _ in self.attackers]
        for _ in range(TURNS):
            question = self.prepared(names.index(name))
            made = release.plan(question, self.accepted, Sampling(), worst=self.worst)
            changed = release.at(made.value)
            risks = [changed.risk(self.prepared(k), Sampling()) for k in range(len(names))]
            said = judge(list(zip(names, risks, strict=True)), self.accepted, worst=self.worst)
            if said.outcome == "accepted":
                return made
            if said.outcome != "exceeded" or said.attacker == name:
                break
            name = said.attacker
        return advice(answer(self.scenario(), plans=False, audits=False))

    def line(self, k: int, release: Release, values: Sequence[float]) -> list[Risk]:
        """What one attacker gains from a release alone, at other amounts of noise."""
        question = self.prepared(k)
        return [release.at(v).risk(question, Sampling(trials=DRAWS)) for v in values]

    def error(self, release: Release) -> str:
        """What the noise of a release costs, in words; nothing for a promise."""
        if release.mechanism is None:
            return ""
        subject = release.subject(self.population.prior, self._threat(0))
        reach, variance = subject.error(0.95), subject.variance(1000)
        if reach is not None:
            return f"The noise stays within {explain.amount(reach)} in 95 of 100 cases."
        if variance is None:
            return ""
        spread = 100 * variance**0.5
        if spread > 100:
            return "1,000 reports of this kind give no usable estimate."
        return f"A share estimated from 1,000 people is off by about {spread:.2g} points."

    # -- the same question elsewhere ---------------------------------------------------------------
    def python(self) -> str:
        """A program that gives the same answer."""
        if len(self.attackers) > 1 or len(self.releases) > 1:
            return (
                f"import dprad\n\nasked = {_LOAD}\n"
                "answers = dprad.scenario.answer(asked, plans=False, audits=False)\n"
                "print(answers.verdict)\nprint(*answers.strongest)"
            )
        threat, release = self._threat(0), self.releases[0]
        about = [f"knows={_plain(threat.knows)!r}"]
        about += [f"target={list(threat.target)!r}"] if threat.target is not None else []
        about += [f"loss={threat.loss!r}, eta={threat.eta:g}"] if threat.loss != "exact" else []
        family, arguments = release.parts(self.population.prior, threat)
        calls = {"times": "repeated", "people": "group"}
        units = "".join(f".{calls[k]}({v})" for k, v in release.units.items())
        home = "dprad" if release.mechanism is None else "mechanisms"
        inside = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
        query = f", query={release.query!r}" if release.query is not None else ""
        return (
            "import dprad\nfrom dprad import mechanisms, patients\n\n"
            f"prior = {self.population.python}\n"
            f"threat = dprad.Threat({', '.join(about)})\n"
            f"subject = {home}.{family.__name__}({inside}){units}\n"
            f"risk = dprad.assess(subject, prior=prior, threat=threat{query})\n"
            "print(risk)"
        )

    def command(self) -> str:
        """A command that gives the same answer; with a scenario file if options do not suffice."""
        if self.population.options is None or not self._in_options():
            return "dprad assess scenario.toml   # the scenario below, downloaded"
        release = self.releases[0]
        parts = ["dprad assess"]
        parts += [f"--mechanism {release.mechanism}"] if release.mechanism is not None else []
        parts += [
            f"--{k} {v if isinstance(v, str) else f'{v:.12g}'}" for k, v in release.numbers.items()
        ]
        parts.append(self.population.options)
        if release.query is not None:
            query = release.query if isinstance(release.query, str) else ",".join(release.query)
            parts.append(f"--query {shlex.quote(query)}")
        parts += self._attacker_options()
        parts += [] if self.accepted is None else [f"--max-risk {self.accepted:.12g}"]
        parts += ["--worst"] if self.worst and self.accepted is not None else []
        saved = "patients.csv" in self.population.options
        return ("dprad demo --save patients.csv\n" if saved else "") + " ".join(parts)

    def _attacker_options(self) -> list[str]:
        if self.standard:
            named = self.sensitive
            return [] if named is None else [f"--sensitive {shlex.quote(','.join(named))}"]
        threat = self._threat(0)
        knows = threat.knows if isinstance(threat.knows, str) else ",".join(_plain(threat.knows))
        parts = [f"--knows {shlex.quote(knows)}"]
        parts += [] if threat.target is None else [f"--target {shlex.quote(threat.target[0])}"]
        return parts + ([f"--loss absolute --eta {threat.eta:g}"] if threat.eta > 0 else [])

    def _in_options(self) -> bool:
        """Whether options can express it: one release, and no commas in names."""
        release, threat = self.releases[0], self._threat(0)
        one = self.standard or (len(self.attackers) == 1 and threat.loss in ("exact", "absolute"))
        target = () if threat.target is None else threat.target
        names = [*self.population.prior.columns, *target]
        simple = "clamp" not in release.numbers and release.mechanism not in TABLES
        plain = simple and not any("," in n for n in names)
        return len(self.releases) == 1 and one and plain and len(target) <= 1

    def toml(self) -> str:
        """A scenario file that asks the same."""
        lines = ['title = "Made by dprad explore"']
        lines += [] if self.sensitive is None else [f"sensitive = {toml_of(self.sensitive)}"]
        lines += ["", "[population]", self.population.toml]
        for name, threat in () if self.standard else self.attackers:
            lines += ["", "[[threats]]", f"name = {toml_of(name)}"]
            lines += [f"knows = {toml_of(_plain(threat.knows))}"]
            lines += [] if threat.target is None else [f"target = {toml_of(threat.target)}"]
            lines += [f"loss = {toml_of(threat.loss)}"] if threat.loss != "exact" else []
            lines += [f"eta = {threat.eta!r}"] if threat.eta > 0 else []
        for release in self.releases:
            lines += ["", "[[releases]]", f"name = {toml_of(release.name)}"]
            lines += [f"{k} = {toml_of(v)}" for k, v in release.keys.items()]
        if self.accepted is not None:
            lines += ["", "[accepted]", f"risk = {self.accepted!r}"]
            lines += ["worst = true"] if self.worst else []
        return "\n".join(lines) + "\n"

    def scenario(self) -> Scenario:
        """The question as a scenario, on the population of the page."""
        questions = [(name, self.prepared(k)) for k, (name, _) in enumerate(self.attackers)]
        return Scenario(
            title="Made by dprad explore",
            name="scenario.toml",
            text=self.toml(),
            prior=self.population.prior,
            population=tomllib.loads(self.population.toml),
            questions=tuple(questions),
            releases=self.releases,
            accepted=self.accepted,
            worst=self.worst,
            decided={},
            audit=None,
            folder=Path(),
            source=self.population.source,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A question and its answer: per attacker the risk of all releases together, then of each."""

    asked: Question
    risks: tuple[tuple[Risk, ...], ...]

    @property
    def cases(self) -> list[tuple[str, Risk, tuple[Risk, ...]]]:
        """Attackers with their risk together and alone; the strongest first."""
        rows = [
            (name, row[0], row[1:])
            for (name, _), row in zip(self.asked.attackers, self.risks, strict=True)
        ]
        return sorted(rows, key=lambda case: -upper(case[1], worst=self.asked.worst))

    @property
    def strongest(self) -> int:
        """The place of the attacker who gains most."""
        names = [name for name, _ in self.asked.attackers]
        return names.index(self.cases[0][0])

    @property
    def verdict(self) -> Verdict | None:
        """Whether the accepted risk is kept; None without one."""
        if self.asked.accepted is None:
            return None
        cases = [(name, risk) for name, risk, _ in self.cases]
        return judge(cases, self.asked.accepted, worst=self.asked.worst)

    @property
    def unasked(self) -> str:
        """What releases read, though no attacker is after it: a sentence, or nothing."""
        asked = self.asked
        threats = [threat for _, threat in asked.attackers]
        return unasked(asked.releases, asked.population.prior, threats)


def imports() -> None:
    """What the first question would otherwise have to import."""
    answer(builtin(), plans=False, audits=False)


def _plain(names: Any) -> Any:
    return names if isinstance(names, str) else list(names)
