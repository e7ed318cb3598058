"""Models of single layers that have nothing to do with each other, to run many of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ovir.build.making import constant, operation, parameter, result
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.editing.transaction import infer_edited
from ovir.graph.connections import set_scopes
from ovir.graph.copies import independent, restore
from ovir.graph.layers import Layer, Port, join
from ovir.model import Model
from ovir.ops.infrastructure import Const
from ovir.ops.state import ReadValueBase


@dataclass(frozen=True)
class LonePart:
    """A layer that is to run alone, with the arrays of its inputs."""

    layer: Layer
    inputs: Sequence[Array]
    outputs: Sequence[int]
    """The positions of the outputs to return."""


class LoneParts:
    """A model of layers, each between Parameters and Results of its own.

    What a layer reads of constants alone is copied with it, so that a device compiles the same kernel for it as in the
    whole model. Sizes and axes, which inference reads, become constants with the values of the run, too. Nothing is
    shared between two layers, because devices compute layers that read one tensor together. A ReadValue gets an Assign,
    without which OpenVINO takes no variable.
    """

    def __init__(self, parts: Sequence[LonePart], constants: Mapping[Layer, int], *, with_sizes: bool = True) -> None:
        """Make the model; ``constants`` are the layers that depend on constants alone, with their places in order.

        Without ``with_sizes``, the Parameters have the ranks of the arrays only.

        Raises ModelError if inference refuses it.
        """
        self._constants = constants
        self._with_sizes = with_sizes
        self._layers: list[Layer] = []
        self._parameters: list[Layer] = []
        self.inputs: list[Array] = []
        """The arrays of the model's inputs."""
        results: list[Layer] = []
        for part in parts:
            layer = self._add(part)
            for position in part.outputs:
                results.append(result(0, f"{len(results)}/result"))
                join(layer.outputs[position], results[-1].inputs[0])
        layers = [*self._parameters, *self._layers, *results]
        for number, layer in enumerate(layers):
            layer.id = number
        self.model = Model.of_layers(layers, name="layers")
        infer_edited(self.model)

    def _add(self, part: LonePart) -> Layer:
        """Copy a layer and the constants before it, and connect it."""
        before = sorted(self._constants_before(part.layer), key=self._constants.__getitem__)
        copies = restore(independent([*before, part.layer], {}))
        prefix = len(self._layers)
        for copied in copies:
            copied.name = f"{prefix}/{copied.name}"
            copied.scope = ""
            set_scopes(copied)
            for port in copied.outputs:
                port.own_names = frozenset()
        self._layers += copies[:-1]
        fed = [position for position, port in enumerate(copies[-1].inputs) if port.source is None]
        fixed = [position for position in fed if _is_size(part, position)]
        for position in fed:
            # A layer without any Parameter would be folded, not run.
            self._feed(part, position, copies[-1].inputs[position], is_constant=position in fixed and fixed != fed)
        self._layers.append(copies[-1])
        if isinstance(op := copies[-1].operator, ReadValueBase):
            self._assign(copies[-1].outputs[0], op)
        return copies[-1]

    def _assign(self, port: Port, read: ReadValueBase) -> None:
        """Assign a variable to itself."""
        name = f"{port.layer.name}/assign"
        self._layers.append(operation(0, name, "Assign", 1, read.opset, variable_id=read.variable_id))
        join(port, self._layers[-1].inputs[0])

    def _constants_before(self, layer: Layer) -> set[Layer]:
        """Return the layers that a layer's constant inputs are computed from."""
        found: set[Layer] = set()
        pending = [layer]
        while pending:
            for port in pending.pop().inputs:
                if port.source is not None and port.source.layer in self._constants and port.source.layer not in found:
                    found.add(port.source.layer)
                    pending.append(port.source.layer)
        return found

    def _feed(self, part: LonePart, position: int, port: Port, *, is_constant: bool) -> None:
        """Connect an input with a constant or with a Parameter."""
        array = part.inputs[position]
        element_type = part.layer.inputs[position].element_type
        if element_type.is_dynamic:
            element_type = ElementType.from_dtype(array.dtype)
        array = array.astype(element_type.to_dtype(), copy=False)
        name = f"{len(self._layers)}/input{position}"
        if is_constant:
            source = constant(0, name, Const.of(array, element_type))
            self._layers.append(source)
        else:
            shape = PartialShape(array.shape if self._with_sizes else [-1] * array.ndim)
            source = parameter(0, name, TensorType(element_type, shape))
            self._parameters.append(source)
            self.inputs.append(array)
        join(source.outputs[0], port)


def _is_size(part: LonePart, position: int) -> bool:
    """Return whether an input holds sizes, axes or the like, which inference reads."""
    op = part.layer.operator
    return op is not None and op.reads_value(position) and part.inputs[position].size <= _MOST_SIZES


_MOST_SIZES = 64  # numbers
