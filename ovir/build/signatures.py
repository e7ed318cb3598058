"""The arguments of the functions whose names, order or defaults in OpenVINO do not follow from the operation's class.

A signature is a list of words. ``axis`` is the input or attribute of this name; ``min_value:min`` is an argument with
a name of its own for the input or attribute ``min``. An argument is required unless ``=`` follows: ``axis=`` has the
default of the class (None for an input), ``size=5`` this one. ``nodes:*`` is a list of all inputs, ``attrs:**`` a
dictionary of attributes. Inputs and attributes that a signature does not name become keywords behind ``name``.

Operations that are not listed take their required inputs, required attributes, optional inputs and optional attributes,
in this order.
"""

from __future__ import annotations

_WINDOW = "strides pads_begin pads_end dilations"
_POOL = "strides pads_begin pads_end kernel_shape:kernel"
_CELL = "hidden_size activations= activations_alpha= activations_beta= clip="
_SEQUENCE = "hidden_size direction activations= activations_alpha= activations_beta= clip="
_RESIZE = (
    "mode shape_calculation_mode pads_begin= pads_end= coordinate_transformation_mode= nearest_mode= antialias= "
    "cube_coeff= axes="
)
_SELECTION = "score_threshold= nms_top_k= keep_top_k= background_class="
_NMS = "boxes scores max_output_boxes_per_class= iou_threshold= score_threshold="
_DETECTION = "box_logits class_preds proposals attrs:** aux_class_preds= aux_box_preds="

SIGNATURES: dict[str, str] = {
    "node:data": (
        "Abs-1 Acos-1 Acosh-4 Asin-1 Asinh-4 Atan-1 Atanh-4 BitwiseNot-13 Ceiling-1 Cos-1 Cosh-1 Erf-1 ErfInv-17 Exp-1 "
        "Floor-1 Gelu-2 Log-1 LogicalNot-1 Negative-1 ReLU-1 Sign-1 Sin-1 Sinh-1 SoftSign-9 Sqrt-1 Tan-1 Tanh-1"
    ),
    "left_node:a right_node:b auto_broadcast=": (
        "Add-1 BitwiseAnd-13 BitwiseOr-13 BitwiseXor-13 Divide-1 Equal-1 FloorMod-1 Greater-1 GreaterEqual-1 Less-1 "
        "LessEqual-1 LogicalAnd-1 LogicalOr-1 LogicalXor-2 Maximum-1 Minimum-1 Mod-1 Multiply-1 NotEqual-1 Power-1 "
        "Subtract-1 Xor-1"
    ),
    "arg0:a arg1:b auto_broadcast=": "BitwiseLeftShift-15 BitwiseRightShift-15",
    "x1:a x2:b auto_broadcast=": "SquaredDifference-1",
    "cond then_node:then else_node:other auto_broadcast=": "Select-1",
    "node:data reduction_axes:axes keep_dims=": (
        "ReduceL1-4 ReduceL2-4 ReduceLogicalAnd-1 ReduceLogicalOr-1 ReduceMax-1 ReduceMean-1 ReduceMin-1 ReduceProd-1 "
        "ReduceSum-1"
    ),
    # images
    f"data filters {_WINDOW} auto_pad=": "Convolution-1 GroupConvolution-1",
    f"data filters {_WINDOW} mode pad_value auto_pad=": "BinaryConvolution-1",
    "data filters strides output_shape= pads_begin= pads_end= dilations= auto_pad= output_padding=": (
        "ConvolutionBackpropData-1 GroupConvolutionBackpropData-1"
    ),
    f"data deformable_values:offsets filters {_WINDOW} auto_pad= group=1 deformable_group=1": "DeformableConvolution-1",
    f"data offsets filters {_WINDOW} mask= auto_pad= group=1 deformable_group=1 bilinear_interpolation_pad=": (
        "DeformableConvolution-8"
    ),
    f"data_batch:data {_POOL} exclude_pad rounding_type= auto_pad=": "AvgPool-1 AvgPool-14",
    f"data_batch:data {_POOL} exclude_pad rounding_type= auto_pad= dilations=": "AvgPool-16",
    f"data {_POOL} rounding_type= auto_pad=": "MaxPool-1",
    "data strides dilations pads_begin pads_end kernel_shape:kernel rounding_type= auto_pad= index_element_type= "
    "axis=": ("MaxPool-8 MaxPool-14"),
    "image:data output_shape:target_spatial_shape attrs:**": "Interpolate-1",
    f"image:data output_shape:sizes scales {_RESIZE}": "Interpolate-4",
    f"image scales_or_sizes {_RESIZE}": "Interpolate-11",
    "data grid attributes:**": "GridSample-9",
    "image:data sizes strides rates auto_pad": "ExtractImagePatches-3",
    "node:data mode block_size=1": "DepthToSpace-1",
    "data mode block_size=1": "SpaceToDepth-1",
    "arg:data arg_u:u= arg_v:v=": "I420toBGR-8 I420toRGB-8",
    "arg:data arg_uv:uv=": "NV12toBGR-8 NV12toRGB-8",
    "data axis group": "ShuffleChannels-1",
    # regions and boxes
    _DETECTION: "DetectionOutput-1 DetectionOutput-8",
    "layer_shape:output_size image_shape:image_size attrs:**": "PriorBox-1 PriorBox-8",
    "output_size image_size attrs:**": "PriorBoxClustered-1",
    "class_probs bbox_deltas image_shape attrs:**": "Proposal-1 Proposal-4",
    "im_info anchors deltas scores min_size nms_threshold pre_nms_count post_nms_count normalized= nms_eta= "
    "roi_num_type=": "GenerateProposals-9",
    f"{_NMS} box_encoding= sort_result_descending=": "NonMaxSuppression-1",
    f"{_NMS} box_encoding= sort_result_descending= output_type=": "NonMaxSuppression-3 NonMaxSuppression-4",
    f"{_NMS} soft_nms_sigma= box_encoding= sort_result_descending= output_type=": (
        "NonMaxSuppression-5 NonMaxSuppression-9"
    ),
    f"boxes scores sort_result_type= sort_result_across_batch= output_type= {_SELECTION} decay_function= "
    "gaussian_sigma= post_threshold= normalized=": "MatrixNms-8",
    f"boxes scores sort_result_type= sort_result_across_batch= output_type= iou_threshold= {_SELECTION} nms_eta= "
    "normalized=": "MulticlassNms-8",
    f"boxes scores roisnum= sort_result_type= sort_result_across_batch= output_type= iou_threshold= {_SELECTION} "
    "nms_eta= normalized=": "MulticlassNms-9",
    "input:data coords:rois output_dim group_size spatial_scale spatial_bins_x spatial_bins_y mode": "PSROIPooling-1",
    "feature_maps:data coords:rois output_dim spatial_scale group_size= mode= spatial_bins_x= spatial_bins_y= "
    "trans_std= part_size= offsets=": "DeformablePSROIPooling-1",
    "data rois batch_indices pooled_h pooled_w sampling_ratio spatial_scale mode": "ROIAlign-3",
    "data rois batch_indices pooled_h pooled_w sampling_ratio spatial_scale mode aligned_mode=": "ROIAlign-9",
    "data rois batch_indices pooled_h pooled_w sampling_ratio spatial_scale clockwise_mode": "ROIAlignRotated-15",
    "input:data coords:rois output_roi= spatial_scale=None method=": "ROIPooling-2",
    "input:data coords classes num do_softmax mask axis end_axis anchors=": "RegionYolo-1",
    "input:data stride": "ReorgYolo-2",
    # recurrent networks
    f"X:x initial_hidden_state W:w R:r B:b {_CELL} linear_before_reset=": "GRUCell-3",
    f"X:x initial_hidden_state sequence_lengths W:w R:r B:b {_SEQUENCE} linear_before_reset=": "GRUSequence-5",
    f"X:x initial_hidden_state initial_cell_state W:w R:r B:b {_CELL}": "LSTMCell-1 LSTMCell-4",
    f"X:x initial_hidden_state initial_cell_state sequence_lengths W:w R:r B:b {_SEQUENCE}": "LSTMSequence-5",
    "X:x initial_hidden_state W:w R:r B:b hidden_size activations activations_alpha activations_beta clip=": (
        "RNNCell-1"
    ),
    f"X:x initial_hidden_state sequence_lengths W:w R:r B:b {_SEQUENCE}": "RNNSequence-5",
    "data sequence_mask merge_repeated:ctc_merge_repeated=": "CTCGreedyDecoder-1",
    # elements
    "data min_value:min max_value:max": "Clamp-1",
    "data alpha": "Elu-1",
    "data approximation_mode": "Gelu-7",
    "data bias": "GRN-1",
    "data alpha lambda_value:lambda_": "Selu-1",
    "data attributes:**=": "IsInf-10",
    "data destination_type": "Convert-1",
    "data scale shift= destination_type='f8e4m3'": "FakeConvert-13",
    "left_node:a right_node:b promote_unsafe=False pytorch_scalar_promotion= u64_integer_promotion_target=": (
        "ConvertPromoteTypes-14"
    ),
    "data:x input_low input_high output_low output_high levels auto_broadcast=": "FakeQuantize-1",
    # normalization
    "data gamma beta mean variance epsilon": "BatchNormInference-1 BatchNormInference-5",
    "data scale bias num_groups epsilon": "GroupNormalization-12",
    "data axes alpha= beta= bias= size=5": "LRN-1",
    "data across_channels=False normalize_variance= eps=": "MVN-2",
    "data axes normalize_variance eps eps_mode": "MVN-6",
    "data axes eps eps_mode": "NormalizeL2-1",
    "data axis": "LogSoftmax-5 SoftMax-1 SoftMax-8",
    # products and transforms
    "data_a:a data_b:b transpose_a transpose_b": "MatMul-1",
    "mat_a:a mat_b:b offsets=": "GroupedMatMul-17",
    "inputs:* equation": "Einsum-7",
    "query key value attention_mask= scale= causal=": "ScaledDotProductAttention-13",
    "data:signal window frame_size frame_step transpose_frames": "STFT-15",
    "data window frame_size frame_step center normalized signal_length=": "ISTFT-16",
    # shapes and positions
    "nodes:* axis": "Concat-1",
    "data target_shape axes_mapping= mode=": "Broadcast-1",
    "data target_shape axes_mapping= broadcast_spec:mode=": "Broadcast-3",
    "node:data output_shape:shape special_zero": "Reshape-1",
    "data axes": "Squeeze-1",
    "data begin end strides:stride begin_mask end_mask new_axis_mask= shrink_axis_mask= ellipsis_mask=": (
        "StridedSlice-1"
    ),
    "data input_order:order": "Transpose-1",
    "arg:data pads_begin pads_end pad_mode arg_pad_value:pad_value=": "Pad-1 Pad-12",
    "input:data seq_lengths batch_axis seq_axis": "ReverseSequence-1",
    "arg:data axis exclusive= reverse=": "CumSum-3",
    "step_ids parent_idx:parent_ids max_seq_len end_token": "GatherTree-1",
    "indices depth on_value off_value axis": "OneHot-1",
    "indices depth on_value off_value axis negative_indices_mode=": "OneHot-16",
    "data k axis mode sort": "TopK-1",
    "data k axis mode sort index_element_type=": "TopK-3",
    "data k axis mode sort index_element_type= stable=": "TopK-11",
    "data buckets output_type='i64' with_right_bound=": "Bucketize-3",
    "sorted_sequence values right_mode=": "SearchSorted-15",
    "emb_table indices segment_ids num_segments= default_index= per_sample_weights=": "EmbeddingSegmentsSum-3",
    "data segment_ids num_segments= fill_mode=": "SegmentMax-16",
    # generators
    "output_shape:shape min_val:minval max_val:maxval output_type global_seed= op_seed= alignment=": "RandomUniform-8",
    "probs num_samples convert_type with_replacement log_probs global_seed= op_seed=": "Multinomial-13",
    # variables
    "init_value= variable_id=None variable_type= variable_shape=": "ReadValue-6",
}
"""The operation versions by the signature that they share."""

FILLERS: dict[str, tuple[float, str]] = {
    "max_output_boxes_per_class": (0, "i64"),
    "iou_threshold": (0, "f32"),
    "score_threshold": (0, "f32"),
    "default_index": (-1, "indices"),
    "attention_mask": (0, "query"),
}
"""The constant that takes the place of an optional input when a later one is given: its value, and its element type or
the input that has the same one."""
