"""Repeated runs: a device that does not agree with itself, and how its results vary."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.comparing import X, small_net

import ovir
from ovir import opset13 as ops
from ovir.cli.commands.compare import print_comparison
from ovir.core.element_types import bf16
from ovir.debugging.repeats import Spread, Variation, joined

slow = pytest.mark.slow


def spread(reference: Any, *runs: Any) -> Variation | None:
    """Return the variation of a tensor with these values in runs in one request."""
    found = Spread(np.asarray(runs[0]))
    for run in runs[1:]:
        found.add("run", np.asarray(run))
    return found.variation(np.asarray(reference), "seed 0")


@pytest.mark.parametrize(
    ("runs", "reference", "differing", "numbers"),
    [
        (([1.0, 2.0], [1.0, 4.0], [1.0, 1.5], [1.0, 2.0]), [9.0, 3.0], 2, (1, 2.5, 1)),
        (([1.0, 2.0], [1.5, 2.5]), [1.6, 2.0], 1, (2, 0.5, 1)),
        (([3, 2], [1, 2]), [2, 2], 1, (1, 2, 1)),
        (([True, False], [False, False]), [True, False], 1, (1, 1, 1)),
        (([1.0, np.nan], [1.0, 5.0]), [1.0, 5.0], 1, (1, 0, 0)),
        (([1.0, 5.0], [1.0, np.nan], [1.0, 6.0]), [1.0, 5.0], 2, (1, 0, 0)),
        (([0.0], [-0.0]), [0.0], 1, (0, 0, 0)),
        (([1.0, 2.0], [1.0]), [1.0, 2.0], 1, (2, None, 0)),
        (([1.0], [1.0, 2.0], [3.0, 2.0], [2.0]), [1.0], 3, (1, None, 0)),
        ((["a", "b"], ["a", "c"]), ["a", "b"], 1, (1, None, 0)),
        (
            (np.float32([1, 2]).astype(bf16.to_dtype()), np.float32([1, 3]).astype(bf16.to_dtype())),
            [1, 2],
            1,
            (1, 1, 1),
        ),
    ],
    ids=str,
)
def test_the_spread_of_a_tensor(runs: Any, reference: Any, differing: int, numbers: tuple[Any, ...]) -> None:
    """The numbers are the elements that vary, the distance of the largest and smallest, and those with ovir between."""
    found = spread(reference, *runs)
    assert found.differing == {"run": differing, "request": 0, "compilation": 0}
    assert (found.spread.beyond, found.spread.max_abs, found.between) == numbers


@pytest.mark.parametrize("runs", [([np.nan, 1.0],) * 3, (["a"], ["a"]), ([], []), (1.0, 1.0)], ids=str)
def test_the_same_bits_are_no_variation(runs: Any) -> None:
    assert spread(runs[0], *runs) is None


def test_the_larger_variation_of_two_groups_of_inputs_is_shown() -> None:
    small, large = (spread(np.float32([1, 2]), np.float32([1, 2]), np.float32([1, end])) for end in (3, 9))
    for found in (joined(small, large), joined(large, small)):
        assert (found.differing["run"], found.spread.max_abs) == (2, 7)
    assert joined(None, small) is joined(small, None) is small


@slow
@pytest.mark.parametrize(
    ("fault", "differing", "distance"),
    [
        ("run", {"run": 2, "request": 3, "compilation": 3}, 8),
        ("request", {"run": 0, "request": 3, "compilation": 3}, 6),
        ("compilation", {"run": 0, "request": 0, "compilation": 3}, 3),
    ],
)
@pytest.mark.parametrize("mode", [None, "isolated"])
def test_a_layer_that_varies(
    fault: str, differing: dict[str, int], distance: int, mode: Any, device: pytest.MonkeyPatch
) -> None:
    """The layer adds a number that each run, request or compilation increases by 1."""
    device.setenv("OVIR_TEST_FAULT", f"{fault}:MatMul")
    found = ovir.compare(small_net(), inputs=[X], mode=mode, repeat=3)
    assert not found
    assert found.varies == fault
    assert [item.name for item in found.varying] == [
        "soft",
        *(["product", "tanh", "soft"] if mode is None else ["product"]),
    ]
    output, first = found.outputs[0].tensor.variation, found.first_varying
    assert output.differing == differing
    assert (first.name, first.type) == ("product", "MatMul")
    variation = first.tensor.variation
    assert variation.differing == differing
    assert variation.spread.max_abs == pytest.approx(distance)
    assert variation.between == 0, "the numbers of the layer are those of later runs, and not 0 as in ovir"


def stateful() -> ovir.Model:
    """Return a model that adds up its inputs."""
    x = ops.parameter([2], "f32", name="x")
    total = ops.add(ops.read_value(np.zeros(2, np.float32), "v", "f32", [2], name="state"), x, name="total")
    return ovir.Model([total], [ops.assign(total, "v")], [x])


@slow
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("mode", [None, "isolated", "cumulative"])
def test_state_starts_anew_in_each_run(second: bool, mode: Any, device: pytest.MonkeyPatch) -> None:
    found = ovir.compare(stateful(), stateful() if second else "openvino:CPU", repeat=2, mode=mode)
    assert found
    assert (found.repeat, found.varies) == (2, None)


@slow
@pytest.mark.parametrize("device_name", [None, "openvino:CPU"])
def test_a_second_model_that_varies(
    device_name: str | None, device: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random numbers with a seed of 0 are others in each run."""

    def model(seed: int) -> ovir.Model:
        x = ops.parameter([2, 3], "f32", name="x")
        noise = ops.random_uniform([2, 3], np.float32(0), np.float32(1), "f32", 0, seed, name="noise")
        return ovir.Model([ops.add(ops.abs(x, name="size"), noise, name="noisy")], [x])

    found = ovir.compare(model(1), model(0), device=device_name, repeat=2)
    assert found.varies == "run"
    assert [item.name for item in found.varying[1:]] == ["noise", "noisy"]
    found.layers = []
    print_comparison(found, None)
    assert "results vary in one request, but those of no layer that was compared" in capsys.readouterr().out
    fixed = ovir.compare(small_net(), small_net(scale=1.1), device=device_name, repeat=2)
    assert (fixed.repeat, fixed.varies) == (2, None)


def test_weights_that_a_second_model_has_rounded_have_their_tolerance(tmp_path: Path) -> None:
    ovir.save_model(small_net(), tmp_path / "rounded.xml", compress_to_fp16=True)
    assert ovir.compare(small_net(), tmp_path / "rounded.xml", inputs=[X])
    found = ovir.compare(small_net(), tmp_path / "rounded.xml", inputs=[X], repeat=2, mode="cumulative")
    assert found, found.to_dict()
    assert any(layer.tensor.tolerance.weights_in == "f16" for layer in found.layers)


@slow
def test_a_device_that_fails_has_not_agreed_with_itself(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "die:MatMul")
    found = ovir.compare(small_net(), inputs=[X], repeat=2)
    assert found.failed
    assert found.repeat is None
