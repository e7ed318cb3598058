"""Sizes with one symbol are equal in every run, also where a size is 0 or 1, which many operations treat differently."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from fuzz.cases import VERSIONS, readable_cases
from numpy.typing import NDArray
from support.drawn_runs import results_of

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import nf4
from ovir.core.shapes import Dimension, PartialShape, symbol_of_sum
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_bounds
from ovir.diagnostics.errors import OperatorError
from ovir.inference.known_values import infer_with_values
from ovir.ops import find

MODELS = 6
"""Random models of each operation."""
ARRANGEMENTS = 2
"""Ways of giving symbols to sizes of a model."""
SIZES = (0, 1, 2, 3)
FIRST = 9_000_000
"""The first symbol; those of inference are smaller."""
TEMPLATE = {FIRST + i: FIRST + i for i in range(3)}


class Symbolic:
    """A tensor with open sizes, and open elements if inference reads it: a number, or a symbol from ``FIRST`` on."""

    def __init__(self, array: Any, kind: Any, is_read: bool, rng: np.random.Generator) -> None:
        self.array, self.kind = array, kind
        self.dims = [self._or_symbol(size, rng) for size in array.shape]
        self.elements: list[int] | None = None
        if is_read and array.dtype.kind in "iu" and array.dtype.itemsize >= 4 and rng.integers(3):
            self.dims = list(array.shape)
            self.elements = [self._or_symbol(int(n), rng) if n >= 0 else int(n) for n in array.ravel()]
        elif is_read:
            self.dims = list(array.shape)

    def _or_symbol(self, size: int, rng: np.random.Generator) -> int:
        return FIRST + int(rng.integers(3)) if rng.integers(3) else size

    @property
    def type(self) -> TensorType:
        shape = PartialShape([Dimension(0, None, dim) if dim >= FIRST else dim for dim in self.dims])
        if self.elements is None:
            return constant_type(self.array, self.kind) if shape.is_static else TensorType(self.kind, shape)
        numbers = np.array(self.elements, np.float64).reshape(self.array.shape)
        is_open = (numbers >= FIRST) & (numbers < FIRST + 3)  # numbers of the model may be larger, or infinite
        symbols = np.where(is_open, numbers, 0).astype(np.int64)
        bounds = np.where(is_open, 0, numbers), np.where(is_open, np.inf, numbers)
        return TensorType(self.kind, shape, from_bounds(self.kind, *bounds, symbols, sizes=True))

    def sized(self, sizes: Mapping[int, int]) -> NDArray[Any]:
        """Return an array in which the symbols have these sizes."""
        shape = [sizes.get(dim, dim) for dim in self.dims]
        if self.elements is not None:
            return np.array([sizes.get(n, n) for n in self.elements]).reshape(shape).astype(self.array.dtype)
        return np.resize(self.array, shape).astype(self.array.dtype)


def differing(tensor: TensorType, array: NDArray[Any], sizes: dict[int, int]) -> str | None:
    """Return how an array differs from what inference says; ``sizes`` are those of the symbols seen so far."""
    if not tensor.shape.contains(array.shape):
        return f"{array.shape} is not in {tensor.shape}"
    for dim, size in zip(tensor.shape.dims, array.shape, strict=True) if tensor.shape.rank is not None else ():
        if dim.symbol and dim.is_dynamic and sizes.setdefault(dim.symbol, size) != size:
            return f"{array.shape}, not {sizes[dim.symbol]}"
    if tensor.value is not None and tensor.value.constant is None and array.shape == tensor.value.lower.shape:
        for symbol, number in zip(tensor.value.symbols.ravel().tolist(), array.ravel().tolist(), strict=True):
            if symbol and sizes.setdefault(symbol, number) != number:
                return f"{array}, not {sizes[symbol]}"
    return None


@pytest.mark.slow
@pytest.mark.usefixtures("calls_are_made_once")
@pytest.mark.parametrize("index", range(len(VERSIONS)), ids=["-".join(map(str, version)) for version in VERSIONS])
def test_sizes_of_one_symbol_are_equal(index: int) -> None:
    rng = np.random.default_rng(index)
    cls = find(*VERSIONS[index])
    for case, model in readable_cases(index, MODELS):
        layer = next((layer for layer in model.layers if type(layer.operator) is cls), None)
        if layer is None or layer.bodies or not layer.operator.pure:
            continue
        given = dict(zip(model.parameters, case.feeds, strict=True))
        arrays = [given.get(p.source.layer, p.source.type.constant) if p.source else None for p in layer.inputs]
        types = [port.type for port in layer.inputs]
        if any(a is None or a.size > 512 or t.element_type == nf4 for a, t in zip(arrays, types, strict=True)):
            continue
        for _ in range(ARRANGEMENTS):
            inputs = [
                Symbolic(array, tensor.element_type, layer.operator.reads_value(i), rng)
                for i, (array, tensor) in enumerate(zip(arrays, types, strict=True))
            ]
            try:
                outputs = infer_with_values(layer.operator, [item.type for item in inputs])
            except (ovir.OvirError, OperatorError):
                continue
            for sizes in rng.permutation(list(product(SIZES, repeat=3)))[:16].tolist():
                known = dict(zip(TEMPLATE, sizes, strict=True))
                known |= {symbol_of_sum(symbol, n): size + n for symbol, size in known.items() for n in SIZES}
                drawn = [item.sized(known) for item in inputs]
                exact = [constant_type(array, item.kind) for array, item in zip(drawn, inputs, strict=True)]
                results = results_of(layer.operator, exact, drawn, 1 << 12)
                if results is None:
                    continue
                for tensor, result in zip(outputs, results, strict=True):
                    if layer.type == "Squeeze" and not tensor.shape.contains(result.shape):
                        continue  # inference takes a dimension among axes to be 1, and a run in which it is not fails
                    fault = differing(tensor, np.asarray(result), known)
                    assert fault is None, (fault, layer.operator, tensor, known, [item.type for item in inputs], drawn)


def test_equal_sums_of_a_size_and_a_number_have_one_symbol() -> None:
    x, new = ops.parameter([2, -1, 3], "f32", name="x"), ops.parameter([2, 1, 3], "f32", name="new")
    longer = ops.concat([ops.concat([x, new], 1), new], 1)
    size = ops.gather(ops.shape_of(x), np.array([1]), np.array(0))
    same, shorter = (
        ops.range(0, ops.squeeze(ops.add(end, np.int64([-1])), [0]), 1, "i64")
        for end in (ops.add(np.int64([3]), size), ops.add(size, np.int64([-1])))
    )
    ovir.Model([longer, same, shorter], [x, new])
    joined, ranged, negative = (layer.outputs[0].shape for layer in (longer, same, shorter))
    assert joined[1].symbol == symbol_of_sum(x.outputs[0].shape[1].symbol, 2) == ranged[0].symbol
    assert negative[0].symbol >> 40 == 0  # a size less than none is no size


@pytest.mark.parametrize(("symbol", "number"), [(0, 3), (5, -1), (5, 1 << 20), (symbol_of_sum(5, (1 << 20) - 1), 1)])
def test_sums_without_a_symbol(symbol: int, number: int) -> None:
    assert symbol_of_sum(symbol, number) == 0
    assert symbol_of_sum(symbol_of_sum(5, 7), -7) == 5
