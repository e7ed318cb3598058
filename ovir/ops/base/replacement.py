"""Operations that a plan puts in place of others; no file has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

from ovir.ops.base.operator import Operator

Op = TypeVar("Op", bound=Operator)
R = TypeVar("R", bound="Replacement[Any]")

_registered: list[tuple[type[Operator], type[Replacement[Any]]]] = []


class Replacement(Operator, Generic[Op]):
    """An operation in place of ``replaced``, whose attributes, type and version it has."""

    def __init__(self, op: Op) -> None:
        """Take the place of ``op``."""
        vars(self).update(vars(op), type=op.type, opset=op.opset)
        self.replaced = op

    def infer(self, *inputs: Any, **others: Any) -> Any:
        return self.replaced.infer(*inputs, **others)


def replaces(*operations: type[Operator]) -> Callable[[type[R]], type[R]]:
    """Register a class that may take the place of operations, and of the classes derived from them."""

    def add(cls: type[R]) -> type[R]:
        _registered.extend((operation, cls) for operation in operations)
        return cls

    return add


@cache
def replacements(base: type[R], operation: type[Operator]) -> tuple[type[R], ...]:
    """Return the classes derived from ``base`` that may take the place of an operation, as registered."""
    return tuple(cls for op, cls in _registered if issubclass(operation, op) and issubclass(cls, base))
