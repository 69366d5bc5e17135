"""Mechanisms: what is run. One family a file."""

from __future__ import annotations

from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.channel import Channel
from dprad.mechanisms.composed import Composed, Repeated
from dprad.mechanisms.gaussian import Gaussian
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hashing import BLH, OLH
from dprad.mechanisms.laplace import Geometric, Laplace
from dprad.mechanisms.subset import SubsetSelection
from dprad.mechanisms.unary import OUE, SUE, UnaryEncoding

__all__ = [
    "BLH",
    "GRR",
    "OLH",
    "OUE",
    "SUE",
    "Channel",
    "Composed",
    "Gaussian",
    "Geometric",
    "Laplace",
    "Mechanism",
    "Repeated",
    "SubsetSelection",
    "UnaryEncoding",
]
