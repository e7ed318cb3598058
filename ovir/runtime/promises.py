"""Compare what an operation of a user returns with what its ``infer`` promised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.element_types import ElementType
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.text import plural
from ovir.graph.layers import Layer, Port


def held_to_promise(layer: Layer, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel with a check of its outputs, as later layers rely on the inferred types and shapes.

    The kernel raises OperatorError, which names the class, for an output of another type or shape. It receives
    read-only inputs, and an output that shares memory with an input is copied, unless the class declares ``views``.
    """
    may_view = layer.operator is not None and layer.operator.views

    def run(*arguments: Any, **keywords: Any) -> Any:
        if may_view:
            result = kernel(*arguments, **keywords)
        else:
            result = _apart(kernel(*map(_read_only, arguments), **keywords), arguments)
        outputs = result if type(result) is tuple else (result,)
        if len(outputs) != len(layer.outputs):
            found = f"{type(layer.operator).__name__}.run gives {plural(len(outputs), 'output')}"
            raise OperatorError(f"{found}; the layer has {len(layer.outputs)}")
        for port, output in zip(layer.outputs, outputs, strict=True):
            if output is not None or port.readers:  # None means that nothing reads the output
                _check(layer, port, output)
        return result

    return run


def _read_only(array: Any) -> Any:
    """Return a view that cannot be written to."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def _apart(result: Any, inputs: tuple[Any, ...]) -> Any:
    """Return the outputs, with those that share memory with an input copied."""
    if type(result) is tuple:
        return tuple(_apart(output, inputs) for output in result)
    arrays = (array for array in inputs if isinstance(array, np.ndarray))
    shares = isinstance(result, np.ndarray) and any(np.may_share_memory(result, array) for array in arrays)
    return result.copy() if shares else result


def _check(layer: Layer, port: Port, output: Any) -> None:
    name = f"{type(layer.operator).__name__}.run gives output {port.index} as"
    promised = f"its infer promised {port.element_type}{port.shape}"
    if not isinstance(output, (np.ndarray, np.generic)):
        raise OperatorError(f"{name} {type(output).__name__}, which is not an array; {promised}")
    try:
        element_type = str(ElementType.from_dtype(output.dtype))
    except ValueError:
        element_type = str(output.dtype)
    expected = port.element_type
    is_right_type = expected.is_dynamic or element_type == str(expected) or output.dtype == expected.to_dtype()
    if not (is_right_type and port.shape.contains(output.shape)):
        raise OperatorError(f"{name} {element_type}[{','.join(map(str, output.shape))}]; {promised}")
