"""Types of tensors in few words, for tests of what operations infer."""

from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import ElementType, f32, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.ops.base.operator import Operator


def tensor(shape: str, element_type: ElementType = f32) -> TensorType:
    """Return the type of a tensor of which only the shape is known, given as ``1,?,2..5``."""
    return TensorType(element_type, PartialShape.parse(shape))


def const(values: Any, element_type: ElementType = i64) -> TensorType:
    """Return the type of a constant."""
    return constant_type(np.array(values).astype(element_type.to_dtype()), element_type)


def inferred(op: Operator, *inputs: TensorType) -> str:
    """Return the shape of the one output, as it is shown."""
    result = op.infer(*inputs)
    assert isinstance(result, TensorType)
    return str(result.shape)


def assert_refused(message: str, op: Operator, *inputs: TensorType | None) -> None:
    """Check that an operation refuses these inputs with a message that has this text."""
    with pytest.raises(OperatorError) as error:
        op.infer(*inputs)
    assert message in error.value.message
