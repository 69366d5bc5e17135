"""Data from directories; nothing is fetched here."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprad import DpradError, Prior, datasets
from dprad.runtime.memory import limit


def write(path, array):
    raw = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    raw += struct.pack(f">{array.ndim}i", *array.shape) + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def test_digits():
    x, y = datasets.digits()
    assert (
        x.shape == (1797, 8, 8) and (x.min(), x.max()) == (-1.0, 1.0) and set(y) == set(range(10))
    )


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_images_from_a_directory(tmp_path, monkeypatch, rng, nested, ending):
    folder = tmp_path / "mnist" if nested else tmp_path
    folder.mkdir(exist_ok=True)
    pixels = rng.integers(256, size=(5, 28, 28))
    write(folder / f"train-images-idx3-ubyte{ending}", pixels)
    write(folder / f"train-labels-idx1-ubyte{ending}", np.arange(5))
    monkeypatch.setenv("DPRAD_DATA", str(tmp_path))
    for directory in (None, tmp_path):
        x, y = datasets.images("mnist", directory)
        assert np.allclose(x, pixels / 127.5 - 1) and y.tolist() == [0, 1, 2, 3, 4]


def test_adult_from_a_directory(tmp_path):
    row = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    rows = [row + f"{sex}, 2174, 0, 40, United-States, <=50K\n" for sex in ("Male", "Female")]
    (tmp_path / "adult.data").write_text("".join(rows) + "\n")
    prior = Prior.from_data(datasets.adult(tmp_path), columns=["sex"])
    assert prior.support.tolist() == ["Female", "Male"]
    assert Prior.from_data(datasets.adult(tmp_path), columns=["age"]).support.tolist() == [39]


def test_adult_with_its_test_rows(tmp_path):
    row = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    row += "Male, 2174, 0, 40, United-States, "
    (tmp_path / "adult.data").write_text(row + "<=50K\n" + row + ">50K\n")
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + row + ">50K.\n\n")
    assert len(datasets.adult(tmp_path)) == 2
    incomes = [r[-1] for r in datasets.adult(tmp_path, test=True).fetchall()]
    assert incomes == ["<=50K", ">50K", ">50K"]


def test_bad_input(tmp_path):
    with pytest.raises(DpradError, match="one of 'mnist'"):
        datasets.images("minst", tmp_path)
    with pytest.raises(DpradError, match="does not exist"):
        datasets.images("mnist", tmp_path / "none")
    with pytest.raises(DpradError, match=r"train-images-idx3-ubyte \(or"):
        datasets.images("mnist", tmp_path)
    for content in (
        b"",
        b"hello",
        b"\0\0\x08\x02\0\0\0\x09\0\0\0\x09short",
        gzip.compress(b"x")[:9],
    ):
        (tmp_path / "broken").write_bytes(content)
        with pytest.raises(DpradError, match=r"not an IDX file|cannot be read"):
            datasets.idx(tmp_path / "broken")


class Counted(gzip.GzipFile):
    """A packed file that says how much of it was unpacked."""

    most = 0

    def read(self, size=-1):
        block = super().read(size)
        Counted.most += len(block)
        return block


def test_no_more_is_unpacked_than_an_array_takes(tmp_path, monkeypatch):
    """Of 30 MB that take 30 kB packed, a header of five bytes lets six out."""
    Counted.most = 0
    monkeypatch.setattr(gzip, "open", lambda file: Counted(fileobj=file))
    monkeypatch.setattr(gzip, "decompress", lambda raw: pytest.fail("all is unpacked"))
    path = tmp_path / "a"
    header = struct.pack(">BBBBi", 0, 0, 8, 1, 5)
    path.write_bytes(gzip.compress(header + bytes(30_000_000)))
    with pytest.raises(DpradError, match="not an IDX file"):
        datasets.idx(path)
    assert 0 < Counted.most < 20
    path.write_bytes(gzip.compress(header + bytes(range(5))))
    assert datasets.idx(path).tolist() == [0, 1, 2, 3, 4]
    for lengths in ([10**9 + 1], [2**31 - 1] * 3, [2**31 - 1] * 8):  # whatever the memory is
        path.write_bytes(struct.pack(f">BBBB{len(lengths)}i", 0, 0, 8, len(lengths), *lengths))
        with pytest.raises(DpradError, match=r"says that it holds .* MB, more than 1,000"):
            datasets.idx(path)
    path.write_bytes(struct.pack(">BBBBi", 0, 0, 8, 1, 10**8))
    with limit("50 MB"), pytest.raises(DpradError, match="what its header says would take 100 MB"):
        datasets.idx(path)
    for shape in ([1] * 255, [0, 2**31 - 1, 2**31 - 1, 2**31 - 1]):
        path.write_bytes(struct.pack(f">BBBB{len(shape)}i", 0, 0, 8, len(shape), *shape) + b"x")
        with pytest.raises(DpradError, match="not an IDX file"):
            datasets.idx(path)


def test_images_that_do_not_fit_as_numbers_are_refused(tmp_path):
    write(tmp_path / "train-images-idx3-ubyte.gz", np.zeros((100, 28, 28)))
    write(tmp_path / "train-labels-idx1-ubyte", np.zeros(100))
    with limit("1 MB"), pytest.raises(DpradError, match=r"78,400 numbers would take 1 MB, but"):
        datasets.images("mnist", tmp_path)


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "adult.data"])
def test_pipes_are_no_data_sets(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DpradError, match="is not in"):
        datasets.adult(tmp_path) if name == "adult.data" else datasets.images("mnist", tmp_path)
    with pytest.raises(DpradError, match="not a file"):
        datasets.idx(tmp_path / name)
    os.mkfifo(tmp_path / "1.plt")
    with pytest.raises(DpradError, match="no files"):
        list(datasets.geolife_points(tmp_path))


# -- Census19 --------------------------------------------------------------------------------------
def survey(rng, rows=400):
    """Person records with the survey's own codes, some of them of children or without work."""
    top = {"COW": 8, "SCHL": 24, "MAR": 5, "RAC1P": 9, "SEX": 2, "WAOB": 8}
    top |= dict.fromkeys(("DREM", "DPHY", "DEAR", "DEYE"), 2)
    table = {c: rng.integers(1, n + 1, size=rows) for c, n in top.items()}
    table["RAC1P"][:2] = 1, 9
    return pd.DataFrame(
        table
        | {
            "AGEP": rng.integers(10, 90, size=rows),
            "WKHP": [None if rng.random() < 0.2 else int(rng.integers(1, 99)) for _ in range(rows)],
            "ST": rng.integers(1, 57, size=rows),
            "PUMA": rng.integers(100, 9999, size=rows),
            "PINCP": rng.integers(-500, 200_000, size=rows),
            "SERIALNO": "2019HU0000001",
        }
    )


def prepared(raw):
    """What the authors' script makes of it, written from its description."""
    kept = raw[(raw.AGEP > 16) & (raw.WKHP > 0)].drop(columns="SERIALNO").astype(int)
    for c in ("DREM", "DPHY", "DEAR", "DEYE"):
        kept[c] = (kept[c] == 1).astype(int)
    for c in ("SEX", "COW", "SCHL", "MAR", "WAOB"):
        kept[c] -= 1
    merged = {1: 0, 2: 1, 3: 2, 4: 2, 5: 2, 6: 3, 7: 4, 8: 5, 9: 6}
    return kept.assign(RAC1P=kept.RAC1P.map(merged))


def rows_of(relation, columns):
    """All rows in order of their values, as whole numbers."""
    return sorted(tuple(map(int, row)) for row in relation.project(", ".join(columns)).fetchall())


def test_census19_from_the_survey_or_prepared(tmp_path, rng):
    raw = survey(rng)
    raw.loc[:1, "AGEP"] = 40
    raw.loc[:1, "WKHP"] = 40
    raw[:200].to_csv(tmp_path / "psam_pusa.csv", index=False)
    raw[200:].to_csv(tmp_path / "psam_pusb.csv", index=False)
    ready = prepared(raw)
    wanted = sorted(map(tuple, ready.to_numpy().tolist()))
    table = datasets.census19(tmp_path)
    assert rows_of(table, list(ready.columns)) == wanted and len(wanted) < 400
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    assert kinds["RAC1P"] == kinds["COW"] == "VARCHAR" and kinds["AGEP"] == "BIGINT"
    assert set(datasets.CENSUS_KNOWN) < set(table.columns) and "RAC1P" not in datasets.CENSUS_KNOWN
    files = [tmp_path / f"psam_pus{x}.csv" for x in "ab"]
    assert rows_of(datasets.census19(files), list(ready.columns)) == wanted
    # a prepared table comes before the survey's files, whatever its format
    for name, write in (("tsv", lambda p: ready[5:].to_csv(p, sep="\t", index=False)),
                        ("csv.gz", lambda p: ready[9:].to_csv(p, index=False)),
                        ("parquet", lambda p: ready.to_parquet(p))):  # fmt: skip
        write(tmp_path / f"census19.{name}")
        assert datasets.find("census19", tmp_path)[0].name == f"census19.{name}"
        left = {"tsv": 5, "csv.gz": 9, "parquet": 0}[name]
        assert len(datasets.census19(tmp_path)) == len(ready) - left
    assert rows_of(datasets.census19(tmp_path), list(ready.columns)) == wanted


def test_census19_says_what_is_wrong(tmp_path, rng):
    ready = prepared(survey(rng))
    file = tmp_path / "census.csv"
    ready.drop(columns=["COW", "WKHP"]).to_csv(file, index=False)
    with pytest.raises(DpradError, match=r"census\.csv lacks the columns WKHP, COW"):
        datasets.census19(file)
    (ready / ready.max()).assign(AGEP=40, WKHP=40).to_csv(file, index=False)
    with pytest.raises(DpradError, match="multiplied by them first"):
        datasets.census19(file)
    with pytest.raises(DpradError, match="does not exist"):
        datasets.census19(tmp_path / "other.csv")
    with pytest.raises(DpradError, match="must end in"):
        datasets.census19(_touched(tmp_path / "census.xlsx"))
    with pytest.raises(DpradError, match=r"neither census19.csv .* nor psam_pus\?.csv"):
        datasets.census19(tmp_path)


def _touched(path):
    path.touch()
    return path


class Trap:
    """A pickle that would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_are_not_opened(tmp_path):
    file = tmp_path / "census_features.p"
    file.write_bytes(pickle.dumps(Trap(tmp_path / "opened")))
    with pytest.raises(DpradError, match="is a pickle, which runs code"):
        datasets.census19(file)
    assert not (tmp_path / "opened").exists()


# -- Texas-100X ------------------------------------------------------------------------------------
def stays(rng, rows=600, procedures=120):
    """Discharges with the codes of the public files."""
    return pd.DataFrame(
        {
            "RECORD_ID": np.arange(rows),
            "THCIC_ID": [f"{k:06d}" for k in rng.integers(1, 400, size=rows)],
            "SEX_CODE": rng.choice(["M", "F", "U", ""], size=rows, p=[0.45, 0.45, 0.05, 0.05]),
            "TYPE_OF_ADMISSION": rng.integers(1, 6, size=rows),
            "SOURCE_OF_ADMISSION": rng.choice(["1", "2", "A"], size=rows, p=[0.5, 0.4, 0.1]),
            "LENGTH_OF_STAY": rng.integers(1, 60, size=rows),
            "PAT_AGE": rng.integers(0, 22, size=rows),
            "PAT_STATUS": rng.integers(1, 7, size=rows),
            "RACE": rng.integers(1, 6, size=rows),
            "ETHNICITY": rng.choice(["1", "2", "`"], size=rows, p=[0.3, 0.6, 0.1]),
            "TOTAL_CHARGES": rng.random(rows).round(2) * 1000,
            "ADMITTING_DIAGNOSIS": rng.choice(["4280", "V270", "78650"], size=rows),
            "PRINC_SURG_PROC_CODE": rng.integers(1, procedures, size=rows),
        }
    )


def test_texas100x_from_the_quarterly_files_or_prepared(tmp_path, rng):
    raw = stays(rng)
    twice = raw[:50].assign(RECORD_ID=-1)  # the same stay twice, but for its number
    for k, part in enumerate((raw[:200], raw[200:400], raw[400:], twice), 1):
        part.to_csv(tmp_path / f"PUDF_base{k}q2006_tab.txt", sep="\t", index=False)
    kept = raw[raw.SEX_CODE.isin(["M", "F"]) & raw.ETHNICITY.isin(["1", "2"])]
    kept = kept[(kept.SOURCE_OF_ADMISSION != "A") & (kept.ADMITTING_DIAGNOSIS != "V270")]
    by_size = kept.PRINC_SURG_PROC_CODE.value_counts()
    common = sorted(by_size.index, key=lambda c: (-by_size[c], c))[:100]
    kept = kept[kept.PRINC_SURG_PROC_CODE.isin(common)]
    assert len(by_size) > 100
    table = datasets.texas100x(tmp_path)
    assert len(table) == len(kept)
    ethnicity = dict(table.query("t", "SELECT ETHNICITY, count(*) FROM t GROUP BY 1").fetchall())
    assert ethnicity == {"0": (kept.ETHNICITY == "1").sum(), "1": (kept.ETHNICITY == "2").sum()}
    assert len(table.filter("SEX_CODE = '1'")) == (kept.SEX_CODE == "F").sum()
    assert table.fetchall() == datasets.texas100x(tmp_path).fetchall()  # in the same order
    assert set(datasets.TEXAS_KNOWN) < set(table.columns) and "RACE" not in datasets.TEXAS_KNOWN
    # the prepared file keeps all its rows
    ready = pd.DataFrame(table.fetchall(), columns=table.columns)
    ready.to_csv(tmp_path / "texas_100x.csv", index=False)
    again = datasets.texas100x(tmp_path / "texas_100x.csv")
    assert sorted(map(str, again.fetchall())) == sorted(map(str, table.fetchall()))


def test_texas100x_says_what_is_wrong(tmp_path, rng):
    file = tmp_path / "texas100x.csv"
    stays(rng).drop(columns="RACE").to_csv(file, index=False)
    with pytest.raises(DpradError, match="lacks the columns RACE"):
        datasets.texas100x(tmp_path)
    stays(rng).assign(ETHNICITY=1).to_csv(file, index=False)
    with pytest.raises(DpradError, match="ETHNICITY must have two values"):
        datasets.texas100x(tmp_path)


# -- visits ----------------------------------------------------------------------------------------
def metres(a, b):
    """The haversine formula, one pair at a time."""
    (p, q), (r, s) = np.radians(a), np.radians(b)
    h = np.sin((r - p) / 2) ** 2 + np.cos(p) * np.cos(r) * np.sin((s - q) / 2) ** 2
    return 2 * 6_371_008.8 * np.arcsin(np.sqrt(h))


@pytest.mark.parametrize("shape", ["circle", "box"])
def test_visits_go_to_the_nearest_node(tmp_path, rng, shape, monkeypatch):
    centre, reach = (41.15, -8.59), 2500.0
    nodes = centre + rng.normal(0, 0.02, size=(40, 2))
    points = centre + rng.normal(0, 0.03, size=(700, 2))
    counts = np.zeros(40, dtype=int)
    for p in points:
        north, east = metres(centre, (p[0], centre[1])), metres(centre, (centre[0], p[1]))
        far = metres(centre, p) if shape == "circle" else max(north, east)
        if far <= reach:
            counts[int(np.argmin([metres(p, n) for n in nodes]))] += 1
    assert 0 < counts.sum() < 700
    monkeypatch.setattr("dprad.data.places.BLOCK", 64)
    given = {"centre": centre, "metres": reach, "shape": shape}
    assert datasets.visits(points, nodes, **given).tolist() == counts.tolist()
    assert datasets.visits(iter([points[:9], points[9:]]), nodes, **given).tolist() == (
        counts.tolist()
    )
    for name, table in (("nodes", nodes), ("points", points)):
        frame = pd.DataFrame(table, columns=["lat", "lon"])
        frame.assign(node_id=range(len(frame))).to_csv(tmp_path / f"{name}.csv.gz", index=False)
    files = [str(tmp_path / f"{name}.csv.gz") for name in ("points", "nodes")]
    assert datasets.visits(*files, **given).tolist() == counts.tolist()
    assert datasets.visits(points, nodes).sum() == 700


def test_raw_points(tmp_path):
    trips = 'TRIP_ID,POLYLINE\n1,"[[-8.6,41.1],[-8.5,41.2]]"\n2,"[]"\n3,"[[-8.6,41.1]]"\n'
    (tmp_path / "train.csv").write_text(trips)
    found = np.concatenate(list(datasets.porto_points(tmp_path / "train.csv")))
    assert found.tolist() == [[41.1, -8.6], [41.2, -8.5], [41.1, -8.6]]
    nodes = [[41.1, -8.6], [41.2, -8.5], [40.0, -8.0]]
    points = datasets.porto_points(tmp_path / "train.csv")
    assert datasets.visits(points, nodes).tolist() == [2, 1, 0]
    folder = tmp_path / "Data" / "000" / "Trajectory"
    folder.mkdir(parents=True)
    head = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255\n0\n"
    line = "39.9,116.3,0,492,39744.1,2008-10-23,02:53:04\n"
    (folder / "1.plt").write_text(head + line)
    (folder / "2.plt").write_text(head + line.replace("39.9", "400.1") + line)  # a lost fix
    points = datasets.geolife_points(tmp_path / "Data")
    assert datasets.visits(points, [[39.0, 116.0], [39.9, 116.3]]).tolist() == [0, 2]


def test_visits_say_what_is_wrong(tmp_path):
    (tmp_path / "points.csv").write_text("latitude,lon\n1,2\n")
    for words, call in (
        ("together", lambda: datasets.visits([[1, 2]], [[1, 2]], metres=5)),
        ("lacks the columns lat", lambda: datasets.visits(str(tmp_path / "points.csv"), [[1, 2]])),
        ("two columns", lambda: datasets.visits([[1, 2, 3]], [[1, 2]])),
        ("row 2 is not", lambda: datasets.visits([[1, 2]], [[1, 2], [100, 2]])),
        ("at least one row", lambda: datasets.visits([[1, 2]], [])),
        ("one of 'circle'", lambda: datasets.visits([[1, 2]], [[1, 2]], shape="square")),
        ("POLYLINE", lambda: list(datasets.porto_points(tmp_path / "points.csv"))),
        (r"no files \*.plt", lambda: list(datasets.geolife_points(tmp_path))),
    ):
        with pytest.raises(DpradError, match=words):
            call()


# -- what is wrong with a file is told without its lines -------------------------------------------
SECRET = "ALICE-SMITH-HIV"


def refused(read):
    """The one sentence about it, which names no value."""
    with pytest.raises(DpradError) as error:
        read()
    assert SECRET not in str(error.value) and error.value.__cause__ is None
    return str(error.value)


@pytest.mark.parametrize("name", ["census19", "texas100x", "adult"])
def test_broken_lines_are_not_quoted(tmp_path, rng, name):
    """A line with too many fields, after more good ones than are looked at first."""
    row = "39, a, 1, b, 13, c, d, e, f, Male, 2174, 0, 40, g, <=50K"
    file = tmp_path / ("adult.data" if name == "adult" else f"{name}.csv")
    if name == "adult":
        good = [row] * 60_000
    else:
        one = prepared(survey(rng)) if name == "census19" else stays(rng)
        lines = one.to_csv(index=False).splitlines()
        good = [lines[0], *lines[1:] * (60_000 // len(lines) + 1)]
    comma = ", " if name == "adult" else ","
    file.write_text("\n".join([*good, comma.join([SECRET] * 40)]) + "\n")
    read = datasets.adult if name == "adult" else getattr(datasets, name)
    assert "cannot be read" in refused(lambda: len(read(tmp_path)))


def test_broken_numbers_are_not_quoted(tmp_path, rng):
    """Codes that no whole number holds: what was returned can be read to its end."""
    prepared(survey(rng)).assign(PUMA="9" * 30).to_csv(tmp_path / "census19.csv", index=False)
    with pytest.raises(DpradError) as error:
        datasets.census19(tmp_path).fetchall()
    assert "999" not in str(error.value)


def test_broken_points_are_not_quoted(tmp_path):
    file = tmp_path / "train.csv"
    for trip in (f'"[[""{SECRET}"", 41.1]]"', SECRET, f'"[[1,2],[""{SECRET}""]]"', "7", "[1"):
        file.write_text(f"TRIP_ID,POLYLINE\n1,{trip}\n")
        refused(lambda: list(datasets.porto_points(file)))
    file.write_text("TRIP_ID,POLYLINE\n1\n")
    assert "no list of points" in refused(lambda: list(datasets.porto_points(file)))
    (tmp_path / "1.plt").write_text("\n" * 6 + f"{SECRET},116.3,0\n")
    assert "pair of numbers" in refused(lambda: list(datasets.geolife_points(tmp_path)))


def test_loaders_use_a_folder_of_their_own(tmp_path, rng, monkeypatch):
    """Nothing is spilled into the current folder; no other file is read, and names are literal."""
    import duckdb

    made, real = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: made.append(real(*a, **k)) or made[-1])
    folder = tmp_path / "a[1]*"
    folder.mkdir()
    row = "39, a, 1, b, 13, c, d, e, f, Male, 2174, 0, 40, g, <=50K\n"
    (folder / "adult.data").write_text(row * 2)
    prepared(survey(rng)).to_csv(folder / "census19.csv", index=False)
    stays(rng).to_csv(folder / "PUDF_base1q2006_tab.txt", index=False, sep="\t")
    for read in (datasets.adult, datasets.census19, datasets.texas100x):
        assert len(read(folder)) > 1
        asked = (
            "SELECT current_setting('temp_directory'), current_setting('enable_external_access')"
        )
        ((spill, outside),) = made[-1].execute(asked).fetchall()
        assert (Path(spill).stat().st_mode & 0o777, outside) == (0o700, False)
        with pytest.raises(duckdb.Error):
            made[-1].execute(f"SELECT * FROM read_csv('{tmp_path}/other.csv')").fetchall()
    assert len(made) == 3
