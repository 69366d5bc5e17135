"""Reports: one self-contained HTML file, for people who do not write Python.

No scripts, no external requests; the same input gives the same bytes.
"""

from __future__ import annotations

from dprad.show.report.page import report, report_scenario

__all__ = ["report", "report_scenario"]
