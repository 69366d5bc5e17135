"""dprad ledger: releases over time, what they add up to, and what the next one may be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from dprad.errors import DpradError
from dprad.mechanisms.catalogue import NUMBERS
from dprad.show.cli import options
from dprad.show.cli.options import OUTPUT, SUBJECT, listed
from dprad.show.cli.output import show, show_json

if TYPE_CHECKING:
    from dprad.show.ledger import Ledger, Standing

    Numbers = Any
    _NONE: Any
else:
    Numbers = options.number_options(SUBJECT, *NUMBERS.values())
    _NONE = Numbers()

app = App(
    name="ledger",
    help=(
        "Releases over time: what they add up to, and what the next one may be.\n\n"
        "Example: dprad ledger init releases.jsonl --scenario scenario.toml"
    ),
    help_format="plaintext",
)
Adaptive = Annotated[bool, Parameter(group=OUTPUT, negative=())]
Json = Annotated[bool, Parameter(group=OUTPUT, negative=())]
Limit = Annotated[options.Share | None, Parameter(group=OUTPUT)]


@app.command
def init(path: Path = Path("releases.jsonl"), /, *, scenario: Path) -> int:
    """Start a ledger for the population, the attackers and the accepted risk of a scenario.

    Example: dprad ledger init releases.jsonl --scenario scenario.toml

    Parameters
    ----------
    path
        The file to start.
    scenario
        The scenario file; its releases count only once they are added.

    """
    from dprad.show.ledger import Ledger

    if path.exists():
        raise DpradError(f"{path} already exists; choose another name.")
    Ledger(path, scenario=scenario)
    show(f"Started {path}. Try: dprad ledger add {path} --name NAME")
    return 0


@app.command
def add(
    path: Path,
    /,
    *,
    name: str,
    mechanism: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    numbers: Numbers = _NONE,
    neighbours: Annotated[str | None, Parameter(group=SUBJECT)] = None,
    query: Annotated[str | None, Parameter(group=SUBJECT, help=options.QUERY)] = None,
    like: str | None = None,
    date: str | None = None,
    state: Literal["planned", "published", "withdrawn"] = "planned",
    unit: str | None = None,
    share: options.Share = 1.0,
    data: Path | None = None,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    adaptive: Adaptive = False,
    json: Json = False,
) -> int:
    """Add a release, or note that one was published or withdrawn; say what it adds.

    Example: dprad ledger add releases.jsonl --name January --mechanism laplace --epsilon 1

    What it is: --mechanism or a promise; else the release of the ledger called --like; else the
    release of the scenario called --name. Exits with code 1 if all together exceed the accepted
    risk, and with 3 if it cannot be told; the release is in the ledger all the same, unless
    --dry-run.

    Parameters
    ----------
    path
        The ledger.
    name
        A name that no other release has; of one that is there, to change its --state.
    mechanism
        A mechanism, by short name.
    numbers
        The promise, or the amount of noise.
    neighbours
        replace-one or add-remove: what a promise compares.
    query
        What the mechanism reads.
    like
        Another release of the ledger, to be repeated.
    date
        When it is published, as 2030-01-31 (default: today).
    state
        planned, published or withdrawn. What was published counts even after it was withdrawn.
    unit
        Whose contribution the noise hides, if it is not a person, as in visit. Say with --people
        how many of these one person has at most; else nothing can be accepted.
    share
        The share of the population that it covers, as 0.2 or 20%.
    data
        The file with the data; its hash is kept.
    dry_run
        Only say what it would add.
    adaptive
        Count guarantees only: valid if releases are chosen after earlier ones were seen.
    json
        Print the standing as JSON.

    """
    from dataclasses import replace

    from dprad.show.ledger import Ledger
    from dprad.show.ledger.standing import standing_of

    ledger = Ledger.open(path)
    entries = ledger.entries
    asked = replace(ledger.asked(), adaptive=adaptive)
    if any(entry.name == name for entry in entries):
        told = (
            mechanism,
            neighbours,
            query,
            like,
            date,
            unit,
            data,
            *options.given(numbers).values(),
        )
        if dry_run or state == "planned" or share != 1.0 or any(v is not None for v in told):
            raise DpradError(
                f"{name!r} is in the ledger already. Choose another name, or give nothing but its "
                "--state, published or withdrawn."
            )
        ledger.mark(name, state)
        return _told(ledger, standing_of(ledger.entries, asked), json, f"{name}: {state}.")
    if state == "withdrawn":
        raise DpradError(f"{name!r} is not in the ledger, so it cannot be withdrawn.")
    given = {k.removeprefix("--"): v for k, v in options.given(numbers).items() if v is not None}
    # of a unit that is not a person; else part of a promise
    apart = unit not in (None, "person") or set(given) == {"people"}
    people = given.pop("people", None) if apart else None
    given |= {} if neighbours is None else {"neighbours": neighbours}
    release = _release(ledger, name, like, mechanism, given, query)
    about: dict[str, Any] = {"name": name, "date": date, "state": state, "share": share}
    about |= {"data": data, **_units(release, unit, people)}
    made = ledger.made(release, **about)
    made.check(asked.questions[0][1])
    standing = standing_of((*entries, made), asked)  # refused before it is written
    if not dry_run:
        ledger.add(release, **about)
        now = ledger.entries
        if now != (*entries, made) or asked.doubts:  # others added something, or this was missing
            standing = standing_of(now, replace(ledger.asked(), adaptive=adaptive))
    said = f"{name}: {'would be ' if dry_run else ''}{state}."
    return _told(ledger, standing, json, said, name)


def _units(release: Any, unit: str | None, people: int | None) -> dict[str, Any]:
    """What is hidden, and how much of it one person has: as given, or as repeated."""
    from dprad.show.ledger import Entry

    if isinstance(release, Entry) and unit in (None, release.unit):
        return {"unit": release.unit, "people": release.people if people is None else people}
    return {"unit": "person" if unit is None else unit, "people": people}


def _release(
    ledger: Ledger, name: str, like: str | None, mechanism: str | None, given: Any, query: Any
) -> Any:
    """What is published: as given, as another release of the ledger, or as the scenario says."""
    from dprad.errors import one_of
    from dprad.show.scenario import load
    from dprad.show.scenario.release import Release

    if ledger.scenario is None:
        raise DpradError(f"{ledger.path} names no scenario; use dprad.Ledger in Python.")
    scenario = load(ledger.scenario)
    if mechanism is not None or given:
        if like is not None:
            raise DpradError("give --like, or a mechanism or promise, not both.")
        return Release(name, mechanism, given, options.queried(query, scenario.prior))
    if query is not None:
        raise DpradError("--query needs --mechanism.")
    if like is not None:
        known = {entry.name: entry for entry in ledger.entries}
        return known[one_of(like, "--like", known)]
    planned = {release.name: release for release in scenario.releases}
    if name not in planned:
        raise DpradError(
            f"say what {name!r} is: --mechanism or a promise, --like another release, or the name "
            f"of a release of the scenario ({', '.join(planned)})."
        )
    return planned[name]


@app.command
def status(
    path: Path,
    /,
    *,
    max_risk: Limit = None,
    worst: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    adaptive: Adaptive = False,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"], group=OUTPUT)] = None,
    json: Json = False,
) -> int:
    """What everything in the ledger adds up to, for every attacker.

    Example: dprad ledger status releases.jsonl

    Exits with code 1 if that exceeds the accepted risk, and with 3 if it cannot be told.

    Parameters
    ----------
    path
        The ledger.
    max_risk
        The accepted risk (default: that of the scenario).
    worst
        Whether it is for the most exposed person, not for the average over people.
    adaptive
        Count guarantees only: valid if releases are chosen after earlier ones were seen.
    out
        Also write a report, as HTML.
    json
        Print everything as JSON.

    """
    from dprad.show.ledger import Ledger

    ledger = Ledger.open(path)
    _spare(out, ledger)
    standing = ledger.status(max_risk=max_risk, worst=worst or None, adaptive=adaptive)
    if out is not None:
        from dprad.runtime.writing import write
        from dprad.show.report.ledger import report_ledger

        text = report_ledger(standing, title=f"Releases in {path.name}")
        write(out, text, inputs=ledger.files)
    return _told(ledger, standing, json, f"{path}: {len(standing.entries):,} releases, of which "
                 f"{len(standing.counted):,} count.")  # fmt: skip


def _spare(out: Path | None, ledger: Ledger) -> None:
    """Refuse to write over what is read, before the work."""
    from dprad.runtime.writing import spared

    if out is not None:
        spared(out, ledger.files)


def _told(ledger: Ledger, standing: Standing, json: bool, first: str, name: str = "") -> int:
    """Print a standing; the exit code."""
    if json:
        show_json(standing.to_dict() | {"head": ledger.head})
        return standing.code
    show(f"{first}\n{standing.text(new=name)}")
    return standing.code


@app.command
def plan(
    path: Path,
    /,
    *,
    like: str | None = None,
    releases: options.Whole = 12,
    weights: str | None = None,
    max_risk: Limit = None,
    worst: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    adaptive: Adaptive = False,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"], group=OUTPUT)] = None,
    json: Json = False,
) -> int:
    """What the next releases would cost, and the least noise that keeps the accepted risk.

    Example: dprad ledger plan releases.jsonl --like January --releases 12

    Exits with code 1 if they exceed it with the noise of now, or if no noise suffices, and with 3
    if it cannot be told.

    Parameters
    ----------
    path
        The ledger.
    like
        The release that is repeated (default: the last one).
    releases
        How many times.
    weights
        How much the error of each matters, separated by commas (default: all alike).
    max_risk
        The accepted risk (default: that of the scenario).
    worst
        Whether it is for the most exposed person, not for the average over people.
    adaptive
        Count guarantees only: valid if releases are chosen after earlier ones were seen.
    out
        Also draw the risk after each, as SVG.
    json
        Print everything as JSON.

    """
    from dprad.errors import CannotBeToldError, NoNoiseSufficesError
    from dprad.show.ledger import Ledger

    each = None
    if weights is not None:
        try:
            each = [float(w) for w in listed(weights, "--weights") or []]
        except ValueError:
            raise DpradError(f"--weights must be numbers, but is {weights!r}.") from None
    ledger = Ledger.open(path)
    _spare(out, ledger)
    try:
        made = ledger.plan(
            like, releases=releases, weights=each, max_risk=max_risk, worst=worst or None,
            adaptive=adaptive,
        )  # fmt: skip
    except NoNoiseSufficesError as error:
        show(f"Not possible: {error}")
        return 1
    except CannotBeToldError as error:
        show(f"Cannot be told. {error}")
        return 3
    if out is not None:
        from dprad.runtime.writing import write
        from dprad.show.plots import plot_plan
        from dprad.show.plots.style import svg
        from dprad.show.report.published import drawn

        figure = svg(lambda ax: plot_plan(drawn(made), ax), label="joint risk")
        write(out, figure, inputs=ledger.files)
    if json:
        show_json(made.to_dict())
    else:
        show(str(made))
    return 0 if made.affordable == len(made.values) else 1


@app.command
def verify(path: Path, /, *, head: str | None = None) -> int:
    """Check that no line was edited, removed or moved, and that the scenario is as it was.

    Example: dprad ledger verify releases.jsonl

    Exits with code 1 if a line is incomplete and its release missing, or if the scenario or its
    data changed since releases were entered under it, and with 2 if a line is not what was written.

    Parameters
    ----------
    path
        The ledger.
    head
        A checksum that an earlier check printed: it must occur, so that nothing was cut off since.

    """
    from dprad.show.ledger import Ledger

    ledger = Ledger.open(path)
    lines = ledger.verify(head)
    missing = ledger.missing
    wrong = [*missing, *ledger.changed]
    whole = "its complete lines are" if missing else "it is"
    show("\n".join([
        *wrong,
        *ledger.told,
        f"{path}: {whole} as written, {lines - 1:,} after the first.",
        "Keep this checksum elsewhere, to notice lines that are cut off later: " + ledger.head,
    ]))  # fmt: skip
    return 1 if wrong else 0
