"""The check of all kernels that runs beside the tests does find what it is there for."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.kernel_contract import _Call, _calls, _layout_faults, faults, watched_run

from ovir.core.arrays import Array
from ovir.core.element_types import f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.base.binder_protocol import Binder
from ovir.fast.registry import fast, fast_kernel
from ovir.ops.base.operator import Operator


class _Faulty(Operator):
    type = "Faulty"
    opset = 1
    input_types = (f32,)
    output_types = (f32, f32)


def _writes(op: Operator, data: Array) -> Array:
    data[0] = 5
    return data + data


def _overlapping(op: Operator, data: Array) -> tuple[Array, Array]:
    both = np.zeros(4, np.float32)
    return both[:3], both[2:]


@pytest.mark.parametrize(
    ("run", "found"),
    [
        (lambda op, data: data + data, []),
        (lambda op, data: data[1:], ["Faulty-1: output 0 shares memory with an input, and views is False"]),
        (_writes, ["Faulty-1 wrote to input 0"]),
        (lambda op, data: data[0], ["Faulty-1: output 0 is a float32, not an array"]),
        (lambda op, data: data.astype(np.int32), ["Faulty-1: output 0 is int32, inferred was f32"]),
        (_overlapping, ["Faulty-1: outputs 0 and 1 overlap"]),
    ],
)
def test_faults_are_found(run: Callable[..., Any], found: list[str]) -> None:
    watched_run(run)(_Faulty(), np.ones(3, np.float32))
    assert faults == found
    faults.clear()
    _calls.clear()


class _Doubling(Operator):
    """An operation of any type, whose other forms the subclasses get wrong."""

    type = "Doubling"
    opset = 1
    input_types = (f32,)
    output_types = (f32,)
    output_shapes = (PartialShape([3]),)

    def infer(self, data: TensorType) -> TensorType:
        return data

    def run(self, data: Array) -> Array:
        return data + data


class _InOrderOfMemory(_Doubling):
    def run(self, data: Array) -> Array:
        return np.frombuffer(data.tobytes("A"), data.dtype).reshape(data.shape)


class _WithFastForm(_Doubling):
    pass


@fast(_WithFastForm)
def _keeping_results(op: _WithFastForm, binder: Binder, *inputs: Array) -> bool:
    out, seen = binder.output(), {}

    def call() -> None:
        key = float(inputs[0].sum())
        out[...] = seen.setdefault(key, inputs[0] + inputs[0])

    binder.call(call)
    return True


class _WithFastKernel(_Doubling):
    pass


fast_kernel(_WithFastKernel)(lambda op: lambda data: data * 3)


@pytest.mark.parametrize(
    ("cls", "shape", "message"),
    [
        (_Doubling, [3], "^$"),
        (_InOrderOfMemory, [2, 3], r"output 0 of inputs that are fortran, of shapes \[\(2, 3\)\], differs"),
        (_WithFastForm, [3], r"output 0 of float32\[3\] differs bound, .* in the other run"),
        (_WithFastKernel, [3], r"output 0 of float32\[3\] differs from its fast kernel"),
    ],
)
def test_faults_of_calls_that_are_made_again_are_found(cls: type[_Doubling], shape: list[int], message: str) -> None:
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = "\n".join(_layout_faults(_Call(cls(), cls.run, (data,), {})))
    faults.clear()
    _calls.clear()
    assert re.search(message, found)
