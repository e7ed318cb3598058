"""Which arrays kernels refuse that inference had no reason to refuse, a row for each case; see ``arrays`` of tests/support/tensors.py."""

import pytest
from support.builder import Net
from support.tensors import arrays, lacking, operation

import ovir
from ovir.core.element_types import ElementType
from ovir.diagnostics.errors import OperatorError

CASES = [
    # ctc
    ("CTCLoss-4", "f32=[[[0,0,0],[0,0,0],[0,0,0]]] =[4] =[[0,0,0]] i64[1] =2", "logit_length[0] 4 [0 3]"),
    ("CTCLoss-4", "f32=[[[0,0,0],[0,0,0],[0,0,0]]] =[2] =[[0,0,0]] =[3] =2", "label_length[0] 3 [0 2] logits"),
    ("CTCLoss-4", "f32=[[[0,0,0],[0,0,0],[0,0,0]]] =[2] =[[0,0,0]] =[-1] =2", "label_length[0] -1"),
    ("CTCLoss-4", "f32=[[[0,0,0],[0,0,0],[0,0,0]]] =[3] =[[0,3,0]] =[2] =2", "labels[0,1] 3 [0 2]"),
    ("CTCLoss-4", "f32=[[[0,0,0],[0,0,0],[0,0,0]]] =[3] =[[0,1,0]] =[2] =5", "blank_index 5 [0 2]"),
    # fourier
    ("DFT-7", "f32[4,2] i64[1]", "1 [-1 0]"),
    # gather
    ("GatherElements-6 axis=1", "f32[2,3] i64[3,3]", "data [2,3] indices [3,3] 1"),
    ("GatherElements-6", "f32[2,3] i64[2]", "data [2,3] indices [2] 0"),
    ("GatherND-8", "=[[[0,1,2,3],[4,5,6,7],[8,9,10,11]],[[12,13,14,15],[16,17,18,19],[20,21,22,23]]] =[[0,0],[1,3]]", "indices[...,1][1] 3 [-3 2]"),
    ("GatherTree-1", "=[[[1,2,3]],[[4,5,6]],[[7,8,9]]] =[[[0,0,0]],[[0,1,1]],[[3,1,3]]] =[3] =0", "3 2"),
    # interpolate
    ("Interpolate-1 axes=0 mode=area", "f32=[0,0,0] =[4]", "mode area"),
    ("Interpolate-1 axes=0", "f32=[0,0,0] =[4]", "mode missing"),
    ("Interpolate-11", "f32=[[0,0,0,0],[0,0,0,0],[0,0,0,0]] =[-2] i64[1]", "scales_or_sizes [-2]"),
    # matmul
    ("MatMul-1", "f64[2,3] f64[4,5]", "[2,3] [4,5] 3 4"),
    ("Inverse-14", "f32=[[[[1,0],[0,1]],[[1,2],[2,4]]]]", "[0,1]"),
    ("Inverse-14", "f32=[[1,2],[2,4]]", "matrix inverse"),
    # movement
    ("Pad-1 pad_mode=reflect", "f64=[0,0] =[2] =[0]", "pads_begin[0] 2 reflect 1"),
    # pooling
    ("AdaptiveAvgPool-8", "f32[1,1,4] =[-1]", "data [1,1,4] [-1]"),
    ("AdaptiveAvgPool-8", "f32[1,1,0] =[2]", "data [1,1,0] [2]"),
    ("AdaptiveAvgPool-8", "f32[1,1,4,4] =[2]", "data [1,1,4,4] [2]"),
    ("AvgPool-1 strides=1 pads_begin=2 kernel=2", "f32[1,1,5]", "window would elements"),
    # prior box
    ("PriorBox-1 density=1 fixed_size=8,4", "i64[2] =[100,100]", "fixed_size 2 density 1"),
    # proposal
    ("Proposal-4 base_size=10 pre_nms_topn=100 post_nms_topn=1 nms_thresh=0.5 feat_stride=10 min_size=0 ratio=1 scale=1", "f32=[[[[0.1]],[[0.9]]]] f32=[[[[0]],[[0]],[[0]],[[0]]]] f32=[0,5,1]", "0.0 5.0"),
    ("Proposal-4 base_size=10 pre_nms_topn=100 post_nms_topn=1 nms_thresh=0.5 feat_stride=10 min_size=0 ratio=1 scale=1", "f32=[[[[0.1]],[[0.9]]]] f32=[[[[0]],[[0]],[[0]],[[0]]]] f32=[4,Infinity,1]", "4.0"),
    ("Proposal-4 base_size=10 pre_nms_topn=100 post_nms_topn=1 nms_thresh=0.5 feat_stride=10 min_size=0 ratio=1 scale=1", "f32=[[[[0.1]],[[0.9]]]] f32=[[[[0]],[[0]],[[0]],[[0]]]] f32=[4,5,1,-1]", "scale [1.0 -1.0]"),
    # random
    ("RandomUniform-8 output_type=i32", "=[2] i32=3 i32=[-1]", "minval maxval 3 -1"),
    # rearrange
    ("SpaceToBatch-2", "=[[1,2,3],[4,5,6],[7,8,9],[10,11,12]] =[2,3] =[0,0] =[0,0]", "block_shape [2,3] 1"),
    ("BatchToSpace-2", "=[[1,2,3],[4,5,6],[7,8,9],[10,11,12]] =[1,2] =[0,4] =[0,3]", "4 3 1 data [4,3]"),
    ("SpaceToBatch-2", "=[[1,2,3],[4,5,6],[7,8,9],[10,11,12]] =[1,2] =[0,0] =[0,0]", "1 data [4,3] 0"),
    # scatter
    ("ScatterElementsUpdate-12", "f32[2,3] i64[3,4] f32[3,4] =0", "indices [3,4] data [2,3] 0"),
    ("ScatterElementsUpdate-12", "f32[2,3] i64[1,2] f32[1,3] =0", "indices [1,2] updates [1,3]"),
    ("ScatterUpdate-3", "f64=[0,0,0] =[0,-1] f64[2] =0", "indices[1] -1 [0 2]"),
    ("ScatterUpdate-3", "f64=[0,0,0] =[0,3] f64[2] =0", "indices[1] 3 [0 2]"),
    ("ScatterNDUpdate-4", "f64=[[0,0,0],[0,0,0]] =[[0,3]] f64[1]", "indices[...,1][0] 3 [-3 2]"),
    # segments
    ("SegmentMax-16", "=[0,1] =[1,0]", "segment_ids 1 0"),
    ("EmbeddingBagOffsetsSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[0,5] =[0]", "indices[1] 5 [0 4]"),
    ("EmbeddingBagOffsetsSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[0,-1] =[0]", "indices[1] -1 [0 4]"),
    ("EmbeddingBagOffsetsSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[0,1] =[0,3]", "offsets[1] 3 [0 2]"),
    ("EmbeddingBagOffsetsSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[0,1] =[2,1]", "offsets 2 1"),
    ("EmbeddingBagOffsetsSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[0,1] =[0] =-2", "default_index -2 [0 4]"),
    ("EmbeddingBagPackedSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[[0,1],[2,9]]", "indices[1,1] 9 [0 4]"),
    ("EmbeddingSegmentsSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[0] =[0] =2 =-1", "default_index -1 [0 4]"),
    ("SparseFillEmptyRows-16", "f32=[1,2] i32=[5,6] i32=[[0,1],[5,0]] f32=0", "indices[1] 5 [0 4]"),
    # shape
    ("Reshape-1 special_zero=true", "f64=[[0,0,0],[0,0,0]] =[4]", "data shape [2,3] [4]"),
    # sorting
    ("TopK-3", "f64=[0,0] =3", "k 3 axis 0 data [2] 2"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "words"), CASES)
def test_refused(op: str, inputs: str, words: str) -> None:
    with pytest.raises(OperatorError) as error:
        operation(op).run(*arrays(inputs))
    assert lacking(words, error.value.message) == []


SIZES = [
    ("Convolution-1 strides=1 pads_begin=0 pads_end=0 dilations=1", "1,2,3 1,3,2", "got shapes [1,3,2] and [1,2,3]: C is 3 in filters, but 2 in data"),
    ("FakeConvert-13 destination_type=f8e4m3", "3 2", "scale of shape [2] cannot be broadcast"),
    ("Interpolate-11", "f32=[[0,0,0,0],[0,0,0,0],[0,0,0,0]] =[1,2] i64[1]", "scales_or_sizes must have one element for each of the axes [1], got 2"),
    ("SegmentMax-16", "=[0,1] =[0,0] =-3", "num_segments must not be negative, got -3"),
    ("EmbeddingSegmentsSum-3", "f32=[[-0.2,-0.6],[-0.1,-0.4],[-1.9,-1.8],[-1,1.5],[0.8,-0.7]] =[0] =[0] =-2", "num_segments must not be negative, got -2"),
    ("NonMaxSuppression-9", "1,2,4 1,1,3 =1", "got shapes [1,1,3] and [1,2,4]: P is 3 in scores, but 2 in boxes"),
    ("PSROIPooling-1 output_dim=2 group_size=2 spatial_scale=1 mode=average", "1,6,4,4 3,5", "data must be [N, output_dim*parts, H, W], where output_dim is 2"),
    ("ScatterNDUpdate-4", "4,3 i64[2,1] 2,1", "updates [2,1] must have shape"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "message"), SIZES)
def test_sizes_that_a_run_shows_are_refused_by_inference(op: str, inputs: str, message: str) -> None:
    # Kernels rely on it: some of these arrays can be broadcast to each other.
    (name, *given), values, net = op.split(" "), arrays(inputs), Net()
    kind, _, opset = name.rpartition("-")
    types = [str(ElementType.from_dtype(array.dtype)) for array in values]
    ends = [net.parameter(f"input {i}", "...", element_type) for i, element_type in enumerate(types)]
    outputs = 3 if kind.endswith(("Nms", "Suppression")) else 1
    net.result(net.op(kind, *ends, opset=int(opset), outputs=outputs, **dict(word.split("=") for word in given)))
    with pytest.raises(ovir.RunError) as error:
        net.compiled()(values)
    assert message in error.value.diagnostic.message
