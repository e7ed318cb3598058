"""Attributes that the specification requires although a file may leave them out, of the detectors and recurrent cells."""

import pytest

from ovir.ops import resolve

ALIGN = "pooled_h pooled_w sampling_ratio spatial_scale"
PROPOSAL = "base_size pre_nms_topn post_nms_topn nms_thresh feat_stride min_size ratio scale"
SEQUENCE = "hidden_size direction"
DETECTRON = "ExperimentalDetectron"


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
        (
            f"{DETECTRON}GenerateProposalsSingleImage",
            "opset6",
            "min_size nms_threshold post_nms_count pre_nms_count",
        ),
        (
            f"{DETECTRON}DetectionOutput",
            "opset6",
            "score_threshold nms_threshold max_delta_log_wh post_nms_count max_detections_per_image deltas_weights",
        ),
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
        ("GridSample", "opset9", ""),
    ],
)
def test_specified(type_name: str, version: str, names: str) -> None:
    cls = resolve(type_name, version)
    assert cls is not None
    assert {a.name for a in cls.attributes.values() if a.specified} == set(names.split())
    assert not any(a.required for a in cls.attributes.values() if a.specified)
