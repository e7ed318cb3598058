"""The registry: operation classes by type and opset, including those that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ovir.diagnostics.errors import InputError
from ovir.ops.base import opsets
from ovir.ops.base.attributes import declared_attributes
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import ALL

T = TypeVar("T", bound=type[Operator])

_operations: dict[tuple[str, int], type[Operator]] = {}
_users: dict[tuple[str, str], type[Operator]] = {}


def operator(type_name: str, *, opset: int) -> Callable[[T], T]:
    """Register a class as the version of ``type_name`` that ``opset`` introduces.

    ``type_name`` is the type as files spell it (``Const``, ``ReLU``).
    """

    def add(cls: T) -> T:
        _declare(cls, type_name, opset)
        key = type_name, opset
        if key in _operations:
            raise ValueError(f"{type_name} of opset{opset} is registered twice")
        _operations[key] = cls
        return cls

    return add


def registered(type_name: str, opset: int) -> type[Operator] | None:
    """Return the class of an operation version, or None if no module imported so far defines it.

    ``ovir.ops.find`` also imports the module.
    """
    return _operations.get((type_name, opset))


def all_registered() -> dict[tuple[str, int], type[Operator]]:
    """Return the classes of all modules imported so far, by type and opset."""
    return dict(_operations)


def register(type_name: str, *, version: str) -> Callable[[T], T]:
    """Register an operation that is in no opset: a decorator for a subclass of ``Operator``.

    ``type_name`` and ``version`` are the ``type`` and ``version`` of the layers that use it, such as ``"Swirl"`` and
    ``"extension"``; case does not matter. Models read afterwards use the class. Registering the same type and version
    again replaces it. Raises InputError for an operation that an opset has, and for a class that is no Operator.
    """
    if opsets.resolve(type_name, version) is not None:
        message = f"{version} already has an operation {type_name}"
        raise InputError.usage(message, hint="choose another type or version, such as 'extension'")

    def add(cls: T) -> T:
        if not (isinstance(cls, type) and issubclass(cls, Operator)):
            raise InputError.usage(f"an operation must be a class derived from ovir.Operator, got {cls!r}")
        if not hasattr(cls, "infer"):
            message = f"{cls.__name__} has no method 'infer', which gives the types and shapes of the outputs"
            raise InputError.usage(message)
        if not any("value_inputs" in vars(base) for base in cls.__mro__ if base is not Operator):
            cls.value_inputs = ALL  # a class without the declaration may read any value
        _declare(cls, type_name, 0)
        _users[type_name.lower(), version.lower()] = cls
        return cls

    return add


def registered_by_user(type_name: str, version: str) -> type[Operator] | None:
    """Return the class that a user registered for a file's type and version, or None."""
    return _users.get((type_name.lower(), version.lower())) if _users else None


def _declare(cls: type[Operator], type_name: str, opset: int) -> None:
    cls.type = type_name
    cls.opset = opset
    cls.attributes = declared_attributes(cls)
    cls.required_attributes = tuple(a for a in cls.attributes.values() if a.required)
    cls.fields = frozenset(a.field for a in cls.attributes.values())
    cls._defaults = {a.field: a.default for a in cls.attributes.values() if not a.required}
