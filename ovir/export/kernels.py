"""The element types for which the CPU provider of the installed onnxruntime has kernels, as it tells itself."""

from __future__ import annotations

from functools import cache


def kernel_types(op_type: str, version: int, variable: str) -> frozenset[str] | None:
    """Return the types, as schemas write them, for which onnxruntime computes a type variable of an operator.

    ``version`` is the opset in which this version of the operator begins. None means that nothing is known: onnxruntime
    is not installed, it has no kernel of the version (the operator may be a function of others, or newer than this
    onnxruntime), or its kernels do not restrict the variable.
    """
    found: set[str] = set()
    for first, last, types in _kernels().get(op_type, ()):
        # A kernel without an end computes only the version that it begins with.
        if first == version or (last != _OPEN and first <= version <= last):
            found.update(types.get(variable, ()))
    return frozenset(found) or None


_OPEN = 2**31 - 1
"""The last version that onnxruntime states for a kernel without an end."""


@cache
def _kernels() -> dict[str, list[tuple[int, int, dict[str, list[str]]]]]:
    """Return the first and last version and the types of all kernels for each operator."""
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def
    except ImportError:  # it is not installed, or built without this function
        return {}
    kernels: dict[str, list[tuple[int, int, dict[str, list[str]]]]] = {}
    for kernel in get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            kernels.setdefault(kernel.op_name, []).append((*kernel.version_range, kernel.type_constraints))
    return kernels
