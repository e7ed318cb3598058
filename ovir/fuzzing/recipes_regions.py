"""Recipes of regions, suppression and images."""

from __future__ import annotations

import numpy as np

from ovir.fuzzing.making import Make
from ovir.fuzzing.recipes import recipe

# --------------------------------------------------------------------------- regions


@recipe("ROIAlign", "ROIAlignRotated")
def roi_align(m: Make) -> None:
    m.set(N=m.pick(1, 2), H=m.pick(1, 3, 8), W=m.pick(1, 2, 8))
    m.add("N C H W", m.narrow_real)
    m.add("R 5" if m.kind == "ROIAlignRotated" else "R 4", m.narrow_real)
    m.add("R", m.index)
    m.has(
        pooled_h=m.pick(1, 2, 3), pooled_w=m.pick(1, 2), sampling_ratio=m.pick(0, 1, 2), spatial_scale=m.pick(1, 0.25)
    )


@recipe("ROIPooling")
def roi_pooling(m: Make) -> None:
    m.set(N=m.pick(1, 2), H=m.pick(1, 3, 8), W=m.pick(1, 2, 8))
    m.add("N C H W", m.narrow_real)
    m.add("R 5", m.narrow_real, _rois(m))
    m.has(spatial_scale=m.pick(1, 0.5))
    m.has(output_size=[2, 3]) if m.flag() else m.has(pooled_h=2, pooled_w=1)


def _rois(m: Make) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return boxes of images, [n, 5]."""
    rois = np.sort(np.array([m.ints(4, 0, 9) for _ in range(m.shape("R")[0])], np.float32).reshape(-1, 4), axis=1)[
        :, [0, 2, 1, 3]
    ]
    return np.insert(rois, 0, 0, axis=1).astype(np.float32)


@recipe("PSROIPooling")
def psroi(m: Make) -> None:
    bilinear = m.flag()
    bins, group = (m.pick(1, 2), m.pick(1, 2)), m.pick(1, 2, 3)
    outputs = m.pick(1, 2, 4)
    m.set(
        N=m.pick(1, 2), H=m.pick(3, 8), W=m.pick(2, 8), C=outputs * (bins[0] * bins[1] if bilinear else group * group)
    )
    m.add("N C H W", m.narrow_real)
    m.add("R 5", m.narrow_real, _rois(m))
    m.has(
        output_dim=outputs, group_size=group, spatial_scale=m.pick(1, 0.5), mode="bilinear" if bilinear else "average"
    )
    m.has(spatial_bins_x=bins[0], spatial_bins_y=bins[1])


@recipe("DeformablePSROIPooling")
def deformable_psroi(m: Make) -> None:
    outputs, group, part = m.pick(1, 2), m.pick(1, 2), m.pick(1, 2)
    m.set(N=1, H=m.pick(3, 8), W=m.pick(2, 8), C=outputs * group * group, P=part)
    m.add("N C H W", m.narrow_real)
    m.add("R 5", m.narrow_real, _rois(m))
    if m.flag():
        m.add("R 2 P P", m.narrow_real)
    m.has(
        output_dim=outputs,
        group_size=group,
        part_size=part,
        trans_std=m.pick(0, 0.1),
        spatial_bins_x=2,
        spatial_bins_y=1,
    )


@recipe("ExperimentalDetectronROIFeatureExtractor")
def feature_extractor(m: Make) -> None:
    m.add("R 4", m.narrow_real)
    levels = m.pick(1, 2, 3)
    for level in range(levels):
        m.add((1, *m.shape("C"), 16 >> level, 16 >> level), m.narrow_real)
    m.has(output_size=m.pick(1, 3), sampling_ratio=m.pick(0, 1, 2), pyramid_scales=[4, 8, 16][:levels])


@recipe("ExperimentalDetectronTopKROIs")
def top_k_rois(m: Make) -> None:
    m.add("R 4", m.narrow_real)
    m.add("R", m.narrow_real)
    m.has(max_rois=m.pick(0, 1, 3, 100))


@recipe("ExperimentalDetectronDetectionOutput")
def detectron_output(m: Make) -> None:
    classes = m.pick(1, 2, 4)
    m.add("R 4", m.narrow_real)
    m.add(f"R {4 * classes}", m.narrow_real)
    m.add(f"R {classes}", m.narrow_real)
    m.add((1, 3), m.narrow_real, np.array([[32, 32, 1]], np.float32))
    m.has(
        score_threshold=0.05, nms_threshold=0.5, max_delta_log_wh=4.1, num_classes=classes, post_nms_count=m.pick(1, 10)
    )
    m.has(
        max_detections_per_image=m.pick(1, 5),
        class_agnostic_box_regression=m.flag(),
        deltas_weights=[10, 10, 5, 5],
    )


@recipe("ExperimentalDetectronGenerateProposalsSingleImage", "GenerateProposals")
def generate_proposals(m: Make) -> None:
    batched = m.kind == "GenerateProposals"
    m.set(A=m.pick(1, 3), H=m.pick(1, 4), W=m.pick(1, 3))
    sizes, text = np.array([32, 32, 1], np.float32), "N 3" if batched else "3"
    m.add(m.shape(text), m.narrow_real, np.broadcast_to(sizes, m.shape(text)))
    m.add("H W A 4" if batched else "H*W*A 4", m.narrow_real)
    m.add("N 4*A H W" if batched else "4*A H W", m.narrow_real)
    m.add("N A H W" if batched else "A H W", m.narrow_real)
    m.has(min_size=m.pick(0, 1), nms_threshold=0.7, post_nms_count=m.pick(1, 10), pre_nms_count=m.pick(5, 100))


@recipe("ExperimentalDetectronPriorGridGenerator")
def prior_grid(m: Make) -> None:
    m.add("P 4", m.narrow_real)
    m.add("1 C H W", m.narrow_real)
    m.add("1 D I J", m.narrow_real)
    m.has(stride_x=m.pick(0, 4), stride_y=m.pick(0, 4))


@recipe("PriorBox")
def prior_box(m: Make) -> None:
    for _ in range(2):
        m.given(m.ints(2, 1, 12), constant=True)
    m.has(min_size=[m.pick(2, 16)], offset=0.5, variance=m.pick([0.1], [0.1, 0.1, 0.2, 0.2]), step=m.pick(0, 4))
    m.maybe(max_size=[20], aspect_ratio=[2])


@recipe("PriorBoxClustered")
def prior_box_clustered(m: Make) -> None:
    for _ in range(2):
        m.given(m.ints(2, 1, 12), constant=True)
    m.has(width=[2, 5], height=[3, 4], offset=0.5, variance=[0.1], step=m.pick(0, 4))


@recipe("Proposal")
def proposal(m: Make) -> None:
    ratios, scales = [1, 2][: m.pick(1, 2)], [4, 8][: m.pick(1, 2)]
    anchors = len(ratios) * len(scales)
    m.set(N=m.pick(1, 2), H=m.pick(1, 4), W=m.pick(1, 3))
    m.add(f"N {2 * anchors} H W", m.narrow_real)
    m.add(f"N {4 * anchors} H W", m.narrow_real)
    m.add((), m.narrow_real, np.array([32, 32, 1], np.float32))
    m.has(
        base_size=8, pre_nms_topn=m.pick(1, 50), post_nms_topn=m.pick(1, 9), nms_thresh=0.7, feat_stride=8, min_size=1
    )
    m.has(ratio=ratios, scale=scales)


@recipe("DetectionOutput")
def detection_output(m: Make) -> None:
    classes, shared, encoded, normalized = m.pick(2, 3), m.flag(), m.flag(), m.flag()
    m.set(N=m.pick(1, 2), P=m.pick(1, 4))
    m.add(f"N {4 * (1 if shared else classes)}*P", m.type("real", "f32", "f32", "f16"))
    m.add(f"N {classes}*P", m.narrow_real)
    m.add(f"{m.pick(1, m.shape('N')[0])} {1 if encoded else 2} {4 if normalized else 5}*P", m.narrow_real)
    m.has(
        keep_top_k=[m.pick(1, 5)],
        share_location=shared,
        variance_encoded_in_target=encoded,
        nms_threshold=0.5,
        normalized=normalized,
    )
    m.has(code_type=m.pick("caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"))
    m.maybe(top_k=m.pick(-1, 2, 10), background_label_id=0, confidence_threshold=0.1)
    if m.opset == 1:
        m.has(num_classes=classes)


@recipe("NonMaxSuppression", "NMSRotated")
def suppression(m: Make) -> None:
    width = 5 if m.kind == "NMSRotated" else 4
    kind = m.type("real", "f32", "f32", "f16")
    m.add(f"N P {width}", kind)
    m.add("N C P", kind)
    if m.chance(0.8) or width == 5:
        m.given(m.rng.randint(0, 4))
        for value in (0.5, 0.0, *([0.5] if m.opset in (5, 9) and m.flag() else [])):
            m.given(value, kind)


@recipe("MatrixNms", "MulticlassNms")
def image_nms(m: Make) -> None:
    m.set(P=m.pick(1, 4, 7))
    if m.kind == "MulticlassNms" and m.opset == 9 and m.chance(0.3):
        m.add("C P 4", m.narrow_real)
        m.add("C P", m.narrow_real)
        m.add("N", m.index)
    else:
        m.add("N P 4", m.narrow_real)
        m.add("N C P", m.narrow_real)
    m.maybe(score_threshold=0.1, nms_top_k=m.pick(-1, 0, 3), keep_top_k=m.pick(-1, 0, 2))
    m.maybe(background_class=m.pick(-1, 0), iou_threshold=0.4, nms_eta=m.pick(1.0, 0.8))


# --------------------------------------------------------------------------- images


@recipe("NV12toBGR", "NV12toRGB", "I420toBGR", "I420toRGB")
def planes(m: Make) -> None:
    kind = m.type("pixel", "u8", "f32", "f16")
    height, width = 2 * m.pick(0, 1, 2, 5), 2 * m.pick(1, 2, 3)
    whole = m.flag()
    m.add((*m.shape("N"), height * 3 // 2 if whole else height, width, 1), kind)
    if not whole:
        chroma = (*m.shape("N"), height // 2, width // 2)
        for depth in (2,) if m.kind.startswith("NV12") else (1, 1):
            m.add((*chroma, depth), kind)


@recipe("BGRtoNV12", "RGBtoNV12")
def to_planes(m: Make) -> None:
    m.add((*m.shape("N"), 2 * m.pick(0, 1, 3), 2 * m.pick(1, 2), 3), m.type("pixel", "u8", "f32"))


@recipe("RegionYolo")
def region_yolo(m: Make) -> None:
    regions, classes = m.pick(1, 3), m.pick(1, 4)
    softmax = m.flag()
    m.set(C=regions * (4 + 1 + classes))
    m.add("N C H W", m.narrow_real)
    m.has(axis=1, end_axis=3, coords=4, classes=classes, num=regions, do_softmax=softmax, mask=list(range(regions)))
