"""Write all files that follow from the code: ``python -m ovir.generated_files``, in the folder of the project.

These are the index of the operations, the stubs of the opsets, and pages of the documentation.
``tests/test_generated.py`` fails while one of them is out of date.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import ovir
from ovir.building.stubs import stub
from ovir.ops import import_all
from ovir.ops.base.opsets import NEWEST_OPSET
from ovir.ops.base.registry import declared_versions

COMMAND = "python -m ovir.generated_files"
ROOT = Path(__file__).parent.parent
INDEX = "ovir/ops/base/index.py"


def index() -> str:
    """Return the index of the operations that the modules of ``ovir.ops`` declare."""
    import_all()
    rows = [f"    {tuple(version)!r},".replace("'", '"') for version in declared_versions()]
    lines = (
        f'"""All operation versions, each with the fields of ``Version``. Written by ``{COMMAND}``."""',
        "",
        "VERSIONS: tuple[tuple[str, int, str, bool, str, tuple[str, ...]], ...] = (",
        *rows,
        ")",
        "",
    )
    return "\n".join(lines)


def package_stub() -> str:
    """Return the stub of the package ``ovir``, for type checkers and editors."""
    imports = [f"from {getattr(ovir, name).__module__} import {name} as {name}" for name in ovir.__all__]
    return "\n".join([*sorted(imports), "", "__version__: str", f"__all__ = {ovir.__all__!r}", ""])


STUBS: dict[str, Callable[[], str]] = {
    "ovir/__init__.pyi": package_stub,
    **{f"ovir/opset{opset}.pyi": partial(stub, opset) for opset in range(1, NEWEST_OPSET + 1)},
}
"""The files that git ignores and ``hatch_build.py`` writes as well, each with the function that returns its content."""


def expected_files() -> Iterator[tuple[str, str]]:
    """Yield the generated files with the contents that they should have; the others follow from the index."""
    from docs.pages import PAGES  # beside the package in the repository

    yield INDEX, index()
    for name, make in STUBS.items():
        yield name, make()
    for name, from_present in PAGES.items():
        yield name, from_present((ROOT / name).read_text(encoding="utf-8"))


def main() -> None:
    for name, expected in expected_files():
        path = ROOT / name
        if path.exists() and path.read_text(encoding="utf-8") == expected:
            continue
        path.write_text(expected, encoding="utf-8")
        print(f"wrote {name}")
        if name == INDEX:
            os.execv(sys.executable, [sys.executable, "-m", "ovir.generated_files"])


if __name__ == "__main__":
    main()
