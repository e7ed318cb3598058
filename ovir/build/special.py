"""The functions that are written by hand: for Parameter, Const and the operations with bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ovir.build.bodies import IfLayer, IterationLayer, LoopLayer
from ovir.build.creation import Call, Options, constant_layer, create, ports_of, rt_info_of
from ovir.build.types import Info, Shape, Tensor, TensorNames, Type
from ovir.build.values import as_array, as_element_type
from ovir.core.shapes import as_shape
from ovir.graph.layers import Layer
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const, Parameter


def make(cls: type[Operator], path: str) -> Callable[..., Layer] | None:
    """Return the function for an operation, None if it is derived from the class."""
    maker = _MAKERS.get(cls.type)
    return maker(cls, path) if maker is not None else None


def _parameter(cls: type[Operator], path: str) -> Callable[..., Layer]:
    def parameter(
        shape: Shape,
        dtype: Type = "f32",
        name: str | None = None,
        *,
        layout: str | None = None,
        tensor_names: TensorNames | None = None,
        rt_info: Info | None = None,
    ) -> Layer:
        call = Call(path, {"shape": shape, "dtype": dtype, "name": name})
        try:
            op = Parameter(element_type=as_element_type(dtype), shape=as_shape(shape))
        except (ValueError, TypeError) as error:
            call.fail(str(error))
        attributes = {"element_type": op.element_type, "shape": op.shape}
        layer = create(call, op, (), attributes, Options(name, tensor_names, rt_info))
        if layout is not None:
            layer.outputs[0].rt_info = rt_info_of(call, {"layout": {"layout": _layout_text(layout)}})
        return layer

    return parameter


def _layout_text(layout: str) -> str:
    """Return a layout such as ``NCHW`` as files have it: ``[N,C,H,W]``."""
    return layout if layout.startswith("[") else f"[{','.join(re.findall(r'[.]{3}|.', layout))}]"


def _constant(cls: type[Operator], path: str) -> Callable[..., Layer]:
    def constant(
        value: Any,
        dtype: Type | None = None,
        name: str | None = None,
        *,
        shared_memory: bool = False,
        tensor_names: TensorNames | None = None,
        rt_info: Info | None = None,
    ) -> Layer:
        call = Call(path, {"value": value, "dtype": dtype, "name": name})
        try:
            array, element_type = as_array(value, None if dtype is None else as_element_type(dtype))
        except (ValueError, TypeError, OverflowError) as error:
            call.fail(str(error))
        op = Const.of(array, element_type, copy=not shared_memory)
        return constant_layer(call, op, Options(name, tensor_names, rt_info))

    return constant


def _if_op(cls: type[Operator], path: str) -> Callable[..., IfLayer]:
    def if_op(execution_condition: Tensor, name: str | None = None, *, rt_info: Info | None = None) -> IfLayer:
        tensors = {"execution_condition": execution_condition}
        layer = _empty(cls, path, IfLayer, tensors, Options(name, rt_info=rt_info))
        assert isinstance(layer, IfLayer)
        return layer

    return if_op


def _loop(cls: type[Operator], path: str) -> Callable[..., LoopLayer]:
    def loop(
        trip_count: Tensor, execution_condition: Tensor, name: str | None = None, *, rt_info: Info | None = None
    ) -> LoopLayer:
        tensors = {"trip_count": trip_count, "execution_condition": execution_condition}
        layer = _empty(cls, path, LoopLayer, tensors, Options(name, rt_info=rt_info))
        assert isinstance(layer, LoopLayer)
        return layer

    return loop


def _tensor_iterator(cls: type[Operator], path: str) -> Callable[..., IterationLayer]:
    def tensor_iterator(name: str | None = None, *, rt_info: Info | None = None) -> IterationLayer:
        layer = _empty(cls, path, IterationLayer, {}, Options(name, rt_info=rt_info))
        assert isinstance(layer, IterationLayer)
        return layer

    return tensor_iterator


def _empty(cls: type[Operator], path: str, kind: type[Layer], tensors: Mapping[str, Tensor], options: Options) -> Layer:
    """Return a layer with these inputs, whose bodies and outputs are added later."""
    call = Call(path, tensors)
    ports = ports_of(call, cls, list(tensors), list(tensors.values()))
    return create(call, cls(), ports.values(), {}, options, kind=kind)


_MAKERS: dict[str, Callable[[type[Operator], str], Callable[..., Layer]]] = {
    "Const": _constant,
    "If": _if_op,
    "Loop": _loop,
    "Parameter": _parameter,
    "TensorIterator": _tensor_iterator,
}
