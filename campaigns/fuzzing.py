"""Fuzzers: never a traceback, never a wrong answer, never a lost count. `make fuzz`.

python campaigns/fuzzing.py [--scale 1.0] [--seed 0] [--out docs/fuzzing.md]
"""

from __future__ import annotations

import contextlib
import io
import random
import tempfile
from pathlib import Path

import frame

from dprad import DpradError, Prior, PureDP, audit, mechanisms
from dprad.show.cli import main as command
from dprad.show.scenario import EXAMPLE, answer
from dprad.show.scenario.file import parse

NASTY = [
    "0", "-1", "1e308", "-1e308", "nan", "inf", "-inf", "1e-320", "true", "false", '""', '"x"',
    '"\\u0000"', '"\U0001f600"', "[]", "[1]", "[1, 2]", '["a"]', '["a", "a"]', "{}", "{ a = 1 }",
    "{ a = -1 }", "1979-05-27", "0x10", "12345678901234567890", '"nothing"', '"everything"',
    '"grr"', '"replace-one"', '"' + "y" * 400 + '"', "[[1], [2]]", "0.5", "3", "700.0",
]  # fmt: skip
WORDS = [
    "", "0", "-1", "1", "0.5", "nan", "inf", "1e309", "abc", "grr", "laplace", "gaussian", "oue",
    "subset", "replace-one", "add-remove", "nothing", "everything", "age", "age,diagnosis", ",",
    "0:100", "100:0", "a:b", "3", "11", "absolute", "haversine", "exact", "\U0001f600", "--",
    "patients.csv", "none.csv", "x" * 300,
]  # fmt: skip
OPTIONS = {
    "assess": ["epsilon", "delta", "mu", "tv", "neighbours", "mechanism", "sigma", "sensitivity",
               "clamp", "max-risk", "bounds", "json"],
    "calibrate": ["max-risk", "mechanism", "promise", "neighbours", "delta", "sample-rate", "steps",
                  "sensitivity", "clamp", "json"],
    "compare": ["mechanisms", "epsilon", "sigma", "sensitivity", "clamp", "json"],
}  # fmt: skip
SHARED = [
    "data",
    "columns",
    "weight",
    "missing",
    "domain",
    "uniform",
    "knows",
    "target",
    "loss",
    "eta",
]
BASES = [
    "assess --epsilon 1 --neighbours replace-one --uniform 5",
    "assess --epsilon 1 --delta 1e-6 --neighbours add-remove --uniform 5 --knows everything",
    "assess --mechanism grr --epsilon 1 --data patients.csv --target diagnosis --knows age",
    "assess --mechanism laplace --epsilon 1 --uniform 11 --loss absolute --eta 2",
    "assess --mechanism gaussian --sigma 3 --uniform 11",
    "assess --mu 0.5 --neighbours add-remove",
    "calibrate --max-risk 0.1 --mechanism oue --uniform 9",
    "calibrate --max-risk 0.1 --promise pure --neighbours replace-one",
    "compare --mechanisms grr,oue --epsilon 1,2 --uniform 4",
]
OWN = """[population]
counts = { 1 = 3, 2 = 5, 4 = 1 }
[[threats]]
knows = "nothing"
loss = "absolute"
eta = 1
[[threats]]
knows = "everything"
[[releases]]
mechanism = "laplace"
epsilon = 1.0
clamp = [0, 5]
[[releases]]
epsilon = 1.0
delta = 1e-6
neighbours = "add-remove"
[accepted]
risk = 0.1
"""


def mutated(text, rng):
    lines = text.splitlines()
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(lines)) if lines else 0
        kind = rng.randrange(7)
        if not lines:
            break
        if kind == 0:
            del lines[i]
        elif kind == 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[i])
        elif kind == 2 and "=" in lines[i]:
            lines[i] = lines[i].split("=")[0] + "= " + rng.choice(NASTY)
        elif kind == 3:
            at = rng.randrange(len(lines[i]) + 1)
            lines[i] = (
                lines[i][:at]
                + rng.choice(["\u202e", "'", '"', "[", "]", "=", "#", "\x01", "é"])
                + lines[i][at:]
            )
        elif kind == 4:
            lines = lines[:i]
        elif kind == 5 and len(lines[i]) > 3:
            letters = list(lines[i])
            j = rng.randrange(len(letters) - 1)
            letters[j], letters[j + 1] = letters[j + 1], letters[j]
            lines[i] = "".join(letters)
        else:
            lines.append(
                rng.choice(
                    ["[[threats]]", "[[releases]]", "[audit]", "[population]", "epsilon = 2"]
                )
            )
    return "\n".join(lines) + "\n"


def scenarios(rng, seen, folder):
    text = mutated(rng.choice([EXAMPLE, OWN, OWN, OWN]), rng)
    try:
        found = parse(text, name="fuzz", folder=folder)
    except DpradError:
        seen["refused"] += 1
        return
    seen["read"] += 1
    if (found.prior.size or 0) > 500:
        return
    try:
        risks = answer(found, plans=False, audits=False).risks
    except DpradError:
        seen["not answered"] += 1
        return
    for row in risks:
        for risk in row:
            assert 0.0 <= risk.rad <= 1.0 and risk.interval[0] <= risk.interval[1] + 1e-12, risk


def commands(rng, seen, folder):
    tokens = rng.choice(BASES).split() if rng.random() < 0.7 else [rng.choice(list(OPTIONS))]
    name = tokens[0]
    if rng.random() < 0.3 and len(tokens) > 2:
        tokens[rng.randrange(1, len(tokens))] = rng.choice(WORDS)
    for option in rng.sample(OPTIONS[name] + SHARED, rng.choice([0, 0, 1, 1, 2, 6])):
        tokens.append(f"--{option}")
        if option not in ("json", "bounds") and rng.random() < 0.97:
            tokens.append(rng.choice(WORDS))
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(folder),
        ):
            command(tokens)
        code = "no exit"
    except SystemExit as stop:
        code = stop.code
    seen[f"exit {code}"] += 1
    assert code in (0, 1, 2), (tokens, code)
    assert "internal error" not in err.getvalue(), (tokens, err.getvalue())
    assert "Traceback" not in err.getvalue(), tokens
    assert (code == 2) == bool(err.getvalue()), (tokens, code, err.getvalue())


def tables(rng, seen, folder):
    rows = [["age", "name"]] + [
        [str(rng.randint(0, 9)), rng.choice("abc")] for _ in range(rng.randint(0, 30))
    ]
    separator = rng.choice([",", ",", ";", "\t"])
    raw = "\n".join(separator.join(r) for r in rows).encode()
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(raw) + 1)
        raw = (
            raw[:at]
            + rng.choice(
                [
                    b"\x00",
                    b"\xff",
                    b'"',
                    b"\n",
                    b",",
                    b"\r\n",
                    "é😀".encode(),
                    b"1e999",
                    b"NaN",
                    b"",
                ]
            )
            + raw[at:]
        )
    path = folder / rng.choice(["t.csv", "t.tsv", "t.parquet"])
    path.write_bytes(raw)
    try:
        prior = Prior.from_data(path)
    except DpradError:
        seen["refused"] += 1
        return
    seen["read"] += 1
    assert abs(prior.probabilities.sum() - 1) < 1e-9


QUESTION = {
    "claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(3), "trials": 900,
    "rng": 3,
}  # fmt: skip
GRR = mechanisms.GRR(epsilon=1.0, size=3)


def plain(result):
    return result.to_dict() | {"seconds": 0, "notes": ()}


def states(rng, seen, folder):
    path = folder / "state.jsonl"
    path.unlink(missing_ok=True)
    clean = plain(audit(GRR, state=path, **QUESTION))
    raw = path.read_bytes()
    kind = rng.randrange(6)
    if kind == 0:
        raw = raw[: rng.randrange(len(raw) + 1)]
    elif kind == 1:
        at = rng.randrange(len(raw))
        raw = raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1 :]
    elif kind == 2:
        lines = raw.splitlines()
        rng.shuffle(lines)
        raw = b"\n".join(lines) + b"\n"
    elif kind == 3:
        lines = raw.splitlines()
        raw = b"\n".join(lines[:1] + [rng.choice(lines) for _ in range(9)]) + b"\n"
    elif kind == 4:
        raw = raw.replace(b"0.2.", b"9.9.").replace(b'"rng": 3', b'"rng": 4')
    path.write_bytes(raw)
    try:
        again = plain(audit(GRR, state=path, **QUESTION))
    except DpradError:
        seen["refused"] += 1
        return
    seen["went on"] += 1
    keys = ("trials", "successes", "passes", "rad", "epsilon_lower", "verdict")
    assert all(again[k] == clean[k] for k in keys), (kind, again, clean)


def callables(rng, seen, folder):
    junk = [
        None, float("nan"), float("inf"), "word", b"bytes", 10**400, [], [1, [2]], {"a": 1}, {1, 2},
        (1, 2), True, -0.0, complex(1, 2), object(), [float("nan")], "x" * 1000,
    ]  # fmt: skip
    some = rng.sample(junk, rng.randint(1, 3))
    fails = rng.choice([None, None, ValueError("no"), KeyError(3), SystemExit(0), MemoryError()])
    left = [rng.randint(1, 400)]

    def run(record, rng_):
        left[0] -= 1
        if left[0] == 0 and fails is not None:
            raise fails
        return some[int(rng_.integers(len(some)))]

    try:
        result = audit(run, **QUESTION | {"trials": 300})
    except DpradError:
        seen["refused"] += 1
        return
    seen[result.verdict] += 1
    assert result.verdict == "consistent", (some, result)  # it ignores its record


FUZZERS = {
    "scenario files": (scenarios, 4000),
    "command lines": (commands, 3000),
    "CSV and Parquet files": (tables, 2000),
    "state files": (states, 600),
    "callables under audit": (callables, 600),
}


def main():
    from dprad.data import patients

    with tempfile.TemporaryDirectory() as place:
        patients.save(Path(place) / "patients.csv")

        def try_one(fuzz, title, seed, i, seen):
            fuzz(random.Random(f"{seed} {title} {i}"), seen, Path(place))

        frame.run(("Fuzzing", "make fuzz"), FUZZERS, try_one)


if __name__ == "__main__":
    main()
