"""What a file states of its ports, held against what is inferred of them."""

from __future__ import annotations

from ovir.codes import INPUT_SHAPE, INPUT_TYPE, OWN_SHAPE, OWN_TYPE, STATED_SHAPE, STATED_TYPE, Severity
from ovir.diagnostics import Diagnostic, diagnostic
from ovir.element_types import dynamic
from ovir.model import Port
from ovir.types import PartialShape
from ovir.values import TensorType

SHAPES = (STATED_SHAPE, OWN_SHAPE, INPUT_SHAPE)
"""The codes of shapes that differ from the inferred ones."""


def stated_type(port: Port) -> TensorType:
    """What the file says of a port; no dims at all may mean a scalar or an unknown rank."""
    return TensorType(port.stated_element_type or dynamic, port.stated_shape or PartialShape(None))


def has_stated(port: Port) -> bool:
    """Whether the file says anything of a port's shape."""
    return bool(port.stated_shape)


def agrees(port: Port, tensor: TensorType) -> bool:
    """Whether a tensor may be what the file states of a port.

    A port without dims is a scalar or of unknown rank; the format does not tell which.
    """
    shape, element_type = port.stated_shape, port.stated_element_type
    if shape is not None and shape is not tensor.shape and shape.rank and not shape.compatible(tensor.shape):
        return False
    return (
        element_type is None
        or element_type is tensor.element_type
        or (element_type.merged_with(tensor.element_type) is not None)
    )


def difference(port: Port, tensor: TensorType, ir_version: int) -> list[Diagnostic]:
    """The findings on a port that states something else than ``tensor``.

    They are warnings where the layer is dropped, and in files of version 10, whose writers left stale types and shapes.
    """
    layer = port.layer
    kind = "output" if port.is_output else "input"
    is_own = layer.type in ("Parameter", "Const")
    if not port.is_output:
        codes, there = (INPUT_SHAPE, INPUT_TYPE), "its tensor has"
    elif is_own:
        codes, there = (OWN_SHAPE, OWN_TYPE), f"the {layer.type} itself has"
    else:
        codes, there = (STATED_SHAPE, STATED_TYPE), "inferred is"
    severity = Severity.WARNING if layer.is_dead or ir_version < 11 else None
    found = []
    stated = port.stated_shape
    if stated is not None and stated.rank and not stated.compatible(tensor.shape):
        message = f"{kind} port {port.id} states shape {stated}, {there} {tensor.shape}"
        hint = "OpenVINO infers again and ignores what is stated; whoever reads the file may not"
        found.append(diagnostic(codes[0], message, port.place, hint=hint, port=port.id, severity=severity))
    stated_type = port.stated_element_type
    if stated_type is not None and stated_type.merged_with(tensor.element_type) is None:
        message = f"{kind} port {port.id} states type {stated_type}, {there} {tensor.element_type}"
        found.append(diagnostic(codes[1], message, port.place, port=port.id, severity=severity))
    return found
