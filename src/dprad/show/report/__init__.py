"""Reports: one HTML file with everything in it, for people who do not write Python.

No script, no outside request; the same input gives the same bytes.
"""

from __future__ import annotations

from dprad.show.report.page import report, report_scenario

__all__ = ["report", "report_scenario"]
