"""Checks of arrays that users give for tensors."""

from __future__ import annotations

from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer


def require_shape(what: str, shape: tuple[int, ...], tensor: TensorType, layer: Layer) -> None:
    """Raise InputError for an array of a shape that a tensor cannot have.

    The message calls the tensor ``what`` and names its layer.
    """
    if tensor.shape.contains(shape):
        return
    hint = None
    if tensor.shape.rank is not None and len(shape) != tensor.shape.rank:
        hint = f"the {what.split()[0]} has {plural(tensor.shape.rank, 'dimension')}, the array {len(shape)}"
    message = f"{what} takes shape {tensor.shape}, got {PartialShape(shape)}"
    raise InputError(diagnose(BAD_INPUT, message, layer.place, hint=hint))
