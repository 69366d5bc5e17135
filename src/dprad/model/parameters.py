"""Parameters that set the amount of noise, declared once.

Guarantees and mechanisms name the ones they take. Search ranges, the direction of more privacy,
command-line options, keys of scenario files and sliders of the web page all come from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """A numeric parameter of a guarantee or a mechanism.

    Parameters
    ----------
    name
        As in Python; also the option ``--name`` and the key in scenario files.
    help
        One line for the command line.
    low
        Lower end of the search range of `calibrate`; in units of the sensitivity if `scaled`.
    high
        Upper end of the search range.
    rising
        Whether risk grows with it.
    whole
        Whether it is a whole number.
    scaled
        Whether the search range is in units of the sensitivity.
    most
        The largest valid value.
    slider
        Lowest, highest and step on the web page; None: no slider.
    interval
        Whether it is two numbers, low and high.
    choices
        If it is a word, which ones.

    """

    name: str
    help: str
    low: float = 0.0
    high: float = math.inf
    rising: bool = True
    whole: bool = False
    scaled: bool = False
    most: float = math.inf
    slider: tuple[float, float, float] | None = None
    interval: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """The starting point of a search for a parameter.

    `risk` is the accepted risk, `share` its share of the largest possible one, `values` the number
    of distinct values of the prior, and `fixed` the given arguments.
    """

    risk: float
    share: float
    values: int
    fixed: Mapping[str, Any]


EPSILON = Parameter(
    "epsilon",
    "Privacy loss: of a promise, or of the mechanism. Smaller is more private.",
    low=1e-13,
    high=700.0,
    slider=(0.0, 10.0, 0.05),
)
DELTA = Parameter("delta", "The delta that goes with epsilon.", most=1.0)
MU = Parameter("mu", "Promise mu-Gaussian DP.", low=1e-13, high=1e3, slider=(0.0, 5.0, 0.05))
RHO = Parameter(
    "rho",
    "Promise rho-zero-concentrated DP.",
    low=1e-9,
    high=1e4,
    slider=(0.0, 5.0, 0.01),
)
TV = Parameter(
    "tv", "Promise a total variation.", low=1e-15, high=1.0, most=1.0, slider=(0.0, 1.0, 0.01)
)
SIGMA = Parameter(
    "sigma",
    "Standard deviation of Gaussian noise. Larger is more private.",
    low=1e-4,
    high=1e13,
    rising=False,
    scaled=True,
    slider=(0.1, 100.0, 0.1),
)
SENSITIVITY = Parameter(
    "sensitivity", "How far one record can move the number (default: the range of its values)."
)
CLAMP = Parameter(
    "clamp", "The interval to which noisy numbers are moved, as low:high.", interval=True
)
SCALE = Parameter(
    "scale",
    "Scale of the noise.",
    low=1e-6,
    high=1e9,
    rising=False,
    scaled=True,
    slider=(0.1, 100.0, 0.1),
)
RHO = Parameter(
    "rho",
    "Zero-concentrated privacy loss. Smaller is more private.",
    low=1e-13,
    high=1e5,
    slider=(0.0, 5.0, 0.05),
)
THRESHOLD = Parameter(
    "threshold", "The names of the cells come from the data: publish counts above this only."
)
NOISE_MULTIPLIER = Parameter(
    "noise_multiplier",
    "Standard deviation of the noise over the clipping norm.",
    low=0.05,
    high=1e6,
    rising=False,
)
SAMPLE_RATE = Parameter(
    "sample_rate", "Chance that a record takes part in a step.", low=1e-9, high=1.0, most=1.0
)
STEPS = Parameter("steps", "Number of steps.", low=1.0, high=1e7, whole=True)
TIMES = Parameter("times", "Number of releases.", low=1.0, high=1e6, whole=True, most=1e6)
PEOPLE = Parameter(
    "people", "Number of records that belong together.", low=1.0, high=1e6, whole=True, most=1e6
)
# What a promise is counted in: releases, and records that change together.
UNITS = {p.name: p for p in (TIMES, PEOPLE)}
EPSILON_INF = Parameter(
    "epsilon_inf",
    "Privacy loss of all reports together, however many there are, while the value stays the same.",
    low=1e-6,
    high=30.0,
    slider=(0.1, 10.0, 0.1),
)
EPSILON_ONE = Parameter(
    "epsilon_one",
    "Privacy loss of one report by itself (default: half of epsilon_inf).",
    low=1e-6,
    high=30.0,
)
REPORTS = Parameter("reports", "Number of reports that the attacker sees.", low=1.0, whole=True)
PERIODS = Parameter(
    "periods", "Points in time at which the value may differ, one column each.", low=1.0, whole=True
)

# Parameters that a calibration may vary in a function that declares nothing, by name.
TURNED = {
    p.name: p
    for p in (EPSILON, MU, RHO, TV, SAMPLE_RATE, TIMES, STEPS, SIGMA, NOISE_MULTIPLIER, SCALE)
}
