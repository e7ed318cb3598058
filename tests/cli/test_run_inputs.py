"""`ovir run`: values written out, images, saved inputs, scores, repeated runs, taps by tensor name."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net, output, unary_net

import ovir

ROWS = np.array([[0.1, 3.0, -2.0], [5.0, 1.0, 5.0]], np.float32)


def echo(folder: Path, shape: str, element_type: str = "f32") -> Path:
    """A model that returns its input ``x``."""
    net = Net()
    net.result(net.parameter("x", shape, element_type), name="out")
    return net.write(folder)


def returned(cli: Any, *arguments: object) -> Any:
    result = cli("run", *arguments, "--json")
    assert result.status == 0, result.err
    return json.loads(result.out)["outputs"][0]["values"]


# --------------------------------------------------------------------------- values that are written out


@pytest.mark.parametrize(
    ("shape", "element_type", "text", "expected"),
    [
        ("?", "i64", "1,2,3", [1, 2, 3]),
        ("?,?", "i64", "1,2,3", [[1, 2, 3]]),
        ("?,?", "i32", "[[1,2],[3,4]]", [[1, 2], [3, 4]]),
        ("", "f32", "0.5", 0.5),
        ("1", "f32", "1e-3", [float(np.float32(1e-3))]),
        ("?", "boolean", "true,0", [True, False]),
        ("?", "string", "one, two", ["one, two"]),
        ("?", "string", '["one, two", three]', ["one, two", "three"]),
        ("?", "u8", "0x10,007", [16, 7]),
        ("?", "i64", "9223372036854775807", [9223372036854775807]),
        ("?,0", "f32", "[[],[]]", [[], []]),
    ],
)
def test_values_are_written_out(
    cli: Any, tmp_path: Path, shape: str, element_type: str, text: str, expected: object
) -> None:
    assert returned(cli, echo(tmp_path, shape, element_type), "--input", f"x={text}") == expected


def test_a_file_goes_before_a_value(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = echo(tmp_path, "?", "i64")
    monkeypatch.chdir(tmp_path)
    with open("7", "wb") as file:
        np.save(file, np.array([1, 2], np.int64))
    result = cli("run", path, "--input", "x=7", "--json")
    assert json.loads(result.out)["outputs"][0]["values"] == [1, 2]
    assert "read from the file of this name" in result.err
    assert returned(cli, path, "--input", "x=[7]") == [7]
    missing = cli("run", path, "--input", "x=absent.npy")
    assert missing.status == 2
    assert "cannot read the file" in missing.err


# --------------------------------------------------------------------------- saved and random inputs


def test_saved_inputs_give_the_same_run(cli: Any, model: Path, tmp_path: Path) -> None:
    saved = tmp_path / "in.npz"
    first = cli("run", model, "--save-inputs", saved, "--json", "--seed", "3")
    again = cli("run", model, "--input", saved, "--json")
    assert (first.status, again.status) == (0, 0)
    assert json.loads(first.out)["outputs"] == json.loads(again.out)["outputs"]
    assert "random" not in again.err


def test_inputs_of_a_failing_run_are_saved(cli: Any, tmp_path: Path) -> None:
    net = Net()
    x, shape = net.parameter("x", "2,3"), net.parameter("shape", "2", "i64")
    net.result(net.op("Reshape", x, shape, special_zero="false"))
    np.savez(tmp_path / "in.npz", x=ROWS, shape=np.array([5, 5]))
    result = cli("run", net.write(tmp_path), "--input", tmp_path / "in.npz", "--save-inputs", tmp_path / "saved.npz")
    assert result.status == 1
    with np.load(tmp_path / "saved.npz") as saved:
        assert saved["shape"].tolist() == [5, 5]


def test_random_inputs_are_public(cli: Any, model: Path, tmp_path: Path) -> None:
    read = ovir.read_model(model)
    made = ovir.random_inputs(read, seed=3)
    assert list(made) == ["data", "indices"]
    assert str(read.inputs[0].shape) == "[?,3]"  # as it was
    ovir.compile_model(read)(made)
    saved = tmp_path / "in.npz"
    cli("run", model, "--save-inputs", saved, "--seed", "3")
    with np.load(saved) as arrays:
        np.testing.assert_array_equal(arrays["data"], made["data"])
    np.testing.assert_array_equal(ovir.random_inputs(str(model), 3)["data"], made["data"])
    assert (ovir.random_inputs(model, 4)["data"] != made["data"]).any()


def test_each_random_input_has_a_name_of_its_own() -> None:
    net = Net()
    a, b = (net.op("Parameter", name=name, names=["same"], shape="2", element_type="f32") for name in ("a", "b"))
    net.result(net.op("Add", a, b))
    assert list(ovir.random_inputs(net.model())) == ["a", "b"]


# --------------------------------------------------------------------------- scores, times, taps


def test_the_highest_scores_of_each_row(cli: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    arguments = (echo(tmp_path, "?,3"), "--input", f"x={tmp_path / 'x.npy'}", "--top", "2")
    out = cli("run", *arguments).out
    table = [line.split() for line in out[out.index("the highest scores") :].splitlines()[2:]]
    assert table == [["0", "1", "3"], ["0", "0", "0.1"], ["1", "0", "5"], ["1", "2", "5"]]
    top = json.loads(cli("run", *arguments, "--json").out)["outputs"][0]["top"]
    assert [[score["number"] for score in row] for row in top] == [[1, 0], [0, 2]]
    assert top[1][0]["value"] == 5


def test_runs_are_repeated_and_timed(cli: Any, model: Path) -> None:
    result = cli("run", model, "--repeat", "5", "--json")
    times = json.loads(result.out)["repeat"]
    assert len(times["runs"]) == 5
    assert 0 < times["min"] <= times["median"] <= times["p90"] <= times["p99"] <= times["max"]
    assert "5 runs after 3 to warm up, in ms: min " in cli("run", model, "--repeat", "5").out


def tapped(cli: Any, path: Path, pattern: str) -> dict[str, Any]:
    result = cli("run", path, "--tap", pattern, "--json")
    assert result.status == 0, result.err
    return dict(json.loads(result.out)["taps"])


def test_tensors_and_results_are_tapped(cli: Any, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2,4")
    axis = net.const(np.int64(1))
    halves = net.op("Split", x, axis, name="halves", outputs=2, names=["left", "right"], num_splits=2)
    net.result(net.op("ReLU", output(halves, 1), name="relu"), name="end")
    path = net.write(tmp_path)
    assert list(tapped(cli, path, "^halves$")) == ["halves"]
    assert len(tapped(cli, path, "^halves$")["halves"]) == 2
    (right,) = tapped(cli, path, "^right$")["right"]
    assert right["shape"] == [2, 2]
    assert list(tapped(cli, path, "^end$")) == ["end"]
    assert list(tapped(cli, path, "relu|end")) == ["relu"]  # the Result has the same tensor
    results = ovir.compile_model(path)(np.ones((2, 4), np.float32), taps=["end", "left", "relu"])
    np.testing.assert_array_equal(results.taps["end"][0], results[0])
    assert [len(results.taps[name]) for name in ("left", "relu")] == [1, 1]


@pytest.mark.parametrize("kind", ["nf4", "u1", "bf16", "f32"])
def test_json_and_tables_name_the_types_of_the_model(kind: str, cli: Any, tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Unsqueeze", net.parameter("x", "2", kind), net.const(np.int64(0))))
    options = "run", net.write(tmp_path), "--seed", 1, "--tap", "x"
    found = json.loads(cli(*options, "--json").out)
    assert [item["type"] for item in (*found["inputs"], *found["outputs"], *found["taps"]["x"])] == [kind] * 3
    rows = [line.split() for line in cli(*options).out.splitlines() if "[" in line]
    assert [row[1] for row in rows] == [kind, kind]


@pytest.mark.parametrize(
    "command", ["bisect", "compare", "eval", "export", "infer", "precision", "reduce", "run", "show", "view"]
)
def test_commands_for_which_types_of_inputs_matter(command: str, cli: Any) -> None:
    assert "--legacy-io" in cli(command, "--help").out


def test_legacy_inputs(cli: Any, tmp_path: Path) -> None:
    path, target = unary_net("ReLU", "2", "f16", version=10).write(tmp_path), tmp_path / "x.onnx"
    for command in ("show", "run"):
        ways = (cli(command, path, "--json", *option).out for option in ([], ["--legacy-io"]))
        assert [json.loads(printed)["inputs"][0]["type"] for printed in ways] == ["f16", "f32"]
    for command in ("compare", "bisect"):
        assert cli(command, path, path, "--legacy-io").status == 0
    onnx = pytest.importorskip("onnx")
    for option, kind in (([], onnx.TensorProto.FLOAT16), (["--legacy-io"], onnx.TensorProto.FLOAT)):
        assert cli("export", path, "-o", target, *option).status == 0
        assert onnx.load(target).graph.input[0].type.tensor_type.elem_type == kind


# --------------------------------------------------------------------------- images


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """An image, 6 wide and 2 high, whose left half is red."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((2, 6, 3), np.uint8)
    pixels[:, :3, 0] = 200
    image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_images_are_inputs(cli: Any, tmp_path: Path, photo: Path) -> None:
    path = echo(tmp_path, "1,3,2,6")
    result = cli("run", path, "--input", f"x={photo}", "--json")
    values = np.array(json.loads(result.out)["outputs"][0]["values"])
    assert values.shape == (1, 3, 2, 6)
    assert values[0, 0].tolist() == [[200, 200, 200, 0, 0, 0]] * 2
    assert not values[0, 1:].any()
    assert "6x2 RGB in layout NCHW, pixels 0 to 255" in result.err


@pytest.mark.parametrize("dtype", ["uint16", "int32", "float32"])
def test_images_of_more_than_8_bits_are_not_clipped(cli: Any, tmp_path: Path, photo: Path, dtype: str) -> None:
    image = pytest.importorskip("PIL.Image").fromarray(np.full((2, 6), 300, dtype))
    image.save(tmp_path / "deep.tiff")
    result = cli("run", echo(tmp_path, "1,1,2,6"), "--input", f"x={tmp_path / 'deep.tiff'}")
    assert result.status == 1
    assert "the pixels of the image have more than 8 bits" in result.err


def test_an_archive_with_another_name_leads_to_the_option(cli: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", np.float32([1, 2]))
    result = cli("run", echo(tmp_path, "2"), "--input", tmp_path / "one.npz")
    assert "no input 'arr_0'; its inputs are 0: 'x'" in result.err
    assert f"an array gets another name so: x={tmp_path / 'one.npz'}:arr_0" in result.err


def test_mean_scale_and_order_of_images(cli: Any, tmp_path: Path, photo: Path) -> None:
    path = echo(tmp_path, "1,2,6,3")
    values = np.array(returned(cli, path, "--input", f"x={photo}", "--mean", "0,0,100", "--scale", "50", "--bgr"))
    np.testing.assert_allclose(values[0, 0, :, 2], [2, 2, 2, -2, -2, -2])
    assert not values[..., :2].any()


@pytest.mark.parametrize(
    ("resize", "expected"),
    [("stretch", [[200, 0]] * 2), ("crop", [[200, 0]] * 2), ("pad", [[200, 0], [0, 0]])],
)
def test_images_are_resized(cli: Any, tmp_path: Path, photo: Path, resize: str, expected: list[list[int]]) -> None:
    values = np.array(returned(cli, echo(tmp_path, "1,3,2,2"), "--input", f"x={photo}", "--resize", resize))
    np.testing.assert_allclose(values[0, 0], expected, atol=40)
    if resize == "pad":
        assert not values[0, :, 1].any()


def test_the_size_of_an_image_can_stay(cli: Any, tmp_path: Path, photo: Path) -> None:
    path = echo(tmp_path, "1,3,2,2")
    refused = cli("run", path, "--input", f"x={photo}", "--resize", "none")
    assert refused.status == 1
    assert "the image is 6x2 (width by height), the input 2x2" in refused.err
    assert np.array(returned(cli, echo(tmp_path, "?,3,?,?"), "--input", f"x={photo}")).shape == (1, 3, 2, 6)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ("1,5,2,2", [], "does not take an image"),
        ("1,3,2,3", [], "give it: --layout"),
        ("1,3,2,2", ["--mean", "1,2"], "--mean has 2 values, the image 3 channels"),
        ("1,3,2,2", ["--scale", "0"], "--scale divides by its values"),
        ("1,3,2,2", ["--layout", "HWC"], "the layout HWC has 3 axes"),
    ],
)
def test_images_that_do_not_fit(
    cli: Any, tmp_path: Path, photo: Path, shape: str, options: list[str], message: str
) -> None:
    result = cli("run", echo(tmp_path, shape), "--input", f"x={photo}", *options)
    assert result.status == 1
    assert message in result.err


def test_a_broken_image_is_an_unreadable_file(cli: Any, tmp_path: Path, photo: Path) -> None:
    photo.write_bytes(b"not a picture")
    result = cli("run", echo(tmp_path, "1,3,2,2"), "--input", f"x={photo}")
    assert result.status == 2
    assert "cannot read the image: cannot identify image file\n" in result.err


def test_without_pillow_there_is_a_hint(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    result = cli("run", echo(tmp_path, "1,3,2,2"), "--input", "x=photo.jpg")
    assert result.status == 2
    assert "images are read with Pillow, which is not installed" in result.err
    assert 'pip install "ovir[image]"' in result.err
