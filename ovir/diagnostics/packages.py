"""Packages that only some functions need, and that an extra of ovir installs."""

from __future__ import annotations

import importlib.util

from ovir.diagnostics.codes import NO_ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError


def require_packages(user: str, extra: str, *packages: str) -> None:
    """Raise InputError if packages are not installed that ``user`` needs, with the extra that installs them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        message = f"{user} needs {' and '.join(missing)}, which cannot be imported"
        raise InputError(diagnose(NO_ENGINE, message, hint=f'pip install "ovir[{extra}]"'))
