"""audit: does this implementation keep its promise?"""

from __future__ import annotations

from dprad.auditing.paper import paper_audit
from dprad.auditing.procedure import audit

__all__ = ["audit", "paper_audit"]
