"""Rules about shapes that are declared in two ways, and about tensors that do not fit into memory.

No rule allocates a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ovir.checks.rule import Context, diagnostic, rule
from ovir.core.integers import MAX_SIZE
from ovir.core.machine import physical_memory
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import TOO_LARGE, WRITTEN_TWICE
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.text import exact_size_text
from ovir.inference.declared import agrees
from ovir.ops.infrastructure import Parameter


@rule(TOO_LARGE)
def too_large(context: Context) -> Iterator[Diagnostic]:
    memory = physical_memory()
    for port, count in context.large:
        needed = count * port.element_type.bits // 8
        if memory is not None and memory < needed and count <= MAX_SIZE:
            shown = f"{port.element_type}{port.shape}"
            sizes = f"needs {exact_size_text(needed)}; this machine has {exact_size_text(memory)}"
            message = f"output port {port.id}, {shown}, {sizes}"
            yield diagnostic(TOO_LARGE, message, port)


@rule(WRITTEN_TWICE)
def written_twice(context: Context) -> Iterator[Diagnostic]:
    """Report a size that is unknown in one place and a number in another: both are legal, but one is outdated."""
    for layer in context.by_type.get("Parameter", ()):
        if isinstance(op := layer.operator, Parameter) and layer.outputs:
            port = layer.outputs[0]
            if not _is_same(port.declared_shape, op.shape) and agrees(port, port.type):
                message = (
                    f"output port {port.id} declares shape {port.declared_shape}, "
                    f"but the attribute 'shape' is {op.shape}"
                )
                yield diagnostic(WRITTEN_TWICE, message, port)
    for layer in context.layers:
        for port in layer.inputs:
            source = port.source
            if source is None or source.declared_shape is port.declared_shape:  # mostly one object if equal
                continue
            if _is_same(port.declared_shape, source.declared_shape):
                continue
            if agrees(port, port.type) and agrees(source, source.type):
                message = (
                    f"input port {port.id} declares shape {port.declared_shape}, but "
                    f"its source declares {source.declared_shape} ({source.layer.title})"
                )
                yield diagnostic(WRITTEN_TWICE, message, port)


def _is_same(one: PartialShape | None, other: PartialShape | None) -> bool:
    """Return whether two declarations of a shape are static on the same axes; a port without dims declares nothing."""
    if one is None or other is None or not one.rank or one.rank != other.rank:
        return True
    return all(a.is_static == b.is_static for a, b in zip(one, other, strict=True))
