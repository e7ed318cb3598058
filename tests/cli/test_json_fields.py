"""The tables of JSON fields in the documents are those that the commands print."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_transformers import encoder

import ovir
from ovir import opset13 as ops

DOCS = Path(__file__).parent.parent.parent / "docs"
CHECK = shlex.join([sys.executable, "-c", "import sys; sys.exit('Gelu' in open(sys.argv[1]).read())"]) + " {}"


def documented(page: str, title: str) -> set[str]:
    """Return the fields in the table of a page that begins with this title."""
    text = (DOCS / page).read_text(encoding="utf-8")
    table = re.search(rf"^\| {re.escape(title)} \| Contents \|\n.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    return {field for row in table[1].splitlines() for field in re.findall(r"`(.+?)`", row.split("|")[1])}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    ovir.save_model(encoder(1, planted=0, factor=300), tmp_path / "model.xml")
    return tmp_path / "model.xml"


def printed(cli: Any, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cli(*arguments, "--json").out)
    return found


@pytest.fixture
def looping(tmp_path: Path) -> list[Path]:
    """Return two models with a loop, of which the second has another factor and another name."""
    paths = [tmp_path / "a.xml", tmp_path / "b.xml"]
    for path, factor, name in zip(paths, (1.0, 1.5), ("kept", "renamed"), strict=True):
        x = ops.parameter([2, 4], "f32", name="x", tensor_names="x")
        state = ops.parameter([2, 4], "f32", name="state")
        step = ops.tanh(ops.multiply(state, np.float32(factor)), name="step")
        loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)), name="loop")
        loop.set_function(ovir.Model([ops.constant(np.array(True)), step], [state]))
        loop.set_special_body_ports([-1, 0])
        loop.set_merged_input(state, x, step)
        product = ops.matmul(
            loop.get_iter_value(step, -1), np.eye(4, 6, dtype=np.float32), False, False, name="product"
        )
        rounded = ops.convert(ops.convert(product, "f16"), "f32")
        out = ops.softmax(ops.relu(rounded, name=name), 1, name="soft", tensor_names="soft")
        ovir.save_model(ovir.Model([out], [x]), path)
    return paths


def test_compare(cli: Any, looping: list[Path], tmp_path: Path) -> None:
    executed = '<data execOrder="0" originalLayersNames="product" runtimePrecision="f16"/>'
    graph = f'<net><layers><layer id="0" name="product" type="FullyConnected">{executed}</layer></layers></net>'
    (tmp_path / "executed.xml").write_text(graph)
    found = printed(cli, "compare", *looping, "--samples", 2, "--executed", tmp_path / "executed.xml")
    assert set(found) == documented("wrong-results.md", "Field")
    tensor = documented("wrong-results.md", "Field of an output or layer")
    layer = tensor | documented("wrong-results.md", "Field of a layer only")
    rounded = tmp_path / "rounded.xml"
    ovir.save_model(ovir.read_model(looping[0]), rounded, compress_to_fp16=True)
    of_constants, of_repeats = {"weights_in"}, {"variation"}
    output = tensor | documented("wrong-results.md", "Field of an output only")
    assert set(found["outputs"][0]) == output - of_constants - of_repeats
    assert {key for one in found["layers"] for key in one} == layer - of_constants - of_repeats
    assert (
        of_constants <= {key for one in printed(cli, "compare", looping[0], rounded)["layers"] for key in one} <= layer
    )
    assert {*found["first"], *found["largest"]} <= layer
    drawn = ops.random_uniform([2], np.float32(0), np.float32(1), "f32", 0, 0, name="drawn")
    ovir.save_model(ovir.Model([drawn], []), tmp_path / "random.xml")
    repeated = printed(cli, "compare", *[tmp_path / "random.xml"] * 2, "--repeat", 2)
    assert (repeated["repeat"], repeated["varies"], repeated["first_varying"]["name"]) == (2, "run", "drawn")
    varying = [item["variation"] for item in (repeated["first_varying"], *repeated["outputs"], *repeated["layers"])]
    assert all(set(item) == documented("wrong-results.md", "Field of `variation`") for item in varying)
    assert set(found["tolerance"]) == {"rtol", "atol"}
    limited = printed(cli, "compare", *looping, "--metric", "cosine=0.5")
    assert limited["tolerance"] == {"metric": "cosine", "limit": 0.5}
    np.savez(tmp_path / "recorded.npz", x=np.ones((2, 4), np.float32), product=np.ones((2, 6), np.float32))
    recorded = printed(cli, "compare", looping[0], "--against", tmp_path / "recorded.npz")
    assert set(recorded["not_compared"][0]) == {"id", "name", "type", "reason"}


def test_bisect(cli: Any, model: Path, tmp_path: Path) -> None:
    other = ovir.read_model(model)
    weights = other.layer("layer0/out").inputs[1].source.layer
    other.set_constant(weights.key, np.asarray(weights.operator.data) * np.float32(2))
    ovir.save_model(other, tmp_path / "other.xml")
    found = printed(cli, "bisect", model, tmp_path / "other.xml", "-o", tmp_path / "part.xml")
    assert set(found) == documented("bisect.md", "Field")
    for probe in (found["first"], *found["probes"]):
        assert set(probe) == documented("bisect.md", "Field of a beginning")
    assert set(found["part"]) == documented("bisect.md", "Field of the part")


def test_reduce(cli: Any, model: Path, tmp_path: Path) -> None:
    found = printed(cli, "reduce", model, "--check", CHECK, "-o", tmp_path / "small.xml", "--max-runs", 20)
    assert set(found) == documented("reduce.md", "Field")
    assert set(found["remaining"][0]) == documented("reduce.md", "Field of a remaining layer")
    assert set(found["steps"][0]) == documented("reduce.md", "Field of a step")


def test_precision(cli: Any, model: Path) -> None:
    found = printed(cli, "precision", model, "--to", "f16")
    assert set(found) == documented("precision.md", "Field of the search")
    assert set(found["layers"][0]) == documented("precision.md", "Field of a layer")
    assert set(found["lost_marks"][0]) == documented("precision.md", "Field of a lost mark")


def test_watch(cli: Any, model: Path) -> None:
    found, plain = printed(cli, "run", model, "--watch", "overflow:f16"), printed(cli, "run", model)
    assert set(found) - set(plain) == documented("precision.md", "Field")
    assert set(found["watch"][0]) == documented("precision.md", "Field of a report")
    assert set(found["watch"][0]["inputs"][0]) == documented("precision.md", "Field of an input")
    assert set(found["margins"][0]) == documented("precision.md", "Field of a margin")


@pytest.mark.slow
@pytest.mark.usefixtures("shared_workers")
def test_run_on_many_inputs(cli: Any, looping: list[Path], tmp_path: Path) -> None:
    inputs = _inputs(cli, looping[0], tmp_path)
    found = printed(cli, "run", looping[0], "--inputs", inputs, "--output", tmp_path / "out", "--workers", 1)
    assert set(found) == documented("many-inputs.md", "Field of the summary")
    (inputs / "bad.npz").write_bytes(b"")
    printed(cli, "run", looping[0], "--inputs", inputs, "--output", tmp_path / "out", "--workers", 1, "--resume")
    rows = [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()[1:]]
    assert {key for row in rows for key in row} == documented("many-inputs.md", "Field")


@pytest.mark.slow
@pytest.mark.usefixtures("shared_workers")
def test_eval(cli: Any, looping: list[Path], tmp_path: Path) -> None:
    inputs = _inputs(cli, looping[0], tmp_path)
    arguments = ("eval", looping[0], "--inputs", inputs, "--workers", 1, "--against", looping[1], "--labels")
    (tmp_path / "labels.csv").write_text("x,0,1\n")
    found = printed(cli, *arguments, tmp_path / "labels.csv")
    fields = documented("many-inputs.md", "Field of a model")
    assert set(found["against"]) == fields
    assert set(found) == fields | documented("many-inputs.md", "Other field")


def _inputs(cli: Any, model: Path, folder: Path) -> Path:
    (folder / "in").mkdir()
    assert cli("run", model, "--save-inputs", folder / "in" / "x.npz").status == 0
    return folder / "in"
