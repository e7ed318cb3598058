"""All operations. Their modules are imported when a model uses them; ``index`` names the module of each."""

from __future__ import annotations

import importlib
from functools import cache

from ovir.ops.base import opsets
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import registered, registered_by_user


def resolve(type_name: str, version: str) -> type[Operator] | None:
    """Return the operation class for a file's type and version (``opset6``), or None if there is none."""
    return registered_by_user(type_name, version) or _resolve(type_name, version) or _of_tokenizers(type_name, version)


@cache
def _resolve(type_name: str, version: str) -> type[Operator] | None:
    known = opsets.resolve(type_name, version)
    return None if known is None else find(known.type, known.opset)


def _of_tokenizers(type_name: str, version: str) -> type[Operator] | None:
    """Return the class of an operation of openvino_tokenizers, whose package registers it; None for others."""
    if not opsets.is_of_tokenizers(type_name, version):
        return None
    importlib.import_module("ovir.tokenizers")
    return registered_by_user(type_name, version)


def find(type_name: str, opset: int) -> type[Operator] | None:
    """Return the class of an operation version by type and first opset, or None if ovir has none.

    The module of the operation is imported.
    """
    known = opsets.OPERATIONS.get(type_name, {}).get(opset)
    if known is not None:
        importlib.import_module(f"{__name__}.{known.module}")
    return registered(type_name, opset)


def import_all() -> None:
    """Import the modules of all operations, including those that the index does not list yet."""
    import pkgutil  # users' models do not need it

    for module in pkgutil.iter_modules(__path__, prefix=__name__ + "."):
        importlib.import_module(module.name)
