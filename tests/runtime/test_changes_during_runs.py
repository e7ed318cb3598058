"""A model that one thread changes while others run what was compiled from it."""

import threading
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import Layer


def total() -> ovir.Model:
    x, y = (ops.parameter([-1, 4], "f32", name=name) for name in "xy")
    return ovir.Model([ops.relu(ops.add(x, y))], [x, y], "total")


def edited(model: ovir.Model) -> None:
    name = model.inputs[1].layer.name
    model.rename({name: name + "'"})


CHANGES = {"reshaped": lambda model: model.reshape({"x": [1, 4], "y": [1, 4]}), "edited": edited}


@pytest.mark.parametrize("change", CHANGES)
def test_runs_do_not_see_changes(change: str) -> None:
    model = total()
    request = ovir.compile_model(model).create_infer_request()
    ones = np.ones((3, 4), np.float32)
    changes: list[threading.Thread] = []

    class Rows:
        """An input that lets another thread change the model while it is read."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            changes.append(threading.Thread(target=CHANGES[change], args=[model]))
            changes[-1].start()
            changes[-1].join(0.2)  # it waits for the end of the run
            return ones

    for _ in range(2):
        np.testing.assert_array_equal(request.infer({"x": Rows(), "y": ones})[0], ones + ones)
        changes[-1].join()


def test_a_listener_may_change_the_model() -> None:
    model = total()
    compiled = ovir.compile_model(model)

    class Reshapes:
        def will_run(self, layer: Layer, inputs: object) -> None:
            model.reshape({"x": [1, 4], "y": [1, 4]})

        def did_run(self, layer: Layer, inputs: object, outputs: object) -> None:
            pass

    for rows in (2, 3):
        array = np.ones((rows, 4), np.float32)
        np.testing.assert_array_equal(compiled([array, array], listeners=[Reshapes()])[0], array + array)


def test_a_request_that_runs_still_refuses_a_second_run() -> None:
    request = ovir.compile_model(total()).create_infer_request()

    class RunsAgain:
        def will_run(self, layer: Layer, inputs: object) -> None:
            request.infer([np.ones((1, 4), np.float32)] * 2)

        def did_run(self, layer: Layer, inputs: object, outputs: object) -> None:
            pass

    with pytest.raises(ovir.InputError, match="this request is running"):
        request.infer([np.ones((1, 4), np.float32)] * 2, listeners=[RunsAgain()])


def test_a_first_call_of_the_model_may_meet_a_change_and_a_run() -> None:
    model = total()
    compiled = ovir.compile_model(model)
    request = compiled.create_infer_request()
    ones = np.ones((3, 4), np.float32)
    others = [
        threading.Thread(target=CHANGES["reshaped"], args=[model], daemon=True),
        threading.Thread(target=compiled, args=[[ones, ones]], daemon=True),
    ]

    class Rows:
        """An input that is read while others change the model and call it for the first time."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            for thread in others:
                thread.start()
                thread.join(0.2)
            return ones

    run = threading.Thread(target=request.infer, args=[{"x": Rows(), "y": ones}], daemon=True)
    run.start()
    for thread in (run, *others):
        thread.join(10)
        assert not thread.is_alive()
