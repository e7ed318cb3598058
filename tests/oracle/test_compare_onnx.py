"""``ovir compare --against onnx:``: IRs that OpenVINO has converted, and the models that they were made from."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir.graph.layers import Layer

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in ("openvino", "onnx", "onnxruntime")),
        reason="OpenVINO, onnx or onnxruntime is not installed",
    ),
]

Graph = tuple[list[Any], dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]], dict[str, np.ndarray]]
"""Nodes, inputs and outputs with their shapes, and constants."""


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(kind, [name.strip("_") for name in inputs.split()], outputs.split(), **attributes)


def normal(*shape: int) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) / 3).astype(np.float32)


def conv_net() -> Graph:
    nodes = [
        node("Conv", "image w1 b1", "conv1", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", "conv1 scale shift mean var", "norm"),
        node("Relu", "norm", "relu"),
        node("MaxPool", "relu", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "pool w2", "conv2", kernel_shape=[3, 3], group=4, pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", "conv2", "mean2"),
        node("Flatten", "mean2", "flat"),
        node("Gemm", "flat w3 b3", "scores", transB=1),
    ]
    constants = {
        "w1": normal(8, 3, 3, 3),
        "b1": normal(8),
        "w2": normal(8, 2, 3, 3),
        "w3": normal(5, 8),
        "b3": normal(5),
    }
    constants |= {"scale": normal(8) + 1, "shift": normal(8), "mean": normal(8), "var": np.abs(normal(8)) + 1}
    return nodes, {"image": (2, 3, 16, 16)}, {"scores": (2, 5)}, constants


def attention() -> Graph:
    nodes = [
        node("LayerNormalization", "x gain bias", "normed", axis=-1),
        *(node("MatMul", f"normed w{name}", name) for name in "qkv"),
        *(node("Reshape", f"{name} heads", f"{name}4") for name in "qkv"),
        *(node("Transpose", f"{name}4", f"{name}t", perm=[0, 2, 1, 3]) for name in "qv"),
        node("Transpose", "k4", "kt", perm=[0, 2, 3, 1]),
        node("MatMul", "qt kt", "products"),
        node("Div", "products root", "scaled"),
        node("Softmax", "scaled", "weights", axis=-1),
        node("MatMul", "weights vt", "context"),
        node("Transpose", "context", "context_t", perm=[0, 2, 1, 3]),
        node("Reshape", "context_t joined", "joint"),
        node("Gelu", "joint", "gelu"),
        node("Add", "gelu x", "y"),
    ]
    constants = {
        "gain": normal(12) + 1,
        "bias": normal(12),
        "root": np.float32(2),
        **{f"w{x}": normal(12, 12) for x in "qkv"},
    }
    constants |= {"heads": np.int64([0, 0, 3, 4]), "joined": np.int64([0, 0, 12])}
    return nodes, {"x": ("batch", 7, 12)}, {"y": ("batch", 7, 12)}, constants


def lstm() -> Graph:
    nodes = [
        node("LSTM", "x w r b", "all last cell", hidden_size=6, direction="bidirectional"),
        node("Transpose", "all", "turned", perm=[0, 2, 1, 3]),
        node("Reshape", "turned shape", "joined"),
        node("MatMul", "joined head", "tags"),
    ]
    constants = {"w": normal(2, 24, 5), "r": normal(2, 24, 6), "b": normal(2, 48), "head": normal(12, 4)}
    constants |= {"shape": np.int64([0, 0, -1])}
    return nodes, {"x": (9, 2, 5)}, {"tags": (9, 2, 4), "last": (2, 2, 6)}, constants


def write(path: Path, make: Callable[[], Graph], opset: int) -> None:
    """Write a graph as ONNX."""
    import onnx
    from onnx import helper, numpy_helper

    nodes, inputs, outputs, constants = make()
    ports = [
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in described.items()]
        for described in (inputs, outputs)
    ]
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", *ports, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


KINDS = {"conv_net-13": conv_net, "conv_net-20": conv_net, "attention-20": attention, "lstm-11": lstm, "lstm-17": lstm}
"""Graphs, by their names and opsets."""
CONVERT = """
import sys
import openvino as ov

for path in sys.argv[1:]:
    ov.save_model(ov.convert_model(path), path.replace(".onnx", ".xml"), compress_to_fp16=False)
"""


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write all graphs as ONNX, and let OpenVINO convert them; the value is their folder."""
    folder = tmp_path_factory.mktemp("converted")
    paths = [folder / f"{kind}.onnx" for kind in KINDS]
    for path, (kind, make) in zip(paths, KINDS.items(), strict=True):
        write(path, make, int(kind.partition("-")[2]))
    subprocess.run([sys.executable, "-c", CONVERT, *map(str, paths)], check=True)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_model_agrees_and_a_changed_weight_is_named(kind: str, converted: Path, tmp_path: Path) -> None:
    onnx_path = converted / f"{kind}.onnx"
    model = ovir.read_model(onnx_path.with_suffix(".xml"))
    shape = [3 if dim.is_dynamic else int(dim.lower) for dim in model.inputs[0].shape]
    inputs = [{0: normal(*shape)}]
    found = ovir.compare(model, f"onnx:{onnx_path}", inputs=inputs)
    assert found, found.to_dict()
    named = {item.name for item in found.layers}
    assert len(named) >= 3
    assert len(found.outputs) == len(model.outputs)
    for constant in [layer for layer in model.layers if is_weight(layer)]:
        changed = model.clone()
        changed.set_constant(constant.key, constant.operator.data * np.float32(1.5))  # type: ignore[union-attr]
        first = ovir.compare(changed, f"onnx:{onnx_path}", inputs=inputs).first
        assert first is not None, constant.key
        assert first.name in first_named(constant, named), constant.key
        part, feeds = tmp_path / "part.xml", tmp_path / "part_input.npz"
        bisected = ovir.bisect(changed, f"onnx:{onnx_path}", inputs=inputs, output=part)
        readers = {reader.layer.key for port in constant.outputs for reader in port.readers}
        assert readers & {suspect.name for suspect in bisected.suspects}, constant.key
        assert not ovir.compare(part, tmp_path / "part_actual.npz", inputs=feeds), constant.key


def is_weight(layer: Layer) -> bool:
    data = getattr(layer.operator, "data", None)
    return layer.type == "Const" and data is not None and data.dtype == np.float32 and data.size > 20


def first_named(constant: Layer, named: set[str]) -> set[str]:
    """Return the compared layers that a constant reaches without another one in between."""
    found, pending = set(), [constant]
    while pending:
        for port in pending.pop().outputs:
            for reader in port.readers:
                if reader.layer.key in named:
                    found.add(reader.layer.key)
                else:
                    pending.append(reader.layer)
    return found
