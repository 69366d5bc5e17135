"""Known weaknesses in what dprad installs: pip-audit, where an advisory database can be reached."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata

import pytest


def installed_with(name, found):
    """The package and all that it requires, extras aside."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name not in found:
        found.add(name)
        for line in metadata.requires(name) or []:
            if "extra ==" not in line:
                required = re.match(r"[\w.-]+", line).group()
                try:
                    installed_with(required, found)
                except metadata.PackageNotFoundError:
                    continue  # for another platform
    return found


def test_no_dependency_has_a_known_weakness(tmp_path):
    ours = installed_with("dprad", set()) - {"dprad"}
    asked = tmp_path / "installed.txt"
    asked.write_text("".join(f"{name}=={metadata.version(name)}\n" for name in sorted(ours)))
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    command += ["--requirement", str(asked), "--no-deps", "--disable-pip"]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=90)
        found = json.loads(made.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        pytest.skip("no advisory database can be reached from here: dependencies not audited.")
    known = [d for d in found if "vulns" in d]
    if not known:
        pytest.skip("the registry used here has no advisories: dependencies not audited.")
    weak = {d["name"]: [v["id"] for v in d["vulns"]] for d in known if d["vulns"]}
    assert not weak


def test_floors_leave_known_weaknesses_behind():
    """Versions below these have published weaknesses."""
    floors = {}
    for line in metadata.requires("dprad"):
        name, _, rest = line.partition(">=")
        floors[name] = tuple(int(n) for n in re.match(r"[\d.]+", rest or "0").group().split("."))
    assert floors["jinja2"] >= (3, 1, 6)
    assert floors["scikit-learn"] >= (1, 5)
    assert floors["torch"] >= (2, 6)
