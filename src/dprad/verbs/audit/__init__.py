"""audit: does this implementation keep its promise?"""

from __future__ import annotations

from dprad.verbs.audit.procedure import audit

__all__ = ["audit"]
