"""Decomposes one layer, step by step, until all of its parts are of an opset that a release supports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from ovir import opset8 as ops
from ovir.diagnostics.codes import INTERNAL
from ovir.diagnostics.errors import InputError, ModelError, OperatorError
from ovir.graph.layers import Layer, LayerOrPort, Port, attach
from ovir.lowering.registry import NotLowered, decomposition_of, refuse, why_without
from ovir.lowering.releases import opset_number
from ovir.lowering.sizes import constant, rank, tensor
from ovir.ops.base.elementwise import BinaryBase


def is_newer(layer: Layer, opset: int) -> bool:
    """Return whether a layer's operation version is newer than an opset; one of an extension is not."""
    if layer.operator is not None and layer.operator.opset:
        return layer.operator.opset > opset
    return (opset_number(layer.version) or 0) > opset


def decomposed(layer: Layer, opset: int, read: Collection[Port] | None = None) -> list[Port | None]:
    """Return a tensor for each output of a layer that is newer than an opset, computed by layers that are not.

    The new layers belong to no model, and read what the layer reads. An output that nothing reads may have no tensor;
    ``read`` has the outputs that are read, if the layer belongs to no model. Raises NotLowered with the reason if older
    operation versions do not express the layer.
    """
    if read is None:
        read = [port for port in layer.outputs if port.readers] or layer.outputs[:1]
    ports = _decomposed_once(layer, read)
    parts = list(new_layers(ports))
    used = {port.source for part in parts for port in part.inputs}
    used.update(port for port, before in zip(ports, layer.outputs, strict=False) if before in read)
    replaced: dict[Port | None, Port | None] = {}
    for part in parts:
        for port in part.inputs:
            if port.source in replaced:
                source = replaced[port.source]
                assert source is not None
                attach(source, port)
        if folded := _folded(part):
            replaced.update(zip(part.outputs, folded, strict=True))
        elif is_newer(part, opset):
            outputs = decomposed(part, opset, [port for port in part.outputs if port in used])
            replaced.update(zip(part.outputs, outputs, strict=True))
    return [replaced.get(port, port) for port in ports]


_FOLDED = 1 << 20
"""The number of elements up to which parts that depend on constants alone are computed at once."""


def _folded(part: Layer) -> list[Port]:
    """Return constants for the outputs of a new layer that reads only constants; nothing for other layers."""
    sources = [port.source for port in part.inputs]
    # The constants of the model itself are left as they are, unless they are small, as sizes are.
    arrays = [port and (port.type.constant if port.layer.owner else constant(port)) for port in sources]
    op, shapes = part.operator, [port.shape for port in part.outputs]
    if op is None or not op.pure or not arrays or any(array is None for array in arrays):
        return []
    if not all(shape.is_static and shape.size().length <= _FOLDED for shape in shapes):
        return []
    applied = op.applied([port.type for port in part.inputs], [port.type for port in part.outputs])
    try:
        with np.errstate(all="ignore"):
            result = applied.run(*arrays)
    except OperatorError:
        return []  # a run raises it again
    found = result if isinstance(result, tuple) else (result,)
    return [ops.constant(array, port.element_type).outputs[0] for array, port in zip(found, part.outputs, strict=True)]


def _decomposed_once(layer: Layer, read: Collection[Port]) -> list[Port | None]:
    op = layer.operator
    if op is None:
        refuse("ovir does not know the operation")
    function = decomposition_of(type(op))
    if function is None:
        refuse(why_without(type(op)))
    sources = [port.source for port in layer.inputs]
    types = [port.type for port in layer.inputs]
    with refusing_misfits():
        if isinstance(op, BinaryBase) and op.auto_broadcast == "pdpd":
            sources[1] = _aligned(op, *sources)
        tensors = function(op.applied(types, [port.type for port in layer.outputs]), *sources)
        if isinstance(tensors, Layer):
            return list(tensors.outputs)
        items = [tensors] if isinstance(tensors, Port) else tensors
        return [_port(item, port in read) for item, port in zip(items, layer.outputs, strict=True)]


def _aligned(op: BinaryBase, a: Port | None, b: Port | None) -> Port:
    """Return ``b`` in a shape that the mode "numpy" broadcasts as the mode "pdpd" of the operation does, so that
    decompositions need neither the mode nor the axis."""
    assert a is not None
    assert b is not None
    count = rank(b, "b")
    missing = rank(a, "a") - op.axis - count
    if op.axis == -1 or missing == 0:
        return b
    if missing > 0:
        return tensor(ops.unsqueeze(b, list(range(count, count + missing))))
    return tensor(ops.squeeze(b, list(range(max(count + missing, 0), count))))  # sizes of 1 beyond the rank of a


@contextmanager
def refusing_misfits() -> Iterator[None]:
    """Refuse a layer if its parts cannot be made, as when its declared types contradict each other."""
    try:
        yield
    except (ModelError, InputError) as error:
        if error.diagnostic.code == INTERNAL.id:
            raise
        raise NotLowered(f"its parts do not fit together: {error.diagnostic.message}") from error


def _port(item: LayerOrPort | Callable[[], LayerOrPort], is_read: bool) -> Port | None:
    if not isinstance(item, (Layer, Port)):
        if not is_read:
            return None
        item = item()
    return tensor(item)


def new_layers(ports: Iterable[Port | None]) -> Iterator[Layer]:
    """Yield the layers without a model that these tensors depend on, each after its sources."""
    order: dict[Layer, None] = {}
    opened: set[Layer] = set()
    pending = [port.layer for port in ports if port is not None and port.layer.owner is None]
    while pending:
        layer = pending[-1]
        if layer in opened or layer in order:
            pending.pop()
            order.setdefault(layer)
            continue
        opened.add(layer)
        sources = (port.source for port in layer.inputs)
        pending += [source.layer for source in sources if source is not None and source.layer.owner is None]
    yield from order
