"""What is inferred of inputs that are known in part: it holds for all inputs that they may be, and says no less."""

import inspect
import random
from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
import pytest

from ovir.core.element_types import i32, i64
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_bounds
from ovir.diagnostics.errors import OperatorError
from ovir.fuzzing.cases import draw, operation_of, type_of
from ovir.fuzzing.making import VERSIONS, Make
from ovir.inference.known_values import as_tuple
from ovir.ops import find
from ovir.ops.base.operator import Operator

pytestmark = pytest.mark.slow

STRUCTURAL = ("If", "Loop", "TensorIterator", "Parameter", "Const", "ReadValue", "Assign")
PURE = [version for version in VERSIONS if version[0] not in STRUCTURAL]
CASES = 3

UNCOUNTED = ("Unique", "VariadicSplit")
"""Operations that need to know an axis or the lengths, to infer anything or how many outputs there are."""
WHOLE = (
    "BatchToSpace", "SpaceToBatch", "Slice", "StridedSlice", "Split", "VariadicSplit", "Unsqueeze", "Reshape", "Tile",
    "Gather", "DFT", "IDFT", "RDFT", "IRDFT", "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
)  # fmt: skip
"""Operations of which inference reads some values, such as axes and steps, only if they are known as a whole."""
COUNTING = (
    "NonMaxSuppression", "NMSRotated", "MulticlassNms", "NonZero", "Unique", "SegmentMax", "SparseFillEmptyRows"
)  # fmt: skip
"""Operations that make as many elements as they find: constants tell more than what they may be."""

Types = list[TensorType]


def legal(kind: str, opset: int) -> Iterator[tuple[Operator, Types]]:
    """Yield random operations, with types of constant inputs that they accept."""
    cls = find(kind, opset)
    assert cls is not None
    found = 0
    for seed in range(20):
        made = Make(kind, random.Random(f"{kind} {seed}"), opset)
        if draw(made, cls, np.random.default_rng(seed)) and (op := operation_of(cls, made)) is not None:
            found += 1
            yield op, list(map(type_of, made.inputs))
        if found == CASES:
            return
    assert found


def inferred(op: Operator, inputs: Sequence[TensorType]) -> Types | None:
    try:
        return list(as_tuple(inspect.unwrap(type(op).infer)(op, *inputs)))
    except OperatorError:
        return None


def replaced(inputs: Types, position: int, tensor: TensorType) -> Types:
    return [*inputs[:position], tensor, *inputs[position + 1 :]]


def holds(found: PartialShape, exact: PartialShape) -> bool:
    """Return whether all shapes of the second kind are of the first."""
    return found.rank is None or found.union(exact) == found


def less_known(inputs: Types) -> Iterator[tuple[str, Types]]:
    """Yield the inputs with less known of one of them, of all others, or of all."""
    ways = {
        "shapes": [PartialShape(None) for _ in inputs],
        "sizes": [PartialShape([UNKNOWN] * len(tensor.shape)) for tensor in inputs],
        "values": [tensor.shape for tensor in inputs],
    }
    for title, shapes in ways.items():
        less = [TensorType(tensor.element_type, shape) for tensor, shape in zip(inputs, shapes, strict=True)]
        yield f"no {title}", less
        for i in range(len(inputs) if len(inputs) > 1 else 0):
            yield f"no {title} of input {i}", replaced(inputs, i, less[i])
            yield f"{title} of input {i} only", replaced(less, i, inputs[i])


@pytest.mark.parametrize("version", PURE, ids=lambda version: "-".join(map(str, version)))
def test_less_is_accepted_and_what_is_inferred_of_it_holds(version: tuple[str, int]) -> None:
    for op, inputs in legal(*version):
        exact = inferred(op, inputs)
        for title, less in less_known(inputs):
            found = inferred(op, less)
            if op.type not in UNCOUNTED:
                assert exact is not None
                assert found is not None, (title, op, inputs)
                assert len(found) == len(exact)
                for one, other in zip(exact, found, strict=True):
                    assert one.element_type == other.element_type, (title, op, inputs)
                    assert holds(other.shape, one.shape), (title, op, inputs, str(one), str(other))


def between(inputs: Types) -> Iterator[tuple[int, TensorType, list[TensorType]]]:
    """Yield an input with a size or an element between bounds, with its position and all that it may be."""
    for position, tensor in enumerate(inputs):
        kind, shape = tensor.element_type, tensor.shape
        for axis, size in enumerate(shape.to_tuple()):
            sizes = range(max(size - 1, 0), size + 3)
            open_size = shape.with_dim(axis, Dimension(sizes[0], sizes[-1]))
            yield position, TensorType(kind, open_size), [TensorType(kind, shape.with_dim(axis, n)) for n in sizes]


def between_values(op: Operator, inputs: Types) -> Iterator[tuple[int, TensorType, list[TensorType]]]:
    """Yield an input that inference reads with an element between bounds, its position and all that it may be."""
    for position, tensor in enumerate(inputs):
        array = tensor.constant
        if not op.reads_value(position) or array is None or tensor.element_type not in (i32, i64):
            continue
        for place in {*range(array.size)} & {0, array.size - 1}:
            each = np.repeat(array[np.newaxis], 3, axis=0)
            each.reshape(3, -1)[:, place] += np.array([-1, 0, 1], array.dtype)
            low, high = each[0].astype(np.float64), each[2].astype(np.float64)
            bounds = from_bounds(tensor.element_type, low, high, sizes=True)
            values = [constant_type(one, tensor.element_type) for one in each]
            yield position, TensorType(tensor.element_type, tensor.shape, bounds), values


@pytest.mark.parametrize("version", PURE, ids=lambda version: "-".join(map(str, version)))
def test_what_is_between_bounds_is_inferred_as_all_that_it_may_be(version: tuple[str, int]) -> None:
    for op, inputs in legal(*version):
        for position, tensor, possible in (*between(inputs), *between_values(op, inputs)):
            each = [inferred(op, replaced(inputs, position, one)) for one in possible]
            if None in each:
                continue
            found = inferred(op, replaced(inputs, position, tensor))
            assert found is not None, (op, inputs, position, tensor)
            for output, one in enumerate(found):
                all_shapes = reduce(PartialShape.union, (outputs[output].shape for outputs in each))
                same = str(one.shape) == str(all_shapes)
                is_loose = version[0] in (*WHOLE, *COUNTING) and holds(one.shape, all_shapes)
                assert same or is_loose, (op, inputs, position, str(tensor), str(one), str(all_shapes))
