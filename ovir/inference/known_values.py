"""What can be known of the content of an operation's outputs: it is computed from what is known of its inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import string
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, is_small
from ovir.diagnostics.errors import OperatorError
from ovir.ops.base.operator import Operator, can_fold


def with_content(op: Operator, inputs: Sequence[TensorType], outputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """The outputs with what can be known of their content; it is not sought in large or strange tensors."""
    for tensor in outputs:
        if not is_small(tensor.shape) or tensor.element_type.is_dynamic:
            return outputs
    if any(t.has_value for t in outputs) or not any(t.has_value for t in inputs):
        return outputs
    try:
        with np.errstate(all="ignore"):
            values = _values_of(op, inputs, outputs)
    except OperatorError:
        return outputs  # it is an error of the run, with its values, if the layer is ever run
    if values is None:
        return outputs
    return tuple(t.with_value(v) for t, v in zip(outputs, values, strict=True))


def _values_of(
    op: Operator, inputs: Sequence[TensorType], outputs: tuple[TensorType, ...]
) -> tuple[Value | None, ...] | None:
    if can_fold(op, inputs):
        result = op.applied(inputs, outputs).run(*(t.constant for t in inputs))
        arrays: tuple[Array, ...] = result if isinstance(result, tuple) else (result,)
        return tuple(Value(array) for array in arrays)
    if not all(t.shape.is_static and t.element_type != string for t in outputs):  # of strings there are no bounds
        return None
    found = op.applied(inputs, outputs).infer_value(*inputs)
    return found if found is None or isinstance(found, tuple) else (found,)
