"""Remembers what inference has found, for layers that are alike: large models repeat a few blocks many times.

Inference of an operation is a function of its attributes, of the types of its inputs and, where it looks at that, of
what is known of their content. Two layers that are equal in these have equal outputs, unless they hold symbols of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, cast

import numpy as np

from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.ops.base.operator import Operator

Types = tuple[TensorType, ...]

_SMALL = 64
"""The content of a tensor of so many elements is compared where it matters; larger ones must be the same."""


class Inferred(NamedTuple):
    """What inference has found of an operation, and of all that are equal to it on equal inputs."""

    outputs: Types
    by_content: bool
    """Whether it has looked at what is known of the content of inputs."""


class InferenceCache:
    """What one pass over a model has found so far."""

    def __init__(self) -> None:
        self.latest: Inferred | None = None
        """What ``infer`` has found last; None where that holds for this one operation alone."""
        self._found: dict[Hashable, Inferred | None] = {}
        """By what stands for the operation, and by numbers of its inputs; None where the content is to be asked for."""
        self._types: dict[Hashable, int] = {}
        self._contents: dict[Hashable, int] = {}
        """A number for each type, and for each type with what is known of the content."""
        self._type_of: dict[int, int] = {}
        self._content_of: dict[int, int] = {}
        """The numbers that tensors have, by their ``id``."""
        self._kept: list[TensorType] = []
        """The tensors that have a number, so that their ids stay their own."""

    def infer(
        self, op: Operator, inputs: Sequence[TensorType], infer: Callable[[Sequence[TensorType]], Types]
    ) -> Types:
        """The outputs of ``infer``, or those of an equal operation on equal inputs."""
        equal = (type(op), op.content, *[getattr(op, field) for field in op.fields])
        self.latest = self.recall(equal, inputs)
        if self.latest is not None:
            return self.latest.outputs
        watched = [_Watched(tensor) if tensor.has_value else tensor for tensor in inputs]
        outputs = tuple([t.with_value(t.value) if isinstance(t, _Watched) else t for t in infer(watched)])
        by_content = any(isinstance(tensor, _Watched) and tensor.looked_at for tensor in watched)
        if _are_static(outputs) or _symbols(outputs) <= _symbols(inputs):
            self.keep(equal, inputs, self.remember(outputs, by_content))
        return outputs

    def remember(self, outputs: Types, by_content: bool = False) -> Inferred:
        """What has just been found, which holds for other operations, too."""
        self.latest = Inferred(outputs, by_content)
        return self.latest

    def recall(self, equal: Hashable, inputs: Sequence[TensorType]) -> Inferred | None:
        """What has been found for ``equal``, which stands for an operation, on such inputs."""
        numbers: list[Hashable] = [equal]
        for tensor in inputs:
            numbers.append(self._type_of.get(id(tensor)) or self._number(tensor))
        key = tuple(numbers)
        found = self._found.get(key)
        if found is None and key in self._found:
            return self._found.get((equal, *[-self._number_of_content(tensor) for tensor in inputs]))
        return found

    def keep(self, equal: Hashable, inputs: Sequence[TensorType], found: Inferred) -> None:
        """Have ``recall`` give this from now on."""
        key = (equal, *[self._number(tensor) for tensor in inputs])
        if not found.by_content:
            self._found[key] = found
            return
        self._found[key] = None
        self._found[(equal, *[-self._number_of_content(tensor) for tensor in inputs])] = found

    def _number(self, tensor: TensorType) -> int:
        """From 1; equal for tensors of equal types, of whose content something is known or nothing."""
        number = self._type_of.get(id(tensor))
        if number is None:
            key = tensor.element_type, tensor.shape.identity, tensor.has_value
            number = self._type_of[id(tensor)] = self._types.setdefault(key, len(self._types) + 1)
            self._kept.append(tensor)
        return number

    def _number_of_content(self, tensor: TensorType) -> int:
        """From 1; equal only for tensors of which the same is known."""
        number = self._content_of.get(id(tensor))
        if number is None:
            value: object = None
            if tensor.value is not None:
                value = tensor.value.identity if tensor.shape.least_size <= _SMALL else id(tensor)
            key = self._number(tensor), value
            number = self._content_of[id(tensor)] = self._contents.setdefault(key, len(self._contents) + 1)
        return number


def _are_static(tensors: Iterable[TensorType]) -> bool:
    """Whether there are no symbols, nor anything that could have one."""
    return all(t.shape.is_static and (t.value is None or not t.value.has_symbols) for t in tensors)


def _symbols(tensors: Iterable[TensorType]) -> set[int]:
    found = {0}
    for tensor in tensors:
        if tensor.shape.rank is not None:
            found.update(dim.symbol for dim in tensor.shape.dims)
        if tensor.value is not None and tensor.value.has_symbols:
            found.update(np.unique(tensor.value.symbols).tolist())
    return found


class _Watched(TensorType):
    """A tensor type that tells whether its content has been looked at."""

    def __init__(self, tensor: TensorType) -> None:
        vars(self).update(element_type=tensor.element_type, shape=tensor.shape, content=tensor.value, looked_at=False)

    @property
    def value(self) -> Value | None:
        vars(self)["looked_at"] = True
        return cast("Value | None", vars(self)["content"])

    @property
    def looked_at(self) -> bool:
        return cast(bool, vars(self)["looked_at"])

    @property
    def has_value(self) -> bool:
        return vars(self)["content"] is not None
