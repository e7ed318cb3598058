"""The table of docs/onnx.md: what each operation version is exported as."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.export.exporters import IN_PARTS_BY_NUMPY, exporter_of
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
NOT_EXPORTED = "in parts by NumPy"
_BEGIN, _END = "<!-- table: written by python -m ovir.generate -->\n", "<!-- end of the table -->"


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each operation version, the operators that it is exported as, and its limits.

    For a version that is not exported, these are ``NOT_EXPORTED`` and the reason.
    """
    for name, births in sorted(OPERATIONS.items()):
        for birth in births:
            operation = find(name, birth)
            assert operation is not None
            exporter = exporter_of(operation)
            if name in _STRUCTURE:
                yield f"{name}-{birth}", _STRUCTURE[name], ""
            elif exporter is None:
                yield f"{name}-{birth}", NOT_EXPORTED, IN_PARTS_BY_NUMPY[name]
            else:
                yield f"{name}-{birth}", exporter.target, exporter.limits


def markdown() -> str:
    """Return the table, after a sentence that counts the operation versions that are exported."""
    found = list(rows())
    left = sum(target == NOT_EXPORTED for _, target, _ in found)
    lines = [
        f"Of {len(found)} operation versions, {len(found) - left} are exported, and {left} run *{NOT_EXPORTED}*.",
        "",
    ]
    lines += ["| operation | exported as | limits |", "|---|---|---|"]
    lines += [f"| {operation} | {target} | {limits} |" for operation, target, limits in found]
    return "\n".join(lines) + "\n"


def with_table(document: str) -> str:
    """Return a document with the table as it is now."""
    before, _, rest = document.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{markdown()}\n{_END}{after}"
