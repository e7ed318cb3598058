"""Bounds of integers hold for whatever a run computes: of data at the ends of its type, and of sizes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from fuzz.cases import VERSIONS, readable_cases
from support.builder import Net
from support.drawn_runs import results_of
from support.kernel_contract import unwatched

import ovir
from ovir.core.element_types import (
    ElementType,
    boolean,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    nf4,
    u8,
    u16,
    u32,
    u64,
    value_range,
)
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_bounds, from_dimensions
from ovir.diagnostics.errors import OperatorError
from ovir.inference.known_values import infer_with_values
from ovir.ops import activation, arithmetic, comparison, find, reduction
from ovir.ops.base.operator import Operator
from ovir.ops.convert import Convert
from ovir.ops.select import Select
from ovir.ops.unary import Abs, Negative, Sign

INTEGERS = [i8, i16, i32, i64, u8, u16, u32, u64]
COUNT = 3
"""The number of elements of each tensor."""
SAMPLES = 24
STEPS = 8
UNARY = [Abs(), Negative(), Sign(), activation.ReLU(), activation.Clamp(min=-3.0, max=100.0)]
REDUCTIONS = [getattr(reduction, f"Reduce{kind}") for kind in ("Sum", "Prod", "L1", "L2", "Mean", "Max", "Min")]
_KINDS = (
    *("Add", "Subtract", "Multiply", "Divide", "FloorMod", "Mod", "Maximum", "Minimum"),
    *("SquaredDifference", "Power"),
)
BINARY = [getattr(arithmetic, kind)() for kind in _KINDS]
_RELATIONS = (*("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),)
COMPARISONS = [getattr(comparison, kind)() for kind in _RELATIONS]


class Known(NamedTuple):
    """What inference knows of a tensor, and what it holds in each of some runs."""

    type: TensorType
    arrays: list[Any]


def extremes(element_type: ElementType) -> list[int]:
    least, greatest = (int(end) for end in value_range(element_type))
    middle = -7, -1, 0, 1, 2, 5
    numbers = [least, least + 1, least // 2, *middle, greatest // 2, greatest // 2 + 1, greatest - 1, greatest]
    return [number for number in numbers if least <= number <= greatest]


class Expressions:
    """Random arithmetic of data, numbers and sizes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.known: list[Known] = []
        self.shapes = self.rng.integers([0, 2, 1], 7, (SAMPLES, COUNT))

    def pick(self, choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def data(self, element_type: ElementType) -> Known:
        numbers = np.array(extremes(element_type), element_type.to_dtype())
        return Known(TensorType(element_type, [COUNT]), [self.rng.choice(numbers, COUNT) for _ in range(SAMPLES)])

    def number(self, element_type: ElementType) -> Known:
        array = np.full(COUNT, self.pick(extremes(element_type)), element_type.to_dtype())
        return Known(constant_type(array, element_type), [array] * SAMPLES)

    def sizes(self, element_type: ElementType) -> Known:
        dims = [Dimension(0, None, 1), Dimension(2, 6, 2), Dimension(1, None)]
        value = from_dimensions(element_type, dims)
        return Known(TensorType(element_type, [COUNT], value), list(self.shapes.astype(element_type.to_dtype())))

    def of_type(self, element_type: ElementType) -> Known:
        fitting = [known for known in self.known if known.type.element_type == element_type]
        if fitting and self.rng.random() < 0.7:
            return self.pick(fitting[-3:])
        leaves = [self.data, self.number, *[self.sizes] * (element_type in (i32, i64))]
        return self.pick(leaves)(element_type)

    def step(self) -> tuple[Operator, list[Known]]:
        """Return an operation on tensors of which at least one is new or computed before."""
        last = self.known[-1].type.element_type if self.known else boolean
        element_type = last if last != boolean and self.rng.random() < 0.8 else self.pick(INTEGERS)
        first, second = self.of_type(element_type), self.of_type(element_type)
        truths = [known for known in self.known if known.type.element_type == boolean]
        axis = Known(constant_type(np.int64([0])), [np.int64([0])] * SAMPLES)
        chance = self.rng.random()
        if chance < 0.25 or element_type.is_real:
            return Convert(destination_type=self.pick([*INTEGERS, f32, f64])), [first]
        if chance < 0.4:
            return self.pick(UNARY), [first]
        if chance < 0.5:
            return self.pick(REDUCTIONS)(keep_dims=True), [first, axis]
        if chance < 0.55:
            return reduction.CumSum(exclusive=bool(self.rng.integers(2))), [first, axis]
        if chance < 0.65:
            return self.pick(COMPARISONS), [first, second]
        if chance < 0.75 and truths:
            return Select(), [self.pick(truths), first, second]
        return self.pick(BINARY), [first, second]

    def run(self) -> Iterator[tuple[Operator, list[Known], Known]]:
        """Yield operations with their inputs and outputs."""
        for _ in range(STEPS):
            op, inputs = self.step()
            types = [known.type for known in inputs]
            (output,) = infer_with_values(op, types)
            applied = op.applied(types, [output])
            with unwatched(applied):  # these calls differ in numbers only
                arrays = [applied.run(*given) for given in zip(*(known.arrays for known in inputs), strict=True)]
            if not _outgrows(applied, inputs):
                found = Known(output, arrays)
                self.known.append(found)
                yield op, inputs, found


def _outgrows(op: Operator, inputs: list[Known]) -> bool:
    """Return whether arithmetic of sizes leaves its type, of which inference takes that it does not happen."""
    element_type = op.output_types[0]
    values = [known.type.value for known in inputs]
    if not element_type.is_integral or not any(v is not None and v.marks.any() for v in values):
        return False
    with_reals = [[np.asarray(a, np.float64) for a in known.arrays] for known in inputs]
    if isinstance(op, reduction.ReductionBase | reduction.CumSum):
        with_reals[1] = inputs[1].arrays
    elif isinstance(op, Select):
        return False
    least, greatest = value_range(element_type)
    for given in zip(*with_reals, strict=True):
        result = given[0] if isinstance(op, Convert) else op.run(*given)
        if (result < least).any() or (result > greatest).any():
            return True
    return False


def _holds(tensor: TensorType, array: Any) -> bool:
    """Return whether a result lies within the bounds of its type."""
    value, is_real = tensor.value, tensor.element_type.is_real
    if value is None or value.constant is not None:
        return value is None or np.array_equal(value.constant, array, equal_nan=is_real)
    if is_real:  # an unknown number can be NaN
        return bool((value.is_unknown | ((value.lower <= array) & (array <= value.upper))).all())
    ends = value.lower.ravel(), np.ravel(array), value.upper.ravel()
    return all(_exact(low) <= number.item() <= _exact(high) for low, number, high in zip(*ends, strict=True))


def _exact(bound: float) -> float:
    """Return an integer for a finite bound: Python compares it with integers of 64 bits without rounding them."""
    return int(bound) if np.isfinite(bound) else float(bound)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_bounds_hold_for_all_results(block: int) -> None:
    known = 0
    for seed in range(block * 300, block * 300 + 300):
        with np.errstate(all="ignore"):
            for op, inputs, found in Expressions(seed).run():
                known += found.type.value is not None
                for array, *given in zip(found.arrays, *(known.arrays for known in inputs), strict=True):
                    assert _holds(found.type, array), (seed, op.type, found.type, found.type.value, array, given)
    assert known > 1000


def test_a_size_below_zero_that_passes_through_an_unsigned_type() -> None:
    net = Net()
    size = net.op("ShapeOf", net.parameter("x", "?"), opset=3)
    rest = net.op("Subtract", net.op("Convert", size, destination_type="u64"), net.const(np.uint64([5])))
    net.result(net.op("Less", net.op("Convert", rest, destination_type="i64"), net.const(np.int64([0]))))
    assert net.model().outputs[0].type.constant is None
    assert net.compiled()([np.zeros(2, np.float32)])[0].tolist() == [True]


@pytest.mark.parametrize(("element_type", "limit"), [("i32", 1 << 20), ("i64", 2**63 - 1)])
def test_sizes_are_taken_to_fit(element_type: str, limit: int) -> None:
    net = Net()
    sizes = net.op("ShapeOf", net.parameter("x", "?,?"), opset=3, output_type=element_type)
    one, seven, zero, most = (net.const(np.array([n] * 2), element_type) for n in (1, 7, 0, limit))
    missing = net.op("Maximum", net.op("Subtract", seven, sizes), zero)  # what is missing to 7, as Pad takes it
    total = net.op("Add", net.op("Minimum", net.op("Add", sizes, missing), most), one)
    net.result(net.op("Greater", total, zero))
    known = net.model().outputs[0].type.constant
    assert known is not None
    assert known.all()


# --------------------------------------------------------------------------- every operation

MODELS = 24
"""Random models of each operation that says something of partly known values."""


def following() -> list[tuple[int, type[Operator]]]:
    """Return the operations that infer values from bounds, with their places among all versions."""
    found = [(index, find(kind, opset)) for index, (kind, opset) in enumerate(VERSIONS)]
    return [
        (i, c) for i, c in found if c and (c.moves_elements or c.monotone or c.infer_value is not Operator.infer_value)
    ]


def around(array: Any, element_type: ElementType, rng: np.random.Generator) -> tuple[TensorType, Any]:
    """Return a type with bounds around numbers, of which some are known, and a function that draws from within."""
    center = array.astype(np.float64)
    least, greatest = (0, 1) if element_type == boolean else value_range(element_type)
    below, above = (rng.integers(0, 3, (2, *array.shape)) * rng.integers(0, 2, array.shape)).astype(np.float64)
    lower, upper = np.clip(center - below, least, greatest), np.clip(center + above, least, greatest)
    value = from_bounds(element_type, lower, upper, sizes=bool(rng.integers(2)))

    def draw() -> Any:
        steps = rng.random(array.shape) * (upper - lower)
        return np.asarray(lower + (steps if element_type.is_real else np.rint(steps))).astype(array.dtype)

    return TensorType(element_type, array.shape, value), draw


@pytest.mark.slow
@pytest.mark.parametrize(("index", "cls"), following(), ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.usefixtures("calls_are_made_once")
def test_values_within_bounds_give_results_within_bounds(index: int, cls: type[Operator]) -> None:
    rng = np.random.default_rng(index)
    compared = 0
    for case, model in readable_cases(index, MODELS):
        (layer,) = (layer for layer in model.layers if type(layer.operator) is cls)
        given = dict(zip(model.parameters, case.feeds, strict=True))
        arrays = [_array(port.source, given) for port in layer.inputs]
        types = [port.type for port in layer.inputs]
        if nf4 in (tensor.element_type for tensor in types) or not all(map(_is_small, arrays)):
            continue
        fixed = [layer.operator.reads_value(i) and bool(rng.integers(2)) for i in range(len(types))]
        known = [
            (constant_type(array, tensor.element_type), lambda array=array: array)
            if is_fixed
            else around(array, tensor.element_type, rng)
            for array, tensor, is_fixed in zip(arrays, types, fixed, strict=True)
        ]
        try:
            outputs = infer_with_values(layer.operator, [tensor for tensor, _ in known])
        except (ovir.OvirError, OperatorError):
            continue
        for _ in range(6):
            drawn = [draw() for _, draw in known]
            exact = [constant_type(a, tensor.element_type) for a, (tensor, _) in zip(drawn, known, strict=True)]
            results = results_of(layer.operator, exact, drawn, 1 << 16)
            if results is None:
                continue
            for tensor, result in zip(outputs, results, strict=True):
                if layer.type == "Squeeze" and not tensor.shape.contains(result.shape):
                    continue  # inference takes a dimension among axes to be 1, and a run in which it is not fails
                assert tensor.shape.contains(result.shape), (layer.operator, drawn, tensor)
                assert _holds(tensor, result), (layer.operator, drawn, tensor.value, result)
                compared += tensor.value is not None
    assert compared or cls.__name__ == "ExtractImagePatches"  # whose random images are larger


def _is_small(array: Any) -> bool:
    """Return whether there is an array, of a few finite numbers."""
    return array is not None and array.size <= 64 and array.dtype.kind in "iufb" and bool(np.isfinite(array).all())


def _array(source: Any, given: dict[Any, Any]) -> Any:
    """Return what a run feeds to a layer, or None if something computes it."""
    return given.get(source.layer) if source.layer in given else source.type.constant
