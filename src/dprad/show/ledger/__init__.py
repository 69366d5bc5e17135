"""A ledger of releases: what was published, what that adds up to, and what the next one may be."""

from __future__ import annotations

from dprad.show.ledger.entry import Entry
from dprad.show.ledger.file import Ledger
from dprad.show.ledger.plan import Plan
from dprad.show.ledger.standing import Standing

__all__ = ["Entry", "Ledger", "Plan", "Standing"]
