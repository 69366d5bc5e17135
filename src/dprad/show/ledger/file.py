"""Ledger: an append-only file of releases, planned, published or withdrawn.

Lines of JSON, each with a checksum that continues that of the line before (`runtime.journal`): an
edited, removed or moved line is refused; lines cut off at the end are not noticed, unless you kept
a later checksum (`head`) elsewhere. If the last line is incomplete, nothing is accepted until the
release that it names is there (or the next line, if it names none). Several processes may add
entries; what `add` returned is on disk. A later line may change the state of an entry, and nothing
else. The file is readable for its owner only.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from os.path import realpath, relpath
from pathlib import Path
from typing import Any

from dprad.errors import DpradError, is_line, number, one_of
from dprad.game.question import Question
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.runtime.journal import Log
from dprad.show.ledger.entry import PERSON, STATES, Entry, described, digest
from dprad.show.ledger.lines import TORN, applied, missing, told
from dprad.show.ledger.plan import Plan, planned
from dprad.show.ledger.standing import Asked, Standing, otherwise, standing_of
from dprad.show.ledger.under import changed, under
from dprad.show.ranges import PUBLIC
from dprad.show.scenario.file import load
from dprad.verbs.attackers import standard

KIND = "ledger"
# Most letters of the path of a scenario.
LONGEST = 1000


class Ledger:
    """The releases about one population; started if the file does not exist.

    Parameters
    ----------
    path
        The file.
    scenario
        A scenario file with the population, the attackers and the accepted risk; kept in the first
        line of a new ledger. Its own releases do not count unless they are added.

    Examples
    --------
    >>> import os, tempfile, dprad
    >>> from dprad.mechanisms import GRR
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(os.path.join(folder.name, "releases.jsonl"))
    >>> for month in ("January", "February"):
    ...     entry = ledger.add(GRR(epsilon=0.5, size=2), name=month, date="2030-01-31")
    >>> risk = ledger.status(prior=dprad.Prior.uniform(2), max_risk=0.2).strongest[1]
    >>> risk.kind, round(risk.rad, 6)     # the second adds nothing: two reports tie
    ('exact', 0.122459)
    >>> folder.cleanup()

    """

    def __init__(self, path: Any, *, scenario: Any = None) -> None:
        about = {"version": 1, "scenario": None if scenario is None else str(scenario)}
        if scenario is not None:
            load(scenario)  # refuse it now, rather than at every question
            about["scenario"] = _line(_relative(Path(scenario), Path(path).parent), path)
        self._log = Log.open(path, about, KIND)
        self._of(scenario)

    @classmethod
    def open(cls, path: Any) -> Ledger:
        """A ledger that exists."""
        ledger = cls.__new__(cls)
        ledger._log = Log.open(path, None, KIND)
        ledger._of(None)
        return ledger

    def _of(self, scenario: Any) -> None:
        self._found: dict[str, Entry] = {}  # after the lines that were applied
        self._applied = 1
        named = self._log.rows[0].get("scenario")
        self.scenario: Path | None = (
            None if named is None else self.path.parent / _line(named, self.path)
        )
        if scenario is not None:
            self.keeps(scenario)

    def keeps(self, scenario: Any) -> None:
        """Refuse a scenario that is not the one of this ledger."""
        if self.scenario is None or realpath(self.scenario) != realpath(scenario):
            raise DpradError(f"{self.path} was started with another scenario, or with none.")

    @property
    def path(self) -> Path:
        """The file."""
        return self._log.path

    @property
    def head(self) -> str:
        """The checksum of the last line: keep it elsewhere, to notice lines that are cut off."""
        return self._log.checks[-1]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that answers rest on: the ledger, its scenario, and the data of that."""
        if self.scenario is None:
            return (self.path,)
        return (self.path, *load(self.scenario).files)

    @property
    def missing(self) -> tuple[str, ...]:
        """What may be missing because a line is incomplete, in sentences."""
        self._log.refresh()
        lost = missing(self._log.rows, self._known())
        return (TORN, *lost) if self._log.torn else lost

    @property
    def told(self) -> tuple[str, ...]:
        """What else incomplete lines leave open, in sentences."""
        return told(self._log.rows, self._known())

    @property
    def changed(self) -> tuple[str, ...]:
        """What of the scenario is not as it was when releases were entered, in sentences."""
        if self.scenario is None:
            return ()
        try:
            scenario = load(self.scenario)
        except DpradError as error:
            return (f"The scenario of these releases is not there as it was: {error}",)
        differ = otherwise(self._counted, scenario.releases)
        return (*differ, *changed(self._counted, self.scenario))

    @property
    def _counted(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.counts]

    def verify(self, head: str | None = None) -> int:
        """Read everything again; the number of lines. With the head of earlier: it must occur."""
        again = Log.open(self.path, None, KIND)
        applied({}, again.rows, 1)
        if head is not None and head not in again.checks:
            raise DpradError(
                f"{self.path} does not continue what had the checksum {head}: lines were cut off, "
                "or it is another ledger."
            )
        return len(again.rows)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases, in the order in which they were added. O(new lines)."""
        self._log.refresh()
        return tuple(self._known().values())

    def _known(self) -> dict[str, Entry]:
        """All releases by name, after the lines that have been read."""
        self._applied = applied(self._found, self._log.rows, self._applied)
        return self._found

    def add(
        self,
        release: Any,
        *,
        name: str,
        query: Any = None,
        date: Any = None,
        state: str = "planned",
        unit: str = PERSON,
        people: int | None = None,
        share: float = 1.0,
        data: Any = None,
    ) -> Entry:
        """Add a release; it is on disk when this returns.

        Parameters
        ----------
        release
            A mechanism with a short name, a guarantee of a few numbers, or another entry.
        name
            A name that no other release has.
        query
            What a mechanism reads: a column, columns, or a comparison.
        date
            When it is published, as 2030-01-31; default: today.
        state
            "planned" or "published".
        unit
            Whose contribution the noise hides, if it is not a person, such as "visit".
        people
            The most of these that one person has. All of them are then protected by the guarantee
            for a group; without it, no total with this release can be accepted.
        share
            The share of the population that it covers.
        data
            The file with the data; its SHA-256 is kept.

        Returns
        -------
        Entry
            The release.

        """
        entry = self.made(
            release, name=name, query=query, date=date, state=state, unit=unit,
            people=people, share=share, data=data,
        )  # fmt: skip
        row = {k: v for k, v in entry.to_dict().items() if k != "seen"}

        def make() -> dict[str, Any]:
            if name in self._known():
                raise DpradError(f"{name!r} is in the ledger already. Choose another name.")
            return row

        self._log.append(make)
        return entry

    def made(self, release: Any, *, name: str, data: Any = None, **about: Any) -> Entry:
        """The entry that `add` would write."""
        usual = {"date": None, "state": "planned", "unit": PERSON, "people": None, "share": 1.0}
        about = usual | {"query": None} | about
        row = about | described(release, about["query"]) | {"name": name}
        row["date"] = datetime.date.today() if about["date"] is None else about["date"]
        row["data"] = None if data is None else digest(data)
        row["scenario"] = None if self.scenario is None else under(self.scenario)
        return Entry.of(row)

    def mark(self, name: str, state: str) -> Entry:
        """Note that a planned release was published, or that one was withdrawn.

        What was published was seen: it counts even after it was withdrawn.
        """
        one_of(state, "state", STATES[1:])

        def make() -> dict[str, Any]:
            known = self._known()
            one_of(name, "name", known)
            if known[name].state in (state, "withdrawn"):
                raise DpradError(f"{name!r} is {known[name].state} already.")
            return {"mark": name, "state": state}

        self._log.append(make)
        return self._known()[name]

    def asked(
        self,
        prior: Prior | None = None,
        threats: Sequence[Any] | None = None,
        max_risk: float | None = None,
        worst: bool | None = None,
    ) -> Asked:
        """The population, the attackers and the limit: as given, else as the scenario says.

        Threats are `Threat` objects or pairs (name, threat); default: a standard set of attackers.
        """
        if max_risk is not None:
            max_risk = number(max_risk, "max_risk", low=0, high=1)
        if prior is not None:
            given = standard(prior) if threats is None else [_named(t) for t in threats]
            questions = tuple((name, Question.of(prior, threat)) for name, threat in given)
            return Asked(questions, max_risk, bool(worst), doubts=self.missing, notes=self.told)
        if self.scenario is None:
            raise DpradError(f"{self.path} names no scenario: say which population, with prior=.")
        scenario = load(self.scenario)
        asked, notes = scenario.questions, (*self.told, *changed(self._counted, self.scenario))
        if threats is not None:
            named = [_named(t) for t in threats]
            asked = tuple((n, Question.of(scenario.prior, threat)) for n, threat in named)
        limit = scenario.accepted if max_risk is None else max_risk
        whose = scenario.worst if worst is None else worst
        public = bool(PUBLIC & set(scenario.population))
        return Asked(asked, limit, whose, False, self.missing, notes, scenario.releases, public)

    def status(
        self,
        *,
        prior: Prior | None = None,
        threats: Sequence[Any] | None = None,
        max_risk: float | None = None,
        worst: bool | None = None,
        adaptive: bool = False,
    ) -> Standing:
        """What everything that counts adds up to, for every attacker, and what each release added.

        Parameters
        ----------
        prior, threats
            The population and the attackers; default: those of the scenario.
        max_risk
            The accepted risk; default: that of the scenario, if it says one.
        worst
            Whether that is for the most exposed person, not for the average over people.
        adaptive
            Count guarantees only: such numbers hold even if a release was chosen after earlier ones
            were seen.

        Returns
        -------
        Standing
            ``standing.cases`` are pairs (attacker, risk); ``standing.steps`` say what was added.

        """
        question = self.asked(prior, threats, max_risk, worst)
        return standing_of(self.entries, replace(question, adaptive=adaptive))

    def plan(
        self,
        like: str | None = None,
        *,
        max_risk: float | None = None,
        releases: int = 1,
        weights: Sequence[float] | None = None,
        prior: Prior | None = None,
        threats: Sequence[Any] | None = None,
        worst: bool | None = None,
        adaptive: bool = False,
    ) -> Plan:
        """The least noise for the next releases so that all together stay within the limit, and
        what they cost with the noise of now.

        Parameters
        ----------
        like
            The name of the release that is repeated; default: the last one.
        max_risk
            The accepted risk; default: that of the scenario.
        releases
            How many.
        weights
            How much the error of each matters. Default: all alike, with equal noise.
        prior, threats, worst, adaptive
            As for `status`.

        Returns
        -------
        Plan
            ``plan.values`` of ``plan.parameter``, one for each release; ``plan.risk`` of all
            together; ``plan.curve``: the risk after each, with the noise of now.

        """
        question = replace(self.asked(prior, threats, max_risk, worst), adaptive=adaptive)
        return planned(self.entries, like, question, releases, weights)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, {len(self.entries):,} releases)"


def _named(threat: Any) -> tuple[str, Threat]:
    name, one = threat if isinstance(threat, tuple) else ("", threat)
    if not isinstance(one, Threat):
        raise DpradError(f"threats must be Threat objects, but got a {type(one).__name__}.")
    return name or f"knows {_knows(one)}", one


def _knows(threat: Threat) -> str:
    known = threat.describe()["knows"]
    return known if isinstance(known, str) else ", ".join(map(str, known))


def _line(named: Any, ledger: Any) -> str:
    """The path of a scenario, if it can be shown in a sentence."""
    if not isinstance(named, str) or not is_line(named, LONGEST):
        raise DpradError(
            f"{ledger} cannot be used: the path of its scenario must be one line of printable text."
        )
    return named


def _relative(file: Path, folder: Path) -> str:
    """The file as seen from the folder, so that both can be moved together."""
    try:
        return Path(relpath(realpath(file), realpath(folder))).as_posix()
    except ValueError:  # another drive
        return realpath(file)
