"""The budget of kernels that run before a model does: inference runs them for known values and exact shapes, and
compilation to fold constants."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.tensor_types import TensorType
from ovir.core.values import MAX_ELEMENTS
from ovir.ops.base.operator import Operator

MOST_READ = 16 * MAX_ELEMENTS
"""The most elements of an input that inference gives to a kernel."""
INFERENCE_TIME = 2e7
"""The most nanoseconds that inference lets one kernel take."""
_FEW_REALS = 64


def can_evaluate(op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> bool:
    """Return whether inference may compute known values of these small outputs by running the kernel.

    It serves the arithmetic of shapes: integers, booleans and strings, reals where bounds are followed element by
    element, and the few reals that scale sizes. A kernel that may need more memory than inputs and outputs is not run.
    """
    if not op.pure or not op.bounded or op.wiring:
        return False
    if any(tensor.may_have_value and tensor.shape.least_size > MOST_READ for tensor in op.with_elements_read(inputs)):
        return False
    tensors = (*inputs, *outputs)
    if not any(tensor.element_type.is_real for tensor in tensors):
        return True
    if op.carries or op.monotone or type(op).infer_value is not Operator.infer_value:
        return True
    return sum(tensor.shape.least_size for tensor in tensors) <= _FEW_REALS


def can_fold(op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> bool:
    """Return whether inference may run the kernel on these inputs: all are constant and small, and it is quick."""
    if not op.pure or op.wiring:
        return False
    if not all(t.may_have_value and t.shape.least_size <= MOST_READ for t in inputs):
        return False
    return op.kernel_time(inputs, outputs) <= INFERENCE_TIME and all(t.constant is not None for t in inputs)
