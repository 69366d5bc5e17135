"""The atlas: entries are read carefully, numbers are those of assess, exports follow the schema."""

from __future__ import annotations

import copy
import csv
import math
import os
from datetime import date
from pathlib import Path
from unicodedata import category

import pytest
import yaml

from dprad import ZCDP, ApproxDP, DpradError, Prior, PureDP, assess
from dprad.show import atlas
from dprad.show import scenario as scenarios
from dprad.show.atlas import schema
from dprad.show.atlas.page import Source, html
from dprad.show.atlas.reading import read_entry
from dprad.show.atlas.rows import Row, csv_of, up
from dprad.show.cli import main
from dprad.show.report.evidence.text import plain

REGISTRY = os.environ.get("DPRAD_REGISTRY", "")
real = pytest.mark.skipif(not REGISTRY, reason="DPRAD_REGISTRY names no folder")


def entry(name="Made up", numbers=None, variant="Pure DP", unit="User-level", words="", **model):
    """A small entry; `words`: on adjacent data sets."""
    loss = {"privacy_unit": unit, "privacy_unit_details": words}
    loss |= {} if numbers is None else {"privacy_parameters": numbers}
    basic = {
        "name": name,
        "data_curators": ["Nobody"],
        "description": "Invented for a test",
        "intended_use": "None",
        "data_product_type": "Dataset",
        "data_product_region": "Nowhere",
        "publication_date": "2031-05-01",
    }
    parts = {"basic": basic, "dp_variant": {"variant_name": variant}, "privacy_loss": loss}
    parts["deployment_model"] = {"model_name": "Central", "release_type": "One release"} | model
    return {"url_slug": "made-up", "status": "Draft", "tier": 1, "deployment": parts}


ADDED = "Data sets differ by adding or removing one user."


@pytest.mark.parametrize(
    ("words", "model", "found"),
    [
        (ADDED, "Central", "add-remove"),
        ("They differ by the addition or deletion of a user.", "Central", "add-remove"),
        ("The symmetric distance is at most one.", "Central", "add-remove"),
        ("It is the change-one distance.", "Central", "replace-one"),
        ("One record is replaced.", "Federated", "replace-one"),
        ("They differ by replacing one user's record.", "Central", "replace-one"),
        ("They differ by the substitution of a single user.", "Central", "replace-one"),
        ("They differ by modifying one row.", "Central", "replace-one"),
        ("Users are sampled without replacement.", "Central", "not stated"),
        ("Missing values are replaced by zero.", "Central", "not stated"),
        ("No record is replaced.", "Central", "not stated"),
        ("", "Local", "replace-one (local model)"),
        ("The symmetric distance is at most one.", "Local", "contradictory"),
        (f"{ADDED} A record may be replaced.", "Central", "contradictory"),
        ("They differ by the data of one user.", "Central", "not stated"),
        ("", "Central", "not stated"),
    ],
)
def test_neighbours_are_read_only_where_they_are_clear(words, model, found):
    read = read_entry(entry(numbers={"epsilon": 1.0}, words=words, model_name=model))
    assert read.stated == found
    clear = found.startswith(("add", "replace"))
    assert len(read.promises) == (1 if clear else 2)
    assert clear == (not any("added and removed" in line for line in read.unknown))


@pytest.mark.parametrize(
    ("unit", "release", "details", "times", "unknown"),
    [
        ("User-day-level", "Many releases", "", 365, ""),
        ("User-quarter-day-level", "Many releases", "6 hours", 1460, ""),
        ("User-Month-level", "Many releases", "daily", 12, ""),
        ("User-month-level", "One release", "", 12, "it is called one release"),
        ("User-level", "One release", "Weekly", 52, "it is called one release"),
        ("Event-level", "Many releases", "Each day", 365, "one release or for all"),
        ("User-level", "Many releases", "From time to time", 1, "how often"),
        ("User-level", "One release", "Static", 1, ""),
    ],
)
def test_rhythms(unit, release, details, times, unknown):
    made = entry(unit=unit, release_type=release, release_type_details=details, words=ADDED)
    read = read_entry(made)
    assert read.times == times
    assert any(unknown in line for line in read.unknown) if unknown else not read.unknown


@pytest.mark.parametrize(
    ("variant", "numbers", "promise"),
    [
        ("Pure DP", {"epsilon": 1}, PureDP(1.0, neighbours="add-remove")),
        ("Pure DP", {"epsilon": 1, "delta": 0.1}, ApproxDP(1.0, 0.1, neighbours="add-remove")),
        ("Approximate DP", {"epsilon": 1, "delta": "1"}, ApproxDP(1, 1, neighbours="add-remove")),
        ("Zero-concentrated DP", {"rho": 0.1}, ZCDP(0.1, neighbours="add-remove")),
        ("Zero-concentrated DP", {"rho": 1, "epsilon": 2}, ZCDP(1.0, neighbours="add-remove")),
        ("Approximate DP", {"epsilon": 1}, "Delta is not published"),
        ("Approximate DP", {"epsilon": 1, "delta": "n^-2"}, "Delta is a formula"),
        ("Renyi DP", {"epsilon": 1}, "says too little"),
        ("Pure DP", {}, "No privacy parameters"),
        ("Pure DP", None, "No privacy parameters"),
        ("Pure DP", {"epsilon": -1}, "epsilon"),
    ],
)  # fmt: skip
def test_parameters(variant, numbers, promise):
    read = read_entry(entry(variant=variant, numbers=numbers, words=ADDED))
    if isinstance(promise, str):
        assert not read.promises and promise in read.reason
        assert promise in Row.of(read).cells()[-1]
    else:
        assert read.promises == {"add-remove": promise} and not read.reason


def test_numbers_are_those_of_assess():
    row = Row.of(read_entry(entry(numbers={"epsilon": 0.5}, unit="User-month-level")))
    for k, neighbours in enumerate(("replace-one", "add-remove")):
        one = PureDP(0.5, neighbours=neighbours)
        for numbers, promise in ((row.unit[k], one), (row.year[k], one.repeated(12))):
            free = assess(promise, prior=Prior.unknown())
            assert (numbers.average, numbers.person) == (free.rad, free.worst)
            assert numbers.secret == assess(promise, prior=Prior.uniform(10)).rad
    assert row.unit[0].secret < row.unit[1].secret
    assert " or " in row.cells()[8] and up(0.1201) == "0.13" and up(0.1) == "0.10"


def test_units_that_are_not_people_and_open_quantities_are_named():
    made = entry(numbers={"epsilon": 1.0}, unit="Event-level", words=ADDED)
    made["deployment"]["dp_variant"]["unprotected_quantities"] = "The total count."
    unknown = " ".join(read_entry(made).unknown)
    assert "how many such units one person has" in unknown and "without protection" in unknown
    for none in ("N/A", "- None", "No unprotected quantities mentioned.", "There is no mention."):
        made["deployment"]["dp_variant"]["unprotected_quantities"] = none
        assert "without protection" not in " ".join(read_entry(made).unknown)
    for some in (
        "No noise is added to the state totals; they are published exactly.",
        "None of the totals is protected.",
        "There is no mention of noise in the totals.",
    ):
        made["deployment"]["dp_variant"]["unprotected_quantities"] = some
        assert "without protection" in " ".join(read_entry(made).unknown)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(list(map(str, arguments)))
    said = capsys.readouterr()
    return end.value.code, said.out + said.err


def test_the_command_writes_a_page_a_table_and_a_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dprad.show.atlas.page.POINTS", 3)
    home = tmp_path / "registry" / "deployments"
    home.mkdir(parents=True)
    shown = [
        entry("First <b>|", {"epsilon": 1.0}, words=ADDED),
        entry("Second", {"rho": 0.1}, "Zero-concentrated DP"),
        entry("Third", None),
    ]
    for k, one in enumerate(shown):
        (home / f"{k}.yaml").write_text(yaml.safe_dump(one))
    out = tmp_path / "out"
    code, said = run(capsys, "atlas", tmp_path / "registry", "-o", out, "--source", "a test")
    assert code == 0 and "3 deployments, 2 with parameters." in said
    page, text = ((out / f"atlas.{end}").read_text() for end in ("html", "md"))
    for made in (page, text):
        assert "a test" in made and "They are not a ranking" in made and "<b>|" not in made
    assert "<script" not in page and "aria-label" in page and len(page) < 200_000
    with (out / "atlas.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [r["neighbours"] for r in rows] == ["add-remove", "replace-one", "add-remove", ""]
    assert float(rows[0]["secret"]) == pytest.approx((math.e - 1) / 10, abs=1e-5)
    assert rows[3]["average"] == "" and "No privacy parameters" in rows[3]["not_known"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1+1", "\x00=1+1\r", "a\x1bb=\nc"])
def test_no_cell_is_a_formula(name):
    made = entry(name, {"epsilon": 1.0}, words=ADDED, unit=name)
    [_, line] = csv.reader(csv_of([Row.of(read_entry(made))]).splitlines())
    wanted = "ab= c" if name[0] == "a" else "'" + name.strip("\t\r\0")
    assert line[0] == line[3] == wanted and float(line[7]) > 0


SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("before", ["", "\u200b", "\u202e", "\ufeff ", ";", "a; ", ';"', ";\u200b"])
def test_no_cell_is_a_formula_however_it_is_read(before, separator):
    """Wide and small signs, invisible ones before them, and readers that split at semicolons."""
    for sign in SIGNS:
        made = Row.of(read_entry(entry(f"{before}{sign}1+1", None, unit=f"{before}{sign}1+1")))
        for line in csv.reader(csv_of([made]).splitlines(), delimiter=separator):
            assert not any(cell.strip(' "').startswith(tuple(SIGNS)) for cell in line)


def test_invisible_signs_are_in_no_cell():
    made = Row.of(read_entry(entry("a\u202eb\u200bc\x07", None, words="x")))
    assert made.cells()[0] == "abc" and csv_of([made]).splitlines()[1].startswith("abc,")
    shown = html([made], Source("a test", date(2026, 1, 1)), "")
    assert "abc" in shown and not any(category(c) == "Cf" for c in shown)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda e: e.pop("tier"), "tier is missing"),
        (lambda e: e.update(more=1), "more is not allowed"),
        (lambda e: e["deployment"].pop("basic"), "basic is missing"),
        (lambda e: e["deployment"]["basic"].pop("name"), "basic.name is missing"),
        (lambda e: e["deployment"]["basic"].update(data_curators="x"), "list of names"),
        (lambda e: e["deployment"]["dp_variant"].update(variant_name="x"), "must be one of"),
        (lambda e: e["deployment"]["privacy_loss"].update(privacy_parameters=3), "have fields"),
        (
            lambda e: e["deployment"]["privacy_loss"].update(privacy_parameters={"epsilon": "x"}),
            "wrong type",
        ),
    ],
)
def test_wrong_files_are_refused(tmp_path, capsys, spoil, words):
    made = entry()
    spoil(made)
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(made))
    code, said = run(capsys, "atlas", tmp_path)
    assert code == 2 and words in said and "x.yaml" in said


def test_nothing_that_is_read_is_written_over(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dprad.show.atlas.page.POINTS", 3)
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(entry(numbers={"epsilon": 1.0})))
    (tmp_path / "atlas.md").symlink_to(tmp_path / "x.yaml")
    before = (tmp_path / "x.yaml").read_text()
    code, said = run(capsys, "atlas", tmp_path, "-o", tmp_path)
    assert code == 2 and "is an input" in said and not (tmp_path / "atlas.html").exists()
    (tmp_path / "s.toml").write_text(scenarios.EXAMPLE)
    (tmp_path / "link").symlink_to(tmp_path / "s.toml")
    for name in ("s.toml", "link"):
        code, said = run(capsys, "atlas", "--export", tmp_path / "s.toml", "-o", tmp_path / name)
        assert code == 2 and "is an input" in said
    assert (tmp_path / "s.toml").read_text() == scenarios.EXAMPLE
    assert (tmp_path / "x.yaml").read_text() == before


def test_files_without_an_end_or_that_grow_are_refused(tmp_path, capsys, monkeypatch):
    os.mkfifo(tmp_path / "x.yaml")
    assert "is not a file" in run(capsys, "atlas", tmp_path)[1]
    (tmp_path / "x.yaml").unlink()
    bomb = ["a: &a [x, x, x]", *(f"a{k}: &a{k} [*a, *a, *a]" for k in range(20))]
    (tmp_path / "x.yaml").write_text("\n".join(bomb))
    assert "by reference" in run(capsys, "atlas", tmp_path)[1]
    (tmp_path / "x.yaml").write_text("[" * 500_000)
    assert "too deeply" in run(capsys, "atlas", tmp_path)[1]
    monkeypatch.setattr(schema, "LONGEST", 100)
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(entry()))
    assert "too long" in run(capsys, "atlas", tmp_path)[1]


def test_folders_without_entries_and_broken_files(tmp_path, capsys):
    assert "has no registry files" in run(capsys, "atlas", tmp_path)[1]
    assert "is not a folder" in run(capsys, "atlas", tmp_path / "x")[1]
    (tmp_path / "x.yaml").write_text("a: [")
    assert "is not YAML" in run(capsys, "atlas", tmp_path)[1]
    assert "scenario file only" in run(capsys, "atlas", tmp_path, "--export", "s.toml")[1]


SCENARIO = """
title = "A survey"
[population]
uniform = 4
{}
"""


def scenario(folder, *releases):
    path = folder / "scenario.toml"
    parts = "".join(f"[[releases]]\n{text}\n" for text in releases)
    path.write_text(SCENARIO.format(parts))
    return path


@pytest.mark.parametrize(
    ("releases", "numbers", "stated"),
    [
        (["epsilon = 1\nneighbours = 'add-remove'"], {"epsilon": 1.0}, "add-remove"),
        (["mechanism = 'grr'\nepsilon = 1.5"], {"epsilon": 1.5}, "replace-one"),
        (["mu = 1\nneighbours = 'replace-one'"] * 2, {"rho": 1.0}, "replace-one"),
        (["rho = 0.5\nneighbours = 'add-remove'"], {"rho": 0.5}, "add-remove"),
        (
            ["epsilon = 1\ndelta = 1e-7\nneighbours = 'unknown'"],
            {"epsilon": 1.0, "delta": 1e-7},
            "not stated",
        ),
    ],
)
def test_an_exported_entry_follows_the_schema_and_reads_back(tmp_path, releases, numbers, stated):
    made = atlas.exported(scenarios.load(scenario(tmp_path, *releases)), date(2031, 5, 1))
    assert schema.check(made) == []
    again = yaml.safe_load(schema.write(made))
    assert again == made and made["deployment"]["privacy_loss"]["privacy_parameters"] == numbers
    read = read_entry(again)
    assert read.stated == stated and read.name == "A survey"


def test_mixed_releases_are_exported_as_one_point_and_never_below(tmp_path, capsys):
    path = scenario(
        tmp_path,
        "epsilon = 0.5\nneighbours = 'add-remove'\ndoubts = ['Untested.']",
        "mu = 0.3\nneighbours = 'replace-one'",
    )
    code, said = run(capsys, "atlas", "--export", path, "-o", tmp_path / "e.yaml")
    assert code == 0 and "Fill in" in said
    made = schema.read(tmp_path / "e.yaml")
    loss = made["deployment"]["privacy_loss"]["privacy_parameters"]
    assert loss["delta"] == 1e-6 and 1.0 < loss["epsilon"] < 1.0 + 1.6
    assert "Doubtful: Untested." in made["deployment"]["administrative"]["notes"]
    code, said = run(capsys, "atlas", "--export", path)
    assert code == 0 and yaml.safe_load(said)["status"] == "Draft"


def test_units_of_a_scenario_are_exported(tmp_path):
    path = scenario(tmp_path, "mu = 0.3\nneighbours = 'replace-one'\npeople = 4\ntimes = 9")
    loss = atlas.exported(scenarios.load(path), date(2031, 5, 1))["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "4 records"
    assert loss["privacy_parameters"]["rho"] == pytest.approx((0.3 * 4 * 3) ** 2 / 2)


def test_what_does_not_follow_the_schema_is_not_written():
    made = entry()
    made["status"] = "Fine"
    with pytest.raises(DpradError, match="status must be one of"):
        schema.write(made)


# -- the real registry, where it is at hand --------------------------------------------------------
def structure(rule):
    """The schema of a registry in the terms of ours."""
    if "properties" in rule:
        assert rule["additionalProperties"] is False
        return {name: structure(inner) for name, inner in rule["properties"].items()}
    if rule.get("type") == "array":
        return schema.NAMES
    if "enum" in rule:
        return list(rule["enum"])
    kinds = {"string": (str,), "number": (int, float)}
    given = rule.get("type")
    if given is None:
        return schema.ANY
    many = [given] if isinstance(given, str) else given
    return tuple(kind for name in many for kind in kinds[name])


@real
def test_our_schema_is_that_of_the_registry():
    [path] = (Path(REGISTRY) / "schemas").glob("*.yaml")
    theirs = yaml.safe_load(path.read_text())
    ours = {"url_slug": (str,), "status": list(schema.STATUS), "tier": [1, 2, 3]}
    assert structure(theirs) == ours | {"deployment": schema.SECTIONS}
    parts = theirs["properties"]["deployment"]
    needed = {k: set(v["required"]) for k, v in parts["properties"].items() if "required" in v}
    assert needed == {k: set(v) for k, v in schema.REQUIRED.items()}
    assert parts["required"] == ["basic"] and set(theirs["required"]) == {*ours, "deployment"}


@real
def test_all_files_of_the_registry_are_read():
    files = sorted((Path(REGISTRY) / "deployments").glob("*.yaml"))
    found = [read_entry(schema.read(f)) for f in files]
    assert len(found) >= 41
    for read in found:
        assert bool(read.promises) != bool(read.reason)
        assert read.parameters != "none" or not read.promises
    assert sum(bool(read.promises) for read in found) >= 34
    # the page in the docs has these deployments
    page = (Path(__file__).parents[2] / "docs" / "atlas.md").read_text()
    assert all(plain(read.name) in page for read in found)


def test_entries_are_not_changed_by_reading():
    made = entry(numbers={"epsilon": 1.0})
    before = copy.deepcopy(made)
    read_entry(made)
    assert made == before


@pytest.mark.parametrize(
    "number", ["9" * 5000, "59" + ":59" * 1000, "-" + "1" * 900, '!!int "' + "1:" * 900 + '1"']
)
def test_long_numbers_are_refused(number, tmp_path, capsys):
    (tmp_path / "x.yaml").write_text(f"a: {number}\n")
    code, said = run(capsys, "atlas", tmp_path)
    assert code == 2 and "number that is too long" in said


@pytest.mark.parametrize(
    "text", ["a: 2020-13-45", 'a: !!int "x"', 'a: !!timestamp "x"', 'a: !!bool "x"']
)
def test_values_that_do_not_fit_are_one_sentence(text, tmp_path, capsys):
    (tmp_path / "x.yaml").write_text(text)
    code, said = run(capsys, "atlas", tmp_path)
    assert code == 2 and "is not YAML" in said


def test_the_range_of_the_data_is_not_registered(tmp_path):
    (tmp_path / "ages.csv").write_text("age\n" + "\n".join(map(str, range(18, 104))) + "\n")
    path = tmp_path / "s.toml"
    text = (
        '[population]\ndata = "{}/ages.csv"\n[[releases]]\nmechanism = "gaussian"\nsigma = 40.0\n{}'
    )
    path.write_text(text.format(tmp_path, ""))
    with pytest.raises(DpradError, match="an entry would publish it"):
        atlas.exported(scenarios.load(path), date(2031, 5, 1))
    path.write_text(text.format(tmp_path, "sensitivity = 100.0\n"))
    atlas.exported(scenarios.load(path), date(2031, 5, 1))
