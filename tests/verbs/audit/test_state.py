"""State files: what is continued, what is refused, what is kept to the bit."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dprad import DpradError, Prior, PureDP, Threat, audit, mechanisms
from dprad.verbs.audit.fingerprint import digest
from dprad.verbs.audit.state import decode, encode
from effort import part_of, some

ONE = PureDP(1.0, neighbours="replace-one")
COIN = {"claim": ONE, "prior": Prior.uniform(2), "trials": 3000, "rng": 5}


def numbers(result):
    plain = dataclasses.asdict(result)
    plain.pop("seconds")
    plain["notes"] = [n for n in plain["notes"] if "an earlier session" not in n]
    return plain


def noisy_coin(record, rng):
    return record if rng.random() < 0.8 else 1 - record


def guess(outputs, known):
    return outputs


def coin(truth):
    def run(record, rng):
        return record if rng.random() < truth else 1 - record

    return run


def test_packages_in_any_folder_of_packages_are_installed(tmp_path):
    """Else each digest of an output would walk through all of them."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "somebodys_frames.py").write_text("class Frame: ...\n")
    look = "from dprad.verbs.audit.sources import installed as i; print(i('somebodys_frames'))"
    for said in ("True", "False"):
        made = subprocess.run(
            [sys.executable, "-c", look], capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(folder)},
        )  # fmt: skip
        assert made.stdout.strip() == said
        folder = folder.rename(tmp_path / "own")


# -- going on ------------------------------------------------------------------------------------
class Counted:
    """A coin that counts its calls where the audit does not look."""

    def __init__(self, path):
        self.path = path

    def __call__(self, record, rng):
        with self.path.open("a") as file:
            file.write(".")
        return noisy_coin(record, rng)

    @property
    def calls(self):
        return self.path.stat().st_size


def test_a_state_file_is_continued_and_never_recounted(tmp_path):
    path, counted = tmp_path / "audit.jsonl", Counted(tmp_path / "calls")
    whole = numbers(audit(counted, state=path, **COIN))
    lines = path.read_text().splitlines()
    # keep the beginning, and half a line, as a kill would
    path.write_text("\n".join(lines[:7]) + "\n" + lines[7][:20])
    before = counted.calls
    assert numbers(audit(counted, state=path, **COIN)) == whole
    # what was studied, and some chunks, are run again; then the rest
    assert 0 < counted.calls - before < 1.3 * before
    assert path.read_text().splitlines() == lines
    before = counted.calls
    assert numbers(audit(counted, state=path, **COIN)) == whole
    # only some calls were made again, to see whether they give the same
    assert 0 < counted.calls - before < before
    with pytest.raises(DpradError, match="another audit: its rng"):
        audit(counted, state=path, **COIN | {"rng": 6})


def test_a_clock_does_not_discard_what_is_stored(tmp_path):
    path = tmp_path / "state"
    whole = audit(noisy_coin, state=path, attack=guess, **COIN)
    again = audit(noisy_coin, state=path, attack=guess, max_seconds=0, **COIN)
    assert again.trials == whole.trials == 2250


def test_state_files_are_private_and_no_other_file_is_touched(tmp_path):
    path = tmp_path / "state"
    audit(noisy_coin, state=path, attack=guess, **COIN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for text in ("hello\n", "{", '{"dprad": ', "{}\n", '{"dprad": "audit"}\n', "\x00\xff\n"):
        other = tmp_path / "other"
        other.write_text(text)
        with pytest.raises(DpradError):
            audit(noisy_coin, state=other, attack=guess, **COIN)
        assert other.read_text() == text
    with pytest.raises(DpradError):
        audit(noisy_coin, state=tmp_path, attack=guess, **COIN)
    empty = tmp_path / "empty"
    empty.touch()
    assert audit(noisy_coin, state=empty, attack=guess, **COIN).trials == 2250


SCRIPT = """
import sys, time
from dprad import Prior, PureDP, audit
def slow(record, rng):
    time.sleep(0.0005)
    return record if rng.random() < 0.8 else 1 - record
result = audit(slow, claim=PureDP(1.0, neighbours="replace-one"), prior=Prior.uniform(2),
               trials=2500, rng=5, state=sys.argv[1])
print(result.successes, result.passes, result.epsilon_lower)
"""


def test_kill_and_resume(tmp_path):
    """SIGKILL in the middle, then again to the end: as if nothing had happened."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script)]
    straight = subprocess.run([*command, str(tmp_path / "a")], capture_output=True, check=True)
    state = tmp_path / "b"
    running = subprocess.Popen([*command, str(state)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if state.exists() and state.read_bytes().count(b"\n") >= 12:
            break
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert b'"runs"' in state.read_bytes()
    resumed = subprocess.run([*command, str(state)], capture_output=True, check=True)
    assert resumed.stdout == straight.stdout


# -- another audit -------------------------------------------------------------------------------
def test_another_audit_is_not_continued(tmp_path):
    """Other parameters, attack, threat: the state file is refused, not used."""
    question = {"claim": ONE, "prior": Prior.uniform(5), "trials": 500}
    path = tmp_path / "state"
    audit(mechanisms.GRR(epsilon=3.0, size=5), state=path, **question)
    for subject, more in (
        (mechanisms.GRR(epsilon=1.0, size=5), {}),
        (mechanisms.GRR(epsilon=3.0, size=5), {"attack": lambda o, k: o}),
        (mechanisms.GRR(epsilon=3.0, size=5), {"threat": Threat(loss="absolute", eta=1)}),
        (
            mechanisms.GRR(epsilon=3.0, size=5),
            {"prior": Prior.from_counts(dict.fromkeys("abcde", 1))},
        ),
    ):
        with pytest.raises(DpradError, match="another audit"):
            audit(subject, state=path, **question | more)


TRUTH = [0.7]


def by_global(record, rng):
    return record if rng.random() < TRUTH[0] else 1 - record


def helped(record, rng):
    return by_global(record, rng)


class Box:
    def __init__(self, truth):
        self.truth = truth

    def __call__(self, record, rng):
        return record if rng.random() < self.truth else 1 - record

    def method(self, record, rng):
        return self(record, rng)


class Slotted:
    __slots__ = ("truth",)

    def __init__(self, truth):
        self.truth = truth

    def __call__(self, record, rng):
        return record if rng.random() < self.truth else 1 - record


def with_truth(truth, record, rng):
    return record if rng.random() < truth else 1 - record


def defaulted(truth):
    def run(record, rng, truth=truth):
        return record if rng.random() < truth else 1 - record

    return run


def with_array(truth):
    table = np.array([truth, 1 - truth])

    def run(record, rng):
        return record if rng.random() < table[0] else 1 - record

    return run


WAYS = {
    "closure": coin,
    "attribute": Box,
    "slot": Slotted,
    "method": lambda truth: Box(truth).method,
    "partial": lambda truth: functools.partial(with_truth, truth),
    "default": defaulted,
    "array": with_array,
    "nested": lambda truth: functools.partial(lambda inner, r, rng: inner(r, rng), coin(truth)),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_function_uses_is_part_of_it(way, tmp_path):
    path = tmp_path / "state"
    first = audit(WAYS[way](0.7), state=path, attack=guess, **COIN)
    assert first.verdict == "consistent"
    same = audit(WAYS[way](0.7), state=path, attack=guess, **COIN)
    assert numbers(same) == numbers(first)
    with pytest.raises(DpradError, match="function under audit, or something"):
        audit(WAYS[way](0.99), state=path, attack=guess, **COIN)
    with pytest.raises(DpradError, match="its attack, or something"):
        audit(WAYS[way](0.7), state=path, attack=lambda o, k: 1 - np.asarray(o), **COIN)


@pytest.mark.parametrize("run", [by_global, helped])
def test_globals_are_part_of_it(run, tmp_path, monkeypatch):
    path = tmp_path / "state"
    audit(run, state=path, attack=guess, **COIN)
    monkeypatch.setitem(globals(), "TRUTH", [0.99])
    with pytest.raises(DpradError, match="function under audit"):
        audit(run, state=path, attack=guess, **COIN)


def test_modules_are_part_of_it(tmp_path, monkeypatch):
    """A helper in a file of one's own, edited between two sessions."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, noise\n"
        "from dprad import Prior, PureDP, audit\n"
        "def run(record, rng):\n    return noise.flip(record, rng)\n"
        "print(audit(run, claim=PureDP(1.0, neighbours='replace-one'), prior=Prior.uniform(2),\n"
        "            trials=500, state=sys.argv[1]).verdict)\n"
    )
    helper = tmp_path / "noise.py"
    text = "def flip(record, rng):\n    return record if rng.random() < {} else 1 - record\n"
    command = [sys.executable, str(script), str(tmp_path / "state")]
    helper.write_text(text.format(0.7))
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == "consistent"
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == "consistent"
    helper.write_text(text.format(0.99))
    changed = subprocess.run(command, capture_output=True, text=True)
    assert changed.returncode != 0 and "belongs to another audit" in changed.stderr


def test_what_cannot_be_seen_is_run_again(tmp_path):
    """The noise comes from a file: only the outputs tell."""
    source = tmp_path / "truth"

    def run(record, rng):
        return record if rng.random() < float(source.read_text()) else 1 - record

    for state, attack in (("given", guess), ("learned", None)):
        path = tmp_path / state
        source.write_text("0.7")
        audit(run, state=path, attack=attack, **COIN)
        source.write_text("0.99")
        with pytest.raises(DpradError, match="do not agree"):
            audit(run, state=path, attack=attack, **COIN)


def test_hidden_randomness_beside_rng_is_not_continued(tmp_path):
    def run(record, rng):
        return record + rng.random() + random.random()

    path = tmp_path / "state"
    audit(run, state=path, **COIN)
    with pytest.raises(DpradError, match="its own random numbers"):
        audit(run, state=path, **COIN)


@pytest.mark.parametrize("vectorised", [False, True])
def test_vectorised_functions_go_on(vectorised, tmp_path):
    def run(records, rng):
        records = np.asarray(records)
        return np.where(rng.random(records.shape) < 0.8, records, 1 - records)

    path = tmp_path / "state"
    first = audit(run, state=path, vectorised=vectorised, **COIN)
    assert numbers(audit(run, state=path, vectorised=vectorised, **COIN)) == numbers(first)


# -- outputs ---------------------------------------------------------------------------------------
OUTPUTS = {
    "sets": lambda record, rng: {record, int(rng.integers(2, 5))},
    "frozensets": lambda record, rng: frozenset([record, "x"]),
    "complex": lambda record, rng: complex(record, float(rng.integers(3))),
    "integer keys": lambda record, rng: {record: 1, 7: int(rng.integers(2))},
    "tuples": lambda record, rng: (record, "a", None),
    "bytes": lambda record, rng: bytes([record, int(rng.integers(4))]),
    "arrays": lambda record, rng: np.array([record, int(rng.integers(3))], dtype=np.int8),
    "ragged": lambda record, rng: list(rng.random(1 if rng.random() < 0.99 else 3) + record),
}


@pytest.mark.parametrize("kind", part_of(OUTPUTS, 3))
def test_a_resumed_audit_says_the_same(kind, tmp_path):
    run, path = OUTPUTS[kind], tmp_path / "state"
    coin = COIN | {"trials": 1200}
    alone = audit(run, **coin)
    first = audit(run, state=path, **coin)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) > 8
    path.write_bytes(b"".join(lines[:6]))  # killed after five chunks
    again = audit(run, state=path, **coin)
    assert alone.verdict == first.verdict == again.verdict == "violated"
    assert numbers(first) == numbers(again)


@pytest.mark.parametrize(
    "value",
    [
        -(10**5000), [10**5000],
        None, True, 3, -(10**40), 0.1, math.inf, -0.0, "é\n", b"\x00\xff", (1, (2,)), [1, [2.5]],
        {1, "a"}, frozenset([(1, 2)]), {1: "a", "1": 2, (3,): [4]}, 2 - 0.5j, np.float32(0.1),
        np.arange(6, dtype=np.uint8).reshape(2, 3), np.array(["a", "bc"]), np.int64(2**62),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_outputs_are_kept_to_the_bit(value):
    back = decode(json.loads(json.dumps(encode(value))))
    assert type(back) is type(value)
    assert digest(back) == digest(value)
    assert np.array_equal(back, value) if isinstance(value, np.ndarray) else back == value


def test_huge_numbers_are_kept(tmp_path):
    def run(record, rng):
        return 10**5000 + (record if rng.random() < 0.7 else 1 - record)

    path = tmp_path / "state"
    first = audit(run, state=path, **COIN | {"trials": 200})
    assert numbers(audit(run, state=path, **COIN | {"trials": 200})) == numbers(first)


def test_what_cannot_be_kept_is_refused(tmp_path):
    for made in (Box(1), Unhashable()):
        with pytest.raises(DpradError, match="cannot be looked into"):
            audit(lambda record, rng, made=made: made, **COIN)
    with pytest.raises(DpradError, match="a state file cannot store"):
        audit(lambda record, rng: Plain(record), state=tmp_path / "state", **COIN)


@dataclasses.dataclass
class Plain:
    value: int


class Unhashable:
    __hash__ = None


def test_models_of_other_outputs_are_refused():
    for model in (
        mechanisms.Channel([[0.7, 0.3], [0.3, 0.7]]),
        mechanisms.Exponential(utility=np.eye(2), epsilon=1.0),
        mechanisms.HadamardResponse(epsilon=1.0, size=2),
        mechanisms.Gaussian(sigma=1.0),
    ):
        for run in (lambda record, rng: "x", lambda record, rng: record - 7, lambda r, rng: [r, r]):
            try:
                audit(run, model=model, **COIN)
            except DpradError:
                continue
            assert isinstance(model, mechanisms.Gaussian)  # numbers are its outputs


# -- edited by hand --------------------------------------------------------------------------------
def test_every_field_of_every_line_is_watched(tmp_path):
    path = tmp_path / "state"
    audit(noisy_coin, state=path, **COIN | {"trials": 600})
    lines = path.read_text().splitlines()
    edits = 0
    for k, line in enumerate(lines):
        for changed in altered(json.loads(line)):
            text = [*lines[:k], json.dumps(changed), *lines[k + 1 :]]
            path.write_text("\n".join(text) + "\n")
            with pytest.raises(DpradError):
                audit(noisy_coin, state=path, **COIN | {"trials": 600})
            edits += 1
    assert edits > 100
    # lines left out, doubled or exchanged
    for text in (lines[:1] + lines[2:], lines + lines[-1:], [lines[0], lines[2], lines[1]]):
        path.write_text("\n".join(text) + "\n")
        with pytest.raises(DpradError, match="damaged"):
            audit(noisy_coin, state=path, **COIN | {"trials": 600})


def altered(plain):
    """All copies of a JSON value with one thing changed; of long lists only the ends."""
    if isinstance(plain, dict):
        for key in plain:
            yield {k: v for k, v in plain.items() if k != key}
            yield from ({**plain, key: other} for other in altered(plain[key]))
    elif isinstance(plain, list):
        for i in sorted({0, len(plain) - 1} & set(range(len(plain)))):
            yield from ([*plain[:i], other, *plain[i + 1 :]] for other in altered(plain[i]))
        yield plain[1:] if plain else [1]
    elif isinstance(plain, str):
        yield plain + "x"
    else:
        yield 7 if plain != 7 else 8
        yield None if plain is not None else 1


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"{}", b"null", b"\xff\xfe", b'{"phase": 1}', b"[" * 100_000,
        b'{"phase": "runs", "chunk": "a", "result": {}, "first": "", "check": ""}',
        b'{"phase": [], "chunk": 1, "result": {}, "first": "", "check": ""}',
        b'{"phase": "runs", "chunk": 1e400, "result": {}, "first": "", "check": ""}',
        b'{"phase": "runs", "chunk": 0, "result": 3, "first": 1, "check": ""}',
    ],
)  # fmt: skip
def test_malformed_lines_are_a_sentence(line, tmp_path):
    path = tmp_path / "state"
    audit(noisy_coin, state=path, attack=guess, **COIN | {"trials": 100})
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(DpradError, match="damaged"):
        audit(noisy_coin, state=path, attack=guess, **COIN | {"trials": 100})


# -- digests ---------------------------------------------------------------------------------------
def test_digests_do_not_depend_on_the_process():
    script = (
        "import numpy as np\nfrom dprad.verbs.audit.fingerprint import digest\n"
        "from dprad.mechanisms import GRR\n"
        "def f(x, s={'a', 'b', 'c'}):\n    return {x: s} in ({'q', 'r'},)\n"
        "class C:\n    def __init__(self):\n        self.f = f\n"
        "print(digest([f, C(), GRR(epsilon=1.0, size=3), np.random.default_rng(0), np.linspace]))\n"
    )
    seen = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = [sys.executable, "-c", script]
        seen.add(subprocess.run(run, capture_output=True, check=True, env=environment).stdout)
    assert len(seen) == 1


def test_digests_of_cycles_and_opaque_things_end():
    loop = []
    loop.append(loop)
    assert digest(loop) == digest(loop) != digest([])
    with Path(os.devnull).open() as file:
        assert digest(file)
    assert digest(np.random.default_rng(0)) != digest(np.random.default_rng(1))
    assert digest({"a": 1, "b": 2}) != digest({"b": 2, "a": 1})  # a function may go through it
    assert digest(1) != digest(1.0) != digest("1")


# -- found by a second reader ----------------------------------------------------------------------
class Table(dict):
    truth = 0.7


def test_what_else_is_seen():
    from collections import defaultdict, deque

    class Other(dict):
        truth = 0.99

    assert digest(Table()) != digest(Other()) != digest({})
    one, two = Table(), Table()
    two.extra = 3
    assert digest(one) != digest(two)
    assert digest(defaultdict(lambda: 0.7)) != digest(defaultdict(lambda: 0.99))
    assert digest(deque([1])) != digest(deque([2]))

    class Meta(type):
        def truth(cls):
            return 0.7

    class Like(metaclass=Meta):
        pass

    before = digest(Like)
    Meta.truth = lambda cls: 0.99
    assert digest(Like) != before


def test_modules_imported_inside_are_part_of_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from dprad.verbs.audit.fingerprint import digest\n"
        "def run(record, rng):\n    from helper import decide\n    return decide(record, rng)\n"
        "print(digest(run))\n"
    )
    seen = set()
    for text in ("def decide(r, g):\n    return r\n", "def decide(r, g):\n    return -r\n"):
        (tmp_path / "helper.py").write_text(text)
        seen.add(subprocess.run([sys.executable, str(script)], capture_output=True).stdout)
    assert len(seen) == 2


def test_a_rare_change_is_seen_by_running_again_and_stays_refused(tmp_path):
    source = tmp_path / "rare"
    source.write_text("0")

    def run(record, rng):
        u = rng.random()
        if u < 0.01 * float(source.read_text()):
            return 1000 + record
        return record if u < 0.7 else 1 - record

    path = tmp_path / "state"
    question = COIN | {"trials": 20_000}
    assert audit(run, state=path, attack=guess_code, **question).verdict == "consistent"
    source.write_text("1")
    with pytest.raises(DpradError, match="do not agree"):
        audit(run, state=path, attack=guess_code, **question)
    source.write_text("0")
    with pytest.raises(DpradError, match="do not agree"):
        audit(run, state=path, attack=guess_code, **question)


def guess_code(outputs, known):
    return [int(o) % 1000 for o in outputs]


def test_old_files_become_private_and_two_at_once_are_refused(tmp_path):
    path = tmp_path / "state"
    audit(noisy_coin, state=path, attack=guess, **COIN)
    path.chmod(0o644)
    audit(noisy_coin, state=path, attack=guess, **COIN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    holder = subprocess.Popen(
        [sys.executable, "-c",
         "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.flock(f, fcntl.LOCK_EX); "
         "print('held', flush=True); sys.stdin.read()", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(DpradError, match="in use by another process"):
        audit(noisy_coin, state=path, attack=guess, **COIN)
    holder.communicate()


def test_a_rare_change_is_seen_in_what_was_studied(tmp_path):
    source = tmp_path / "rare"
    source.write_text("0")

    def run(record, rng):
        if rng.random() < 0.003 * float(source.read_text()):
            return 10 + record
        return record if rng.random() < 0.6 else 1 - record

    path = tmp_path / "state"
    question = COIN | {"trials": 12_000}
    audit(run, state=path, **question)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))  # killed while it was learning
    source.write_text("1")
    for text in ("1", "0"):
        source.write_text(text)
        with pytest.raises(DpradError, match="do not agree"):
            audit(run, state=path, **question)


# -- found by a fourth reader ----------------------------------------------------------------------
def modules(folder, leak):
    (folder / "far_config.py").write_text(f"LEAK = {leak}\n")
    (folder / "far_noise.py").write_text(
        "import far_config\n"
        "def flip(record, rng):\n"
        "    u = rng.random()\n"
        "    if u < far_config.LEAK:\n"
        "        return 1000 + record\n"
        "    return record if u < 0.6 else 1 - record\n"
    )
    (folder / "far_vendor.py").write_text(
        "import far_noise\ndef release(record, rng):\n    return far_noise.flip(record, rng)\n"
    )


def test_helpers_of_helpers_are_part_of_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    modules(tmp_path, 0.0)
    import far_config
    import far_vendor

    before = digest(far_vendor.release)
    monkeypatch.setattr(far_config, "LEAK", 0.001)  # at run time, the file as it was
    assert digest(far_vendor.release) != before
    monkeypatch.setattr(far_config, "LEAK", 0.0)
    assert digest(far_vendor.release) == before
    (tmp_path / "far_config.py").write_text("LEAK = 0.00100\n")  # the file, not yet loaded again
    assert digest(far_vendor.release) != before


def test_what_looks_installed_is_still_seen():
    import functools

    def made(share):
        @functools.wraps(np.linalg.norm)
        def run(record, rng):
            return record if rng.random() < share else 1 - record

        return run

    class Word(str):
        def __call__(self):
            return 1

    class Other(str):
        def __call__(self):
            return 2

    assert digest(made(0.7)) != digest(made(0.9))
    assert digest(Word("a")) != digest(Other("a")) != digest("a")
    import contextvars

    share = contextvars.ContextVar("share", default=0.5)
    before = digest(share)
    share.set(0.9)
    assert digest(share) != before and digest(memoryview(b"a")) != digest(memoryview(b"b"))


def test_things_with_odd_modules_can_be_used(tmp_path):
    import pandas as pd
    import scipy.stats

    table, noise = pd.DataFrame({"a": [1, 2]}), scipy.stats.norm(scale=1.0)

    def run(record, rng):
        return record + table["a"][0] + float(noise.ppf(rng.random()))

    question = {"claim": ONE, "prior": Prior.uniform(2), "trials": 200}
    assert audit(run, **question).trials == audit(run, state=tmp_path / "s", **question).trials


def test_a_continued_audit_says_how_much_was_run_again(tmp_path):
    path = tmp_path / "state"
    first = audit(noisy_coin, state=path, attack=guess, **COIN)
    again = audit(noisy_coin, state=path, attack=guess, **COIN)
    assert not any("earlier session" in note for note in first.notes)
    assert "2,250 calls are from an earlier session; 2,250 of them were run again" in again.notes[0]


# -- found by a fifth reader -----------------------------------------------------------------------
class Config:
    __slots__ = ("__raw", "name")

    def __init__(self, raw):
        self.name, self.__raw = "survey", frozenset(raw)

    def raw(self, record):
        return record in self.__raw


def test_every_record_that_was_studied_is_run_again(tmp_path):
    source = tmp_path / "raw"  # a file: nothing sees what is in it
    source.write_text("")

    def run(record, rng):
        if str(record) == source.read_text():
            return record
        return record if rng.random() < 0.28 else int(rng.integers(8))

    question = {
        "claim": PureDP(3.0, neighbours="replace-one"),
        "prior": Prior.uniform(8),
        "trials": 4000,
    }
    path = tmp_path / "state"
    first = audit(run, state=path, **question)
    again = audit(run, state=path, **question)
    assert first.verdict == again.verdict == "consistent"
    assert any("were run again and agreed" in note for note in again.notes)
    for record in range(8):  # whichever it is
        copy = tmp_path / f"state {record}"
        copy.write_bytes(path.read_bytes())
        source.write_text(str(record))
        with pytest.raises(DpradError, match="cannot be continued"):
            audit(run, state=copy, **question)


def test_private_slots_values_of_subclasses_and_handlers_are_seen():
    from collections import deque
    from decimal import Decimal

    assert digest(Config([])) != digest(Config([7]))

    class Eps(float):
        pass

    class Cents(Decimal):
        pass

    class Last(deque):
        pass

    for kind, (a, b) in {Eps: (1.0, 2.0), Cents: ("1", "2"), Last: ([1], [2])}.items():
        one, two = kind(a), kind(b)
        one.unit = two.unit = "x"
        assert digest(one) != digest(two)

    def guarded(x, noise):
        try:
            y = noise(x)
        except ValueError:
            return 0
        else:
            return y

    def unguarded(x, noise):
        try:
            pass
        except ValueError:
            return 0
        else:
            y = noise(x)
            return y  # noqa: RET504

    unguarded.__qualname__ = guarded.__qualname__
    assert digest(guarded) != digest(unguarded)
    assert digest({1: 2}.keys()) != digest({2: 2}.keys())


def test_modules_of_modules_that_are_imported_late_are_seen(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "late_far.py").write_text("LEAK = 0\n")
    (tmp_path / "late_near.py").write_text(
        "from late_far import LEAK\ndef out(r): return r + LEAK\n"
    )

    def run(record, rng):
        from late_near import out

        return out(record)

    before = digest(run)
    (tmp_path / "late_far.py").write_text("LEAK = 1\n")
    assert digest(run) != before


def test_registries_and_random_devices_can_be_kept(tmp_path):
    import secrets

    device, registry = secrets.SystemRandom(), set()

    def run(record, rng):
        return record if rng.random() < 0.6 + 0 * len(registry) * bool(device) else 1 - record

    registry.add(run)
    assert audit(run, state=tmp_path / "s", **COIN).verdict == "consistent"


# -- found by a sixth reader -----------------------------------------------------------------------
def test_how_far_a_generator_is_is_seen():
    def counting(start):
        for number in range(start, start + 5):
            yield 2 * number

    one, other = counting(0), counting(0)
    assert digest(one) == digest(other) != digest(counting(1))
    before = digest(other)
    next(other)
    assert digest(other) != before


def rates():
    while True:
        yield by_global(0, None) if TRUTH[0] > 1 else 0


def test_what_the_code_of_a_generator_names_is_seen(monkeypatch):
    one = rates()
    before = digest(one)
    assert digest(rates()) == before
    monkeypatch.setitem(globals(), "TRUTH", [0.8])
    assert digest(one) != before
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "by_global", lambda record, rng: record)
    assert digest(one) != before


def test_what_compiled_types_hold_is_seen():
    import array
    import types

    polars = pytest.importorskip("polars")
    assert digest(polars.DataFrame({"a": [1]})) != digest(polars.DataFrame({"a": [2]}))
    assert digest(polars.DataFrame({"a": [1]})) == digest(polars.DataFrame({"a": [1]}))

    class Numbers(array.array):
        unit = "x"

    assert digest(Numbers("d", [1.0])) != digest(Numbers("d", [2.0]))

    class Table(dict):
        __slots__ = ("share",)

        def __init__(self, share):
            self.share = share

    assert digest(Table(0.1)) != digest(Table(0.2))

    def made(share):
        return types.new_class("Made", (), {}, lambda space: space.update(share=share))

    assert digest(made(0.1)) != digest(made(0.2))
    assert digest(10**5000) != digest(10**5000 + 1)


def test_modules_imported_late_are_seen_as_they_are_now(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "late_rules.py").write_text("LEAK = 0\ndef __getattr__(name): return 1\n")

    def run(record, rng):
        import late_rules as own

        return record + own.LEAK

    before = digest(run)
    assert digest(run) == before
    monkeypatch.setattr("late_rules.LEAK", 1)
    assert digest(run) != before
    monkeypatch.setattr("late_rules.LEAK", 0)
    monkeypatch.setattr("late_rules.__getattr__", lambda name: 2)
    assert digest(run) != before


# -- found by a seventh reader ---------------------------------------------------------------------
FORMS = {
    "relative": "from .noise import flip",
    "relative module": "from . import noise\n    flip = noise.flip",
    "two levels": "from ..noise import flip",
    "submodule": "from own import noise\n    flip = noise.flip",
    "whole name": "import own.noise\n    flip = own.noise.flip",
    "without a file": "from loose import noise\n    flip = noise.flip",
    "another finder": "import elsewhere\n    flip = elsewhere.flip",
    "by its name": "import importlib\n    flip = importlib.import_module('own.noise').flip",
    "from a list": "import importlib\n    flip = [importlib.import_module(m) for m in "
    "('own.noise', 'json')][0].flip",
    "built in": "flip = __import__('elsewhere').flip",
}

LATE = """import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "elsewhere":
            return importlib.util.spec_from_file_location(name, sys.argv[1] + "/hidden/noise.py")
sys.meta_path.append(Finder)
from {home} import run
from dprad import Prior, PureDP, audit
from dprad.verbs.audit.fingerprint import digest
assert digest(run) == digest(run)
result = audit(run, claim=PureDP(1.0, neighbours="replace-one"), prior=Prior.uniform(2),
               trials=500, state=sys.argv[1] + "/state", attack=lambda outputs, known: outputs)
assert digest(run) == digest(run)
print(digest(run), result.verdict)
"""


@pytest.mark.parametrize("form", list(FORMS)[: some(len(FORMS), 3)])
def test_every_way_of_importing_inside_is_part_of_it(form, tmp_path):
    deep = form == "two levels"
    home = tmp_path / "own" / "deep" if deep else tmp_path / "own"
    home.mkdir(parents=True)
    for folder in {home, tmp_path / "own"}:
        (folder / "__init__.py").touch()
    text = f"def run(record, rng):\n    {FORMS[form]}\n    return flip(record, rng)\n"
    (home / "main.py").write_text(text)
    script = tmp_path / "script.py"
    script.write_text(LATE.format(home="own.deep.main" if deep else "own.main"))

    def session(share):
        for folder in ("own", "loose", "hidden"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "noise.py").write_text(
                f"def flip(r, rng):\n    return r if rng.random() < {share} else 1 - r\n"
            )
        command = [sys.executable, str(script), str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True)

    first, again, changed = session(0.7), session(0.7), session(0.70001)
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert changed.returncode != 0 and "belongs to another audit" in changed.stderr


def test_importing_to_look_does_not_change_what_is_run(tmp_path, monkeypatch):
    """A name of a package is not replaced by the submodule of that name."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shadowed").mkdir()
    (tmp_path / "shadowed" / "__init__.py").write_text("noise = 7\n")
    (tmp_path / "shadowed" / "noise.py").write_text("raise SystemExit('imported')\n")

    def run(record, rng):
        from shadowed import noise

        return record + noise

    before = digest(run)
    assert run(1, None) == 8 and digest(run) == before
    monkeypatch.setattr("shadowed.noise", 8)
    assert digest(run) != before


def test_modules_that_fail_when_asked_can_be_looked_at(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing.py").write_text("def __getattr__(name):\n    raise ImportError(name)\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError\n")

    def run(record, rng):
        try:
            from broken import other
            from failing import noise
        except (ImportError, RuntimeError):
            return record
        return noise(record) + other

    assert digest(run) == digest(run)


def test_packages_that_an_installed_function_names_are_seen(tmp_path, monkeypatch):
    """companypkg.run calls a helper that calls noiselib; all are installed."""
    from dprad.verbs.audit import sources

    site = tmp_path / "site"
    for name, text in {
        "companypkg": "from companypkg.helpers import flip\ndef run(r, g): return flip(r, g)\n"
        "class Runs:\n    @classmethod\n    def go(cls, r, g): return flip(r, g)\n"
        "    def __call__(self, r, g): return self.go(r, g)\n",
        "noiselib": "def add(r, g): return r\n",
    }.items():
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text(text)
    (site / "companypkg" / "helpers.py").write_text(
        "import noiselib\ndef flip(r, g): return noiselib.add(r, g)\n"
    )
    monkeypatch.syspath_prepend(site)
    places = (*sources.INSTALLED, f"{site}{os.sep}")
    for module in ("sources", "fingerprint"):
        monkeypatch.setattr(f"dprad.verbs.audit.{module}.INSTALLED", places)
    import companypkg

    things = (companypkg.run, companypkg.Runs())
    before = [digest(thing) for thing in things]
    assert [digest(thing) for thing in things] == before
    (site / "noiselib" / "__init__.py").write_text("def add(r, g): return -r\n")
    assert all(digest(t) != b for t, b in zip(things, before, strict=True))


def test_where_a_loop_of_a_generator_is_is_seen():
    def same(items):
        for _ in items:
            yield 0

    for items in (range(5), [0] * 5, enumerate([0] * 5)):
        one = same(items)
        next(one)
        before = digest(one)
        assert digest(one) == before
        next(one)
        assert digest(one) != before


@pytest.mark.parametrize(("workers", "attack"), [(1, guess), (2, None)])
def test_a_share_of_slow_calls_is_run_again_and_the_rest_is_said_first(
    workers, attack, tmp_path, monkeypatch
):
    """However slow: a tenth of what was recorded, of the runs and of what was studied."""
    monkeypatch.setattr("dprad.verbs.audit.trials.PATIENCE", 0.0)
    monkeypatch.setattr("dprad.verbs.audit.target.PATIENCE", 0.0)
    path, counted = tmp_path / "state", Counted(tmp_path / "calls")
    question = COIN | {"trials": 15_000, "claim": PureDP(2.0, neighbours="replace-one")}
    first = audit(counted, state=path, attack=attack, **question)
    before = counted.calls
    again = audit(counted, state=path, attack=attack, workers=workers, **question)
    made = counted.calls - before
    assert 1500 <= made < 3500
    assert first.verdict == again.verdict == "consistent" and first.unverified == 0
    assert again.unverified == 15_000 - made
    said = str(again).splitlines()
    assert f"rests on {again.unverified:,} calls of an earlier session that were not run" in said[1]
    assert "earlier session" not in str(first)


def test_a_clock_ends_running_again_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("dprad.verbs.audit.trials.PATIENCE", 0.0)
    question = COIN | {"trials": 15_000, "attack": guess}
    audit(noisy_coin, state=tmp_path / "state", **question)
    again = audit(noisy_coin, state=tmp_path / "state", max_seconds=0, **question)
    assert again.trials == 11_250 and 10_500 < again.unverified < 11_250


# -- found by a ninth reader -----------------------------------------------------------------------
@pytest.mark.parametrize("name", ["profile", "trace", "sched"])
def test_own_modules_named_like_pythons_are_part_of_it(name, tmp_path):
    """What is part of Python is told by where it is, not by its name."""
    (tmp_path / "script.py").write_text(
        f"import {name} as own\nfrom dprad.verbs.audit.fingerprint import digest\n"
        "from dprad.verbs.audit.sources import installed\n"
        "def run(record, rng):\n    return own.flip(record, rng)\n"
        f"def late(record, rng):\n    import {name}\n    return {name}.flip(record, rng)\n"
        f"print(digest(run), digest(late), installed('{name}'))\n"
    )
    command, seen = [sys.executable, str(tmp_path / "script.py")], []
    for share in (0.7, 0.99):
        (tmp_path / f"{name}.py").write_text(
            f"def flip(record, rng):\n    return record if rng.random() < {share} else 1 - record\n"
        )
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout.split())
    (run, late, own), (run2, late2, _) = seen
    assert own == "False" and run != run2 and late != late2


def test_pythons_own_modules_are_not_ones_own():
    import types

    from dprad.verbs.audit.sources import installed, of_module

    for name in ("builtins", "sys", "os", "time", "math", "json", "collections.abc", "profile",
                 "_frozen_importlib", "zipimport", "ctypes", "winreg", "nt"):  # fmt: skip
        assert installed(name) and of_module(name) == sys.version, name
    made = types.ModuleType("sched")  # without a file: made while running
    before = sys.modules.get("sched")
    sys.modules["sched"] = made
    try:
        assert not installed("sched")
    finally:
        sys.modules.pop("sched") if before is None else sys.modules.update(sched=before)


def test_files_with_chunks_of_another_size_are_refused(tmp_path, monkeypatch):
    """As an older version wrote them: by its number, and by the sizes if that is the same."""
    path, asked = tmp_path / "audit.jsonl", {**COIN, "trials": 400}
    with monkeypatch.context() as older:
        older.setattr("dprad.verbs.audit.trials.FIRST", 64)
        audit(noisy_coin, state=path, **asked)
    lines = path.read_text().splitlines()
    with pytest.raises(DpradError, match="chunk 0 does not add up"):
        audit(noisy_coin, state=path, **asked)
    older = re.sub(r'"format": \d+', '"format": 4', lines[0])
    path.write_text("\n".join([older, *lines[1:]]) + "\n")
    with pytest.raises(DpradError, match="another version of dprad wrote it"):
        audit(noisy_coin, state=path, **asked)


SWALLOWS = """
import os, signal, sys
from dprad import Prior, PureDP, audit
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the test run ignores it
calls = 0
def swallows(record, rng):
    global calls
    calls += 1
    try:
        if calls == int(os.environ["WHEN"]):
            os.kill(os.getpid(), signal.SIGINT)
        return record if rng.random() < 0.7 else 1 - record
    except:
        return "stopped"
def run(path, size, when):
    global calls
    calls, os.environ["WHEN"] = 0, str(when)
    try:
        result = audit(swallows, claim=PureDP(1.0, neighbours="replace-one"), rng=5, trials=1500,
                       prior=Prior.uniform(size), state=f"{sys.argv[1]}/{path}-{size}")
    except KeyboardInterrupt:
        return "stopped"
    return result.verdict, result.epsilon_lower, result.trials
# counted calls, those that choose records, and those of an earlier session that are made again
for size, presses in ((2, [700, 10]), (3, [60, 700, 3])):
    for when in presses:
        assert run("again", size, when) == "stopped", (size, when)
    again = run("again", size, 0)
    assert again == run("straight", size, 0) != "stopped", again
print("done")
"""


def test_what_a_function_made_of_an_interrupt_is_not_recorded(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SWALLOWS)
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr


DRAWS = """
import random, sys
import numpy as np
from numpy.random import laplace as numpys
from random import gauss
from scipy.stats import laplace, norm
from dprad import Prior, PureDP, audit
from dprad.verbs.audit.fingerprint import digest
frozen, seeded, own = norm(0, 1), norm(0, 1), np.random.RandomState(int(sys.argv[2]))
seeded.random_state = int(sys.argv[2])
def run(record, rng):
    return bool(record + laplace.rvs(random_state=rng) + frozen.rvs(random_state=rng) > 0.5)
others = [lambda: frozen.rvs(), lambda: numpys(), lambda: gauss(0, 1), lambda: random.random()]
others += [lambda: np.random.mtrand._rand.bytes(1), lambda: numpys.__self__._bit_generator]
print(*map(digest, others), digest(lambda: seeded.rvs()), digest(lambda: own.rand()))
asked = {"claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(2), "rng": 5}
result = audit(run, **asked, trials=200, state=sys.argv[1])
print(result.verdict, result.epsilon_lower, "an earlier session" in str(result.notes))
"""


def test_generators_that_every_process_seeds_anew_are_no_part_of_it(tmp_path):
    """A function of scipy.stats is gone on with; one with a seed of its own is another's."""
    script = tmp_path / "script.py"
    script.write_text(DRAWS)

    def session(seed):
        command = [sys.executable, str(script), str(tmp_path / "state"), seed]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (*shared, seeded, own), result = map(str.split, done.stdout.splitlines())
        return shared, seeded, own, result

    first, second, third = session("1"), session("1"), session("2")
    assert first[:3] == second[:3] and first[0] == third[0]
    assert first[3][:2] == second[3][:2] and [first[3][-1], second[3][-1]] == ["False", "True"]
    assert first[1] != third[1] and first[2] != third[2]
