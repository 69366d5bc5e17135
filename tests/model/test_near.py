"""Places near each other: leaves of a tree against the formula for every pair."""

from __future__ import annotations

import numpy as np
import pytest

from dprad import DpradError
from dprad.data.places import EARTH
from dprad.model import near
from dprad.model.losses import affordable
from dprad.runtime import memory
from dprad.runtime.workers import crew


def every_pair(lat, lon, metres):
    h = (
        np.sin((lat[:, None] - lat) / 2) ** 2
        + np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
    )
    return 2 * EARTH * np.arcsin(np.sqrt(np.minimum(h, 1.0))) <= metres


# the middle and the size of a region in degrees, and a distance in metres
REGIONS = {
    "city": ([41.1, -8.6], [0.1, 0.1], 300.0),
    "date line": ([0.0, 180.0], [1.0, 1.0], 2e4),
    "north pole": ([90.0, 0.0], [0.5, 360.0], 1e4),
    "a grid, touching": ([41.0, 8.0], [0.0, 0.0], EARTH * np.radians(0.01)),
    "the whole earth": ([0.0, 0.0], [90.0, 360.0], 3e6),
    "all near": ([41.1, -8.6], [0.1, 0.1], 1e9),
    "far apart, tiny": ([0.0, 0.0], [90.0, 360.0], 0.01),
    "itself only": ([41.1, -8.6], [0.1, 0.1], 0.0),
}


@pytest.mark.parametrize("region", REGIONS)
def test_as_the_formula_says(region, rng, monkeypatch):
    middle, size, metres = REGIONS[region]
    at = np.asarray(middle) + rng.uniform(-1, 1, (700, 2)) * size
    if not any(size):
        at = at + 0.01 * np.stack(np.divmod(np.arange(700), 26), axis=1)
    lat, lon = np.radians(np.clip(at[:, 0], -90, 90)), np.radians(at[:, 1])
    expected = every_pair(lat, lon, metres)
    found = near.Near.of(lat, lon, metres).listed(affordable)
    assert np.array_equal(found.toarray(), expected)
    assert found.nnz == expected.sum() and found.has_sorted_indices
    monkeypatch.setattr(near, "LEAF", 5)
    monkeypatch.setattr(near, "LEAVES", 3)
    monkeypatch.setattr(near, "BLOCK_ENTRIES", 1)
    monkeypatch.setattr(memory, "SMALLEST", 1)
    places = near.Near.of(lat, lon, metres)
    assert np.array_equal(places.listed(affordable).toarray(), expected)
    i, j = rng.integers(700, size=(2, 1000))
    assert np.array_equal(places.are(i, j), expected[i, j])


def test_only_pairs_that_are_near_count_for_the_limit(rng):
    """Leaves have more candidates than near pairs: these alone decide."""
    lat, lon = np.radians(rng.uniform([41.0, -9.0], [41.5, -8.0], (3000, 2))).T
    pairs = int(every_pair(lat, lon, 2000.0).sum())
    with memory.limit(101.0 * pairs):
        assert near.Near.of(lat, lon, 2000.0).listed(affordable).nnz == pairs
    with (
        memory.limit(99.0 * pairs),
        pytest.raises(DpradError, match=f"{pairs:,} pairs of the 3,000"),
    ):
        near.Near.of(lat, lon, 2000.0).listed(affordable)


@pytest.mark.parametrize("region", REGIONS)
def test_folds_are_those_of_the_list(region, rng, monkeypatch):
    """To the last bit, whatever the parts, the blocks, the workers and the rows asked about."""
    middle, size, metres = REGIONS[region]
    at = np.asarray(middle) + rng.uniform(-1, 1, (500, 2)) * size
    lat, lon = np.radians(np.clip(at[:, 0], -90, 90)), np.radians(at[:, 1])
    places = near.Near.of(lat, lon, metres)
    listed = places.listed(affordable)
    mass, bits = rng.random((500, 2)), rng.integers(2**64, size=500, dtype=np.uint64)
    folds = [(np.add, mass), (np.add, bits), (np.minimum, mass[:, 0]), (np.maximum, bits)]
    expected = [
        listed.astype(float) @ mass,
        np.array([bits[row].sum() for row in np.split(listed.indices, listed.indptr[1:-1])]),
        np.where(listed.toarray(), mass[:, 0], np.inf).min(axis=1),
        np.where(listed.toarray(), bits, 0).max(axis=1),
    ]
    for workers, part in ((1, near.PART), (1, 70), (3, 70)):
        monkeypatch.setattr(near, "PART", part)
        with crew(workers):
            found = places.fold(*folds)
            some = places.fold(folds[0], rows=np.arange(0, 500, 7))[0]
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        assert np.array_equal(some[::7], expected[0][::7])
        monkeypatch.setattr(near, "LEAF", 5)
        monkeypatch.setattr(near, "BLOCK_ENTRIES", 1)
        monkeypatch.setattr(memory, "SMALLEST", 1)
