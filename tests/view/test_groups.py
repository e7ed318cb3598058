"""Layers are grouped by the scopes in their names, or by repeated blocks."""

import pytest

import ovir
from ovir import opset13 as ops
from ovir.view.groups import group_paths, scope_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/model/layers.0/attn/MatMul", ("model", "layers.0", "attn")),
        ("__module.model.layers.0.attn/aten::linear/MatMul", ("model", "layers.0", "attn")),
        ("__module.model.23.cv3.2.1.act/aten::silu_/Swish", ("model.23", "cv3.2", "1", "act")),
        ("self.encoder.layer.3.output.weight/fq_weights_1", ("encoder", "layer.3", "output", "weight")),
        ("block_1/conv/Conv2D", ("block_1", "conv")),
        ("model/pad;model/conv/Conv2D", ("model", "conv")),
        ("aten::add/Add", ()),
        ("Add_1234", ()),
        ("//", ()),
        ("", ()),
    ],
)
def test_scopes(name: str, expected: tuple[str, ...]) -> None:
    assert scope_of(name) == expected


def test_endless_scopes_are_cut() -> None:
    assert len(scope_of("a/" * 1000)) == 32


def chain(*names: str) -> ovir.Model:
    """Return a model with a chain of layers of these names, each of which adds a constant."""
    x = ops.parameter([2], "f32", name="x")
    last = x
    for name in names:
        last = ops.add(last, ops.constant([1.0, 2.0], "f32", name=f"constant of {name}"), name=name)
    return ovir.Model([ops.result(last, name="y")], [x])


def groups(model: ovir.Model) -> dict[str, str]:
    return {layer.name: "/".join(path) for layer, path in group_paths(model).items()}


def test_scopes_without_what_all_of_them_share() -> None:
    found = groups(chain("net/a.0/Add", "net/a.0/Add_1", "net/a.0/Add_2", "net/b/Add", "net/b/Add_1", "net/b/Add_2"))
    assert found["net/a.0/Add"] == "a.0"
    assert found["net/b/Add_2"] == found["constant of net/b/Add_2"] == "b"
    assert found["x"] == found["y"] == ""


def test_layers_between_scoped_ones_join_them() -> None:
    found = groups(chain("a/x/1", "a/x/2", "Add_7", "a/x/3", "Add_8", "a/y/1", "b/1", "b/2", "b/3"))
    assert found["Add_7"] == "a/x"
    assert found["Add_8"] == "a/y"  # the group of its only reader


def test_a_layer_that_several_groups_read_is_in_the_one_around_them() -> None:
    x = ops.parameter([2], "f32", name="x")
    first = ops.relu(ops.abs(x, name="a/p/0"), name="ReLU_5")
    parts = [ops.abs(first, name=f"a/{part}/{number}") for part in "pq" for number in range(3)]
    others = [ops.abs(first, name=f"{part}/{number}") for part in "bc" for number in range(3)]
    found = groups(ovir.Model([*parts, *others], [x]))
    assert found["a/q/1"] == "a/q"
    assert found["ReLU_5"] == ""


def test_a_group_of_nearly_all_layers_is_left_out() -> None:
    inner = [f"m/{part}/{number}" for part in ("stem", "body", "head") for number in range(4)]
    found = groups(chain(*inner, "norm/0", "norm/1", "norm/2"))
    assert found["m/stem/0"] == "stem"
    assert found["norm/1"] == "norm"
    collides = groups(chain(*inner, "stem/0", "stem/1", "stem/2"))
    assert collides["m/stem/0"] == "m/stem"


def test_a_group_of_nearly_all_layers_stays_if_many_of_them_are_in_no_other() -> None:
    """Decoders compute masks and positions beside their blocks; outside, they would hide the blocks."""
    blocks = [f"decoder/h.{block}/{number}" for block in range(40) for number in range(4)]
    few, many = ([f"decoder/mask_{number}" for number in range(count)] for count in (30, 31))
    found = groups(chain(*few, *blocks, "head/0", "head/1", "head/2"))
    assert found["decoder/h.39/0"] == "h.39"
    assert found["decoder/mask_29"] == ""
    found = groups(chain(*many, *blocks, "head/0", "head/1", "head/2"))
    assert found["decoder/h.39/0"] == "decoder/h.39"
    assert set(found.values()) - {""} == {"decoder", "head", *(f"decoder/h.{block}" for block in range(40))}
    assert {name for name, group in found.items() if not group} == {"x", "y"}


def test_constants_of_several_groups_are_outside_of_them() -> None:
    x = ops.parameter([2], "f32", name="x")
    shared = ops.constant([1.0, 2.0], "f32", name="shared")
    last = x
    for name in ("a/p/1", "a/p/2", "a/p/3", "a/q/1", "a/q/2", "a/q/3", "b/1", "b/2", "b/3"):
        last = ops.add(last, shared if name.startswith("a") else x, name=name)
    found = groups(ovir.Model([last], [x]))
    assert found["shared"] == "a"


def test_names_without_scopes_give_blocks() -> None:
    x = ops.parameter([2], "f32", name="x")
    last: ops.Layer = ops.floor(x, name="begin")
    for number in range(3):
        for function in (ops.relu, ops.sigmoid, ops.tanh, ops.abs):
            last = function(last, name=f"{function.__name__}_{number}")
        last = ops.add(last, ops.constant([1.0, 2.0], "f32", name=f"bias_{number}"), name=f"add_{number}")
    found = groups(ovir.Model([last], [x]))
    for number in range(3):
        for name in ("relu", "sigmoid", "tanh", "abs", "add", "bias"):
            assert found[f"{name}_{number}"] == f"block {number + 1}"
    assert found["begin"] == ""


def test_scopes_of_single_layers_are_parts_of_names() -> None:
    names = [f"conv{number}/{part}" for number in range(9) for part in ("fused", "bias")]
    assert set(groups(chain(*names)).values()) == {""}
