"""Mechanisms, one family per file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dprad.mechanisms.attributes.fakes import RSFD, RSRFD
from dprad.mechanisms.attributes.smp import SMP
from dprad.mechanisms.attributes.spl import SPL
from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.black_box import BlackBox
from dprad.mechanisms.bounded import Duchi, Hybrid, Piecewise
from dprad.mechanisms.bounded_laplace import BoundedLaplace
from dprad.mechanisms.channel import Channel
from dprad.mechanisms.composed import Composed, Repeated
from dprad.mechanisms.density import Density
from dprad.mechanisms.exponential import Exponential, ExponentialInterval
from dprad.mechanisms.gaussian import DiscreteGaussian, Gaussian
from dprad.mechanisms.grr import GRR
from dprad.mechanisms.hadamard import HadamardResponse
from dprad.mechanisms.hashing import BLH, OLH
from dprad.mechanisms.histogram import SHE, THE
from dprad.mechanisms.laplace import Geometric, Laplace
from dprad.mechanisms.over_time.bit_flip import DBitFlip
from dprad.mechanisms.over_time.grr import LGRR
from dprad.mechanisms.over_time.hashing import LOLOHA
from dprad.mechanisms.over_time.rappor import RAPPOR
from dprad.mechanisms.over_time.unary import LOSUE, LOUE, LSOUE, LSUE
from dprad.mechanisms.staircase import Staircase
from dprad.mechanisms.subset import SubsetSelection
from dprad.mechanisms.tables.kinds import Counts, Histogram, Marginals, Mean, Sums
from dprad.mechanisms.unary import OUE, SUE, UnaryEncoding

if TYPE_CHECKING:
    from dprad.training.mechanism import DPSGD

__all__ = [
    "BLH",
    "DPSGD",
    "GRR",
    "LGRR",
    "LOLOHA",
    "LOSUE",
    "LOUE",
    "LSOUE",
    "LSUE",
    "OLH",
    "OUE",
    "RAPPOR",
    "RSFD",
    "RSRFD",
    "SHE",
    "SMP",
    "SPL",
    "SUE",
    "THE",
    "BlackBox",
    "BoundedLaplace",
    "Channel",
    "Composed",
    "Counts",
    "DBitFlip",
    "Density",
    "DiscreteGaussian",
    "Duchi",
    "Exponential",
    "ExponentialInterval",
    "Gaussian",
    "Geometric",
    "HadamardResponse",
    "Histogram",
    "Hybrid",
    "Laplace",
    "Marginals",
    "Mean",
    "Mechanism",
    "Piecewise",
    "Repeated",
    "Staircase",
    "SubsetSelection",
    "Sums",
    "UnaryEncoding",
]


def __getattr__(name: str) -> Any:
    if name == "DPSGD":  # defined in the training package
        from importlib import import_module

        return import_module("dprad.training.mechanism").DPSGD
    raise AttributeError(f"module 'dprad.mechanisms' has no attribute {name!r}")
