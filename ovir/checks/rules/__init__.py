"""The rules. Importing the package registers them and their codes; a new file in it needs no entry here."""

from __future__ import annotations

import importlib
import pkgutil

from ovir.diagnostics.codes import CODES

__all__ = ["CODES"]

for _module in pkgutil.iter_modules(__path__, prefix=__name__ + "."):
    importlib.import_module(_module.name)

_sorted = sorted(CODES.items())
CODES.clear()
CODES.update(_sorted)
