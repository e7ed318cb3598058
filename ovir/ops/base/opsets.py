"""Find the operation version that a type and an opset mean, for all of OpenVINO's opsets 1 to 17.

The facts are from the opset tables that OpenVINO ships (``openvino/opsets/opsetN_tbl.hpp``), extended by the opset
names ``extension`` and ``experimental``, which its reader accepts too.
"""

from __future__ import annotations

import re
from functools import cache

from ovir.diagnostics.wording import closest

NEWEST_OPSET = 17

# type: {first opset: opsets that hold this version}; x stands for "extension" and "experimental".
OPERATIONS: dict[str, dict[int, str]] = {
    "Abs": {1: "1-16"},
    "Acos": {1: "1-16"},
    "Acosh": {4: "4-16"},
    "AdaptiveAvgPool": {8: "8-16"},
    "AdaptiveMaxPool": {8: "8-16"},
    "Add": {1: "1-16"},
    "Asin": {1: "1-16"},
    "Asinh": {4: "4-16"},
    "Assign": {3: "3-5", 6: "6-16"},
    "Atan": {1: "1-16"},
    "Atanh": {4: "4-16"},
    "AvgPool": {1: "1-13", 14: "14-15", 16: "16"},
    "BatchNormInference": {1: "1-4", 5: "5-16"},
    "BatchToSpace": {2: "2-16"},
    "BGRtoNV12": {17: "17"},
    "BinaryConvolution": {1: "1-16"},
    "BitwiseAnd": {13: "13-16"},
    "BitwiseLeftShift": {15: "15-16"},
    "BitwiseNot": {13: "13-16"},
    "BitwiseOr": {13: "13-16"},
    "BitwiseRightShift": {15: "15-16"},
    "BitwiseXor": {13: "13-16"},
    "Broadcast": {1: "1-2", 3: "3-16"},
    "Bucketize": {3: "3-16"},
    "Ceiling": {1: "1-16"},
    "Clamp": {1: "1-16"},
    "Col2Im": {15: "15-16"},
    "Concat": {1: "1-16"},
    "Const": {1: "1-16"},
    "Convert": {1: "1-17"},
    "ConvertLike": {1: "1-16"},
    "ConvertPromoteTypes": {14: "14-16"},
    "Convolution": {1: "1-16"},
    "ConvolutionBackpropData": {1: "1-16"},
    "Cos": {1: "1-16"},
    "Cosh": {1: "1-16"},
    "CTCGreedyDecoder": {1: "1-16"},
    "CTCGreedyDecoderSeqLen": {6: "6-16"},
    "CTCLoss": {4: "4-16"},
    "CumSum": {3: "3-16"},
    "DeformableConvolution": {1: "1-7", 8: "8-16"},
    "DeformablePSROIPooling": {1: "1-16"},
    "DepthToSpace": {1: "1-16"},
    "DetectionOutput": {1: "1-7", 8: "8-16"},
    "DFT": {7: "7-16"},
    "Divide": {1: "1-16"},
    "Einsum": {7: "7-16"},
    "Elu": {1: "1-16"},
    "EmbeddingBagOffsets": {15: "15-16"},
    "EmbeddingBagOffsetsSum": {3: "3-16"},
    "EmbeddingBagPacked": {15: "15-16"},
    "EmbeddingBagPackedSum": {3: "3-16"},
    "EmbeddingSegmentsSum": {3: "3-16"},
    "Equal": {1: "1-16"},
    "Erf": {1: "1-16"},
    "ErfInv": {17: "17"},
    "Exp": {1: "1-16"},
    "ExperimentalDetectronDetectionOutput": {6: "6-16,x"},
    "ExperimentalDetectronGenerateProposalsSingleImage": {6: "6-16,x"},
    "ExperimentalDetectronPriorGridGenerator": {6: "6-16,x"},
    "ExperimentalDetectronROIFeatureExtractor": {6: "6-16,x"},
    "ExperimentalDetectronTopKROIs": {6: "6-16,x"},
    "ExtractImagePatches": {3: "3-16"},
    "Eye": {9: "9-16"},
    "FakeConvert": {13: "13-16"},
    "FakeQuantize": {1: "1-16"},
    "Floor": {1: "1-16"},
    "FloorMod": {1: "1-16"},
    "Gather": {1: "1-6", 7: "7", 8: "8-16"},
    "GatherElements": {6: "6-16"},
    "GatherND": {5: "5-7", 8: "8-16"},
    "GatherTree": {1: "1-16"},
    "Gelu": {2: "2-6", 7: "7-16"},
    "GenerateProposals": {9: "9-16"},
    "Greater": {1: "1-16"},
    "GreaterEqual": {1: "1-16"},
    "GridSample": {9: "9-16"},
    "GRN": {1: "1-16"},
    "GroupConvolution": {1: "1-16"},
    "GroupConvolutionBackpropData": {1: "1-16"},
    "GroupedMatMul": {17: "17"},
    "GroupNormalization": {12: "12-16"},
    "GRUCell": {3: "3-16,x"},
    "GRUSequence": {5: "5-16"},
    "HardSigmoid": {1: "1-16"},
    "HSigmoid": {5: "5-16"},
    "HSwish": {4: "4-16"},
    "I420toBGR": {8: "8-16"},
    "I420toRGB": {8: "8-16"},
    "Identity": {16: "16"},
    "IDFT": {7: "7-16"},
    "If": {8: "8-16"},
    "Interpolate": {1: "1-3", 4: "4-10", 11: "11-16"},
    "Inverse": {14: "14-16"},
    "IRDFT": {9: "9-16"},
    "IsFinite": {10: "10-16"},
    "IsInf": {10: "10-16"},
    "IsNaN": {10: "10-16"},
    "ISTFT": {16: "16"},
    "Less": {1: "1-16"},
    "LessEqual": {1: "1-16"},
    "Log": {1: "1-16"},
    "LogicalAnd": {1: "1-16"},
    "LogicalNot": {1: "1-16"},
    "LogicalOr": {1: "1-16"},
    "LogicalXor": {2: "1-16"},
    "LogSoftmax": {5: "5-16"},
    "Loop": {5: "5-16"},
    "LRN": {1: "1-16"},
    "LSTMCell": {1: "1-3", 4: "4-16"},
    "LSTMSequence": {5: "5-16"},
    "MatMul": {1: "1-16"},
    "MatrixNms": {8: "8-16"},
    "Maximum": {1: "1-16"},
    "MaxPool": {1: "1-7", 8: "8-13", 14: "14-16"},
    "Minimum": {1: "1-16"},
    "Mish": {4: "4-16"},
    "Mod": {1: "1-16"},
    "MulticlassNms": {8: "8", 9: "9-16"},
    "Multinomial": {13: "13-16"},
    "Multiply": {1: "1-16"},
    "MVN": {2: "1-5", 6: "6-16"},
    "Negative": {1: "1-16"},
    "NMSRotated": {13: "13-16"},
    "NonMaxSuppression": {1: "1-2", 3: "3", 4: "4", 5: "5-8", 9: "9-16"},
    "NonZero": {3: "3-16"},
    "NormalizeL2": {1: "1-16"},
    "NotEqual": {1: "1-16"},
    "NV12toBGR": {8: "8-16"},
    "NV12toRGB": {8: "8-16"},
    "OneHot": {1: "1-15", 16: "16"},
    "Pad": {1: "1-11", 12: "12-16"},
    "Parameter": {1: "1-17"},
    "Power": {1: "1-16"},
    "PReLU": {1: "1-16"},
    "PriorBox": {1: "1-7", 8: "8-16"},
    "PriorBoxClustered": {1: "1-16"},
    "Proposal": {1: "1-3", 4: "4-16,x"},
    "PSROIPooling": {1: "1-16"},
    "RandomUniform": {8: "8-16"},
    "Range": {1: "1-3", 4: "4-16"},
    "RDFT": {9: "9-16"},
    "ReadValue": {3: "3-5", 6: "6-16"},
    "ReduceL1": {4: "4-16"},
    "ReduceL2": {4: "4-16"},
    "ReduceLogicalAnd": {1: "1-16"},
    "ReduceLogicalOr": {1: "1-16"},
    "ReduceMax": {1: "1-16"},
    "ReduceMean": {1: "1-16"},
    "ReduceMin": {1: "1-16"},
    "ReduceProd": {1: "1-16"},
    "ReduceSum": {1: "1-16"},
    "RegionYolo": {1: "1-16"},
    "ReLU": {1: "1-16"},
    "ReorgYolo": {2: "1-16"},
    "Reshape": {1: "1-16"},
    "Result": {1: "1-16"},
    "Reverse": {1: "1"},
    "ReverseSequence": {1: "1-16"},
    "RGBtoNV12": {17: "17"},
    "RNNCell": {1: "1,3-16,x"},
    "RNNSequence": {5: "5-16"},
    "ROIAlign": {3: "3-8", 9: "9-16"},
    "ROIAlignRotated": {15: "15-16"},
    "ROIPooling": {2: "1-16"},
    "Roll": {7: "7-16"},
    "Round": {5: "5-16"},
    "ScaledDotProductAttention": {13: "13-16"},
    "ScatterElementsUpdate": {3: "3-11", 12: "12-16"},
    "ScatterNDUpdate": {4: "4-14", 15: "15-16"},
    "ScatterUpdate": {3: "3-16"},
    "SearchSorted": {15: "15-16"},
    "SegmentMax": {16: "16"},
    "Select": {1: "1-16"},
    "Selu": {1: "1-16"},
    "ShapeOf": {1: "1-2", 3: "3-17"},
    "ShuffleChannels": {1: "1,3-16"},
    "Sigmoid": {1: "1-16"},
    "Sign": {1: "1-16"},
    "Sin": {1: "1-16"},
    "Sinh": {1: "1-16"},
    "Slice": {8: "8-16"},
    "SliceScatter": {15: "15-16"},
    "SoftMax": {1: "1-7", 8: "8-16"},
    "SoftPlus": {4: "4-16"},
    "SoftSign": {9: "9-16"},
    "SpaceToBatch": {2: "2-16"},
    "SpaceToDepth": {1: "1-16"},
    "SparseFillEmptyRows": {16: "16"},
    "Split": {1: "1-16"},
    "Sqrt": {1: "1-16"},
    "SquaredDifference": {1: "1-16"},
    "Squeeze": {1: "1-14", 15: "15-16"},
    "STFT": {15: "15-16"},
    "StridedSlice": {1: "1-16"},
    "StringTensorPack": {15: "15-16"},
    "StringTensorUnpack": {15: "15-16"},
    "Subtract": {1: "1-16"},
    "Swish": {4: "4-16"},
    "Tan": {1: "1-16"},
    "Tanh": {1: "1-16"},
    "TensorIterator": {1: "1-16"},
    "Tile": {1: "1-16"},
    "TopK": {1: "1-2", 3: "3-10", 11: "11-16"},
    "Transpose": {1: "1-16"},
    "Unique": {10: "10-16"},
    "Unsqueeze": {1: "1-16"},
    "VariadicSplit": {1: "1-16"},
    "Xor": {1: "1"},
}

RENAMED = {"constant": "Const", "relu": "ReLU", "prelu": "PReLU", "softmax": "SoftMax"}
"""OpenVINO's class names for types that files spell differently; OpenVINO reads both spellings."""

_CANONICAL = {name.lower(): name for name in OPERATIONS}


def canonical_type(type_name: str) -> str | None:
    """Return the type in its usual spelling, or None if it is in no opset."""
    key = type_name.lower()
    return _CANONICAL.get(key) or RENAMED.get(key)


@cache
def _holders(type_name: str) -> dict[str, int]:
    """Return the first opset of the version that each opset holds, by opset name."""
    result: dict[str, int] = {}
    for birth, ranges in OPERATIONS[type_name].items():
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            names = (
                ("extension", "experimental")
                if part == "x"
                else [f"opset{n}" for n in range(int(first), int(last or first) + 1)]
            )
            result.update(dict.fromkeys(names, birth))
    return result


def resolve(type_name: str, version: str) -> int | None:
    """Return the first opset of the operation version that a file means, or None if the opset lacks the operation."""
    name = canonical_type(type_name)
    return None if name is None else _holders(name).get(version.lower())


def is_opset(version: str) -> bool:
    """Return whether a file's version names an existing opset."""
    number = re.fullmatch(r"opset(\d+)", version.lower(), re.ASCII)
    return number is not None and len(number[1]) < 4 and 1 <= int(number[1]) <= NEWEST_OPSET


def why_unresolved(type_name: str, version: str) -> tuple[str, str | None]:
    """Return a sentence that explains why ``resolve`` found nothing, and a hint about what may be meant."""
    name = canonical_type(type_name)
    if not is_opset(version):
        return f"'{version}' is not an opset: known are opset1 to opset{NEWEST_OPSET}", None
    if name is None:
        meant = closest(type_name.lower(), _CANONICAL, cutoff=0.75)
        hint = f"did you mean {_CANONICAL[meant]}?" if meant else None
        return f"no opset has an operation '{type_name}'", hint
    return f"{version} does not contain {name}; it is in {', '.join(_opset_ranges(name))}", None


def _opset_ranges(name: str) -> list[str]:
    parts = [part for ranges in OPERATIONS[name].values() for part in ranges.split(",") if part != "x"]
    return [opset_range(*part.split("-")) for part in parts]


def opset_range(first: str | int, last: str | int | None = None) -> str:
    """Return the text for opsets from ``first`` to ``last``, which may be the same one."""
    return f"opset{first}" if last is None or str(last) == str(first) else f"opset{first} to opset{last}"
