"""Preprocessing that becomes part of a model computes what OpenVINO's PrePostProcessor computes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

WORKER = Path(__file__).with_name("preprocess_worker.py")
IMAGES = {"element_type": "u8", "layout": "NHWC"}
CASES: dict[str, dict[str, Any]] = {
    "type": {"element_type": "u8"},
    "layout": {"layout": "NHWC"},
    "mean": {"mean": 3.5},
    "means": {"mean": [1.0, 2.0, 3.0], "scale": [4.0, 5.0, 6.0]},
    "channels": {**IMAGES, "reverse_channels": True, "mean": [1.0, 2.0, 3.0]},
    **{
        mode: {**IMAGES, "resize": mode, "mean": 127.5, "scale": 127.5}
        for mode in ("linear", "nearest", "cubic", "bilinear_pillow", "bicubic_pillow")
    },
}

pytestmark = pytest.mark.oracle


def model() -> ovir.Model:
    x = ops.parameter([1, 3, 6, 8], "f32", name="image")
    return ovir.Model([ops.relu(x * 2.0, name="y")], [x], "model")


def test_preprocessing_agrees_with_openvino(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    random, feeds = np.random.default_rng(0), {}
    for name, case in CASES.items():
        sides = (13, 5) if "resize" in case else (6, 8)
        shape = (1, *sides, 3) if "layout" in case else (1, 3, *sides)
        pixels = random.integers(0, 256, shape)
        feeds[name] = pixels.astype(np.uint8 if "element_type" in case else np.float32)
    files = [tmp_path / name for name in ("model.xml", "cases.json", "inputs.npz", "outputs.npz")]
    ovir.save_model(model(), files[0])
    files[1].write_text(json.dumps(CASES), encoding="utf-8")
    np.savez(files[2], **feeds)
    subprocess.run([sys.executable, str(WORKER), *map(str, files)], check=True, capture_output=True, timeout=300)
    expected = np.load(files[3])
    for name, case in CASES.items():
        own = model()
        own.preprocess("image", **case)
        found = ovir.compile_model(own)([feeds[name]])[0]
        np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-4, err_msg=name)
