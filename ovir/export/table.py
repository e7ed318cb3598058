"""Write the table of docs/onnx.md: ``python -m ovir.export.table docs/onnx.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ovir.export.registry import exporter_of
from ovir.ops import find
from ovir.ops.base.opsets import OPERATIONS

_STRUCTURE = {
    "Parameter": "input",
    "Result": "output",
    "Const": "initializer",
    "ReadValue": "input",
    "Assign": "output",
}
"""The parts of an ONNX graph for the operations that make the structure of a model."""
_BEGIN, _END = "<!-- table: written by python -m ovir.export.table -->\n", "<!-- end of the table -->"


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each operation version, the operators that it is exported as, and limits or the reason for none."""
    for name, births in sorted(OPERATIONS.items()):
        for birth in births:
            operation = find(name, birth)
            assert operation is not None
            exporter = exporter_of(operation)
            if name in _STRUCTURE:
                yield f"{name}-{birth}", _STRUCTURE[name], ""
            elif exporter is None:
                yield f"{name}-{birth}", "not exported", "there is no exporter for it"
            elif exporter.export is None:
                yield f"{name}-{birth}", "not exported", exporter.limits
            else:
                yield f"{name}-{birth}", exporter.target, exporter.limits


def markdown() -> str:
    """Return the table, and how many operation versions are exported."""
    found = list(rows())
    exported = sum(target != "not exported" for _, target, _ in found)
    lines = [f"{exported} of {len(found)} operation versions are exported.", ""]
    lines += ["| operation | exported as | limits |", "|---|---|---|"]
    lines += [f"| {operation} | {target} | {limits} |" for operation, target, limits in found]
    return "\n".join(lines) + "\n"


def with_table(document: str) -> str:
    """Return a document with the table as it is now."""
    before, _, rest = document.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{markdown()}\n{_END}{after}"


def main() -> None:
    """Write the table into the given document."""
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
