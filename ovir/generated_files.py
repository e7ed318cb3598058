"""Write all files that follow from the code: ``python -m ovir.generated_files``, in the folder of the project.

These are the index of the operations, the modules and stubs of the opsets, and pages of the documentation.
``tests/test_generated.py`` fails while one of them is out of date.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ovir.build.stubs import stub
from ovir.cli.operation_pages import entries, operations_page
from ovir.cli.reference import page as commands_page
from ovir.export.exporters import with_table
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


def opset_module(opset: int) -> str:
    """Return the module of an opset."""
    lines = (
        f'"""The operations of opset{opset} as functions that create layers; opset{opset}.pyi has their signatures."""',
        "",
        "from ovir.build.opset import contents",
        "",
        "__all__, __getattr__, __dir__ = contents(__name__)",
        "",
    )
    return "\n".join(lines)


def with_counts(text: str) -> str:
    """Return README.md with the counts of operation versions as they are now."""
    listed = entries()
    counts = {
        "total": len(listed),
        "newest": NEWEST_OPSET,
        "inferred": sum(entry.infers for entry in listed),
        "run": sum(entry.runs for entry in listed),
    }
    sentence = "Of the {total} operation versions of opsets 1 to {newest}, {inferred} are inferred and {run} are run"
    found, count = re.subn(re.sub(r"{\w+}", r"\\d+", sentence), sentence.format(**counts), text)
    assert count == 1, "README.md must have one sentence with the counts of operation versions"
    return found


def _only(make: Callable[[], str]) -> Callable[[str], str]:
    """Return the function for a file that is generated as a whole."""
    return lambda _: make()


FILES: dict[str, Callable[[str], str]] = {
    INDEX: _only(index),
    **{f"ovir/opset{opset}.py": _only(partial(opset_module, opset)) for opset in range(1, NEWEST_OPSET + 1)},
    **{f"ovir/opset{opset}.pyi": _only(partial(stub, opset)) for opset in range(1, NEWEST_OPSET + 1)},
    "docs/operations.md": _only(operations_page),
    "docs/onnx.md": with_table,
    "docs/reference/commands.md": _only(commands_page),
    "README.md": with_counts,
}
"""The generated files, each with the function from the contents that it has to those that it should have."""


def generated(name: str) -> tuple[str, str]:
    """Return the contents that a file has, and those that it should have."""
    path = ROOT / name
    present = path.read_text(encoding="utf-8") if path.exists() else ""
    return present, FILES[name](present)


def main() -> None:
    for name in FILES:
        present, expected = generated(name)
        if present == expected:
            continue
        (ROOT / name).write_text(expected, encoding="utf-8")
        print(f"wrote {name}")
        if name == INDEX:  # the other files follow from it
            os.execv(sys.executable, [sys.executable, "-m", "ovir.generated_files"])


if __name__ == "__main__":
    main()
