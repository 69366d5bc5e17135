"""The checks on the errata page are run as they are printed."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import pytest

from dprad import Prior, Threat, assess
from dprad.mechanisms import GRR

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/theory/errata.md").read_text()
CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
ENTRIES = [part.partition("\n") for part in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]]


@pytest.fixture
def namespace(monkeypatch):
    """What the page imports first, from the root of the repository."""
    monkeypatch.chdir(ROOT)
    space = {}
    exec(CODE.search(PAGE).group(1), space)
    return space


@pytest.mark.parametrize(("title", "text"), [(t, x) for t, _, x in ENTRIES], ids=lambda x: x[:30])
def test_an_entry(title, text, namespace):
    """Each entry has one check, which ends in an assert and can fail."""
    (code,) = CODE.findall(text)
    last = ast.parse(code).body[-1]
    last = last.body[-1] if isinstance(last, ast.For) else last
    assert isinstance(last, ast.Assert), title
    exec(compile(code, title, "exec"), namespace)


@pytest.mark.parametrize("title", [t for t, _, _ in ENTRIES])
def test_entries_say_what_holds(title):
    """Groups 1 to 3 name the place, what holds and how much it matters."""
    text = next(x for t, _, x in ENTRIES if t == title)
    if PAGE.index(f"### {title}") < PAGE.index("## 4."):
        assert "**Where" in text and "**Matters.**" in text
    assert len(text.split()) > 30


def test_there_are_four_groups():
    groups = re.findall(r"^## \d\. (.*)$", PAGE, flags=re.MULTILINE)
    assert groups == [
        "Changes a conclusion",
        "Changes a number",
        "Slips and remarks without consequence",
        "Remarks on the code",
    ]


def test_the_attacker_who_must_guess():
    prior = Prior.from_counts({(x, y): 1 for x in range(3) for y in range(2)}, columns=["x", "y"])
    threat = Threat(knows=["x"], target=["y"], must_guess=True)
    risk = assess(GRR(epsilon=1.0, size=6), prior=prior, threat=threat, query=["x", "y"])
    assert risk.rad == pytest.approx(math.expm1(1) / (math.e + 5) / 2)
