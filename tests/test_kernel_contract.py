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


def _writes_to_what_it_takes_for_a_copy(op: Operator, data: Array) -> Array:
    rows = np.ascontiguousarray(data.T)
    rows += 1
    return rows


def _reads_memory_in_order(op: Operator, data: Array) -> Array:
    return np.frombuffer(data.tobytes("A"), data.dtype).reshape(data.shape)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (_writes_to_what_it_takes_for_a_copy, "Faulty-1 wrote to input 0, which was fortran"),
        (_reads_memory_in_order, r"Faulty-1: output 0 of inputs that are fortran, of shapes \[\(2, 3\)\], differs"),
    ],
)
def test_faults_of_other_layouts_are_found(run: Callable[..., Any], message: str) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = "\n".join(_layout_faults(_Call(_Faulty(), run, (data,), {})))
    assert re.search(message, found)


class _Doubling(Operator):
    """An operation of any type, whose fast form the subclasses get wrong."""

    type = "Doubling"
    opset = 1
    input_types = (f32,)
    output_types = (f32,)
    output_shapes = (PartialShape([3]),)

    def infer(self, data: TensorType) -> TensorType:
        return data

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return data + data


class _Remembering(_Doubling):
    pass


@fast(_Remembering)
def _remembering(op: _Remembering, binder: Binder, *inputs: Array) -> bool:
    out, seen = binder.output(), {}

    def call() -> None:
        key = float(inputs[0].sum())
        out[...] = seen.setdefault(key, inputs[0] + inputs[0])

    binder.call(call)
    return True


class _ReadingOut(_Doubling):
    pass


@fast(_ReadingOut)
def _reading_out(op: _ReadingOut, binder: Binder, *inputs: Array) -> bool:
    if inputs[0].dtype == np.float16:
        binder.output()
        return True
    return False


class _RefusingIntegers(_Doubling):
    def run(self, data: Array, *, out: Array | None = None) -> Array:
        if data.dtype.kind == "i":
            raise TypeError("no integers")
        return data + data


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (_Doubling, "^$"),
        (_Remembering, r"Doubling-1: output 0 of float32\[3\] differs bound, .* in the other run"),
        (_ReadingOut, r"Doubling-1: output 0 of float16\[3\] differs bound, .* in the first run"),
        (_RefusingIntegers, r"Doubling-1 fails on inputs of i32: TypeError\('no integers'\)"),
    ],
)
def test_faults_of_later_runs_and_other_types_are_found(cls: type[_Doubling], message: str) -> None:
    found = "\n".join(_layout_faults(_Call(cls(), cls.run, (np.float32([1, 2, 3]),), {})))
    faults.clear()
    _calls.clear()
    assert re.search(message, found)


class _WithFastKernel(_Faulty):
    """An operation whose fast kernel is wrong."""

    def run(self, data: Array) -> Array:
        return data + data


fast_kernel(_WithFastKernel)(lambda op: lambda data: data * 3)


def test_faults_of_fast_kernels_are_found() -> None:
    call = _Call(_WithFastKernel(), lambda op, data: data + data, (np.ones(3, np.float32),), {})
    assert list(_layout_faults(call)) == ["Faulty-1: output 0 of float32[3] differs from its fast kernel"]
