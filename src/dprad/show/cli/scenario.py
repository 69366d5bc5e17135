"""Commands on scenario files: init and report; and what assess and calibrate do with one."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dprad.errors import DpradError
from dprad.show.cli.output import show, show_json

if TYPE_CHECKING:
    from dprad.show.cli.formats import Format


def init(path: Path = Path("scenario.toml"), /, *, force: bool = False) -> int:
    """Write a commented example of a scenario file.

    Example: dprad init scenario.toml --force

    Parameters
    ----------
    path
        The file to write.
    force
        Overwrite an existing file.

    """
    from dprad.runtime.writing import write
    from dprad.show.scenario import EXAMPLE

    if path.exists() and not force:
        raise DpradError(f"{path} already exists; choose another name, or add --force.")
    write(path, EXAMPLE, new=not force)
    show(f"Wrote {path}. Try: dprad assess {path}")
    return 0


def report(
    scenario: Path | None = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    evidence: Path | None = None,
    ledger: Path | None = None,
    allow_code: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Answer every question of a scenario in one HTML file, to share with others.

    Example: dprad report -o report.html

    Parameters
    ----------
    scenario
        The scenario file; without one, the built-in example.
    out
        The file to write (default: report.html).
    evidence
        Instead, a folder for an auditor: the report, the scenario, results as JSON, what is not
        covered, proofs, hashes and a date of review. New, empty, or an earlier one.
    ledger
        Also the ledger of its releases: a time line, and what each release added.
    allow_code
        Import and run the function that the scenario names for its audit.

    """
    from dprad.runtime.writing import replaceable
    from dprad.show import scenario as scenarios
    from dprad.show.ledger import Ledger
    from dprad.show.report import report_scenario

    loaded = scenarios.builtin() if scenario is None else scenarios.load(scenario)
    name = "" if scenario is None else f" {quote(scenario.name)}"
    if evidence is not None:
        from dprad.show.report.evidence import evidence as pack

        if out is not None:
            raise DpradError("give --out or --evidence, not both: the folder has the report.")
        if ledger is not None:
            raise DpradError("--ledger goes with --out, not with --evidence.")
        command = f"dprad report{name} --evidence {quote(evidence.name)}"
        folder = pack(loaded, evidence, command=command, allow_code=allow_code)
        show(f"Wrote {len(list(folder.iterdir()))} files to {evidence}.")
        return 0
    out = _usual() if out is None else out
    command = f"dprad report{name} -o {quote(out.name)}"
    kept = None if ledger is None else Ledger.open(ledger)
    made = report_scenario(loaded, out, command=command, allow_code=allow_code, ledger=kept)
    if replaceable(made):  # else it may be where this line would go
        show(f"Wrote {made} ({made.stat().st_size / 1000:.0f} kB).")
    return 0


def _usual() -> Path:
    """The file that nobody named: new, or an earlier report."""
    from dprad.show.report.page import MADE

    usual = Path("report.html")
    if usual.is_file():
        with usual.open("rb") as file:
            if MADE.encode() not in file.read(1000):
                raise DpradError(f"{usual} is there, and is no report: name a file with -o.")
    return usual


def alone(given: dict[str, Any]) -> None:
    """A scenario file contains everything; other options are refused."""
    for option, value in given.items():
        if value is not None:
            raise DpradError(f"{option} does not apply with a scenario file; write it there.")


def assessed(path: Path, *, json: bool, form: Format = "text") -> int:
    """Every threat against all releases together and each alone; the exit code is the verdict."""
    from dprad.show.scenario import answer, load

    answers = answer(load(path), plans=False, audits=False)
    if json:
        show_json(answers.to_dict())
        return answers.code
    if form != "text":
        from dprad.show.cli.formats import of_answers, written

        show(written(of_answers(answers, path), form))
        return answers.code
    show(str(answers))
    return answers.code


def calibrated(path: Path, *, json: bool) -> int:
    """The least noise of every release for the accepted risk."""
    from dprad.show.scenario import answer, load

    scenario = load(path)
    if scenario.accepted is None:
        raise DpradError(f"{path} does not give an accepted risk: add [accepted] risk = 0.1.")
    answers = answer(scenario, audits=False)
    if json:
        show_json(answers.to_dict())
        return 0
    lines = [f"Scenario: {scenario.title}"]
    for release, plans, reasons in zip(
        scenario.releases, answers.plans, answers.reasons, strict=True
    ):
        lines += ["", f"Release '{release.name}':"]
        for (threat, _), plan, reason in zip(scenario.threats, plans, reasons, strict=True):
            if plan is None and reason is None:
                continue  # only the attacker who gains most counts
            why = "" if reason is None else reason.text
            said = why if plan is None else str(plan).split("\n")[0]
            lines.append(f"  {threat}: {said}")
    show("\n".join(lines))
    return 0
