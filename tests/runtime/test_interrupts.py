"""Ctrl-C ends an audit even if a library, or the function itself, swallows it."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

from dprad import AuditInterrupt, Prior, PureDP, audit
from dprad.runtime.interrupts import interruptible


@pytest.fixture
def handled():
    """Python's handler, which a test run in the background may lack."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_swallowed_interrupt_is_not_lost(handled):
    calls = []

    def swallows(record, rng):
        calls.append(record)
        if len(calls) == 40:
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        return record if rng.random() < 0.6 else 1 - record

    claim = PureDP(1.0, neighbours="replace-one")
    with pytest.raises(AuditInterrupt) as stop:
        audit(swallows, claim=claim, prior=Prior.uniform(2), trials=20_000)
    result = stop.value.result
    assert result.trials < 5_000 and any("interrupted" in note for note in result.notes)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_became_another_error_is_one(handled):
    def fails(pressed):
        with interruptible():
            with contextlib.suppress(KeyboardInterrupt):
                if pressed:
                    os.kill(os.getpid(), signal.SIGINT)
            raise ValueError("its own")

    with pytest.raises(KeyboardInterrupt):
        fails(pressed=True)
    with pytest.raises(ValueError, match="its own"):
        fails(pressed=False)


def test_handlers_of_others_stay(handled):
    def own(*_):
        """Somebody else's."""

    signal.signal(signal.SIGINT, own)
    with interruptible() as look:
        look()
        assert signal.getsignal(signal.SIGINT) is own
