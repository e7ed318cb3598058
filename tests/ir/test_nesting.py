"""Bodies within bodies and elements within elements, deeper than any model nests them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builder import RELU, RESULT, document, layer_text

import ovir
from ovir.cli.main import main
from ovir.graph.connections import MAX_DEPTH

_PORT = '<port id="{}" precision="FP32"><dim>2</dim></port>'
_MAPS = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
_CONDITION = (
    '<layer id="3" name="c" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>'
    '<output><port id="0" precision="BOOL"/></output></layer>'
)


def _edges(*ends: str) -> str:
    numbers = [end.split() for end in ends]
    return "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in numbers)


def _around(layer: str, edges: str) -> str:
    """Return a graph of a Parameter, a condition, one layer and a Result."""
    layers = (
        '<layer id="0" name="p" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>'
        f"<output>{_PORT.format(0)}</output></layer>{_CONDITION}{layer}{layer_text(2, 'Result', RESULT)}"
    )
    return f"<layers>\n{layers}\n</layers><edges>{edges}</edges>"


def nested(depth: int) -> bytes:
    """Return a model in which an If is ``depth`` times within an If."""
    innermost = graph = _around(layer_text(1, "ReLU", RELU), _edges("0 0 1 0", "1 1 2 0"))
    for level in range(depth):
        bodies = "".join(
            f"<{name}_port_map>{_MAPS}</{name}_port_map><{name}_body>{body}</{name}_body>"
            for name, body in (("then", graph), ("else", innermost))
        )
        ports = f'<input><port id="0"/>{_PORT.format(1)}</input><output>{_PORT.format(2)}</output>'
        layer = f'<layer id="1" name="f{level}" type="If" version="opset8">{ports}{bodies}</layer>'
        graph = _around(layer, _edges("3 0 1 0", "0 0 1 1", "1 2 2 0"))
    return f'<net name="a" version="11">{graph}</net>'.encode()


ACTIONS: dict[str, Callable[[ovir.Model], object]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "pickle a layer": lambda model: pickle.loads(pickle.dumps(model.layers[-1])),
    "clone": lambda model: model.clone(),
    "deepcopy": copy.deepcopy,
    "walk": lambda model: [layer.key for layer in model.walk()],
    "reshape": lambda model: model.reshape([2]),
    "weights": lambda model: model.weights(),
    "show": repr,
    "run": lambda model: ovir.compile_model(model)([np.ones(2, np.float32)]),
}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_bodies_of_the_greatest_depth(action: Callable[[ovir.Model], object]) -> None:
    assert action(ovir.read_model(nested(MAX_DEPTH), b"\1")) is not NotImplemented


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 400])
def test_bodies_that_are_nested_too_deeply(depth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.xml"
    path.write_bytes(nested(depth))
    path.with_suffix(".bin").write_bytes(b"\1")
    with pytest.raises(ovir.ModelError, match=f"bodies are nested more than {MAX_DEPTH} deep") as caught:
        ovir.read_model(path)
    assert caught.value.diagnostic.line
    for command in ("check", "infer", "show", "run"):
        assert main([command, str(path)]) in (1, 2)
    assert "Traceback" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("depth", [1000, 2000])
@pytest.mark.parametrize("place", ["<rt_info>", "<input>"])
def test_elements_within_elements(depth: int, place: str) -> None:
    layers = layer_text(1, "ReLU", RELU), layer_text(2, "Result", RESULT)
    text = document(*layers, edges="0.0-1.0 1.1-2.0").replace(b"</net>", b"<rt_info></rt_info></net>")
    deep = "<a>" * depth + "</a>" * depth
    model = ovir.read_model(text.replace(place.encode(), f"{place}{deep}".encode(), 1))
    copied = pickle.loads(pickle.dumps(model.clone()))
    assert str(copied.rt_info) == str(model.rt_info)
    assert len(ovir.compile_model(copied)([np.ones((2, 4), np.float32)])) == 1


def test_elements_deeper_than_the_parser_goes() -> None:
    text = document("<layer>" * 100_000 + "</layer>" * 100_000)
    with pytest.raises(ovir.OvirError, match="Excessive depth in document"):
        ovir.read_model(text)
    assert [d.code for d in ovir.check(text)] == ["OVIR102"]


@pytest.mark.slow
@pytest.mark.parametrize("action", [ovir.Model.infer_shapes, ovir.compile_model, lambda model: model.reshape([3]), pickle.dumps], ids=["infer", "compile", "reshape", "pickle"])  # fmt: skip
def test_bodies_that_are_nested_in_memory_have_the_same_limit(action: Callable[[ovir.Model], object]) -> None:
    """A model built layer by layer can have more levels than any file that is read."""
    model = ovir.read_model(nested(1), b"\1")
    for _ in range(150):
        outer = ovir.read_model(nested(1), b"\1")
        holder = next(layer for layer in outer.layers if layer.bodies)
        holder.bodies[next(iter(holder.bodies))] = model
        model = outer
    with pytest.raises(ovir.ModelError, match=f"bodies are nested more than {MAX_DEPTH} deep"):
        action(model)
