"""Mutation testing: would the tests notice if the code were wrong? `make mutation`.

One change at a time (an operator, a comparison, a number, a condition, a maximum for a minimum, a
term left out of a sum) is made in bounds/, exact/ and the confidence code, and the tests that run
the changed line are run until one fails. A mutant that no test notices survives.

Everything is imported and collected once. A mutant is a forked process in which the changed
function takes the place of the real one; quick tests of little else come first. Left alone: text,
errors, assertions (they speak to the type checker), defaults, and constants that set the size of a
block. A mutant also survives if its tests would take more than `--budget` seconds.

    python campaigns/mutation.py [--out docs/mutation.md] [--only exact/grr.py] [--jobs 2]
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import json
import os
import random
import resource
import signal
import sys
import time
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[threads] = "1"  # a fork keeps one thread

import coverage
import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dprad"
PACKAGES = {
    "bounds/": sorted(SOURCE.glob("bounds/*.py")),
    "exact/": sorted(SOURCE.glob("exact/*.py")),
    "confidence": [SOURCE / "numerics/intervals.py", SOURCE / "verbs/audit/certificates.py"],
}
TESTS = ("bounds", "exact", "mechanisms", "game", "verbs/test_assess.py", "verbs/test_simulate.py")
TESTS += ("verbs/audit/test_certificates.py", "verbs/audit/test_audit.py", "runtime/test_memory.py")
TOO_SLOW = "dpsgd"
# Constants that decide how much is done at once, never what comes out.
SPEED = ("BLOCK_ENTRIES", "BLOCK_DRAWS", "PBAR_ENTRIES", "MAX_ENTRIES", "MAX_RIVALS", "ROUNDS")
MEMORY = 6 << 30
SURVIVORS = Path(__file__).with_name("survivors.tsv")


# -- mutants -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Mutant:
    """`code` is that of the changed module or constant; tests that run `lines` may notice."""

    path: Path
    lines: range
    change: str
    constant: str  # its name, if that is what changes
    code: types.CodeType

    source: str  # the first line of the statement

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is, wherever it stands: the file, the statement, the change (if twice: which)."""
        return str(self.path.relative_to(SOURCE)), self.source, self.change


_OPERATORS = {"Add": "Sub", "Mult": "Div", "BitAnd": "BitOr", "LShift": "RShift", "Lt": "LtE"}
_OPERATORS |= {"Gt": "GtE", "Eq": "NotEq", "In": "NotIn", "Is": "IsNot", "And": "Or"}
_OPERATORS |= {b: a for a, b in _OPERATORS.items()}
_OPERATORS |= {"Pow": "Mult", "FloorDiv": "Mult", "Mod": "Mult", "USub": "UAdd"}
_NAMES = {"maximum": "minimum", "max": "min", "argmax": "argmin", "any": "all", "floor": "ceil"}
_NAMES |= {"left": "right", "exp": "expm1", "log": "log1p", "cumsum": "cumprod"}
_NAMES |= {b: a for a, b in _NAMES.items()}


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    text = path.read_text(encoding="utf-8")
    tree, rows = ast.parse(text), text.splitlines()
    seen: Counter[tuple[str, str]] = Counter()
    for stmt, lines, constant in _statements(tree.body):
        source = rows[stmt.lineno - 1].strip()
        whole = ast.Module([stmt], []) if constant else tree
        for node in _own(stmt):
            for field, new in _changes(node):
                before, old = ast.unparse(node).split("\n")[0], getattr(node, field)
                setattr(node, field, new)
                after = ast.unparse(ast.fix_missing_locations(node)).split("\n")[0]
                ast.fix_missing_locations(stmt)
                code = compile(whole, str(path), "exec", dont_inherit=True)
                change = f"`{before}` -> `{after}`"
                seen[source, change] += 1
                if seen[source, change] > 1:
                    change += f" ({seen[source, change]})"
                yield Mutant(path, lines, change, constant, code, source)
                setattr(node, field, old)


def _statements(body: list[ast.stmt], inside: bool = False) -> Iterator[tuple[Any, range, str]]:
    """Statements that may change, their lines, and the name of the constant they set, if any."""
    for stmt in body:
        if isinstance(stmt, ast.FunctionDef):
            yield from _statements(stmt.body, True)
        elif isinstance(stmt, ast.ClassDef):
            yield from _statements([s for s in stmt.body if isinstance(s, ast.FunctionDef)])
        elif inside and not isinstance(stmt, ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
            blocks = [getattr(stmt, n, []) for n in ("body", "orelse", "finalbody")]
            blocks += [h.body for h in getattr(stmt, "handlers", [])]
            end = min([b[0].lineno for b in blocks if b], default=(stmt.end_lineno or 0) + 1)
            yield stmt, range(stmt.lineno, max(end, stmt.lineno + 1)), ""
            for block in blocks:
                yield from _statements(block, True)
        elif isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
            name = stmt.targets[0].id
            if name not in SPEED and not name.startswith("__"):
                yield stmt, range(stmt.lineno, (stmt.end_lineno or 0) + 1), name


def _own(node: Any) -> Iterator[Any]:
    """The node and what is below it, but for other statements and annotations."""
    yield node
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            inner = isinstance(child, ast.stmt | ast.ExceptHandler | ast.operator | ast.cmpop)
            if isinstance(child, ast.AST) and not inner and field != "annotation":
                yield from _own(child)


def _changes(node: Any) -> Iterator[tuple[str, Any]]:
    """(field, new value) for each way to change a node."""

    def other(op: ast.AST) -> Any:
        name = _OPERATORS.get(type(op).__name__)
        return getattr(ast, name)() if name else None

    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and other(node.op):
        yield "op", other(node.op)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        yield "value", ast.Constant(0)
    if isinstance(node, ast.UnaryOp):
        if other(node.op):
            yield "op", other(node.op)
        else:
            yield "operand", ast.UnaryOp(node.op, node.operand)
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if other(op):
                yield "ops", [*node.ops[:i], other(op), *node.ops[i + 1 :]]
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "test", ast.UnaryOp(ast.Not(), node.test)
    if isinstance(node, ast.Name) and node.id in _NAMES and isinstance(node.ctx, ast.Load):
        yield "id", _NAMES[node.id]
    if isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield "attr", _NAMES[node.attr]
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield "value", not value
        elif isinstance(value, int):
            yield "value", value + 1
        elif isinstance(value, float):
            yield "value", value * 2 if value else 1.0
        elif value in ("left", "right"):
            yield "value", _NAMES[value]


# -- the tests -----------------------------------------------------------------------------------
class Runner:
    """A plugin of pytest: its loop over tests times them once, then runs them on every mutant."""

    def __init__(self, files: list[Path], jobs: int, budget: float, file: Path | None) -> None:
        self.files, self.jobs, self.budget, self.file = files, jobs, budget, file
        self.results: list[tuple[Mutant, str]] = []
        # what was killed before need not be killed again, nor what was judged harmless tried again
        kept = json.loads(file.read_text()) if file is not None and file.exists() else []
        known = judged()
        self.kept = {
            tuple(key): found for key, found in kept if found == "killed" or tuple(key) in known
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Baseline, then mutants."""
        items = session.items
        cover = coverage.Coverage(data_file=None, include=[str(f) for f in self.files])
        took, sound = [], []
        for i, item in enumerate(items):
            begin = time.perf_counter()
            cover.start()
            cover.switch_context(str(i))
            reports = runtestprotocol(item, log=False, nextitem=None)
            cover.stop()
            took.append(time.perf_counter() - begin)
            sound.append(all(r.passed for r in reports))
        print(f"{len(items):,} tests, {sum(took):.0f} s")
        for item, passed in zip(items, sound, strict=True):
            if not passed:
                print(f"left out, for it fails: {item.nodeid}")
        tests: dict[tuple[str, int], set[int]] = defaultdict(set)
        data = cover.get_data()
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                tests[file, line].update(int(c) for c in contexts if c and sound[int(c)])
        # tests of one thing notice sooner than those of everything
        wide = Counter(i for able in tests.values() for i in able)
        self._mutate(items, took, tests, wide)
        return True

    def _mutate(self, items: list[Any], took: list[float], tests: Any, wide: Any) -> None:
        functions = _functions({str(f) for f in self.files})
        todo = [m for file in self.files for m in mutants(file)]
        self.results = [(m, self.kept[m.key]) for m in todo if m.key in self.kept]
        todo = [m for m in todo if m.key not in self.kept]
        random.Random(0).shuffle(todo)  # so that the score is right from the beginning
        print(f"{len(todo):,} mutants", flush=True)
        kills: dict[Path, Counter[int]] = defaultdict(Counter)
        running: dict[int, tuple[Mutant, int]] = {}
        begin = time.monotonic()
        for mutant in todo:
            if len(running) == self.jobs:
                self._reap(running, kills)
            file = str(mutant.path)
            lines = [n for f, n in tests if f == file] if mutant.constant else mutant.lines
            able = set().union(*(tests[file, n] for n in lines if (file, n) in tests))
            often = kills[mutant.path]
            cost = {i: took[i] * wide[i] ** 2 / (1 + often[i]) for i in able}
            order = sorted(able, key=cost.__getitem__)
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                _child(
                    mutant, functions, [(i, items[i], took[i]) for i in order], writer, self.budget
                )
            os.close(writer)
            running[child] = mutant, reader
            done = len(self.results)
            if done and done % 20 == 0:
                alive = sum(r != "killed" for _, r in self.results)
                print(f"{done:,} ({alive} alive, {time.monotonic() - begin:.0f} s)", flush=True)
                self.save()
        while running:
            self._reap(running, kills)

        self.results.sort(key=lambda r: (r[0].path, r[0].lines.start, r[0].change))
        self.save()

    def save(self) -> None:
        """Every mutant and what became of it, for looking at."""
        if self.file is not None:
            rows = [(m.key, found) for m, found in self.results]
            self.file.write_text(json.dumps(rows, indent=0), encoding="utf-8")

    def _reap(self, running: dict[int, tuple[Mutant, int]], kills: Any) -> None:
        child, status = os.wait()
        mutant, reader = running.pop(child)
        told = os.read(reader, 20)
        os.close(reader)
        if told.isdigit():
            kills[mutant.path][int(told)] += 1
        alive = {b"alive": "survived", b"budget": "survived in budget", b"none": "not run"}
        found = alive.get(told, "killed") if status == 0 else "killed"
        self.results.append((mutant, found))


def _child(mutant: Mutant, functions: Any, tests: list[Any], writer: int, budget: float) -> None:
    """Become the mutant, run the tests, say which of them noticed; never return."""
    out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    _become(mutant, functions)
    begin, verdict = time.monotonic(), "alive" if tests else "none"
    for i, item, took in tests:
        if time.monotonic() - begin + took > budget:
            verdict = "budget"
            continue
        signal.setitimer(signal.ITIMER_REAL, 20 * took + 10)  # a mutant that hangs is noticed
        try:
            noticed = not all(r.passed for r in runtestprotocol(item, log=False, nextitem=None))
        except BaseException:
            noticed = True
        if noticed:
            verdict = str(i)
            break
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.write(writer, verdict.encode())
    os._exit(0)


def _functions(files: set[str]) -> dict[tuple[str, str], list[types.FunctionType]]:
    """Live functions by file and name; what was cached is forgotten."""
    found: dict[tuple[str, str], list[types.FunctionType]] = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__code__.co_filename in files:
            found[thing.__code__.co_filename, thing.__code__.co_qualname].append(thing)
        elif type(thing) is functools._lru_cache_wrapper and thing.__module__.startswith("dprad"):
            thing.cache_clear()
    return found


def _become(mutant: Mutant, functions: Any) -> None:
    file, name = str(mutant.path), mutant.constant
    if not name:
        for code in _codes(mutant.code):
            for function in functions.get((file, code.co_qualname), []):
                function.__code__ = code
        return
    ours = [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("dprad")]
    home = next(m for m in ours if m.__file__ == file)
    space, old = dict(vars(home)), vars(home)[name]
    exec(mutant.code, space)
    for module in ours:  # whoever imported it has it too
        if vars(module).get(name) is old:
            setattr(module, name, space[name])


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _codes(inner)


# -- the report ----------------------------------------------------------------------------------
def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument(
        "--json", type=Path, default=None, help="keep what became of every mutant; go on from there"
    )
    given = parser.parse_args()
    files = [f for group in PACKAGES.values() for f in group if given.only in str(f)]
    runner = Runner(files, given.jobs, given.budget, given.json)
    quiet = ["-s", "-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts="]
    tests = ["-k", f"not {TOO_SLOW}", *(str(ROOT / "tests" / t) for t in TESTS)]
    pytest.main([*quiet, *tests], plugins=[runner])
    page = report(runner.results, given.budget, again=bool(runner.kept))
    print(page)
    if given.out is not None:
        given.out.write_text(page, encoding="utf-8")


# Why a mutant may live; survivors.tsv has one of these for each that was judged harmless.
REASONS = {
    "speed": "only how long it takes: a block's size, where a search begins, how often it halves",
    "tolerance": "a tolerance or allowance twice as large or small, both valid",
    "tie": "what happens at the equality of two floats, where both sides give the same number",
    "same": "the same number in every case: a guard for what cannot be, a common shift, a default",
    "word": "progress and wording",
    "safe": "an error bound that stays valid, or is looser than need be",
}


def judged() -> dict[tuple[str, ...], str]:
    """Mutants that were judged harmless, and the reason."""
    rows = (row.split("\t") for row in SURVIVORS.read_text(encoding="utf-8").splitlines())
    return {tuple(key): reason for reason, *key in rows}


def report(results: list[tuple[Mutant, str]], budget: float, again: bool) -> str:
    """The page of the documentation."""
    known = judged()
    lines = ["# Mutation testing", "", str(__doc__).split("\n\n")[1].replace("\n", " "), ""]
    when = datetime.now(UTC).date().isoformat()
    last = f"Last run: `make mutation`, {when}, at most {budget:g} s of tests a mutant."
    if again:
        last += " What an earlier run had noticed, or was judged harmless, was not tried again."
    lines += [last, ""]
    lines += ["| file | mutants | noticed | score | judged harmless | score without these |"]
    lines += ["|---|---|---|---|---|---|"]
    everything = [f for some in PACKAGES.values() for f in some]
    for group, files in [*PACKAGES.items(), ("all", everything)]:
        parts = [] if group == "all" else [(f.name, [f]) for f in files]
        for name, some in [*parts, (f"**{group}**", files)]:
            found = [(m, r) for m, r in results if m.path in some]
            killed = sum(r == "killed" for _, r in found)
            same = sum(r != "killed" and known.get(m.key) in REASONS for m, r in found)
            if found:
                left = max(1, len(found) - same)
                lines.append(
                    f"| {name} | {len(found)} | {killed} | {killed / len(found):.1%} | {same} | "
                    f"{killed / left:.1%} |"
                )
    alive = [(m, r) for m, r in results if r != "killed"]
    why = Counter(known.get(m.key, "others") for m, _ in alive)
    lines += ["", "Survivors, and why they are harmless (`campaigns/survivors.tsv`):", ""]
    told = REASONS | {"others": "wrong programs that no test noticed in the time it had; below"}
    lines += [f"- {n} {reason}: {told[reason]}" for reason, n in why.most_common()]
    others = [(m, r) for m, r in alive if known.get(m.key) not in REASONS]
    lines += ["", "The others:" if others else "There are no others.", ""]
    lines += [f"- {m.key[0]}:{m.lines.start} {m.change} ({r})" for m, r in others]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
