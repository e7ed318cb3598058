"""Emulation of devices that compute in f16 or bf16: tensors are rounded between layers, and kernels stay the same.

An emulation decides how tensors are rounded; the plan applies it (``EmulatedSteps``), so that no kernel knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f32, f64
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean
from ovir.fast.base.binder_protocol import parts_of
from ovir.fast.base.coalesce import coalesced
from ovir.graph.constant_layers import exact_layers
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.ops.base.operator import Operator, keeps_arrays

NARROW = ("f16", "bf16")
"""The names of the element types that tensors can be rounded to."""
_BLOCK = 1 << 16
"""The number of elements that are rounded together, so that they stay in a cache."""
_LARGEST_F16 = np.float32(65504)
_WIDE = (f32, f64)
_WIDE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Emulation:
    """Rounds the tensors of f32 and f64 that a layer reads and writes to f16 or bf16.

    Constants are clipped to the range of f16 first, as OpenVINO does when it converts them; other numbers beyond it
    become infinite. Subclasses round in other ways.
    """

    rounds_outputs = True
    """Whether the outputs of a layer need no rounding where another one reads them."""

    rounds_steps = True
    """Whether the steps inside of a layer are rounded, too, for operations that devices compute in several steps."""

    def __init__(self, element_type: str, keep: Collection[str] = ()) -> None:
        """Create an emulation of ``"f16"`` or ``"bf16"``; the layers with the keys in ``keep`` stay in f32."""
        if element_type not in NARROW:
            message = f"no device that computes in {element_type!r} can be emulated; the types are f16 and bf16"
            hint = did_you_mean(element_type, NARROW) if isinstance(element_type, str) else None
            raise InputError.usage(message, hint=hint)
        self.element_type = element_type
        self.keep = frozenset(keep)

    def covers(self, layer: Layer) -> bool:
        """Return whether the layer is emulated."""
        return layer.key not in self.keep

    def constant(self, layer: Layer, position: int, array: Array) -> Array:
        """Return a constant as a layer reads it at one of its inputs."""
        if self.element_type == "f16":
            array = np.where(np.isfinite(array), np.clip(array, -_LARGEST_F16, _LARGEST_F16), array)
        return narrowed(array, self.element_type)

    def input(self, layer: Layer, position: int, array: Array) -> Array:
        """Return a tensor as a layer reads it at one of its inputs."""
        return narrowed(array, self.element_type)

    def output(self, layer: Layer, array: Array, out: Array | None) -> Array:
        """Return a result as a layer writes it, in ``out`` if given, which may be the result itself."""
        return narrowed(array, self.element_type, out)


def narrowed(array: Array, element_type: str, out: Array | None = None) -> Array:
    """Return an f32 or f64 array rounded to f16 or bf16, to the nearest value and ties to even, in its own type.

    Numbers beyond the range of f16 become infinite. The result is written to ``out``, which may be the array itself, or
    is a new array of the same layout.
    """
    out = np.empty_like(array) if out is None else out
    for source, target in parts_of(coalesced(array, out), max(-(-out.size // _BLOCK), 1)):
        with np.errstate(over="ignore", invalid="ignore"):
            source = source.astype(np.float32, copy=False)
            if element_type == "f16":
                _round_to_f16(source, target)
            else:
                np.copyto(target, source.astype(bf16.to_dtype()), "unsafe")
    return out


def _round_to_f16(source: Array, target: Array) -> None:
    # The sum of a number and 2^13 times its own power of two ends in the 11 digits that f16 has; below the normal range
    # the power is the least one, and fewer digits remain.
    size = np.abs(source)
    large = np.bitwise_and(source.view(np.int32), np.int32(0x7F800000)).view(np.float32)
    np.clip(large, np.float32(2.0**-14), np.float32(2.0**16), out=large)
    np.multiply(large, np.float32(2**13), out=large)
    np.add(size, large, out=size)
    np.subtract(size, large, out=size)
    if size.size and not size.max() <= _LARGEST_F16:  # or NaN
        size[size > _LARGEST_F16] = np.inf
    np.copysign(size, source, out=target)


def emulation_of(option: str | Emulation | None) -> Emulation | None:
    """Return the emulation that the argument of ``compile_model`` means."""
    return option if option is None or isinstance(option, Emulation) else Emulation(option)


class EmulatedSteps:
    """Adds the rounding of an emulation to the steps of a plan.

    A layer that is emulated reads rounded inputs and writes rounded outputs. Layers that only compute sizes are not
    emulated, nor are inputs that give sizes, and layers with bodies: the layers in the bodies are. Constants are folded
    first and rounded where a layer or a Result reads them.
    """

    def __init__(self, model: LayerGraph, emulation: Emulation) -> None:
        self.emulation = emulation
        self._of_sizes = exact_layers(model) & _from_shapes(model)
        self._rounded: set[Port] = set()
        """The tensors that need no rounding any more."""

    def covers(self, layer: Layer) -> bool:
        """Return whether a layer is emulated."""
        return not layer.bodies and layer not in self._of_sizes and self.emulation.covers(layer)

    def rounds_result(self, source: Port) -> bool:
        """Return whether an output of the model is rounded if it is the constant ``source``."""
        return self.emulation.rounds_outputs and _is_wide(source) and self.covers(source.layer)

    def rounded_inputs(self, layer: Layer, op: Operator) -> list[int]:
        """Return the positions of the inputs that the layer reads rounded."""
        return [
            index
            for index, port in enumerate(layer.inputs)
            if port.source not in self._rounded
            and _is_wide(port)
            and not (index in op.exact_inputs or op.reads_value(index))
        ]

    def kernel(self, layer: Layer, op: Operator, positions: Sequence[int], kernel: Callable[..., Any]) -> Any:
        """Return a kernel that rounds the inputs at these positions, calls the given one, and rounds its outputs."""
        emulation = self.emulation
        may_write = not keeps_arrays(op)
        if op.has_steps and emulation.rounds_steps:
            kernel = _in_steps(layer, op, emulation)

        @wraps(kernel)
        def run(*arguments: Any, **keywords: Any) -> Any:
            rounded = list(arguments)
            for index in positions:
                if rounded[index].dtype in _WIDE_DTYPES:
                    rounded[index] = emulation.input(layer, index, rounded[index])
            result = kernel(*rounded, **keywords)
            if type(result) is tuple:
                return tuple(finish(output, rounded) for output in result)
            return finish(result, rounded)

        def finish(output: Any, inputs: Sequence[Any]) -> Any:
            if not isinstance(output, np.ndarray) or output.dtype not in _WIDE_DTYPES:
                return output
            is_own = may_write and output.flags.writeable
            is_own = is_own and not any(np.may_share_memory(output, array) for array in inputs)
            return emulation.output(layer, output, output if is_own else None)

        return run

    def mark_rounded(self, layer: Layer) -> None:
        """Record that the outputs of an emulated layer need no rounding where they are read."""
        if self.emulation.rounds_outputs:
            self._rounded.update(layer.outputs)


def _in_steps(layer: Layer, op: Operator, emulation: Emulation) -> Callable[..., Any]:
    """Return a kernel that rounds the results of the steps inside of a layer."""

    def round_step(name: str, where: tuple[int, ...], array: Array) -> Array:
        return emulation.output(layer, array, array) if array.dtype in _WIDE_DTYPES else array

    def run(*inputs: Any) -> Any:
        return op.run_in_steps(round_step, *inputs)

    return run


def _is_wide(port: Port) -> bool:
    return port.element_type in _WIDE or port.element_type.is_dynamic


def _from_shapes(model: LayerGraph) -> set[Layer]:
    """Return the layers that follow from constants and from shapes of tensors alone."""
    found: set[Layer] = set()
    for layer in model.layers:
        op = layer.operator
        if op is None or not op.pure or layer.bodies:
            continue
        read = op.with_elements_read(layer.inputs)
        if all(port.source is not None and port.source.layer in found for port in read):
            found.add(layer)
    return found
