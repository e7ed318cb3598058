"""The command ``ovir compare``: exit statuses and what it prints."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.command import Cli, require_row

import ovir
from ovir import opset13 as ops

pytestmark = pytest.mark.slow

X = np.float32([[1, -2, 3, 0.5]])


@pytest.fixture
def folder(tmp_path: Path, device: pytest.MonkeyPatch) -> Path:
    """Return a folder with a model, its inputs and a recording; ``openvino`` is the stand-in."""
    device.chdir(tmp_path)
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    model = ovir.Model([ops.softmax(ops.tanh(x, name="tanh"), 1, name="soft", tensor_names="soft")], [x])
    ovir.save_model(model, "model.xml")
    np.savez("x.npz", x=X)
    np.savez("recorded.npz", x=X, tanh=np.tanh(X))
    np.savez("shaped.npz", x=X, tanh=np.zeros((3, 4), np.float32))
    return tmp_path


def run(cli: Cli, *arguments: str) -> tuple[int, str]:
    done = cli("compare", "model.xml", *arguments)
    return done.status, done.out + done.err


def test_a_fault_in_a_body_names_the_layer_around_it(folder: Path, cli: Cli) -> None:
    for path, wrong in (("model.xml", 0.0), ("other.xml", 1.0)):
        x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
        state = ops.parameter([1, 4], "f32", name="state")
        step = ops.add(ops.tanh(state, name="inner"), np.float32(wrong), name="faulty")
        body = ovir.Model([ops.constant(np.array(True)), step], [state])
        loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)), name="loop")
        loop.set_function(body)
        loop.set_special_body_ports([-1, 0])
        loop.set_merged_input(state, x, step)
        ovir.save_model(ovir.Model([ops.relu(loop.get_iter_value(step, -1), name="out")], [x]), path)
    status, text = run(cli, "other.xml", "--input", "x.npz")
    assert status == 1
    assert "first layer beyond tolerance: Loop 'loop' (id 3), compared as a whole with its body: " in text
    assert "faulty" not in text


@pytest.mark.parametrize("command", ["compare", "bisect"])
def test_rounding_of_the_device_is_named_with_the_command_that_tells_it_from_a_fault(
    command: str, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVIR_TEST_PROPERTIES", "CPU_DENORMALS_OPTIMIZATION=YES")
    monkeypatch.setenv("OVIR_TEST_FAULT", "wrong:SoftMax")
    words = [command, "model.xml", "--against", "openvino:CPU", "--input", "x.npz"]
    done = cli(*words)
    text = " ".join((done.out + done.err).split())
    assert "CPU_DENORMALS_OPTIMIZATION is YES: numbers below 2^-126 become 0" in text
    line = " ".join(["ovir", *words, "--config", "CPU_DENORMALS_OPTIMIZATION=NO"])
    assert f"`{line}` tells rounding from a fault; --explain runs this comparison" in text
    assert done.status == 1
    done = cli(*words, "--explain")
    text = " ".join(done.out.split())
    assert (
        "beyond tolerance with CPU_DENORMALS_OPTIMIZATION=NO, too: no rounding by these properties explains it" in text
    )
    assert "tells rounding from a fault" not in text
    assert json.loads(cli(*words, "--explain", "--json").out)["explanation"]["within"] is False
    monkeypatch.setenv("OVIR_TEST_PROPERTIES", "")
    assert "no property of the other side is known to change numbers" in " ".join(cli(*words, "--explain").out.split())


@pytest.mark.parametrize("command", ["compare", "bisect"])
def test_a_known_divergence_counts_with_strict_only(
    command: str, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVIR_TEST_FAULT", "wrong:HardSigmoid")
    for name, alpha in (("known.xml", 0.0), ("unknown.xml", 0.2)):
        x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
        hard = ops.hard_sigmoid(x, np.float32(alpha), np.float32(0.5))
        ovir.save_model(ovir.Model([ops.tanh(hard)], [x]), name)
    options = ("--against", "openvino:CPU", "--input", "x.npz")
    done = cli(command, "known.xml", *options)
    expected = "known divergence: HardSigmoid-1 with alpha 0. OpenVINO: CPU uses 0.2 instead. ovir: 0, as given"
    assert expected in " ".join(done.out.split())
    assert done.status == 0
    assert cli(command, "known.xml", *options, "--strict").status == 1
    unknown = cli(command, "unknown.xml", *options)
    assert (unknown.status, "known divergence" in unknown.out) == (1, False)
    if command == "compare":
        pytest.importorskip("itables", reason="a report needs ovir[html]")
        cli(command, "known.xml", *options, "--html", "page.html")
        assert "Known divergence" in Path("page.html").read_text()


def test_the_layers_that_clip_most_are_named(folder: Path, cli: Cli) -> None:
    x = ops.parameter([2, 4], "f32", name="x", tensor_names="x")
    ends = [ops.fake_quantize(x, *np.float32([0, high, 0, high]), 256, name=f"cap{high}") for high in range(1, 8)]
    ovir.save_model(ovir.Model(ends, [x]), "caps.xml")
    x = ops.parameter([2, 4], "f32", name="x", tensor_names="x")
    ends = [ops.abs(x, name=f"cap{high}") for high in range(1, 8)]
    ovir.save_model(ovir.Model(ends, [x]), "plain.xml")
    np.savez("x.npz", x=np.float32([[0, 0.5, 2, 3], [4, 5, 6, 7]]))
    done = cli("compare", "plain.xml", "caps.xml", "--input", "x.npz")
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("FakeQuantize '")] == [
        "FakeQuantize 'cap1': 75.0% of values above output bound 1",
        "FakeQuantize 'cap2': 62.5% of values above output bound 2",
        "FakeQuantize 'cap3': 50.0% of values above output bound 3",
    ]
    assert "3 more FakeQuantize layers with smaller shares: --json lists all" in lines
    told = json.loads(cli("compare", "plain.xml", "caps.xml", "--input", "x.npz", "--json").out)
    assert list(told["clipped"]) == [f"cap{high}" for high in range(1, 8)]
    assert "FakeQuantize '" not in cli("compare", "caps.xml", "caps.xml", "--input", "x.npz").out


def test_a_seed_gives_the_inputs_for_a_recording(folder: Path, cli: Cli) -> None:
    inputs = ovir.random_inputs("model.xml", 3)
    np.savez("outputs.npz", tanh=np.tanh(inputs["x"]))
    assert run(cli, "--against", "outputs.npz")[0] == 2
    status, text = run(cli, "--against", "outputs.npz", "--seed", "3")
    assert status == 0
    assert "random inputs: 1 set, seed 3" in text
    status, text = run(cli, "--against", "recorded.npz", "--seed", "3")
    assert status == 2
    assert "input 'x' has other values than in the recording" in text
    assert "leave out --input and --seed" in text


# --------------------------------------------------------------------------- every option has its effect


@pytest.fixture
def other(folder: Path) -> Path:
    """Return the folder with a second model, whose Tanh is followed by a factor, and weights of another name."""
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    scaled = ops.multiply(ops.tanh(x, name="tanh"), np.float32([[1.01]]), name="scaled")
    ovir.save_model(ovir.Model([ops.softmax(scaled, 1, name="soft", tensor_names="soft")], [x]), "other.xml")
    return folder


def test_samples_and_seed_draw_inputs(other: Path, cli: Cli) -> None:
    text = run(cli, "other.xml", "--samples", "3", "--seed", "5")[1]
    assert "random inputs: 3 sets, seed 5" in text
    assert "3 sets of inputs" in text
    assert "mean SQNR" in text
    assert run(cli, "other.xml", "--seed", "5")[1] != run(cli, "other.xml", "--seed", "6")[1]


def test_saved_inputs_give_the_same_numbers(other: Path, cli: Cli) -> None:
    drawn = run(cli, "other.xml", "--seed", "5", "--save-inputs", "saved.npz")[1]
    again = run(cli, "other.xml", "--input", "saved.npz")[1]
    assert drawn.replace("random inputs: 1 set, seed 5\n", "") == again


def test_images_are_prepared(cli: Cli, folder: Path) -> None:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 255, (4, 6, 3), np.uint8)
    Image.fromarray(pixels).save("photo.png")
    x = ops.parameter([1, 4, 4, 3], "f32", name="x")
    ovir.save_model(ovir.Model([ops.relu(x, name="relu")], [x]), "image.xml")
    ways = ["", "--mean 10", "--scale 2", "--bgr", "--resize pad", "--resize crop"]
    arguments = ["image.xml", "image.xml", "--input", "photo.png", "--save-inputs", "given.npz", "--layout", "NHWC"]
    given = []
    for way in ways:
        assert cli("compare", *arguments, *way.split()).status == 0
        with np.load("given.npz") as saved:
            given.append(saved["x"].tobytes())
    assert len(set(given)) == len(ways)


def test_weights_and_shapes_of_another_name_and_size(folder: Path, cli: Cli) -> None:
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    model = ovir.Model([ops.multiply(x, np.float32([[2]]), name="product")], [x])
    ovir.save_model(model, "first.xml")
    ovir.save_model(model, "second.xml")
    (folder / "first.bin").write_bytes(np.float32([3]).tobytes())
    assert cli("compare", "first.xml", "second.xml", "--input", "x.npz").status == 1
    assert cli("compare", "first.xml", "second.xml", "--input", "x.npz", "--weights", "second.bin").status == 0
    assert "f32[7,4]" in cli("compare", "first.xml", "first.xml", "--shape", "7,4", "--all").out


def test_an_extension_computes_layers(folder: Path, cli: Cli) -> None:
    text = (folder / "model.xml").read_text().replace('type="Tanh" version="opset1"', 'type="Twice" version="mine"')
    (folder / "twice.xml").write_text(text)
    (folder / "model.bin").rename(folder / "twice.bin")
    (folder / "twice.py").write_text(
        "import ovir\n\n@ovir.register('Twice', version='mine')\nclass Twice(ovir.Operator):\n"
        "    def infer(self, data):\n        return data\n\n    def run(self, data):\n        return data * 2\n"
    )
    np.savez("twice.npz", x=X, tanh=X * 2)
    assert cli("compare", "twice.xml", "--against", "twice.npz").status == 2
    assert "within tolerance" in cli("compare", "twice.xml", "--against", "twice.npz", "--extension", "twice.py").out


DEVICE = "compare model.xml --against openvino:CPU --input x.npz"
BF16 = f"{DEVICE} --config INFERENCE_PRECISION_HINT=bf16"
OTHER = "compare model.xml other.xml --input x.npz"
RESULTS = f"""
compare model.xml --against x.npz => 2 => nothing was compared: the recording has only inputs && !tolerance
compare model.xml --against missing.npz => 2 => missing.npz && !tolerance
compare model.xml --against openvino:CPU --input 1,2 => 2 => takes shape [1,4] && !tolerance
compare model.xml --against openvino:NPU --input x.npz => 2 => no device NPU; available: CPU && !tolerance
{DEVICE} --config FOO=bar => 2 => refuses the properties FOO=bar && !tolerance
OVIR_TEST_FAULT=missing: compare model.xml --against openvino:CPU => 2 => error[OVIR904] openvino:CPU needs the package openvino, which is missing && !random
OVIR_TEST_FAULT=die:Tanh {DEVICE} => 1 => first layer beyond tolerance: Tanh 'tanh'
OVIR_TEST_FAULT=wrong:SoftMax {DEVICE} => 1 => beyond tolerance: SoftMax 'soft' (id 2): [0,1] on CPU  && , in ovir  && !--config
OVIR_TEST_FAULT=wrong:SoftMax {DEVICE} --metric max_abs=0.5 => 1 => max_abs 1, the limit is 0.5; [
OVIR_TEST_FAULT=wrong:SoftMax {BF16} => 1 => OpenVINO 1.2.3 on CPU, which computes in bf16: outputs && INFERENCE_PRECISION_HINT is bf16: real numbers are computed in a type of 16 bits && --config INFERENCE_PRECISION_HINT=f32 && !does not honor
OVIR_TEST_PRECISION=f32 {BF16} => 0 => the device does not honor INFERENCE_PRECISION_HINT=bf16: it computes in f32
OVIR_TEST_FAULT=hang:Multiply {OTHER} --against openvino:CPU --timeout 0.5 => 1 => other.xml on OpenVINO 1.2.3 on CPU && took longer than 0.5 s and was stopped
{DEVICE} --repeat 4 => 0 => \\nthe same bits in 3 x 4 runs\\n && !first layer that varies
{DEVICE} --repeat 1 => 2 => argument --repeat: must be at least 2, got 1 && !tolerance
OVIR_TEST_FAULT=request:Tanh {DEVICE} --repeat 2 => 1 => results vary in new requests; the first layer that varies: Tanh 'tanh' (id 1) && runs with other bits && tanh    Tanh     0 of 2          2 of 2           2 of 2
OVIR_TEST_FAULT=compilation:Tanh {DEVICE} --repeat 2 --limit 1 => 1 => results vary after new compilations; the first layer && and 2 more varying tensors
OVIR_TEST_FAULT=run:Tanh {DEVICE} --repeat 2 --isolated => 1 => results vary in one request; the first layer
OVIR_TEST_FAULT=die:Tanh {DEVICE} --repeat 2 => 1 => the other side fails && !runs
compare model.xml --against recorded.npz --repeat 2 => 2 => --repeat repeats runs, but a recording is of one run && !tolerance
compare model.xml --against recorded.npz => 0 => within tolerance, but no output was compared
compare model.xml --against shaped.npz => 1 => first layer beyond tolerance: Tanh 'tanh' (id 1): has shape [3,4], but [1,4] was expected
{OTHER} => 1 => beyond tolerance
{OTHER} --rtol 0.1 => 0 => within tolerance
{OTHER} --atol 0.1 => 0 => within tolerance
{OTHER} --metric sqnr_db=20 => 0 => within tolerance
{OTHER} --metric sqnr_db=90 => 1 => beyond tolerance
{OTHER} --limit 1 => 1 => 1 layer without any difference; --all shows all
{OTHER} --all => 1 => Tanh && !without any difference
{OTHER} --all --limit 1 => 2 => not allowed with argument
{OTHER} --isolated => 1 => : outputs, and layers alone, 1 set && !first layer beyond tolerance
{OTHER} --cumulative => 1 => : outputs and layers, 1 set && first layer beyond tolerance: SoftMax 'soft'
compare model.xml model.xml --input x.npz => 0 => within tolerance\\n\\n1 output without any difference; --all shows all && !max abs
compare model.xml model.xml --input x.npz --all => 0 => max abs && !without any difference
"""


@pytest.mark.slow
@pytest.mark.parametrize("row", RESULTS.strip().splitlines())
def test_what_is_printed(other: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    require_row(cli, monkeypatch, row)


# --------------------------------------------------------------------------- many inputs


@pytest.fixture
def many(folder: Path) -> Path:
    """Return the folder with nine inputs, which differ most in the seventh, and another model."""
    (folder / "in").mkdir()
    for number in range(9):
        np.savez(folder / "in" / f"{number}.npz", x=X * (0.01 if number != 6 else 1))
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    tanh = ops.multiply(ops.tanh(x, name="tanh"), np.float32([[1.001]]), name="more")
    ovir.save_model(ovir.Model([ops.softmax(tanh, 1, name="soft", tensor_names="soft")], [x]), "other.xml")
    return folder


def test_the_worst_input_of_each_layer_is_named(many: Path, cli: Cli) -> None:
    status, text = run(cli, "other.xml", "--inputs", "in")
    assert status == 1
    assert "SoftMax 'soft' (id 2), after Multiply 'more', which only the other model has, with 6.npz: " in text
    rows = [line for line in text.splitlines() if " soft " in f" {line}" and "  " in line]
    assert len(rows) == 2, "of the outputs and of the layers"
    assert all(" 6.npz" in row for row in rows)
    assert text.count("worst input") == 2


def found(cli: Cli, *arguments: str) -> tuple[object, int]:
    """Return the result without real numbers on a device, whose first run rounds otherwise than the next ones."""
    status, text = run(cli, *arguments, "--json")

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and "openvino:CPU" in arguments else value

    return plain(json.loads(text[: text.rindex("}") + 1])), status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("other.xml --inputs in", ""),
        ("other.xml --inputs in --isolated", ""),
        ("other.xml --samples 5 --seed 3", ""),
        ("--against openvino:CPU --inputs in", "wrong:SoftMax"),
        ("--against openvino:CPU --inputs in --cumulative", ""),
        ("--against openvino:CPU --inputs in --repeat 2", ""),
    ],
)
@pytest.mark.usefixtures("shared_workers")
def test_workers_find_the_same(
    many: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: str, fault: str
) -> None:
    if fault:
        monkeypatch.setenv("OVIR_TEST_FAULT", fault)
    alone, status = found(cli, *arguments.split())
    assert found(cli, *arguments.split(), "--workers", "2") == (alone, status)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
@pytest.mark.usefixtures("shared_workers")
def test_runs_are_repeated_for_each_set_of_inputs(
    many: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OVIR_TEST_FAULT", "compilation:SoftMax")
    status, text = run(cli, "--against", "openvino:CPU", "--inputs", "in", "--repeat", "2", "--json", *workers)
    repeated = json.loads(text[: text.rindex("}") + 1])
    assert (status, repeated["repeat"], repeated["varies"]) == (1, 2, "compilation")
    for item in (repeated["outputs"][0], repeated["first_varying"]):
        assert item["variation"]["differing"] == {"run": 0, "request": 0, "compilation": 2 * 9}


@pytest.mark.parametrize("options", [(), ("--limit", "2")])
def test_outputs_beyond_tolerance_come_first_and_are_limited(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    outputs = [ops.multiply(x, np.float32([i + 1]), name=f"out{i}", tensor_names=f"out{i}") for i in range(30)]
    ovir.save_model(ovir.Model(outputs, [x]), "model.xml")
    factors = np.float32([i + 1 + (i == 25) + (i < 27) * 1e-5 for i in range(30)])
    np.savez("recorded.npz", x=X, **{f"out{i}": X * factor for i, factor in enumerate(factors)})
    status, text = run(cli, "--against", "recorded.npz", *options)
    assert status == 1
    table = text[text.index("\noutput ") : text.index("\nlayers by")]
    rows = [
        name
        for name in (line.split(" ")[0] for line in table.splitlines())
        if name.startswith("out") and name != "output"
    ]
    assert rows[:2] == ["out25", "out0"]
    assert len(rows) == (2 if options else 20)
    assert f"and {25 if options else 7} more outputs, and 3 without any difference; --all shows all" in text


@pytest.mark.parametrize(("operation", "has_shares"), [("softmax", True), ("tanh", False), ("multiply", False)])
def test_only_probabilities_have_the_share_of_equal_classes(
    operation: str,
    has_shares: bool,
    tmp_path: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    second = {"softmax": (1,), "tanh": (), "multiply": (np.float32([3]),)}[operation]
    ovir.save_model(ovir.Model([getattr(ops, operation)(x, *second, name="out", tensor_names="out")], [x]), "model.xml")
    found = ovir.compile_model("model.xml")(X)["out"]
    np.savez("recorded.npz", x=X, out=found * np.float32(1.00001))
    assert ("top-1" in run(cli, "--against", "recorded.npz")[1]) is has_shares


def test_a_quantized_model_is_named_with_the_metric_that_fits(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    low, high = np.float32(-4), np.float32(4)
    levels = ops.fake_quantize(x, low, high, low, high, 17, name="levels", tensor_names="levels")
    ovir.save_model(ovir.Model([ops.tanh(levels, name="tanh", tensor_names="tanh")], [x]), "model.xml")
    other = np.float32([[1, -2, 3.5, 0.5]])
    np.savez("recorded.npz", x=X, levels=other, tanh=np.tanh(other))
    status, text = run(cli, "--against", "recorded.npz")
    assert status == 1
    assert "first layer beyond tolerance: Tanh 'tanh'" in text
    assert "the model has 1 FakeQuantize layer, so values may round to other levels" in text
    assert "--metric sqnr_db=20 judges quantized models as a whole" in text
    assert "'levels' is the first layer that rounds to other levels: 1 of 4 elements" in text
    status, text = run(cli, "--against", "recorded.npz", "--metric", "sqnr_db=10")
    assert (status, "FakeQuantize layer" in text) == (0, False)


def test_in_which_type_a_layer_of_a_recording_was_computed(folder: Path, cli: Cli) -> None:
    executed = '<data execOrder="0" originalLayersNames="tanh,soft" runtimePrecision="f16"/>'
    Path("exec_graph.xml").write_text(
        f'<net><layers><layer id="0" name="tanh" type="Tanh">{executed}</layer></layers></net>'
    )
    np.savez("wrong.npz", x=X, tanh=np.tanh(X) + np.float32(0.01))
    arguments = ("--against", "wrong.npz", "--executed", "exec_graph.xml")
    status, text = run(cli, *arguments)
    assert status == 1
    assert "first layer beyond tolerance: Tanh 'tanh' (id 1), computed in f16: " in text
    assert "computed in  " in text
    _, listed = run(cli, *arguments, "--json")
    (layer,) = json.loads(listed[: listed.rindex("}") + 1])["layers"]
    assert layer["executed"]["with"] == ["tanh", "soft"]
    assert "computed in" not in run(cli, *arguments[:2])[1]
    status, text = run(cli, "--against", "wrong.npz", "--executed", "model.xml")
    assert status == 2
    assert "not an executed graph" in text
