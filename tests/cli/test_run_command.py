"""`ovir run`: inputs, outputs, taps, JSON, profile."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DATA = np.arange(15, dtype=np.float32).reshape(5, 3)
INDICES = np.array([4, 0, 1, 0], np.int64)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    np.savez(tmp_path / "inputs.npz", data=DATA, indices=INDICES)
    return tmp_path / "inputs.npz"


def test_json_has_all_there_is(cli: Any, model: Path, inputs: Path) -> None:
    result = cli("run", model, "--input", inputs, "--json", "--tap", "^pro", "--profile")
    document = json.loads(result.out)
    probabilities, rows = document["outputs"]
    assert (rows["name"], rows["shape"], rows["type"]) == ("rows", [4, 3], "f32")
    assert (rows["min"], rows["max"], rows["mean"], rows["nonfinite"]) == (0.0, 14.0, DATA[INDICES].mean(), 0)
    assert np.allclose(np.sum(probabilities["values"], axis=1), 1)
    assert list(document["taps"]) == ["product", "probabilities"]
    assert document["taps"]["product"][0]["values"] == DATA[INDICES][:, :2].tolist()
    assert [i["random"] for i in document["inputs"]] == [False, False]
    assert {t["type"] for t in document["profile"]["types"]} == {"Gather", "MatMul", "SoftMax"}
    assert len(document["profile"]["layers"]) == 3
