"""``ovir check --device`` and ``--ask``: names of devices, and what a device answers."""

from pathlib import Path
from typing import Any

import pytest
from support.builder import Net, unary_net

EXAMPLE = "examples/xml/dynamic_shapes.xml"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return unary_net("Abs", "2,3", "i32").write(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["npu", "NPU.0"])
def test_the_name_of_a_device_means_the_same_for_untrusted_files(cli: Any, device: str) -> None:
    assert cli("check", EXAMPLE, "--device", device, "--untrusted").out == cli("check", EXAMPLE, "--device", "NPU").out


# --------------------------------------------------------------------------- the device itself


def test_ask(cli: Any, plain: Path) -> None:
    pytest.importorskip("openvino", reason="a device is asked with openvino")
    asked = cli("check", plain, "--device", "CPU", "--ask")
    assert asked.status == 0
    assert "CPU: no obstacle found by the rules and the device" in asked.err


def test_ask_with_weights_in_another_place(cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="a device is asked with openvino")
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2"), net.const([1.0, 2.0], "f32")))
    weights = net.write(tmp_path).with_suffix(".bin").rename(tmp_path / "other.weights")
    asked = cli("check", tmp_path / "model.xml", "--weights", weights, "--device", "CPU", "--ask")
    assert asked.status == 0
    assert "no obstacle found" in asked.err


def test_ask_about_a_layer_that_the_device_refuses(cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="a device is asked with openvino")
    refused = cli("check", unary_net("Abs", "...", "f32").write(tmp_path), "--device", "CPU", "--ask")
    assert refused.status == 1
    assert "OVIR708" in refused.out
    assert "error[OVIR809]" in refused.out
    assert "asked: OpenVINO" in refused.out


def test_a_device_that_is_missing_is_not_asked(cli: Any, plain: Path) -> None:
    pytest.importorskip("openvino", reason="a device is asked with openvino")
    missing = cli("check", plain, "--device", "GPU.7", "--ask")
    assert missing.status == 0
    assert "not asked: openvino:GPU.7: no device GPU.7; available: CPU" in missing.err
    assert "by the rules; the device was not asked" in missing.err
