"""The opsets of ONNX that models are exported to, and the kernels that the installed onnxruntime has."""

from __future__ import annotations

from functools import cache

import onnx

OLDEST_OPSET = 17
"""The lowest opset of ONNX that models are exported to."""
TESTED_OPSET = 26
"""The default: the newest opset that this release was tested with. docs/adding-an-export.md says how to raise it."""


@cache
def default_opset() -> int:
    """Return ``TESTED_OPSET``, or the newest opset that the installed packages run if they are older."""
    newest = min(TESTED_OPSET, onnx.defs.onnx_opset_version())
    return next((opset for opset in range(newest, OLDEST_OPSET, -1) if _is_run(opset)), OLDEST_OPSET)


def _is_run(opset: int) -> bool:
    """Return whether the installed onnxruntime opens models of an opset; True if none is installed."""
    try:
        import onnxruntime
    except ImportError:
        return True
    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "probe", [info], [result])
    probe = onnx.helper.make_model_gen_version(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    try:
        onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime raises classes of its own, which share no public base
        return False
    return True


# --------------------------------------------------------------------------- kernels of onnxruntime


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
