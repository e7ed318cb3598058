"""``ovir edit`` and ``ovir extract``: what they write, what they report, and that they write nothing on an error."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.command import Cli
from support.newer_models import attention, faulty
from support.simplifiable import vad

import ovir
from ovir import opset13 as ops
from ovir.cli.commands import edit
from ovir.core.element_types import ElementType
from ovir.debugging.f32_layers import with_f32_layers

DIGITS = "examples/xml/digits.xml"
IMAGES = np.load("examples/xml/digits_input.npz")["image"]


def test_all_edits_are_one(cli: Cli, tmp_path: Path) -> None:
    """A shape and a constant that fit only together can be given in any order."""
    one, four = tmp_path / "one.xml", tmp_path / "four.xml"
    assert cli("edit", DIGITS, "--set-constant", "flatten/pattern=1,128", "--shape", "1,1,8,8", "-o", one).status == 0
    failed = cli("edit", one, "--shape", "image=4,1,8,8", "-o", four)
    assert failed.status == 1
    assert "layer 16 'flatten' (Reshape, opset1): data of shape [4,32,2,2] cannot be reshaped to [1,128]" in failed.err
    assert (
        "hint: this follows from --shape image=4,1,8,8; the layer takes sizes or axes from layer 1 'flatten/pattern' "
        "(Const, opset1); --adapt lets constants follow --shape; nothing is written"
    ) in failed.err
    np.save(tmp_path / "pattern.npy", np.array([4, 128]))
    done = cli("edit", one, "--shape", "image=4,1,8,8", "--set-constant", f"flatten/pattern={tmp_path}/pattern.npy",
               "-o", four)  # fmt: skip
    assert done.out.splitlines()[:2] == [
        "input 'image': [1,1,8,8] -> [4,1,8,8]",
        "constant 'flatten/pattern': i64[2] = 1,128 -> i64[2] = 4,128",
    ]
    assert ovir.compile_model(four)([IMAGES[:4]])[0].argmax(axis=1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("name", "text"), [("i4", "[-8,7]"), ("bf16", "[0.5,2]"), ("nf4", "[15,0]"), ("u1", "[1,0]")])
def test_written_values_take_the_element_type_of_the_constant(cli: Cli, tmp_path: Path, name: str, text: str) -> None:
    model = ovir.Model([ops.constant([0, 1, 1], name, name="c")], [], "m")
    ovir.save_model(model, tmp_path / "m.xml")
    done = cli("edit", tmp_path / "m.xml", "--set-constant", f"c={text}", "-o", tmp_path / "n.xml")
    assert done.out.splitlines()[0] == f"constant 'c': {name}[3] = 0,1,1 -> {name}[2] = {text[1:-1]}"
    found = ovir.read_model(tmp_path / "n.xml").layer("c").operator.data
    assert found.astype(float).tolist() == json.loads(text)


def test_edits_as_json(cli: Cli, tmp_path: Path) -> None:
    new = tmp_path / "new.xml"
    done = cli("edit", DIGITS, "--rename", "image=photo", "--fold-constants", "--compress-to-fp16", "--json", "-o", new)
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["files"] == [str(new), str(tmp_path / "new.bin")]
    assert all(Path(path).is_file() for path in found["files"])
    described = {"name": "photo", "names": ["photo"], "layer": "photo", "shape": "[?,1,8,8]", "type": "f32"}
    assert found["inputs"] == [described]
    assert [port["name"] for port in found["outputs"]] == ["probabilities"]
    assert found["layers"] == len(ovir.read_model(new).layers)
    assert {"photo", "conv1/weights_compressed"} <= set(found["added"])
    assert found["removed"] == ["image"]
    assert found["edits"][:2] == [
        {"option": "--rename", "value": "image=photo", "result": "renamed 'image' to 'photo'"},
        {"option": "--fold-constants", "value": "", "result": "folded 0 layers into 0 constants"},
    ]
    assert found["diagnostics"] == []
    dry = json.loads(cli("edit", DIGITS, "--add-output", "relu1", "--json", "--dry-run").out)
    assert (dry["files"], dry["added"], dry["removed"]) == ([], ["relu1/sink_port_0"], [])
    assert [port["layer"] for port in dry["outputs"]] == ["result", "relu1/sink_port_0"]


def test_parts_as_json(cli: Cli, tmp_path: Path) -> None:
    part = tmp_path / "part.xml"
    done = cli("extract", DIGITS, "--inputs", "conv1,image", "--outputs", "pool1:0", "--json", "-o", part)
    found = json.loads(done.out)
    assert (done.status, done.err, found["files"]) == (0, "", [str(part), str(tmp_path / "part.bin")])
    assert [port["name"] for port in (*found["inputs"], *found["outputs"])] == ["conv1", "image", "pool1"]
    assert (found["layers"], found["added"]) == (7, ["pool1/sink_port_0"])
    assert {"flatten", "result"} <= set(found["removed"])
    assert found["notes"] == ["nothing in the part reads input 'image'"]


def test_further_edits(cli: Cli, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "3")
    scale = net.op("Exp", net.const(np.float32([1, 2, 3])), name="scale")
    net.op("Abs", x, name="dead")
    net.result(net.op("Multiply", x, scale, name="product"), "out")
    path = net.write(tmp_path)
    done = cli("edit", path, "--prune", "--fold-constants", "--strip-rt-info", "--add-output", "scale", "-o", path)
    assert done.out.splitlines()[:5] == [
        "removed 1 dead layer: dead",
        "folded 2 layers into 1 constant",
        "proven: the results agree for 3 sets of random inputs",
        "removed the runtime information",
        "output 'scale': f32[3]",
    ]
    model = ovir.read_model(path)
    assert [layer.type for layer in model.layers] == ["Parameter", "Const", "Multiply", "Result", "Result"]
    np.testing.assert_allclose(
        ovir.compile_model(model)([np.ones(3, np.float32)])["scale"], np.exp([1, 2, 3]), rtol=1e-6
    )


# --------------------------------------------------------------------------- parts


def test_a_part_computes_what_the_whole_does(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "part.xml"
    done = cli("extract", DIGITS, "--inputs", "conv1", "--outputs", "pool1:0,relu1", "-o", path)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "        tensor  type",
        "input   conv1   f32[?,16,8,8]",
        "output  pool1   f32[?,16,4,4]",
        "output  relu1   f32[?,16,8,8]",
        "",
        f"{path}: 4 of 21 layers between inputs and outputs",
    ]
    taps = ovir.compile_model(DIGITS)([IMAGES], taps=["conv1", "pool1", "relu1"]).taps
    results = ovir.compile_model(path)({"conv1": taps["conv1"][0]})
    np.testing.assert_array_equal(results["pool1"], taps["pool1"][0])
    np.testing.assert_array_equal(results["relu1"], taps["relu1"][0])
    shown = json.loads(cli("show", path, "--json").out)
    assert shown


def test_sides_left_out_and_repeated(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "part.xml"
    assert cli("extract", DIGITS, "--outputs", "conv1", "--outputs", "relu1", "-o", path).status == 0
    part = ovir.read_model(path)
    assert [port.any_name for port in (*part.inputs, *part.outputs)] == ["image", "conv1", "relu1"]
    assert cli("extract", DIGITS, "--inputs", "fc", "-o", path).status == 0
    assert [port.any_name for port in ovir.read_model(path).outputs] == ["probabilities"]


def test_what_a_part_lacks_is_reported(cli: Cli, tmp_path: Path) -> None:
    net = Net()
    x, y = net.parameter("x", "3"), net.parameter("y", "3")
    start = net.op("ReLU", x, name="start")
    state = net.op("ReadValue", start, opset=6, name="state", variable_id="v", variable_type="f32", variable_shape="3")
    net.op("Assign", net.op("Add", state, y, name="sum"), opset=6, variable_id="v")
    net.result(state, "out")
    path = net.write(tmp_path)
    done = cli("extract", path, "--inputs", "start,x", "--outputs", "state", "-o", tmp_path / "part.xml")
    assert done.status == 0
    assert done.err.splitlines() == [
        "note: nothing in the part reads input 'x'",
        "note: variable 'v' keeps its initial value: its Assign is not in the part",
    ]
    failed = cli("extract", path, "--inputs", "x", "--outputs", "sum", "-o", tmp_path / "other.xml")
    assert failed.status == 2
    assert "the part leaves input 'y' undefined: 'sum' depends on it, by 1 'y' -> 4 'sum'" in failed.err
    assert not (tmp_path / "other.xml").exists()


def test_an_input_is_fixed_and_the_model_simplified(cli: Cli, tmp_path: Path) -> None:
    ovir.save_model(vad(), tmp_path / "vad.xml")
    np.save(tmp_path / "rate.npy", np.int64(16000))
    out = tmp_path / "simple.xml"
    for value in ("16000", str(tmp_path / "rate.npy")):
        done = cli("edit", tmp_path / "vad.xml", "--fix-input", f"sr={value}", "--simplify", "-o", out)
        assert done.status == 0
        lines = done.out.splitlines()
        assert lines[:2] == [
            "input 'sr': i64[] -> constant i64[]",
            "proven: the results agree for 5 sets of random inputs",
        ]
        assert "1 x If whose condition is known: rate" in lines
        assert "1 x Transpose back: Transpose_9" in [re.sub(r"Transpose_\d+", "Transpose_9", line) for line in lines]
        assert [port.any_name for port in ovir.read_model(out).inputs] == ["input"]
    done = cli("edit", tmp_path / "vad.xml", "--simplify", "--no-verify", "-o", out)
    assert "not proven: the proof was left out" in done.out
    done = cli("edit", tmp_path / "vad.xml", "--fix-input", "sr=1,2", "-o", out)
    assert "--fix-input sr=1,2" in done.err
    done = cli("edit", tmp_path / "vad.xml", "--set-constant", "sr=16000", "-o", out)
    assert (done.status, "--fix-input NAME=VALUE" in done.err) == (2, True)


def compressed(kind: str) -> ovir.Model:
    """Return a product with weights that are stored in another type."""
    x = ops.parameter([2, 8], "f32", name="x")
    dtype = ElementType.parse(kind).to_dtype()
    weights: Any = ops.constant(np.arange(32).reshape(8, 4).astype(dtype), kind, name="codes")
    weights = ops.convert(weights, "f32", name="converted")
    if not ElementType.parse(kind).is_real:
        weights = ops.multiply(ops.subtract(weights, np.float32(3)), np.float32(0.5), name="weights")
    return ovir.Model([ops.matmul(x, weights, False, False)], [x])


@pytest.mark.parametrize("kind", ["u8", "i8", "u4", "f16", "bf16"])
def test_set_constant_says_that_weights_were_compressed(kind: str, tmp_path: Path, cli: Any) -> None:
    ovir.save_model(compressed(kind), tmp_path / "m.xml")
    np.save(tmp_path / "w.npy", np.ones((8, 4), np.float32))
    scheme = "" if kind in ("f16", "bf16") else " with scale and zero point"
    size = 32 * ElementType.parse(kind).bits // 8 + (8 if scheme else 0)
    name = "weights" if scheme else "converted"
    done = cli("edit", tmp_path / "m.xml", "--set-constant", f"{name}={tmp_path}/w.npy", "-o", tmp_path / "n.xml")
    said = f"it was stored as {kind}{scheme}, and is stored as f32 now: 128 instead of {size} bytes"
    assert f"constant '{name}': f32[8,4] -> f32[8,4]; {said}" in done.out + done.err
    done = cli("edit", tmp_path / "m.xml", "--set-constant", f"codes={tmp_path}/w.npy", "-o", tmp_path / "n.xml")
    assert f"which still apply to it: '{name}' has their result" in done.out + done.err
    plain = cli("edit", tmp_path / "n.xml", "--set-constant", f"codes={tmp_path}/w.npy", "-o", tmp_path / "o.xml")
    assert "stored as" not in plain.out + plain.err


def test_batch_follows_the_inputs_and_is_proven(cli: Cli, tmp_path: Path) -> None:
    frozen, four = tmp_path / "frozen.xml", tmp_path / "four.xml"
    options = ("--set-constant", "flatten/pattern=1,128", "--shape", "image=1,1,8,8")
    assert cli("edit", DIGITS, *options, "-o", frozen).status == 0
    for option, last in ((), "proven: the results agree"), (("--no-verify",), "not proven: the proof was left out"):
        done = cli("edit", frozen, "--batch", "image=4", *option, "-o", four)
        assert (done.status, done.err) == (0, "")
        assert done.out.splitlines()[:2] == [
            "input 'image': [1,1,8,8] -> [4,1,8,8]",
            "1 layer now follows the batch: flatten",
        ]
        assert done.out.splitlines()[2].startswith(last)
    assert str(ovir.read_model(four).outputs[0].shape) == "[4,10]"
    warned = cli("edit", frozen, "--shape", "image=?,1,8,8", "-o", four)
    assert (warned.status, "warning[OVIR711]" in warned.err) == (0, True)


def test_states_become_inputs_and_back(cli: Cli, tmp_path: Path) -> None:
    x = ops.parameter([-1, -1, 4], "f32", name="x")
    begin = ops.broadcast(np.float32(0), ops.concat([ops.gather(ops.shape_of(x), [0], 0), [0], [4]], 0))
    variable = "past_key_values.0.keypresent.0.key"
    present = ops.concat([ops.read_value(begin, variable, "f32", ovir.PartialShape([-1, -1, 4])), x], 1)
    y = ops.reduce_sum(present, [1], False, name="y")
    ovir.save_model(ovir.Model([y], [x], "m", sinks=[ops.assign(present, variable)]), tmp_path / "m.xml")
    opened, back = tmp_path / "open.xml", tmp_path / "back.xml"
    found = cli("edit", tmp_path / "m.xml", "--states-to-inputs", "-o", opened)
    ports, proof = (
        "input 'past_key_values.0.key', output 'present.0.key'",
        "proven: the results agree for 5 calls in a row",
    )
    assert found.out.splitlines()[:-1] == [
        f"state '{variable}' -> {ports}",
        "feed for the first call: zeros [?,0,4] to past_key_values.0.key",
        f"{proof}, with random inputs",
        "layers: 2 added, 11 removed, 1 changed; constants: 6 -> 1, 44 -> 8 bytes",
        "parameters 4 -> 1",
    ]
    for option in (["--inputs-to-states"], ["--inputs-to-states", "past_key_values.0.key=present.0.key"]):
        found = cli("edit", opened, *option, "-o", back)
        moved, note, proven = found.out.splitlines()[:3]
        assert (moved, proven) == (f"{ports} -> state '{variable}'", f"{proof}, with random inputs")
        assert "may not compile this" in note
        assert [port.any_name for port in ovir.read_model(back).inputs] == ["x"]
    found = cli("edit", opened, "--inputs-to-states", "past=present.0.key", "--dry-run", "--no-verify")
    assert (found.status, "'past'" in found.err) == (2, True)


def test_runtime_information_is_set_removed_and_shown(cli: Cli, tmp_path: Path) -> None:
    new, entries = (
        tmp_path / "new.xml",
        ("model_info/labels=cat dog", "model_info/mean=1", "model_info/mean=", "who=a=b"),
    )
    found = cli("edit", DIGITS, *(part for entry in entries for part in ("--rt-info", entry)), "-o", new)
    assert found.out.splitlines()[:-1] == [
        "model_info/labels: nothing -> 'cat dog'",
        "model_info/mean: nothing -> '1'",
        "removed model_info/mean: '1'",
        "who: nothing -> 'a=b'",
        "layers: none changed; constants: 8, 24,380 bytes",
    ]
    assert cli("show", new).out.splitlines()[-2:] == ["model_info  value", "labels      cat dog"]
    assert json.loads(cli("show", new, "--json").out)["rt_info"] == {"model_info": {"labels": "cat dog"}, "who": "a=b"}
    for entry, message in (
        ("model_info/lables=", "did you mean 'labels'"),
        ("who/x=1", "'who' has a text"),
        ("=1", "a text"),
    ):
        found = cli("edit", new, "--rt-info", entry, "--dry-run")
        assert (found.status, message in found.err) == (2, True)


@pytest.mark.parametrize(("option", "kind"), [("--compress-to-fp16", "f16"), ("--compress-to-bf16", "bf16")])
def test_weights_are_written_in_16_bits(cli: Cli, tmp_path: Path, option: str, kind: str) -> None:
    done = cli("edit", DIGITS, option, "-o", tmp_path / "new.xml")
    assert done.out.splitlines()[:2] == [
        f"7 constants of f32 and f64 stored as {kind}",
        "layers: 7 added; constants: 8, 24,380 -> 12,198 bytes",
    ]
    layers = ovir.read_model(tmp_path / "new.xml").layers
    assert kind in {str(layer.outputs[0].element_type) for layer in layers if layer.type == "Const"}
    results = [ovir.compile_model(path)([IMAGES])[0] for path in (DIGITS, tmp_path / "new.xml")]
    np.testing.assert_allclose(*results, atol=0.02)
    again = cli("edit", tmp_path / "new.xml", option, "--dry-run")
    assert again.out.startswith(f"7 constants of {kind} already")
    assert cli("edit", tmp_path / "new.xml", "--decompress", "-o", tmp_path / "wide.xml").out.startswith(
        "decompressed "
    )
    assert not [layer for layer in ovir.read_model(tmp_path / "wide.xml").layers if layer.type == "Convert"]


def test_an_output_is_removed_with_what_only_it_needs(cli: Cli, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.op("Abs", x, name="dead before")
    net.result(net.op("ReLU", x, name="first"))
    net.result(net.op("Exp", net.op("Sin", x, name="sine"), name="second"))
    net.write(tmp_path, "m")
    done = cli("edit", tmp_path / "m.xml", "--remove-output", "second", "-o", tmp_path / "n.xml")
    assert "removed the output 'second', and 2 layers that only it needed: sine, second\n" in done.out
    left = [layer.name for layer in ovir.read_model(tmp_path / "n.xml").layers if layer.type != "Result"]
    assert sorted(left) == ["dead before", "first", "x"]
    assert (
        "the model has no output 'secnd'"
        in cli("edit", tmp_path / "m.xml", "--remove-output", "secnd", "--dry-run").err
    )
    last = cli("edit", tmp_path / "n.xml", "--remove-output", "first", "--dry-run")
    assert (last.status, "the only output of a model cannot be removed" in last.err) == (2, True)


# --------------------------------------------------------------------------- other releases


def test_the_command_writes_what_a_release_reads(tmp_path: Path, cli: Cli) -> None:
    model, old = tmp_path / "new.xml", tmp_path / "old.xml"
    ovir.save_model(attention(), model)
    hints = [d.hint for d in ovir.check(model, runtime="2022.3") if d.code == "OVIR701"]
    assert hints == ["'ovir edit --runtime 2022.3' rewrites this layer"]
    done = cli("edit", str(model), "--runtime", "2022.3", "-o", str(old))
    assert done.status == 0
    assert "rewrote 1 layer for OpenVINO 2022.3: 1 x ScaledDotProductAttention-13" in done.out
    assert [d for d in ovir.check(old, runtime="2022.3") if d.code == "OVIR701"] == []
    assert ovir.read_model(old).version == 11


def test_the_command_refuses_before_it_writes(tmp_path: Path, cli: Cli) -> None:
    model, old = tmp_path / "new.xml", tmp_path / "old.xml"
    ovir.save_model(faulty(), model)
    hints = [d.hint or "" for d in ovir.check(model, runtime="2022.3") if d.code == "OVIR701"]
    assert sum("cannot be rewritten" in hint for hint in hints) == 2
    done = cli("edit", str(model), "--runtime", "2022.3", "-o", str(old))
    assert done.status != 0
    assert "'fake'" in done.err
    assert "'drawn'" in done.err
    assert not old.exists()


def test_preprocessing_is_rewritten_too(tmp_path: Path, cli: Cli) -> None:
    old = tmp_path / "old.xml"
    options = ("--runtime", "2022.1", "--input-type", "u8", "--input-layout", "NHWC", "--resize", "linear")
    done = cli("edit", DIGITS, *options, "-o", str(old))
    assert done.status == 0
    assert "x Interpolate-11" in done.out
    assert [d for d in ovir.check(old, runtime="2022.1") if d.code == "OVIR701"] == []


def test_a_shape_repairs_a_file_that_does_not_fit_its_own(cli: Cli, tmp_path: Path) -> None:
    net = Net()
    pooled = net.op(
        "MaxPool", net.parameter("x", "1,3,1,1"), strides="2,2", pads_begin="0,0", pads_end="0,0", kernel="2,2"
    )
    net.result(pooled)
    broken = net.write(tmp_path)
    repaired = cli("edit", broken, "--shape", "x=1,3,8,8", "-o", tmp_path / "fixed.xml")
    assert (repaired.status, repaired.out.splitlines()[0]) == (0, "input 'x': [1,3,1,1] -> [1,3,8,8]")
    assert str(ovir.read_model(tmp_path / "fixed.xml").outputs[0].shape) == "[1,3,4,4]"
    assert cli("run", broken, "--shape", "x=1,3,8,8").status == 0
    assert cli("compare", broken, broken, "--shape", "x=1,3,8,8").status == 0
    ran = cli("run", broken, "--shape", "x=1,3,8,1")
    edited = cli("edit", broken, "--shape", "x=1,3,8,1", "-o", tmp_path / "fixed.xml")
    assert (ran.status, edited.status) == (1, 1)
    error = edited.err.splitlines()[0]
    assert error == ran.err.splitlines()[0]
    assert "spatial axis 1: it covers 2" in error  # in the shape of the file, axis 0 is too small as well


def test_a_batch_starts_from_shapes_that_fit(cli: Cli, tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2,3"), net.parameter("y", "4,3")))
    broken, fixed = net.write(tmp_path), tmp_path / "fixed.xml"
    refused = cli("edit", broken, "--batch", "8", "-o", fixed)
    assert refused.status == 1
    assert "--batch starts from shapes that fit the model: give them before it, with --shape" in refused.err
    assert cli("edit", broken, "--shape", "x=4,3", "--batch", "8", "-o", fixed).status == 0
    assert str(ovir.read_model(fixed).outputs[0].shape) == "[8,3]"


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
