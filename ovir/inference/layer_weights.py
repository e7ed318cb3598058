"""The weights of a model: the constants that products, convolutions and gathers read, decompressed on demand."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, f32, i4, i8, u4, u8
from ovir.core.encoding import encode
from ovir.core.shapes import PartialShape
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, sources_of
from ovir.ops.base.domains import Index
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import Traits, input_names
from ovir.ops.compressed import Codes
from ovir.ops.infrastructure import Const
from ovir.ops.shape import Reshape

_MOST_LAYERS = 100
"""Layers between a constant and the layer that reads it as weights; exporters write fewer than ten."""


@dataclass(frozen=True)
class Weights:
    """The weights that one input of a layer reads."""

    input: Port
    """The input port of the layer that reads them."""
    constant: Layer
    """The Const that holds the numbers of the file, without scales and zero points."""
    compression: str
    """The compression to undo, such as ``u4 with scale and zero point, groups of 128``; ``none`` for nothing."""

    @property
    def layer(self) -> Layer:
        """Return the layer that reads the weights."""
        return self.input.layer

    @property
    def shape(self) -> PartialShape:
        """Return the shape that the layer reads."""
        return self.input.shape

    @property
    def element_type(self) -> ElementType:
        """Return the element type that the layer reads."""
        return self.input.element_type

    @property
    def stored_type(self) -> ElementType:
        """Return the element type of the numbers in the file."""
        return self.constant.outputs[0].element_type

    @property
    def array(self) -> Array:
        """Return the weights as the layer reads them, decompressed anew at each call.

        As in a run, decompression computes f16 and bf16 in f32, and weights restored from them are f32. Constants that
        need no decompression are returned as they are, read-only.
        """
        assert self.input.source is not None
        return _array(self.input.source)

    @property
    def largest_code(self) -> int | None:
        """Return the largest absolute value of the 8-bit integers that devices compute with in place of the weights:
        those of the file, or the levels of a FakeQuantize, counted from zero; None if there are none."""
        if isinstance(op := self.constant.operator, Const) and op.element_type == i8:
            codes = op.data if op.has_data else np.empty(0)
        elif (quantized := quantized_source(self.input)) is not None:
            low, high = (_array(port) for port in sources_of(quantized)[3:5])
            steps = (high - low) / (quantized.operator.levels - 1)  # type: ignore[union-attr]
            values = _array(quantized.outputs[0])
            codes = np.divide(values, steps, out=np.zeros_like(values), where=steps != 0)  # a channel may have no range
        else:
            return None
        largest = float(np.abs(codes.astype(np.float32)).max()) if codes.size else 0.0
        return round(largest) if isfinite(largest) else None


def quantized_source(port: Port) -> Layer | None:
    """Return the layer that rounds a tensor to at most 256 levels, before its elements are only moved, if any."""
    while (source := port.source) is not None and (op := source.layer.operator) is not None:
        if getattr(op, "levels", _LEVELS + 1) <= _LEVELS:
            return source.layer
        if op.moves_elements != (0,):
            break
        port = source.layer.inputs[0]
    return None


_LEVELS = 256
"""The most levels that 8-bit integers have."""


def weights_of(model: LayerGraph) -> list[Weights]:
    """Return the weights of all products, convolutions and gathers of a model and its bodies."""
    found = []
    for layer in model.walk():
        for port in _weight_inputs(layer):
            if port.source is not None and (chain := _constant_chain(port.source)) is not None:
                constant = main_constant(port.source)
                found.append(Weights(port, constant, _compression(port, constant, chain)))
    return found


def compression_of(output: Port) -> str:
    """Return in words how the tensor of an output is stored that is computed from constants: ``f32``, ``f16``, ``u4
    with scale and zero point, groups of 128``."""
    chain = _constant_chain(output)
    if chain is None:
        return "computed"
    text = _compression(output, main_constant(output), chain)
    return str(output.element_type) if text == "none" else text


# --------------------------------------------------------------------------- where weights stand


def _weight_inputs(layer: Layer) -> list[Port]:
    """Return the inputs that may be weights: all of a product, and the data of a gather."""
    op = layer.operator
    if op is None:
        return []
    if type(op).multiply_accumulates is not Traits.multiply_accumulates:
        return layer.inputs
    names = input_names(type(op))
    into = {rule.into for rule in op.domains.values() if isinstance(rule, Index)}
    is_gather = into and not any(name.startswith("update") for name in names)
    return [port for port, name in zip(layer.inputs, names, strict=False) if is_gather and name in into]


def _constant_chain(port: Port) -> list[Layer] | None:
    """Return the layers that compute a port from constants alone; None if it has another source or cannot be run."""
    chain = constant_layers(port.layer, _MOST_LAYERS)
    can_run = chain is not None and all(isinstance(x.operator, Const) or hasattr(x.operator, "run") for x in chain)
    return chain if can_run else None


def main_constant(port: Port) -> Layer:
    """Return the constant that holds the numbers of a tensor that is computed from constants: at each layer, the way
    goes through its largest input."""
    layer = port.layer
    while not isinstance(layer.operator, Const):
        layer = max(sources_of(layer), key=_elements).layer
    return layer


def _elements(port: Port) -> int:
    return prod(port.shape.to_tuple()) if port.shape.is_static else 0


def _compression(port: Port, constant: Layer, chain: list[Layer]) -> str:
    """Return in words the compression that is between the numbers of the file and the weights."""
    operators = [layer.operator for layer in chain if layer.operator is not None]
    parts = [word for word, trait in (("scale", "scales"), ("zero point", "offsets")) if _any(operators, trait)]
    levels = next((levels for op in operators if (levels := getattr(op, "levels", None)) is not None), None)
    if levels is not None:
        parts.append(f"{levels} levels")
    stored = constant.outputs[0]
    if not parts and stored.element_type == port.element_type:
        return "none"
    text = f"{stored.element_type}{' with ' if parts else ''}{' and '.join(parts)}"
    held, read = stored.shape.dims, port.shape.dims
    if not _any(operators, "scales") or len(held) <= len(read):
        return text
    axis = next(
        (axis for axis, (one, other) in enumerate(zip(held, read, strict=False)) if one != other), len(read) - 1
    )
    return f"{text}, groups of {held[axis + 1]}"


def _any(operators: list[Operator], trait: str) -> bool:
    return any(getattr(op, trait) for op in operators)


# --------------------------------------------------------------------------- their values


def _array(port: Port) -> Array:
    """Return the array of a port of a chain of constants."""
    op = port.layer.operator
    return op.decoded() if isinstance(op, Const) else _Chain().value(port)


class _Chain:
    """The values of the layers of one chain, each computed once."""

    def __init__(self) -> None:
        self._values: dict[Port, Array] = {}

    def value(self, port: Port) -> Array:
        if port not in self._values:
            self._run(port.layer)
        return self._values[port]

    def _run(self, layer: Layer) -> None:
        op: Any = layer.operator
        if isinstance(op, Const):
            port = layer.outputs[0]
            data = op.decoded()
            self._values[port] = data.astype(np.float32) if port.element_type in (f16, bf16) else data
            return
        arguments = [self.value(source) for source in sources_of(layer)]
        result: Any
        if op.converts and layer.outputs[0].element_type in (f16, bf16, f32):
            result = _converted(layer, arguments[0])
        else:
            if not op.decompresses:  # its kernel takes the declared types only
                pairs = zip(arguments, sources_of(layer), strict=True)
                arguments = [array.astype(source.element_type.to_dtype(), copy=False) for array, source in pairs]
            applied = op.applied([p.type for p in layer.inputs], [p.type for p in layer.outputs])
            with np.errstate(all="ignore"):
                result = applied.run(*arguments)
        results = result if isinstance(result, tuple) else (result,)
        self._values.update(zip(layer.outputs, results, strict=False))


def _converted(layer: Layer, data: Array) -> Array:
    """Return the input of a Convert in f32."""
    from ovir.ops.convert import in_f32

    source = layer.inputs[0].element_type
    return data if source in (f16, bf16, f32) else in_f32(data, source)


# --------------------------------------------------------------------------- matrices of codes


def codes_of(output: Port) -> Codes | None:
    """Return the codes of a matrix that is computed as compressors write it; None for any other tensor.

    That is a Const of 4 or 8 bits with the arithmetic ``(codes - zero_point) * scale``, where each row, or each group
    of neighbors in a row, has a scale and a zero point, and a Reshape that joins the groups. Converts to floating-point
    types may stand anywhere between.
    """
    port = unconverted(output)
    if isinstance(port.layer.operator, Reshape) and (source := port.layer.inputs[0].source) is not None:
        port = unconverted(source)
    grouped, factors = port.shape, {"scales": np.ones((), np.float32), "offsets": np.zeros((), np.float32)}
    for trait in factors:
        if getattr(port.layer.operator, trait, False):
            sources = sources_of(port.layer)
            main, other = sorted(sources, key=_elements, reverse=True) if trait == "scales" else sources
            if _constant_chain(other) is None:
                return None
            factors[trait] = np.asarray(_array(other), np.float32)
            port = unconverted(main)
    op = port.layer.operator
    if not isinstance(op, Const) or op.element_type not in (i4, u4, i8, u8):
        return None
    if port.shape != grouped or grouped.rank not in (2, 3) or output.shape.rank != 2 or 0 in grouped.to_tuple():
        return None
    rows, *middle, size = grouped.to_tuple()
    groups = prod(middle)
    if output.shape.to_tuple() != (rows, groups * size):
        return None
    scale, zero_point = (_by_group(value, grouped.to_tuple()) for value in factors.values())
    numbers = _numbers(op, size)
    if numbers is None or scale is None or zero_point is None:
        return None
    return Codes(op.element_type, numbers.reshape(rows, groups, -1), scale, zero_point)


def unconverted(port: Port) -> Port:
    """Return the port that the chain of Converts before a port starts from; only Converts to f32, f16 or bf16 count."""
    while port.layer.operator is not None and port.layer.operator.converts and port.element_type in (f16, bf16, f32):
        source = port.layer.inputs[0].source
        if source is None:
            break
        port = source
    return port


def _by_group(values: Array, shape: tuple[int, ...]) -> Array | None:
    """Return scales or zero points of codes of a shape as [rows, groups]; None if they differ inside of a group."""
    aligned = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    if aligned.ndim != len(shape) or aligned.shape[-1] != 1:
        return None
    return np.broadcast_to(aligned, (*shape[:-1], 1)).reshape(shape[0], -1)


def _numbers(op: Const, size: int) -> Array | None:
    """Return codes as they are in memory: two of 4 bits in a byte, the first one in the lower half."""
    if op.element_type.bits == 8:
        return op.data
    if size % 2:
        return None
    stored = op.stored()
    return encode(op.data, op.element_type) if stored is None else stored
