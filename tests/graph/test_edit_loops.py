"""Loops of edits: the order of layers and the refusal of cycles stay right without sorting after each edit."""

import numpy as np
import pytest
from support import edited
from support.derived import chain

import ovir
from ovir.graph.layers import Layer
from ovir.graph.order import FileOrder, Ranks
from ovir.model import Model
from ovir.ops.activation import ReLU


def new_relu(model: Model) -> Layer:
    return edited.layer(f"new{model.next_id}", ReLU(), 1, number=model.next_id)


def require_order(model: Model) -> None:
    seen: set[Layer] = set()
    for layer in model.layers:
        assert all(port.source is None or port.source.layer in seen for port in layer.inputs)
        seen.add(layer)


def count_sorting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    original = Ranks.__init__
    monkeypatch.setattr(
        Ranks, "__init__", lambda self, order, gap: made.append(len(order)) or original(self, order, gap)
    )
    return made


@pytest.mark.parametrize("is_forward", [True, False])
def test_added_and_connected_layers_need_one_ranking(is_forward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = chain(200)
    made = count_sorting(monkeypatch)
    for layer in list(model.layers):
        if layer.outputs:
            source, reader = layer.outputs[0], layer.outputs[0].readers[0]
            new = model.add_layer(new_relu(model), [source] if is_forward else ())
            model.connect(new.outputs[0], reader)
            model.connect(source, new.inputs[0])
    assert len(made) == 1
    require_order(model)
    assert len(model.layers) == 202 + 201


@pytest.mark.slow
def test_insertions_at_one_place_seldom_rank_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = chain(3)
    made = count_sorting(monkeypatch)
    source = model.layer("relu1").outputs[0]
    model.connect(source, source.readers[0])
    with model.editing():
        for _ in range(500):
            new = model.insert_after(source, new_relu(model))
            with pytest.raises(ovir.OvirError, match="cycle"):
                model.connect(model.layer("relu3").outputs[0], new.inputs[0])
    assert len(made) <= 3
    require_order(model)


@pytest.mark.parametrize("seed", range(20))
def test_random_connections_close_no_cycle(seed: int) -> None:
    """Whatever the ranks say, an edge is refused exactly if it closes a cycle."""
    rng = np.random.default_rng(seed)
    model = chain(6)
    for _ in range(6):
        model.add_layer(new_relu(model))
    for _ in range(150):
        layers = model._file_order
        source, target = (layers[i] for i in rng.integers(len(layers), size=2))
        if not source.outputs or not target.inputs:
            continue
        closes = _depends_on(source, target)
        try:
            model.connect(source.outputs[0], target.inputs[0])
            assert not closes
        except ovir.ModelError:
            assert closes
        if rng.random() < 0.2:
            model.disconnect(target.inputs[0])
        require_order(model)


def _depends_on(layer: Layer, origin: Layer) -> bool:
    pending, seen = [layer], {layer}
    while pending:
        for port in pending.pop().inputs:
            if port.source is not None and port.source.layer not in seen:
                seen.add(port.source.layer)
                pending.append(port.source.layer)
    return origin in seen


def test_file_order_carries_out_edits_in_one_pass() -> None:
    first, second, *new = (Layer(i, str(i), "ReLU", "opset1") for i in range(6))
    order = FileOrder([first, second])
    order.insert(new[0], first)
    order.insert(new[1], first)
    order.insert(new[2], new[0])
    order.remove(first)
    order.append(new[3])
    assert [layer.id for layer in order.layers] == [3, 2, 4, 1, 5]
    order.remove(new[1])
    order.insert(new[1], second)
    assert [layer.id for layer in order.layers] == [2, 4, 1, 3, 5]


def test_lookup_after_renaming_and_edits() -> None:
    model = chain(3)
    assert model.layer("relu1").id == 1
    model.rename_layers({"relu1": "relu2", "relu2": "relu1"})
    assert (model.layer("relu1").id, model.layer("relu2").id) == (2, 1)
    model.remove_layer(model.layer("relu1"), bypass=True)
    with pytest.raises(ovir.OvirError, match="no layer is named"):
        model.layer("relu1")
    model.layer("relu2").name = "set directly"
    assert model.layer("set directly").id == 1
