"""`dprad reproduce`: all of it, small; interrupted work goes on; the references agree."""

from __future__ import annotations

import csv
import importlib
import json
import re

import pytest

import dprad
from dprad import DpradError
from dprad.paper import experiments
from dprad.paper.experiments import EXPERIMENTS, Made, Options, cells, write
from dprad.show.cli import main


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`dprad reproduce all --quick`, without any data."""
    folder = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DPRAD_DATA", raising=False)
        with pytest.raises(SystemExit) as stop:
            main(["reproduce", "all", "--quick", "--out", str(folder)])
    assert stop.value.code == 0
    return folder


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_everything_is_written(made, name):
    rows = table(made / f"{name}.csv")
    about = json.loads((made / f"{name}.json").read_text())
    assert rows and about["command"].startswith(f"dprad reproduce {name} --quick")
    assert (made / f"{name}.svg").read_text().rstrip().endswith("</svg>")
    assert (made / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    page = (made / f"{name}.md").read_text()
    assert f"]({name}.svg)" in page and about["date"] in page and EXPERIMENTS[name][2] in page
    assert not (made / f"{name}.cells.jsonl").exists()


@pytest.mark.parametrize("name", ["mechanisms", "laplace-utility", "black-box", "laplace-adult"])
def test_reference_numbers_agree(made, name):
    page = (made / f"{name}.md").read_text()
    found = re.findall(r"(\d+) of (\d+) [^.]*? agree to their digits", page)
    assert all(agree == of for agree, of in found) and sum(int(of) for _, of in found) >= 2


def test_simulations_hold_the_exact_values(made):
    for name in ("laplace-adult", "ldp-attacks"):
        for row in table(made / f"{name}.csv"):
            assert float(row["low"]) - 0.05 <= float(row["rad"]) <= float(row["high"]) + 0.05
    for row in table(made / "dpsgd-mnist.csv"):
        assert float(row["low"]) <= float(row["bound"]) and row["paper_plot"] == ""


def test_interrupted_work_goes_on(tmp_path):
    grid = [{"a": i} for i in range(5)]
    calls = []

    def work(cell, seed):
        calls.append(cell["a"])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return [cell | {"seed": seed}]

    options = Options(name="mechanisms", out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cells(options, grid, work)
    file = tmp_path / "mechanisms.cells.jsonl"
    file.write_text(file.read_text() + '["cut')  # as a kill would leave it
    rows = cells(options, grid, work)
    assert calls == [0, 1, 2, 3, 3, 4]
    assert rows == [{"a": i, "seed": i} for i in range(5)] == cells(options, grid, work)
    other = Options(name="mechanisms", out=tmp_path, rng=1)
    assert cells(other, grid[:1], work) == [{"a": 0, "seed": 1000}] and len(calls) == 7


@pytest.mark.parametrize("name", ["ldp-audit", "ldp-settings"])
def test_an_interrupted_audit_is_no_result(tmp_path, monkeypatch, name):
    module = importlib.import_module(f"dprad.paper.experiments.{name.replace('-', '_')}")
    finished = module.audit

    def interrupted(*_, claim, trials, **__):
        calls = []

        def stopped(record, rng):
            calls.append(record)
            if len(calls) > 0.8 * trials:
                raise KeyboardInterrupt
            return record

        return finished(stopped, claim=claim, prior=dprad.Prior.uniform(2), trials=trials)

    monkeypatch.setattr(module, "audit", interrupted)
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", name, "--quick", "--runs", "500", "--out", str(tmp_path), "--quiet"])
    assert stop.value.code == 130
    (kept,) = tmp_path.iterdir()
    assert kept.name == f"{name}.cells.jsonl" and '"rows"' not in kept.read_text()


def test_what_to_download_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("DPRAD_DATA", raising=False)
    for name in ("laplace-adult", "imputation", "locations"):
        with pytest.raises(DpradError, match="--quick runs on a built-in substitute"):
            experiments.run(Options(name=name))
    with pytest.raises(DpradError, match="Did you mean 'black-box'"):
        experiments.run(Options(name="black-bo"))


def test_a_table_of_anything(tmp_path):
    rows = [{"x": 1.23456789, "y": None, "z": "a"}]
    shown = Made(
        name="mechanisms", rows=rows, parameters={"p": [1, 2]}, sentences=("So.",),
        draw=lambda figure: figure.add_subplot(), shown=("x", "y"),
    )  # fmt: skip
    files = write(shown, tmp_path / "new", "dprad reproduce mechanisms")
    assert files[0].read_text() == "x,y,z\n1.23457,,a\n"
    assert "| 1.235 |  |" in files[4].read_text() and "p 1, 2." in files[4].read_text()


def test_a_cell_that_comes_twice_is_run_once():
    grid = [{"a": 1}, {"a": 1}, {"a": 2}]
    options = experiments.Options(name="mechanisms")
    found = experiments.cells(options, grid, lambda cell, seed: [cell | {"seed": seed}])
    assert [(r["a"], r["seed"]) for r in found] == [(1, 0), (1, 0), (2, 2)]


def test_cells_of_other_code_are_put_aside(tmp_path, monkeypatch):
    """Half of a table by the code of yesterday, the other half by that of today, is no table."""
    grid = [{"a": i} for i in range(3)]
    options = Options(name="mechanisms", out=tmp_path)
    first = cells(options, grid, lambda cell, seed: [cell | {"v": 1}])
    assert cells(options, grid, lambda cell, seed: [cell | {"v": 2}]) == first
    monkeypatch.setattr(experiments, "_code", lambda: "another")
    assert cells(options, grid, lambda cell, seed: [cell | {"v": 2}])[0]["v"] == 2
    assert (tmp_path / "mechanisms.cells.earlier.jsonl").read_text().count("\n") == 4
