"""What the base class gives to all operations: messages, checks of types, and kernels' ``out``."""

import subprocess
import sys

import numpy as np
import pytest

from ovir.core.element_types import dynamic, f32, i8, i32, i64
from ovir.diagnostics.errors import OperatorError
from ovir.ops import find, resolve
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
