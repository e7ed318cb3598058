"""Commands that are asked to end clean up first."""

from __future__ import annotations

import os
import signal

import pytest

from ovir.cli.signals import cleaning_up


@pytest.mark.skipif(os.name != "posix", reason="other systems do not deliver this signal to Python")
def test_sigterm_ends_a_command_as_an_exception() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, cleaning_up():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.skipif(os.name != "posix", reason="other systems do not deliver this signal to Python")
def test_ignored_signals_remain_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with cleaning_up():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
