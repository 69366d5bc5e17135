"""Sphinx: `make docs`."""

project = "dprad"
author = "the dprad authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_use_ivar = True
html_theme = "furo"
html_title = "dprad"
