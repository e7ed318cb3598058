"""What a caller reads of a model cannot be changed by mistake."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from support.edited import sample

import ovir
from ovir.ops.unary import Abs

LISTS = ("layers", "inputs", "outputs")


CHANGES: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    **dict.fromkeys(("append", "remove"), lambda items: (items[0],)),
    **dict.fromkeys(("extend", "__iadd__"), lambda items: (items,)),
    **dict.fromkeys(("insert", "__setitem__"), lambda items: (0, items[0])),
    **dict.fromkeys(("pop", "clear", "sort", "reverse"), lambda items: ()),
    "__delitem__": lambda items: (0,),
    "__imul__": lambda items: (2,),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("change", CHANGES)
def test_lists_of_a_model(name: str, change: str) -> None:
    model = sample()
    items = getattr(model, name)
    before = list(items)
    with pytest.raises(ovir.InputError, match="this list of a model cannot be changed"):
        getattr(items, change)(*CHANGES[change](items))
    assert getattr(model, name) == before


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_a_model_read_like_lists(name: str) -> None:
    items = getattr(sample(), name)
    assert isinstance(items, list)
    assert items + items == [*items, *items]
    assert items[:1] == [items[0]]
    for other in (items.copy(), items[:], copy.copy(items), sorted(items, key=id)):
        assert type(other) is list
        other.append(None)
    assert len(pickle.loads(pickle.dumps(items))) == len(items)


@pytest.mark.parametrize(
    "change",
    [
        lambda attributes: attributes.__setitem__("variable_id", "w"),
        lambda attributes: attributes.__delitem__("variable_id"),
        lambda attributes: attributes.update(variable_id="w"),
        lambda attributes: attributes.setdefault("new", 1),
        lambda attributes: attributes.pop("variable_id"),
        lambda attributes: attributes.popitem(),
        lambda attributes: attributes.clear(),
        lambda attributes: attributes.__ior__({"new": 1}),
    ],
)
def test_attributes_of_layers(change: Callable[[Any], object]) -> None:
    layer = sample().layer("assign")
    with pytest.raises(ovir.InputError, match="the attributes of a layer cannot be changed") as caught:
        change(layer.attributes)
    assert "Model.replace_layer" in str(caught.value.diagnostic.hint)
    assert layer.attributes == {"variable_id": "v"}
    assert type(copy.deepcopy(layer.attributes)) is type(layer.attributes | {}) is dict


def test_attributes_can_be_set_until_the_layer_is_in_a_model() -> None:
    model = sample()
    layer = ovir.Layer(model.next_id, "abs", "Abs", "opset1", operator=Abs())
    layer.attributes["note"] = "mine"
    model.add_layer(layer)
    with pytest.raises(ovir.InputError):
        layer.attributes["note"] = "other"
    model.reshape({"x": [2, 3]})
    with pytest.raises(ovir.InputError):
        model.layer("x").attributes["shape"] = [4, 4]
