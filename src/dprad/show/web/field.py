"""A control with its help: a question mark beside it that opens a few lines. Needs no script."""

from __future__ import annotations

from typing import Any

from htmltools import Tag, tags

HELP = {
    "population": "Whose data is released: how common each record is decides how much a guess is "
    "worth. Take a table that resembles the people concerned.",
    "size": "So many values, each as likely as the others.",
    "file": "CSV or Parquet with a line of column names, in UTF-8, up to 100 MB. It is read on "
    "this machine only, and deleted when the page ends.",
    "picked": "A record is what these columns say about a person. Pick what an attacker could know "
    "or want to learn. With many columns nearly all records differ, and the table says little "
    "about the population.",
    "whole": "Tick this if everybody concerned is in the table. Otherwise it is a sample, and one "
    "with many unique rows cannot prove a risk to be small.",
    "who": "The standard attackers range from a stranger to somebody who has the whole record. "
    "The verdict is about the strongest.",
    "sensitive": "What the standard attackers try to find out. Untick what is no secret.",
    "kind": "What this attacker knows about a person beforehand.",
    "columns": "These columns are known to the attacker.",
    "target": "What this attacker tries to find out.",
    "eta": "A guess of a number counts as right if it is off by no more than this.",
    "more_attackers": "Ask about one more attacker.",
    "mechanism": "How the release is protected. If you only know epsilon, take the promise: it "
    "covers every mechanism that keeps it.",
    "reads": "The column whose values are released with noise.",
    "slider": "The amount of noise: drag.",
    "value": "The amount of noise. Smaller epsilon, mu or tv is more private; larger sigma is.",
    "delta": "The delta of the promise, often below one over the number of people; 0 if there is "
    "none.",
    "neighbours": "Which tables the promise compares. Many libraries (Opacus, TensorFlow Privacy) "
    "count records that are added or removed; replacing one is up to twice as much.",
    "remove": "Leave this one out.",
    "more": "Another release about the same people. The verdict is about all of them together.",
    "accepted": "The extra risk you accept: how much more often an attacker may be right because a "
    "person takes part. 0.1 is 10 more times in 100. Leave it empty to have no verdict.",
    "worst": "The average can hide a person with a rare record. Judge by the most exposed person "
    "if nobody may bear more.",
    "compared": "Other ways to release the same column, drawn with the same attacker.",
    "scenario": "The question as a file for the command line.",
    "report": "The answer as one HTML file, with numbers rounded for readers.",
    "dark": "Light or dark page.",
}  # fmt: skip


def field(name: str, *control: Any) -> Tag:
    """A control and its help."""
    told = tags.details(
        tags.summary("?", aria_label="Help", title="Help"),
        tags.p(HELP[name]),
        class_="help",
    )
    return tags.div(*control, told, class_="field", data_help=name)


def key(name: str, k: int) -> str:
    """The id of a control on the card of this number; the first has the plain name."""
    return name if k == 0 else f"{name}{k + 1}"
