"""Sphinx: `make docs`."""

from sphinx.util import inspect

project = "dprad"
author = "the dprad authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]
html_theme = "furo"
html_title = "dprad"

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_google_docstring = False
napoleon_use_ivar = True

# Types are shown by the names that users write.
_PUBLIC = (
    "ApproxDP Audit Bound Calibration Comparison GaussianDP Guarantee Prior Profile PureDP Risk "
    "Threat TotalVariation TrainingRisk WorstPrior"
)
_PLAIN = "Column FloatArray IntArray Neighbours Pair Query Question Release Seed Table"
autodoc_type_aliases = {
    **{name: f"dprad.{name}" for name in _PUBLIC.split()},
    **{name: name for name in _PLAIN.split()},
    "Answers": "dprad.scenario.Answers",
    "Candidate": "dprad.model.results.Candidate",
    "DPSGD": "dprad.mechanisms.DPSGD",
    "Imputation": "dprad.attacks.Imputation",
    "Mechanism": "dprad.mechanisms.Mechanism",
    "OptimalAttack": "dprad.attacks.optimal.OptimalAttack",
    "Recording": "dprad.attacks.Recording",
    "Scenario": "dprad.scenario.Scenario",
}
# Within a union or a tuple, Sphinx writes an alias as the repr of its own class.
if hasattr(inspect, "TypeAliasForwardRef"):
    inspect.TypeAliasForwardRef.__repr__ = lambda self: self.name


def _readable(_app, what, _name, _obj, _options, lines):
    """What napoleon misreads: fields that share a description, and a colon in a property's text."""
    if what == "property" and lines:
        lines[:] = [line.replace(": ", " -- ") for line in lines]
    if "Attributes" not in lines:
        return
    start = lines.index("Attributes") + 2
    fields = []  # (names, description)
    for line in lines[start:]:
        if line[:1].strip():
            fields.append((line.split(", "), []))
        elif fields:
            fields[-1][1].append(line)
    lines[start:] = [row for names, text in fields for field in names for row in (field, *text)]


def setup(app):
    app.connect("autodoc-process-docstring", _readable, priority=400)
