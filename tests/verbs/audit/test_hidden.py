"""Outputs that publish the record where an audit might not look."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import threading
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from dprad import ApproxDP, DpradError, GaussianDP, Prior, PureDP, audit, audit_outputs
from dprad.game.question import Question
from dprad.mechanisms import BlackBox
from dprad.verbs.audit import coordinates, target, trials
from dprad.verbs.audit.coordinates import Reader
from dprad.verbs.audit.evidence import Learned, to_plain
from dprad.verbs.audit.fingerprint import digest_of_outputs
from dprad.verbs.audit.flatten import coordinates as flat
from dprad.verbs.audit.frozen import frozen
from dprad.verbs.audit.session import Booked, Session
from dprad.verbs.audit.state import decode
from dprad.verbs.audit.trials import packed

CLAIM = PureDP(1.0, neighbours="replace-one")


def verdict(run, trials=400, **more):
    return audit(run, claim=CLAIM, prior=Prior.uniform(2), trials=trials, sequential=True, **more)


# -- objects that are used again -------------------------------------------------------------------
BUFFER, LIST, DICT, NESTED = np.zeros(2), [0.0, 0.0], {}, {"a": [0.0, 0.0]}
MANY = np.zeros((500, 2))


def same_array(z, rng):
    BUFFER[:] = z, rng.laplace()
    return BUFFER


def same_list(z, rng):
    LIST[:] = z, rng.laplace()
    return LIST


def same_dict(z, rng):
    DICT.update(a=z, b=rng.laplace())
    return DICT


def same_inner_list(z, rng):
    NESTED["a"][:] = z, rng.laplace()
    return (NESTED,)


def same_frame(z, rng):
    BUFFER[:] = z, rng.laplace()
    return pd.DataFrame({"a": pd.Series(BUFFER, copy=False)}, copy=False)


def same_many(z, rng):
    MANY[: len(z)] = np.stack([z, rng.laplace(size=len(z))], axis=1)
    return MANY[: len(z)]


@pytest.mark.parametrize("run", [same_array, same_list, same_dict, same_inner_list, same_frame])
def test_an_object_that_is_returned_again_and_again(run):
    assert verdict(run).verdict == "violated"


def test_a_model_that_is_updated_in_place():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(1, 1)

    def train(z, rng):
        with torch.no_grad():
            model.weight.fill_(rng.laplace())
            model.bias.fill_(float(z))
        return model

    for run in (train, lambda z, rng: train(z, rng).state_dict(),
                lambda z, rng: list(train(z, rng).parameters())):  # fmt: skip
        assert verdict(run).verdict == "violated"


def test_outputs_of_a_vectorised_function_are_copied():
    run = BlackBox(same_many, vectorised=True)
    z = np.array([0, 1])
    first = trials.sample(run, z, z, np.random.default_rng(0), 1)
    kept = first.tolist()
    trials.sample(run, 1 - z, 1 - z, np.random.default_rng(1), 1)
    assert first.tolist() == kept and verdict(run).verdict == "violated"


@pytest.mark.parametrize(
    "many",
    [
        lambda noise, records: pd.Series(noise, index=records),
        lambda noise, records: pd.DataFrame({"x": noise}, index=records),
        lambda noise, records: polars.DataFrame({str(records[0]): noise}),
        lambda noise, records: pa.array(noise),
        lambda noise, records: dict(zip(range(len(noise)), records.tolist(), strict=True)),
        lambda noise, records: "".join(map(str, records)),
    ],
)
def test_labels_of_many_outputs_are_not_dropped(many):
    """They would be lost on the way into an array."""

    def run(records, rng):
        return many(rng.integers(5, size=len(records)), records)

    with pytest.raises(DpradError, match=r"for many records\. Return an array or a list"):
        verdict(run, vectorised=True)


def test_many_outputs_in_arrays_and_lists():
    torch = pytest.importorskip("torch")
    for made in (list, tuple, np.asarray, torch.as_tensor, lambda z: np.rec.fromarrays([z, z])):
        found = verdict(lambda z, rng, made=made: made(z ^ 0), vectorised=True)
        assert found.verdict == "violated"


def test_what_cannot_be_copied_is_refused():
    for bad in (threading.Lock(), print, pd.DataFrame({"a": [[1], [2]]}), (v for v in "ab")):
        with pytest.raises(DpradError, match="copied"):
            frozen(bad)
        with pytest.raises(DpradError, match="copied"):
            verdict(lambda z, rng, bad=bad: bad)


# -- more numbers than are learned from ------------------------------------------------------------
def long_list(z, rng):
    return [*rng.normal(size=199).tolist(), z]


def wide(z, rng):
    return np.concatenate([rng.normal(size=(len(z), 199)), z[:, None]], axis=1)


@pytest.mark.parametrize(
    "run",
    [
        lambda z, rng: np.array(long_list(z, rng)),
        long_list,
        lambda z, rng: {f"k{i}": v for i, v in enumerate(long_list(z, rng))},
        lambda z, rng: {"a": np.array(long_list(z, rng)), "b": 1},
        BlackBox(wide, vectorised=True),
    ],
)
def test_the_last_of_many_numbers(run, monkeypatch):
    monkeypatch.setattr(coordinates, "MOST", 40)
    result = verdict(run, 600)
    assert result.verdict == "violated"
    assert any("looked at were the 40 that differ most" in note for note in result.notes)


@pytest.mark.parametrize("bits", [False, True])
def test_coordinates_are_chosen_by_earlier_calls_and_stay(bits):
    rng, reader = np.random.default_rng(0), Reader(bits)
    secret = np.arange(64) % 2
    first = reader.rows(wide_rows(secret, rng))
    (first,) = reader.settle([first], [secret])
    assert first.numbers.shape == (64, 4096 * (1 + bits)) and 4999 in reader.chosen
    kept = reader.chosen.tolist()
    later = reader.rows(wide_rows(1 - secret, rng))
    assert reader.chosen.tolist() == kept
    at = kept.index(4999) * (1 + bits)
    assert (first.numbers[:, at] == secret).all() and (later.numbers[:, at] == 1 - secret).all()
    assert len(set(first.keys)) == 64 and "5,000 numbers" in reader.notes()[0]


def wide_rows(secret, rng):
    outputs = rng.normal(size=(len(secret), 5000))
    outputs[:, 4999] = secret
    return outputs


def test_recorded_outputs_and_one_run_with_many_numbers(monkeypatch):
    monkeypatch.setattr(coordinates, "MOST", 40)
    rng = np.random.default_rng(0)
    table = [(i % 2, long_list(i % 2, rng)) for i in range(800)]
    loose = ApproxDP(1.0, 1e-9, neighbours="replace-one")
    for claim, one_run in ((CLAIM, False), (CLAIM, True), (loose, True)):
        result = audit_outputs(table, claim=claim, one_run=one_run)
        assert result.verdict == "violated"
        assert any("looked at were the 40" in note for note in result.notes)


# -- text, bytes, labels ---------------------------------------------------------------------------
TEXTS = {
    "json": lambda z, rng: json.dumps({"noisy": rng.laplace(), "v": int(z)}),
    "json bytes": lambda z, rng: json.dumps([rng.laplace(), int(z)]).encode(),
    "numbers": lambda z, rng: f"{rng.laplace():.12f} {z}",
    "glued": lambda z, rng: f"{z}{rng.laplace():.12f}",
    "letters": lambda z, rng: rng.bytes(8).hex() + "xy"[z],
    "bytes": lambda z, rng: rng.bytes(8) + bytes([z]),
    "some bytes": lambda z, rng: rng.bytes(int(rng.integers(1, 90))) + bytes([z]),
    "fields": lambda z, rng: np.array([(rng.laplace(), z)], dtype="f8,i8")[0],
    "index": lambda z, rng: pd.DataFrame({"a": [1.0]}, index=[f"{z}-{rng.laplace()}"]),
    "name": lambda z, rng: pd.Series([1.0], name=f"{rng.laplace()} {z}"),
    "column": lambda z, rng: pd.DataFrame({f"{rng.laplace()}": [float(z)]}),
    "key": lambda z, rng: {rng.laplace(): z},
    "set": lambda z, rng: {f"{rng.laplace()} {z}"},
}


@pytest.mark.parametrize("run", TEXTS.values(), ids=TEXTS)
def test_text_is_read(run):
    assert verdict(run).verdict == "violated"


@pytest.mark.parametrize("name", ["json", "numbers", "bytes"])
def test_text_of_vectorised_functions_and_of_tables_is_read(name):
    run, rng = TEXTS[name], np.random.default_rng(0)
    many = BlackBox(lambda z, rng: [run(int(v), rng) for v in z], vectorised=True)
    assert verdict(many).verdict == "violated"
    table = [(i % 2, run(i % 2, rng)) for i in range(400)]
    for one_run in (False, True):
        assert audit_outputs(table, claim=CLAIM, one_run=one_run).verdict == "violated"


def test_a_constant_now_and_then_hides_no_cipher():
    def token(z, rng):
        letters = "".join(chr(97 + int(c)) for c in rng.integers(26, size=12))
        return "none" if rng.random() < 0.2 else "ab"[z] + letters

    result = audit(token, claim=CLAIM, prior=Prior.uniform(2), trials=400)
    assert any("mostly new" in note for note in result.notes)


def test_the_filling_of_a_masked_array_is_seen():
    def masked(z, rng):
        made = np.ma.array(rng.normal(size=3))
        made.fill_value = float(z)
        return made

    assert verdict(masked).verdict == "violated"


def kept_total(record, rng):
    counts = np.array([120.0 + record, 340.0, 210.0, 330.0])
    noise = rng.laplace(0, 50, 4)
    return (counts + noise - noise.mean()).tolist()


def test_guesses_that_are_right_too_often_refute_a_claim():
    """Though the odds that are predicted are too loud to be paid for."""
    result = audit(kept_total, claim=CLAIM, prior=Prior.uniform(2), trials=8000)
    assert result.rad_interval[0] > result.rad_claimed
    assert result.verdict == "violated" and result.epsilon_lower > 1.3


def test_text_without_parts_is_noted():
    def opaque(z, rng):
        return "".join(chr(97 + int(c)) for c in rng.integers(26, size=12)) + "xy"[z]

    result = audit(opaque, claim=CLAIM, prior=Prior.uniform(2), trials=400)
    assert any("mostly new" in note for note in result.notes)
    plain = audit(lambda z, rng: "ab"[int(rng.integers(2))], claim=CLAIM, prior=Prior.uniform(2),
                  trials=400)  # fmt: skip
    assert not any("mostly new" in note for note in plain.notes)


@pytest.mark.parametrize("form", [bytes.hex, base64.b64encode, bytes, lambda b: f"id {b.hex()}"])
def test_ciphers_are_noted_however_they_are_written(form):
    """Nobody finds what they hide; "consistent" alone would reassure."""

    def sealed(z, rng):
        nonce = rng.bytes(9)
        stream = hashlib.sha256(b"key" + nonce).digest()
        return form(nonce + bytes(a ^ b for a, b in zip(f"{z}ill".encode(), stream, strict=False)))

    result = audit(sealed, claim=CLAIM, prior=Prior.uniform(2), trials=300)
    assert result.verdict == "consistent"
    assert any("as ciphers are" in note for note in result.notes)
    fixed = {0: b"\xff\x01" * 8, 1: b"\xfe\x02" * 8}
    again = audit(lambda z, rng: form(fixed[z]), claim=CLAIM, prior=Prior.uniform(2), trials=300)
    assert again.verdict == "violated"
    assert not any("as ciphers are" in note for note in again.notes)


# -- numbers ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "run",
    [
        lambda z, rng: np.complex128(complex(rng.laplace(), z)),
        lambda z, rng: np.complex64(complex(rng.laplace(), z)),
        lambda z, rng: [2**60 + z, 0.5],
        lambda z, rng: [2**60 + z, rng.laplace()],
        lambda z, rng: [np.timedelta64(z, "s"), rng.laplace()],
        lambda z, rng: [np.datetime64(10**18 + z, "ns"), rng.laplace()],
        lambda z, rng: {"1": z, 1: rng.laplace()},
        lambda z, rng: {"a": {"b": z}, "a.b": rng.laplace()},
        lambda z, rng: dict([("a", rng.laplace()), ("b", rng.laplace())][:: 1 - 2 * z]),
        BlackBox(lambda z, rng: rng.laplace(size=len(z)) + 1j * z, vectorised=True),
        BlackBox(lambda z, rng: [[2**60 + int(v), rng.laplace()] for v in z], vectorised=True),
        BlackBox(lambda z, rng: np.ma.MaskedArray(rng.laplace(size=len(z)), z == 1),
                 vectorised=True),
        BlackBox(lambda z, rng: np.ma.MaskedArray(np.stack([rng.laplace(size=len(z)), 0 * z], 1),
                 np.stack([z == 1, z < 2], 1)), vectorised=True),
        lambda z, rng: pd.DataFrame({"a": pd.Categorical(["x"], categories=["x", "yz"[z]])}),
        lambda z, rng: pd.Series(pd.Categorical(["x"], categories=["x", "yz"[z]])),
        lambda z, rng: pd.DataFrame({"a": [0]}).rename_axis("yz"[z]),
        lambda z, rng: pd.DataFrame({"a": [0]}).rename_axis(columns="yz"[z]),
        lambda z, rng: pd.DataFrame({"a": [0]}, index=pd.RangeIndex(1, name="yz"[z])),
    ],
)  # fmt: skip
def test_digits_parts_order_and_masks(run):
    assert verdict(run).verdict == "violated"


def test_digits_and_parts_of_recorded_outputs():
    rng = np.random.default_rng(0)
    secret, noise = [0, 1] * 200, rng.laplace(size=400)
    tables = [
        [(z, 2**60 + z) for z in secret],
        [(z, 2**60 + z if i % 3 else 0.5) for i, z in enumerate(secret)],
        pd.DataFrame({"secret": secret, "a": [2**60 + z for z in secret], "b": noise}),
        [(z, complex(x, z)) for z, x in zip(secret, noise, strict=True)],
        [(z, np.complex64(complex(x, z))) for z, x in zip(secret, noise, strict=True)],
        pd.DataFrame({"secret": secret, "a": noise + 1j * np.array(secret)}),
    ]
    for table in tables:
        for one_run in (False, True):
            assert audit_outputs(table, claim=CLAIM, one_run=one_run).verdict == "violated"


def test_names_are_distinct_and_rest_of_large_numbers_is_exact():
    found = flat({"a": {"b": 1}, "a.b": 2, "1": 3, 1: 4, None: 5, "None": 6})
    assert {v for v in found.values() if isinstance(v, float)} == {1, 2, 3, 4, 5, 6}
    assert flat(2**60 + 3)["output rest"] == 3.0 and flat(-(2**5000))["output about"] == -np.inf


# -- stored calls ----------------------------------------------------------------------------------
def mixed(z, rng):
    return {"a": [z, float(rng.laplace())], "b": (), "c": "word"}


def job_of(run):
    game = Question.of(Prior.uniform(2)).table("audit")
    return trials.Job(BlackBox(run), np.arange(2), np.arange(2), game, None, None, 0)


def test_stored_outputs_must_have_the_digest_that_is_stored():
    job, chunks = job_of(mixed), trials.Chunks(trials.FIRST)
    calls, first = job.chunk(0, trials.FIRST, 1)
    evidence = Learned(Session(CLAIM, 0), 0.0)
    plain = json.loads(json.dumps(to_plain(evidence.add(calls))))
    stored = evidence.stored(plain, job, chunks, 0)
    assert stored == calls and job.replay(chunks, {0: stored}, {0: first}) == trials.FIRST
    plain["outputs"][5]["dict"][0][1][0] = 7
    with pytest.raises(DpradError, match="damaged"):
        evidence.stored(plain, job, chunks, 0)
    forged = packed(decode(plain["outputs"]))  # with a digest of its own
    plain["digest"] = digest_of_outputs(forged)
    stored = evidence.stored(plain, job, chunks, 0)
    assert job.replay(chunks, {0: stored}, {0: first}) is None


def test_first_outputs_that_are_run_again_are_compared_with_those_stored(monkeypatch):
    """Also if only the first calls of a chunk are run again."""
    monkeypatch.setattr(trials, "PATIENCE", -1.0)
    monkeypatch.setattr(trials, "REMEMBERED", 8)
    job, chunks = job_of(mixed), trials.Chunks(trials.FIRST)
    calls, first = job.chunk(0, trials.FIRST, 1)
    assert job.replay(chunks, {0: calls}, {0: first}) == 8
    outputs = calls.outputs.copy()
    outputs[5] = mixed(7, np.random.default_rng(0))
    forged = trials.Calls(calls.records, outputs, calls.digest)
    assert job.replay(chunks, {0: forged}, {0: first}) is None


def test_a_chunk_that_is_run_again_counts_as_it_is_now():
    job, chunks = job_of(mixed), trials.Chunks(trials.FIRST)
    calls, first = job.chunk(0, trials.FIRST, 1)
    stored = {0: trials.Calls(calls.records, None, calls.digest, Booked(*[trials.FIRST] * 3, []))}
    assert job.replay(chunks, stored, {0: first}) == trials.FIRST
    assert stored[0].booked is None and len(stored[0].outputs) == trials.FIRST


def test_an_audit_of_mixed_outputs_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "PATIENCE", math.inf)  # on a busy machine, too, all is run again
    monkeypatch.setattr(target, "PATIENCE", math.inf)
    asked = {"claim": CLAIM, "prior": Prior.uniform(2), "trials": 300, "rng": 3}
    for run in (mixed, TEXTS["json"], lambda z, rng: [2**60 + z, np.complex64(1j * z)]):
        file = tmp_path / f"{id(run)}.json"
        whole = audit(run, **asked)
        again = [audit(run, **asked, state=file) for _ in range(2)]
        assert [r.epsilon_lower for r in again] == [whole.epsilon_lower] * 2
        assert again[1].unverified == 0


# -- found by a later reader -----------------------------------------------------------------------
WRITTEN = [
    ("742 users, 17.000000000000000001 ETH", "742 users, 17.000000000000000002 ETH"),
    ("5 users, 1.50, 2.5 ok", "5 users, 1.5, 2.50 ok"), ("x 1e+5 y", "x 1e05 y"),
    ("x -0.0 y", "x 00.0 y"), ("x -0.0 y", "x 0.0 y"), ("[5, 1.00, 1.0]", "[5, 1.0, 1.00]"),
    ("[0.10000000000000000000000000001]", "[0.10000000000000000000000000002]"),
    ('{"a": -0}', '{"a": 0}'), ("[-0.0]", "[0.0]"),
    (f"[{'1.5, ' * 80}1.50]", f"[1.50, {'1.5, ' * 79}1.5]"),
]  # fmt: skip


@pytest.mark.parametrize("pair", WRITTEN)
def test_every_sign_of_a_text_counts(pair):
    """Beside numbers that change, so that whole outputs do not come again."""

    def release(record, rng):
        text = pair[record]
        noise = f"{rng.integers(10**6)}"
        return text.replace("[", f"[{noise}, ", 1) if text[0] == "[" else (
            text.replace("{", f'{{"n": {noise}, ', 1) if text[0] == "{" else f"{noise} {text}"
        )  # fmt: skip

    result = audit(
        release, claim=PureDP(1.0, neighbours="replace-one"), prior=Prior.uniform(2), trials=400
    )
    assert result.verdict == "violated"


def test_numbers_written_as_usual_are_numbers():
    from dprad.verbs.audit.flatten import coordinates

    assert not any("notation" in name for name in coordinates("12 users, 0.25 of 1e-07"))
    assert sum("notation" in name for name in coordinates("12 users, 0.250 of 007")) >= 2


def test_tensors_that_numpy_has_no_kind_for():
    torch = pytest.importorskip("torch")

    def release(record, rng):
        return torch.tensor([float(record), 1.0], dtype=torch.bfloat16)

    result = audit(
        release, claim=PureDP(1.0, neighbours="replace-one"), prior=Prior.uniform(2), trials=200
    )
    assert result.verdict == "violated"


def test_layers_are_part_of_a_model():
    """Those without parameters, too, and what they are set to."""
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Other(nn.Linear):
        pass

    def plain(*layers):
        model = nn.Sequential(nn.Linear(2, 2), *layers)
        for p in model.parameters():
            nn.init.zeros_(p)
        return model

    def buffered(record):
        model = plain()
        model.register_buffer("mark", torch.ones(1) * record, persistent=False)
        return model

    kinds = [
        lambda z: plain(nn.ReLU() if z else nn.GELU()),
        lambda z: plain(nn.Dropout(0.1 * (1 + z))),
        lambda z: plain().train(bool(z)),
        lambda z: plain(Other(2, 2) if z else nn.Linear(2, 2)),
        buffered,
    ]
    for kind in kinds:
        result = audit(
            lambda record, rng, kind=kind: kind(record),
            claim=PureDP(1.0, neighbours="replace-one"), prior=Prior.uniform(2), trials=200,
        )  # fmt: skip
        assert result.verdict == "violated"
    fair = audit(
        lambda record, rng: plain(nn.ReLU()), claim=PureDP(1.0, neighbours="replace-one"),
        prior=Prior.uniform(2), trials=200,
    )  # fmt: skip
    assert fair.verdict == "consistent"


def test_the_type_of_a_key_counts_and_a_constant_is_said():
    question = {
        "claim": PureDP(1.0, neighbours="replace-one"), "prior": Prior.uniform(2), "trials": 400,
    }  # fmt: skip
    keys = audit(lambda z, rng: {np.str_("a") if z else "a": rng.normal()}, **question)
    assert keys.verdict == "violated"
    same = audit(lambda z, rng: 1 if z == "1" else 0, **question)
    assert same.verdict == "consistent" and any(
        "all outputs looked the same" in note for note in same.notes
    )
    other = audit(lambda z, rng: rng.normal(), **question)
    assert not any("all outputs looked the same" in note for note in other.notes)


# -- found by a sixteenth reader -------------------------------------------------------------------
NAN = float("nan")


@pytest.mark.parametrize(
    "run",
    [
        lambda r, rng: {"mean": 1.0 if r else NAN, "total": 40 + 5 * rng.normal()},
        lambda r, rng: ("a", NAN if r else 1.0, rng.normal()),
        lambda r, rng: [NAN if r else 0.0, rng.normal(), "x"],
        lambda r, rng: {"a": "x", "b": 2.0 if r else "y", "c": rng.normal()},
        lambda r, rng: {"a": "x", "b": "y", "c": 2.0 if r else None, "d": rng.normal()},
    ],
)
def test_words_do_not_pass_for_numbers(run):
    """A word was counted 0, 1, 2 ... in the column of numbers, and NaN is a word."""
    strong, weak = PureDP(3.0, neighbours="replace-one"), GaussianDP(1.0, neighbours="replace-one")
    for claim, calls in ((strong, 400), (weak, 300)):
        assert audit(run, claim=claim, prior=Prior.uniform(2), trials=calls).verdict == "violated"
    rng = np.random.default_rng(0)
    rows = [(k % 2, run(k % 2, rng)) for k in range(400)]
    assert audit_outputs(rows, claim=strong).verdict == "violated"


def test_values_that_come_again_among_noise_are_noticed():
    """Noise that is left out in one of fifty calls: alone, and beside another number."""
    one = lambda r, rng: 100.0 + r + rng.laplace() * (rng.random() >= 0.02)  # noqa: E731
    claim = PureDP(1.0, neighbours="replace-one")
    found = audit(one, claim=claim, prior=Prior.uniform(2), trials=8000, sequential=True)
    assert found.verdict == "violated"
    tight = audit(
        lambda r, rng: 100.0 + r + rng.laplace(), claim=claim, prior=Prior.uniform(2), trials=2000
    )
    assert tight.verdict == "consistent"


@pytest.mark.parametrize(
    ("value", "apart"),
    [
        (lambda r: Decimal(r) / 3, "Decimal"),
        (lambda r: Fraction(r + 1, 7), "Fraction"),
        (lambda r: datetime(2030, 1, 1 + r), "datetime"),
        (lambda r: timedelta(seconds=r), "timedelta"),
        (lambda r: UUID(int=r), "UUID"),
    ],
)
def test_what_databases_return_is_looked_into(value, apart):
    claim = PureDP(1.0, neighbours="replace-one")
    found = audit(
        lambda r, rng: (value(int(r)), rng.normal()),
        claim=claim,
        prior=Prior.uniform(2),
        trials=300,
    )
    assert found.verdict == "violated", apart


def test_what_ended_an_audit_and_what_was_arranged_are_said():
    claim, prior = PureDP(1.0, neighbours="replace-one"), Prior.uniform(2)
    with pytest.raises(DpradError, match="return a word for it"):
        audit(lambda r, rng: NAN, claim=claim, prior=prior, trials=100)
    with pytest.raises(DpradError, match="return a word for it"):
        audit(lambda r, rng: 1 / 0, claim=claim, prior=prior, trials=100)
    short = audit(
        lambda r, rng: int(rng.integers(2)), claim=claim, prior=prior, trials=10**9, max_seconds=0.5
    )
    assert any("max_seconds passed after" in note for note in short.notes)
    rng = np.random.default_rng(0)
    rows = [(k % 2, rng.normal()) for k in range(400)]
    said = audit_outputs(rows, claim=claim, one_run=True).notes
    assert any("that was arranged" in note for note in said)
    others = audit_outputs(rows[:-1], claim=claim, one_run=True).notes
    assert not any("that was arranged" in note for note in others)


def nothing(kind):
    """Nothing, or NaN, in a column of another library."""
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    masked = lambda r: pd.arrays.FloatingArray(np.array([NAN, 1.0]), np.array([bool(r), False]))  # noqa: E731
    return {
        "polars frame": lambda r, rng: pl.DataFrame({"a": [rng.normal(), None if r else NAN]}),
        "polars series": lambda r, rng: pl.Series([1.0, None if r else NAN]),
        "arrow": lambda r, rng: pa.array([1.0, None if r else NAN]),
        "pandas": lambda r, rng: pd.DataFrame({"a": masked(r)}),
        "array of pandas": lambda r, rng: masked(r),
    }[kind]


@pytest.mark.parametrize(
    "kind", ["polars frame", "polars series", "arrow", "pandas", "array of pandas"]
)
def test_nothing_is_not_nan(kind):
    assert verdict(nothing(kind)).verdict == "violated"


def test_zones_folds_values_of_enumerations_and_low_bits_of_whole_numbers():
    zone = lambda r: timezone(timedelta(0), "A" if r else "B")  # noqa: E731
    assert verdict(lambda r, rng: datetime(2030, 1, 1, tzinfo=zone(r))).verdict == "violated"
    assert verdict(lambda r, rng: datetime(2030, 1, 1, fold=int(r))).verdict == "violated"
    made = lambda r: Enum("Made", {"x": 5 + int(r)})  # noqa: E731
    assert verdict(lambda r, rng: made(r).x).verdict == "violated"
    wide = lambda r, rng: int(rng.integers(0, 2**30)) * 2 + int(r)  # noqa: E731
    assert verdict(wide, bits=True).verdict == "violated"
    assert any("bits=True" in note for note in verdict(wide).notes)


ZERO = (0.0, -0.0)


@pytest.mark.parametrize(
    "run",
    [
        lambda z, rng: ZERO[z],
        lambda z, rng: [rng.laplace(), ZERO[z]],
        lambda z, rng: {"count": ZERO[z], "sum": rng.laplace()},
        lambda z, rng: np.r_[rng.laplace(size=70), ZERO[z]],
        BlackBox(lambda z, rng: np.array(ZERO)[z], vectorised=True),
        BlackBox(lambda z, rng: np.stack([rng.laplace(size=len(z)), np.array(ZERO)[z]], 1),
                 vectorised=True),
    ],
)  # fmt: skip
def test_the_sign_of_a_zero_is_seen(run):
    result = verdict(run, 600)
    assert result.verdict == "violated"
    assert not any("the same" in note for note in result.notes)


def test_zeros_are_counted_alike_alone_and_in_arrays():
    """And signs that come by chance, as by rounding, are no violation."""
    lines = [[0.0, 1.0], [-0.0, 0.0], [-0.0, -0.0], [2.0, 0.0]]
    alone, together = Reader().rows(lines), Reader().rows(np.array(lines))
    assert alone.keys == together.keys and len(set(alone.keys)) == 4
    alone, together = Reader().rows([0.0, -0.0, 1.0]), Reader().rows(np.array([0.0, -0.0, 1.0]))
    assert alone.keys == together.keys and len(set(alone.keys)) == 3
    assert np.array_equal(alone.numbers, together.numbers, equal_nan=True)
    refuted = sum(
        verdict(
            BlackBox(lambda z, rng: np.round(z + rng.laplace(size=len(z))), vectorised=True),
            4000, rng=seed,
        ).verdict == "violated"
        for seed in range(5)
    )  # fmt: skip
    assert refuted == 0


# -- found by a seventeenth reader -----------------------------------------------------------------
NOON = datetime(2030, 1, 1, 12)
FRESH = {
    "whole": lambda v, g: {int(g.integers(10**9)): v},
    "few": lambda v, g: {int(g.integers(3000)): v},
    "date": lambda v, g: {NOON + timedelta(seconds=int(g.integers(10**8))): v},
    "uuid": lambda v, g: {UUID(int=int(g.integers(2**62))): v},
    "pair": lambda v, g: {(int(g.integers(10**6)), "a"): v},
    "user": lambda v, g: {f"u{g.integers(10**5):05d}": v},
    "name": lambda v, g: {"".join(map(chr, 97 + g.integers(26, size=8))): v},
    "inside": lambda v, g: {"a": {int(g.integers(10**9)): v}, "b": 1},
    "column": lambda v, g: pd.DataFrame({int(g.integers(10**9)): [v]}),
    "seventy": lambda v, g: {float(k): v for k in g.random(70)},
    "json": lambda v, g: json.dumps({str(g.integers(3000)): v}),
    "set": lambda v, g: {*g.random(12).tolist(), 9.0 + 0.5 * v + 0.1 * g.random()},
    "large set": lambda v, g: {*g.random(80).tolist(), 9.0 + 0.5 * v + 0.1 * g.random()},
    "set of text": lambda v, g: {*(f"x{k}" for k in g.integers(10**9, size=12)), f"z{v}"},
}


@pytest.mark.parametrize("make", FRESH.values(), ids=FRESH)
def test_values_under_names_that_never_come_again_are_seen(make):
    """A key was the name of its value, and a set of many was read by its first few."""
    assert verdict(lambda z, rng: make(int(z), rng), 300, rng=1).verdict == "violated"
    fair = [
        audit(
            lambda z, rng: make(int(z if rng.random() < 0.65 else 1 - z), rng),
            claim=CLAIM, prior=Prior.uniform(2), trials=300, rng=seed,
        ) for seed in range(2)
    ]  # fmt: skip
    assert all(result.verdict == "consistent" for result in fair)
    assert all("openly" in str(result) for result in fair)


def test_names_that_come_once_take_no_room():
    reader = Reader()
    for k in range(50):
        rows = reader.rows([{"a": 1.0, 10**6 + k: 2.0}, {"a": 1.0, 7: 3.0}])
    assert rows.numbers.shape[1] < 20


# -- found by an eighteenth reader -----------------------------------------------------------------
CITY = ("Europe/Berlin", "Europe/Paris")


def arrow(words, record):
    codes = pa.array([0, 1])
    return pa.DictionaryArray.from_arrays(codes, pa.array([*words, "HIV" if record else "flu"]))


@pytest.mark.parametrize(
    "run",
    [
        lambda z, rng: NOON.replace(tzinfo=ZoneInfo(CITY[z])) + timedelta(int(rng.integers(99))),
        lambda z, rng: time(int(rng.integers(24)), tzinfo=ZoneInfo(CITY[z])),
        lambda z, rng: [1.0, pd.Timestamp("2030-01-01", tz=CITY[z])],
        lambda z, rng: pd.Timestamp("2030-01-01").as_unit("s" if z else "ns"),
        lambda z, rng: arrow("ab", z),
        lambda z, rng: pa.chunked_array([arrow("ab", 0), arrow("ab", z)]),
        lambda z, rng: pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(arrow("ab", z))}),
        lambda z, rng: pa.array([int(rng.integers(9))], type=pa.timestamp("s", tz=CITY[z])),
        lambda z, rng: f"{rng.integers(10**7):07d}{z}{rng.integers(10**7):07d}",
        lambda z, rng: int(f"9{rng.integers(10**9):09d}{z}{rng.integers(10**9):09d}"),
        lambda z, rng: int(rng.integers(10**9)) * 2**70 + int(z),
        lambda z, rng: os.fsdecode(b"caf\xe9 %d" % z),
    ],
)  # fmt: skip
def test_zones_units_arrow_types_and_digits_are_seen(run):
    assert verdict(lambda z, rng: run(int(z), rng), 400, rng=1).verdict == "violated"


def test_an_output_that_cannot_be_read_is_refused_in_our_words():
    class Odd:
        def __init__(self, what):
            self.columns = what

        def __getitem__(self, key):
            raise RuntimeError("Ann Secret")

        def __array__(self, *_, **__):
            raise RuntimeError("Ann Secret")

    for what in (None, ["a"]):
        with pytest.raises(DpradError, match="cannot be looked into") as said:
            flat(Odd(what))
        assert "Secret" not in str(said.value)
