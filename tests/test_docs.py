"""The documentation builds without a warning; its code is run by doctest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dprad

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


def paper_is_named(reference):
    assert reference["type"] == "article" and reference["title"].startswith("Understanding Disc")
    names = [author["family-names"] for author in reference["authors"]]
    assert names == ["Guerra-Balboa", "Sauer", "Arcolezi", "Strufe"]
    assert all(author["given-names"] for author in reference["authors"])
    assert reference["year"] == 2026
    assert re.fullmatch(r"10\.\d{4,9}(/[^/]+)+", reference["doi"])  # the pattern of the schema
    assert reference["url"].endswith(reference["doi"].split("arXiv.")[1])


def test_the_citation_has_what_its_schema_requires():
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cited = yaml.safe_load(text)
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0" and cited["type"] in ("software", "dataset")
    assert cited["version"] == dprad.__version__ and cited["license"] == "Apache-2.0"
    assert cited["authors"] and all(
        author.get("name") or author.get("family-names") for author in cited["authors"]
    )
    assert all({"type", "title", "authors"} <= set(one) for one in cited["references"])
    paper_is_named(cited["preferred-citation"])
    assert cited["preferred-citation"] in cited["references"]
    assert not re.search(
        r"[&*]\w+$", text, re.MULTILINE
    )  # some readers of the format allow no aliases


def test_the_readme_names_the_paper():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for link in ("https://arxiv.org/abs/2603.12142", "docs/paper-map.md", "docs/theory/errata.md"):
        assert f"({link})" in text
    assert "CITATION.cff" in text
