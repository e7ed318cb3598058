"""Errors of layers that fail: one error with its place, whatever exception the kernel raised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from math import prod

from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape, RankError
from ovir.core.tensor_types import TensorType, array_text, constant_type
from ovir.diagnostics.codes import INTERNAL, NOT_SUPPORTED, OUTSIDE_SPEC, RUN
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import OperatorError, OvirError, RunError
from ovir.diagnostics.wording import size_text
from ovir.graph.layers import Layer

_TOO_BIG = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "Maximum allowed size exceeded",
    "iterator is too large",
)
"""The beginnings of NumPy's ValueError for an array that no machine can hold."""


def failed(layer: Layer, error: Exception, arguments: Sequence[Array]) -> OvirError:
    """Return the error for an exception that a layer's kernel raised on these arguments.

    A kernel may rely on what inference has checked; if sizes were unknown then, inference on the actual sizes explains
    what does not match.
    """
    if isinstance(error, OvirError):  # an error in a body, which has its place already
        return error
    if isinstance(error, MemoryError) or str(error).startswith(_TOO_BIG):
        return out_of_memory(layer, error, _outputs(layer, arguments))
    if not isinstance(error, OperatorError):
        error = explain_failure(layer, arguments) or error
    if isinstance(error, OperatorError):
        code = error.code if error.code in (NOT_SUPPORTED, OUTSIDE_SPEC, INTERNAL) else RUN
        hint = layer.fault_hint(error) if code is INTERNAL else error.hint
        return RunError(diagnose(code, error.message, layer.place, hint=hint))
    shown = ", ".join(map(array_text, arguments))
    message = f"the kernel failed on {shown or 'no inputs'}: {type(error).__name__}: {error}"
    return RunError(diagnose(INTERNAL, message, layer.place, hint=layer.fault_hint(error)))


@contextmanager
def memory_errors_named(layer: Layer) -> Iterator[None]:
    """Raise a RunError that names the layer for a MemoryError, where its tensors are allocated."""
    try:
        yield
    except MemoryError as error:
        raise failed(layer, error, ()) from error


def out_of_memory(layer: Layer, error: Exception, tensors: Sequence[TensorType]) -> RunError:
    """Return the error for memory that the system does not grant, with the sizes of a layer's outputs."""
    sizes = []
    reason = str(error) if isinstance(error, MemoryError) else ""
    for tensor in tensors:
        if tensor.shape.is_static and tensor.element_type.kind not in ("dynamic", "string"):
            size = prod(tensor.shape.to_tuple()) * tensor.element_type.to_dtype().itemsize
            sizes.append(f"its output {tensor} takes {size_text(size)}")
            if 0 <= _size_asked_for(error) - size < _PADDING:
                reason = ""  # it is about this output, in other units
    shown = "; ".join(filter(None, [*sizes, reason]))
    return RunError(diagnose(RUN, f"out of memory: {shown}" if shown else "out of memory", layer.place))


_PADDING = 4096
"""An array has fewer bytes than this beside its elements."""


def _size_asked_for(error: Exception) -> int:
    """Return the bytes of the array that NumPy could not allocate, 0 if it does not say."""
    shape, dtype = getattr(error, "shape", ()), getattr(error, "dtype", None)
    return 0 if dtype is None else prod(shape) * int(dtype.itemsize)


def _outputs(layer: Layer, arguments: Sequence[Array]) -> Sequence[TensorType]:
    """Return the inferred types of the outputs of a layer for these arguments."""
    infer = inference_for(layer, arguments)
    if infer is not None:
        with suppress(Exception):  # inference may refuse what ran out of memory, and the sizes are only shown
            inferred = infer()
            return inferred if isinstance(inferred, tuple) else (inferred,)
    return [port.type for port in layer.outputs]


def explain_failure(layer: Layer, arrays: Sequence[Array]) -> OperatorError | None:
    """Return the error with which inference rejects these inputs of a layer, None if it accepts them.

    Layers with bodies are left out, as their inference would infer all layers of the bodies.
    """
    infer = inference_for(layer, arrays)
    if infer is None:
        return None
    try:
        infer()
    except OperatorError as error:
        return error
    except RankError as error:
        return OperatorError(f"an output cannot be an array: {error}")
    except Exception:
        return None  # the caller reports its own failure, and this one adds nothing
    return None


def inference_for(layer: Layer, arrays: Sequence[Array]) -> partial[TensorType | tuple[TensorType, ...]] | None:
    """Return the inference of a layer with the types of these inputs; None if it cannot be inferred for them."""
    if layer.operator is None or layer.bodies:
        return None
    if len(arrays) != len(layer.inputs):
        return None
    inputs = []
    for index, (port, array) in enumerate(zip(layer.inputs, arrays, strict=True)):
        element_type = port.element_type
        if element_type.is_dynamic or layer.operator.reads_value(index):
            inputs.append(constant_type(array, None if element_type.is_dynamic else element_type))
        else:
            inputs.append(TensorType(element_type, PartialShape(array.shape)))
    return partial(layer.operator.infer, *inputs)
