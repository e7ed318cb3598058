"""Tensors that no machine holds. Nothing is allocated to find them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ovir.check.rule import Context, finding, rule
from ovir.codes import SIZE_OVERFLOW, TOO_LARGE
from ovir.diagnostics import Diagnostic
from ovir.integers import MAX_SIZE
from ovir.model import Port


def _least_elements(port: Port) -> int:
    """How many elements a tensor has at the least."""
    shape = port.shape
    if shape.rank is None:
        return 0
    count = 1
    for dim in shape:
        count *= dim.lower
    return count


@rule(SIZE_OVERFLOW)
def size_overflow(context: Context) -> Iterator[Diagnostic]:
    for layer in context.layers:
        for port in layer.outputs:
            if (count := _least_elements(port)) > MAX_SIZE:
                message = f"output port {port.id} of shape {port.shape} has {count} elements, more than 64 bits count"
                yield finding(SIZE_OVERFLOW, message, port)


@rule(TOO_LARGE)
def too_large(context: Context) -> Iterator[Diagnostic]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**40
    for layer in context.layers:
        for port in layer.outputs:
            needed = _least_elements(port) * port.element_type.bits // 8
            if memory < needed <= MAX_SIZE:
                shown = f"{port.element_type}{port.shape}"
                message = f"output port {port.id}, {shown}, takes {needed} bytes; this machine has {memory}"
                yield finding(TOO_LARGE, message, port)
