"""Files of IR version 10: <pre-process>, and the inputs and outputs that OpenVINO gives them."""

from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir


def with_means(means: str, shape: str = "1,2,1,3", element_type: str = "f32", blob: bytes = b"") -> ovir.Model:
    net = Net(version=10)
    net.result(net.op("ReLU", net.parameter("x", shape, element_type)))
    text = net.xml().replace("<layers>", f"<pre-process {means}</pre-process><layers>", 1)
    return ovir.read_model(text.encode(), blob)


VALUES = '<channel id="1"><mean value="20"/></channel><channel id="0"><mean value="1.5"/></channel>'


def run(model: ovir.Model, *inputs: np.ndarray) -> list[np.ndarray]:
    return list(ovir.compile_model(model)(list(inputs)).values())


@pytest.mark.parametrize(("shape", "channel_axis"), [("1,2,1,3", 1), ("2,2", 1), ("2,1,3", 0), ("1,2,2,1,3", 1)])
def test_a_mean_value_for_each_channel(shape: str, channel_axis: int) -> None:
    model = with_means(f' reference-layer-name="x">{VALUES}', shape)
    assert [layer.name for layer in model.layers if layer.id > 2] == ["x/mean", "x/minus_mean"]
    (result,) = run(model, np.full([int(size) for size in shape.split(",")], 30, np.float32))
    np.testing.assert_array_equal(np.moveaxis(result, channel_axis, 0)[0], 28.5)
    np.testing.assert_array_equal(np.moveaxis(result, channel_axis, 0)[1], 10)


def test_a_mean_image_for_each_channel() -> None:
    blob = np.arange(6, dtype=np.float32).tobytes()
    images = '<channel><mean offset="12" size="12"/></channel><channel><mean offset="0" size="12"/></channel>'
    (result,) = run(with_means(f">{images}", blob=blob), np.full((1, 2, 1, 3), 5, np.float32))
    np.testing.assert_array_equal(result.ravel(), [2, 1, 0, 5, 4, 3])


@pytest.mark.parametrize(
    ("means", "shape", "message"),
    [
        (' reference-layer-name="y">', "1,2", r"no input is named 'y'; the inputs are \['x'\]"),
        (f">{VALUES}", "1,?", r"input 'x' must have a static shape of rank 2 to 5, got \[1,\?\]"),
        (f">{VALUES}", "1,3", "2 of the 3 channels of input 'x' have a mean: all must have one"),
        (f">{VALUES}", "1,1", r"channel 1 is outside \[0, 0\]"),
        ('><channel id="0"><mean/></channel>', "1,2", "<mean>: expected a value, or an offset and a size"),
        ('><channel id="0"><mean value="x"/></channel>', "1,2", "attribute 'value': 'x' is not a number"),
        ('><channel id="0"/><channel id="0"/>', "1,2", "channel 0 occurs twice"),
        ('><channel><mean offset="0" size="8"/></channel>', "1,1,3,1", r"8 bytes at offset 0: .*f32\[3, 1\], takes 12"),
        ('><channel><mean offset="4" size="12"/></channel>', "1,1,3,1", r"needs bytes \[4, .* weights, which has 12"),
        (
            '><channel><mean offset="0" size="4"/></channel><channel><mean value="1"/></channel>',
            "1,2,1,1",
            "some channels have a mean value, others a mean image",
        ),
    ],
)
def test_means_that_do_not_fit(means: str, shape: str, message: str) -> None:
    with pytest.raises(ovir.ModelError, match=message):
        with_means(means, shape, blob=bytes(12))
    for kind in ("dynamic", "boolean", "string"):
        with pytest.raises(ovir.ModelError, match=f"<pre-process>: input 'x' must have a numeric type, got {kind}"):
            with_means(f">{VALUES}", element_type=kind)


def typed_model(version: int) -> tuple[bytes, bytes]:
    net = Net(version=version)
    half, number, flag = (
        net.parameter(n, "2", t) for n, t in (("half", "f16"), ("number", "i64"), ("flag", "boolean"))
    )
    net.result(net.op("ReLU", half, name="relu", names=["relu:0"]), name="first")
    net.result(net.op("Abs", number, name="abs", names=["abs:0"]), name="second")
    net.result(net.op("LogicalNot", flag, name="not", names=["not:0"]), name="third")
    return net.xml().encode(), bytes(net.blob)


def test_types_as_openvino_gives_them() -> None:
    model = ovir.read_model(*typed_model(10), legacy_io=True)
    assert [str(port.type) for port in model.inputs] == ["f32[2]", "i64[2]", "boolean[2]"]
    assert [str(port.type) for port in model.outputs] == ["f32[2]", "i32[2]", "f32[2]"]
    assert model.outputs[1].names == {"abs", "abs:0"}
    assert str(model.layer("relu").outputs[0].type) == "f16[2]"
    inputs = np.float32([-1, 0.1]), np.int64([-3, 2**31 + 5]), np.array([True, False])
    results = ovir.compile_model(model)(list(inputs))
    np.testing.assert_array_equal(results["relu"], np.float32([0, np.float16(0.1)]))
    np.testing.assert_array_equal(results["not:0"], np.float32([0, 1]))
    assert [array.dtype for array in results.values()] == [np.float32, np.int32, np.float32]


@pytest.mark.parametrize(("version", "legacy_io"), [(10, False), (11, True)])
def test_otherwise_types_are_those_of_the_file(version: int, legacy_io: bool) -> None:
    model = ovir.read_model(*typed_model(version), legacy_io=legacy_io)
    assert [str(port.element_type) for port in model.inputs] == ["f16", "i64", "boolean"]
    assert [str(port.element_type) for port in model.outputs] == ["f16", "i64", "boolean"]


def test_an_output_of_a_layer_with_several_is_numbered() -> None:
    net = Net(version=10)
    parts = net.op("Split", net.parameter("x", "4"), net.const(np.int64(0)), name="split", outputs=2, num_splits=2)
    net.result((parts[0], parts[1] + 1))
    model = ovir.read_model(net.xml().encode(), bytes(net.blob), legacy_io=True)
    assert "split.1" in model.outputs[0].names


def test_names_that_collide() -> None:
    net = Net(version=10)
    source = net.op("Parameter", name="in", names=["tensor"], shape="2", element_type="f32")
    net.result(net.op("ReLU", source, name="tensor", names=["out"]))
    with pytest.raises(ovir.ModelError, match=r"'tensor' is .* of this layer's tensor and of a tensor of layer 0 'in'"):
        net.model()
    net.version = 11
    net.model()


def test_layers_that_the_reader_adds_have_a_line_of_the_file(tmp_path: Path) -> None:
    text, weights = typed_model(10)
    path = tmp_path / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for model in (ovir.read_model(path, weights, legacy_io=True), ovir.read_model(path, weights)):
        assert {layer.file for layer in model.layers} == {str(path)}
        assert all(layer.line for layer in model.layers)
