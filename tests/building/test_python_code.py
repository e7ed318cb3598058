"""Code that ``ovir.to_python`` writes builds the same model again, and reads well."""

import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fuzz.cases import VERSIONS, make_case
from hypothesis import HealthCheck, given, settings
from support.builder import Net, unary_net
from support.random_models import models
from support.rebuilding import described, difference, rebuilt

import ovir
from ovir import opset13 as ops
from ovir.building.python_code import WIDTH, Program, assignment, identifier
from ovir.cli.options.model import read_topology
from ovir.core.arrays import Array

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("calls_are_made_once")]

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "xml").glob("*.xml"))
CASES = 2  # for each operation version


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_rebuilt(path: Path, tmp_path: Path) -> None:
    model = ovir.read_model(path)
    feeds = dict(ovir.random_inputs(model, seed=0)) if model.inputs else {}
    assert difference(model, rebuilt(model, tmp_path), feeds) == ""


def is_finite(array: Array) -> bool:
    return array.dtype.kind in "TUO" or bool(np.isfinite(array.astype(np.float64)).all())


@pytest.mark.parametrize("number", range(len(VERSIONS)), ids=lambda number: "{}-{}".format(*VERSIONS[number]))
def test_models_of_every_operation_are_rebuilt(number: int, tmp_path: Path) -> None:
    done, seed = 0, number
    while done < CASES:
        assert seed < 60 * len(VERSIONS), "the recipe makes too few models that can be read"
        case = make_case(seed)
        seed += len(VERSIONS)
        try:
            model = ovir.read_model(case.text, case.weights)
        except ovir.OvirError:
            continue
        again = rebuilt(model, tmp_path)
        feeds = dict(zip([port.any_name for port in model.inputs], case.feeds, strict=True))
        is_run = all(map(is_finite, (*case.feeds, *case.constants)))  # kernels may treat infinities in other ways
        assert difference(model, again, feeds if is_run else None) == "", case.text.decode()
        done += 1


def code(model: ovir.Model) -> str:
    return Program(model).text


def test_inputs_that_nothing_reads_remain_and_dead_layers_do_not(tmp_path: Path) -> None:
    net = Net()
    x, _ = net.parameter("x", "2"), net.parameter("unused", "3")
    net.op("Exp", x, name="dead")
    net.result(net.op("ReLU", x, name="alive"))
    again = rebuilt(net.model(), tmp_path)
    assert [layer.name for layer in again.layers if layer.type != "Result"] == ["x", "unused", "alive"]


def run(text: str, folder: Path) -> ovir.Model:
    path = folder / "small.py"
    path.write_text(text, encoding="utf-8")
    model: ovir.Model = runpy.run_path(str(path))["model"]
    return model


def test_the_code_reads_like_code() -> None:
    net = Net()
    x = net.parameter("input data", "?,2..5,3", "f16")
    y = net.op("Multiply", x, net.const(np.float16(0.1), name="scale"), name="block.1/Mul", names=["scaled"])
    pooled = net.op(
        "ReduceMean", y, net.const(np.int64([-1]), name="axes"), name="mean", keep_dims="true", names=["mean:0"]
    )
    net.result(pooled, name="out")
    assert (
        code(net.model())
        == '''\
"""Build the model "test"."""

import ovir
from ovir import opset1 as ops

input_data = ops.parameter([-1, "2..5", 3], "f16", name="input data", tensor_names="input data")
scale = ops.constant(0.1, "f16", name="scale", tensor_names="scale")
block_1_mul = ops.multiply(input_data, scale, name="block.1/Mul", tensor_names="scaled")
axes = ops.constant([-1], name="axes", tensor_names="axes")
mean = ops.reduce_mean(block_1_mul, axes, keep_dims=True, name="mean", tensor_names="mean:0")
out = ops.result(mean, name="out")
model = ovir.Model([out], [input_data], "test")
'''
    )


def test_long_statements_fill_their_lines() -> None:
    whole = ["a" * 40, "b" * (WIDTH - len("x = f(, )") - 40)]
    assert len(assignment("x", "f", whole)) == WIDTH
    first, second = ["a" * 40, "b" * (WIDTH - len("    , ,") - 40)], ["c" * 41, "d" * (WIDTH - len("    , ,") - 40)]
    lines = assignment("x", "f", [*first, *second]).splitlines()
    assert lines == ["x = f(", *(f"    {', '.join(part)}," for part in (first, second[:1], second[1:])), ")"]
    assert len(lines[1]) == WIDTH


@pytest.mark.parametrize(
    ("array", "dtype", "expected"),
    [
        (np.float32([0.1, -0.0, 1e-30]), None, "constant([0.1, -0.0, 1e-30], name"),
        (np.float32([np.inf, np.nan]), None, 'constant([float("inf"), float("nan")], name'),
        (np.float64(0.1), None, 'constant(0.1, "f64", name'),
        (np.array([1.5, 2], ml_dtypes.bfloat16), None, 'constant([1.5, 2.0], "bf16", name'),
        (np.int64([[1, 2]]), None, "constant([[1, 2]], name"),
        (np.int32(3), None, 'constant(3, "i32", name'),
        (np.uint64([2**64 - 1, 0]), None, 'constant([18446744073709551615, 0], "u64", name'),
        (np.array([True, False]), None, "constant([True, False], name"),
        (np.array(["a", 'b"']), None, """constant(["a", 'b"'], name"""),
        (np.uint8([1, 0]), "u1", 'constant([1, 0], "u1", name'),
        (np.uint8([7, 0]), "nf4", 'constant([7, 0], "nf4", name'),
        (np.array([-8, 7]), "i4", 'constant([-8, 7], "i4", name'),
        (np.arange(16), None, f"constant({list(range(16))}, name"),
        (np.zeros((3, 4, 5), np.int8), None, 'constant(np.zeros((3, 4, 5)), "i8", name'),
        (np.full((20,), 0.25, np.float32), None, 'constant(np.full((20,), 0.25), "f32", name'),
        (np.empty((0, 3), np.int64), None, 'constant(np.zeros((0, 3)), "i64", name'),
        (np.empty((2, 0), "U1"), None, 'constant(np.full((2, 0), ""), "string", name'),
        (np.empty((0,), np.float32), None, "constant([], name"),
        (np.empty((0,), np.int64), None, 'constant([], "i64", name'),
    ],
)
def test_small_constants_are_written_into_the_code(array: Any, dtype: Any, expected: str, tmp_path: Path) -> None:
    model = ovir.Model([ops.constant(array, dtype, name="c")], [], "m")
    text = code(model)
    assert f"c = ops.{expected}" in text
    again = run(text, tmp_path)
    first, second = (m.layer("c").operator.data for m in (model, again))  # type: ignore[union-attr]
    assert first.dtype == second.dtype
    assert first.tolist() == second.tolist() or np.isnan(first.astype(float)).any()


@pytest.mark.parametrize(
    "dtype",
    ["boolean", "bf16", "f16", "f32", "f64", "i4", "i8", "i16", "i32", "i64", "u1", "u2", "u3", "u4", "u6", "u8", "u16",
     "u32", "u64", "nf4", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "string"],
)  # fmt: skip
def test_large_constants_go_to_a_file(dtype: str, tmp_path: Path) -> None:
    numbers = np.arange(17).reshape(1, 17) % 2
    values = numbers.astype(str) if dtype == "string" else -numbers if dtype == "i4" else numbers + (dtype == "f8e8m0")
    model = ovir.Model([ops.constant(values, dtype, name="table/w")], [], "m")
    ovir.to_python(model, tmp_path / "build.py")
    is_own = re.fullmatch(r"boolean|[fiu](8|16|32|64)", dtype) is not None  # of NumPy
    kind = "" if is_own else f', "{dtype}"'
    assert f'constant(weights["table_w"]{kind}, name' in (tmp_path / "build.py").read_text(encoding="utf-8")
    assert np.load(tmp_path / "build.npz")["table_w"].shape == (1, 17)
    again = rebuilt(model, tmp_path)
    assert difference(model, again, {}) == ""
    first, second = (m.layer("table/w").operator.data for m in (model, again))  # type: ignore[union-attr]
    assert (first == second).all()


@pytest.mark.parametrize("dtype", ["f32", "i64", "bf16", "boolean", "u4", "string"])
def test_constants_of_a_file_that_was_not_read_are_read_by_the_code(dtype: str, tmp_path: Path) -> None:
    values = [["a", "b"]] if dtype == "string" else [[1, 0]]
    parts = [ops.unsqueeze(ops.constant(data, kind, name=name), 0) for data, kind, name in (
        (np.arange(4), "u8", "before"), (values, dtype, "c"))]  # fmt: skip
    model = ovir.Model(parts, [], "m")
    ovir.save_model(model, tmp_path / "m.xml")
    bare = read_topology(tmp_path / "m.xml")
    for name, message in ((None, "the data of this constant of u8 is missing"), ("m.bin", f"constant of {dtype} is")):
        if name is None or dtype in ("u4", "string"):  # what NumPy has no dtype for
            with pytest.raises(ovir.ModelError, match=message):
                Program(bare, name)
        else:
            again = run(Program(bare, name).text, tmp_path)
            assert difference(model, again, {}) == ""
            assert again.layer("c").operator.data.tolist() == model.layer("c").operator.data.tolist()  # type: ignore[union-attr]


def test_layouts_decompression_and_names_of_outputs_are_kept(tmp_path: Path) -> None:
    x = ops.parameter([1, 2], name="x", layout="NC")
    info = {"decompression": "", "made_by": "me", "place": {"x": "1", "y": "2"}}
    weights = ops.convert(ops.constant(np.float16([1, 2])), "f32", name="w", rt_info=info)
    text = code(ovir.Model([ops.result(ops.add(x, weights), tensor_names="sum")], [x], "m"))
    assert f"rt_info={info}".replace("'", '"') in text
    again = run(text, tmp_path)
    assert again.inputs[0].rt_info == x.output().rt_info
    assert again.layer("w").rt_info == weights.rt_info
    assert again.outputs[0].own_names == {"sum"}


@pytest.mark.parametrize("version", ["mine", "extension"])
def test_layers_of_unknown_operations_keep_their_declared_types(version: str, tmp_path: Path) -> None:
    x = ops.parameter([2, 3], name="x")
    odd = ovir.create_layer("Odd", [x], {"amount": "3"}, version=version, outputs=[("f32", [2, -1])], name="odd")
    model = ovir.Model([odd], [x], "m")
    assert ("version=" in code(model)) == (version == "mine")
    again = run(code(model), tmp_path)
    assert difference(model, again) == ""
    assert again.layer("odd").attributes == {"amount": "3"}
    assert str(again.outputs[0].shape) == "[2,?]"


def test_repeated_tensor_names_get_a_number(tmp_path: Path) -> None:
    x = ops.parameter([2], name="x")
    model = ovir.Model([ops.exp(ops.relu(x, name="y"), name="z")], [x], "m")
    for layer, names in (("x", {"t"}), ("y", {"t", "t_1"}), ("z", {"t"})):
        model.layer(layer).outputs[0].names = names
    built = rebuilt(model, tmp_path)
    names = [layer.outputs[0].own_names for layer in built.layers if layer.outputs]
    assert names == [{"t"}, {"t_1", "t_2"}, {"t_3"}]
    assert model.layer("z").outputs[0].own_names == {"t"}


def test_names_of_variables() -> None:
    texts = [
        *("conv1/weights", "MatMul_12", "for", "abs", "1st", ""),
        *("__module.model.layers.0.self_attn/aten::add/Add_1", "żółw", "Conv2D"),
    ]
    assert [identifier(text) for text in texts] == [
        "conv1_weights", "mat_mul_12", "for_", "abs_", "_1st", "layer", "model_layers_0_self_attn_aten_add_add_1", "w", "conv2d"
    ]  # fmt: skip


def test_names_that_the_code_uses_are_left_alone(tmp_path: Path) -> None:
    x = ops.parameter([2], name="ops")
    y = ops.relu(x, name="model")
    model = ovir.Model([ops.exp(ops.relu(y, name="np"), name="ovir")], [x], "weights")
    assert difference(model, run(code(model), tmp_path)) == ""


@pytest.mark.parametrize(("kind", "version"), [("Concat", "opset1"), ("Odd", "mine")])
def test_a_layer_stands_for_the_list_of_its_outputs(kind: str, version: str) -> None:
    parts = ops.split(ops.parameter([4, 6], name="x"), 1, 2)
    attributes = {"axis": "0"} if kind == "Concat" else {}
    outputs = None if kind == "Concat" else [("f32", [8, 3])]
    layer = ovir.create_layer(kind, parts, attributes, version=version, outputs=outputs)
    assert [port.source for port in layer.inputs] == parts.outputs
    assert str(layer.shape) == "[8,3]"


def test_create_layer() -> None:
    x = ops.parameter([4], name="x")
    layer = ovir.create_layer("Gather", [x, np.int64([1]), 0], {"batch_dims": "0"}, version="opset8", name="g")
    assert str(layer.shape) == "[1]"
    with pytest.raises(ovir.InputError, match="'outputs' must be given"):
        ovir.create_layer("Odd", [x])
    with pytest.raises(ovir.InputError, match=r"opset1 does not contain Mish.*'outputs' must be given"):
        ovir.create_layer("Mish", [x], version="opset1")
    with pytest.raises(ovir.InputError, match="Gather has no attribute 'axis'"):
        ovir.create_layer("Gather", [x, x, 0], {"axis": 0}, version="opset8")
    with pytest.raises(ovir.InputError, match="argument 'inputs': expected a list of layers, got 3"):
        ovir.create_layer("Mish", 3, version="opset4")  # type: ignore[arg-type]
    with pytest.raises(ovir.InputError, match="attribute 'num_splits' is missing"):
        ovir.create_layer("Split", [x, 0], version="opset1")


# --------------------------------------------------------------------------- the command


def command(*arguments: object) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "ovir", "python", *map(str, arguments)], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command(tmp_path: Path) -> None:
    net = unary_net("ReLU", name="y")
    small, digits = net.write(tmp_path, "small"), next(path for path in EXAMPLES if path.stem == "digits")
    status, out, err = command(small)
    assert (status, err) == (0, "")
    assert difference(ovir.read_model(small), run(out, tmp_path)) == ""
    assert command(digits, "-o", tmp_path / "digits.py") == (0, "", "")
    assert (tmp_path / "digits.npz").is_file()
    assert difference(ovir.read_model(digits), runpy.run_path(str(tmp_path / "digits.py"))["model"]) == ""
    status, out, err = command(digits)
    assert (status, out) == (2, "")
    assert "the code needs a file for" in err
    assert "give --output FILE.py" in err
    assert "a model would be overwritten" in command(small, "-o", small)[2]
    assert "the file is written as .py" in command(small, "-o", tmp_path / "a.txt")[2]
    assert command(small, "-o", tmp_path / "missing" / "a.py")[0] == 2
    assert command(tmp_path / "missing.xml")[0] == 2


@pytest.mark.parametrize("name", ['a"""; raise RuntimeError; """', "a\\", "a\n1/0", "'\"", "it's"])
def test_the_name_of_a_model_is_never_code(name: str, tmp_path: Path) -> None:
    x = ops.parameter([2], name="x")
    again = rebuilt(ovir.Model([ops.relu(x)], [x], name), tmp_path)
    assert again.name == name


# --------------------------------------------------------------------------- random models


@given(models())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_models_are_rebuilt(model: ovir.Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        again = rebuilt(model, Path(folder))
    assert difference(model, again, dict(ovir.random_inputs(model, seed=0))) == ""


@given(models())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_layers_are_inferred_alike_alone_and_in_the_model(model: ovir.Model) -> None:
    before = described(model)
    model.infer_shapes()
    assert described(model) == before
    assert described(model.clone()) == before
