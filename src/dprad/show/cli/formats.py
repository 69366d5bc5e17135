"""The verdict for pipelines: JUnit XML, SARIF 2.1.0, and Markdown for a comment.

These are read by others, so every number is rounded as in a report; what is judged is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.etree import ElementTree

import dprad
from dprad.errors import DpradError
from dprad.model import explain
from dprad.model.results import Risk
from dprad.model.verdicts import Verdict, headed, judge, narrow
from dprad.show.cli.output import clean
from dprad.show.report.evidence.facts import TOGETHER, row, rows, sentence
from dprad.show.report.evidence.text import plain, span, table
from dprad.show.report.published import SAID
from dprad.show.scenario import Answers
from dprad.show.scenario.schema import Wrong

Format = Literal["text", "junit", "sarif", "markdown"]
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"exceeded": "error", "cannot be told": "warning", "accepted": "note"}
DOUBT = "the table says little about the population"


@dataclass(frozen=True, slots=True)
class Judged:
    """A title, the verdict (None without an accepted risk), and a row for each attacker and
    release; `file` and `lines`: where the releases are described; `unasked`: what no attacker is
    after, as a sentence.
    """

    title: str
    verdict: Verdict | None
    rows: Sequence[dict[str, Any]]
    file: Path | None = None
    lines: dict[str, int] | None = None
    unasked: str = ""


def of_answers(answers: Answers, file: Path) -> Judged:
    """A scenario, answered."""
    scenario = answers.scenario
    places = Wrong(scenario.name, scenario.text).lines
    lines = {r.name: places.get(("releases", k, ""), 1) for k, r in enumerate(scenario.releases, 1)}
    lines[TOGETHER] = places.get(("accepted", 0, ""), 1)
    title = f"{scenario.title} ({file.name})"
    return Judged(title, answers.verdict, rows(answers), file, lines, answers.unasked)


def of_cases(
    cases: Sequence[tuple[str, Risk]], verdict: Verdict | None, release: str, unasked: str
) -> Judged:
    """Attackers of one release, from options; who has no name is described."""
    found = []
    for name, risk in cases:
        outcome = None
        if verdict is not None:
            outcome = judge([(name, risk)], verdict.limit, worst=verdict.worst).outcome
        found.append(
            {"release": release} | row(name or explain.attacker(risk.threat), risk, outcome)
        )
    return Judged("What does epsilon mean here?", verdict, found, unasked=unasked)


def written(judged: Judged, form: Format) -> str:
    """In the format that is asked for. What gates a release needs an accepted risk."""
    if judged.verdict is None and form != "markdown":
        raise DpradError(
            f"--format {form} needs an accepted risk: give --max-risk, or [accepted] in the file."
        )
    return WRITERS[form](judged)


def junit(judged: Judged) -> str:
    """A test case per attacker and release; what cannot be told is skipped."""
    counts = dict.fromkeys(LEVELS, 0)
    suite = ElementTree.Element("testsuite", name=clean(judged.title))
    for one in judged.rows:
        counts[one["outcome"]] += 1
        names = {"classname": clean(one["release"]), "name": clean(one["attacker"])}
        case = ElementTree.SubElement(suite, "testcase", names, time="0")
        said = clean(_said(judged, one))
        if one["outcome"] == "exceeded":
            ElementTree.SubElement(case, "failure", message=said, type="exceeded").text = said
        elif one["outcome"] == "cannot be told":
            ElementTree.SubElement(case, "skipped", message=clean(f"{said} ({_doubt(one)})"))
        else:
            ElementTree.SubElement(case, "system-out").text = said
    totals = {"tests": len(judged.rows), "failures": counts["exceeded"], "errors": 0}
    totals["skipped"] = counts["cannot be told"]
    for name, count in totals.items():
        suite.set(name, str(count))
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    ElementTree.indent(whole)
    text = ElementTree.tostring(whole, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'


def sarif(judged: Judged) -> str:
    """A result per attacker and release, at the lines of a scenario file."""
    rule = {
        "id": "extra-risk",
        "shortDescription": {"text": "The extra risk of taking part stays within what is accepted"},
    }
    results = []
    for one in judged.rows:
        text = f"{one['release']}, {one['attacker']}: {_said(judged, one)}"
        text += f" ({_doubt(one)})" if one["outcome"] == "cannot be told" else ""
        found = {"ruleId": rule["id"], "ruleIndex": 0, "level": LEVELS[one["outcome"]]}
        shown = re.sub(r"[\[\]\\]", r"\\\g<0>", clean(text))  # no link, whatever names say
        results.append(found | {"message": {"text": shown}} | _place(judged, one["release"]))
    driver = {"name": "dprad", "version": dprad.__version__, "rules": [rule]}
    run = {"tool": {"driver": driver}, "results": results}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False)


def _place(judged: Judged, release: str) -> dict[str, Any]:
    if judged.file is None or judged.lines is None:
        return {}
    path = judged.file
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    place = {"artifactLocation": {"uri": uri}}
    region = {"region": {"startLine": judged.lines.get(release, 1)}}
    return {"locations": [{"physicalLocation": place | region}]}


def markdown(judged: Judged) -> str:
    """The verdict and a table, for a comment on a change."""
    lines = [f"### {plain(judged.title)}", ""]
    if judged.verdict is not None:
        word = headed(judged.verdict, judged.unasked)
        lines += [f"**{word}.** {plain(sentence(judged.verdict))}", ""]
    lines += [plain(judged.unasked), ""] if judged.unasked else []
    return "\n".join([*lines, *table(judged.rows), "", SAID])


def _doubt(one: dict[str, Any]) -> str:
    return f"cannot be told: {' '.join(one['doubts']) or DOUBT}"


def _said(judged: Judged, one: dict[str, Any]) -> str:
    assert judged.verdict is not None
    own = span(one["worst"], one["worst_interval"], one["worst_kind"])
    mean = span(one["rad"], one["interval"], one["kind"])
    limit = "the most exposed person" if judged.verdict.worst else "the average"
    said = (
        f"extra risk {mean} on average over people, {own} for the most exposed person; accepted "
        f"is {judged.verdict.limit:g} for {limit}"
    )
    if one["any_prior"] is not None:
        every = explain.above(one["any_prior"][judged.verdict.worst])
        said += f"; {DOUBT}, and for every population it is at most {every}"
    if one["outcome"] != "accepted" or not judged.unasked:
        return said
    return f"{narrow(judged.unasked)}: {said}. {judged.unasked}"


WRITERS: dict[str, Callable[[Judged], str]] = {
    "junit": junit,
    "sarif": sarif,
    "markdown": markdown,
}
