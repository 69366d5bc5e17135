"""A small synthetic patient table, made by a seeded generator: the built-in data of the demo.

It contains no real people. Age band, region, smoking and diagnosis depend on one another roughly as
in real registers: older people have more heart disease, smokers more lung disease, the city more
asthma.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dprad.errors import column
from dprad.model.priors import Prior
from dprad.runtime.writing import write

COLUMNS = ("age", "region", "smoker", "diagnosis")
AGES = ("0-19", "20-39", "40-59", "60-79", "80+")
REGIONS = ("city", "coast", "hills", "valley")
SMOKER = ("no", "yes")
DIAGNOSES = ("healthy", "asthma", "diabetes", "heart", "lung")

Record = tuple[str, str, str, str]
# How many there are in the built-in table.
PEOPLE = 20_000


def records(people: int = PEOPLE, *, seed: int = 2026) -> list[Record]:
    """Synthetic patients; the same seed gives the same people.

    Parameters
    ----------
    people
        Number of people.
    seed
        Seed of the generator.

    Returns
    -------
    list of tuple
        (age, region, smoker, diagnosis) per person.

    Examples
    --------
    >>> len(records(100)), len(records(100)[0])
    (100, 4)

    """
    rng = np.random.default_rng(seed)
    age = rng.choice(5, size=people, p=[0.20, 0.26, 0.27, 0.20, 0.07])
    region = rng.choice(4, size=people, p=[0.45, 0.25, 0.12, 0.18])
    smokes = rng.random(people) < np.array([0.03, 0.24, 0.22, 0.12, 0.05])[age]
    # relative odds against being healthy
    odds = np.ones((people, 5))
    odds[:, 1] = 0.06 + 0.06 * (region == 0) + 0.05 * (age == 0)
    odds[:, 2] = np.array([0.005, 0.02, 0.10, 0.22, 0.26])[age]
    odds[:, 3] = np.array([0.002, 0.01, 0.07, 0.28, 0.60])[age] * (1 + 0.8 * smokes)
    odds[:, 4] = np.array([0.001, 0.006, 0.03, 0.07, 0.08])[age] * (1 + 6.0 * smokes)
    ladder = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
    diagnosis = np.minimum((rng.random(people)[:, None] > ladder).sum(axis=1), 4)
    return [
        (AGES[a], REGIONS[r], SMOKER[s], DIAGNOSES[d])
        for a, r, s, d in zip(age, region, smokes.astype(int), diagnosis, strict=True)
    ]


def prior(columns: Sequence[str] | None = None) -> Prior:
    """The table, or some of its columns, as a prior.

    Parameters
    ----------
    columns
        Names of columns; default: all.

    Returns
    -------
    Prior
        Counted from 20,000 people.

    Examples
    --------
    >>> prior(["smoker"]).size
    2

    """
    names = [column(c, COLUMNS, name="columns") for c in columns or COLUMNS]
    at = [COLUMNS.index(c) for c in names]
    rows = (tuple(row[i] for i in at) for row in records())
    counts = Counter(row if len(row) > 1 else row[0] for row in rows)
    return Prior.from_counts(counts, columns=names)


def save(path: str | Path, people: int = PEOPLE, *, seed: int = 2026, new: bool = False) -> None:
    """Write the table to a CSV file, to try the commands on.

    Parameters
    ----------
    path
        The file to write.
    people
        Number of people.
    seed
        Seed of the generator.
    new
        Whether a file that exists is refused, not replaced.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(os.path.join(folder, "patients.csv"), people=100)
    ...     os.listdir(folder)
    ['patients.csv']

    """
    lines = [",".join(row) for row in (COLUMNS, *records(people, seed=seed))]
    write(path, "\n".join(lines) + "\n", new=new)
