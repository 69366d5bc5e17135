"""Visits to the nodes of a road graph: what `locations` needs, from GPS points.

Points go to the nearest node; those outside a circle (or a square) around a centre are left out.
Nearest is meant on the sphere: a KD-tree of unit vectors, so neither projection nor pole matters.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dprad.data.files import opened
from dprad.errors import DpradError, number, one_of, told
from dprad.numerics.arrays import FloatArray, IntArray

# Metres, mean radius.
EARTH = 6_371_008.8
# Points looked up at once.
BLOCK = 2**18
# Trips of the Porto file, and lines of a Geolife file, that come before the points.
TRIPS, HEADER = 10_000, 6


def visits(
    points: Any,
    nodes: Any,
    *,
    centre: tuple[float, float] | None = None,
    metres: float | None = None,
    shape: str = "circle",
) -> IntArray:
    """How many points are nearest to each node.

    Parameters
    ----------
    points
        A CSV or Parquet file with the columns ``lat`` and ``lon``, in degrees; an array of two
        columns, latitude and longitude; or an iterator of such arrays.
    nodes
        A file with the columns ``lat`` and ``lon``, one row per node, or such an array.
    centre, metres
        Points farther than this from the centre (latitude, longitude) are left out; default: all
        count.
    shape
        ``"circle"`` of that radius, or ``"box"`` of that half-side.

    Returns
    -------
    ndarray
        One count per node, in the order of the nodes.

    Examples
    --------
    >>> nodes = [[41.0, -8.6], [41.0, -8.5]]
    >>> visits([[41.001, -8.59], [41.0, -8.51], [41.002, -8.6], [0.0, 0.0]], nodes,
    ...        centre=(41.0, -8.55), metres=10_000).tolist()
    [2, 1]

    """
    from scipy.spatial import cKDTree

    one_of(shape, "shape", ["circle", "box"])
    if (centre is None) != (metres is None):
        raise DpradError("centre and metres must be given together, or not at all.")
    places = np.concatenate(list(_blocks(nodes, "nodes")))
    if not len(places):
        raise DpradError("nodes must have at least one row, but is empty.")
    tree = cKDTree(_vectors(places))
    counts = np.zeros(len(places), dtype=np.int64)
    for block in _blocks(points, "points"):
        for a in range(0, len(block), BLOCK):
            part = block[a : a + BLOCK]
            if centre is not None:
                part = part[_inside(part, centre, number(metres, "metres", low=0), shape)]
            nearest = tree.query(_vectors(part))[1]
            counts += np.bincount(nearest, minlength=len(places))
    return counts


def porto_points(path: Any) -> Iterator[FloatArray]:
    """Points of the Porto taxi file (train.csv), whose column POLYLINE holds each trip as a list.

    Parameters
    ----------
    path
        The file.

    Yields
    ------
    ndarray
        Latitude and longitude, for some trips at a time; for `visits`.

    Examples
    --------
    ::

        counts = visits(porto_points("train.csv"), "porto_nodes.csv.gz",
                        centre=(41.1474557, -8.5870079), metres=2688, shape="box")

    """
    if not Path(path).is_file():
        raise DpradError(f"there is no file {str(path)!r}: give the path of Porto's train.csv.")
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    name = Path(path).name
    trips: list[str] = []
    with Path(path).open(newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.DictReader(file)
        if "POLYLINE" not in (rows.fieldnames or ()):
            raise DpradError(f"{name} lacks the column POLYLINE.")
        while (row := _next(rows, name)) is not None:
            trips.append(row["POLYLINE"])
            if len(trips) == TRIPS:
                yield _numbers(_trips(trips, name), name)[:, ::-1]
                trips = []
    yield _numbers(_trips(trips, name), name)[:, ::-1]


def geolife_points(folder: Any) -> Iterator[FloatArray]:
    """Points of all Geolife trajectories (files ``*.plt``) under a folder.

    Parameters
    ----------
    folder
        The folder ``Data`` of Geolife 1.3.

    Yields
    ------
    ndarray
        Latitude and longitude, for one file at a time; for `visits`.

    Examples
    --------
    ::

        counts = visits(geolife_points("Data"), "beijing_nodes.csv.gz",
                        centre=(39.9130, 116.3703), metres=5000, shape="box")

    """
    files = sorted(f for f in Path(folder).rglob("*.plt") if f.is_file())
    if not files:
        raise DpradError(f"there are no files *.plt under {str(folder)!r}.")
    for file in files:
        with file.open(encoding="ascii", errors="replace") as lines:
            rows = [line.split(",", 2)[:2] for line in lines][HEADER:]
        yield _numbers([r for r in rows if len(r) == 2], file.name)


# Errors below quote what they cannot read, so only their kind is told.
def _next(rows: Any, name: str) -> Any:
    """The next row of a file, None at its end."""
    try:
        return next(rows, None)
    except csv.Error as error:
        raise DpradError(f"{name}: row {rows.line_num:,} cannot be read ({told(error)}).") from None


def _trips(lines: list[str], name: str) -> list[Any]:
    """The points of trips that are lists of points."""
    points: list[Any] = []
    try:
        for line in lines:
            points += json.loads(line)
    except (TypeError, ValueError, RecursionError) as error:
        raise DpradError(f"{name}: a trip is no list of points ({told(error)}).") from None
    return points


def _numbers(points: list[Any], name: str) -> FloatArray:
    try:
        return np.array(points, dtype=float).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError) as error:
        raise DpradError(
            f"{name}: a point is no pair of numbers, latitude and longitude ({told(error)})."
        ) from None


def _blocks(given: Any, name: str) -> Iterable[FloatArray]:
    """Latitudes and longitudes, as arrays of two columns."""
    if isinstance(given, str | Path):
        yield _checked(_table(given, name), name)
    elif isinstance(given, Iterator):
        for block in given:
            yield _checked(block, name)
    else:
        yield _checked(given, name)


def _table(path: str | Path, name: str) -> FloatArray:
    with opened(str(path), True, False, None) as (rows, _):
        missing = [c for c in ("lat", "lon") if c not in rows.columns]
        if missing:
            raise DpradError(f"{name}: {Path(path).name} lacks the columns {', '.join(missing)}.")
        both = rows.project("CAST(lat AS DOUBLE) AS lat, CAST(lon AS DOUBLE) AS lon").fetchnumpy()
    return np.stack([np.ma.filled(both[c], np.nan) for c in ("lat", "lon")], axis=1)


def _checked(given: Any, name: str) -> FloatArray:
    """Refuse what is not latitudes and longitudes."""
    try:
        found = np.asarray(given, dtype=float)
        found = found.reshape(-1, 2) if found.size == 0 else found
        if found.ndim != 2 or found.shape[1] != 2:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise DpradError(f"{name} must have two columns, latitude and longitude.") from None
    # NaN fails both
    good = (np.abs(found[:, 0]) <= 90) & (np.abs(found[:, 1]) <= 360)
    if name == "nodes" and not good.all():
        raise DpradError(f"{name}: row {int(np.argmin(good)) + 1} is not a latitude and longitude.")
    return np.asarray(found[good])  # a lost fix is no visit


def _vectors(places: FloatArray) -> FloatArray:
    lat, lon = np.radians(places).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def _inside(points: FloatArray, centre: tuple[float, float], metres: float, shape: str) -> Any:
    if shape == "circle":
        chord = np.linalg.norm(_vectors(points) - _vectors(np.array([centre], dtype=float)), axis=1)
        return 2 * EARTH * np.arcsin(np.minimum(chord / 2, 1.0)) <= metres
    north, east = np.radians(points - np.array(centre)).T
    east *= np.cos(np.radians(centre[0]))
    return EARTH * np.maximum(np.abs(north), np.abs(east)) <= metres
