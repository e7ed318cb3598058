"""Random cases of single operations, run with larger inputs or attributes than they are drawn with."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from time import process_time

import numpy as np
from fuzz.cases import VERSIONS, readable_cases

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.fast.registry import bind
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Parameter
from ovir.runtime.step_binder import bind_kernel
from support.binding import LoneBinder
from support.kernel_contract import unwatched

_MOST_ELEMENTS, _MOST_OUTPUTS = 1 << 23, 1000
_MOST_WORK, _MOST_TEMPORARIES = 1e8, 1 << 25
"""A case whose run declares more work or bytes is not grown further: the next one may take 16 times as much."""


class TooLargeError(Exception):
    """A case needs more elements or outputs than a test should make."""


@dataclass
class Measured:
    """A run of a case: the operator as it was applied, what it read and made, and the seconds that it took."""

    op: Operator
    arrays: list[Array]
    results: list[Array]
    inputs: list[TensorType]
    outputs: list[TensorType]
    seconds: float

    @property
    def is_large(self) -> bool:
        """Whether the operation declares much work, or that it takes much memory."""
        op, inputs, outputs = self.op, self.inputs, self.outputs
        return op.work(inputs, outputs) > _MOST_WORK or op.temporary_bytes(inputs, outputs) > _MOST_TEMPORARIES

    def peak(self) -> int:
        """Return the bytes that the fast form, or else the kernel, takes besides its inputs and outputs."""
        made = [(array.shape, array.dtype) for array in self.results]
        tracemalloc.start()
        try:
            with np.errstate(all="ignore"), unwatched(self.op):
                binding = LoneBinder(tuple(self.arrays), made, set())
                if self.op.moves_elements or not bind(self.op, binding, *self.arrays):  # tables of moves are limited
                    binding = LoneBinder(tuple(self.arrays), made, set())
                    bind_kernel(binding, self.op.run, (True,) * len(made))
                binding.run()
            return tracemalloc.get_traced_memory()[1] - sum(array.nbytes for array in self.results)
        finally:
            tracemalloc.stop()


@dataclass
class Applied:
    """An operator and the arrays that it reads."""

    op: Operator
    arrays: list[Array]
    types: list[ElementType]

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def run(self) -> Measured:
        """Run the kernel."""
        inputs = [constant_type(array, given) for array, given in zip(self.arrays, self.types, strict=True)]
        inferred = _listed(self.op.infer(*inputs))
        if len(inferred) > _MOST_OUTPUTS or sum(tensor.shape.least_size for tensor in inferred) > _MOST_ELEMENTS:
            raise TooLargeError
        op = self.op.applied(inputs, inferred)
        with np.errstate(all="ignore"), unwatched(op):
            start = process_time()
            results = _listed(op.run(*self.arrays))
            seconds = process_time() - start
        outputs = [constant_type(array, tensor.element_type) for array, tensor in zip(results, inferred, strict=True)]
        return Measured(op, self.arrays, results, inputs, outputs, seconds)

    def repeated(self, chosen: tuple[int, ...], axis: int, times: int) -> Applied | None:
        """Return the case with the elements of some inputs repeated along an axis; None if they have no such axis."""
        arrays = list(self.arrays)
        for index in chosen:
            if axis >= arrays[index].ndim:
                return None
            arrays[index] = np.ascontiguousarray(np.repeat(arrays[index], times, axis))
        return replace(self, arrays=arrays)

    def grown(self, size: int) -> Iterator[Measured]:
        """Yield runs of the case with inputs of about ``size`` bytes, each grown along another axis."""
        few = range(min(len(self.arrays), 4))
        choices = [chosen for count in reversed(few) for chosen in combinations(few, count + 1)]
        for axis in range(5):
            for chosen in choices:
                larger: Applied | None = self
                found: Measured | None = None
                while larger is not None and larger.bytes < size and (larger := larger.repeated(chosen, axis, 4)):
                    try:
                        found = larger.run()
                    except (ovir.OvirError, OperatorError, TooLargeError, ValueError, MemoryError):
                        break
                    if found.is_large or larger.bytes + sum(map(_bytes, found.outputs)) > size:
                        yield found
                        break
                if found is not None:
                    break


def cases_of(index: int, count: int) -> Iterator[Applied]:
    """Yield cases of an operation version whose inputs all have elements."""
    for case, model in readable_cases(index, count):
        fed = dict(zip([port.layer for port in model.inputs], case.feeds, strict=True))
        for layer in model.layers:
            if layer.type != VERSIONS[index][0] or layer.operator is None or layer.bodies or not layer.operator.pure:
                continue
            sources = [port.source for port in layer.inputs if port.source is not None]
            arrays = [
                fed[s.layer] if isinstance(s.layer.operator, Parameter) else s.layer.operator.data for s in sources
            ]
            if arrays and all(array.size for array in arrays):
                yield Applied(layer.operator, arrays, [source.element_type for source in sources])


def _listed(value: object) -> list:
    return list(value) if isinstance(value, tuple) else [value]


def _bytes(tensor: TensorType) -> int:
    return tensor.shape.least_size * max(tensor.element_type.bits // 8, 1)
