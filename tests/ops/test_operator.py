"""What the base class gives to all operations: messages, checks of types, and kernels' ``out``."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.tensors import tensor, types

from ovir.core.element_types import dynamic, f32, i8, i32, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import MAX_ELEMENTS
from ovir.diagnostics.errors import OperatorError
from ovir.ops import find, resolve
from ovir.ops.base import operator
from ovir.ops.base.operator import Operator


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((2, 3), "[2,3]"),
        ([np.int64(2), -1], "[2,-1]"),
        ((), "[]"),
        ((0.5, 2), "(0.5, 2)"),
        (["a"], "['a']"),
        ("text", "text"),
    ],
)
def test_shapes_in_messages(value: object, shown: str) -> None:
    with pytest.raises(OperatorError) as caught:
        Operator().require(False, "got {}", value)
    assert caught.value.message == f"got {shown}"


def test_index_types() -> None:
    op = Operator()
    for element_type in (i32, i64, dynamic):
        op.require_index_type("axis", element_type)
    for element_type, known in ((i8, False), (f32, True), (dynamic, True)):
        with pytest.raises(OperatorError, match=f"axis must be i32 or i64, got {element_type}"):
            op.require_index_type("axis", element_type, known=known)


ALIGN = "pooled_h pooled_w sampling_ratio spatial_scale"
PROPOSAL = "base_size pre_nms_topn post_nms_topn nms_thresh feat_stride min_size ratio scale"
SEQUENCE = "hidden_size direction"
DETECTRON = "ExperimentalDetectron"
COUNTS = "post_nms_count pre_nms_count"
DETECTION = "score_threshold nms_threshold max_delta_log_wh post_nms_count max_detections_per_image deltas_weights"


@pytest.mark.parametrize(
    ("type_name", "version", "names"),
    [
        ("Proposal", "opset1", PROPOSAL),
        ("Proposal", "opset4", PROPOSAL),
        ("GenerateProposals", "opset9", "min_size nms_threshold"),
        ("DetectionOutput", "opset8", "nms_threshold"),
        ("PriorBox", "opset1", "offset"),
        ("PriorBox", "opset8", "offset"),
        ("PriorBoxClustered", "opset1", "offset"),
        ("RegionYolo", "opset1", "axis coords classes end_axis num"),
        ("ROIAlign", "opset3", f"{ALIGN} mode"),
        ("ROIAlign", "opset9", f"{ALIGN} mode"),
        ("ROIAlignRotated", "opset15", ALIGN),
        ("ROIPooling", "opset2", "pooled_h pooled_w"),
        ("PSROIPooling", "opset1", ""),
        ("DeformablePSROIPooling", "opset1", "spatial_scale"),
        (f"{DETECTRON}PriorGridGenerator", "opset6", ""),
        (f"{DETECTRON}TopKROIs", "opset6", ""),
        (f"{DETECTRON}ROIFeatureExtractor", "opset6", "output_size sampling_ratio pyramid_scales"),
        (f"{DETECTRON}GenerateProposalsSingleImage", "opset6", f"min_size nms_threshold {COUNTS}"),
        (f"{DETECTRON}DetectionOutput", "opset6", DETECTION),
        ("STFT", "opset15", "transpose_frames"),
        ("ISTFT", "opset16", "center normalized"),
        ("RNNCell", "opset1", "hidden_size"),
        ("GRUCell", "opset3", "hidden_size"),
        ("LSTMCell", "opset4", "hidden_size"),
        ("LSTMCell", "opset1", ""),  # its reader refuses a file without
        ("RNNSequence", "opset5", SEQUENCE),
        ("GRUSequence", "opset5", SEQUENCE),
        ("LSTMSequence", "opset5", SEQUENCE),
        ("NonMaxSuppression", "opset9", ""),
        ("Convert", "opset1", "destination_type"),
        ("ConvertLike", "opset1", ""),
        ("Convolution", "opset1", "dilations pads_begin pads_end strides"),
        ("BinaryConvolution", "opset1", "dilations mode pad_value pads_begin pads_end strides"),
        ("AvgPool", "opset16", "exclude-pad pads_begin pads_end"),
        ("MVN", "opset2", "across_channels eps normalize_variance"),
        ("StridedSlice", "opset1", "end_mask"),
        ("TopK", "opset11", "axis mode sort"),
        ("SoftMax", "opset8", ""),
        ("GridSample", "opset9", ""),
    ],
)
def test_attributes_that_the_specification_requires_and_readers_do_not(
    type_name: str, version: str, names: str
) -> None:
    cls = resolve(type_name, version)
    assert cls is not None
    assert {a.name for a in cls.attributes.values() if a.specified} == set(names.split())
    assert not any(a.required for a in cls.attributes.values() if a.specified)


def test_an_operation_that_no_opset_has_is_not_found() -> None:
    assert find("Swirl", 1) is None
    assert find("Gather", 2) is None


def test_a_module_is_imported_when_its_operation_is_asked_for() -> None:
    code = (
        "import sys; from ovir.ops import resolve\n"
        "print('ovir.ops.roi_pooling' in sys.modules, resolve('roipooling', 'opset2').__name__)\n"
        "print('ovir.ops.roi_pooling' in sys.modules, 'ovir.ops.ctc' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "ROIPooling", "True", "False"]


class Costly(Operator):
    """An operation whose kernel takes a given time."""

    time: float = 2e7

    def kernel_time(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        return self.time


class Moving(Costly):
    moves_elements = (0,)


class Monotone(Costly):
    monotone = (0,)


class Valued(Costly):
    def infer_value(self, *inputs: TensorType) -> None:
        return None


class Shaped(Costly):
    shape_inputs = (1,)


def made(cls: type[Operator], **traits: Any) -> Operator:
    op = cls()
    vars(op).update(traits)
    return op


def constant(size: int, dtype: Any = np.int64) -> TensorType:
    return constant_type(np.zeros(size, dtype))


@pytest.mark.parametrize(
    ("op", "inputs", "can_fold", "can_evaluate"),
    [
        (made(Costly), [constant(2)], True, True),
        (made(Costly, time=3e7), [constant(2)], False, True),
        (made(Costly, pure=False), [constant(2)], False, False),
        (made(Costly, bounded=False), [constant(2)], True, False),
        (made(Costly, wiring={"body": None}), [constant(2)], False, False),
        (made(Costly), [constant(16 * MAX_ELEMENTS)], True, True),
        (made(Costly), [constant(16 * MAX_ELEMENTS + 1)], False, False),
        (made(Shaped), [constant(2), constant(16 * MAX_ELEMENTS + 1)], False, True),
        (made(Costly), [constant(2), *types("i64[2]")], False, True),
        (made(Costly), types("i64[99999]"), False, True),
        (made(Costly), [constant(30, np.float32), constant(30)], True, True),
        (made(Costly), [constant(30, np.float32), constant(31)], True, False),
        (made(Moving), [constant(99, np.float32)], True, True),
        (made(Monotone), [constant(99, np.float32)], True, True),
        (made(Valued), [constant(99, np.float32)], True, True),
    ],
)
def test_which_kernels_inference_runs(op: Operator, inputs: Any, can_fold: bool, can_evaluate: bool) -> None:
    outputs = types("i64[4]")
    assert operator.can_fold(op, inputs, outputs) == can_fold
    assert operator.can_evaluate(op, inputs, outputs) == can_evaluate


def test_axes_count_from_the_front() -> None:
    op = Operator()
    for axis, rank, expected in ((-1, 3, 2), (-3, 3, 0), (2, 3, 2), (0, 0, 0), (-1, 0, 0), (-7, None, -7)):
        assert op.normalize_axis(np.array([axis]), rank) == op.normalize_axis(axis, rank) == expected
    for axis, rank, message in (
        (3, 3, r"axis 3 is outside \[-3, 2\] of a tensor of rank 3"),
        (-4, 3, r"axis -4 is outside \[-3, 2\]"),
        (1, 0, r"axis 1 is outside \[-1, 0\] of a tensor of rank 0"),
    ):
        with pytest.raises(OperatorError, match=message):
            op.normalize_axis(axis, rank)
    assert op.normalize_axes([0, -1, -3], 3, unique=False) == [0, 2, 0]
    with pytest.raises(OperatorError, match=r"axes \[0,-3\] are not distinct"):
        op.normalize_axes([0, -3], 3)


def test_what_inputs_share() -> None:
    op = Operator()
    assert op.merge_types(dynamic, i64, dynamic) == i64
    assert op.shared_type(a=tensor("2"), b=None, c=tensor("3", dynamic)) == f32
    with pytest.raises(OperatorError, match="input 0 is i64 and input 2 is i32: their element types must be equal"):
        op.merge_types(i64, dynamic, i32)
    with pytest.raises(OperatorError, match="a is f32 and c is i64"):
        op.shared_type(a=tensor("2"), b=tensor("2"), c=tensor("2", i64))
    shapes = {"a": (tensor("2..4,3").shape, 0), "b": (tensor("1,3..9").shape, 1)}
    assert str(op.merge_dims("rows", **shapes)) == "3..4"
    message = r"a of shape \[2..4,3\] and b of shape \[1,5\] must have the same number of rows \(dimensions 0 and 1\)"
    with pytest.raises(OperatorError, match=message):
        op.merge_dims("rows", a=shapes["a"], b=(tensor("1,5").shape, 1))


@pytest.mark.parametrize("shape", ["", "1", "?", "0..1", "..."])
def test_one_element(shape: str) -> None:
    Operator().require_one_element("axis", PartialShape.parse(f"[{shape}]"))


@pytest.mark.parametrize("shape", ["2", "0", "1,1", "2.."])
def test_not_one_element(shape: str) -> None:
    with pytest.raises(OperatorError, match=r"axis must be a scalar or have one element, got shape \["):
        Operator().require_one_element("axis", PartialShape.parse(f"[{shape}]"))
