"""The opsets of ONNX that models are exported to."""

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
