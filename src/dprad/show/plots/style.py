"""Common to all figures: colours, an axis to draw on, and figures as text (SVG)."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dprad.errors import DpradError, part

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
# Stands for the text colour; an SVG inherits it from the page, so dark pages work.
INK = "#1a1b1c"
SIZE = (6.2, 3.4)
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dprad",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def _own_style() -> Iterator[None]:
    """Our style on matplotlib's defaults; settings files in the current folder are ignored."""
    matplotlib = part("matplotlib", "figures", "plots")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def axis(ax: Any = None) -> Any:
    """The given axis, or that of a new figure."""
    if ax is not None:
        if not hasattr(ax, "plot"):
            raise DpradError(f"ax must be a matplotlib axis, but is {ax!r}.")
        return ax
    plt = part("matplotlib.pyplot", "figures", "plots")
    with _own_style():
        return plt.figure(figsize=SIZE, layout="constrained").add_subplot()


def svg(draw: Callable[[Any], Any], *, label: str, size: tuple[float, float] = SIZE) -> str:
    """A figure as the text of an <svg> element: no fonts, no date, deterministic."""
    with _own_style():
        figure = part("matplotlib.figure", "figures", "plots").Figure(
            figsize=size, layout="constrained"
        )
        draw(figure.add_subplot())
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # only in tags, never in visible text: three decimals of a point, and the page's own ink
    text = re.sub(r"<[^<>]+>", lambda tag: _shorter(tag.group()), text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{_escaped(label)}" ', 1)


def _shorter(tag: str) -> str:
    return re.sub(r"(\d+\.\d{3})\d+", r"\1", tag).replace(INK, "currentColor")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def plain(text: str, longest: int = 40) -> str:
    """A label as plain text: no mathematics, and not too long."""
    line = " ".join(str(text).split())
    line = line if len(line) <= longest else line[: longest - 1] + "\u2026"
    return line.replace("$", r"\$")
