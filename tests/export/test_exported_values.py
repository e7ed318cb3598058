"""Which operators of ONNX an operation becomes, and that these compute what it computes."""

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.rows import model_of
from support.special_values import special_values

import ovir
from ovir import opset11, opset13
from ovir.core.element_types import ElementType

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the comparison of exported models needs {package}")

from support.export_comparison import check_exported, difference_of  # noqa: E402  (it imports these packages)

from ovir.export.exported import Exported  # noqa: E402
from ovir.export.model_exporter import export_model, export_part  # noqa: E402
from ovir.export.onnx_graph import Graph  # noqa: E402
from ovir.export.session import OnnxRuntimeSession  # noqa: E402
from ovir.export.support import TESTED_OPSET, default_opset  # noqa: E402

ROWS = (Path(__file__).parent / "operators.txt").read_text().splitlines()
"""An operation with its attributes; its inputs (``support.rows``); the opset, or ``engine``; the operators, or
``refused:`` and why."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split()[0])
def test_operators(row: str) -> None:
    """Several ways often give the same numbers, so that only the operators tell which one was chosen."""
    operation, inputs, target, expected = row.split(" | ")
    opset = 21 if target == "engine" else int(target)
    if opset > default_opset():
        pytest.skip(f"the installed packages are older than opset {TESTED_OPSET}")
    model, feeds = model_of(operation, inputs)

    def export() -> Exported:
        if target != "engine":
            return export_model(model, opset)
        layers = [layer for layer in model.layers if layer.type not in ("Parameter", "Result")]
        return export_part(model, layers, model.inputs, layers[-1].outputs, Graph(opset, needs_kernels=True))

    if expected.startswith("refused: "):
        with pytest.raises(ovir.ExportError, match=re.escape(expected.removeprefix("refused: "))):
            export()
        return
    made = export()
    found = Counter(node.op_type for node in made.onnx.graph)
    assert " ".join(name if count == 1 else f"{name}*{count}" for name, count in found.items()) == expected
    assert difference_of(model, made, feeds, opset) is None


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["half_to_even", "half_away_from_zero"])
@pytest.mark.parametrize("element_type", ["f16", "bf16", "f32", "f64"])
def test_halves_and_their_neighbors_are_rounded_alike(element_type: str, mode: str) -> None:
    x = opset13.parameter([-1], element_type, name="x")
    model = ovir.Model([opset13.round(x, mode)], [x])
    dtype = model.inputs[0].element_type.to_dtype()
    largest = 2 / float(np.spacing(dtype.type(1)))  # larger ones are whole
    halves = np.array([*np.arange(-9, 10) / 2, largest / 2 + 1, largest / 4 + 0.5, -largest / 4 - 0.5]).astype(dtype)
    near = [np.nextafter(halves, dtype.type(end)) for end in (-9, 9)]
    for numbers in (halves, *near, special_values(model.inputs[0].element_type)):
        for number in numbers:  # alone, because the tolerance follows from the largest one
            assert check_exported(model, [number.reshape(1)], default_opset()) is None


@pytest.mark.parametrize("name", ["abs", "negative", "sign"])
def test_all_integers_of_8_bits(name: str) -> None:
    x = opset11.parameter([256], "i8", name="x")
    model = ovir.Model([getattr(opset11, name)(x)], [x])
    assert check_exported(model, [np.arange(-128, 128).astype(np.int8)], default_opset()) is None


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "bicubic_pillow"])
@pytest.mark.parametrize("element_type", ["u8", "i8", "u16", "i32", "i64"])
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_resized_integers_are_rounded_alike(element_type: str, mode: str, is_dynamic: bool) -> None:
    rng = random.Random(f"{element_type} {mode}")
    values = np.random.default_rng(3)
    for _ in range(3):
        shape = [1, 3, rng.randint(2, 9), rng.randint(2, 9)]
        x = opset11.parameter([-1] * 4 if is_dynamic else shape, element_type, name="x")
        lengths = np.array([rng.randint(1, 12), rng.randint(1, 12)])
        resized = opset11.interpolate(
            x,
            lengths,
            mode,
            "sizes",
            coordinate_transformation_mode=rng.choice(["half_pixel", "asymmetric", "align_corners"]),
            antialias=rng.random() < 0.5,
            axes=[2, 3],
        )
        model = ovir.Model([resized], [x])
        info = np.iinfo(model.inputs[0].element_type.to_dtype())
        data = values.integers(max(info.min, -1000), min(info.max, 1000), shape).astype(info.dtype)
        ends = np.where(data % 3 == 0, info.max, info.min).astype(info.dtype)
        for numbers in (data, ends) if info.bits < 64 else (data,):  # f64 does not hold sums of larger ones
            assert check_exported(model, [numbers], default_opset()) is None


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("element_type", ["i8", "u8", "u4", "i4"])
@pytest.mark.parametrize("transposed", [False, True])
def test_integer_weights_without_elements(shape: tuple[int, int], element_type: str, transposed: bool) -> None:
    x = opset13.parameter([3, shape[1 if transposed else 0]], np.float32, name="x")
    codes = opset13.convert(opset13.constant(np.ones(shape), element_type), "f32")
    weights = opset13.multiply(codes, np.ones((shape[0], 1), np.float32))
    model = ovir.Model([opset13.matmul(x, weights, False, transposed)], [x])
    assert check_exported(model, [np.ones(model.inputs[0].shape.to_tuple(), np.float32)], default_opset()) is None


@pytest.mark.slow
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "max", "min", "l1", "l2", "logical_and", "logical_or"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (2, 3), (1, 3), (1, 0)])
@pytest.mark.parametrize("is_static", [True, False])
def test_reductions_of_data_without_elements(reduce: str, shape: tuple[int, ...], is_static: bool) -> None:
    element_type = np.bool_ if reduce.startswith("logical") else np.float32
    for axes in ([0], [1], [0, 1]):
        # The size of an axis that stays is unknown, or none.
        declared = [size if is_static or axis in axes else -1 for axis, size in enumerate(shape)]
        x = opset13.parameter(declared, element_type, name="x")
        model = ovir.Model([getattr(opset13, f"reduce_{reduce}")(x, axes, False)], [x])
        kept = [size for axis, size in enumerate(shape) if axis not in axes]
        if 0 in shape and 0 not in kept and not is_static and reduce != "logical_or":
            continue  # onnxruntime refuses to find the result in a run, or finds another one
        assert check_exported(model, [np.ones(shape, element_type)], default_opset()) is None, (axes, declared)


_NORM = {
    "one": 1.0,
    "exponent": 2.0,
    "axes": -1,
    "element_type": np.float32,
    "sizes": (2, 3, 4),
    "other": False,
    "wide": False,
}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("changed", "is_merged"),
    [
        ({}, True),
        ({"axes": 2}, True),
        ({"axes": 1}, False),
        ({"axes": -2}, False),
        ({"axes": (1, 2)}, False),
        ({"one": 2.0}, False),
        ({"exponent": 3.0}, False),
        ({"exponent": (2.0, 1.0, 2.0, 3.0)}, False),
        ({"one": (1.0, 2.0, 3.0, 4.0)}, False),
        ({"element_type": np.float64}, False),
        ({"other": True}, False),
        ({"wide": True}, True),
        ({"sizes": (-1, -1, 4)}, True),
        ({"sizes": (2, 3, -1)}, False),
    ],
)
def test_only_a_root_mean_square_is_exported_as_one(changed: dict[str, object], is_merged: bool, swapped: bool) -> None:
    """Other products with 1 / sqrt(mean(x^n) + eps) have another number, axis, type or factor."""
    given = _NORM | changed
    sizes, kind = given["sizes"], given["element_type"]
    x, y = (opset13.parameter(sizes, kind, name=name) for name in "xy")
    axes = np.atleast_1d(given["axes"])
    number: dict[str, Any] = {name: opset13.constant(np.array(given[name]), kind) for name in ("one", "exponent")}
    if given["wide"]:  # as models with compressed constants have it
        number = {name: opset13.convert(opset13.constant(np.array(given[name]), "f16"), kind) for name in number}
    mean = opset13.reduce_mean(opset13.power(x, number["exponent"]), axes, True)
    root = opset13.sqrt(opset13.add(mean, opset13.constant(np.array(0.25), kind)))
    factors = [y if given["other"] else x, opset13.divide(number["one"], root)]
    model = ovir.Model([opset13.multiply(*reversed(factors) if swapped else factors)], [x, y])
    operators = [node.op_type for node in export_model(model, 23).onnx.graph]
    assert ("RMSNormalization" in operators) == is_merged
    feeds = [np.random.default_rng(seed).random((2, 3, 4)).astype(kind) + 0.5 for seed in (1, 2)]
    assert check_exported(model, feeds, 23) is None


def test_a_root_mean_square_of_an_unknown_rank_is_exported_as_its_parts() -> None:
    data = opset13.parameter([-1], np.float32, name="data")
    sizes = opset13.parameter([-1], np.int64, name="sizes")
    x = opset13.reshape(data, sizes, False)
    root = opset13.sqrt(opset13.add(opset13.reduce_mean(opset13.power(x, np.float32(2)), [-1], True), np.float32(1)))
    product = opset13.multiply(x, opset13.divide(np.float32(1), root))
    model = ovir.Model([opset13.reshape(product, [-1], False)], [data, sizes])
    feeds = [np.arange(6, dtype=np.float32), np.array([3, 2])]
    assert check_exported(model, feeds, 23) is None


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("*4", "LayerNormalization2 Identity1"),
        ("+4", "LayerNormalization3 Identity1"),
        ("*4 +4", "LayerNormalization3 Identity1"),
        ("*1,4 +1,1,4", "LayerNormalization3 Identity1"),
        ("+4 *4", "LayerNormalization3 Mul2 Identity1"),
        ("*4 *4", "LayerNormalization2 Mul2 Identity1"),
        ("*4 +4 +4", "LayerNormalization3 Add2 Identity1"),
        ("*3,4", "LayerNormalization2 Mul2 Identity1"),
        ("*1,1,1,4", "LayerNormalization2 Mul2 Identity1"),
        ("*3,1", "LayerNormalization2 Mul2 Identity1"),
        ("+1", "LayerNormalization2 Add2 Identity1"),
        ("*4?", "LayerNormalization2 Mul2 Identity1"),
        ("+4?", "LayerNormalization2 Add2 Identity1"),
    ],
)
def test_a_scale_and_a_bias_enter_the_normalization(steps: str, expected: str, swapped: bool) -> None:
    inputs = [opset13.parameter([2, 3, 4], np.float32, name="x")]
    made = opset13.mvn(inputs[0], [2], True, 0.25, "inside_sqrt")
    for number, step in enumerate(steps.split()):
        sizes = [int(size) for size in step.strip("*+?").split(",")]
        if step.endswith("?"):
            inputs.append(other := opset13.parameter(sizes, np.float32, name=f"y{number}"))
        else:
            other = opset13.constant(np.arange(2, 2 + np.prod(sizes), dtype=np.float32).reshape(sizes))
        operation = opset13.multiply if step.startswith("*") else opset13.add
        made = operation(other, made) if swapped else operation(made, other)
    model = ovir.Model([made], inputs)
    nodes = export_model(model, 17).onnx.graph
    assert " ".join(f"{node.op_type}{len(node.inputs)}" for node in nodes) == expected
    feeds = [np.random.default_rng(0).random(port.shape.to_tuple(), np.float32) for port in model.inputs]
    assert check_exported(model, feeds, 17) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tensor_iterator", "loop"])
@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [([2, 3, 2], 0), ([2, 3, 2], 1), ([2, 3, 2], -1), ([0], 0), ([0], -1)])
@pytest.mark.parametrize(
    ("parts", "slicing"),
    [
        (6, {}),
        (6, {"start": -1, "end": 0, "stride": -1}),
        (4, {"start": 1, "end": 4}),
        (2, {"start": -3, "end": -2}),
        (3, {"stride": 2, "part_size": 2}),
        (3, {"start": -1, "end": 0, "stride": -2, "part_size": 2}),
    ],
)
def test_loops_slice_and_join_alike(
    kind: str, is_dynamic: bool, shape: list[int], axis: int, parts: int, slicing: dict[str, int]
) -> None:
    """Each iteration reads a part and a state; parts are joined forwards and backwards, and the last state is kept."""
    given = {"start": 0, "end": -1, "stride": 1, "part_size": 1, "axis": axis} | slicing
    back = {"start": -1, "end": 0, "stride": -given["part_size"], "part_size": given["part_size"], "axis": axis}
    forth = {"start": 0, "end": -1, "stride": given["part_size"], "part_size": given["part_size"], "axis": axis}
    shape = [*shape]
    shape[axis] = 6
    part = [-1 if is_dynamic else size for size in shape]
    part[axis] = given["part_size"]
    x = opset13.parameter([-1] * len(shape) if is_dynamic else shape, np.float32, name="x")
    inner, state = opset13.parameter(part, np.float32, name="inner"), opset13.parameter([1], np.float32, name="state")
    added = opset13.add(state, np.ones(1, np.float32))
    joined = opset13.multiply(inner, added)
    if kind == "loop":
        number = opset13.parameter([1] if axis else [], np.int32, name="number")
        joined = opset13.add(joined, opset13.convert(number, np.float32))
        body = ovir.Model([joined, added, opset13.constant(True)], [inner, state, number], "body")
        made = opset13.loop(parts, True)
        made.set_function(body)
        made.set_special_body_ports([2, 2])
    else:
        body = ovir.Model([joined, added], [inner, state], "body")
        made = opset13.tensor_iterator()
        made.set_body(body)
    made.set_sliced_input(inner, x, **given)
    made.set_merged_input(state, np.zeros(1, np.float32), added)
    outputs = [made.get_concatenated_slices(joined, **way) for way in (forth, back)]
    model = ovir.Model([*outputs, made.get_iter_value(added, -1)], [x])
    feeds = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape)]
    assert check_exported(model, feeds, default_opset()) is None


@pytest.mark.parametrize("ends", [(0, 3, 1), (3, 0, -1), (0, 4, 2), None])
def test_iterations_without_slices(ends: tuple[int, int, int] | None) -> None:
    """The parts of an output give their number, or there is one; a result of the last one need not be a state."""
    size = abs(ends[2]) if ends else 1
    x, state = (opset13.parameter([size], np.float32, name=name) for name in ("x", "state"))
    total = opset13.add(state, np.ones(1, np.float32))
    made = opset13.tensor_iterator()
    body = ovir.Model([total, opset13.negative(total)], [state], "body")
    made.set_body(body)
    made.set_merged_input(state, x, total)
    outputs = [made.get_iter_value(body.outputs[1], -1)]
    if ends:
        outputs.append(made.get_concatenated_slices(total, ends[0], ends[2], size, ends[1], 0))
    feeds = [np.arange(size, dtype=np.float32)]
    assert check_exported(ovir.Model(outputs, [x]), feeds, default_opset()) is None


@pytest.mark.parametrize("ends", [(0, -1, 1), (-1, 0, -1)])
def test_parts_without_dimensions_are_joined_to_a_list(ends: tuple[int, int, int]) -> None:
    x, part = (opset13.parameter(shape, np.float32, name=name) for name, shape in (("x", [4, 3]), ("part", [1, 3])))
    total = opset13.reduce_sum(part, [0, 1], False)
    made = opset13.tensor_iterator()
    made.set_body(ovir.Model([total], [part], "body"))
    made.set_sliced_input(part, x, 0, 1, 1, -1, 0)
    model = ovir.Model([made.get_concatenated_slices(total, ends[0], ends[2], 1, ends[1], 0)], [x])
    assert check_exported(model, [np.arange(12, dtype=np.float32).reshape(4, 3)], default_opset()) is None


@pytest.mark.slow
@pytest.mark.parametrize("opset", [17, default_opset()])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,kj->ik", [(2, 0), (3, 0)]),
        ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ij,ij->", [(0, 2), (0, 2)]),
        ("...ij,...kj->...ik", [(2, 1, 0), (3, 0)]),
        ("...ji,...ik->...jk", [(2, 1, 0), (1, 0, 3)]),
        ("ii,ij->j", [(0, 0), (0, 2)]),
        ("ij,kj,j->ik", [(2, 0), (3, 0), (0,)]),
    ],
)
@pytest.mark.parametrize("element_type", ["f16", "f32", "f64", "i32", "i64"])
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_sums_of_products_without_elements(
    equation: str, shapes: list[tuple[int, ...]], element_type: str, is_dynamic: bool, opset: int
) -> None:
    inputs = [opset13.parameter([-1] * len(s) if is_dynamic else s, element_type, name=f"x{s}") for s in shapes]
    model = ovir.Model([opset13.einsum(inputs, equation)], inputs)
    for sizes in (shapes, [tuple(n or 2 for n in shape) for shape in shapes]) if is_dynamic else (shapes,):
        feeds = [
            np.full(shape, 3, port.element_type.to_dtype()) for port, shape in zip(model.inputs, sizes, strict=True)
        ]
        assert check_exported(model, feeds, opset) is None


FUNCTIONS = """
abs acos acosh asin asinh atan atanh ceiling cos cosh elu erf exp floor gelu hsigmoid
hswish log mish negative relu selu sigmoid sign sin sinh softplus softsign sqrt swish tan tanh
"""


@pytest.mark.slow
@pytest.mark.parametrize("element_type", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_functions_of_small_and_special_numbers(name: str, element_type: str) -> None:
    if element_type == "f64" and name in ("acos", "asin", "atan"):
        pytest.skip("onnxruntime has no kernel for f64")
    made_type = ElementType.parse(element_type).to_dtype()
    x = opset13.parameter([-1], element_type, name="x")
    made: dict[str, Callable[[], Any]] = {
        "elu": lambda: opset13.elu(x, 1.0),
        "gelu": lambda: opset13.gelu(x, "erf"),
        "selu": lambda: opset13.selu(x, np.ones(1, made_type), np.ones(1, made_type)),
    }
    model = ovir.Model([made.get(name, lambda: getattr(opset13, name)(x))()], [x])
    sizes = np.array([0, 1e-30, 1e-20, 1e-10, 1e-7, 1e-5, 1e-3, 0.1, 0.9, 1, 2, 9, 1e4, np.inf, np.nan])
    numbers = np.concatenate([sizes, -sizes, 1 + sizes, 1 - sizes]).astype(made_type)
    exported = export_model(model, default_opset())
    with np.errstate(all="ignore"):
        (ours,) = ovir.compile_model(model)([numbers]).values()
        (theirs,) = OnnxRuntimeSession(exported).run({exported.inputs[0]: numbers}, exported.outputs)
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        digits = {"f16": 1e-2, "bf16": 2e-2, "f32": 1e-4, "f64": 1e-9}[element_type]
        # The kernels of onnxruntime for f32, and the formulas with e^x - 1 in both engines, lose small results.
        least = 1e-300 if element_type == "f64" and name not in ("elu", "selu") else 1e-2
        close = np.abs(a - b) <= digits * np.maximum(np.abs(a), least)
    wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | close)
    assert not wrong.any(), f"{theirs[wrong]} for {ours[wrong]} of {numbers[wrong]}"


def test_a_shape_of_the_run_copies_several_sizes() -> None:
    x = opset13.parameter([-1, -1, 4], np.float32, name="x")
    target = opset13.concat(
        [opset13.gather(opset13.shape_of(x), np.array([0, 1]), np.array(0)), np.array([2, 1, 2])], 0
    )
    model = ovir.Model([opset13.reshape(x, target, False)], [x])
    assert check_exported(model, [np.arange(24, dtype=np.float32).reshape(2, 3, 4)], default_opset()) is None


@pytest.mark.parametrize(("lengths", "is_counted"), [([3, 3], False), ([3, 2], True)])
def test_sequences_of_full_length_are_not_counted(lengths: list[int], is_counted: bool) -> None:
    x, state = (opset13.parameter(shape, np.float32, name=name) for name, shape in (("x", [2, 3, 4]), ("s", [2, 1, 5])))
    weights = [np.ones(shape, np.float32) / 8 for shape in ((1, 20, 4), (1, 20, 5), (1, 20))]
    found = opset13.lstm_sequence(x, state, state, np.array(lengths), *weights, 5, "forward")
    model = ovir.Model(list(found.outputs), [x, state])
    (node,) = (node for node in export_model(model, default_opset()).onnx.graph if node.op_type == "LSTM")
    assert (node.inputs[4] is not None) == is_counted
    feeds = [np.random.default_rng(0).random(port.shape.to_tuple(), np.float32) for port in model.inputs]
    assert check_exported(model, feeds, default_opset()) is None
