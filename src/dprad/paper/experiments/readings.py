"""The paper's DP-SGD markers, read off its plots by hand. None: it cannot be read."""

from __future__ import annotations

# How well a marker can be read.
READING = 0.003
# Read off the paper's plots, at the six noise levels: RAD, and ReRo (how often it is right).
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "dpsgd-mnist": {
        "nothing": (0.027, 0.054, 0.066, 0.097, 0.261, 0.530),
        "label": (0.049, 0.076, 0.104, 0.143, 0.304, 0.496),
        "everything": (0.054, 0.088, 0.128, 0.167, 0.335, 0.499),
    },
    "dpsgd-fashion": {
        "nothing": (0.027, 0.052, 0.071, 0.095, 0.229, 0.463),
        "label": (0.042, 0.080, 0.104, 0.140, 0.287, 0.431),
        "everything": (0.047, 0.090, 0.126, 0.165, 0.316, 0.463),
    },
}
PAPER_RERO: dict[str, dict[str, tuple[float | None, ...]]] = {
    "dpsgd-mnist": {
        "nothing": (0.153, 0.177, 0.191, 0.222, 0.386, 0.655),
        "label": (0.436, 0.465, 0.487, 0.520, 0.665, 0.831),
        "everything": (0.554, 0.588, 0.631, 0.667, 0.833, 0.970),
    },
    "dpsgd-fashion": {
        "nothing": (0.153, 0.177, 0.193, 0.220, 0.355, 0.588),
        "label": (0.453, 0.489, 0.508, 0.540, None, 0.785),
        "everything": (0.552, 0.597, 0.636, 0.672, 0.816, 0.944),
    },
}
