"""``ovir compare``: exit statuses, devices that fail and workers; transcripts/compare.md shows the rest."""

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


@pytest.fixture
def other(folder: Path) -> Path:
    """Return the folder with a second model, whose Tanh is followed by a factor, and weights of another name."""
    x = ops.parameter([1, 4], "f32", name="x", tensor_names="x")
    scaled = ops.multiply(ops.tanh(x, name="tanh"), np.float32([[1.01]]), name="scaled")
    ovir.save_model(ovir.Model([ops.softmax(scaled, 1, name="soft", tensor_names="soft")], [x]), "other.xml")
    return folder


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
OVIR_TEST_FAULT=die:Tanh {DEVICE} => 1 => first layer at which the other side fails: Tanh 'tanh' && !first layer beyond
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
compare model.xml --against shaped.npz => 1 => first layer beyond tolerance: Tanh 'tanh' (id 1): has shape [3,4], but [1,4] was expected
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


@pytest.mark.parametrize(
    "arguments",
    ["other.xml --inputs in --isolated", "other.xml --samples 5 --seed 3", "--against openvino:CPU --inputs in"],
)
@pytest.mark.usefixtures("many", "shared_workers")
def test_workers_find_the_same(cli: Cli, arguments: str) -> None:
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
