"""The numbers of what edits have changed."""

import numpy as np
from support.edited import sample, with_body

import ovir
from ovir import opset13 as ops


def test_layers_that_are_added_removed_and_changed() -> None:
    """Two layers read the one that another is inserted after; the new constant has 12 bytes."""
    model = sample()
    with model.editing() as effect:
        model.insert_after("add", ops.multiply(model.layer("add"), np.float32([1, 2, 3])))
    assert str(effect) == "layers: 2 added, 2 changed; constants: 2 -> 3, 24 -> 36 bytes"
    with model.editing() as effect:
        model.remove("dead")
        model.rename({"x": "other"})
    assert str(effect) == "layers: 1 removed, 1 changed; constants: 3, 36 bytes"
    with model.editing() as effect:
        model.set_constant("target", np.int32([1, 6]))
    assert str(effect) == "layers: 1 changed; constants: 3, 36 -> 28 bytes"
    with model.editing() as effect:
        pass
    assert str(effect) == "layers: none changed; constants: 3, 28 bytes"
    counts = {"added": 0, "removed": 0, "changed": 0}
    constants = {"constants_before": 3, "constants_after": 3, "bytes_before": 28, "bytes_after": 28}
    assert effect.to_dict() == counts | constants
    edit = model.fix_input("y", np.zeros((2, 3)), verify=False)
    assert str(edit.effect) == "layers: 1 added, 1 removed, 2 changed; constants: 3 -> 4, 28 -> 52 bytes"
    edit = sample().reshape({"x": [4, 3], "y": [4, 3]}, adapt=True, verify=False)
    assert str(edit.effect) == "layers: 1 added, 1 removed, 3 changed; constants: 2, 24 bytes"


def test_layers_of_bodies_and_large_numbers() -> None:
    model = with_body()
    with model.editing() as effect:
        model.insert_after("n1/body/n1", ops.relu(model.layer("n1/body/n1")))
    assert (effect.added, effect.removed, effect.changed) == (1, 0, 1)
    x = ops.parameter([1000], "f32", name="x")
    model = ovir.Model([x + ops.constant(np.ones(1000, np.float32), name="c")], [x])
    with model.editing() as effect:
        model.set_constant("c", np.ones((2, 1000), np.float32))
    assert str(effect).endswith("constants: 1, 4,000 -> 8,000 bytes")
