"""The rules. Importing the package registers them; a new file in it needs no entry here."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__, prefix=__name__ + "."):
    importlib.import_module(_module.name)
