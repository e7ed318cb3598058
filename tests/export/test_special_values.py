"""Every exported operation version meets special values, parameters and sizes in onnxruntime."""

from collections.abc import Iterator

import numpy as np
import pytest
from fuzz.cases import VERSIONS
from support.special_cases import STYLES, special_case

import ovir
from ovir.core.arrays import Array

pytestmark = pytest.mark.slow

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the comparison of exported models needs {package}")

from ovir.export.exporters import exporter_of  # noqa: E402  (it imports these packages)
from ovir.export.model_exporter import export_model  # noqa: E402
from ovir.export.session import OnnxRuntimeSession  # noqa: E402
from ovir.export.support import default_opset, held_as  # noqa: E402
from ovir.ops import find  # noqa: E402

EXPORTED = [
    (index, *version)
    for index, version in enumerate(VERSIONS)
    if exporter_of(find(*version)) is not None  # type: ignore[arg-type]
]
TOLERANCE = {1: 1e-1, 2: 1e-2, 4: 1e-4, 8: 1e-6}
"""The difference of a real number of a size in bytes, as a part of itself or of 4."""
_ALL = "onnxruntime computes each result of all elements, some of which are multiplied by 0"
_ORDER = "onnxruntime adds in another order, so that sums of large numbers overflow elsewhere"
_PADS = "onnxruntime multiplies the zeros around data by the filters"
_NANS = "onnxruntime orders NaN in another way"
_CELLS = "onnxruntime clips and activates NaN to numbers"
_BOXES = "boxes and scores that are infinite or NaN are ordered in another way"
_FRAMES = "samples beyond a window are multiplied by its zeros"
_REGIONS = "places that are infinite, NaN or far away become another pixel"
_MATRIX = "a product with the matrix of all weights multiplies the elements that a result does not read by 0"
DIFFERENT: dict[tuple[str, int], str] = {
    ("AdaptiveAvgPool", 8): "sums of windows are differences of running sums",
    **dict.fromkeys([("AvgPool", 1), ("AvgPool", 14)], _ORDER),
    **dict.fromkeys([("BatchNormInference", 1), ("BatchNormInference", 5)], "onnxruntime merges scale and variance"),
    **dict.fromkeys([("Convolution", 1), ("GroupConvolution", 1)], _PADS),
    **dict.fromkeys([("ConvolutionBackpropData", 1), ("GroupConvolutionBackpropData", 1)], _PADS),
    **dict.fromkeys([("DeformableConvolution", 1), ("DeformableConvolution", 8)], _PADS),
    **dict.fromkeys([("DFT", 7), ("IDFT", 7), ("RDFT", 9), ("IRDFT", 9)], _ALL),
    **dict.fromkeys([("STFT", 15), ("ISTFT", 16)], _FRAMES),
    **dict.fromkeys([("Interpolate", 1), ("Interpolate", 4), ("Interpolate", 11)], _MATRIX),
    **dict.fromkeys([("AdaptiveMaxPool", 8), ("MaxPool", 1), ("MaxPool", 8), ("MaxPool", 14)], _NANS),
    **dict.fromkeys([("ReduceMax", 1), ("ReduceMin", 1), ("SegmentMax", 16)], _NANS),
    **dict.fromkeys([("TopK", 1), ("TopK", 3), ("TopK", 11), ("Unique", 10), ("CTCGreedyDecoderSeqLen", 6)], _NANS),
    **dict.fromkeys([("ScatterElementsUpdate", 12), ("ScatterNDUpdate", 15)], _NANS),
    **dict.fromkeys([("GRUCell", 3), ("GRUSequence", 5), ("RNNSequence", 5)], _CELLS),
    **dict.fromkeys([("LSTMCell", 1), ("LSTMCell", 4), ("LSTMSequence", 5)], _CELLS),
    **dict.fromkeys([("MatrixNms", 8), ("Proposal", 1), ("Proposal", 4)], _BOXES),
    **dict.fromkeys([("GridSample", 9), ("PSROIPooling", 1), ("ROIAlign", 9)], _REGIONS),
    ("FakeConvert", 13): "onnxruntime does not round products of f16 before it converts them",
    ("FakeQuantize", 1): "limits of the output that are NaN or infinite are multiplied by the step 0",
    ("GroupNormalization", 12): _ORDER,
    ("HardSigmoid", 1): "NaN is kept",
    ("Inverse", 14): "a NaN is no pivot",
    ("Power", 1): "powers of integers are exact below 2^53",
    ("ReduceL1", 4): "onnxruntime saturates sums of integers",
    ("ReduceProd", 1): "products of integers are computed in f64",
    ("ScaledDotProductAttention", 13): "scores that are larger than the digits of f16 and bf16 are rounded",
}
"""Operation versions that are compared for usual numbers and special sizes only, because of faults of onnxruntime or
documented differences for the others."""
NOT_RUN = {
    **dict.fromkeys([("Acos", 1), ("Asin", 1), ("Atan", 1)], "onnxruntime has no kernel for f64"),
    ("Convert", 1): "onnxruntime has no kernel for some narrow types",
    ("SparseFillEmptyRows", 16): "a ReduceMax of nothing",
    ("Inverse", 14): "a Reshape to -1 of nothing",
    ("ISTFT", 16): "a Reshape to -1 of nothing",
    ("RegionYolo", 1): "a Reshape to -1 of nothing",
    ("ConvolutionBackpropData", 1): "onnxruntime wants results that are not empty",
    ("GroupConvolutionBackpropData", 1): "onnxruntime wants results that are not empty",
}
"""Operation versions of which onnxruntime does not run some models, with the reason."""


def _differences(index: int, style: str) -> Iterator[str]:
    """Yield what differs between a model and its export, with the feeds for which it differs."""
    special = special_case(index, style)
    if special is None:
        return
    case = special.case
    try:
        model = ovir.read_model(case.text, case.weights)
        compiled = ovir.compile_model(model)
        compiled(case.feeds)
        exported = export_model(model, default_opset())
    except (ovir.OvirError, IndexError) as error:
        if "OVIR999" in str(error):  # a fault of ovir
            raise
        return
    try:
        session = OnnxRuntimeSession(exported)
    except ovir.RunError:
        if VERSIONS[index] not in NOT_RUN:
            raise
        return
    kept = {value.name for value in exported.onnx.graph.inputs}
    rng = np.random.default_rng(0)
    for title, feeds in special.feeds([port.any_name for port in model.inputs], rng):
        if VERSIONS[index] in DIFFERENT and feeds is not case.feeds:
            return
        try:
            wanted = list(compiled(feeds).values())
        except ovir.OvirError:
            continue
        arrays = {name: array for name, array in zip(exported.inputs, feeds, strict=True) if name in kept}
        try:
            found = session.run(arrays, exported.outputs)
        except ovir.RunError:
            if VERSIONS[index] not in NOT_RUN:
                raise
            continue
        for port, ours, theirs in zip(model.outputs, wanted, found, strict=True):
            held = held_as(port.element_type, default_opset())
            assert held is not None
            if not _agree(ours.astype(held.to_dtype(), copy=False), theirs):
                yield f"{style} {case.attributes} {[str(t) for t in special.types]}, {title}: {theirs} for {ours}"


def _agree(ours: Array, theirs: Array) -> bool:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return ours.dtype.kind == "T" and ours.tolist() == theirs.tolist()
    if ours.dtype.kind not in "fV":
        return bool((ours == theirs).all())
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= TOLERANCE[ours.dtype.itemsize] * np.maximum(np.abs(a), 4)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return bool((same | (close & np.isfinite(a) & np.isfinite(b))).all())


@pytest.mark.parametrize(("index", "kind", "birth"), EXPORTED, ids=lambda value: str(value))
def test_special_values(index: int, kind: str, birth: int) -> None:
    for style in STYLES:
        if style == "parameters" and (kind, birth) in DIFFERENT:
            continue
        for difference in _differences(index, style):
            pytest.fail(difference)
