"""Tensors that no machine holds. Nothing is allocated to find them."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.rule import Context, finding, rule
from ovir.codes import SIZE_OVERFLOW, TOO_LARGE
from ovir.diagnostics import Diagnostic
from ovir.integers import MAX_SIZE
from ovir.machine import physical_memory


@rule(SIZE_OVERFLOW)
def size_overflow(context: Context) -> Iterator[Diagnostic]:
    for port, count in context.large:
        if count > MAX_SIZE:
            message = f"output port {port.id} of shape {port.shape} has {count} elements, more than 64 bits count"
            yield finding(SIZE_OVERFLOW, message, port)


@rule(TOO_LARGE)
def too_large(context: Context) -> Iterator[Diagnostic]:
    memory = physical_memory()
    for port, count in context.large:
        needed = count * port.element_type.bits // 8
        if memory is not None and memory < needed and count <= MAX_SIZE:
            shown = f"{port.element_type}{port.shape}"
            message = f"output port {port.id}, {shown}, takes {needed} bytes; this machine has {memory}"
            yield finding(TOO_LARGE, message, port)
