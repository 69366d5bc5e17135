"""The pack in words: evidence.md, and results.json beside it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

SPAN = {"exact": "{}", "estimate": "{} (up to {high})", "upper-bound": "at most {}"}
COLUMNS = {
    "blind guess": "how often the best guess is right without any release;",
    "with the release": "how often the best guess is right with it, at most;",
    "not in the data": "how often the attack that gains most (another one, which may be right less "
    "often) is right if the person did not take part;",
    "in the data": "the same if they did;",
    "extra, average": "the difference of these two, on average over people: the extra risk;",
    "extra, maximum": "the same for the most exposed person, whoever the attacker is.",
}


def page(facts: dict[str, Any]) -> dict[str, bytes]:
    """Both files."""
    plain = json.dumps(finite(facts), indent=2, ensure_ascii=False, allow_nan=False)
    return {"results.json": f"{plain}\n".encode(), "evidence.md": words(facts).encode()}


def words(facts: dict[str, Any]) -> str:
    """The page, in Markdown."""
    asked = facts["opinion"]["questions"]
    lines = [f"# Evidence: {plain(facts['title'])}", "", *_decision(facts)]
    lines += ["", "## Three questions", "", f"From: {facts['opinion']['source']}."]
    lines += ["For all releases together, rounded up to hundredths:", ""]
    lines += [f"- **{name}**: {text}" for name, text in COLUMNS.items()]
    for one in asked:
        lines += ["", f"### {one['name']}: {one['asks']}", "", *one["means"], ""]
        lines += table(one["rows"]) if one["rows"] else ["**Not assessed.**"]
        lines += ["", "Not assessed:", "", *[f"- {plain(text)}" for text in one["not_assessed"]]]
    if any(row["any_prior"] for one in asked for row in one["rows"]):
        said = "The table says little about the population: too many rows are the only ones of "
        lines += ["", f"{said}their kind. What holds for every population is in results.json."]
    lines += ["", "## Every release", "", *table(facts["risks"])]
    lines += ["", "## Audits", ""]
    for found in facts["audits"]:
        lines += [f"### {plain(found['subject'])}", "", *map(plain, found["sentences"]), ""]
    lines += [] if facts["audits"] else ["None was made: what runs was not looked at.", ""]
    lines += ["## Not covered", ""]
    lines += [f"- **{name}.** {text}" for name, text in facts["exclusions"].items()]
    lines += ["", "## This holds if", "", *[f"- {plain(text)}" for text in facts["assumptions"]]]
    lines += ["", "## Methods and proofs", "", "| method | where it is proved |", "|---|---|"]
    lines += [f"| {plain(row['method'])} | {row['proof']} |" for row in facts["methods"]]
    lines += ["", "## Hashes (SHA-256)", "", *[f"- {_hashed(row)}" for row in facts["inputs"]]]
    lines += ["- Files of this folder: `sha256sum -c SHA256SUMS`.", "", facts["rounding"]]
    return "\n".join(lines) + "\n"


def _decision(facts: dict[str, Any]) -> list[str]:
    verdict, accepted = facts["verdict"], facts["accepted"]
    lines = ["**No accepted risk is given, so nothing is decided.**"]
    if verdict is not None:
        lines = [f"**{verdict['word']}.** {plain(verdict['sentence'])}"]
    lines += ["", f"- Made on {facts['made']} by {facts['made_by']}."]
    if accepted is not None:
        by, on = (plain(accepted[key] or "not said") for key in ("by", "on"))
        lines.append(f"- Accepted extra risk: {accepted['risk']:g} ({accepted['of']}).")
        lines.append(f"- Limit set by: {by}; on: {on}.")
    passed = " This date has passed." if facts["review"] < facts["made"] else ""
    return [*lines, f"- To be reviewed by {facts['review']}.{passed}"]


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Risks as a table in Markdown, with releases if these are named."""
    heads = [
        "attacker",
        *(["release"] if "release" in rows[0] else []),
        *COLUMNS,
        "within the limit",
    ]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [plain(row[key]) for key in ("attacker", "release") if key in row]
        lines.append(f"| {' | '.join([*cells, *numbers(row)])} |")
    return lines


def numbers(row: dict[str, Any]) -> list[str]:
    """The numbers of a risk, and whether it is accepted, as text."""
    told = {"accepted": "yes", "exceeded": "no", None: ""}
    nothing = "none" if row["threat"]["membership"] else "not known"
    return [
        _share(row["baseline"], nothing),
        _share(row["rero"], nothing),
        _share(row["success_out"]),
        _share(row["success_in"]),
        span(row["rad"], row["interval"], row["kind"]),
        span(row["worst"], row["worst_interval"], row["worst_kind"]),
        told.get(row["outcome"], "cannot be told"),
    ]


def _share(value: float | None, nothing: str = "not known") -> str:
    return nothing if value is None else f"{value:.2f}"


def span(value: float | None, interval: Any, kind: str | None) -> str:
    """A rounded risk as text."""
    if value is None:
        return "not computed"
    return SPAN[kind or "exact"].format(f"{value:.2f}", high=f"{interval[1]:.2f}")


def _hashed(row: dict[str, Any]) -> str:
    name = f"{row['what'].capitalize()}, {plain(row['name'])}: "
    return name + (row["note"] if row["sha256"] is None else f"`{row['sha256']}`.")


def plain(text: str) -> str:
    """Text as it is, in one line of Markdown: no markup, no control sequence, and nothing that
    becomes a link or calls somebody (an invisible sign is put in between).
    """
    line = "".join(c if c.isprintable() else " " for c in text)
    line = re.sub(r"([\\`*_\[\]<>|#~&!])", r"\\\1", line)
    return re.sub(r"(@|:(?=//)|\bwww(?=\.))", "\\1\N{WORD JOINER}", line)


def finite(value: Any) -> Any:
    """Plain data without infinite numbers, which JSON has not."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
