"""Runs of exported models: by onnxruntime, or by the reference implementation of the package onnx."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir

from ovir.core import parallel
from ovir.core.arrays import Array
from ovir.core.element_types import ELEMENT_TYPES, ElementType, string
from ovir.core.encoding import decode, encode
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import RunError
from ovir.export.exported import Exported
from ovir.export.support import data_type, spelled
from ovir.system.progress import stage


class OnnxSession(Protocol):
    """An ONNX model that is ready to run."""

    def run(self, arrays: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Return some outputs for arrays of all inputs, by their names in ONNX."""


class OnnxRuntimeSession:
    """A model in onnxruntime, on the CPU. Raise RunError if it refuses the model, or fails in a run."""

    def __init__(self, exported: Exported, *, threads: int | None = None) -> None:
        with stage("loading onnxruntime"):
            import onnxruntime

        self._runtime = onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised
        # Beside QuantizeLinear onnxruntime would quantize weights of f32 as well, which changes results by percents.
        options.add_session_config_entry("session.disable_quant_qdq", "1")
        threads = threads or parallel.restriction()
        if threads is not None:
            options.intra_op_num_threads = threads
        large = _large_weights(exported)
        self._weights = [self._value(np.asarray(tensor.numpy())) for tensor in large.values()]
        """Memory that the session reads and does not own."""
        options.add_external_initializers([value.name for value in large], self._weights)
        try:
            with stage("compiling in onnxruntime"):
                self._session = onnxruntime.InferenceSession(
                    _without(large, exported),
                    options,
                    providers=["CPUExecutionProvider"],
                    disabled_optimizers=_unsafe_optimizers(exported),
                )
        except Exception as error:  # onnxruntime raises classes of its own, which share no public base
            raise _refused("compile", error) from None
        _return_memory()
        self._dtypes = {end.name: _element_type(end.type).to_dtype() for end in self._session.get_inputs()}
        ends = (*self._session.get_inputs(), *self._session.get_outputs())
        self._is_plain = all(_element_type(end.type) in _PLAIN for end in ends)

    def run(self, arrays: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        # An element type that ONNX lacks is held as a wider one.
        arrays = {
            name: a if a.dtype == self._dtypes[name] else a.astype(self._dtypes[name]) for name, a in arrays.items()
        }
        try:
            if self._is_plain:
                feeds = {
                    name: array.astype(object) if array.dtype.kind == "T" else array for name, array in arrays.items()
                }
                return [_plain(array) for array in self._session.run(list(outputs), feeds)]
            values = {name: self._value(array) for name, array in arrays.items()}
            return [_array(value) for value in self._session.run_with_ort_values(list(outputs), values)]
        except Exception as error:
            raise _refused("run", error) from None

    def _value(self, array: Array) -> Any:
        array = np.asarray(array, order="C")  # keeps the rank 0 of scalars
        if array.dtype.isbuiltin == 1:
            return self._runtime.OrtValue.ortvalue_from_numpy(array)
        element_type = ElementType.from_dtype(array.dtype)
        if element_type.bits < 8:
            packed = encode(array, element_type)  # ONNX packs as IR does
            value = self._runtime.OrtValue.ortvalue_from_shape_and_type(
                array.shape, int(data_type(element_type)), "cpu"
            )
            ctypes.memmove(value.data_ptr(), packed.ctypes.data, packed.size)
            return value
        raw = array.view(f"u{array.dtype.itemsize}")
        return self._runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, int(data_type(element_type)))


class ReferenceSession:
    """A model in ``onnx.reference``."""

    def __init__(self, exported: Exported) -> None:
        from onnx.reference import ReferenceEvaluator

        try:
            self._evaluator = ReferenceEvaluator(ir.to_proto(exported.onnx))
        except Exception as error:  # it may raise anything
            raise RunError(diagnose(ENGINE, f"onnx.reference cannot read the model: {error}")) from None

    def run(self, arrays: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        try:
            found = self._evaluator.run(list(outputs), dict(arrays))
        except Exception as error:  # an evaluation may raise anything
            raise RunError(diagnose(ENGINE, f"onnx.reference cannot run the model: {error}")) from None
        return [_plain(np.asarray(array)) for array in found]


_PLAIN = frozenset(t for t in ELEMENT_TYPES if t == string or (t.dtype is not None and t.dtype.isbuiltin == 1))
"""The types that onnxruntime takes as arrays of NumPy."""


_LARGE = 1 << 12
"""The bytes from which weights are not copied into the model: onnxruntime reads them where they are in memory."""

_MEMORY = "memory"
"""The name that stands for a file in a model whose weights are in memory."""


def _large_weights(exported: Exported) -> dict[ir.Value, ir.TensorProtocol]:
    """Return the large initializers and their contents, except strings and elements of less than a byte, which
    onnxruntime takes from the message only."""
    found = {value: value.const_value for value in exported.onnx.graph.initializers.values()}
    return {
        value: tensor
        for value, tensor in found.items()
        if tensor is not None
        and tensor.nbytes >= _LARGE
        and tensor.dtype != ir.DataType.STRING
        and tensor.dtype.itemsize >= 1
    }


def _without(weights: Mapping[ir.Value, ir.TensorProtocol], exported: Exported) -> bytes:
    """Return the model as a message of protobuf in which the contents of some initializers are missing."""
    for value, tensor in weights.items():
        value.const_value = ir.ExternalTensor(
            _MEMORY, 0, tensor.nbytes, tensor.dtype, shape=value.shape or ir.Shape([]), name=tensor.name or ""
        )
    try:
        return bytes(ir.to_proto(exported.onnx).SerializeToString())
    finally:
        for value, tensor in weights.items():
            value.const_value = tensor


def _return_memory() -> None:
    """Let glibc return the memory in which onnxruntime has prepared weights, up to twice their size in f32."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _unsafe_optimizers(exported: Exported) -> list[str]:
    """Return the names of the optimizers of onnxruntime that must not change this model.

    One of them converts constants of f16 to f32. In release 1.32 it corrupts memory if the body of a Loop or Scan reads
    such constants.
    """
    attributes = (attribute for node in exported.onnx.graph for attribute in node.attributes.values())
    has_bodies = any(attribute.type == ir.AttributeType.GRAPH for attribute in attributes)
    return ["FuseFp16InitializerToFp32NodeTransformer"] if has_bodies else []


def _element_type(text: str) -> ElementType:
    element_type = spelled(text)
    assert element_type is not None, text
    return element_type


def _array(value: Any) -> Array:
    """Return a tensor of onnxruntime as an array, also of a type that NumPy has from ml_dtypes only."""
    element_type = _element_type(value.data_type())
    if element_type.to_dtype().isbuiltin == 1:
        found: Array = np.asarray(value.numpy())
        return found
    shape = value.shape()
    size = element_type.stored_bytes(math.prod(shape))
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    return decode(np.frombuffer(raw, np.uint8), element_type, shape)


def _plain(array: Array) -> Array:
    """Return an array as ovir holds it: strings are not objects."""
    return array.astype(string.to_dtype()) if array.dtype.kind == "O" else np.asarray(array)


def _refused(what: str, error: Exception) -> RunError:
    text = " ".join(str(error).split())
    return RunError(diagnose(ENGINE, f"onnxruntime cannot {what} the exported model: {text}"))
