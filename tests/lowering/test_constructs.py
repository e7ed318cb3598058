"""Constructs that releases fail at are rewritten for these releases, and compute the same."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset8, opset9, opset12, opset13, opset15
from ovir.core.arrays import Array
from ovir.graph.layers import Layer
from ovir.lowering.constructs import CONSTRUCTS
from ovir.lowering.releases import OPERATIONS_SINCE, newest_opset, oldest_release, release_of_opset, release_text

Made = tuple[ovir.Model, dict[str, Array]]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def of(make: Callable[[Layer], object], *sizes: int) -> Callable[[], Made]:
    """Return a maker of a model that computes outputs of one input; -1 in the sizes is 3 in the run."""

    def made() -> Made:
        x = opset8.parameter(list(sizes), "f32", name="x")
        found = make(x)
        outputs = found if isinstance(found, list) else [found]
        return ovir.Model(outputs, [x]), {"x": numbers(*(3 if size < 0 else size for size in sizes))}

    return made


def masked_attention() -> Made:
    heads = [opset8.parameter([1, 2, 4, 8], "f32", name=name) for name in "qkv"]
    mask = opset8.parameter([1, 1, 4, 4], "boolean", name="mask")
    out = opset13.scaled_dot_product_attention(*heads, mask, causal=False, name="attention")
    inputs = {name: numbers(1, 2, 4, 8) for name in "qkv"}
    return ovir.Model([out], [*heads, mask]), {**inputs, "mask": np.tri(4, dtype=np.bool_)[None, None]}


def split_shape() -> Made:
    x = opset8.parameter([-1, -1], "f32", name="x")
    parts = opset8.variadic_split(opset8.shape_of(x, "i32"), 0, [1, 1], name="parts")
    y = opset8.parameter([-1, 1], "i32", name="y")
    return ovir.Model([opset8.multiply(y, parts.outputs[1])], [x, y]), {"x": numbers(2, 6), "y": np.int32([[3], [4]])}


def loop_output() -> Made:
    x = opset8.parameter([2, 3, 4], "f32", name="x")
    state = opset8.parameter([2, 1, 4], "f32", name="state")
    part = opset8.parameter([2, 1, 4], "f32", name="part")
    inner = ovir.Model([opset8.tanh(opset8.add(state, part), name="next")], [state, part])
    loop = opset8.tensor_iterator(name="loop")
    loop.set_body(inner)
    loop.set_sliced_input(inner.inputs[1], x, 0, 1, 1, -1, 1)
    loop.set_merged_input(inner.inputs[0], opset8.constant(np.zeros((2, 1, 4), np.float32)), inner.outputs[0])
    return ovir.Model([loop.get_iter_value(inner.outputs[0], -1)], [x]), {"x": numbers(2, 3, 4)}


def gathered() -> Made:
    x = opset8.parameter([2, 5, 3], "f32", name="x")
    i = opset8.parameter([2, 4], "i64", name="i")
    out = opset8.gather(x, i, 1, batch_dims=1, name="gathered")
    return ovir.Model([out], [x, i]), {"x": numbers(2, 5, 3), "i": np.int64([[0, 4, 2, -1], [3, 3, -5, 1]])}


def regions() -> Made:
    x = opset8.parameter([1, 2, 6, 6], "f32", name="x")
    boxes, images = opset8.parameter([-1, 4], "f32", name="boxes"), opset8.parameter([-1], "i32", name="images")
    found = opset9.roi_align(x, boxes, images, 2, 2, 2, 1.0, "avg", "half_pixel_for_nn", name="regions")
    inputs = {"x": numbers(1, 2, 6, 6), "boxes": np.float32([[0, 0, 4, 4], [1, 2, 5, 5]]), "images": np.int32([0, 0])}
    return ovir.Model([opset8.relu(found), opset8.abs(found)], [x, boxes, images]), inputs


def two_grids() -> Made:
    x = opset8.parameter([-1, 2, -1, -1], "f32", name="x")
    grids = [opset8.parameter([-1, 3, 4, 2], "f32", name=name) for name in ("first", "second")]
    attributes = {"padding_mode": "reflection", "mode": "bicubic"}
    found = [opset9.grid_sample(x, grid, attributes, name=f"of_{grid.name}") for grid in grids]
    inputs = {"x": numbers(1, 2, 5, 6), "first": numbers(1, 3, 4, 2), "second": numbers(1, 3, 4, 2) * 2}
    return ovir.Model(found, [x, *grids]), inputs


def selected() -> Made:
    x = opset8.parameter([-1, 1], "f32", name="x")
    other = opset8.parameter([1, 3], "f32", name="other")
    found = [
        opset8.select(np.bool_(True), x, other),
        opset8.select(np.bool_([False, False, False]), x, opset8.constant(np.float32(2))),
    ]
    return ovir.Model(found, [x, other]), {"x": numbers(2, 1), "other": numbers(1, 3)}


def groups_in_a_body() -> Made:
    x = opset8.parameter([2, 4, 3], "f32", name="x")
    condition = opset8.parameter([], "boolean", name="condition")

    def branch(compute: Callable[[Layer], Layer]) -> ovir.Model:
        inner = opset8.parameter([2, 4, 3], "f32", name="inner")
        return ovir.Model([compute(inner)], [inner])

    chosen = opset8.if_op(condition, name="chosen")
    then = branch(lambda inner: opset12.group_normalization(inner, numbers(4), numbers(4), 2, 1e-5, name="groups"))
    other = branch(opset8.abs)
    chosen.set_then_body(then)
    chosen.set_else_body(other)
    chosen.set_input(x, then.inputs[0], other.inputs[0])
    out = chosen.set_output(then.outputs[0], other.outputs[0])
    return ovir.Model([out], [x, condition]), {"x": numbers(2, 4, 3), "condition": np.bool_(True)}


def long_window(dilation: int, make: str = "convolution") -> Callable[[], Made]:
    def made() -> Made:
        x = opset8.parameter([-1, 2, -1, 5], "f32", name="x")
        filters = numbers(*([2, 1, 1] if make == "group_convolution" else [4, 2]), 80, 3)
        convolve = getattr(opset8, make)
        out = convolve(x, filters, [3, 2], [2, 1], [0, 1], [dilation, 1], name="convolution")
        return ovir.Model([out], [x]), {"x": numbers(2, 2, 190, 5)}

    return made


def read_twice(x: Layer) -> list[Layer]:
    found = opset8.non_zero(x, "i64", name="found")
    return [opset8.abs(found), opset8.negative(found)]


def product_of_4_bits(x: Layer) -> Layer:
    codes = np.arange(20).reshape(5, 4) % 13
    weights = opset8.subtract(
        opset8.convert(opset8.constant(codes, "u4", name="codes"), "f32"),
        opset8.convert(opset8.constant(codes[:, :1] // 2 - 2, "i4"), "f32"),
    )
    return opset8.matmul(x, weights, False, True, name="product")


def resized(*sizes: int, axes: list[int]) -> Callable[[], Made]:
    scales, after = np.float32([2] * len(axes)), np.int64([2 * sizes[axis] for axis in axes])
    return of(
        lambda x: opset8.interpolate(x, after, scales, "linear_onnx", "sizes", axes=np.int64(axes), name="larger"),
        *sizes,
    )


def sums(equation: str, *shapes: list[int]) -> Callable[[], Made]:
    """Return a maker of an Einsum; -1 in a shape is 3 in the run."""

    def made() -> Made:
        inputs = [opset8.parameter(shape, "f32", name=f"x{index}") for index, shape in enumerate(shapes)]
        arrays = {f"x{index}": numbers(*(3 if n < 0 else n for n in shape)) for index, shape in enumerate(shapes)}
        return ovir.Model([opset8.einsum(inputs, equation, name="sums")], inputs), arrays

    return made


EQUATIONS = {
    equation: sums(equation, *shapes)
    for equation, shapes in {
        "b...i,b...i->b...": ([2, 3, 4, 5], [2, 3, 4, 5]),
        "...ij,...jk->...ik": ([2, 3, 4, 5], [3, 5, 2]),
        "...ij,jk": ([-1, 2, 4], [4, -1]),
        "...,a...->a...": ([2, 1], [4, 1, 3]),
        "a...->...a": ([-1, 2, -1],),
        "...a->...": ([2, -1],),
        "i...i->i...": ([3, 2, 4, 3],),
        "iji,j->i": ([-1, 2, -1], [2]),
        "iiji->ji": ([3, 3, 2, 3],),
        "bii,bjj->b": ([2, 3, 3], [2, 4, 4]),
        "ii->": ([3, 3],),
        "i->i": ([3],),
        "ij,kj->ik": ([2, 1], [3, 4]),
        "ij,ij,jk->ikj": ([2, 1], [1, 4], [4, 3]),
        "ab...,c,b...->ca": ([2, -1, 2, 2], [2], [-1, 1, 2]),
        ",ij->ij": ([], [2, 3]),
        ",->": ([], []),
    }.items()
}


def clamped(low: float, high: float, kind: str) -> Callable[[], Made]:
    def made() -> Made:
        x = opset8.parameter([6], kind, name="x")
        values = [-7, -1, 0, 1, 3, 100] if kind.startswith("i") else [-np.inf, -1, np.nan, 0.25, 3, np.inf]
        return ovir.Model([opset8.clamp(x, low, high, name="clamped")], [x]), {
            "x": np.array(values, kind.replace("f", "float").replace("i", "int"))
        }

    return made


ENDS = {
    f"{low} {high} {kind}": clamped(low, high, kind)
    for low, high in ((-1.5, np.inf), (-np.inf, 2.5), (-np.inf, np.inf))
    for kind in ("f16", "f32", "i32", "i8")
}


def clipped(cell: bool) -> Made:
    sizes = {"X": [2, 3], "H": [2, 4], "C": [2, 4]}
    x, h, c = (opset8.parameter(size, "f32", name=name) for name, size in sizes.items())
    weights = numbers(16, 3), numbers(16, 4), numbers(16)
    found = opset8.lstm_cell(x, h, c, *weights, 4, clip=np.inf, name="cell")
    return ovir.Model(list(found.outputs) if cell else [found], [x, h, c]), {n: numbers(*s) for n, s in sizes.items()}


REWRITTEN = {
    "boolean_mask": ("2024.6", masked_attention),
    "parts_along_the_first_axis": ("2022.3", split_shape),
    "output_of_a_loop": ("2022.3", loop_output),
    "reflection_beside_a_size_of_1": (
        "2022.1",
        of(lambda x: opset8.pad(x, [0, 2, 0], [0, 1, 0], "reflect", name="pad"), 1, 5, 1),
    ),
    "largest_along_the_last_axis": ("2022.1", of(lambda x: list(opset8.topk(x, 1, -1, "max", "value").outputs), -1, 5)),
    "gather_in_batches": ("2022.1", gathered),
    "regions_of_unknown_number": ("2022.3", regions),
    "sampled_grid": ("2022.3", two_grids),
    "positions_read_twice": ("2022.1", of(read_twice, 2, 3)),
    "positions_of_64_bits": (
        "2024.6",
        of(lambda x: list(opset8.adaptive_max_pool(x, [3, 2], "i64").outputs), 1, 2, 6, 7),
    ),
    "selection_of_one_input": ("2022.3", selected),
    "softsign_behind_others": ("2024.6", of(lambda x: opset9.softsign(opset8.relu(x), name="softsign"), 2, 6)),
    "groups_in_a_body": ("2024.6", groups_in_a_body),
    "numbers_of_4_bits": ("2022.3", of(product_of_4_bits, 2, 4)),
    "window_of_unknown_sizes": ("2022.1", long_window(1)),
    "window_of_groups": ("2022.1", long_window(1, "group_convolution")),
    "dilated_window_of_unknown_sizes": ("2023.3", long_window(2)),
    "resized_first_axes": ("2021.4", resized(1, 4, 5, 3, axes=[1, 2])),
    "resized_axes_of_three": ("2024.6", resized(3, 4, 5, axes=[0, 1])),
    "axis_that_is_a_scalar": ("2021.4", of(lambda x: opset8.unsqueeze(x, np.int64(1), name="unsqueezed"), 2, 5)),
    "transform_of_unknown_sizes": ("2022.3", of(lambda x: opset9.rdft(x, [1]), -1, 7)),
    "transform_of_pairs": ("2022.1", of(lambda x: opset8.dft(x, [-1]), -1, 6, 2)),
    "inverse_transform_of_pairs": ("2022.1", of(lambda x: opset8.idft(x, [1]), -1, 5, 2)),
    **{f"clamp_without_an_end {ends}": ("2025.4", make) for ends, make in ENDS.items()},
    "attribute_that_is_not_finite": ("2024.6", lambda: clipped(cell=True)),
    "attribute_that_is_not_finite, of one output": ("2022.3", lambda: clipped(cell=False)),
    **{f"other_equations {equation}": ("2025.3", make) for equation, make in EQUATIONS.items()},
    "inverse_transform_to_numbers": ("2022.3", of(lambda x: opset9.irdft(x, [-1], [8]), -1, 5, 2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REWRITTEN)
def test_a_construct_is_rewritten_and_computes_the_same(name: str) -> None:
    release, make = REWRITTEN[name]
    model, inputs = make()
    names = [port.names for port in model.outputs]
    before = list(ovir.compile_model(model)(inputs).values())
    assert model.lower(release)
    after = list(ovir.compile_model(model)(inputs).values())
    for found, wanted in zip(after, before, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert [port.names for port in model.outputs] == names
    assert model.lower(release) == []


@pytest.mark.parametrize("name", REWRITTEN)
def test_the_newest_release_needs_no_rewrite(name: str) -> None:
    model, _ = REWRITTEN[name][1]()
    assert model.lower("2026.4") == []


def test_every_rewrite_is_tested() -> None:
    refusing = {"tensor_of_size_0", "variable_of_unknown_sizes"}
    tested = {name.split()[0].strip(",") for name in REWRITTEN}
    assert {construct.rewrite.__name__ for construct in CONSTRUCTS} <= {*tested, *refusing}


def test_what_no_rewrite_helps_is_refused() -> None:
    model = of_size_0()
    with pytest.raises(ovir.ExportError, match="not with a size of 0"):
        model.lower("2022.3")
    assert model.lower("2023.3") == []


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_attributes_that_are_not_finite_are_refused_where_they_are_computed_with(value: float) -> None:
    x = opset8.parameter([2, 3], "f32", name="x")
    model = ovir.Model([opset8.elu(x, value, name="elu")], [x])
    with pytest.raises(ovir.ExportError, match=f"'elu'.*reads its attribute 'alpha' of {value} as 0"):
        model.lower("2025.4")
    assert model.lower("2026.4") == []


def of_size_0() -> ovir.Model:
    x = opset8.parameter([0, 3], "f32", name="x")
    return ovir.Model([opset8.relu(x)], [x])


def grown_state() -> ovir.Model:
    x = opset8.parameter([-1, 3], "f32", name="x")
    read = opset8.read_value(x, "v", "f32", [-1, 3], name="read")
    return ovir.Model([opset8.relu(read)], [x], sinks=[opset8.assign(read, "v")])


def transformed(make: Callable[[Layer], Layer]) -> ovir.Model:
    x = opset8.parameter([2, -1, 2], "f32", name="x")
    return ovir.Model([make(x), make(opset8.relu(x))], [x])


def swapped_codes() -> ovir.Model:
    x = opset8.parameter([2], "i4", name="x")
    return ovir.Model([opset8.concat([x, opset8.constant([1, 2], "i4", name="codes")], 0)], [x])


def infinite() -> ovir.Model:
    x = opset8.parameter([2, 3], "f32", name="x")
    branches = [opset8.parameter([2, 3], "f32", name=name) for name in "ab"]
    condition = opset8.parameter([], "boolean", name="condition")
    chosen = opset8.if_op(condition, name="chosen")
    then, other = (
        ovir.Model([make], [inner])
        for make, inner in zip(
            (opset8.elu(branches[0], np.inf, name="elu"), opset8.abs(branches[1])), branches, strict=True
        )
    )
    chosen.set_then_body(then)
    chosen.set_else_body(other)
    chosen.set_input(x, then.inputs[0], other.inputs[0])
    return ovir.Model([chosen.set_output(then.outputs[0], other.outputs[0])], [x, condition])


@pytest.mark.parametrize(
    ("make", "release"),
    [
        (of_size_0, "2022.3"),
        (grown_state, "2022.3"),
        (lambda: transformed(lambda x: opset8.dft(x, [1])), "2022.3"),
        (lambda: transformed(lambda x: opset9.irdft(x, [1])), "2022.1"),
        (swapped_codes, "2023.0"),
        (infinite, "2024.6"),
    ],
)
def test_the_check_lists_what_an_edit_refuses(make: Callable[[], ovir.Model], release: str, tmp_path: Path) -> None:
    model = make()
    ovir.save_model(model, tmp_path / "model.xml")
    with pytest.raises(ovir.ExportError) as error:
        model.lower(release)
    found = [d for d in ovir.check(tmp_path / "model.xml", runtime=release) if d.code == "OVIR701"]
    reasons = {d.message.rpartition(", but ")[2].rpartition(": ")[2] for d in error.value.diagnostics}
    assert reasons
    for reason in reasons:
        assert any(reason in d.message + (d.hint or "") for d in found), [str(d) for d in found]
    newest = [d for d in ovir.check(tmp_path / "model.xml", runtime="2026.4") if d.code == "OVIR701"]
    assert newest == []


@pytest.mark.parametrize(("kind", "opset"), OPERATIONS_SINCE)
def test_an_operation_comes_later_than_its_opset(kind: str, opset: int) -> None:
    assert release_of_opset(opset) < OPERATIONS_SINCE[kind, opset]


def test_an_operation_that_came_later_than_its_opset_is_rewritten() -> None:
    model, _ = masked_attention()
    assert newest_opset((2023, 2)) == 13
    assert {layer.rt_info["ovir.lowered_from"] for layer in model.lower("2023.2")} == {"ScaledDotProductAttention-13"}
    assert not any(layer.type == "ScaledDotProductAttention" for layer in model.layers)
    first = OPERATIONS_SINCE["ScaledDotProductAttention", 13]
    assert release_text(first) == "2023.3"


def test_the_sink_of_attention_is_rewritten_for_releases_that_ignore_it() -> None:
    heads = [opset8.parameter([1, 2, 4, 8], "f32", name=name) for name in "qkv"]
    sink = opset8.parameter([1, 2, 1, 1], "f32", name="sink")
    rest = opset8.constant(np.zeros((1, 1, 4, 4), np.float32)), opset8.constant(np.float32(0.3))
    out = opset13.scaled_dot_product_attention(*heads, *rest, causal=False, sink=sink, name="attention")
    model = ovir.Model([out], [*heads, sink])
    assert "with 6 inputs" in str(oldest_release(model))
    assert model.lower("2025.4") == []
    inputs = {**{name: numbers(1, 2, 4, 8) for name in "qkv"}, "sink": numbers(1, 2, 1, 1)}
    before = ovir.compile_model(model)(inputs)["attention"]
    assert [layer.name for layer in model.lower("2025.3")] == ["attention"]
    assert not any(layer.type == "ScaledDotProductAttention" for layer in model.layers)
    np.testing.assert_allclose(ovir.compile_model(model)(inputs)["attention"], before, rtol=1e-5, atol=1e-6)


def test_axes_that_may_be_skipped_must_have_known_sizes() -> None:
    x = opset8.parameter([-1, 1, 3], "f32", name="x")
    model = ovir.Model([opset15.squeeze(x, [0, 1], allow_axis_skip=True)], [x])
    with pytest.raises(ovir.ExportError, match="have the size 1 is unknown"):
        model.lower("2022.3")
    model.reshape([2, 1, 3])
    assert [layer.version for layer in model.lower("2022.3")] == ["opset1"]


def test_sizes_that_only_a_run_shows_are_refused_in_version_10(tmp_path: Path) -> None:
    x = opset8.parameter([2, 3], "f32", name="x")
    model = ovir.Model([opset8.relu(opset8.convert(opset8.non_zero(x, "i64", name="found"), "f32"))], [x])
    model.lower("2021.4")
    with pytest.raises(ovir.ModelError, match=r"'found'.*exact sizes only, .* this layer gives the shape \[2") as error:
        ovir.save_model(model, tmp_path / "old.xml", version=10)
    assert len(error.value.diagnostics) == 1
    assert not any(tmp_path.iterdir())


def test_version_10_holds_the_upper_bound_of_a_suppression(tmp_path: Path) -> None:
    path = tmp_path / "old.xml"
    boxes, scores = (
        opset8.parameter(shape, "f32", name=name) for shape, name in (([1, 10, 4], "b"), ([1, 3, 10], "s"))
    )
    found = opset8.non_max_suppression(boxes, scores, 4, np.float32(0.1), np.float32(0.5), box_encoding="center")
    model = ovir.Model([opset8.convert(found.outputs[0], "f32")], [boxes, scores])
    model.lower("2021.4")
    ovir.save_model(model, path, version=10)
    assert "<dim>-1</dim>" not in path.read_text()
    assert path.read_text().count("<dim>12</dim>") >= 3
    again = ovir.read_model(path)
    assert not again.diagnostics
    assert str(again.outputs[0].shape) == "[..12,3]"
    given = [np.random.default_rng(0).random(port.shape.to_tuple(), np.float32) for port in model.inputs]
    for one, other in zip(
        ovir.compile_model(model)(given).values(), ovir.compile_model(again)(given).values(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
