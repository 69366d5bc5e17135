"""The documentation builds without a warning; its code is run by doctest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_site_builds(tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "dummy", str(ROOT / "docs")]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_readme_is_short_and_shows_a_report():
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") < 100 and (ROOT / "docs/pictures/report.png").exists()
    assert text.count("make demo") == text.count("make test") == 1
