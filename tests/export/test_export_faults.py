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
from ovir.export.onnx_graph import Graph, NotExportable  # noqa: E402
from ovir.export.session import _large_weights  # noqa: E402
from ovir.export.support import default_opset  # noqa: E402

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


FARTHEST = {"i32": [2**31 - 1, -(2**31)], "i64": [2**63 - 1, 2**31 - 1, 2**63 - 2, -(2**63)]}
"""Ends that mean more than a position in onnxruntime, and others that are as far."""
MASKS = dict.fromkeys(("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), "0")


@pytest.mark.slow
@pytest.mark.parametrize("computed", ["", "start", "stop", "step", "start stop step"])
@pytest.mark.parametrize(("kind", "opset"), [("i32", 17), ("i64", default_opset())])
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


@pytest.mark.parametrize("size", [0, 2])
def test_a_scalar_is_made_of_one_element(size: int) -> None:
    graph = Graph(18)
    with pytest.raises(NotExportable, match=rf"one element is needed, got shape \[{size}\]"):
        graph.as_scalar(graph.constant(np.zeros(size, np.float32)))


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


def test_attributes_beyond_any_data_are_refused_at_once() -> None:
    pooled = ops.avg_pool(ops.parameter([1, 1, -1], "f64", name="x"), [1], [0], [0], [10**7], exclude_pad=False)
    blocks = ops.depth_to_space(ops.parameter([-1, -1, -1, -1, -1], "u32", name="x"), "blocks_first", 2**32)
    for layer, message in ((pooled, "more than 4096 nodes"), (blocks, "is outside of the range of i64")):
        with pytest.raises(ovir.ExportError, match=message):
            export_model(ovir.Model([layer], [layer.inputs[0].source.layer]), 20)


def test_a_lack_of_memory_is_no_fault_of_the_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Graph, "node", lacking)
    x = ops.parameter([2], "f32", name="x")
    with pytest.raises(MemoryError):
        export_model(ovir.Model([ops.relu(x)], [x]), 20)
