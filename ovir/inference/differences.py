"""The diagnostics of inferred types that differ from declared ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovir.core.tensor_types import TensorType
from ovir.diagnostics import codes
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.graph.layers import Port, agrees, declared_type, has_declared

SHAPES = (codes.DECLARED_SHAPE, codes.OWN_SHAPE, codes.INPUT_SHAPE)
"""The codes of differences between declared and inferred shapes."""
DIFFERENCES = frozenset(
    code.id for code in (*SHAPES, codes.DECLARED_TYPE, codes.OWN_TYPE, codes.INPUT_TYPE, codes.EXCHANGED_INPUTS)
)
"""The ids of the codes of all differences between what a file declares and what is inferred."""


def difference(port: Port, tensor: TensorType, ir_version: int) -> list[Diagnostic]:
    """Return the diagnostics for a port that declares another type than ``tensor`` has.

    They are warnings for dead layers, for outputs without readers, and in files of version 10, whose writers left
    outdated types and shapes.
    """
    layer = port.layer
    kind = "output" if port.is_output else "input"
    is_own = layer.type in ("Parameter", "Const")
    if not port.is_output:
        kinds, there = (codes.INPUT_SHAPE, codes.INPUT_TYPE), "but its tensor has"
    elif is_own:
        kinds, there = (codes.OWN_SHAPE, codes.OWN_TYPE), f"but the {layer.type} itself has"
    else:
        kinds, there = (codes.DECLARED_SHAPE, codes.DECLARED_TYPE), "but inference gives"
    is_unread = port.is_output and not port.readers and layer.type != "Result"
    severity = codes.Severity.WARNING if layer.is_dead or is_unread or ir_version < 11 else None
    found = []
    declared = port.declared_shape
    if declared is not None and declared.rank and not declared.compatible(tensor.shape):
        message = f"{kind} port {port.id} declares shape {declared}, {there} {tensor.shape}{_origin(port)}"
        hint = "OpenVINO ignores declared shapes and infers its own; other programs may rely on them"
        found.append(diagnose(kinds[0], message, port.place, hint=hint, port=port.id, severity=severity))
    element_type = port.declared_element_type
    if element_type is not None and element_type.merged_with(tensor.element_type) is None:
        message = f"{kind} port {port.id} declares type {element_type}, {there} {tensor.element_type}{_origin(port)}"
        found.append(diagnose(kinds[1], message, port.place, port=port.id, severity=severity))
    return found


def input_differences(differing: Sequence[tuple[Port, TensorType]], ir_version: int) -> list[Diagnostic]:
    """Return the diagnostics for inputs of a layer that declare other types than their tensors have.

    If each of two inputs declares the type of the other's tensor, one diagnostic says that they are exchanged.
    """
    if len(differing) == 2:
        (first, of_first), (second, of_second) = differing
        if has_declared(first) and has_declared(second) and agrees(first, of_second) and agrees(second, of_first):
            return [_exchanged(first, of_first, second, of_second)]
    return [diagnostic for port, tensor in differing for diagnostic in difference(port, tensor, ir_version)]


def _exchanged(first: Port, of_first: TensorType, second: Port, of_second: TensorType) -> Diagnostic:
    layer = first.layer
    fed = [
        f"port {port.id} declares {declared_type(port)} but gets {tensor}{_origin(port)}"
        for port, tensor in ((first, of_first), (second, of_second))
    ]
    lines = f" on lines {first.edge_line} and {second.edge_line}" if first.edge_line and second.edge_line else ""
    message = f"the inputs look exchanged: {', '.join(fed)}"
    hint = f"exchange the input ports of the edges{lines}"
    severity = codes.Severity.WARNING if layer.is_dead else None
    place = layer.at(first.edge_line or first.line)
    return diagnose(codes.EXCHANGED_INPUTS, message, place, hint=hint, port=first.id, severity=severity)


def _origin(port: Port) -> str:
    """Return the source of an input as the end of a message; empty for an output."""
    if port.source is None:
        return ""
    edge = f" by the edge on line {port.edge_line}" if port.edge_line is not None else ""
    return f" ({port.source.layer.title}{edge})"


def about_other_shapes(earlier: Iterable[Diagnostic], later: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics for a reshaped model: those about declared shapes from before, the others from after."""
    about_shapes = {code.id for code in SHAPES}
    differences = (d for d in earlier if d.code in about_shapes)
    return [*differences, *(d for d in later if d.code not in about_shapes)]
