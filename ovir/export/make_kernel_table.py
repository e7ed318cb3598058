"""Write ``kernels.tsv``: the element types for which the CPU provider of the installed onnxruntime has kernels.

Run ``python -m ovir.export.make_kernel_table`` after an update of onnxruntime. A line has an operator, the first and
the last opset, and the types of each type variable of its schema.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

_LAST = 2**31 - 1
_OPEN = 999


def main() -> None:
    """Write the table next to this file."""
    merged: dict[tuple[str, int, int], dict[str, set[str]]] = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider != "CPUExecutionProvider" or kernel.domain:
            continue
        variables = merged.setdefault((kernel.op_name, *kernel.version_range), {})
        for name, types in kernel.type_constraints.items():
            variables.setdefault(name, set()).update(t[7:-1] for t in types if t.startswith("tensor("))
    lines = [f"# operators, opsets and types of the CPU provider of onnxruntime {onnxruntime.__version__}"]
    for (name, first, last), variables in sorted(merged.items()):
        last = _last(name, first) if last == _LAST else last
        fields = [f"{variable}={','.join(sorted(types))}" for variable, types in sorted(variables.items()) if types]
        lines.append("\t".join([name, str(first), str(last), *fields]))
    Path(__file__).with_name("kernels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _last(name: str, first: int) -> int:
    """Return the last opset of a kernel without an end.

    onnxruntime does not use it for later versions of an operator, unless these are functions of other operators.
    """
    known = {s.since_version: s for s in onnx.defs.get_all_schemas_with_history() if not s.domain and s.name == name}
    later = [version for version, schema in known.items() if version > first and not _is_function(schema)]
    return min(later) - 1 if first in known and later else _OPEN


def _is_function(schema: Any) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


if __name__ == "__main__":
    main()
