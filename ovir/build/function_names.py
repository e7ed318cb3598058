"""The names of the functions of an opset: OpenVINO's, in snake case."""

from __future__ import annotations

import re
from functools import cache

from ovir.ops.base import opsets

_OWN = {
    "Const": "constant",
    "ErfInv": "erfinv",
    "ExperimentalDetectronTopKROIs": "experimental_detectron_topk_rois",
    "GroupedMatMul": "grouped_matmul",
    "HSigmoid": "hsigmoid",
    "HSwish": "hswish",
    "If": "if_op",
    "IsNaN": "is_nan",
    "MatMul": "matmul",
    "PReLU": "prelu",
    "ReLU": "relu",
    "SoftMax": "softmax",
    "SoftPlus": "softplus",
    "SoftSign": "softsign",
    "TopK": "topk",
}
"""Names that are not the type in snake case."""

_ALIASES = {"absolute": "abs", "ceil": "ceiling", "cumsum": "cum_sum"}
"""Second names of functions."""


def function_name(type_name: str) -> str:
    """Return the name of the function that creates layers of a type, such as ``reduce_l1`` for ReduceL1."""
    if type_name in _OWN:
        return _OWN[type_name]
    spaced = re.sub(r"(?<=[A-Z0-9])to(?=[A-Z])", "_to_", type_name)  # BGRtoNV12
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", spaced)
    return spaced.lower()


@cache
def functions(opset: int) -> dict[str, tuple[str, int]]:
    """Return type and first opset of the operation version that each function of an opset creates, by name."""
    found = {}
    for type_name in opsets.OPERATIONS:
        birth = opsets.resolve(type_name, f"opset{opset}")
        if birth is not None:
            found[function_name(type_name)] = type_name, birth
    found.update({alias: found[name] for alias, name in _ALIASES.items() if name in found})
    return dict(sorted(found.items()))
