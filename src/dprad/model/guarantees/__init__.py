"""Guarantees: one kind per file."""

from __future__ import annotations

from dprad.model.guarantees.approx import ApproxDP, PureDP, TotalVariation
from dprad.model.guarantees.base import Guarantee, of_directions
from dprad.model.guarantees.gaussian import GaussianDP
from dprad.model.guarantees.neighbours import ADD_REMOVE, REPLACE_ONE, UNKNOWN, Neighbours
from dprad.model.guarantees.profile import Profile
from dprad.model.guarantees.renyi import ZCDP, Moments, RenyiDP

# Guarantees with numeric parameters only, which the command line and files can name.
KINDS: tuple[type[Guarantee], ...] = (PureDP, ApproxDP, GaussianDP, ZCDP, TotalVariation)

__all__ = [
    "ADD_REMOVE",
    "KINDS",
    "REPLACE_ONE",
    "UNKNOWN",
    "ZCDP",
    "ApproxDP",
    "GaussianDP",
    "Guarantee",
    "Moments",
    "Neighbours",
    "Profile",
    "PureDP",
    "RenyiDP",
    "TotalVariation",
    "of_directions",
]
