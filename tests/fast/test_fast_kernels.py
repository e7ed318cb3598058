"""Fast kernels of one NumPy function: which operations have one, and how it differs from ``run``."""

import numpy as np
import pytest
from support.tensors import applied_to

from ovir.core.element_types import ElementType as Type
from ovir.core.element_types import bf16, f32, i32, i64, u1, u8
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.fast.registry import kernel_of
from ovir.ops.arithmetic import Add, Divide, Multiply
from ovir.ops.base.operator import Operator
from ovir.ops.convert import Convert
from ovir.ops.generate import Range4


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
    ],
)
def test_which_operations_call_one_function(op: Operator, element_type: Type, is_fast: bool) -> None:
    assert kernel_of(op) == op.run  # before its types are known
    count = {Convert: 1, Range4: 3}.get(type(op), 2)
    types = [TensorType(element_type, [] if count == 3 else [2])] * count
    outputs = op.infer(*types)
    assert isinstance(outputs, TensorType)
    applied = op.applied(types, (outputs,))
    assert (kernel_of(applied) != applied.run) == is_fast


def test_a_step_of_0_is_refused() -> None:
    inputs = [np.array(number) for number in (0, 5, 0)]
    op = applied_to(Range4(output_type=i64), *map(np.array, (0, 5, 1)))
    with pytest.raises(OperatorError, match="step must not be 0"):
        kernel_of(op)(*inputs)
