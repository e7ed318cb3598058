"""A model of 500 layers with ten different faults at once: each is found, on its line, and nothing follows from it."""

import re
from collections.abc import Callable, Sequence

import pytest
from support.faults import FAULTS, Plant, errors, long_cycle, other_constant, other_source, whole

import ovir

pytestmark = pytest.mark.slow


def test_the_model_is_right_without_them() -> None:
    text, weights = whole()
    assert text.count("<layer ") >= 500
    assert ovir.check(text, weights) == []


def missed(faults: Sequence[Callable[[Plant], None]], plant: Plant) -> list[str]:
    """Plant faults, and return the errors if they are not those of the faults."""
    for fault in faults:
        fault(plant)
    text, planted = plant.finish()
    assert len(planted) == len(faults)
    found = errors(text, plant.weights)
    if sorted((d.code, d.line) for d in found) == sorted(planted):
        return []
    return [f"planted {planted}, found:", *map(str, found)]


def test_ten_faults() -> None:
    wrong = {}
    for seed in range(12):
        plant = Plant(seed)
        if found := missed(plant.random.sample(FAULTS, 10), plant):
            wrong[seed] = found
    assert wrong == {}


ALONE = [fault for fault in FAULTS if fault is not other_source]
"""Where the file can be read, ``other_source`` is an error of the layer that fails by it."""


def test_one_fault() -> None:
    wrong = {}
    for seed, fault in enumerate((*ALONE, long_cycle)):
        if found := missed([fault], Plant(seed)):
            wrong[str(fault)] = found
    assert wrong == {}


def test_a_doubt_and_what_fails_by_it_are_one_error() -> None:
    """If nothing else is wrong, the error says why the file is refused."""
    for seed in range(4):
        plant = Plant(seed)
        other_constant(plant)
        text, ((_, line),) = plant.finish()
        (found,) = errors(text, plant.weights)
        assert found.code == "OVIR410"
        assert found.message.startswith(
            "a is f32 and b is i32: their element types must be equal; input port 1 declares"
        )
        assert found.line == max(i for i, row in enumerate(text.split("\n")[:line], 1) if "<layer " in row)


def test_a_doubt_and_a_later_layer_that_fails_by_it_are_one_error() -> None:
    for seed in range(4):
        plant = Plant(seed)
        other_source(plant)
        text, ((_, line),) = plant.finish()
        (found,) = errors(text, plant.weights)
        assert found.code == "OVIR401"
        assert found.layer is not None
        assert "(Reshape, opset1)" in found.layer
        assert re.fullmatch(
            r"data of shape \[8,8\] cannot be reshaped to \[2,16\]; this follows from layer \d+ 'matmul\d+' "
            rf"\(MatMul, opset1\) on line {line}: input port 0 declares shape \[4,8\], but its tensor has \[8,8\] .*",
            found.message,
        )
