"""Recipes of regions, suppression and images."""

from __future__ import annotations

from ovir.fuzzing.making import Make
from ovir.fuzzing.recipes import declare, recipe
from ovir.ops.base.suppression import NARROW

# --------------------------------------------------------------------------- regions

_PLANES = "N=1|2 H=1|3|8 W=1|2|8 spatial_scale=1|0.25"
_ALIGNED = f"{_PLANES} pooled_h=1|2|3 pooled_w=1|2 sampling_ratio=0|1|2"
declare("RoiAlignBase", "T narrow", _ALIGNED)
declare("ROIPooling", "T narrow, rois = rois", f"{_PLANES} output_size=|2,3 pooled_h=2 pooled_w=1")
_BINS = "output_dim=1|2|4 group_size=1|2|3 spatial_bins_x=1|2|3 spatial_bins_y=1|2 mode=average|bilinear"
declare("PSROIPooling", "T narrow, U narrow, rois = rois", f"{_PLANES} {_BINS}")


@recipe("DeformablePSROIPooling")
def deformable(m: Make) -> None:
    m.settle("H=3|8 W=2|8 P=1|2 part_size=P output_dim=1|2 group_size=1|2 spatial_bins_x=2 spatial_bins_y=1")
    m.settle("trans_std=0|0.1 spatial_scale=1|0.25")
    m.take_declared("T narrow, rois = rois")
    for offsets in m.inputs[2:]:
        offsets.shape = m.shape("R 2 P P")


@recipe("ExperimentalDetectronROIFeatureExtractor")
def feature_extractor(m: Make) -> None:
    m.add("R 4", m.narrow)
    levels = m.pick(1, 2, 3)
    for level in range(levels):
        m.add((1, *m.shape("C"), 16 >> level, 16 >> level), m.narrow)
    m.has(output_size=m.pick(1, 3), sampling_ratio=m.pick(0, 1, 2), pyramid_scales=[4, 8, 16][:levels])


declare("ExperimentalDetectronTopKROIs", "T narrow", "max_rois=0|1|3|100")
declare(
    "ExperimentalDetectronDetectionOutput",
    "T narrow, im_info = image",
    "num_classes=1|2|4 class_agnostic_box_regression=false|true deltas_weights=10,10,5,5 score_threshold=0.05 "
    "nms_threshold=0.5 max_delta_log_wh=4.1 post_nms_count=1|10 max_detections_per_image=1|5",
)
_PROPOSED = "A=1|3 H=1|4 W=1|3 min_size=0|1 nms_threshold=0.7 post_nms_count=1|10 pre_nms_count=5|100"
_GENERATING = "ExperimentalDetectronGenerateProposalsSingleImage GenerateProposals"
declare(_GENERATING, "T narrow, im_info = image", _PROPOSED)
declare("ExperimentalDetectronPriorGridGenerator", "T narrow", "stride_x=0|4 stride_y=0|4")
_PRIORS = "min_size=2|16 offset=0.5 variance=0.1|0.1,0.1,0.2,0.2 step=0|4 max_size=|20 aspect_ratio=|2"
declare("PriorBox", "output_size = 1..12, image_size = 1..12", _PRIORS)
_CLUSTERS = "width=2,5 height=3,4 offset=0.5 variance=0.1 step=0|4"
declare("PriorBoxClustered", "output_size = 1..12, image_size = 1..12", _CLUSTERS)


@recipe("Proposal")
def proposal(m: Make) -> None:
    ratios, scales = [1, 2][: m.pick(1, 2)], [4, 8][: m.pick(1, 2)]
    m.has(ratio=ratios, scale=scales)
    m.settle(
        "N=1|2 H=1|4 W=1|3 base_size=8 pre_nms_topn=1|50 post_nms_topn=1|9 nms_thresh=0.7 feat_stride=8 min_size=1"
    )
    m.take_declared("T narrow, image_shape = image")


@recipe("DetectionOutput")
def detection_output(m: Make) -> None:
    classes, shared = m.pick(2, 3), m.flag()
    m.settle(f"N=1|2 P=1|4 K={classes} L={1 if shared else classes}")
    m.has(share_location=shared, variance_encoded_in_target=m.flag(), num_classes=classes, normalized=m.flag())
    m.settle("keep_top_k=1|5 nms_threshold=0.5 top_k=|-1|2|10 background_label_id=|0")
    m.settle("confidence_threshold=|0.1 code_type=caffe.PriorBoxParameter.CORNER|caffe.PriorBoxParameter.CENTER_SIZE")
    m.take_declared("T half, proposals half")


_LIMITS = "max_output_boxes_per_class = 0..4, iou_threshold = 0.5, score_threshold = 0.0, soft_nms_sigma = 0.5"
declare("SuppressionBase", f"real half, {NARROW} half, {_LIMITS}")
_KEPT = "score_threshold=|0.1 nms_top_k=|-1|0|3 keep_top_k=|-1|0|2 background_class=|-1|0"
_KEPT = f"P=1|4|7 {_KEPT} iou_threshold=|0.4 nms_eta=|1.0|0.8"
declare("ImageNmsBase", "T narrow", _KEPT)

# --------------------------------------------------------------------------- images


declare("YuvToRgbBase", "T u8|f32|f16", "H=0|1|2|5 W=1|2|3")
declare("BGRtoNV12 RGBtoNV12", "T u8|f32", "H=0|1|3 W=1|2")


@recipe("RegionYolo")
def region_yolo(m: Make) -> None:
    m.settle("R=1|3 K=1|4 num=R classes=K axis=1 end_axis=3 coords=4 do_softmax=true|false")
    m.take("narrow N R*5+R*K H W")
    m.has(mask=list(range(m.sizes["R"])))
