"""Fast kernels of a few NumPy functions: which operations have one, and that it gives the same as ``run``."""

import numpy as np
import pytest
from support.tensors import applied_to

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType as Type
from ovir.core.element_types import bf16, boolean, f32, f64, i32, i64, u1, u8
from ovir.core.numpy_settings import kernel_settings
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.fast.registry import kernel_of
from ovir.ops.activation import Clamp, ReLU, Sigmoid, Tanh
from ovir.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply
from ovir.ops.base.operator import Operator
from ovir.ops.convert import Convert
from ovir.ops.generate import Range4
from ovir.ops.matmul import MatMul
from ovir.ops.normalization import SoftMax8
from ovir.ops.reduction import (
    ReduceL1,
    ReduceLogicalAnd,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReductionBase,
)
from ovir.ops.unary import Cosh, Exp, Floor, Sqrt


@pytest.mark.parametrize(
    ("op", "element_type", "is_fast"),
    [
        (Add(), f32, True),
        (Add(), bf16, False),
        (Add(), u1, False),
        (Add(auto_broadcast="none"), f32, False),
        (Multiply(), i32, True),
        (Multiply(), u8, False),  # it saturates
        (Divide(), f32, True),
        (Divide(), i32, False),
        (Convert(destination_type=f32), i32, True),
        (Convert(destination_type=bf16), i32, False),
        (Convert(destination_type=i32), f32, False),
        (Range4(output_type=i64), i64, True),
        (Range4(output_type=f32), i64, False),
        (Range4(output_type=i64), f32, False),
        (Maximum(), f32, True),
        (Minimum(), bf16, False),
        (MatMul(), f64, True),
        (MatMul(), i32, False),
        (SoftMax8(axis=0), f32, True),
        (SoftMax8(axis=0), bf16, False),
        (Clamp(min=0, max=1), f32, True),
        (Clamp(min=0, max=1), i32, False),
        (Tanh(), f32, True),
        (Tanh(), i32, False),
        (Sqrt(), f64, True),
        (Sqrt(), i64, False),
        (ReduceSum(), f32, True),
        (ReduceSum(), bf16, False),
        (ReduceSum(), i32, True),
        (ReduceSum(), u8, False),  # it saturates
        (ReduceMean(), f32, True),
        (ReduceMean(), i32, False),  # it truncates
        (ReduceMax(), u8, True),
        (ReduceLogicalAnd(), boolean, True),
        (ReduceL1(), f32, False),
    ],
)
def test_which_operations_call_one_function(op: Operator, element_type: Type, is_fast: bool) -> None:
    assert kernel_of(op) == op.run  # before its types are known
    count = {Convert: 1, SoftMax8: 1, Clamp: 1, Tanh: 1, Sqrt: 1, Range4: 3}.get(type(op), 2)
    types = [TensorType(element_type, [] if count == 3 else [2])] * count
    if isinstance(op, ReductionBase):
        types[1] = TensorType(i64, [1])
    outputs = op.infer(*types)
    assert isinstance(outputs, TensorType)
    applied = op.applied(types, (outputs,))
    assert (kernel_of(applied) != applied.run) == is_fast


def test_a_step_of_0_is_refused() -> None:
    inputs = [np.array(number) for number in (0, 5, 0)]
    op = applied_to(Range4(output_type=i64), *map(np.array, (0, 5, 1)))
    with pytest.raises(OperatorError, match="step must not be 0"):
        kernel_of(op)(*inputs)


RNG = np.random.default_rng(7)
DATA = (RNG.standard_normal((5, 300, 37)) + 1).astype(np.float32)
LAYOUTS = {"C": DATA, "F": np.asfortranarray(DATA), "reversed": DATA[:, ::-1, ::-1], "every second": DATA[:, ::2]}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axes", [0, [1], [-1], [0, 1], [2, 0], [1, 2], [0, 1, 2], [1, 1], []])
def test_reductions_add_up_in_the_order_of_run(axes: object, layout: str) -> None:
    data, along = LAYOUTS[layout], np.array(axes, np.int64)
    for cls in (ReduceSum, ReduceMean, ReduceProd, ReduceMax, ReduceMin):
        for keep_dims in (False, True):
            op = applied_to(cls(keep_dims=keep_dims), data, along)
            expected, found = op.run(data, along), kernel_of(op)(data, along)
            np.testing.assert_array_equal(found, expected, strict=True)
            assert isinstance(found, np.ndarray)


@pytest.mark.parametrize("cls", [ReduceSum, ReduceMean, ReduceProd, ReduceMax, ReduceMin])
def test_reductions_of_scalars_and_of_nan(cls: type[ReductionBase]) -> None:
    rows = np.float32([[1, np.nan, -2], [np.nan, np.nan, np.nan], [np.inf, -np.inf, 0]])
    for data, axes in ((rows, [1]), (rows, [0]), (rows[0, 0], []), (np.array(np.nan, np.float32), [])):
        array, along = np.asarray(data), np.array(axes, np.int64)
        op = applied_to(cls(keep_dims=True), array, along)
        with kernel_settings():
            np.testing.assert_array_equal(kernel_of(op)(array, along), op.run(array, along), strict=True)


def test_axes_and_ranks_that_a_run_shows() -> None:
    data, other = TensorType(f32, PartialShape(None)), TensorType(i64, PartialShape(None))
    op = ReduceSum().applied([data, other], [data])
    kernel = kernel_of(op)
    for axes in ([0], [1], [2], [0, 2], [0], [], [1, 1]):
        for array in (DATA, DATA[:, :0], DATA[..., :4, np.newaxis]):
            along = np.array(axes)
            np.testing.assert_array_equal(kernel(array, along), op.run(array, along), strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("cls", [Maximum, Minimum])
def test_extremes_are_the_first_input_where_the_second_is_nan(cls: type[Operator], dtype: type) -> None:
    numbers = np.array([1, 2, -3, 0], dtype)
    if dtype is np.float32:
        numbers = np.float32([1, -2, np.nan, np.inf, -np.inf, 0, -0.0])
    a, b = numbers[:, np.newaxis], numbers
    op = applied_to(cls(), a, b)
    np.testing.assert_array_equal(kernel_of(op)(a, b), op.run(a, b), strict=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_softmax_calls_the_functions_of_run(axis: int, layout: str) -> None:
    data = 40 * LAYOUTS[layout]
    before = data.copy()
    op = applied_to(SoftMax8(axis=axis), data)
    for part in (data, data[:0], data[:, :0]):
        np.testing.assert_array_equal(kernel_of(op)(part), op.run(part), strict=True)
    np.testing.assert_array_equal(data, before)


def test_softmax_of_unknown_ranks_runs() -> None:
    unknown = TensorType(f32, PartialShape(None))
    op = SoftMax8(axis=-1).applied([unknown], [unknown])
    assert kernel_of(op) == op.run
    scalar = applied_to(SoftMax8(axis=0), np.float32(3))
    np.testing.assert_array_equal(kernel_of(scalar)(np.array(3, np.float32)), np.float32(1))


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("a", "b"), [((2, 3, 3), (3, 3)), ((3,), (3, 3)), ((3, 3), (3,)), ((3,), (3,))])
def test_products_of_all_ranks(a: tuple[int, ...], b: tuple[int, ...], transpose_a: bool, transpose_b: bool) -> None:
    x, y = RNG.standard_normal(a), RNG.standard_normal(b)
    op = applied_to(MatMul(transpose_a=transpose_a, transpose_b=transpose_b), x, y)
    np.testing.assert_array_equal(kernel_of(op)(x, y), op.run(x, y), strict=True)


def test_products_say_which_sizes_do_not_match() -> None:
    op = applied_to(MatMul(), DATA, DATA[0].T)
    with pytest.raises(OperatorError, match=r"37 columns and 36 rows do not match"):
        kernel_of(op)(DATA, DATA[0].T[1:])


def test_clamp_takes_ends_beyond_the_range_of_its_type() -> None:
    data = np.float32([-np.inf, -3, np.nan, 3, np.inf])
    kernel = kernel_of(applied_to(Clamp(min=-1e39, max=1e39), data))
    np.testing.assert_array_equal(kernel(data), data)


@pytest.mark.parametrize("data", [*LAYOUTS.values(), DATA.ravel()[::-1]], ids=[*LAYOUTS, "backwards"])
def test_functions_of_real_numbers_depend_on_no_layout(data: Array) -> None:
    for op in (Tanh(), Clamp(min=-0.3, max=1.7), ReLU(), Sigmoid(), Sqrt(), Exp(), Cosh(), Floor()):
        applied = applied_to(op, data)
        with kernel_settings():
            np.testing.assert_array_equal(kernel_of(applied)(data), applied.run(data), strict=True)
    scalar = np.array(0.7, np.float32)
    assert isinstance(kernel_of(applied_to(Tanh(), scalar))(scalar), np.ndarray)
