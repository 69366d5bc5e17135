"""dprad demo: what does epsilon = 1 mean for a small synthetic patient table?"""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def demo(
    *,
    epsilon: float = 1.0,
    save: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """What does epsilon = 1 mean? Three attackers on a synthetic patient table.

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
    from dprad import explain, patients
    from dprad.mechanisms import GRR

    promise = dprad.PureDP(epsilon, neighbours="replace-one")
    prior = patients.prior()
    known = ["age", "region", "smoker"]
    threats = {
        "a stranger": dprad.Threat(target=["diagnosis"]),
        "a neighbour": dprad.Threat(knows=known, target=["diagnosis"]),
        "someone with the whole file": dprad.Threat(knows="everything"),
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
        patients.save(save)
    if json:
        plain = {
            name: {kind: risk.to_dict() for kind, risk in risks.items()}
            for name, risks in answers.items()
        }
        sys.stdout.write(json_.dumps(plain, indent=2) + "\n")
        return 0

    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"20,000 synthetic patients: {explain.listed(patients.COLUMNS)}. "
        f"What does epsilon = {epsilon:g} mean for one of them?\n"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("attacker", "if only the promise is known", "if diagnoses go through a coin"):
        table.add_column(title, overflow="fold")
    table.add_row("", "extra right guesses", "right guesses: not in / in the data", style="dim")
    for name, risks in answers.items():
        bound, exact = risks["promise"], risks["mechanism"]
        n = max(100, explain.scale(bound.rad))
        assert exact.success_in is not None and exact.success_out is not None
        at_most = explain.count(bound.rad + 0.499 / n, n)
        odds = f"{explain.count(exact.success_out, n)} / {explain.count(exact.success_in, n)}"
        table.add_row(name, f"at most {at_most} in {n}", f"{odds} of {n}")
    console.print(table)
    console.print(
        "\nA stranger knows nothing and guesses the diagnosis; a neighbour knows age, region and "
        "smoking;\nsomeone with the whole record asks only whether it was used. The coin is "
        "randomised response (GRR)\nover the diagnoses.\n"
    )
    for risk in (answers["a stranger"]["promise"], answers["a neighbour"]["mechanism"]):
        console.print(f"In words: {risk}\n", highlight=False)
    if save is not None:
        console.print(f"The table is in {save}. Try:", highlight=False)
        console.print(
            f"  dprad assess --epsilon 1 --neighbours replace-one --data {save} "
            "--knows age,region --target diagnosis",
            highlight=False,
            soft_wrap=True,
        )
    else:
        console.print("Next: dprad demo --save patients.csv, then dprad assess --help")
    return 0
