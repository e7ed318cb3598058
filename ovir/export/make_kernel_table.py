"""Write ``kernels.tsv``: the element types for which the CPU provider of the installed onnxruntime has kernels.

Run ``python -m ovir.export.make_kernel_table`` after an update of onnxruntime. A line has an operator, the first and
the last opset, and the types of each type variable of its schema.
"""

from __future__ import annotations

from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

_LAST = 2**31 - 1


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
        fields = [f"{variable}={','.join(sorted(types))}" for variable, types in sorted(variables.items()) if types]
        lines.append("\t".join([name, str(first), str(min(last, 999) if last < _LAST else 999), *fields]))
    Path(__file__).with_name("kernels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
