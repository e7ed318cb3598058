"""Remembers what inference has found, for layers that are alike: large models repeat a few blocks many times.

Inference of an operation is a function of its attributes and of what is known of its inputs. Two layers that are equal
in both have equal outputs, unless these hold symbols of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ovir.ops.operator import Operator
from ovir.values import TensorType

Types = tuple[TensorType, ...]
Infer = Callable[[Sequence[TensorType]], Types]

_SMALL = 16
"""The content of a tensor of so many elements is compared; of larger ones it must not have been looked at."""


class Inferred(NamedTuple):
    """What inference has found of an operation, and of all that are equal to it on equal inputs."""

    outputs: Types
    left_behind: dict[str, Any]
    """What it has set in the operation."""


class Memory:
    """What one pass over a model has found so far."""

    def __init__(self) -> None:
        self.latest: Inferred | None = None
        """What ``infer`` has returned last; None where that holds for this one operation alone."""
        self._found: dict[Any, Inferred] = {}
        self.numbers: dict[int, int] = {}
        """What ``number`` has given, by the tensor's ``id``."""
        self._numbers: dict[Any, int] = {}
        self._kept: list[TensorType] = []
        """The tensors that have a number, so that their ids stay their own."""

    def infer(
        self, op: Operator, inputs: Sequence[TensorType], infer: Callable[[Sequence[TensorType]], Types]
    ) -> Types:
        """The outputs of ``infer``, or those of an equal operation on equal inputs."""
        attributes = [getattr(op, field) for field in op.fields]
        key = (type(op), op.content, *attributes, *[self.number(tensor) for tensor in inputs])
        self.latest = self._found.get(key)
        if self.latest is not None:
            vars(op).update(self.latest.left_behind)
            return self.latest.outputs
        watched = [_Watched.of(tensor) if _is_large(tensor) else tensor for tensor in inputs]
        outputs = tuple([t.with_value(t.value) if isinstance(t, _Watched) else t for t in infer(watched)])
        looked_at = any(isinstance(tensor, _Watched) and tensor.looked_at for tensor in watched)
        if not looked_at and (_are_static(outputs) or _symbols(outputs) <= _symbols(inputs)):
            self._found[key] = self.remember(op, outputs)
        return outputs

    def remember(self, op: Operator, outputs: Types) -> Inferred:
        """Take what has just been inferred as holding for operations that are equal to this one."""
        left_behind = {name: value for name, value in vars(op).items() if name not in op.fields}
        self.latest = Inferred(outputs, left_behind)
        return self.latest

    def number(self, tensor: TensorType) -> int:
        """From 1; equal for tensors that inference cannot tell apart without looking at the content of large ones."""
        number = self.numbers.get(id(tensor))
        if number is None:
            number = self._numbers.setdefault(_key_of(tensor), len(self._numbers) + 1)
            self.numbers[id(tensor)] = number
            self._kept.append(tensor)
        return number


def _is_large(tensor: TensorType) -> bool:
    return tensor.value is not None and tensor.shape.least_size > _SMALL


def _key_of(tensor: TensorType) -> Any:
    value = tensor.value
    if value is None:
        return tensor.element_type, tensor.shape.identity
    return tensor.element_type, tensor.shape.identity, None if _is_large(tensor) else value.identity


def _are_static(tensors: Iterable[TensorType]) -> bool:
    """Whether there are no symbols, nor anything that could have one."""
    return all(t.shape.is_static and (t.value is None or t.value.is_constant) for t in tensors)


def _symbols(tensors: Iterable[TensorType]) -> set[int]:
    found = {0}
    for tensor in tensors:
        if tensor.shape.rank is not None:
            found.update(dim.symbol for dim in tensor.shape.dims)
        if tensor.value is not None and not tensor.value.is_constant:
            found.update(np.unique(tensor.value.symbols).tolist())
    return found


class _Watched(TensorType):
    """A tensor type that tells whether its content has been looked at."""

    looked_at = False

    @classmethod
    def of(cls, tensor: TensorType) -> _Watched:
        return cls(tensor.element_type, tensor.shape, tensor.value)

    def __getattribute__(self, name: str) -> Any:
        if name == "value":
            object.__setattr__(self, "looked_at", True)
        return super().__getattribute__(name)
