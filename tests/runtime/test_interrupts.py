"""An interrupt may occur anywhere in a call: the request works afterwards, and its state is that before or after."""

import dis
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="the traces of Python 3.12 and 3.13 leave out instructions"
)

CHECKED = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "RESUME", "JUMP_BACKWARD"}
"""The instructions after which the interpreter looks for signals."""
EVERY_PLACE = ("compiled.py", "state.py", "executor.py", "executor_cache.py", "unbound_calls.py", "step_binder.py")
MOST_PLACES = 100
_instructions: dict[CodeType, dict[int, str]] = {}


class Interrupts:
    """Raises KeyboardInterrupt in ovir's code, at the n-th place where a signal can be noticed; without n, counts
    them."""

    def __init__(self, at: int | None = None, of_files: tuple[str, ...] = EVERY_PLACE) -> None:
        self.at, self.count, self.files = at, 0, of_files

    def __enter__(self) -> "Interrupts":
        self.before = sys.gettrace()
        sys.settrace(self.enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def enter(self, frame: FrameType, event: str, what: object) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.endswith(self.files):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        previous = ""

        def see(frame: FrameType, event: str, what: object) -> Callable[..., Any]:
            nonlocal previous
            if event == "opcode":
                if previous in CHECKED:
                    self.count += 1
                    if self.count == self.at:
                        sys.settrace(None)
                        raise KeyboardInterrupt
                if frame.f_code not in _instructions:
                    _instructions[frame.f_code] = {i.offset: i.opname for i in dis.get_instructions(frame.f_code)}
                previous = _instructions[frame.f_code].get(frame.f_lasti, "")
            return see

        return see


def sums(shape: list[int], size: int) -> ovir.Model:
    """A model with two variables: a sum of all inputs, and a number of them that is always the first's count."""
    x = ops.parameter(shape, "f32", name="x")
    total = ops.add(ops.read_value(ops.constant(np.zeros(size, np.float32)), "total", "f32", [size]), x)
    count = ops.add(ops.read_value(ops.constant(np.float32([0])), "count", "f32", [1]), ops.constant(np.float32([1])))
    sinks = [ops.assign(total, "total"), ops.assign(count, "count")]
    return ovir.Model(
        [ops.multiply(total, ops.constant(np.float32([2])), name="twice"), count], [x], "sums", sinks=sinks
    )


def growing() -> ovir.Model:
    x = ops.parameter([-1], "f32", name="x")
    past = ops.read_value(ops.constant(np.zeros(0, np.float32)), "past", "f32", [-1])
    both = ops.concat([past, x], 0)
    return ovir.Model([ops.relu(both, name="twice")], [x], "growing", sinks=[ops.assign(both, "past")])


def elementwise(shape: list[int]) -> ovir.Model:
    x = ops.parameter(shape, "f32", name="x")
    part = ops.reshape(ops.softmax(ops.relu(x), 0), ops.constant(np.int64([-1])), False)
    return ovir.Model([ops.multiply(part, ops.constant(np.float32([2])), name="twice"), x], [x], "plain")


LARGE = 70_000
"""Elements of an input that steps read where the caller has it."""
MODELS: dict[str, tuple[Callable[[], ovir.Model], int]] = {
    "static": (lambda: elementwise([3]), 3),
    "dynamic": (lambda: elementwise([-1]), 3),
    "lent": (lambda: elementwise([LARGE]), LARGE),
    "variables": (lambda: sums([3], 3), 3),
    "dynamic variables": (lambda: sums([-1], 3), 3),
    "a value that grows": (growing, 3),
}
MODES: dict[str, dict[str, Any]] = {"plain": {}, "taps": {"taps": ["twice"]}, "shared": {"share_outputs": True}}


def state_of(request: ovir.InferRequest) -> list[Any]:
    return [variable.value for variable in request.query_state()]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("calls_before", [0, 1, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MODELS)
def test_a_request_works_after_an_interrupt(name: str, mode: str, calls_before: int) -> None:
    make, size = MODELS[name]
    compiled = ovir.compile_model(make())
    arrays = [np.random.default_rng(seed).integers(-9, 9, size).astype(np.float32) for seed in range(calls_before + 3)]
    expected: list[tuple[list[Any], list[Any]]] = []  # results and states, with none and then one run more

    def before(request: ovir.InferRequest) -> list[Any]:
        for array in arrays[:calls_before]:
            request.infer([array], **MODES[mode])
        return state_of(request)

    for runs in (0, 1):
        request = compiled.create_infer_request()
        before(request)
        for _ in range(runs):
            request.infer([arrays[-1]])
        state = state_of(request)
        expected.append((list(request.infer([arrays[-2]]).values()), state))
    request = compiled.create_infer_request()
    before(request)
    with Interrupts() as places:
        request.infer([arrays[-1]], **MODES[mode])
    step = max(places.count // MOST_PLACES, 1) | 1
    interrupted = 0
    for place in range(1, places.count + 1, step):
        request = compiled.create_infer_request()
        before(request)
        with suppress(KeyboardInterrupt), Interrupts(place):
            request.infer([arrays[-1]], **MODES[mode])
            continue  # the plans that the first call has made are there already
        interrupted += 1
        state = state_of(request)
        found = next((results for results, after in expected if same(state, after)), None)
        assert found is not None, (place, state)
        assert same(list(request.infer([arrays[-2]]).values()), found), place
    assert interrupted > 20


def test_other_threads_may_run_and_change_the_model_after_an_interrupt() -> None:
    model = elementwise([-1])
    compiled = ovir.compile_model(model)
    request, x = compiled.create_infer_request(), np.float32([1, 2, 3])
    expected = list(request.infer([x]).values())
    with Interrupts() as places:
        request.infer([x])
    for place in range(1, places.count + 1):
        with suppress(KeyboardInterrupt), Interrupts(place):
            request.infer([x])
        found: list[Any] = []
        works = [lambda: model.reshape([-1]), lambda found=found: found.append(request.infer([x]))]
        for work in works:
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            thread.join(10)
            assert not thread.is_alive(), place
        assert same(list(found[0].values()), expected), place
