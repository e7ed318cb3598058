"""``ovir.compare`` with the real OpenVINO and onnxruntime."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.debugging.engines.process import EngineProcess

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(find_spec("openvino") is None, reason="OpenVINO is not installed"),
]
F32 = {"INFERENCE_PRECISION_HINT": "f32"}


@pytest.mark.parametrize("mode", [None, "isolated", "cumulative"])
def test_an_example_agrees_with_the_cpu_plugin(mode: str | None) -> None:
    path = Path(__file__).parent.parent.parent / "examples" / "xml"
    found = ovir.compare(path / "digits.xml", inputs=path / "digits_input.npz", config=F32, mode=mode)
    assert found, found.to_dict()
    assert found.outputs[0].tensor.agreement is not None
    assert found.outputs[0].tensor.agreement.top1 == 1


@pytest.mark.parametrize("device", ["AUTO", "HETERO:CPU", "MULTI:CPU"])
def test_devices_that_pass_models_on_are_asked_through_those_behind_them(device: str) -> None:
    path = Path(__file__).parent.parent.parent / "examples" / "xml"
    found, plain = (
        ovir.compare(path / "digits.xml", f"openvino:{name}", inputs=path / "digits_input.npz")
        for name in (device, "CPU")
    )
    assert (found.precision, found.properties, found.within) == (plain.precision, plain.properties, True)


def test_the_cpu_plugin_agrees_with_itself() -> None:
    path = Path(__file__).parent.parent.parent / "examples" / "xml"
    found = ovir.compare(path / "digits.xml", inputs=path / "digits_input.npz", config=F32, mode="cumulative", repeat=3)
    assert len(found.layers) > 5
    assert found.repeat == 3
    assert found.varies is None, found.to_dict()


def test_random_numbers_of_the_cpu_plugin_vary() -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    noise = ops.random_uniform([2, 3], np.float32(0), np.float32(1), "f32", 0, 0, name="noise")
    found = ovir.compare(ovir.Model([ops.add(ops.abs(x, name="size"), noise, name="sum")], [x]), repeat=2)
    assert found.varies == "run"
    assert [item.name for item in found.varying[1:]] == ["noise", "sum"]


@pytest.mark.parametrize("element_type", ["bf16", "f8e4m3", "u4", "i4", "string", "boolean", "f64", "nf4", "u2"])
def test_odd_types_are_compared(element_type: str) -> None:
    x = ops.parameter([2, 4], element_type, name="x")
    back = ops.reshape(x, [4, 2], False, name="moved")
    is_plain = element_type in ("string", "nf4")
    end = back if is_plain else ops.convert(back, "f32", name="wide")
    kind = ovir.ElementType.parse(element_type)
    values = np.array([["a", "b"] * 2] * 2) if element_type == "string" else np.ones((2, 4))
    found = ovir.compare(ovir.Model([end], [x]), inputs=[values.astype(kind.to_dtype())], config=F32, mode="isolated")
    names = {layer.name for layer in found.layers} | {item.name for item in found.not_compared}
    assert names == ({"moved"} if is_plain else {"moved", "wide"})
    assert found, found.to_dict()


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_arrays_may_be_read_only(size: int, openvino: EngineProcess) -> None:
    x = ops.parameter([size], "f32")
    data = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    data.flags.writeable = False
    with openvino.compiled(ovir.Model([ops.abs(x)], [x])) as loaded:
        np.testing.assert_array_equal(loaded.infer([data])[0], np.abs(data))


def test_a_type_that_the_plugin_does_not_take_is_named() -> None:
    x = ops.parameter([2, 4], "u1", name="x")
    found = ovir.compare(
        ovir.Model([ops.reshape(x, [8], False, name="moved")], [x]), inputs=[np.ones((2, 4), np.uint8)]
    )
    assert found.failed
    assert found.first is not None
    assert "u1 is not supported" in str(found.first.tensor.worst.problem)


def test_a_device_that_does_not_exist() -> None:
    x = ops.parameter([2], "f32", name="x")
    with pytest.raises(ovir.InputError, match="openvino:XPU: no device XPU; available: "):
        ovir.compare(ovir.Model([ops.abs(x)], [x]), "openvino:XPU")


def _small_numbers() -> tuple[ovir.Model, float]:
    x = ops.parameter([1, 64], "f32", name="x")
    return ovir.Model([ops.multiply(x, np.float32(1e-20))], [x]), 1e-20


def _product(*, compressed: bool) -> tuple[ovir.Model, float]:
    x = ops.parameter([4, 64], "f32", name="x")
    weights = np.random.default_rng(0).integers(-100, 100, (64, 64)).astype(np.int8)
    stored = ops.multiply(ops.convert(ops.constant(weights), "f32"), np.full((64, 1), 0.01, np.float32))
    factor = stored if compressed else ops.constant((weights * 0.01).astype(np.float32))
    return ovir.Model([ops.matmul(x, factor, False, True)], [x]), 1


def _quantized() -> tuple[ovir.Model, float]:
    x = ops.parameter([1, 32, 8, 8], "f32", name="x")
    weights = np.random.default_rng(0).standard_normal((32, 32, 3, 3)).astype(np.float32) / 10
    quantized = [ops.fake_quantize(y, *np.float32([-3, 3, -3, 3]), 256) for y in (x, ops.constant(weights))]
    convolved = ops.convolution(*quantized, [1, 1], [1, 1], [1, 1], [1, 1])
    return ovir.Model([convolved], [x]), 1


@pytest.mark.parametrize(
    ("made", "name", "other"),
    [
        (_small_numbers(), "CPU_DENORMALS_OPTIMIZATION", "YES"),
        (_product(compressed=True), "DYNAMIC_QUANTIZATION_GROUP_SIZE", "32"),
        (_product(compressed=False), "INFERENCE_PRECISION_HINT", "bf16"),
        (_quantized(), "LP_TRANSFORMS_MODE", "YES"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_properties_of_the_cpu_plugin_change_numbers(made: tuple[ovir.Model, float], name: str, other: str) -> None:
    model, scale = made
    shape = model.inputs[0].shape.to_tuple()
    inputs = [(np.random.default_rng(1).standard_normal(shape) * scale).astype(np.float32)]
    config = {**F32, name: other}
    found = ovir.compare(model, inputs=inputs, config=config, rtol=1e-5, atol=0 if scale < 1 else 1e-5, explain=True)
    if found.precision not in ("f32", config["INFERENCE_PRECISION_HINT"]):
        pytest.skip(f"the processor does not compute in {config['INFERENCE_PRECISION_HINT']}")
    assert name in {item.name for item in found.properties}
    assert found.explanation is not None, found.to_dict()
    assert found.explanation.within, found.to_dict()
    assert name in found.explanation.config


# --------------------------------------------------------------------------- onnxruntime

onnx_installed = pytest.mark.skipif(
    find_spec("onnxruntime") is None or find_spec("onnx") is None, reason="onnxruntime or onnx is not installed"
)


def onnx_model(folder: Path, slope: float = 0.1) -> Path:
    """Write x -> Gemm 'product' -> LeakyRelu 'act' -> Softmax 'y' as ONNX."""
    import onnx
    from onnx import helper, numpy_helper

    weights = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("LeakyRelu", ["product"], ["act"], alpha=slope),
        helper.make_node("Softmax", ["act"], ["y"], axis=1),
    ]
    info = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, size]) for name, size in (("x", 4), ("y", 3))
    ]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def ir_model() -> ovir.Model:
    weights = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    x = ops.parameter([2, 4], "f32", name="x", tensor_names="x")
    product = ops.matmul(x, weights, False, False, name="p", tensor_names="product")
    act = ops.prelu(product, np.float32([0.1]), name="a", tensor_names="act")
    return ovir.Model([ops.softmax(act, 1, name="s", tensor_names="y")], [x])


@onnx_installed
def test_an_onnx_model_is_compared_tensor_by_tensor(tmp_path: Path) -> None:
    found = ovir.compare(ir_model(), f"onnx:{onnx_model(tmp_path)}")
    assert found, found.to_dict()
    assert [layer.name for layer in found.layers] == ["p", "a", "s"]
    assert "onnxruntime" in found.against
    wrong = ovir.compare(ir_model(), onnx_model(tmp_path, slope=0.2))
    assert wrong.first is not None
    assert wrong.first.name == "a"


@onnx_installed
@pytest.mark.parametrize("operation", ["Identity", "RandomUniformLike"])
def test_onnxruntime_agrees_with_itself_except_on_random_numbers(operation: str, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", "y")]
    nodes = [helper.make_node(operation, ["x"], ["drawn"]), helper.make_node("Abs", ["drawn"], ["y"])]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    x = ops.parameter([2, 4], "f32", name="x", tensor_names="x")
    drawn = ops.relu(x, name="drawn", tensor_names="drawn")
    found = ovir.compare(ovir.Model([ops.abs(drawn, name="y", tensor_names="y")], [x]), tmp_path / "m.onnx", repeat=2)
    assert found.varies == (None if operation == "Identity" else "run")
    assert [item.name for item in found.varying[1:]] == ([] if operation == "Identity" else ["drawn", "y"])


@onnx_installed
def test_onnx_models_that_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(ovir.ReadError, match="there is no such file"):
        ovir.compare(ir_model(), "onnx:missing.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"nonsense")
    with pytest.raises(ovir.RunError, match="cannot compile the model"):
        ovir.compare(ir_model(), tmp_path / "broken.onnx")
    q, r = (ops.parameter([2, 4], "f32", name=name) for name in "qr")
    with pytest.raises(ovir.InputError, match="its input 'x' is not an input of the IR, whose inputs are 'q', 'r'"):
        ovir.compare(ovir.Model([ops.add(q, r)], [q, r]), onnx_model(tmp_path))


@pytest.mark.parametrize("operation", ["ReLU", "Sigmoid", "Exp", "Sqrt"])
def test_files_of_version_10_in_f16_have_its_tolerance(operation: str, tmp_path: Path) -> None:
    """OpenVINO shows their inputs as f32, and computes them in f32 without rounding to f16."""
    net = Net(version=10)
    net.result(net.op(operation, net.parameter("x", "1,64", "f16"), name="layer"), "out")
    path = net.write(tmp_path)
    found = ovir.compare(path, config=F32)
    assert found, found.to_dict()
    assert found.outputs[0].tensor.tolerance.rounded_to == "f16"
    assert not ovir.compare(path, config=F32, rtol=1e-6)
