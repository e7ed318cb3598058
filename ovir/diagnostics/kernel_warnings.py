"""Warnings of kernels about values that they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ovir.diagnostics.codes import OUTSIDE_SPEC, Code

_sink: ContextVar[Callable[[Code, str], None] | None] = ContextVar("ovir_kernel_reports", default=None)


@contextmanager
def reporting_to(sink: Callable[[Code, str], None]) -> Iterator[None]:
    """Let ``report`` call ``sink`` inside the context; the sink knows the running layer and may raise."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def report(message: str, code: Code = OUTSIDE_SPEC) -> None:
    """Report values on which the specification is silent and devices differ; called by kernels."""
    sink = _sink.get()
    if sink is not None:
        sink(code, message)
