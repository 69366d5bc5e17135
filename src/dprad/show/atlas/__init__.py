"""The atlas: what published deployments of differential privacy mean, in extra risk.

Reads registry files (YAML), and writes a page, a table and a figure; and writes a registry entry
from a scenario.
"""

from __future__ import annotations

from dprad.show.atlas.export import exported
from dprad.show.atlas.page import Source, write
from dprad.show.atlas.rows import Row, collect, registered

__all__ = ["Row", "Source", "collect", "exported", "registered", "write"]
