"""Recipes of regions, suppression and images."""

from __future__ import annotations

from ovir.fuzzing.making import Make
from ovir.fuzzing.recipes import recipe

# --------------------------------------------------------------------------- regions


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


@recipe("DetectionOutput")
def detection_output(m: Make) -> None:
    classes, shared = m.pick(2, 3), m.flag()
    m.settle(f"N=1|2 P=1|4 K={classes} L={1 if shared else classes}")
    m.has(share_location=shared, variance_encoded_in_target=m.flag(), num_classes=classes, normalized=m.flag())
    m.settle("keep_top_k=1|5 nms_threshold=0.5 top_k=|-1|2|10 background_label_id=|0")
    m.settle("confidence_threshold=|0.1 code_type=caffe.PriorBoxParameter.CORNER|caffe.PriorBoxParameter.CENTER_SIZE")
    m.take_declared("T half, proposals half")


# --------------------------------------------------------------------------- images


@recipe("RegionYolo")
def region_yolo(m: Make) -> None:
    m.settle("R=1|3 K=1|4 num=R classes=K axis=1 end_axis=3 coords=4 do_softmax=true|false")
    m.take("narrow N R*5+R*K H W")
    m.has(mask=list(range(m.sizes["R"])))
