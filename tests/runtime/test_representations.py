"""How compiled models, requests, results and variables show themselves, and what their copies share."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from builder import Net

import ovir

ONES = np.ones((2, 3), np.float32)


def counter() -> ovir.CompiledModel:
    """A model that adds its input to a state."""
    net = Net()
    x = net.parameter("x", "2,3")
    zero = net.const(np.zeros((2, 3), np.float32))
    state = net.op("ReadValue", zero, opset=6, variable_id="v", variable_type="f32", variable_shape="2,3")
    total = net.op("Add", state, x, name="total")
    net.op("Assign", total, opset=6, variable_id="v")
    net.result(total)
    return net.compiled()


def test_a_compiled_model_shows_its_inputs_and_outputs() -> None:
    assert repr(counter()) == "<CompiledModel 'test': x f32[2,3] -> total f32[2,3]>"


def test_a_request_shows_its_variables() -> None:
    request = counter().create_infer_request()
    assert repr(request.query_state()) == "[<Variable 'v': not assigned>]"
    request.infer([ONES])
    assert repr(request) == "<InferRequest of 'test': idle, variables: v>"
    assert repr(request.query_state()) == "[<Variable 'v': float32[2, 3]>]"
    request.reset_state()
    assert repr(request.query_state()) == "[<Variable 'v': not assigned>]"


def test_results_show_names_types_and_shapes() -> None:
    assert repr(counter()([ONES])) == "<Results: total float32[2, 3]>"


def test_a_long_list_of_outputs_is_shortened() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for i in range(8):
        net.result(net.op("Abs", x, name=f"abs{i}"))
    shown = repr(net.compiled()([ONES]))
    assert shown.startswith("<Results: abs0 float32[2, 3], abs1 ")
    assert shown.endswith("abs5 float32[2, 3], and 2 more>")


DUPLICATES = pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])


@DUPLICATES
def test_a_copy_of_a_compiled_model_has_a_state_of_its_own(duplicate: Callable[[Any], Any]) -> None:
    compiled = counter()
    compiled([ONES])
    other = duplicate(compiled)
    np.testing.assert_array_equal(other([ONES])["total"], ONES)
    np.testing.assert_array_equal(compiled([ONES])["total"], 2 * ONES)


@DUPLICATES
def test_requests_are_not_copied(duplicate: Callable[[Any], Any]) -> None:
    with pytest.raises(ovir.InputError, match="InferRequest objects cannot be pickled") as caught:
        duplicate(counter().create_infer_request())
    assert "pickle the compiled model, and create a request where it is restored" in str(caught.value)


def test_results_can_be_pickled() -> None:
    restored = pickle.loads(pickle.dumps(counter()([ONES])))
    np.testing.assert_array_equal(restored["total"], ONES)
