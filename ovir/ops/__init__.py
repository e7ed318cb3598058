"""All operations. Importing the package registers them; a new file in it needs no entry here."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ovir.ops.base import opsets
from ovir.ops.base.operator import Operator, registered, registered_by_user

for _module in pkgutil.walk_packages(__path__, prefix=__name__ + "."):
    importlib.import_module(_module.name)


def resolve(type_name: str, version: str) -> type[Operator] | None:
    """The operation class that a file's type and version (``opset6``) mean; None where there is none."""
    return registered_by_user(type_name, version) or _resolve(type_name, version)


@cache
def _resolve(type_name: str, version: str) -> type[Operator] | None:
    birth = opsets.resolve(type_name, version)
    name = opsets.canonical_type(type_name)
    return None if birth is None or name is None else registered(name, birth)
