"""The fast forms of operations by class."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import Any, TypeVar

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder
from ovir.fast.base.moves import bind_moves, bind_reshaped, bind_written
from ovir.fast.base.passes import bind_function
from ovir.fast.base.tables import bind_table
from ovir.fast.base.widened import bind_in_blocks, bind_widened, is_narrow
from ovir.ops.base.operator import Kernel, Operator

FastForm = Callable[..., bool]
F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=Callable[..., Kernel])

Pays = Callable[..., bool]
"""Says for an operation and its inputs whether to bind its fast form pays."""

_forms: dict[type[Operator], FastForm] = {}
_kernels: dict[type[Operator], Callable[[Any], Kernel]] = {}
_in_f32: set[FastForm] = {bind_function}
_by_element: set[FastForm] = {bind_function}
_at_once: dict[FastForm, Pays] = {}


def fast(
    *operations: type[Operator], in_f32: bool = False, by_element: bool = False, at_once: Pays | None = None
) -> Callable[[F], F]:
    """Register a function as the fast form of operations, and of the classes derived from them.

    The function is called as ``function(op, binder, *inputs)``, with the operation as it is applied
    (``Operator.applied``), a ``Binder``, and the arrays of the inputs, whose contents change between runs but whose
    memory does not. It asks the binder for the arrays of its outputs, adds the calls that fill them, and returns True.
    False means that there is no fast form for these arrays, so that ``run`` is called.

    With ``in_f32``, f16 and bf16 are converted to f32 before the calls, and the outputs are rounded after them.

    ``by_element`` says that an element of the output depends only on the elements of the inputs that NumPy broadcasts
    to its place. Then f16 and bf16 are converted block by block; for large inputs, a table of the results of all
    65,536 numbers replaces the form.

    ``at_once``, which is called with the operation and the inputs, says whether to bind the form and to call it once
    takes less time than ``run``.
    """

    def add(function: F) -> F:
        for operation in operations:
            if operation in _forms:
                raise ValueError(f"{operation.__name__} has two fast forms")
            _forms[operation] = function
        if in_f32:
            _in_f32.add(function)
        if by_element:
            _by_element.add(function)
        if at_once is not None:
            _at_once[function] = at_once
        return function

    return add


@cache
def fast_form(operation: type[Operator]) -> FastForm | None:
    """Return the fast form of an operation, None if it has none.

    It is in the module of ``ovir.fast`` that has the name of the module of the operation, or of the class that it is
    derived from; these modules are imported. Operations that only move elements, or are one function of NumPy, share
    the forms of ``BY_TRAITS``.
    """
    found = _registered(_forms, operation)
    return found or next((form for form, has_trait in BY_TRAITS.items() if has_trait(operation)), None)


def pays_at_once(op: Operator) -> Pays | None:
    """Return the function that says for which inputs the fast form of an operation pays in a single run; None if it
    never does."""
    form = fast_form(type(op))  # type: ignore[arg-type]  # a class is hashable
    return None if form is None else _at_once.get(form)


BY_TRAITS: Mapping[FastForm, Callable[[type[Operator]], object]] = {
    bind_written: lambda operation: hasattr(operation, "write"),
    bind_reshaped: lambda operation: operation.rearranges,
    bind_moves: lambda operation: operation.moves_elements,
    bind_function: lambda operation: hasattr(operation, "function"),
}
"""The forms of operations that have none of their own, and the traits for which they serve."""


def fast_kernel(*operations: type[Operator]) -> Callable[[K], K]:
    """Register a function that returns a faster kernel for an operation, and for those of derived classes.

    Unbound steps, and steps that no fast form takes, call this kernel in place of ``run``. It receives the same
    arguments and returns the same. It serves operations whose work or output depends on values, which cannot be bound,
    and in unbound steps those whose ``run`` spends most of its time on Python.
    """

    def add(function: K) -> K:
        _kernels.update(dict.fromkeys(operations, function))
        return function

    return add


def run_with(op: Operator, **parts: object) -> Kernel:
    """Return ``run`` of an operation, some of whose attributes or methods are replaced by faster ones."""
    faster = copy(op)
    vars(faster).update(parts)
    return faster.run


def kernel_of(op: Operator) -> Kernel:
    """Return the function that computes an operation on arrays: its fast kernel if it has one, and else ``run``."""
    make = _fast_kernel(type(op))  # type: ignore[arg-type]  # a class is hashable
    return op.run if make is None else make(op)


@cache
def _fast_kernel(operation: type[Operator]) -> Callable[[Any], Kernel] | None:
    return _registered(_kernels, operation)


def _registered(table: Mapping[type[Operator], F], operation: type[Operator]) -> F | None:
    for cls in operation.__mro__:
        if cls.__module__.startswith(_OPERATIONS):
            _import_forms(cls.__module__.rpartition(".")[2])
        if cls in table:
            return table[cls]
    return None


def bind(op: Operator, binder: Binder, *inputs: Array) -> bool:
    """Bind the fast form of an operation to arrays; return False if there is none for them."""
    form = fast_form(type(op))  # type: ignore[arg-type]  # a class is hashable
    if form is None:
        return False
    by_element, narrow = form in _by_element, any(is_narrow(array.dtype) for array in inputs)
    if by_element and narrow and bind_table(op, binder, inputs):
        return True
    if form in _in_f32 and narrow:
        in_blocks = by_element and getattr(op, "auto_broadcast", "numpy") != "pdpd"
        return (bind_in_blocks if in_blocks else bind_widened)(form, op, binder, inputs)
    return form(op, binder, *inputs)


_OPERATIONS = "ovir.ops."


@cache
def _import_forms(name: str) -> None:
    module = f"ovir.fast.{name}"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
