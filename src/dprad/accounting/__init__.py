"""Guarantees from common accountants.

`dpsgd` needs only scipy. `from_event`, `from_accountant` and `from_pld` need dp-accounting,
`from_opacus` reads the history of Opacus, `from_opendp` takes an OpenDP measurement, and
`from_context` an OpenDP context. `release_from_opendp` turns a measurement that publishes counts or
sums into a table release.
"""

from __future__ import annotations

from dprad.accounting.from_event import from_accountant, from_event
from dprad.accounting.from_opacus import from_opacus
from dprad.accounting.from_opendp import from_context, from_opendp
from dprad.accounting.from_pld import from_pld
from dprad.accounting.tables_from_opendp import release_from_opendp
from dprad.training.guarantee import dpsgd

__all__ = [
    "dpsgd",
    "from_accountant",
    "from_context",
    "from_event",
    "from_opacus",
    "from_opendp",
    "from_pld",
    "release_from_opendp",
]
