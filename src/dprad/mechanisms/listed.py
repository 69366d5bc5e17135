"""Mechanisms whose outcomes can be listed where they are few: any prior, knowledge and loss."""

from __future__ import annotations

from abc import abstractmethod

from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.categorical import Categorical
from dprad.numerics.arrays import Column, FloatArray


class Listed(Categorical):
    """A mechanism that can list what an attacker may see, up to what tells nothing.

    If there are too many outcomes and no closed form applies, its risk is estimated by draws.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def outcomes(self) -> int:
        """How many there are."""

    @abstractmethod
    def matrix(self, points: Column) -> FloatArray:
        """The probability of each outcome (columns) given each of these codes. O(their product)."""

    @property
    def alike(self) -> Mechanism | None:
        """A simpler mechanism with the same risk for every question, if there is one."""
        return None

    @property
    def pair_tv(self) -> float | None:
        """The total variation between the outputs of two records, at most; None: only the promise
        says.
        """
        return None
