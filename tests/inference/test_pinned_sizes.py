"""Constants that fix a size which an input leaves open: which layers are named, and which are not."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.cli.main import main
from ovir.inference.pinned_sizes import pinned_sizes

Make = Callable[[ovir.Layer], ovir.Layer]


def of(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def model_of(make: Make, shape: str) -> ovir.Model:
    x = ops.parameter(shape, "f32", name="x")
    return ovir.Model([make(x)], [x], "model")


PINNED: dict[str, Make] = {
    "Reshape": lambda x: ops.reshape(x, [4, 32], False),
    "Broadcast": lambda x: ops.broadcast(x, [4, 4, 8]),
    "Interpolate": lambda x: ops.interpolate(x, [4, 6, 8], "nearest", "sizes", axes=[0, 1, 2]),
    "Slice": lambda x: ops.slice(x, [0], [4], [1], [0]),
    "StridedSlice": lambda x: ops.strided_slice(x, [0, 0], [4, 0], [1, 1], [0, 1], [0, 1]),
    "Tile of a constant": lambda x: ops.concat([ops.tile(of(1, 1, 8), [4, 1, 1]), x], 1),
    "Broadcast of a constant": lambda x: ops.add(x, ops.broadcast(of(1, 4, 8), [4, 4, 8])),
    "constant of all items": lambda x: ops.matmul(x, of(4, 8, 3), False, False),
    "constant besides a vector": lambda x: ops.select(ops.less(x, of(1)), of(8), of(4, 4, 8)),
    "constant that is concatenated": lambda x: ops.concat([of(4, 1, 8), x], 1),
}
OPEN: dict[str, Make] = {
    "Reshape": lambda x: ops.reshape(x, [-1, 32], False),
    "Broadcast": lambda x: ops.broadcast(x, [1, 4, 8], broadcast_spec="BIDIRECTIONAL"),
    "Interpolate": lambda x: ops.interpolate(x, [6], "nearest", "sizes", axes=[1]),
    "Slice": lambda x: ops.slice(x, [0], [2**31 - 1], [1], [0]),
    "Slice of another axis": lambda x: ops.slice(x, [0], [2], [1], [1]),
    "Slice without the last item": lambda x: ops.slice(x, [0], [-1], [1], [0]),
    "Tile": lambda x: ops.tile(x, [2, 1, 1]),
    "constant for each item": lambda x: ops.add(x, of(1, 4, 8)),
    "constant of other axes": lambda x: ops.matmul(x, of(8, 3), False, False),
    "product with a vector": lambda x: ops.matmul(x, of(8), False, False),
    "sum": lambda x: ops.reduce_sum(x, [0], True),
    "Gather": lambda x: ops.gather(x, [0], 0),
}


@pytest.mark.parametrize("shape", ["?,4,8", "1..9,4,8"])
@pytest.mark.parametrize("name", PINNED)
def test_constants_that_pin_an_open_number_of_items(name: str, shape: str) -> None:
    model = model_of(PINNED[name], "4,4,8")
    assert not list(pinned_sizes(model))
    model.reshape(shape)
    (found,) = pinned_sizes(model)
    assert "a constant fixes the result to" in found.message
    assert "`ovir edit --batch ?`" in str(found.hint)


@pytest.mark.parametrize("shape", ["4,4,8", "?,4,8"])
@pytest.mark.parametrize("name", PINNED)
def test_another_batch_leaves_nothing_pinned(name: str, shape: str) -> None:
    model = model_of(PINNED[name], "4,4,8")
    model.reshape(shape)
    assert model.set_batch(-1).verdict.startswith("proven")
    assert not list(pinned_sizes(model))


@pytest.mark.parametrize("name", OPEN)
def test_sizes_that_follow_or_are_chosen(name: str) -> None:
    assert not list(pinned_sizes(model_of(OPEN[name], "?,4,8")))


def test_other_sizes_than_the_number_of_items() -> None:
    target = ops.constant([2, 32], name="target")
    (found,) = pinned_sizes(model_of(lambda x: ops.reshape(x, target, False), "2,?,8"))
    assert "from the shape that 'target' is for, `ovir edit --shape ... --adapt`" in str(found.hint)
    assert not list(pinned_sizes(model_of(lambda x: ops.slice(x, [0], [4], [1], [0]), "?")))  # a list that is cut off


@pytest.mark.parametrize(("shape", "is_pinned"), [("?,4,8", True), ("1..9,4,8", False)])
def test_a_size_that_is_computed_from_the_number_of_items(shape: str, is_pinned: bool) -> None:
    """One without a bound follows from what the input leaves open; others may depend on data alone."""
    model = model_of(lambda x: ops.reshape(ops.concat([x, x], 0), [8, 32], False), shape)
    assert bool(list(pinned_sizes(model))) == is_pinned


def test_a_slice_of_data_that_a_faulty_file_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ovir.save_model(model_of(lambda x: ops.strided_slice(ops.relu(x), [0], [2], [1], [0], [0]), "?,4,8"), path)
    text = re.sub('<edge from-layer="[0-9]+" from-port="1"', '<edge from-layer="99" from-port="1"', path.read_text())
    path.write_text(text, encoding="utf-8")
    found = {d.code for d in ovir.check(path)}
    assert "OVIR206" in found
    assert "OVIR999" not in found


@pytest.mark.parametrize("command", ["run", "infer", "check", "compare"])
def test_commands_that_take_shapes_warn(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.xml"
    ovir.save_model(model_of(PINNED["Tile of a constant"], "4,4,8"), path)
    others = [str(path)] if command == "compare" else []
    main([command, str(path), *others, "--shape", "x=?,4,8"])
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("warning[OVIR711]") == 1
