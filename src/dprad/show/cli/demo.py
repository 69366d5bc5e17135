"""dprad demo: what does epsilon = 1 mean for a small synthetic patient table?"""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dprad.show.cli.output import show, show_json


def demo(
    *,
    epsilon: float = 1.0,
    save: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """What does epsilon = 1 mean? Three attackers on a synthetic patient table.

    Example: dprad demo --epsilon 2

    Parameters
    ----------
    epsilon
        The promise, for replaced records.
    save
        Also write the table to this CSV file, to try other commands on.
    json
        Print the results as JSON.

    """
    import dprad
    from dprad.data import patients
    from dprad.mechanisms import GRR

    promise = dprad.PureDP(epsilon, neighbours="replace-one")
    prior = patients.prior()
    known = ["age", "region", "smoker"]
    threats = {
        "a stranger": dprad.Threat(target=["diagnosis"]),
        "an acquaintance": dprad.Threat(knows=known, target=["diagnosis"]),
        "someone with the record": dprad.Threat(knows="everything"),
    }
    release = GRR(epsilon=epsilon, size=len(patients.DIAGNOSES))
    answers = {
        name: {
            "promise": dprad.assess(promise, prior=prior, threat=threat),
            "mechanism": dprad.assess(release, prior=prior, threat=threat, query="diagnosis"),
        }
        for name, threat in threats.items()
    }
    if save is not None:
        patients.save(save, new=True)
    if json:
        plain = {
            name: {kind: risk.to_dict() for kind, risk in risks.items()}
            for name, risks in answers.items()
        }
        show_json(plain)
        return 0
    show(_told(answers, epsilon, save))
    return 0


def _told(answers: dict[str, dict[str, Any]], epsilon: float, save: Path | None) -> str:
    """The table of answers, two of them in words, and what to try next."""
    from rich.console import Console
    from rich.table import Table

    from dprad.data import patients
    from dprad.model import explain

    text = io.StringIO()
    console = Console(highlight=False, file=text, width=min(Console().width, 88))
    console.print(
        f"20,000 synthetic patients: {explain.listed(patients.COLUMNS)}.\n"
        f"What does epsilon = {epsilon:g} mean for one of them? Right guesses in 100 tries:\n"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("attacker")
    table.add_column("promise only:\nextra, at most", justify="right")
    table.add_column("randomised response:\nnot in the data", justify="right")
    table.add_column("\nin the data", justify="right")
    for name, risks in answers.items():
        bound, exact = risks["promise"], risks["mechanism"]
        assert exact.success_in is not None and exact.success_out is not None
        odds = (explain.count(s, 100) for s in (exact.success_out, exact.success_in))
        table.add_row(name, f"{math.ceil(bound.rad * 100 - 1e-9)}", *odds)
    console.print(table)
    console.print(
        "\nA stranger guesses the diagnosis. An acquaintance knows age, region and smoking, and "
        "guesses the diagnosis. Someone with the whole record asks only whether it was used. "
        "The first column of numbers holds for every mechanism that keeps the promise. The others "
        "are exact, for randomised response on the diagnosis, and for the attack that gains most "
        "from the person taking part: always guessing 'healthy' is right more often, but equally "
        "often without the person, and so gains nothing.\n"
    )
    console.print(f"In words: {answers['a stranger']['promise']}\n")
    console.print(f"In words: {answers['a stranger']['mechanism']}\n")
    console.print(_next(save), soft_wrap=True)
    return text.getvalue().rstrip("\n")


def _next(save: Path | None) -> str:
    """What to try next, with the program as it was called: it need not be on the path."""
    called = Path(sys.argv[0])
    program = str(called) if called.name == "dprad" and called.parent != Path() else "dprad"
    if save is None:
        return f"Next: {program} demo --save patients.csv"
    promised = "--epsilon 1 --neighbours replace-one"
    feared = "--knows age,region --target diagnosis"
    return f"The table is in {save}. Try:\n\n  {program} assess {promised} --data {save} {feared}"
