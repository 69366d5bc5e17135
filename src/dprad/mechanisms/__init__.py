"""Mechanisms: what is run. One family a file."""

from __future__ import annotations

from dprad.mechanisms.base import Mechanism
from dprad.mechanisms.channel import Channel
from dprad.mechanisms.grr import GRR

__all__ = ["GRR", "Channel", "Mechanism"]
