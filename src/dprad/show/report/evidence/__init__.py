"""The evidence pack: a folder that an auditor or a data-protection officer files.

`evidence` writes the report, the scenario, the results as JSON, a page in words, and a list of
hashes. Every number in it is rounded as in a report.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from dprad.show.report.evidence.facts import facts, input_of
from dprad.show.report.evidence.folder import seal, usable
from dprad.show.report.evidence.text import page
from dprad.show.report.page import html_of, needed
from dprad.show.scenario import Scenario, answer

__all__ = ["evidence"]


def evidence(
    scenario: Scenario,
    folder: Any,
    *,
    command: str = "",
    allow_code: bool = False,
    today: date | None = None,
) -> Path:
    """Answer a scenario and write its evidence pack, as `today` or on this day.

    The folder is new, empty, or an earlier pack, which is replaced.
    """
    needed()  # before the work, not after it
    target = usable(folder, scenario.files)
    answers = answer(scenario, allow_code=allow_code)
    day = datetime.now(UTC).date() if today is None else today
    found = facts(answers, command, day)
    files = {"report.html": html_of(answers, command, found["verdict"]).encode()}
    text = input_of(scenario)
    if text is not None:
        files["scenario.toml"] = text
    return seal(target, files | page(found))
