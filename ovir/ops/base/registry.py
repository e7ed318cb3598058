"""The registry: operation classes by type and opset, including those that users register."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from ovir.diagnostics.errors import InputError
from ovir.ops.base import opsets
from ovir.ops.base.attributes import declared_attributes
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import ALL

T = TypeVar("T", bound=type[Operator])

LAST_COMPLETE_OPSET = 16
"""The last opset that holds all operations of the one before it.

In release 2026.4, opset17 of OpenVINO is in the making: it holds new operations, and old ones with ``until=17``.
"""


@dataclass(frozen=True, slots=True)
class _Declaration:
    """The class of an operation version, and the arguments of its ``@operator``."""

    cls: type[Operator]
    since: int
    until: int | None
    not_in: tuple[int, ...]
    is_extension: bool
    functions: tuple[str, ...]


_operations: dict[tuple[str, int], _Declaration] = {}
_users: dict[tuple[str, str], type[Operator]] = {}


def operator(
    type_name: str,
    *,
    opset: int,
    since: int | None = None,
    until: int | None = None,
    not_in: tuple[int, ...] = (),
    is_extension: bool = False,
    function_name: str | None = None,
    alias: str | None = None,
) -> Callable[[T], T]:
    """Register a class as the version of ``type_name`` that ``opset`` introduces.

    ``type_name`` is the type as files spell it (``Const``, ``ReLU``). Without ``until``, opsets hold the version until
    the next version of the operation. ``since`` is the first opset that holds it, where OpenVINO names a later one,
    and ``not_in`` has those that lack it. With ``is_extension``, ``extension`` and ``experimental`` in a file mean this
    version, too. ``function_name`` is the name of the function that creates layers, where it is not the type in snake
    case, and ``alias`` is its second name.

    ``python -m ovir.generated_files`` writes what is declared here into ``ovir/ops/base/index.py``, which is read
    at run time.
    """

    def add(cls: T) -> T:
        _declare(cls, type_name, opset)
        key = type_name, opset
        if key in _operations:
            raise ValueError(f"{type_name} of opset{opset} is registered twice")
        name = function_name or _snake_case(type_name)
        functions = (name,) if alias is None else (name, alias)
        _operations[key] = _Declaration(cls, since or opset, until, not_in, is_extension, functions)
        return cls

    return add


def registered(type_name: str, opset: int) -> type[Operator] | None:
    """Return the class of an operation version, or None if no module imported so far defines it.

    ``ovir.ops.find`` also imports the module.
    """
    declaration = _operations.get((type_name, opset))
    return declaration.cls if declaration is not None else None


def declared_versions() -> list[opsets.Version]:
    """Return the declarations of the classes of all modules imported so far, in the order of the index."""
    by_type: dict[str, dict[int, _Declaration]] = {}
    for (type_name, opset), declaration in sorted(_operations.items(), key=lambda item: (item[0][0].lower(), item[0])):
        by_type.setdefault(type_name, {})[opset] = declaration
    return [
        opsets.Version(
            type_name,
            opset,
            _ranges(declaration, opset, min((other for other in versions if other > opset), default=None)),
            declaration.is_extension,
            declaration.cls.__module__.rpartition(".")[2],
            declaration.functions,
        )
        for type_name, versions in by_type.items()
        for opset, declaration in versions.items()
    ]


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
        if cls.infer is Operator.infer and not cls.takes:
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


@contextmanager
def keeping_registered() -> Iterator[None]:
    """Let classes registered in the block replace none that were registered before."""
    before = dict(_users)
    yield
    _users.update(before)


def _declare(cls: type[Operator], type_name: str, opset: int) -> None:
    cls.type = type_name
    cls.opset = opset
    cls.attributes = declared_attributes(cls)
    cls.required_attributes = tuple(a for a in cls.attributes.values() if a.required)
    cls.fields = frozenset(a.field for a in cls.attributes.values())
    cls._defaults = {a.field: a.default for a in cls.attributes.values() if not a.required}


def _snake_case(type_name: str) -> str:
    """Return ``reduce_l1`` for ReduceL1, and ``bgr_to_nv12`` for BGRtoNV12."""
    spaced = re.sub(r"(?<=[A-Z0-9])to(?=[A-Z])", "_to_", type_name)
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", spaced)
    return spaced.lower()


def _ranges(declaration: _Declaration, opset: int, following: int | None) -> str:
    """Return the opsets that hold a version, such as ``1,3-16``; ``following`` is the next version's opset."""
    last = max(opset, LAST_COMPLETE_OPSET) if following is None else following - 1
    firsts = [declaration.since, *(number + 1 for number in declaration.not_in)]
    lasts = [*(number - 1 for number in declaration.not_in), declaration.until or last]
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in zip(firsts, lasts, strict=True))
