"""Experiments find the paper's tables, and maps that somebody built, in a data directory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dprad import DpradError, datasets
from dprad.paper import experiments
from dprad.paper.experiments import Options, imputation, locations


@pytest.fixture
def folder(tmp_path, rng):
    """Small tables in the form of the prepared Census19 and Texas-100X."""
    n = 700
    race = rng.integers(7, size=n)
    census = {c: rng.integers(3, size=n) for c in ("COW", "SCHL", "MAR", "SEX", "WAOB", "ST")}
    census |= {c: rng.integers(2, size=n) for c in ("DREM", "DPHY", "DEAR", "DEYE")}
    census |= {"AGEP": 20 + race, "WKHP": 30, "PUMA": 100, "PINCP": 10 * race, "RAC1P": race}
    pd.DataFrame(census).to_csv(tmp_path / "census19.csv", index=False)
    texas = {c: rng.integers(4, size=n) for c in datasets.TEXAS_KNOWN}
    texas |= {"SEX_CODE": rng.integers(2, size=n), "ETHNICITY": rng.integers(2, size=n)}
    texas |= {"RACE": texas["ETHNICITY"], "THCIC_ID": 7, "PRINC_SURG_PROC_CODE": 1}
    pd.DataFrame(texas).to_csv(tmp_path / "texas100x.csv", index=False)
    return tmp_path


def test_the_paper_s_tables_are_used_if_they_are_there(folder):
    made = experiments.run(Options(name="imputation", data=str(folder), quick=True))
    census, texas = made.rows
    assert (census["table"], texas["table"]) == ("Census19, race", "Texas-100X, ethnicity")
    assert (census["records"], census["public"], census["values"]) == (700, 400, 7)
    # the income would tell the race, and the race the ethnicity: neither is known
    assert texas["rero_low"] < 0.5 < texas["rero_high"] and texas["values"] == 2
    for row in made.rows:
        assert row["rad_low"] <= 0 <= row["rad_high"] and row["rad"] != 0
    first = made.sentences[0]
    assert f"ReRo 0.81, RAD 0 (here {census['rero']:.2f}" in first and "at hand" not in first
    assert "2 of 2 intervals (95%) hold 0" in made.sentences[1]
    assert "49,000 records (D_-); here from 400 (Census19, race, 700 records)" in made.sentences[3]


def test_what_is_known_leaves_the_answer_out(folder):
    table, secret, known = imputation.tables(Options(name="imputation", data=str(folder)))[
        "Texas-100X, ethnicity"
    ]
    sample = imputation._rows((table, secret, known), 100)
    assert set(sample.frame.columns) == {*datasets.TEXAS_KNOWN, "ETHNICITY"}
    assert len(sample.frame) == 100 and sample.total == 700 and sample.size == 2


def test_an_empty_directory(tmp_path):
    for name in ("imputation", "locations"):
        with pytest.raises(DpradError, match=f"{name} needs"):
            experiments.run(Options(name=name, data=str(tmp_path)))


def test_a_map_made_with_visits(tmp_path, rng):
    folder = tmp_path / "locations"
    folder.mkdir()
    ids = [11, 12, 13, 14]
    nodes = pd.DataFrame({"node_id": ids, "lat": [41.0, 41.01, 41.02, 41.03], "lon": -8.6})
    points = np.stack([rng.uniform(41.0, 41.03, 300), np.full(300, -8.6)], axis=1)
    file = folder / "porto_nodes.csv.gz"
    nodes.to_csv(file, index=False)
    pd.DataFrame({"from_node": ids[:3], "to_node": ids[1:]}).to_csv(
        folder / "porto_edges.csv.gz", index=False
    )
    options = Options(name="locations", data=str(tmp_path), quick=True)
    with pytest.raises(DpradError, match="lacks the columns points"):
        locations.places(options)
    nodes.assign(points=datasets.visits(points, str(file))).to_csv(file, index=False)
    found, edges = locations.places(options)["Porto"]
    assert found[:, 2].sum() == 300 and edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert experiments.run(options).rows[0]["city"] == "Porto"
