"""Warnings of kernels about values that they are given."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token

from ovir.diagnostics.codes import OUTSIDE_SPEC, Code

Sink = Callable[[Code, str, str], None]
"""Receives the code, the fault, and the kernel's way to handle it, which may be empty."""

_sink: ContextVar[Sink | None] = ContextVar("ovir_kernel_reports", default=None)


class reporting_to:  # noqa: N801 - used as a function, and faster than a generator
    """Let ``report`` call ``sink`` inside the context; the sink knows the running layer and may raise."""

    __slots__ = ("_sink", "_token")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def __enter__(self) -> None:
        self._token: Token[Sink | None] = _sink.set(self._sink)

    def __exit__(self, *error: object) -> None:
        _sink.reset(self._token)


def report(message: str, effect: str = "", *, code: Code = OUTSIDE_SPEC) -> None:
    """Report values on which the specification is silent and devices differ; called by kernels.

    ``effect`` says what the kernel computes for them, which is left out where there is no result.
    """
    sink = _sink.get()
    if sink is not None:
        sink(code, message, effect)
