"""Types of tensors in few words, and what operations infer, return and report for them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import ElementType, f32, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_bounds
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.inference.known_values import as_tuple
from ovir.ops import find
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


def applied(op: Operator, *inputs: TensorType) -> Operator:
    """Return an operation as it is applied to inputs."""
    return op.applied(inputs, as_tuple(op.infer(*inputs)))


def inferred_value(op: Operator, *inputs: TensorType) -> Any:
    """Return what is known of the elements of the one output."""
    found = applied(op, *inputs).infer_value(*inputs)
    return found[0] if isinstance(found, tuple) else found


def applied_to(op: Operator, *arrays: Any) -> Operator:
    """Return an operation as it is applied to constants."""
    return applied(op, *map(constant_type, arrays))


def ran(op: Operator, *arrays: Any, dtype: Any = None) -> Any:
    """Return the one output for arrays, which is of the type and the shape that are inferred."""
    inputs = [np.asarray(array, dtype) for array in arrays]
    op = applied_to(op, *inputs)
    result = op.run(*inputs)
    assert isinstance(result, np.ndarray)
    assert (result.dtype, op.output_shapes[0]) == (op.output_types[0].to_dtype(), list(result.shape))
    return result


@contextmanager
def reports() -> Iterator[list[str]]:
    """Yield a list to which kernels add what they report, and its effect if they name one."""
    found: list[str] = []
    with reporting_to(lambda code, message, effect: found.append("; ".join(filter(None, (message, effect))))):
        yield found


def operation(text: str) -> Operator:
    """Return an operation that is given as ``Concat-1 axis=1``, with the attributes of a file."""
    name, *given = text.split(" ")
    kind, _, opset = name.rpartition("-")
    cls = find(kind, int(opset))
    assert cls is not None, name
    values = {}
    for attribute in given:
        key, _, value = attribute.partition("=")
        values[cls.attributes[key].field] = cls.attributes[key].parse(value)
    return cls(**values)


def types(text: str) -> list[TensorType | None]:
    """Return the types of inputs, with a space between two of them.

    Each is a shape of f32 as ``2,?``, or another type as ``i64[2,?]``; a constant, as ``=[1,2]`` of i64 or ``f32=0.5``;
    one of i64 whose elements are known in part, as ``~[2..5,?]``; or ``-`` for an input that is left out.
    """
    return [_type(word) for word in text.split(" ") if word]


def arrays(text: str) -> list[Any]:
    """Return arrays of these types: constants, or else ones."""
    return [
        t
        if t is None
        else t.constant
        if t.value is not None
        else np.ones(t.shape.to_tuple(), t.element_type.to_dtype())
        for t in types(text)
    ]


def _type(word: str) -> TensorType | None:
    if word == "-":
        return None
    found = re.fullmatch(r"(\w*)([=~[]|)(.*)", word)
    assert found is not None, word
    name, sign, rest = found.groups()
    if not sign:
        return tensor(word)
    element_type = ElementType.parse(name or "i64")
    if sign == "=":
        return const(json.loads(rest), element_type)
    if sign == "[":
        return tensor(rest.removesuffix("]"), element_type)
    sizes = PartialShape.parse(rest)
    bounds = np.array([[dim.lower, np.inf if dim.upper is None else dim.upper] for dim in sizes]).T
    shape = [len(sizes)] if rest.startswith("[") else []
    value = from_bounds(element_type, *bounds.reshape(2, *shape), sizes=True)
    return TensorType(element_type, PartialShape(shape), value)


def lacking(words: str, message: str) -> list[str]:
    """Return the names and values of a row that a message does not have, whatever its wording."""
    shown = {word.strip(",;:.'()") for word in message.split()}
    return [word for word in words.split() if word not in shown]


def assert_refused(message: str, op: Operator, *inputs: TensorType | None) -> None:
    """Check that an operation refuses these inputs with a message that has this text."""
    with pytest.raises(OperatorError) as error:
        op.infer(*inputs)
    assert message in error.value.message
