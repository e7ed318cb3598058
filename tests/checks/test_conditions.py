"""What is known of a loop without running it: intervals, against all numbers in them, and limits, against its iterations."""

from collections.abc import Callable
from functools import partial
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from support.bodies import choice

import ovir
from ovir import opset13 as ops
from ovir.checks.conditions import Bound, Ending, bound_of_layer, ending

ENDS = (-inf, -3.0, 0.0, 2.0, 5.0, inf)
INTERVALS = [(low, high) for low in ENDS for high in ENDS if low <= high and (low < inf and high > -inf)]
NUMBERS = np.float64([-100, *np.arange(-3, 5.5, 0.5), 100])


def numbers_in(interval: tuple[float, float]) -> np.ndarray:
    return NUMBERS[(interval[0] <= NUMBERS) & (interval[1] >= NUMBERS)]


def require_interval(
    layer: ovir.Layer, intervals: tuple[tuple[float, float], ...], arrays: list[np.ndarray], slack: float | None
) -> None:
    """Compare the interval of the outputs for intervals of the inputs with the outputs for all numbers in these.

    Nothing may lie outside. If the inputs are bounded, at most ``slack`` of the interval may be too much, if it is given.
    """
    found = bound_of_layer(layer, [Bound(*interval) for interval in intervals], {})
    types = [port.type for port in layer.inputs], [port.type for port in layer.outputs]
    with np.errstate(all="ignore"):
        outputs = layer.operator.applied(*types).run(*arrays).astype(np.float64)
    if (outputs := outputs[~np.isnan(outputs)]).size:
        low, high = outputs.min(), outputs.max()
        assert found.low <= low
        assert found.high >= high
        if slack is not None and np.isfinite(intervals).all():
            assert found.low >= low - slack
            assert found.high <= high + slack


EXACT = (ops.add, ops.subtract, ops.multiply, ops.maximum, ops.minimum, ops.squared_difference)
LOOSE: dict[Callable[..., ovir.Layer], Callable[[tuple[float, float], tuple[float, float]], bool]] = {
    ops.power: lambda a, b: a[0] >= 0,
    ops.divide: lambda a, b: b[0] > 0,
    ops.floor_mod: lambda a, b: a[1] - a[0] >= b[1] and b[0] > 0,
    ops.mod: lambda a, b: a[1] >= b[1] and a[1] - a[0] >= b[1] and b[0] > 0 and (a[0] >= 0 or a[0] <= -b[1]),
}
"""When no better interval is possible for these operations, or one that is better by 1."""
COMPARISONS = (ops.less, ops.less_equal, ops.greater, ops.greater_equal, ops.equal, ops.not_equal)


@pytest.mark.parametrize("function", [*EXACT, *LOOSE, *COMPARISONS], ids=lambda f: f.__name__)
def test_intervals_of_two_numbers(function: Callable[..., ovir.Layer]) -> None:
    layer = function(ops.parameter([1], "f64"), ops.parameter([1], "f64"))
    for a, b in product(INTERVALS, INTERVALS):
        arrays = [numbers_in(a)[:, np.newaxis], numbers_in(b)[np.newaxis]]
        is_tight = function not in LOOSE or LOOSE[function](a, b)
        require_interval(layer, (a, b), arrays, 1.0 * (function in (ops.mod, ops.floor_mod)) if is_tight else None)


@pytest.mark.parametrize("function", [*EXACT, *LOOSE, *COMPARISONS], ids=lambda f: f.__name__)
def test_intervals_of_two_integers(function: Callable[..., ovir.Layer]) -> None:
    layer = function(ops.parameter([1], "i64"), ops.parameter([1], "i64"))
    for a, b in product(INTERVALS, INTERVALS):
        one, other = (
            np.intersect1d(numbers_in(interval), [-3, -2, -1, 1, 2, 3, 5]).astype(np.int64) for interval in (a, b)
        )
        require_interval(layer, (a, b), [one[:, np.newaxis], other[np.newaxis]], None)


UNARY: dict[str, tuple[Callable[[ovir.Layer], ovir.Layer], float | None]] = {
    "Abs": (ops.abs, 0),
    "ReLU": (ops.relu, 0),
    "Exp": (ops.exp, 0),
    "Floor": (ops.floor, 0),
    "Negative": (ops.negative, None),
    "Sigmoid": (ops.sigmoid, 1),
    "Cos": (ops.cos, 2),
    "Clamp": (lambda x: ops.clamp(x, -2.0, 3.0), 0),
    "Convert to i32": (lambda x: ops.convert(x, "i32"), 0),
    "Convert to boolean": (lambda x: ops.convert(x, "boolean"), 0),
    "Convert to f16": (lambda x: ops.convert(x, "f16"), 0),
    "ReduceMean": (lambda x: ops.reduce_mean(x, [1], True), 0),
    "ReduceSum": (lambda x: ops.reduce_sum(x, [1], True), 0),
    "CumSum": (lambda x: ops.cum_sum(x, 1), None),
    "Pad": (lambda x: ops.pad(x, [0, 1], [0, 0], "constant", np.float64(7)), None),
    "Concat": (lambda x: ops.concat([x, x], 1), 0),
    "Unsqueeze": (lambda x: ops.unsqueeze(x, [0]), 0),
}


@pytest.mark.parametrize("name", UNARY)
def test_intervals_of_one_number(name: str) -> None:
    make, slack = UNARY[name]
    for interval in INTERVALS:
        rows = np.stack(np.meshgrid(numbers_in(interval), numbers_in(interval)), -1).reshape(-1, 2)
        layer = make(ops.parameter(list(rows.shape), "f64"))
        constants = [port.source.layer.operator.data for port in layer.inputs[1:] if port.source.layer.type == "Const"]
        arrays = [rows, rows] if name == "Concat" else [rows, *constants]
        require_interval(layer, (interval,) * len(arrays), arrays, slack)


@pytest.mark.parametrize(("low", "high", "ends"), [(1, 5, (0, inf)), (-5, 0, (-inf, 0)), (-1, 1, (-inf, inf))])
@pytest.mark.parametrize("make", [lambda x: ops.reduce_sum(x, [0], True), lambda x: ops.cum_sum(x, 0)])
def test_sums_of_unknown_sizes(
    make: Callable[..., ovir.Layer], low: float, high: float, ends: tuple[float, float]
) -> None:
    found = bound_of_layer(make(ops.parameter([-1], "f64")), [Bound(low, high), Bound(0, 0)], {})
    assert (found.low, found.high) == ends


BOOLEANS = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]


@pytest.mark.parametrize("function", [ops.logical_and, ops.logical_or, ops.logical_xor], ids=lambda f: f.__name__)
def test_intervals_of_conditions(function: Callable[..., ovir.Layer]) -> None:
    layer = function(ops.parameter([1], "boolean"), ops.parameter([1], "boolean"))
    for a, b in product(BOOLEANS, BOOLEANS):
        require_interval(layer, (a, b), [np.unique(a).astype(bool)[:, None], np.unique(b).astype(bool)[None]], 0.0)


def test_intervals_of_a_choice() -> None:
    layer = ops.select(ops.parameter([1], "boolean"), ops.parameter([1], "f64"), ops.parameter([1], "f64"))
    for c, a, b in product(BOOLEANS, INTERVALS, INTERVALS):
        arrays = [np.unique(c).astype(bool)[:, None, None], numbers_in(a)[:, None], numbers_in(b)]
        require_interval(layer, (c, a, b), arrays, 0.0)


# --------------------------------------------------------------------------- iterations


State = tuple[ovir.Layer, Callable[..., ovir.Layer] | None, str]
"""The initial value of a parameter of the body, the function that changes it, and how the layer feeds it."""


def ending_of(condition: Callable[..., ovir.Layer], *states: State, trips: ovir.Layer | int = -1) -> Ending:
    """Return the ending of a Loop with a condition of its states, after the trip count if there is one."""
    inputs = [
        ops.parameter([1] if how == "sliced" else [], str(value.outputs[0].element_type)) for value, _, how in states
    ]
    news = [ops.result(change(*inputs)) for _, change, _ in states if change is not None]
    body = ovir.Model([*news, ops.result(condition(*inputs))], inputs)
    made = ops.loop(np.int64(trips) if isinstance(trips, int) else trips, np.array(True))
    made.set_function(body)
    counter = next((index for index, (_, _, how) in enumerate(states) if how == "counter"), -1)
    made.set_special_body_ports([counter, len(news)])
    results = iter(news)
    for parameter, (value, change, how) in zip(inputs, states, strict=True):
        if change is not None:
            made.set_merged_input(parameter, value, next(results))
        elif how == "sliced":
            made.set_sliced_input(parameter, value, 0, 1, 1, -1, 0)
        elif how != "counter":
            made.set_invariant_input(parameter, value)
    made.get_iter_value(body.outputs[-1].layer, -1)
    return ending(made)


def starting(value: float, change: Callable[..., ovir.Layer], kind: str = "i64") -> State:
    return ops.constant(value, kind), change, "merged"


def counting(
    condition: Callable[[ovir.Layer], ovir.Layer],
    start: int,
    step: int,
    kind: str = "i64",
    trips: ovir.Layer | int = -1,
    function: Callable[..., ovir.Layer] = ops.add,
) -> Ending:
    """Return the ending of a Loop, by default without trip count, whose counter begins with ``start``."""
    return ending_of(condition, starting(start, lambda i: function(i, ops.constant(step, kind)), kind), trips=trips)


COMPARED = {
    ops.less: np.less,
    ops.less_equal: np.less_equal,
    ops.greater: np.greater,
    ops.greater_equal: np.greater_equal,
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["i", "i + 2", "2 + i", "i - 2", "limit first", "not", "reshaped"])
@pytest.mark.parametrize("function", COMPARED, ids=lambda f: f.__name__)
def test_the_iterations_of_a_counter(function: Callable[..., ovir.Layer], form: str) -> None:
    more = {"i + 2": 2, "2 + i": 2, "i - 2": -2}.get(form, 0)

    def condition(i: ovir.Layer, limit: int) -> ovir.Layer:
        two, end = np.int64(2), np.int64(limit)
        i = {
            "i + 2": lambda: ops.add(i, two),
            "2 + i": lambda: ops.add(two, i),
            "i - 2": lambda: ops.subtract(i, two),
            "reshaped": lambda: ops.squeeze(ops.tile(ops.unsqueeze(i, [0]), [1]), [0]),
        }.get(form, lambda: i)()
        found = function(end, i) if form == "limit first" else function(i, end)
        return ops.logical_not(found) if form == "not" else found

    def holds(i: int, limit: int) -> bool:
        numbers = (limit, i) if form == "limit first" else (i + more, limit)
        return bool(COMPARED[function](*numbers)) is not (form == "not")

    for start, step, limit in product((-4, 3), (-3, 1, 2), (-7, 0, 8)):
        count = 1
        while count < 100 and holds(start + step * (count - 1), limit):
            count += 1
        found = counting(partial(condition, limit=limit), start, step)
        if holds(start + step * 100, limit):  # perhaps not in the first iteration
            assert bool(found.endless) == (count == 100), (start, step, limit, found)
        else:
            assert found == Ending(count), (start, step, limit)


@pytest.mark.parametrize(
    ("function", "kind", "limit", "count"),
    [
        (ops.less, "u8", 206, 6),
        (ops.less, "u8", 207, None),
        (ops.less_equal, "u8", 205, 6),
        (ops.less_equal, "u8", 206, None),
        (ops.less, "f32", 206, None),  # it may stand still where it is rounded
    ],
)
def test_a_counter_that_may_wrap_around_limits_nothing(
    function: Callable[..., ovir.Layer], kind: str, limit: int, count: int | None
) -> None:
    found = counting(lambda i: function(i, ops.constant(limit, kind)), 0, 50, kind)
    assert found == (Ending(1, is_limited=False) if count is None else Ending(count))


@pytest.mark.parametrize(
    ("function", "kind", "start", "step", "limit", "is_known"),
    [
        (ops.greater_equal, "i8", 0, 1, 0, True),
        (ops.greater_equal, "i16", -5, 7, -9, True),
        (ops.less, "i8", 0, -3, 100, True),
        (ops.less_equal, "i8", 3, -2, 120, True),
        (ops.less, "i8", 0, -3, 126, False),  # whether it is above 126 after that depends on where it begins
        (ops.greater_equal, "i32", 0, 1, 0, False),  # after more iterations than anybody waits for
    ],
)
def test_a_counter_that_leaves_its_type_wraps_around(
    function: Callable[..., ovir.Layer], kind: str, start: int, step: int, limit: int, is_known: bool
) -> None:
    dtype = np.dtype(kind.replace("i", "int"))
    numbers = (np.arange(100_000) * step + start).astype(dtype)
    count = int(np.argmin(COMPARED[function](numbers, dtype.type(limit)))) + 1
    found = counting(lambda i: function(i, ops.constant(limit, kind)), start, step, kind)
    assert found == (Ending(count) if is_known else Ending(1, is_limited=False))


def doubt(i: ovir.Layer) -> ovir.Layer:
    return ops.less(ops.cos(ops.convert(i, "f32")), np.float32(0.5))


YES, NO = np.array(True), np.array(False)


def chosen(condition: ovir.Layer, *values: Any) -> ovir.Layer:
    """Return an If of two booleans."""
    layers = (ops.constant(value) if value is YES or value is NO else value for value in values)
    return choice(condition, lambda then, other: then, lambda then, other: other, *layers)


@pytest.mark.parametrize("choose", [ops.select, chosen])
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (lambda i, choose: choose(ops.less(i, np.int64(5)), YES, NO), 6),
        (lambda i, choose: choose(ops.less(i, np.int64(5)), ops.less(i, np.int64(3)), NO), 4),
        (lambda i, choose: choose(doubt(i), ops.less(i, np.int64(5)), NO), 6),
        (lambda i, choose: choose(doubt(i), ops.less(i, np.int64(5)), ops.less(i, np.int64(8))), 9),
        (lambda i, choose: choose(doubt(i), ops.less(i, np.int64(5)), YES), None),
        (lambda i, choose: ops.logical_not(choose(doubt(i), YES, ops.greater_equal(i, np.int64(5)))), 6),
        (lambda i, choose: ops.logical_not(choose(ops.greater(i, np.int64(5)), YES, doubt(i))), 7),
    ],
)
def test_the_iterations_of_a_choice(condition: Callable[..., ovir.Layer], count: int | None, choose: Any) -> None:
    found = counting(lambda i: condition(i, choose), 0, 1)
    assert found == (Ending(1, is_limited=False) if count is None else Ending(count))


@pytest.mark.parametrize("function", [ops.minimum, ops.maximum, lambda i, step: ops.floor_mod(i, step)])
def test_a_state_that_stays_within_its_bounds_ends_nothing(function: Callable[..., ovir.Layer]) -> None:
    found = counting(
        lambda i: ops.logical_and(ops.less(i, np.int64(9)), ops.greater(i, np.int64(-9))), 5, 5, function=function
    )
    assert "always true" in found.endless


def bounded(function: Callable[..., ovir.Layer], bound: int) -> ovir.Layer:
    return function(ops.parameter([], "i64"), np.int64(bound))


@pytest.mark.parametrize(
    ("trips", "expected"),
    [
        (0, 0),
        (1_000_000, 1_000_000),
        (1_000_001, 1_000_001),
        (-1, None),
        (bounded(ops.minimum, -1), None),
        (bounded(ops.minimum, 0), 1),  # the input decides whether there is a limit
        (bounded(ops.minimum, 9), 1),
        (bounded(ops.maximum, 1_000_000), 1),
        (bounded(ops.maximum, 1_000_001), 1_000_001),
    ],
)
def test_the_iterations_of_a_trip_count(trips: ovir.Layer | int, expected: int | None) -> None:
    found = counting(lambda i: ops.constant(np.array(True)), 0, 1, trips=trips)
    assert (found.count, bool(found.endless)) == (1 if expected is None else expected, expected is None)


# --------------------------------------------------------------------------- states


def given(kind: str = "i64", *shape: int) -> ovir.Layer:
    return ops.parameter(list(shape), kind)


def fixed(value: ovir.Layer) -> State:
    return value, None, "fixed"


ONE_SOURCE = given()
ALWAYS, SAME, OPEN = "always true", "the same in each iteration", "not limited"
TEN = np.int64(10)
STATES: dict[str, tuple[Callable[..., ovir.Layer], list[State], str | int]] = {
    "two parameters of one source": (ops.equal, [fixed(ONE_SOURCE), fixed(ONE_SOURCE)], ALWAYS),
    "two parameters of two sources": (ops.equal, [fixed(given()), fixed(given())], SAME),
    "a parameter and a state of one source": (ops.equal, [fixed(ONE_SOURCE), (ONE_SOURCE, lambda a, b: ops.sign(b), "")], OPEN),
    "two states of one source": (ops.equal, [(ONE_SOURCE, lambda a, b: ops.sign(a), ""), (ONE_SOURCE, lambda a, b: ops.sign(b), "")], OPEN),
    "a state that stays": (lambda a: ops.greater(a, TEN), [(given(), lambda a: a, "")], SAME),
    "slices": (lambda a: ops.squeeze(ops.greater(a, TEN), [0]), [(given("i64", 2_000_000), None, "sliced")], OPEN),
    "the number of the iteration": (lambda i: ops.less(i, TEN), [(given(), None, "counter")], 11),
    "the number of the iteration is not negative": (lambda i: ops.greater_equal(i, np.int64(0)), [(given(), None, "counter")], ALWAYS),
    "the number of the iteration is not positive": (lambda i: ops.greater(i, np.int64(0)), [(given(), None, "counter")], OPEN),
    "a state that shrinks": (lambda a: ops.less(a, TEN), [starting(5, lambda a: ops.subtract(a, np.int64(1)))], ALWAYS),
    "a state that shrinks, without wrapping": (lambda a: ops.less(a, np.float32(10)), [starting(5, lambda a: ops.subtract(a, np.float32(1)), "f32")], ALWAYS),
    "a state that grows, without wrapping": (lambda a: ops.greater(a, np.float32(4)), [starting(5, lambda a: ops.add(a, np.float32(1)), "f32")], ALWAYS),
    "a state that has another value later": (lambda a: ops.less(a, TEN), [starting(0, lambda a: ops.constant(np.int64(9)))], ALWAYS),
    "a state that has a larger value later": (lambda a: ops.less(a, TEN), [starting(0, lambda a: ops.constant(TEN))], OPEN),
    "a state of two values": (lambda a: ops.less(a, TEN), [starting(0, lambda a: ops.subtract(np.int64(9), a))], ALWAYS),
    "a difference from a counter": (lambda a: ops.less(np.int64(-100), ops.subtract(np.int64(2), a)), [starting(0, lambda a: ops.add(a, np.int64(1)))], OPEN),
    "a counter with itself": (lambda a: ops.less(ops.add(a, a), TEN), [starting(0, lambda a: ops.add(a, np.int64(1)))], OPEN),
    "the greater of two counters": (lambda a, b: ops.less(a, b), [starting(0, lambda a, b: ops.add(a, np.int64(2))), starting(5, lambda a, b: ops.add(b, np.int64(1)))], OPEN),
    "a counter up to an input": (lambda a, b: ops.less(a, b), [starting(0, lambda a, b: ops.add(a, np.int64(1))), fixed(given())], 1),
    "a counter from an input": (lambda a: ops.less(a, TEN), [(given(), lambda a: ops.add(a, np.int64(1)), "")], 1),
    "a counter down to an input": (lambda a, b: ops.greater(a, b), [starting(0, lambda a, b: ops.subtract(a, np.int64(1))), fixed(given())], 1),
    "a counter that begins beyond its end": (lambda a: ops.less(a, TEN), [starting(10, lambda a: ops.add(a, np.int64(1)))], 1),
    "one that begins before its end": (lambda a: ops.less(a, TEN), [starting(9, lambda a: ops.add(a, np.int64(1)))], 2),
    "an exclusive choice": (lambda a: ops.logical_xor(ops.less(a, TEN), ops.constant(np.array(True))), [starting(0, lambda a: ops.add(a, np.int64(1)))], OPEN),
    "a comparison with false": (lambda a: ops.logical_xor(ops.less(a, TEN), ops.constant(np.array(False))), [starting(0, lambda a: ops.add(a, np.int64(1)))], 11),
    "a condition or its threefold negation": (lambda a: ops.logical_or(doubt(a), negated(doubt(a), 3)), [starting(0, lambda a: ops.add(a, np.int64(1)))], ALWAYS),
    "a condition or its double negation": (lambda a: ops.logical_or(doubt(a), negated(doubt(a), 2)), [starting(0, lambda a: ops.add(a, np.int64(1)))], OPEN),
    "a condition and its threefold negation": (lambda a: ops.logical_and(doubt(a), negated(doubt(a), 3)), [starting(0, lambda a: ops.add(a, np.int64(1)))], 1),
    "a condition or its opposite": (lambda a: ops.logical_or(ops.less(a, TEN), ops.less_equal(TEN, a)), [(given(), lambda a: ops.sign(a), "")], ALWAYS),
    "computed twice, equal to itself": (lambda a: ops.equal(ops.cos(a), ops.cos(a)), [(given("f32"), lambda a: ops.sign(a), "")], ALWAYS),
    "computed twice, not unequal to itself": (lambda a: ops.logical_not(ops.not_equal(ops.cos(a), ops.cos(a))), [(given("f32"), lambda a: ops.sign(a), "")], ALWAYS),
    "a difference with itself": (lambda a: ops.less(ops.subtract(a, a), np.float32(1)), [(given("f32"), lambda a: ops.exp(a), "")], ALWAYS),
    "a square": (lambda a: ops.greater(ops.multiply(a, a), np.float32(-1)), [(given("f32"), lambda a: ops.exp(a), "")], ALWAYS),
    "a squared difference that wraps around": (lambda a: ops.greater_equal(ops.squared_difference(a, np.int64(0)), np.int64(0)), [starting(0, lambda a: ops.add(a, np.int64(1)))], OPEN),
    "a square that wraps around": (lambda a: ops.greater_equal(ops.multiply(a, a), np.int64(0)), [starting(0, lambda a: ops.add(a, np.int64(1)))], OPEN),
    "a power that wraps around": (lambda a: ops.greater_equal(ops.power(a, np.int64(2)), np.int64(0)), [starting(0, lambda a: ops.add(a, np.int64(1)))], OPEN),
    "a square of two values": (lambda a: ops.greater_equal(ops.multiply(a, a), np.int64(0)), [starting(0, lambda a: ops.subtract(np.int64(9), a))], ALWAYS),
    "a squared difference of two values": (lambda a: ops.greater_equal(ops.squared_difference(a, np.int64(3)), np.int64(0)), [starting(0, lambda a: ops.subtract(np.int64(9), a))], ALWAYS),
    "a choice that is always true": (lambda a: ops.select(doubt(a), ops.constant(np.array(True)), ops.less(ops.cos(ops.convert(a, "f32")), np.float32(9))), [(given(), lambda a: ops.sign(a), "")], ALWAYS),
    "a counter and a doubt": (lambda a: ops.logical_and(doubt(a), ops.greater(TEN, a)), [starting(0, lambda a: ops.add(a, np.int64(1)))], 11),
    "equal lists": (lambda a: equal_sums(64), [fixed(given())], ALWAYS),
    "long lists": (lambda a: equal_sums(65), [fixed(given())], SAME),
}  # fmt: skip


def negated(condition: ovir.Layer, times: int) -> ovir.Layer:
    for _ in range(times):
        condition = ops.logical_not(condition)
    return condition


def equal_sums(count: int) -> ovir.Layer:
    """Return whether two cosines of equal constants are equal."""
    one, other = (ops.reduce_max(ops.cos(ops.constant(np.arange(count, dtype=np.float32))), [0], False) for _ in "ab")
    return ops.equal(one, other)


@pytest.mark.parametrize("name", STATES)
def test_the_iterations_of_states(name: str) -> None:
    condition, states, expected = STATES[name]
    found = ending_of(condition, *states)
    if expected == OPEN:
        assert found == Ending(1, is_limited=False)
    elif isinstance(expected, int):
        assert found == Ending(expected)
    else:
        assert (found.count, f"its condition is {expected}," in found.endless) == (1, True), found
