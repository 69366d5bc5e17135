"""Sphinx: `make docs`."""

project = "dprad"
author = "the dprad authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# Types are shown by the names that users write.
_PUBLIC = (
    "ApproxDP Audit Bound Calibration Comparison GaussianDP Guarantee Prior Profile PureDP Risk "
    "Threat TotalVariation TrainingRisk WorstPrior"
)
_OTHER = {
    "Answers": "dprad.scenario.Answers",
    "Candidate": "dprad.model.results.Candidate",
    "DPSGD": "dprad.mechanisms.DPSGD",
    "Imputation": "dprad.attacks.Imputation",
    "Mechanism": "dprad.mechanisms.Mechanism",
    "OptimalAttack": "dprad.attacks.optimal.OptimalAttack",
    "Recording": "dprad.attacks.Recording",
    "Scenario": "dprad.scenario.Scenario",
}
_PLAIN = "Column FloatArray IntArray Neighbours Pair Query Release Seed Table"
autodoc_type_aliases = {
    **{name: f"dprad.{name}" for name in _PUBLIC.split()},
    **_OTHER,
    **{name: name for name in _PLAIN.split()},
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
add_module_names = True
napoleon_google_docstring = False
napoleon_use_ivar = True
html_theme = "furo"
html_title = "dprad"
