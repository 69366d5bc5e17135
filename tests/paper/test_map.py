"""The map of the paper: names exist, links lead somewhere, and every call gives its number."""

from __future__ import annotations

import importlib
import math
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from scipy.stats import norm

from dprad.paper.experiments import EXPERIMENTS

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGE = (DOCS / "paper-map.md").read_text()
LINES = 80


@dataclass(frozen=True)
class Line:
    """A row of the page."""

    place: int
    label: str
    what: str
    where: list[str]
    call: str
    number: str
    status: str


def line(row: str) -> Line:
    place, label, what, where, call, number, status = (
        c.strip() for c in row.strip("| ").split("|")
    )
    names = re.findall(r"`([^`]+)`", where)
    return Line(int(place), label.strip("`"), what, names, call.strip("`"), number, status)


TABLE = [line(row) for row in re.findall(r"^\| \d.*$", PAGE, flags=re.MULTILINE)]


def slug(heading: str) -> str:
    """The anchor of a heading, as the site and the repository's host make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.fixture(scope="module")
def namespace():
    """What the page defines for its calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        space = {}
        exec(re.search(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)[1], space)
        yield space


def test_all_lines_are_there():
    assert [x.place for x in TABLE] == list(range(1, LINES + 1))
    assert len({x.label for x in TABLE}) == LINES
    kinds = {k: sum(x.label.startswith(k) for x in TABLE) for k in ("def:", "th:", "fig:", "tab:")}
    assert kinds == {"def:": 6, "th:": 5, "fig:": 28, "tab:": 3}
    assert f": {LINES} lines" in PAGE


@pytest.mark.parametrize("item", TABLE, ids=lambda x: x.label)
def test_a_line(item, namespace):
    """Its names can be imported, its call gives the number, its links resolve."""
    assert item.where and item.what
    for name in item.where:
        command = re.fullmatch(r"dprad reproduce ([\w-]+)", name)
        if command:
            assert command[1] in EXPERIMENTS and (DOCS / f"reproduction/{command[1]}.md").exists()
        else:
            assert found(name) is not None
    digits = len(item.number.partition(".")[2])
    unit = 1.0 if item.call.startswith("cell(") else 0.5  # runs may differ in the last digit
    value = float(eval(item.call, namespace))
    assert abs(value - float(item.number)) <= unit * 10.0**-digits + 1e-12, value
    assert item.status == "there" or re.fullmatch(
        r"\[(corrected|there; slip in the derivation)\]\(theory/errata.md#[\w-]+\)", item.status
    )


def found(name: str):
    """A module, or something in one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[k:]:
            value = getattr(value, attribute)
        return value
    return None


@pytest.mark.parametrize("page", ["paper-map.md", "theory/errata.md", "choose-bound.md"])
def test_links_resolve(page):
    file = DOCS / page
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text()):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        to = (file.parent / path).resolve() if path else file
        assert to.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", to.read_text(), flags=re.MULTILINE)
            assert anchor in map(slug, headings), target


def oue(m: int, epsilon: float) -> float:
    e = math.exp(epsilon)
    return (e - 1) / (2 * m) * (1 - (e / (1 + e)) ** (m - 1))


def laplace(m: int, epsilon: float) -> float:
    return (m - 1) / m * -math.expm1(-epsilon / (2 * (m - 1)))


def gauss(m: int, sigma: float) -> float:
    return (m - 1) / m * (2 * norm.cdf(1 / (2 * sigma * (m - 1))) - 1)


def subset(m: int, epsilon: float) -> float:
    e = math.exp(epsilon)
    w = max(1, math.floor(m / (e + 1)))
    return e / (w * e + m - w) - 1 / m


def gaussian_theorem_3(m: int, mu: float) -> float:
    a = min(1 / (m - 1), norm.sf(mu / 2))
    return (m - 1) / m * (norm.sf(norm.isf(a) - mu) - a)


E = math.e
# The paper's formulas, written out here, for the lines that have one.
FORMULAS = {
    "def:att_adv": math.tanh(0.5) / 2,
    "def:rero": E / (E + 9),
    "def:f-DP": norm.cdf(norm.ppf(0.9) - 1),
    "def:TV": 2 * norm.cdf(0.5) - 1,
    "def:new_u-rero": 0.9 * (E - 1) / (E + 9),
    "th:dp_implies_aux-urero": 0.9 * math.tanh(0.5),
    "th:optimal_bound": 1 / 2 * (E - 1) / (E + 5),
    "th:f-DP": 0.18 * (2 * norm.cdf(0.5) - 1),
    "prop:dp_implies_urero": 0.1 * (E - 1),
    "lemma:Gamma": 9 * (E - 1) / (E + 9),
    "co:unif": 0.9 * (E - 1 + 1e-4) / (E + 9),
    "ex:grr_short": 0.7 * (E - 1) / (E + 3),
    "ex:oue_short": oue(10, 1.0),
    "ex:ss_short": subset(10, 1.0),
    "ex:laplace_short": laplace(11, 14.0) - oue(11, 14.0),
    "ex:gaussian_short": gauss(11, 1.0),
    "ex:maz_alpha": gaussian_theorem_3(10, 1.0),
    "ex:dp-sgd_composition": norm.cdf(10 / 22 + norm.ppf(0.1)) - 0.1,
    "ex:ss": subset(11, 2.0),
    "ex:gauss": gauss(11, 0.7),
    "Laplace Mechanism and aux = {}": laplace(11, 2.0),
    "fig:optimal_examples": laplace(11, 5.0),
    "fig:laplace_accu": -18 * math.log(1 - 1 / 9),
    "fig:black_box bounds": 0.9 * (E - 1 + 2e-5) / (E + 1),
    "fig:laplace_exteme": -math.expm1(-0.5) / 2,
    "fig:attacks_porto": oue(3052, 8.0),
    "fig:attacks_beijing": oue(5356, 8.0),
    "eq:balle_bound": 0.5 * math.exp(0.5),
    "eq:hayes_bound": norm.cdf(1.0),
    "eq:f-to-tv": (E - 1 + 0.02) / (E + 1),
    "eq:full_auz_discrete": 0.45 * math.tanh(0.5),
    "eq:no_aux": 0.74 * (E - 1) / (E + 9),
    "eq:no_auz_uni": (0.7 + 0.8 + 0.1 - 1) / 2,
    "eq:ldp_audit": math.log(2 / (1 - 1 / 9)),
    "epsilon of GRR (ex:grr_short)": math.log(11 / (1 - 0.1 / 0.99)),
    "TV of a composition": 1 - 0.8 * 0.7,
    "kappa_pi (sec:main)": 0.01 + 0.04 + 0.09 + 0.16,
    "RAD / (1 - kappa)": (E - 1) / (E + 3),
    "formula before eq:no_auz_uni": 5 / 6 * (E - 1) / (E + 5),
}


@pytest.mark.parametrize("label", FORMULAS)
def test_the_papers_formula(label):
    number = next(x.number for x in TABLE if x.label == label)
    digits = len(number.partition(".")[2])
    assert abs(FORMULAS[label] - float(number)) <= 0.5 * 10.0**-digits + 1e-12
