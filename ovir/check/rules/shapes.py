"""Tensors that no machine holds. Nothing is allocated to find them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import prod

from ovir.check.rule import Context, finding, rule
from ovir.codes import SIZE_OVERFLOW, TOO_LARGE
from ovir.diagnostics import Diagnostic
from ovir.integers import MAX_SIZE
from ovir.model import Port


def _large(context: Context) -> Iterator[tuple[Port, int]]:
    """The output ports of tensors that are large for certain, and how many elements each has at the least."""
    for layer in context.layers:
        for port in layer.outputs:
            shape = port.shape
            if shape.rank is not None and (count := prod([dim.lower for dim in shape.dims])) > _LARGE:
                yield port, count


_LARGE = 1 << 30


@rule(SIZE_OVERFLOW)
def size_overflow(context: Context) -> Iterator[Diagnostic]:
    for port, count in _large(context):
        if count > MAX_SIZE:
            message = f"output port {port.id} of shape {port.shape} has {count} elements, more than 64 bits count"
            yield finding(SIZE_OVERFLOW, message, port)


@rule(TOO_LARGE)
def too_large(context: Context) -> Iterator[Diagnostic]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**40
    for port, count in _large(context):
        needed = count * port.element_type.bits // 8
        if memory < needed and count <= MAX_SIZE:
            shown = f"{port.element_type}{port.shape}"
            message = f"output port {port.id}, {shown}, takes {needed} bytes; this machine has {memory}"
            yield finding(TOO_LARGE, message, port)
