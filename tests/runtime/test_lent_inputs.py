"""Large inputs, which steps read where the caller has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.runtime import executor
from ovir.runtime.step_binder import StepBinder

ROWS, COLUMNS = 600, 160  # 384,000 bytes of f32
MODELS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda x, i: ops.gather(x, i, ops.constant(np.int64(0))),
    "columns": lambda x, i: ops.gather(x, i, ops.constant(np.int64(1))),
    "elements": lambda x, i: ops.gather_elements(x, ops.broadcast(i, ops.shape_of(x)), 1),
    "elementwise": lambda x, i: ops.relu(ops.add(x, ops.convert(i, "f32"))),
    "product": lambda x, i: ops.matmul(x, x, False, True),
    "view": lambda x, i: ops.add(
        ops.reshape(x, ops.constant(np.array([COLUMNS, ROWS])), False), ops.constant(np.float32(1))
    ),
    "views of a view": lambda x, i: ops.softmax(
        ops.transpose(ops.transpose(x, ops.constant(np.array([1, 0]))), ops.constant(np.array([1, 0]))), 1
    ),
    "part": lambda x, i: ops.negative(ops.slice(x, *(ops.constant(np.array([n])) for n in (3, 500, 2, 0)))),
    "itself": lambda x, i: x,
    "sum of rows": lambda x, i: ops.reduce_sum(ops.concat([x, x], 1), ops.constant(np.array([0])), False),
}


def compiled(name: str, dtype: Any = np.float32) -> ovir.CompiledModel:
    x, i = ops.parameter([ROWS, COLUMNS], dtype, name="x"), ops.parameter([COLUMNS], "i64", name="i")
    return ovir.compile_model(ovir.Model([MODELS[name](x, i)], [x, i], name))


def inputs(random: np.random.Generator) -> list[Any]:
    return [random.standard_normal((ROWS, COLUMNS)).astype(np.float32), random.integers(0, COLUMNS, COLUMNS)]


def expected(name: str, arrays: list[Any]) -> Any:
    return compiled(name)(arrays)[0]


@pytest.fixture(params=["lent", "copied"])
def rule(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steps be bound again for each array, or to a copy from the second array on."""
    for name in ("_BYTES_PER_STEP", "_BYTES_PER_CALL"):
        monkeypatch.setattr(executor, name, 0 if request.param == "lent" else 1 << 30)


@pytest.mark.slow
@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_array_counts(name: str, share: bool) -> None:
    random = np.random.default_rng(0)
    request = compiled(name).create_infer_request()
    first, second = inputs(random), inputs(random)
    for arrays in (first, first, second, [second[0], first[1]], first):
        np.testing.assert_array_equal(request.infer(arrays, share_outputs=share)[0], expected(name, arrays))
    first[0] += 1  # in place
    np.testing.assert_array_equal(request.infer(first, share_outputs=share)[0], expected(name, first))
    read_only = first[0].copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(request.infer([read_only, first[1]], share_outputs=share)[0], expected(name, first))


def test_large_inputs_are_not_copied() -> None:
    """Copying the table would take a thousand times as long as picking a row of it."""
    table, i = ops.parameter([4096, 1024], "f32", name="table"), ops.parameter([2], "i64", name="i")
    request = ovir.compile_model(
        ovir.Model([ops.gather(table, i, ops.constant(np.int64(0)))], [table, i], "rows")
    ).create_infer_request()
    array = np.zeros((4096, 1024), np.float32)
    request.infer([array, np.array([1, 2])])
    (executor,) = request._bindings._bound.values()
    assert any(slot is array for slot in executor._slots)


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_error_or_interrupt_while_steps_are_bound_again(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(4)
    request = compiled("view").create_infer_request()
    first, second = inputs(random), inputs(random)
    request.infer(first)
    bind_again = StepBinder.bind_again

    def interrupted(binder: StepBinder, arrays: Any) -> None:
        bind_again(binder, arrays)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(StepBinder, "bind_again", interrupted)
        with pytest.raises((KeyboardInterrupt, ovir.RunError)):
            request.infer(second)
    np.testing.assert_array_equal(request.infer(second)[0], expected("view", second))
    np.testing.assert_array_equal(request.infer(first)[0], expected("view", first))


@pytest.mark.usefixtures("rule")
def test_unbound_steps_see_the_array_that_is_lent() -> None:
    x, mask = ops.parameter([ROWS, COLUMNS], "f32", name="x"), ops.parameter([4], "f32", name="mask")
    part = ops.slice(x, *(ops.constant(np.array([n])) for n in (2, 3, 1, 0)))  # a view, small enough to be bound to
    places = ops.convert(ops.reshape(ops.non_zero(mask, "i64"), np.array([-1, 1]), False), "f32")
    request = ovir.compile_model(ovir.Model([ops.add(places, part)], [x, mask], "counted")).create_infer_request()
    random, ones = np.random.default_rng(5), np.ones(4, np.float32)
    arrays = [inputs(random)[0] for _ in range(2)]
    for array in (*arrays, arrays[1], arrays[0], arrays[0]):
        np.testing.assert_array_equal(
            request.infer([array, ones])[0], np.arange(4, dtype=np.float32)[:, None] + array[2:3]
        )


def test_the_first_run_binds_each_step_once(monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[StepBinder] = []
    monkeypatch.setattr(StepBinder, "bind_again", lambda binder, inputs: again.append(binder))
    x = ops.parameter([300, 300], "f32", name="x")
    request = ovir.compile_model(ovir.Model([ops.relu(x)], [x], "model")).create_infer_request()
    data = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    np.testing.assert_array_equal(request.infer([data])[0], np.maximum(data, 0))
    assert not again
    request.infer([data.copy()])
    assert len(again) == 1


@pytest.mark.parametrize(
    ("build", "times"),
    [
        (lambda x: ops.gather(x, np.array([3, 1]), np.int64(0)), 4),
        (lambda x: ops.transpose(x, np.array([1, 0])), 4),
        (lambda x: ops.cum_sum(x, np.int64(0)), 1),
        (lambda x: ops.concat([ops.relu(part) for part in ops.split(x, np.int64(0), 4)], 0), 1),
    ],
    ids=["one call", "a view", "a call for each row", "several steps"],
)
def test_steps_are_bound_again_where_copying_takes_longer(
    build: Callable[[Any], Any], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[Any] = []
    bind_again = executor.Executor._bind_again
    monkeypatch.setattr(
        executor.Executor, "_bind_again", lambda own, lent: (bound.append(lent), bind_again(own, lent))[1]
    )
    x = ops.parameter([2048, 256], "f32", name="x")  # 2 MiB
    model = ovir.Model([build(x)], [x], "model")
    request = ovir.compile_model(model).create_infer_request()
    arrays = [np.random.default_rng(seed).standard_normal((2048, 256)).astype(np.float32) for seed in range(2)]
    expected = [ovir.compile_model(model)(array)[0] for array in arrays]
    for turn in (0, 0, 1, 0, 1, 0):
        np.testing.assert_array_equal(request.infer([arrays[turn]])[0], expected[turn])
    assert len(bound) == times
