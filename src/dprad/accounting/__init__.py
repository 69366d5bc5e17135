"""Guarantees from common accountants.

`dpsgd` needs only scipy. `from_event` and `from_pld` need dp-accounting, `from_opacus` reads the
history of Opacus, and `from_opendp` takes an OpenDP measurement. `release_from_opendp` turns one
that publishes counts or sums into a table release.
"""

from __future__ import annotations

from dprad.accounting.from_opacus import from_opacus
from dprad.accounting.from_opendp import from_opendp
from dprad.accounting.from_pld import from_event, from_pld
from dprad.accounting.tables_from_opendp import release_from_opendp
from dprad.training.guarantee import dpsgd

__all__ = [
    "dpsgd",
    "from_event",
    "from_opacus",
    "from_opendp",
    "from_pld",
    "release_from_opendp",
]
