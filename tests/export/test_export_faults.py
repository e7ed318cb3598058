"""Exports that once failed, or that computed something else than ovir: rare attributes, empty tensors, odd shapes."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the comparison of exported models needs {package}")

import onnx  # noqa: E402
import onnx_ir as ir  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from support.export_comparison import check_exported  # noqa: E402  (it imports these packages)

from ovir.core.element_types import ElementType  # noqa: E402
from ovir.export.model_exporter import export_model  # noqa: E402
from ovir.export.onnx_graph import Graph  # noqa: E402
from ovir.export.session import OnnxRuntimeSession, _large_weights  # noqa: E402
from ovir.export.support import default_opset  # noqa: E402

RANDOM = np.random.default_rng(5)
both_opsets = pytest.mark.parametrize("opset", [17, default_opset()])


def check(net: Net, last: tuple[int, int], feeds: list[np.ndarray], opset: int) -> None:
    """Export what is computed by the last operation, and require onnxruntime to compute what ovir computes."""
    net.result(last)
    model = net.model()
    exported = export_model(model, opset)
    OnnxRuntimeSession(exported).run(dict(zip(exported.inputs, feeds, strict=True)), exported.outputs)
    assert check_exported(model, feeds, opset) is None


@both_opsets
def test_nan_is_not_the_largest_of_a_segment(opset: int) -> None:
    net = Net()
    made = net.op("SegmentMax", net.parameter("x", "4,1"), net.const([0, 0, 0, 2]), opset=16, fill_mode="ZERO")
    check(net, made, [np.array([[np.nan], [2], [1], [-3]], np.float32)], opset)


@both_opsets
@pytest.mark.parametrize("scales", [[1, 1, 0.5, 0.5], [1, 1, 1, 0.5], [1, 1, 2, 0.5]])
def test_antialias_keeps_axes_of_scale_1(scales: list[float], opset: int) -> None:
    net = Net()
    data = net.parameter("x", "?,2,8,8")
    sizes, factors, axes = net.const([1, 2, 4, 4]), net.const(np.array(scales, np.float32)), net.const([0, 1, 2, 3])
    made = net.op("Interpolate", data, sizes, factors, axes, opset=4, mode="linear", antialias="true",
                  shape_calculation_mode="scales", coordinate_transformation_mode="half_pixel")  # fmt: skip
    check(net, made, [RANDOM.random((3, 2, 8, 8), np.float32)], opset)


@both_opsets
@pytest.mark.parametrize("has_sink", [False, True])
@pytest.mark.parametrize("mask", [[[0.0]], [[2.0]], [[-3.4e38]]])
def test_attention_with_a_mask_of_one_element(mask: list[list[float]], has_sink: bool, opset: int) -> None:
    net = Net()
    shape = "1,2,3,4"
    query, key, value = (net.parameter(name, shape) for name in ("q", "k", "v"))
    inputs = [query, key, value, net.const(np.array(mask, np.float32))]
    if has_sink:
        inputs += [net.const(np.array(0.5, np.float32)), net.const(np.ones((1, 2, 1, 1), np.float32))]
    made = net.op("ScaledDotProductAttention", *inputs, opset=13, causal="false")
    check(net, made, list(RANDOM.random((3, 1, 2, 3, 4), np.float32)), opset)


@both_opsets
@pytest.mark.parametrize(("shape", "axis"), [((), 5), ((1,), 2), ((1,), 5), ((1, 1), 3), ((2, 1), 1), ((2,), 0)])
def test_axis_of_pdpd_beyond_the_rank(shape: tuple[int, ...], axis: int, opset: int) -> None:
    net = Net()
    a, b = net.parameter("a", "2,2"), net.parameter("b", ",".join(map(str, shape)))
    attributes: dict[str, Any] = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": axis}
    feeds = [RANDOM.random((2, 2), np.float32), RANDOM.random(shape, np.float32)]
    check(net, net.op("Add", a, b, **attributes), feeds, opset)


@both_opsets
@pytest.mark.parametrize("declared", ["3,1,2", "3,?,2"])
def test_inverse_transform_of_one_element_is_empty(declared: str, opset: int) -> None:
    net = Net()
    made = net.op("IRDFT", net.parameter("x", declared), net.const([1]), opset=9)
    check(net, made, [RANDOM.random((3, 1, 2), np.float32)], opset)


@pytest.mark.slow
@both_opsets
@pytest.mark.parametrize("declared", ["2,0,4,4", "2,?,4,4"])
@pytest.mark.parametrize("method", ["max", "bilinear"])
@pytest.mark.parametrize("channels", [0, 2])
def test_regions_of_few_channels(declared: str, method: str, channels: int, opset: int) -> None:
    net = Net()
    data = net.parameter("x", declared.replace("0", str(channels)))
    regions = net.const(np.array([[0, 0, 0, 1, 1], [1, 0, 0, 1, 1]], np.float32))
    made = net.op("ROIPooling", data, regions, opset=2, output_size="2,3", spatial_scale="1", method=method)
    check(net, made, [RANDOM.random((2, channels, 4, 4), np.float32)], opset)


@both_opsets
def test_scale_of_regions_that_is_no_number(opset: int) -> None:
    net = Net()
    data, numbers = net.parameter("x", "1,2,3,2"), net.const([0])
    regions = net.const(np.array([[0, 0, 1, 1]], np.float32))
    made = net.op("ROIAlign", data, regions, numbers, opset=9, pooled_h=1, pooled_w=2, sampling_ratio=2,
                  spatial_scale="nan", mode="avg", aligned_mode="half_pixel_for_nn")  # fmt: skip
    check(net, made, [RANDOM.random((1, 2, 3, 2), np.float32)], opset)


NUMBERS = np.array([7, -7, -1, 0, 6]), np.array([2, -2, 3, 4, -3])


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        *((name, NUMBERS, {}) for name in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Less", "Equal")),
        ("Or", (NUMBERS[0] > 0, NUMBERS[1] > 0), {}),
        ("Neg", NUMBERS[:1], {}),
        ("Where", (NUMBERS[0] > 0, *NUMBERS), {}),
        ("Concat", NUMBERS, {"axis": 0}),
        ("Gather", (NUMBERS[0], np.array([[4, -5], [1, 1]])), {"axis": 0}),
        ("Reshape", (np.arange(6).reshape(2, 3, 1), np.array([0, -1])), {}),
        ("Reshape", (np.zeros((0, 3), np.int64), np.array([3, 0])), {"allowzero": 1}),
        ("ReduceSum", (np.arange(6).reshape(2, 3), np.array([1])), {"keepdims": 0}),
        ("ReduceProd", (np.arange(1, 7).reshape(2, 3),), {}),
    ],
)
def test_known_sizes_are_computed_as_onnx_computes_them(
    operator: str, inputs: tuple[np.ndarray, ...], attributes: dict[str, Any]
) -> None:
    graph = Graph(18)
    found = getattr(graph, operator)(*inputs, **attributes)
    assert not graph.nodes
    names = [f"x{index}" for index in range(len(inputs))]
    node = onnx.helper.make_node(operator, names, ["y"], **attributes)
    (expected,) = ReferenceEvaluator(node, opsets={"": 18}).run(None, dict(zip(names, inputs, strict=True)))
    np.testing.assert_array_equal(found.constant, expected, strict=True)


def test_a_known_division_by_0_is_left_to_the_run() -> None:
    graph = Graph(18)
    graph.Div(*NUMBERS[::-1])
    assert len(graph.nodes) == 1


@pytest.mark.slow
@both_opsets
@pytest.mark.parametrize("kind", ["boolean", "i8", "u8", "i16", "i32", "i64", "f16", "f32", "f64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot_of_each_type(kind: str, axis: int, opset: int) -> None:
    for given in ([[0, 1, 3], [-1, 4, 2]], *(() if axis == 1 else (0, 3, -1, 4))):
        net = Net()
        indices = net.parameter("x", ",".join(map(str, np.shape(given))), "i32")
        made = net.op("OneHot", indices, net.const(4), net.const(1, kind), net.const(0, kind), axis=axis)
        check(net, made, [np.array(given, np.int32)], opset)


@both_opsets
@pytest.mark.parametrize("alpha", [0, -0.5, 0.5])
@pytest.mark.parametrize("beta", [0, -0.75, 0.75])
def test_normalization_with_numbers_that_are_not_positive(alpha: float, beta: float, opset: int) -> None:
    net = Net()
    data = net.parameter("x", "1,3,4,4")
    made = net.op("LRN", data, net.const([1]), alpha=alpha, beta=beta, bias=2, size=5)
    check(net, made, [RANDOM.random((1, 3, 4, 4), np.float32)], opset)


@both_opsets
@pytest.mark.parametrize("kind", ["u2", "u4", "i4"])
def test_functions_of_narrow_integers_keep_their_low_bits(kind: str, opset: int) -> None:
    net = Net()
    made = net.op("Sinh", net.parameter("x", "4", kind))
    net.result(made)
    feeds = [np.arange(4).astype(ElementType.parse(kind).to_dtype())]
    assert check_exported(net.model(), feeds, opset) is None


@both_opsets
@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "i32", "u32"])
def test_powers_of_integers_wrap_around(kind: str, opset: int) -> None:
    x = ops.parameter([3], kind)
    model = ovir.Model([ops.power(x, ops.constant([10, 7, 2], kind))], [x])
    feeds = [np.array([15, 100, 3], ElementType.parse(kind).to_dtype())]
    assert check_exported(model, feeds, opset) is None


FARTHEST = {"i32": [2**31 - 1, -(2**31)], "i64": [2**63 - 1, 2**31 - 1, 2**63 - 2, -(2**63)]}
"""Ends that mean more than a position in onnxruntime, and others that are as far."""
MASKS = dict.fromkeys(("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), "0")


@pytest.mark.slow
@both_opsets
@pytest.mark.parametrize("computed", ["", "start", "stop", "step", "start stop step"])
@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_ends_of_slices_are_positions_whatever_the_step_is(kind: str, computed: str, opset: int) -> None:
    net = Net()
    data, other = net.parameter("data", "?"), net.parameter("other", "?")
    feeds = [np.arange(4, dtype=np.float32), -np.arange(1, 5, dtype=np.float32)]
    ends = [*FARTHEST[kind], 1, -1]
    for numbers in product(ends, ends, (-1, -2, 1)):
        given = []
        for name, number in zip(("start", "stop", "step"), numbers, strict=True):
            array = np.array([number], ElementType.parse(kind).to_dtype())
            if name in computed:
                given.append(net.parameter(f"{name}{len(feeds)}", "1", kind))
                feeds.append(array)
            else:
                given.append(net.const(array))
        part = net.op("Slice", data, *given, opset=8)
        net.result(part)
        net.result(net.op("StridedSlice", data, *given, **MASKS))
        net.result(net.op("SliceScatter", other, part, *given, opset=15))
    assert check_exported(net.model(), feeds, opset) is None


@both_opsets
@pytest.mark.parametrize("mode", ["index", "mask"])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_reverse_of_few_elements(size: int, mode: str, opset: int) -> None:
    net = Net()
    axes = net.const([1]) if mode == "index" else net.const(np.array([False, True]), "boolean")
    made = net.op("Reverse", net.parameter("x", "2,?"), axes, mode=mode)
    check(net, made, [RANDOM.random((2, size), np.float32)], opset)


@pytest.mark.parametrize("size", [0, 2])
def test_condition_without_one_element_is_refused(size: int) -> None:
    x = ops.parameter([size], np.float32, name="x")
    layer = ops.if_op(ops.less(x, x))
    then, other = (ovir.Model([ops.constant(np.float32(number))], []) for number in (1, 2))
    layer.set_then_body(then)
    layer.set_else_body(other)
    chosen = layer.set_output(then.outputs[0], other.outputs[0].layer)
    with pytest.raises(ovir.ExportError, match=rf"If, opset8.*one element is needed, got shape \[{size}\]"):
        export_model(ovir.Model([chosen], [x]), 17)


@both_opsets
@pytest.mark.parametrize("lengths", [[0, 1], [0, 0], [3, 0]])
def test_reversed_sequences_without_elements_are_kept(lengths: list[int], opset: int) -> None:
    net = Net()
    data = net.parameter("x", "2,3")
    for given in (net.const(lengths), net.parameter("lengths", "2", "i64")):
        net.result(net.op("ReverseSequence", data, given, batch_axis=0, seq_axis=1))
    feeds = [RANDOM.random((2, 3), np.float32), np.array(lengths)]
    assert check_exported(net.model(), feeds, opset) is None


@both_opsets
@pytest.mark.parametrize(("shape", "do_softmax"), [("1,18,0,2", "true"), ("1,18,0,2", "false"), ("2,18,0,0", "true")])
def test_a_result_without_elements_is_a_constant(shape: str, do_softmax: str, opset: int) -> None:
    net = Net()
    attributes = {"anchors": "1,2", "axis": 1, "end_axis": 3, "coords": 4, "classes": 4, "num": 2, "mask": "0,1"}
    net.result(net.op("RegionYolo", net.parameter("x", shape), do_softmax=do_softmax, **attributes))
    feeds = [np.zeros(tuple(map(int, shape.split(","))), np.float32)]
    assert check_exported(net.model(), feeds, opset) is None


@pytest.mark.parametrize("count", [0, 1, 64, 65])
def test_equal_constants_of_few_numbers_are_stored_once(count: int) -> None:
    graph = Graph(18)
    ones = np.ones(count, np.float32)
    made = [graph.constant(ones) for _ in range(2)]
    assert (made[0] is made[1]) == (count <= 64)
    others = [ones.astype(np.int32), ones.view(np.int32), ones[:, None], ones + 1]
    for other in others if count else others[:3]:
        assert graph.constant(other) is not made[0]
    for tensor, array in zip(made + [graph.constant(x) for x in others], [ones, ones, *others], strict=True):
        assert tensor.value.const_value is not None
        np.testing.assert_array_equal(tensor.value.const_value.numpy(), array, strict=True)


def test_texts_are_no_shared_constants() -> None:
    graph = Graph(18)
    texts = [["one"], ["two"], ["one"]]
    found = [graph.constant(np.array(text, np.dtypes.StringDType())) for text in texts]
    assert [x.value.const_value.string_data()[0] for x in found] == [b"one", b"two", b"one"]  # type: ignore[union-attr]


def test_weights_of_4_kib_are_not_copied_into_the_model() -> None:
    """But text and elements of less than a byte are: onnxruntime takes them from the message only."""
    graph = Graph(21)
    kinds = {"f32": 4, "i64": 8, "bf16": 2, "u8": 1, "boolean": 1, "u4": 0.5, "i4": 0.5, "string": 16}
    weights = {}
    for name, size in kinds.items():
        kind = ElementType.parse(name)
        for count in (int(4096 / size) - 1, int(4096 / size), 9000):
            tensor = graph.constant(np.zeros(count, kind.to_dtype()), kind)
            weights[tensor.value] = size >= 1 and name != "string" and count * size >= 4096
    for number, value in enumerate(weights):
        value.name = f"weights{number}"
    onnx = ir.Model(ir.Graph([], [], nodes=[], initializers=list(weights)), ir_version=10)
    found = _large_weights(SimpleNamespace(onnx=onnx))  # type: ignore[arg-type]
    assert {value.name for value in found} == {value.name for value, is_large in weights.items() if is_large}
    assert all(tensor is value.const_value for value, tensor in found.items())
