"""What operations declare for code outside of them."""

import ast
import itertools
import re
from math import inf
from pathlib import Path

import numpy as np
import pytest
from fuzz.cases import VERSIONS, make_case
from support.builder import Net
from support.grown_cases import cases_of
from support.tensors import arrays, operation, types

import ovir
from ovir.analysis.random_inputs import generate_inputs, input_domains
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.inference.known_values import as_tuple
from ovir.ops import find
from ovir.ops.base.domains import Domain, Index, by_input
from ovir.ops.base.opsets import OPERATIONS
from ovir.ops.base.traits import Signature, Traits, input_names, method_signature
from ovir.ops.infrastructure import Parameter

PACKAGE = Path(ovir.__file__).parent
CLASSES = [cls for name, births in OPERATIONS.items() for birth in births if (cls := find(name, birth))]


def test_declarations_name_inputs_and_attributes() -> None:
    for cls in CLASSES:
        names = set(input_names(cls))
        assert set(cls.domains) <= names, cls
        for rule in cls.domains.values():
            for field in ("into", "of", "count"):
                assert getattr(rule, field, None) in {None, *names}, cls
            axis = getattr(rule, "axis", None)
            assert axis is None or isinstance(axis, int) or axis in names | cls.fields, cls
        listed = cls.moves_elements, cls.forwards_values, cls.decompresses, cls.same_types, cls.exact_inputs
        for position in itertools.chain(*listed):
            assert position == -1 or position < len(names), cls


def test_every_trait_is_named_in_the_documentation() -> None:
    page = (PACKAGE.parent / "docs" / "operation-classes.md").read_text(encoding="utf-8")
    named = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"\w+", code)}
    traits = {name for name in {**vars(Traits), **Traits.__annotations__} if not name.startswith("_")}
    assert sorted(traits - named) == []


STRUCTURAL = {"Parameter", "Result", "Const", "ReadValue", "Assign", "If", "Loop", "TensorIterator"}
"""Operations that make the structure of a model: its ends, its constants, its state and its bodies."""
NAMING = {
    *("ir/executed.py", "ir/legacy.py", "ir/writing/compression.py", "graph/layers.py", "debugging/weight_types.py"),
    *("inference/layer_weights.py", "inference/pinned_sizes.py", "runtime/rewrites.py"),
    *("editing/size_fitting.py", "editing/sizes.py", "editing/positions.py", "editing/adaptation.py"),
    *("editing/suppression.py", "editing/guesses.py", "editing/item_fitting.py", "editing/other_exports.py"),
    *("editing/weight_compression.py", "editing/simplification.py", "editing/states.py", "editing/preprocessing.py"),
    *("checks/conditions.py", "checks/rules/devices.py", "debugging/comparison.py", "debugging/item_calls.py"),
    *("debugging/f32_layers.py", "debugging/device_properties.py", "debugging/divergences.py", "cli/operations.py"),
}
"""Modules that create or describe layers, list the operations of extensions, know what OpenVINO does to layers or what compressors
and quantizers write, reason about conditions, or rewrite steps of a plan."""


def named_operations(path: Path) -> set[str]:
    """Return the operations that a module names in strings or imports."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    classes = {a.name for node in imports if (node.module or "").startswith("ovir.ops.") for a in node.names}
    return strings & OPERATIONS.keys() | classes & {cls.__name__ for cls in CLASSES}


@pytest.mark.slow
def test_code_outside_of_ops_names_structural_operations_only() -> None:
    inside = ("ops", "tokenizers", "fast", "export", "lowering", "fuzzing")
    paths = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py")}
    outside = {name.as_posix(): path for name, path in paths.items() if name.parts[0] not in inside}
    faults = {name for name, path in outside.items() if named_operations(path) - STRUCTURAL}
    assert faults == NAMING, "let the operation declare a trait instead: ovir/ops/base/traits.py"


LIMITED = [
    (index, cls)
    for index, version in enumerate(VERSIONS)
    if (cls := find(*version)) and cls.within != (-np.inf, np.inf)
]


@pytest.mark.slow
@pytest.mark.parametrize(("index", "cls"), LIMITED, ids=lambda value: getattr(value, "__name__", ""))
def test_no_element_lies_outside_of_what_an_operation_declares(index: int, cls: type[ovir.Operator]) -> None:
    compared = 0
    for attempt in range(20):
        case = make_case(index + attempt * len(VERSIONS), reals=("", "extreme")[attempt % 2])
        try:
            model = ovir.read_model(case.text, case.weights)
            results = ovir.compile_model(model)(case.feeds).values()
        except ovir.OvirError:
            continue
        (layer,) = (layer for layer in model.layers if type(layer.operator) is cls)
        read = cls.with_elements_read([port.element_type for port in layer.inputs])
        for port, array in zip(model.outputs, results, strict=True):
            if port.element_type.is_real or port.element_type not in read:
                found = array[~np.isnan(array)].astype(np.float64)
                margin = 1e-2 if array.dtype.itemsize <= 2 else 1e-6
                assert ((found >= cls.within[0] - margin) & (found <= cls.within[1] + margin)).all(), (
                    case.feeds,
                    array,
                )
                compared += found.size
    assert compared


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(VERSIONS)), ids=lambda index: "-".join(map(str, VERSIONS[index])))
def test_what_operations_say_of_their_outputs_is_so(index: int) -> None:
    for case in cases_of(index, 2):
        inputs = [constant_type(array, given) for array, given in zip(case.arrays, case.types, strict=True)]
        try:
            inferred = as_tuple(case.op.infer(*inputs))
            if not inferred or inferred[0].shape.least_size > 1 << 20:
                continue
            op = case.op.applied(inputs, inferred)
            result = op.run(*case.arrays)
        except (ovir.OvirError, OperatorError):
            continue
        result = result[0] if isinstance(result, tuple) else result
        if op.why_unchanged(inputs, inferred[0]) is not None:
            np.testing.assert_array_equal(result, case.arrays[0])
        if (axes := op.permutation(inputs)) is not None:
            np.testing.assert_array_equal(result, case.arrays[0].transpose(axes))
        counts = op.rows_from(inputs, inferred[0].shape) if result.ndim and len(result) > 1 else None
        for row in range(len(result)) if counts is not None else ():
            rows = [a[row * n : (row + 1) * n] if n else a for a, n in zip(case.arrays, counts or (), strict=True)]
            np.testing.assert_array_equal(op.run_rows((1, *result.shape[1:]), *rows), result[row : row + 1])


@pytest.mark.parametrize(
    ("op", "inputs", "changed"),
    [
        ("Broadcast-3", "2,3 =[2,3]", "1,3 =[2,3]"),
        ("Concat-1 axis=0", "2,3", "2,3 0,3"),
        ("ConvertLike-1", "2 f32[4]", "2 f16[4]"),
        ("Identity-16", "2,3", ""),
        ("Pad-1", "2,3 =[0,0] =[0,0]", "2,3 =[0,1] =[0,-1]"),
        ("Pad-1", "2 =[0] =[0]", "2 =[0] i64[1]"),
        ("Reshape-1", "2,3 =[-1,3]", "2,3 =[3,2]"),
        ("Slice-8", "4,5 =[0] =[9] =[1]", "4,5 =[0] =[9] =[-1]"),
        ("Slice-8", "4,5 =[0] =[9] =[1]", "4,5 =[1] =[9] =[1]"),
        ("Split-1 num_splits=1", "2,3 =0", "?,3 i64[]"),
        ("StridedSlice-1 begin_mask=1 end_mask=1", "4 =[0] =[0] =[1]", "4 =[0] =[0] =[-1]"),
        ("StridedSlice-1 begin_mask=1 end_mask=1", "4 =[0] =[0]", "4 =[0] =[3] i64[1]"),
        ("StridedSlice-1 begin_mask=1 end_mask=1 new_axis_mask=0", "4 =[0] =[0]", ""),
        ("StridedSlice-1 begin_mask=1 end_mask=1 new_axis_mask=1", "", "1 =[0] =[0]"),
        ("Tile-1", "2,3 =[1,1]", "2,3 =[1,2]"),
        ("Transpose-1", "2,3 =[0,1]", "2,2 =[1,0]"),
    ],
)
def test_which_layers_pass_on_their_input(op: str, inputs: str, changed: str) -> None:
    for text, is_same in ((inputs, True), (changed, False)):
        given = types(text)
        result = as_tuple(operation(op).infer(*given))[0] if text else None
        assert result is None or (operation(op).why_unchanged(given, result) is not None) == is_same, text


@pytest.mark.parametrize(
    ("op", "inputs", "sizes"),
    [
        ("Convolution-1 strides=3,1 dilations=2,1", "1,3,9,? 4,3,2,4", {2: 3, 3: 4}),
        ("GroupConvolution-1 strides=3", "1,4,9 2,2,2,2", {2: 3}),
        ("Convolution-1", "1,3,9 4,3,?", {}),
        ("Convolution-1", "... 4,3,2", {}),
        ("ConvolutionBackpropData-1", "1,3,9,9 3,4,5,6", {2: 2, 3: 2}),
        ("MaxPool-1 kernel=3,2 strides=1,4", "1,3,9,9", {2: 3, 3: 4}),
        ("AdaptiveAvgPool-8", "1,3,9,9 =[3,5]", {2: 4, 3: 6}),
        ("AdaptiveAvgPool-8", "1,3,9,9 i64[2]", {}),
        ("ExtractImagePatches-3 sizes=3,2 strides=1,4 rates=2,1 auto_pad=valid", "1,3,9,9", {2: 5, 3: 4}),
        ("Interpolate-11", "1,3,9,9 =[3,5]", {2: 2, 3: 2}),
        ("Interpolate-11", "1,3,9,9 =[3] =[3]", {3: 2}),
        ("Interpolate-11", "1,3,9,9 =[3] i64[1]", {}),
        ("ReLU-1", "1,3,9,9", {}),
    ],
)
def test_the_least_sizes_for_which_windows_have_an_effect(op: str, inputs: str, sizes: dict[int, int]) -> None:
    assert operation(op).least_sizes(types(inputs)) == sizes


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("MatMul-1", "2,5,3 3,4"),
        ("MatMul-1 transpose_a=true transpose_b=true", "2,3,5 4,3"),
        ("MatMul-1", "3 3"),
        ("GroupedMatMul-17", "2,6,3 2,4,3"),
        ("Convolution-1 strides=2,1", "2,3,9,8 4,3,3,2"),
        ("GroupConvolution-1", "2,4,8 2,3,2,3"),
        ("Einsum-7 equation=bij,bjk->bik", "2,3,4 2,4,5"),
        ("ConvolutionBackpropData-1 strides=2,1", "2,3,9,8 3,4,3,2"),
        ("GroupConvolutionBackpropData-1", "2,4,8 2,2,3,3"),
        ("DeformableConvolution-8 group=1 deformable_group=1", "1,4,5,5 1,18,3,3 2,4,3,3"),
    ],
)
def test_multiply_accumulates_are_the_products_of_ones(op: str, shapes: str) -> None:
    """Of ones, each product is 1, and the sum of the results is the number of products."""
    made, given = operation(op), arrays(shapes)
    if "Deformable" in op:
        given[1] *= 0  # offsets
    result = as_tuple(made.infer(*types(shapes)))[0]
    assert made.multiply_accumulates(types(shapes), result.shape) == int(made.run(*given).sum())


POOL = "strides=1,1 pads_begin=0,0 exclude-pad=true"
ALIGN = "pooled_h=2 pooled_w=5 spatial_scale=1"


@pytest.mark.parametrize(
    ("op", "inputs", "work", "memory"),
    [
        ("Add-1", "2,3 3", 4 * (6 + 3 + 6), 0),
        ("Add-1", "?,3 3", inf, 0),
        ("Add-1", "f16[2,3] f16[3]", 4 * (6 + 3 + 6), 2 * 6 * 4),
        ("Add-1", "f64[2,3] f64[3]", 4 * (6 + 3 + 6), 6 * 6 * 8),
        ("Transpose-1", "f16[2,3] =[1,0]", 4 * (6 + 2 + 6), 0),
        ("ReduceSum-1", "f64[2,3] =[1]", 4 * (6 + 1 + 2), 0),
        (f"AvgPool-14 kernel=3,4 pads_end=1,0 {POOL}", "1,2,2,5", 4 * (20 + 4) + 4 * 2 * 4, 0),
        (f"AvgPool-14 kernel=3,4 pads_end=1,0 {POOL}", "1,2,?,5", inf, 0),
        (f"AvgPool-14 kernel=4,2 pads_end=1,0 {POOL}", "1,2,3,5", 4 * (30 + 8) + 8 * 3 * 2, 0),
        (f"AvgPool-14 kernel=5,2 pads_end=4,0 {POOL}", "1,2,3,5", 4 * (30 + 24) + 24 * 3 * 2, 5 * 30 * 4),
        ("CTCLoss-4", "3,5,4 i64[3] i64[3,5] i64[3]", 4 * (60 + 3 + 15 + 3 + 3) + 10 * 3 * 5 * 11, 3 * 13 * (4 * 4 + 16)),
        ("CTCLoss-4", "?,5,4 i64[3] i64[3,5] i64[3]", inf, 0),
        ("CTCLoss-4", "3,?,4 i64[3] i64[3,5] i64[3]", inf, 3 * 3 * (4 * 4 + 16)),
        ("GatherTree-1", "5,2,3 5,2,3 2 f32=9", 4 * (30 + 30 + 2 + 1 + 30) + 10_000 * 5, 4 * 30 * 4),
        ("GatherTree-1", "?,2,3 5,2,3 2 f32=9", inf, None),
        ("GroupedMatMul-17", "3,2,4 3,5,4", 4 * (24 + 60 + 30) + 120 + 10_000 * 3, 0),
        ("ISTFT-16", "2,3,5,2 4 =4 =2", 4 * (60 + 4 + 1 + 1 + 24) + 10_000 * 2, 60 * 4),
        ("DFT-7", "4,6,2 =[1,0]", 4 * (48 + 2 + 48), 48 * 4),
        ("EmbeddingBagPackedSum-3", "9,5 i64[4,3]", 4 * (45 + 12 + 20) + 4 * 12 * 5, 12 * (2 * 20 + 16)),
        ("EmbeddingBagPackedSum-3", "f64[9,5,2] i64[4,3]", 4 * (90 + 12 + 40) + 4 * 12 * 10, 12 * (2 * 80 + 16)),
        ("EmbeddingBagPackedSum-3", "9,0 i64[4,3]", 4 * 12, 12 * 16),
        ("EmbeddingBagPackedSum-3", "f16[9,5] i64[4,3]", 4 * (45 + 12 + 20) + 4 * 12 * 5, 12 * (2 * 20 + 16) + 2 * 45 * 4),
        ("GridSample-9 mode=nearest", "f16[2,3,7,7] 2,4,5,2", 4 * (294 + 80 + 120), 40 * (2 * 12 + 24 + 64) + 2 * 294 * 4),
        ("Interpolate-11", "f16[1,2,3,4] =[5,7] =[2,3]", 4 * (24 + 2 + 2 + 70), 640 * 25 + 2 * 70 * 4),
        (f"AvgPool-14 kernel=5,2 pads_end=4,0 {POOL}", "f16[1,2,3,5]", 4 * (30 + 24) + 24 * 3 * 2, 5 * 30 * 4 + 2 * 30 * 4),
        ("EmbeddingBagPackedSum-3", "9,5 i64[0,3]", 4 * 45, 0),
        ("EmbeddingBagPackedSum-3", "9,5 i64[4,?]", inf, 0),
        ("EmbeddingBagPackedSum-3", "9,? i64[4,3]", inf, 12 * 16),
        ("Einsum-7 equation=ij,jk->ik", "5,9 9,6", 4 * (45 + 54 + 30) + 5 * 9 * 6, 0),
        ("ScaledDotProductAttention-13", "2,3,4 2,5,4 2,5,6", 4 * (24 + 40 + 60 + 36) + 2 * 3 * 5 * (4 + 6), 0),
        ("GridSample-9 mode=nearest", "2,3,7,7 2,4,5,2", 4 * (294 + 80 + 120), 40 * (2 * 12 + 24 + 64)),
        ("GridSample-9 mode=bilinear", "2,3,7,7 2,4,5,2", 4 * (294 + 80 + 120), 40 * (5 * 12 + 4 * 24 + 64)),
        ("GridSample-9 mode=bicubic", "f64[2,3,7,7] 2,4,5,2", 4 * (294 + 80 + 120), 40 * (17 * 24 + 16 * 24 + 64)),
        ("Interpolate-11", "1,2,3,4 =[5,7] =[2,3]", 4 * (24 + 2 + 2 + 70), 640 * (1 + 2 + 3 + 4 + 1 + 2 + 5 + 7)),
        ("Inverse-14", "2,3,3", 4 * (18 + 18) * 3, 3 * 18 * 4),
        ("NonMaxSuppression-9", "1,9,4 1,2,9 =[5]", 18 * (30_000 + 9 * 20) + 4 * (36 + 18 + 1 + 30 + 30 + 1), 40 * 36 * 4),
        ("NonMaxSuppression-9", "1,?,4 1,2,? =[5]", inf, None),
        ("NMSRotated-13", "1,9,5 1,2,9 =[5] f32=0.5 f32=0.5", 18 * (30_000 + 9 * 500) + 4 * (63 + 3 + 61), 40 * 45 * 4),
        ("MulticlassNms-8", "1,9,4 1,2,9", 18 * (30_000 + 9 * 20) + 4 * (36 + 18 + 18 * 6 + 18 + 1), 40 * 36 * 4),
        ("MatrixNms-8", "1,9,4 1,2,9", 18 * (30_000 + 9 * 100) + 4 * (36 + 18 + 18 * 6 + 18 + 1), 40 * 36 * 4),
        ("DetectionOutput-8 keep_top_k=6 top_k=3 normalized=true", "2,16 2,12 1,2,16", 18 * (30_000 + 3 * 20) + 4 * (32 + 24 + 32 + 84), 40 * 84 * 4),
        ("Proposal-4 base_size=16 pre_nms_topn=10 post_nms_topn=5 nms_thresh=0.5 feat_stride=16 min_size=1 ratio=1 scale=8", "2,2,3,4 2,4,3,4 3", 20 * (30_000 + 10 * 20) + 4 * (48 + 96 + 3 + 50 + 10), 40 * 96 * 4),
        ("GenerateProposals-9 min_size=1 nms_threshold=0.5 pre_nms_count=30 post_nms_count=5", "2,3 3,4,2,4 2,8,3,4 2,2,3,4", 48 * (30_000 + 24 * 20) + 4 * (6 + 96 + 192 + 48 + 40 + 10 + 2), 40 * 192 * 4),
        (f"ROIAlign-3 {ALIGN} sampling_ratio=3", "1,2,8,8 3,4 i32[3]", 4 * (128 + 12 + 3 + 60) + 60 * 4 * 3 * 3, 14 * 128 * 4),
        (f"ROIAlign-3 {ALIGN} sampling_ratio=0", "1,2,8,8 3,4 i32[3]", 4 * (128 + 12 + 3 + 60) + 60 * 4 * 64 / 10, 14 * 128 * 4),
        (f"ROIAlign-3 {ALIGN} sampling_ratio=0", "1,2,?,8 3,4 i32[3]", inf, None),
        ("ROIPooling-2 pooled_h=2 pooled_w=2 spatial_scale=1", "1,2,6,8 3,5", 4 * (96 + 15 + 24) + 24 * 4 * 48 / 4, 14 * 96 * 4),
        ("ROIPooling-2 pooled_h=2 pooled_w=2 spatial_scale=1 method=bilinear", "1,2,6,8 3,5", 4 * (96 + 15 + 24) + 24 * 4, 14 * 96 * 4),
        ("PSROIPooling-1 output_dim=2 group_size=2 spatial_scale=1 mode=average", "1,8,4,4 3,5", 4 * (128 + 15 + 24) + 24 * 4 * 16 / 4, 14 * 128 * 4),
        ("PSROIPooling-1 output_dim=2 group_size=2 spatial_scale=1 mode=bilinear spatial_bins_x=2 spatial_bins_y=3", "1,12,4,4 3,5", 4 * (192 + 15 + 24) + 24 * 4 * 6, 14 * 192 * 4),
        ("DeformablePSROIPooling-1 output_dim=2 spatial_scale=1 group_size=2 spatial_bins_x=2 spatial_bins_y=3", "1,8,4,4 3,5", 4 * (128 + 15 + 24) + 24 * 4 * 6, 14 * 128 * 4),
        ("ExperimentalDetectronROIFeatureExtractor-6 output_size=2 sampling_ratio=3 pyramid_scales=4,8", "3,4 1,2,8,8 1,2,4,4", 4 * (12 + 128 + 32 + 24 + 12) + 24 * 4 * 9, 14 * 128 * 4),
        ("RNNSequence-5 hidden_size=4", "2,5,3 2,1,4 =[3,4] 1,4,3 1,4,4 1,4", 4 * (30 + 8 + 2 + 12 + 16 + 4 + 40 + 8) + (12 + 16) * (3 + 4), 6 * 40 * 4),
        ("RNNSequence-5 hidden_size=4", "2,5,3 2,1,4 i64[2] 1,4,3 1,4,4 1,4", 4 * (30 + 8 + 2 + 12 + 16 + 4 + 40 + 8) + (12 + 16) * 2 * 5, 6 * 40 * 4),
        ("LSTMCell-4 hidden_size=4", "2,3 2,4 2,4 16,3 16,4 16", 4 * (6 + 8 + 8 + 48 + 64 + 16 + 8 + 8) + 2 * (48 + 64), 11 * 64 * 4),
        ("StringTensorPack-15", "=[0,4] =[4,3] u8[9]", 4 * (2 + 2 + 9 + 2) + 4, None),
        ("StringTensorPack-15", "i64[2] i64[2] u8[9]", 4 * (2 + 2 + 9 + 2) * 10, None),
        ("StringTensorPack-15", "=[0,4] i64[2] u8[9]", 4 * (2 + 2 + 9 + 2) * 10, None),
        ("StringTensorPack-15", "i64[2] i64[2] u8[?]", inf, None),
        ("TopK-3 axis=-1", "2,3 =2", 4 * (6 + 1 + 4 + 4), 4 * 6 * 4),
        ("Unique-10", "2,3", 4 * (6 + 6 + 6 + 6 + 6), 60 * 6 * 8),
    ],
)  # fmt: skip
def test_work_and_memory_of_kernels(op: str, inputs: str, work: float, memory: float | None) -> None:
    """Each element of a tensor is work of 4; a kernel adds its sums, its pairs of boxes, its steps in Python, and what it
    gathers."""
    made, given = operation(op), types(inputs)
    outputs = as_tuple(made.infer(*given))
    assert made.work(given, outputs) == work
    assert memory is None or made.temporary_bytes(given, outputs) == memory


@pytest.mark.parametrize(
    ("op", "inputs", "count"),
    [
        ("ScaledDotProductAttention-13", "2,3..4,4 2,5,4 2,5,6", "300..400"),
        ("ScaledDotProductAttention-13", "... 2,5,4 2,5,6", "?"),
        ("ScaledDotProductAttention-13", "2,3,4 2,5,4 ...", "120.."),
        ("MatMul-1", "2,3..5 ?,4", "24..40"),
        ("MatMul-1 transpose_a=true", "5 5,4", "20"),
        ("MatMul-1", "... 3,4", "?"),
        ("Einsum-7 equation=ii->i", "3,3", "None"),
        ("Einsum-7 equation=ij,jk->ik", "2,? 3,4", "24"),
        ("Einsum-7 equation=ij,jk->ik", "... 3,4", "?"),
        ("Einsum-7 equation=...i,i->...", "2,4,3 3", "24"),
        ("RNNSequence-5 hidden_size=4", "?,5,3 ?,1,4 i64[?] 1,4,3 1,4,4 1,4", "?"),
        ("ReLU-1", "2,3", "None"),
    ],
)
def test_multiply_accumulates_of_what_is_known(op: str, inputs: str, count: str) -> None:
    made = operation(op)
    output = as_tuple(made.infer(*types(inputs)))[0].shape
    assert str(made.multiply_accumulates(types(inputs), output)) == count


@pytest.mark.parametrize(
    ("type", "position", "rank", "axes"),
    [
        ("Convolution", 0, 4, ()),
        ("Convolution", 1, 4, (0,)),
        ("GroupConvolution", 1, 5, (0, 1)),
        ("ConvolutionBackpropData", 1, 4, (1,)),
        ("ConvolutionBackpropData", 2, 1, None),
        ("GroupConvolutionBackpropData", 1, 5, (0, 2)),
        ("BinaryConvolution", 1, 4, None),
        ("Add", 1, 4, None),
    ],
)
def test_axes_of_scales(type: str, position: int, rank: int, axes: tuple[int, ...] | None) -> None:
    cls = find(type, 1)
    assert cls is not None
    assert cls.scale_axes(cls.__new__(cls), position, rank) == axes


def test_axes_of_scales_of_products() -> None:
    """The rows of the first matrix and the columns of the second become channels of the product."""
    for rank in (2, 3):
        for transposed, first, second in (("false", rank - 2, rank - 1), ("true", rank - 1, rank - 2)):
            product = operation(f"MatMul-1 transpose_a={transposed} transpose_b={transposed}")
            assert [product.scale_axes(position, rank) for position in (0, 1)] == [(first,), (second,)]
    assert operation("MatMul-1").scale_axes(0, 1) == operation("MatMul-1").scale_axes(1, 1) == ()


@pytest.mark.parametrize(
    ("before", "data", "reshape", "is_same"),
    [
        ("2,3,4", "6,4", "Reshape-1 =[8,3]", True),
        ("2,3,4", "6,4", "Reshape-1 =[8,-1]", True),
        ("0,3,4", "6,0", "Reshape-1 =[0,4]", False),
        ("6,2,2", "6,4", "Reshape-1 special_zero=true =[0,-1]", True),
        ("2,3,4", "6,4", "Reshape-1 special_zero=true =[0,-1]", False),
        ("?,3,4", "?,4", "Reshape-1 special_zero=true =[0,-1]", False),
        ("4", "2,4,2", "Reshape-1 special_zero=true =[-1,0,2]", False),
        ("2,8", "2,8,1", "Reshape-1 special_zero=true =[0,-1]", True),
        ("2,4,2", "2,8", "Reshape-1 special_zero=true =[-1,4]", True),
        ("2..3,4", "?", "Reshape-1 =[-1,2]", False),
        ("...", "6,4", "Reshape-1 =[8,3]", False),
        ("2,3,4", "6,4", "Reshape-1 i64[2]", False),
    ],
)
def test_a_reshape_after_another_that_arranges_all_anew(before: str, data: str, reshape: str, is_same: bool) -> None:
    name, _, pattern = reshape.rpartition(" ")
    op, inputs, (first,) = operation(name), types(f"{data} {pattern}"), types(before)
    (output,) = as_tuple(op.infer(*inputs))
    assert op.is_same_for(first, inputs, output) == is_same


@pytest.mark.parametrize(("low", "high"), [(2.0, 12.0), (12.0, 2.0)])
def test_what_a_range_clips(low: float, high: float) -> None:
    """A result is a step of 0.5 from the next, which is 1 of the input."""
    x, ends = np.arange(30, dtype=np.float32) / 2, [np.float32([n]) for n in (low, high, 5, 10)]
    op = operation("FakeQuantize-1 levels=11")
    for steps in (0, 1, 2):
        (below, least), (above, most) = op.clips([x, *ends], steps)
        assert x[below].tolist() == [n for n in x.tolist() if n < 2 - steps]
        assert x[above].tolist() == [n for n in x.tolist() if n > 12 + steps]
        assert (least, most) == (5, 10)


@pytest.mark.parametrize(
    ("op", "inputs", "rows"),
    [
        ("Reshape-1", "6,4 =[3,8]", (2, 0)),
        ("Reshape-1", "6,4 =[6,2,2]", (1, 0)),
        ("Reshape-1", "6,4 =[12,2]", None),
        ("Reshape-1", "6,4 =[2,2,6]", (3, 0)),
        ("Reshape-1", "4 =[2,2]", (2, 0)),
        ("Reshape-1", "f32[] =[1]", None),
        ("Reshape-1", "1 =[]", None),
        ("Unsqueeze-1", "6,4 =[1]", (1, 0)),
        ("Unsqueeze-1", "6,4 =[0]", (6, 0)),
        ("Squeeze-1", "6,1,4", (1,)),
        ("Transpose-1", "2,3,4 =[0,2,1]", (1, 0)),
        ("Transpose-1", "2,3,4 =[1,0,2]", None),
        ("Transpose-1", "2,3,4 =[]", None),
        ("Transpose-1", "2,3 i64[2]", None),
        ("Convert-1 destination_type=f16", "4,3", (1,)),
        ("Add-1", "4,3 3", (1, 0)),
        ("Add-1", "1,3 4,3", (0, 1)),
        ("Add-1", "4,3 4,1", (1, 1)),
        ("Add-1", "f32[] f32[]", None),
        ("Add-1 auto_broadcast=pdpd", "4,3 3", None),
        ("MatMul-1", "4,3 3,4", None),
    ],
)
def test_rows_that_make_a_row(op: str, inputs: str, rows: tuple[int, ...] | None) -> None:
    made = operation(op)
    output = as_tuple(made.infer(*types(inputs)))[0].shape
    assert made.rows_from(types(inputs), PartialShape(None) if output.is_dynamic else output) == rows


def test_an_operation_of_the_user_declares_domains() -> None:
    @ovir.register("PickRow", version="extension")
    class PickRow(ovir.Operator):
        """The row of ``table`` that ``index`` names."""

        domains = by_input(index=Index("table", axis=0))

        def infer(self, table: ovir.TensorType, index: ovir.TensorType) -> ovir.TensorType:
            return ovir.TensorType(table.element_type, table.shape.slice(1) + index.shape)

        def run(self, table: np.ndarray, index: np.ndarray) -> np.ndarray:
            return table[index]

    net = Net()
    table = net.const(np.arange(6, dtype=np.float32).reshape(3, 2))
    net.result(net.op("PickRow", table, net.parameter("i", "", "i64")))
    xml = net.xml().replace('type="PickRow" version="opset1"', 'type="PickRow" version="extension"')
    model = ovir.read_model(xml.encode(), bytes(net.blob))
    (domain,) = input_domains(model).values()
    assert (domain.low, domain.high) == (0, 2)
    assert 0 <= int(generate_inputs(model)[0].array) <= 2


def test_constants_are_held_against_the_axis_that_they_index() -> None:
    rule = Index("table", absent=-1)
    inputs = {"table": constant_type(np.zeros((3, 2)))}
    ((values, size),) = rule.parts(CLASSES[0](), inputs, np.array([0, -1, 4]))
    assert (values.tolist(), size) == ([0, 4], 3)
    assert list(Index("table", checked=False).parts(CLASSES[0](), inputs, np.array([9]))) == []


def test_domains_meet_in_the_numbers_of_both() -> None:
    """Domains that have no number in common leave the lower end of the first, or of the second if it has none."""
    domains = [Domain(low, high) for low in (None, 0, 1, 3) for high in (None, 0, 1, 3) if low is None or high is None or low <= high]  # fmt: skip

    def numbers(domain: Domain) -> set[int]:
        low, high = (end if x is None else int(x) for x, end in ((domain.low, -9), (domain.high, 9)))
        return set(range(low, high + 1))

    for one, other in itertools.product(domains, domains):
        common = numbers(one) & numbers(other)
        left = one.low if one.low is not None else other.low
        assert numbers(one.meet(other)) == (common or {left}), (one, other)


@pytest.mark.parametrize(
    ("one", "other", "order", "why"),
    [
        (Domain(0, 2, "sorted", "a"), Domain(0, 2, "offsets", "b"), "sorted", "a"),
        (Domain(0, 2, "any", "a"), Domain(0, 2, "offsets", "b"), "offsets", "a"),
        (Domain(0, 2, "sorted"), Domain(0, 2, "any", "b"), "sorted", "b"),
    ],
)
def test_the_order_and_reason_of_domains_that_meet(one: Domain, other: Domain, order: str, why: str) -> None:
    assert one.meet(other) == Domain(0, 2, order, why)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "text"), [(0, 6, "0..6"), (3, 3, "3"), (None, 3, "..3"), (-1, None, "-1.."), (0.5, 1, "0.5..1")]
)
def test_a_domain_as_text(low: float | None, high: float | None, text: str) -> None:
    assert str(Domain(low, high)) == text


def test_a_long_chain_of_layers_that_move_values() -> None:
    net = Net()
    x = tail = net.parameter("x", "2,3", "i64")
    for _ in range(1100):
        tail = net.op("Transpose", tail, net.const([1, 0], "i64"))
    net.result(net.op("Gather", net.const(np.zeros(5, np.float32)), tail, net.const(0, "i64"), opset=8, name="pick"))
    model = net.model()
    assert input_domains(model) == {model.inputs[x[0]]: Domain(0, 4, why="Gather 'pick'")}


def test_signatures() -> None:
    def infer(self: object, data: object, axes: object = None, *more: object, bodies: object) -> None: ...

    assert method_signature(infer) == Signature(("data", "axes"), 1, True, frozenset({"bodies"}))
    assert method_signature(Parameter.infer) == Signature((), 0, False, frozenset())
