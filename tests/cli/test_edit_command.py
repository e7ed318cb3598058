"""``ovir edit`` and its edits: every layer of the result has a place in the file; transcripts/edit.md shows the rest."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import Cli
from support.newer_models import attention

import ovir
from ovir import opset13 as ops
from ovir.cli.commands import edit
from ovir.debugging.f32_layers import with_f32_layers


def test_new_layers_have_the_place_of_the_layer_that_they_stand_for(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ovir.save_model(attention(), path)
    model = ovir.read_model(path)
    place = model.layer("attn").place
    layers = set(model.layers)
    model.lower("2022.3")
    assert {(new.file, new.line) for new in set(model.layers) - layers} == {(place.file, place.line)}
    again = ovir.read_model(path)
    layers, place = set(again.layers), again.inputs[0].layer.place
    again.preprocess("query", scale=2.0)
    assert {(new.file, new.line) for new in set(again.layers) - layers} == {(place.file, place.line)}


def with_state() -> ovir.Model:
    """Return a model of a state, of a Reshape by a constant, and of weights, with inputs of open batch."""
    x, extra = ops.parameter([-1, 3, 4], "f32", name="x"), ops.parameter([1], "f32", name="extra")
    past = ops.read_value(np.zeros(4, np.float32), "v", name="past")
    scaled = ops.multiply(
        ops.softmax(ops.add(x, past), -1), ops.constant(np.full((3, 4), 0.1, "f4"), name="weights"), name="scaled"
    )
    present = ops.relu(past, name="present")
    flat = ops.reshape(ops.convert(ops.convert(scaled, "f32"), "f32"), np.array([0, 12]), True, name="flat")
    gelu = ops.gelu(ops.multiply(flat, extra), "ERF", name="gelu")
    return ovir.Model([gelu], [ops.assign(present, "v")], [x, extra], "m")


STATELESS = ("--states-to-inputs", "--no-verify")
PLACED = [
    ("--rename", "scaled=weighted"),
    ("--shape", "x=2,3,4"),
    ("--batch", "2", "--no-verify"),
    STATELESS,
    (*STATELESS, "--inputs-to-states"),
    ("--add-output", "scaled"),
    ("--add-output", "present"),
    ("--add-output", "scaled", "--remove-output", "scaled"),
    ("--fix-input", "extra=2", "--no-verify"),
    ("--set-constant", "weights=2"),
    ("--fold-constants",),
    ("--simplify", "--no-verify"),
    ("--runtime", "2022.1"),
    ("--shape", "x=1,3,4", *STATELESS, "--opset", "7"),
    ("--prune",),
    ("--strip-rt-info",),
    ("--rt-info", "a/b=c"),
    ("--name", "other"),
    ("--compress-to-fp16",),
    ("--compress-to-bf16",),
    ("--decompress",),
    ("--input-type", "x=u8", "--mean", "x=1", "--scale", "x=2"),
    ("--shape", "x=1,3,4", "--shape", "extra=1", *STATELESS, "--runtime", "2021.4"),
]


@pytest.mark.slow
@pytest.mark.parametrize("options", PLACED, ids=" ".join)
def test_every_layer_of_a_result_has_a_place_in_the_file(
    options: tuple[str, ...], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never in the code of ovir, or of the script that called it."""
    path = tmp_path / "model.xml"
    ovir.save_model(with_state(), path)
    written: list[ovir.Model] = []

    def keeping(*arguments: Any) -> Any:
        found = real(*arguments)
        written.append(found[0])
        return found

    real = edit.write_model
    monkeypatch.setattr(edit, "write_model", keeping)
    done = cli("edit", path, *options, "-o", tmp_path / "out.xml")
    assert done.status == 0, done.err
    (model,) = written
    lost = {
        layer.title: (layer.file, layer.line) for layer in model.walk() if layer.file != str(path) or not layer.line
    }
    assert lost == {}


def test_parts_and_joined_models_have_places_in_their_files(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ovir.save_model(with_state(), path)
    part = ovir.read_model(path).extract(inputs=["scaled"], outputs=["flat"])
    first = ovir.read_model(path)
    first.states_to_inputs(verify=False)
    joined = ovir.join(first, ovir.read_model(path), {"scaled": "x"})
    marked = with_f32_layers(ovir.read_model(path), [layer.key for layer in first.layers])
    for model in (part, joined, marked):
        assert {layer.file for layer in model.walk()} == {str(path)}
        assert all(layer.line for layer in model.walk())
