"""Warnings that kernels issue about the values they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ovir.diagnostics.codes import OUTSIDE_SPEC, Code

_sink: ContextVar[Callable[[Code, str], None] | None] = ContextVar("ovir_kernel_reports", default=None)


@contextmanager
def reporting_to(sink: Callable[[Code, str], None]) -> Iterator[None]:
    """While it lasts, ``report`` calls ``sink``, which knows the running layer and may raise."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def report(message: str, code: Code = OUTSIDE_SPEC) -> None:
    """Called by a kernel that meets values on which the specification is silent and devices differ."""
    sink = _sink.get()
    if sink is not None:
        sink(code, message)
