"""Reading a scenario: TOML in, a `Scenario` out, or all errors of the file at once.

Each error names its line, table and key, what is allowed and what was found.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprad.data.source import Source
from dprad.errors import DpradError, column, flat
from dprad.game.question import Question
from dprad.mechanisms import catalogue
from dprad.model.predicates import comparisons, is_predicate
from dprad.model.priors import Prior
from dprad.model.threats import Threat
from dprad.show.scenario.population import attempt, columns_of, prior_of, source_of
from dprad.show.scenario.release import Release
from dprad.show.scenario.released import release_of
from dprad.show.scenario.schema import Table, Wrong, structure
from dprad.verbs.attackers import standard

# Most bytes of a scenario file.
LONGEST = 1_000_000
# What is said about a decision.
DECIDED = ("by", "on", "review")
# Dotted keys with this many dots take the parser quadratic time.
DEEP = 30
# What a key is made of (groups: a dot; the rest of it), and everything else, in linear time.
_TOKEN = re.compile(
    r'''"""(?:[^"\\]++|\\(?:.|\Z)|"{1,2}(?!"))*+(?:"{3,5}|\Z)'''
    r"""|'{3}(?:[^']++|'{1,2}(?!'))*+(?:'{3,5}|\Z)"""
    r"""|(?P<dot>\.)|(?P<key>"(?:[^"\\\n]++|\\[^\n])*+"?+|'[^'\n]*+'?+|[\w-]++|[ \t]++)"""
    r"""|\#[^\n]*+|.""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A checked scenario; made by `load` or `builtin`.

    Parameters
    ----------
    title
        Title.
    name
        Name of the file.
    text
        Text of the file.
    prior
        The population.
    population
        The population, as in the file.
    questions
        Pairs (attacker, prepared question).
    releases
        The releases.
    accepted
        The accepted risk, or None.
    worst
        Whether that is for the most exposed person, not for the average over people.
    decided
        Who accepted it (``by``), when (``on``), and when that is looked at again (``review``), as
        far as the file says.
    audit
        The audit, as in the file, or None.
    folder
        The folder of the file.

    Examples
    --------
    >>> import dprad
    >>> [name for name, _ in dprad.scenario.builtin().threats]
    ['a stranger', 'an acquaintance']

    """

    title: str
    name: str
    text: str
    prior: Prior
    population: Table
    questions: tuple[tuple[str, Question], ...]
    releases: tuple[Release, ...]
    accepted: float | None
    worst: bool
    decided: dict[str, str]
    audit: Table | None
    folder: Path
    source: Source | None = None

    @property
    def threats(self) -> tuple[tuple[str, Threat], ...]:
        """Attackers by name."""
        return tuple((name, question.threat) for name, question in self.questions)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it was read from: its own, and that of the data."""
        return (Path(self.name), *(() if self.source is None else (self.source.path,)))


def load(path: Any) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path
        A TOML file; `dprad init` writes an example.

    Returns
    -------
    Scenario
        Checked; a `DpradError` lists everything that is wrong.

    Examples
    --------
    >>> import os, tempfile, dprad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scenario.toml")
    ...     with open(path, "w") as file:
    ...         _ = file.write(dprad.scenario.EXAMPLE)
    ...     load(path).title
    'Diagnoses in a patient survey'

    """
    file = Path(path)
    return parse(text_of(file), name=str(file), folder=file.parent)


def text_of(file: Path) -> str:
    """The text of a scenario file, or an error if there is none."""
    try:
        if file.exists() and not file.is_file():
            raise DpradError(f"{file} is not a file.")
        if file.stat().st_size > LONGEST:
            raise DpradError(f"{file} is too long for a scenario file.")
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DpradError(f"{file} does not exist. `dprad init` writes an example.") from None
    except DpradError:
        raise
    except (OSError, ValueError):
        raise DpradError(
            f"{flat(str(file))} cannot be read: it is not text in UTF-8, or not allowed."
        ) from None


def builtin() -> Scenario:
    """The example scenario, on built-in data.

    Returns
    -------
    Scenario
        Two attackers and two releases.

    Examples
    --------
    >>> builtin().accepted
    0.1

    """
    from dprad.show.scenario import EXAMPLE

    return parse(EXAMPLE, name="example", folder=Path())


def parse(text: str, *, name: str, folder: Path) -> Scenario:
    """The scenario in a text; raises one `DpradError` that lists all errors."""
    wrong = Wrong(name, text)
    checked = structure(tables(text, name), wrong)
    scenario = _meaning(checked, text, folder, wrong)
    wrong.stop()
    assert scenario is not None  # otherwise it would have stopped
    return scenario


def tables(text: str, name: str) -> Table:
    """The tables of a text, as they are written."""
    if _deep(text):
        raise DpradError(f"{name} is nested too deeply.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # a name may be that of a person, so only the place is told
        place = re.search(r"\(at [^()]*\)$", str(error))
        where = "" if place is None else f" {place.group()}"
        raise DpradError(f"{name} is not TOML{where}.") from None
    except (ValueError, RecursionError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else "has a huge number"
        raise DpradError(f"{name} {what}.") from None


def _deep(text: str) -> bool:
    """Whether some key has very many parts."""
    dots = 0
    for token in _TOKEN.finditer(text) if text.count(".") >= DEEP else ():
        dots = dots + 1 if token["dot"] else dots if token["key"] else 0
        if dots >= DEEP:
            return True
    return False


def _meaning(checked: Table, text: str, folder: Path, wrong: Wrong) -> Scenario | None:
    """Population, threats and releases that fit together; tables that are spoiled are left out."""
    spoiled = frozenset(wrong.spoiled)
    whole = ("population", 0) not in spoiled
    population = checked.get("population", {"unknown": True} if whole else {})
    prior, source = None, None
    if whole:
        source = source_of(population, folder)
        prior = attempt(lambda: prior_of(population, folder), ("population", 0), wrong)
    if not checked["releases"] and ("releases", 0) not in spoiled:
        wrong.add((), "there must be at least one [[releases]]: a mechanism, or a promise.")
    columns = prior.columns if prior is not None else columns_of(population, folder, wrong)
    threats = _questions(checked, prior, columns, spoiled, wrong)
    _apart([table.get("name") for table in checked["threats"]], "threats", wrong)
    if "risk" not in checked.get("accepted", {"risk": None}) and ("accepted", 0) not in spoiled:
        wrong.add(("accepted", 0), "risk is missing: how much is accepted?")
    releases: list[Release | None] = []
    for k, table in enumerate(checked["releases"], 1):
        made = release_of(table, k, wrong, ("releases", k) in spoiled)
        plain = made is not None and made.mechanism in catalogue.FAMILIES and made.query is None
        if made is not None and plain and not checked["threats"] and len(columns or ()) > 1:
            made = replace(made, query=list(columns or ()))  # the attackers have many targets
        if (
            made is not None
            and "name" not in table
            and made.name in [r.name for r in releases if r]
        ):
            made = replace(made, name=f"{made.name} ({k})")
        releases.append(made)
        if made is None or prior is None:
            _known(table, columns, k, wrong)
        else:
            _fits(made, k, prior, threats, wrong)
    _apart([None if made is None else made.name for made in releases], "releases", wrong)
    audit = checked.get("audit")
    if audit is not None and ("audit", 0) not in spoiled:
        _audited(audit, prior, releases, wrong)
    if wrong.errors or prior is None:
        return None
    return Scenario(
        title=checked.get("title", "What does epsilon mean here?"),
        name=wrong.name,
        text=text,
        prior=prior,
        population=population,
        questions=tuple(threats),
        releases=tuple(r for r in releases if r is not None),
        accepted=checked.get("accepted", {}).get("risk"),
        worst=checked.get("accepted", {}).get("worst", False),
        decided={k: v for k, v in checked.get("accepted", {}).items() if k in DECIDED},
        audit=audit,
        folder=folder,
        source=source,
    )


def _apart(names: list[str | None], table: str, wrong: Wrong) -> None:
    """Names tell them apart, everywhere."""
    for k, name in enumerate(names, 1):
        if name is not None and name in names[: k - 1]:
            wrong.add((table, k, "name"), f"another one is called {name!r}: give it another name.")


def _fits(
    release: Release, k: int, prior: Prior, threats: list[tuple[str, Question]], wrong: Wrong
) -> None:
    """A release can read what it should. If no attacker is left, its query says what that is."""
    asked = [question for _, question in threats]
    if not asked and release.query is not None:
        asked = [Question.of(prior)]
    for question in asked:
        attempt(lambda q=question: release.check(q), ("releases", k), wrong)  # type: ignore[misc]


def _known(table: Table, columns: tuple[str, ...] | None, k: int, wrong: Wrong) -> None:
    """The query of a release that cannot be made names columns that are there."""
    query = table.get("query", [])
    if columns is None:
        return
    if isinstance(query, str) and is_predicate(query, columns):
        read = lambda: [part.name for part in comparisons(query)]  # noqa: E731
        query = attempt(read, ("releases", k, "query"), wrong) or []
    _named([query] if isinstance(query, str) else query, columns, "query", ("releases", k), wrong)


def _named(
    names: Any, columns: tuple[str, ...], key: str, place: tuple[str, int], wrong: Wrong
) -> None:
    for name in names:
        attempt(lambda n=name: column(n, columns, name=key), (*place, key), wrong)  # type: ignore[misc]


def _questions(
    checked: Table,
    prior: Prior | None,
    columns: tuple[str, ...] | None,
    spoiled: frozenset[tuple[str, int]],
    wrong: Wrong,
) -> list[tuple[str, Question]]:
    """Attackers by name, each with a prepared question; a standard set if none is named."""
    sensitive = checked.get("sensitive")
    if not checked["threats"] and ("threats", 0) not in spoiled:
        known = Prior.unknown() if prior is None else prior
        usual = attempt(lambda: standard(known, sensitive), ("", 0, "sensitive"), wrong) or []
        return [(name, Question.of(known, threat)) for name, threat in usual]
    if sensitive is not None:
        wrong.add(("", 0, "sensitive"), "sensitive columns are for attackers that are not named.")
    questions = []
    for k, table in enumerate(checked["threats"], 1):
        arguments = {key: v for key, v in table.items() if key != "name"}
        place = ("threats", k)

        def asked(given: Table = arguments) -> Question:
            threat = Threat(**given)
            return Question.of(Prior.unknown() if prior is None else prior, threat)

        whole = place not in spoiled and ("threats", 0) not in spoiled
        question = attempt(asked, place, wrong) if whole else None
        if question is not None:
            questions.append((table.get("name", f"attacker {k}"), question))
        if columns is not None and (prior is None or not whole):
            for key in ("knows", "target"):
                names = table.get(key, [])
                _named([] if isinstance(names, str) else names, columns, key, ("threats", k), wrong)
    return questions


def _audited(
    audit: Table, prior: Prior | None, releases: list[Release | None], wrong: Wrong
) -> None:
    """An audit needs something to call, and records to call it on."""
    if ("function" in audit) != ("claim" in audit):
        wrong.add(("audit", 0), "function and claim go together: give both or neither.")
    elif "function" not in audit and all(r is not None and r.mechanism is None for r in releases):
        wrong.add(("audit", 0), "there is nothing to audit: no mechanism above, and no function.")
    if prior is not None and prior.kind != "finite":
        wrong.add(("audit", 0), "an audit needs a population: records to call the function on.")
