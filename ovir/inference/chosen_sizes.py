"""Infers a model once more, for chosen sizes of its inputs.

Most shapes follow from the first inference: an unknown size has a symbol, and is chosen, or known from the layer that
had the symbol first. Only layers with new symbols are inferred again, and those whose values others read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import Diagnostics
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.inference.engines import Engine, set_outputs
from ovir.ops.base.operator import Operator


def infer_at(model: LayerGraph, chosen: Mapping[Layer, Operator]) -> None:
    """Give inputs and variables other operators, and the ports of an inferred model the types that they have then.

    A layer that cannot be inferred so keeps its type, as far as the sizes are not known.
    """
    model.revision += 1
    for layer, operator in chosen.items():
        layer.operator = operator
    _ChosenSizes(model, chosen).infer_whole(model)


class _ChosenSizes(Engine):
    """Infers the layers that need it."""

    def __init__(self, model: LayerGraph, chosen: Collection[Layer]) -> None:
        super().__init__(Diagnostics())
        self._chosen = chosen
        self._read = _read_for_values(model)
        self._sizes: dict[int, Dimension] = {}
        """The sizes of symbols."""
        self._tensors: dict[int, tuple[TensorType, TensorType]] = {}
        self._changed: set[Port] = set()

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Set the types of the outputs of a layer."""
        if is_body:
            if (inferred := self.attempt(layer, [port.type for port in layer.inputs])[0]) is not None:
                set_outputs(layer, inferred)
            return
        is_chosen = layer in self._chosen
        if not is_chosen and self._changed.isdisjoint([port.source for port in layer.inputs]):
            return
        before = [port.type for port in layer.outputs]
        known = [self._known(tensor) for tensor in before]
        if is_chosen or layer.bodies or layer in self._read or None in known:
            inferred = self.attempt(layer, [port.type for port in layer.inputs])[0]
            for port, old, new in zip(layer.outputs, before, inferred or (), strict=False):
                self._learn(old.shape, new.shape)
                merged = new.shape.merged_with(old.shape)
                port.inferred = new if merged is None else new.refined(new.element_type, merged)
        else:
            for port, tensor in zip(layer.outputs, known, strict=True):
                port.inferred = tensor
        self._changed.update(layer.outputs)

    def _known(self, tensor: TensorType) -> TensorType | None:
        """Return the tensor for the chosen sizes; None if a size of it is not known yet."""
        shape = tensor.shape
        if shape.is_static:
            return tensor
        if (found := self._tensors.get(id(tensor))) is not None:
            return found[1]
        dims = [None] if shape.rank is None else [self._sizes.get(d.symbol, d if d.is_static else None) for d in shape]
        if None in dims:
            return None
        refined = tensor.refined(tensor.element_type, PartialShape([dim for dim in dims if dim is not None]))
        self._tensors[id(tensor)] = tensor, refined  # keeps the tensor alive, so that its id stays unique
        return refined

    def _learn(self, old: PartialShape, new: PartialShape) -> None:
        """Take the sizes of the symbols of a shape from a later inference of it."""
        if old.rank is not None and old.rank == new.rank:
            for before, after in zip(old.dims, new.dims, strict=True):
                if before.symbol:
                    self._sizes.setdefault(before.symbol, after)


def _read_for_values(model: LayerGraph) -> set[Layer]:
    """Return the layers of a model whose values other layers read for their shapes, directly or through others."""
    read: set[Layer] = set()
    for layer in reversed(model.layers):
        op = layer.operator
        if op is not None:
            ports = op.with_elements_read(layer.inputs) if layer in read else []
            ports = [*ports, *(port for index, port in enumerate(layer.inputs) if op.reads_value(index))]
            read.update(port.source.layer for port in ports if port.source is not None)
    return read
