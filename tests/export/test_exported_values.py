"""Values and sizes for which exports computed something else than the operations."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.special_values import special_values

import ovir
from ovir import opset11, opset13, opset15
from ovir.core.element_types import ElementType

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the comparison of exported models needs {package}")

from support.export_comparison import check_exported  # noqa: E402  (it imports these packages)

from ovir.export.model_exporter import export_model  # noqa: E402
from ovir.export.session import OnnxRuntimeSession  # noqa: E402
from ovir.export.support import default_opset  # noqa: E402


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


@pytest.mark.parametrize("opset", [17, default_opset()])
@pytest.mark.parametrize(
    ("data", "updates", "axes"),
    [
        ([2, 4], [2, 0], [1]),
        ([2, 4], [0, 0], [0, 1]),
        ([2, 3, 4], [2, 3, 0], [1, 2]),
        ([1, 0, 1], [0, 0, 1], [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_slice_without_elements(
    data: list[int], updates: list[int], axes: list[int], is_dynamic: bool, opset: int
) -> None:
    x = opset15.parameter([-1] * len(data) if is_dynamic else data, np.float32, name="x")
    given = opset15.parameter(updates, np.float32, name="updates")
    stop = np.array([updates[axis] for axis in axes])
    made = opset15.slice_scatter(x, given, np.zeros_like(stop), stop, np.ones_like(stop), np.array(axes))
    feeds = [np.ones(data, np.float32), np.zeros(updates, np.float32)]
    assert check_exported(ovir.Model([made], [x, given]), feeds, opset) is None


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("element_type", ["i8", "u8", "u4", "i4"])
@pytest.mark.parametrize("transposed", [False, True])
def test_integer_weights_without_elements(shape: tuple[int, int], element_type: str, transposed: bool) -> None:
    x = opset13.parameter([3, shape[1 if transposed else 0]], np.float32, name="x")
    codes = opset13.convert(opset13.constant(np.ones(shape), element_type), "f32")
    weights = opset13.multiply(codes, np.ones((shape[0], 1), np.float32))
    model = ovir.Model([opset13.matmul(x, weights, False, transposed)], [x])
    assert check_exported(model, [np.ones(model.inputs[0].shape.to_tuple(), np.float32)], default_opset()) is None


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


@pytest.mark.parametrize("element_type", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceiling",
        "cos",
        "cosh",
        "elu",
        "erf",
        "exp",
        "floor",
        "gelu",
        "hsigmoid",
        "hswish",
        "log",
        "mish",
        "negative",
        "relu",
        "selu",
        "sigmoid",
        "sign",
        "sin",
        "sinh",
        "softplus",
        "softsign",
        "sqrt",
        "swish",
        "tan",
        "tanh",
    ],
)
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


@pytest.mark.parametrize("shape", [(2, 0), (2, 3), (0, 2)])
def test_disjunction_of_nothing(shape: tuple[int, int]) -> None:
    x = opset13.parameter([-1, -1], "boolean", name="x")
    model = ovir.Model([opset13.reduce_logical_or(x, np.array([1]))], [x])
    assert check_exported(model, [np.zeros(shape, np.bool_)], default_opset()) is None
    exported = export_model(model, default_opset())
    (found,) = OnnxRuntimeSession(exported).run({"x": np.zeros(shape, np.bool_)}, exported.outputs)
    assert not found.any()
