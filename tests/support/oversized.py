"""Small models whose run takes terabytes or billions of iterations, because the file or the run decides a size; and
honest ones of the same kinds, in which the caller decides it, or something bounds it.

``OVERSIZED`` and ``MODEST`` have functions that return models. The gate reports one of ``CODES`` for the former.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import ovir
from ovir import opset10, opset11, opset15, opset16
from ovir import opset13 as ops
from support.bodies import choice

Numbers = Callable[..., ovir.Layer]
"""Returns a number as i64[1], perhaps computed from an input f32[1]."""

HUGE = 1 << 40
ONE = np.float32(1)

# --------------------------------------------------------------------------- parts


def data(shape: Sequence[int] = (1,), element_type: str = "f32", name: str = "x") -> ovir.Layer:
    return ops.parameter(list(shape), element_type, name=name)


def filled(value: float, count: int = 70_000) -> ovir.Layer:
    """Return a constant that is too large for inference to follow."""
    return ops.constant(np.full(count, value, np.float32))


def total(values: ovir.Layer) -> ovir.Layer:
    """Return the sum of a vector as i64[1]."""
    return ops.convert(ops.reduce_sum(values, [0], keep_dims=True), "i64")


def tensor_of(count: ovir.Layer) -> ovir.Layer:
    """Return a tensor of as many elements as an i64[1] says."""
    return ops.broadcast(ONE, count)


def square_of(count: ovir.Layer) -> ovir.Layer:
    return ops.broadcast(ONE, ops.concat([count, count], 0))


def integer(value: ovir.Layer) -> ovir.Layer:
    return ops.convert(value, "i64")


def scalar(value: ovir.Layer) -> ovir.Layer:
    return ops.reshape(value, np.empty(0, np.int64), False)


def uniform(high: object) -> ovir.Layer:
    """Return a random number of the type of ``high``, of shape [1]."""
    high = np.asarray(high)
    return ops.random_uniform([1], high.dtype.type(0), high, "i64" if high.dtype.kind == "i" else "f32", 1, 2)


def loop(
    trips: object, body: Callable[..., Sequence[ovir.Layer]], *state: ovir.Layer, until: int | None = None
) -> ovir.Layer:
    """Return a Loop whose body maps a state to the next one; open sizes may change. It goes on while the result
    ``until`` is true, or for ever."""
    shapes = [(str(x.outputs[0].element_type), [1 if n == 1 else -1 for n in x.outputs[0].shape]) for x in state]
    parameters = [ops.parameter(shape, kind, name=f"p{i}") for i, (kind, shape) in enumerate(shapes)]
    results = [ops.result(new) for new in body(*parameters)]
    more = results.pop(until) if until is not None else ops.result(ops.constant(np.array(True)))
    layer = ops.loop(trips if isinstance(trips, ovir.Layer) else np.int64(trips), True)  # type: ignore[call-overload]
    layer.set_function(ovir.Model([*results, more], parameters))
    layer.set_special_body_ports([-1, len(results)])
    for parameter, start, new in zip(parameters, state, results, strict=True):
        layer.set_merged_input(parameter, start, new)
    for new in results:
        layer.get_iter_value(new, -1)
    return layer


def branch(x: ovir.Layer, then: Callable[..., ovir.Layer], other: Callable[..., ovir.Layer]) -> ovir.Layer:
    """Return an If on the sum of f32 ``x``."""
    return choice(ops.greater(ops.reduce_sum(x, [0], keep_dims=False), np.float32(0)), then, other, x)


def doubled(x: ovir.Layer) -> ovir.Layer:
    return ops.concat([x, x], 0)


# --------------------------------------------------------------------------- constants that inference does not follow

SIZED: dict[str, Callable[[ovir.Layer, ovir.Layer], ovir.Layer]] = {
    "broadcast": lambda x, n: ops.broadcast(x, n),
    "range": lambda x, n: ops.range(np.int64(0), scalar(n), np.int64(1), "i64"),
    "pad": lambda x, n: ops.pad(x, [0], n, "constant", np.float32(0)),
    "one_hot": lambda x, n: ops.one_hot(integer(x), scalar(n), ONE, np.float32(0), -1),
    "tile": lambda x, n: ops.tile(x, n),
    "eye": lambda x, n: ops.eye(scalar(n), np.int64(4), np.int64(0), output_type="f32"),
    "multinomial": lambda x, n: ops.multinomial(ops.reshape(x, [1, 1], False), scalar(n), "i64", True, True),
    "segment_max": lambda x, n: opset16.segment_max(x, np.int64([0]), scalar(n), fill_mode="ZERO"),
    "scatter": lambda x, n: ops.broadcast(
        x, ops.scatter_elements_update(np.int64([1, 1]), np.int64([1]), n, np.int64(0))
    ),
}
"""Layers whose size a number decides."""


COMPUTED: dict[str, Callable[[], ovir.Layer]] = {
    "a_product": lambda: ops.reshape(
        integer(ops.matmul(filled(1e5, 5000), filled(1e5, 5000), False, False)), [1], False
    ),
    "a_running_sum": lambda: integer(
        ops.gather(ops.cum_sum(filled(1e8), np.int64(0)), np.int64([69_999]), np.int64(0))
    ),
    "the_place_of_the_largest": lambda: ops.multiply(
        ops.topk(ops.constant(np.arange(1 << 20, dtype=np.float32)), np.int64(1), 0, "max", "value", "i64").outputs[1],
        np.int64([1 << 20]),
    ),
    "the_length_of_a_string": lambda: ops.multiply(
        ops.reshape(integer(opset15.string_tensor_unpack(np.array(["x" * 2_000_000], object)).outputs[1]), [1], False),
        np.int64([1 << 20]),
    ),
    "the_bytes_of_strings": lambda: ops.multiply(
        ops.shape_of(opset15.string_tensor_unpack(np.array(["x" * 2_000_000], object)).outputs[2], "i64"),
        np.int64([1 << 20]),
    ),
    "the_count_of_distinct_numbers": lambda: ops.multiply(
        ops.shape_of(opset10.unique(ops.constant(np.arange(200_000, dtype=np.int32))).outputs[0], "i64"),
        np.int64([1 << 20]),
    ),
    "the_count_of_numbers_other_than_zero": lambda: ops.multiply(
        ops.gather(ops.shape_of(ops.non_zero(filled(1.0)), "i64"), np.int64([1]), np.int64(0)), np.int64([1 << 20])
    ),
    "the_initial_value_of_a_variable": lambda: ops.read_value(ops.constant(np.int64([HUGE])), "v", "i64", [1]),
    "the_shape_of_a_variable": lambda: ops.multiply(
        ops.shape_of(ops.read_value(np.zeros(4, np.float32), "v", "f32", [-1]), "i64"), np.int64([HUGE])
    ),
    "a_number_that_a_loop_doubles": lambda: loop(50, lambda n: [ops.add(n, n)], ops.constant(np.int64([1]))).outputs[0],
    "a_number_that_a_long_loop_doubles": lambda: loop(
        100_000, lambda n: [ops.add(n, n)], ops.constant(np.int64([1]))
    ).outputs[0],
    "numbers_that_a_loop_doubles": lambda: integer(
        ops.reduce_max(loop(60, lambda x: [ops.add(x, x)], filled(1.0, 9000)).outputs[0], [0], keep_dims=True)
    ),
    "a_random_number": lambda: uniform(np.int64(10**12)),
    "a_scaled_random_number": lambda: integer(ops.multiply(uniform(ONE), np.float32(1e12))),
    "a_sum_of_random_numbers": lambda: total(uniform(np.float32(1e12))),
    "a_random_number_of_a_loop": lambda: loop(
        3, lambda n: [uniform(np.int64(10**12))], ops.constant(np.int64([1]))
    ).outputs[0],
}
"""Numbers that the file or the run decides, as i64[1]."""

COMPUTED_OF_INPUT: dict[str, Callable[[ovir.Layer], ovir.Layer]] = {
    "a_clamped_number": lambda x: integer(ops.clamp(x, 1e12, 2e12)),
    "a_clamped_integer": lambda x: ops.clamp(integer(x), 1e12, 2e12),
    "the_largest_of_clamped_numbers": lambda x: integer(
        ops.reduce_max(ops.clamp(ops.broadcast(x, [70_000]), 1e12, 2e12), [0], keep_dims=True)
    ),
    "a_scaled_sigmoid": lambda x: integer(ops.multiply(ops.sigmoid(x), np.float32(1e12))),
    "zero_times_an_input": lambda x: integer(ops.add(ops.multiply(x, np.float32(0)), np.float32(1e12))),
    "zero_times_an_input_and_a_sum": lambda x: ops.add(integer(ops.multiply(x, np.float32(0))), total(filled(1e8))),
    "a_maximum": lambda x: ops.maximum(integer(x), np.int64([HUGE])),
    "a_sum_with_a_magnitude": lambda x: ops.add(integer(ops.relu(x)), np.int64([HUGE])),
    "a_choice": lambda x: ops.select(ops.greater(x, np.float32(0)), np.int64([HUGE]), np.int64([4])),
    "a_branch": lambda x: branch(
        x, lambda a: ops.constant(np.int64([HUGE])), lambda b: ops.constant(np.int64([4]))
    ).outputs[0],
    "a_row_of_a_table": lambda x: ops.gather(ops.constant(np.int64([1] * 9000 + [HUGE])), integer(x), np.int64(0)),
    "a_power": lambda x: integer(ops.power(ops.add(ops.sigmoid(x), np.float32(10)), np.float32(12))),
    "an_exponential": lambda x: integer(ops.exp(ops.multiply(ops.add(ops.tanh(x), np.float32(2)), np.float32(30)))),
    "a_scaled_byte": lambda x: ops.multiply(integer(ops.convert(x, "u8")), np.int64([1 << 34])),
    "a_scaled_boolean": lambda x: ops.multiply(integer(ops.convert(x, "boolean")), np.int64([HUGE])),
    "a_quotient": lambda x: integer(ops.divide(ops.clamp(x, 1e12, 2e12), np.float32(1.5))),
    "a_sum_of_clamped_numbers": lambda x: total(ops.clamp(ops.broadcast(x, [4]), 1e12, 2e12)),
    "a_mean_of_clamped_numbers": lambda x: integer(ops.reduce_mean(ops.clamp(x, 1e12, 2e12), [0], keep_dims=True)),
    "a_product_of_clamped_numbers": lambda x: integer(ops.reduce_prod(ops.clamp(x, 1e12, 2e12), [0], keep_dims=True)),
    "a_matrix_product_of_clamped_numbers": lambda x: ops.reshape(
        integer(ops.matmul(ops.clamp(ops.reshape(x, [1, 1], False), 1e12, 2e12), [[ONE]], False, False)), [1], False
    ),
    "a_squared_difference": lambda x: integer(ops.squared_difference(ops.sigmoid(x), np.float32(1e6))),
    "a_quantized_number": lambda x: integer(
        ops.fake_quantize(x, np.float32(0), ONE, np.float32(1e12), np.float32(2e12), 256)
    ),
    "a_value_of_one_hot": lambda x: ops.reduce_max(
        ops.one_hot(integer(x), np.int64(4), np.int64(HUGE), np.int64(HUGE), -1), [1], keep_dims=False
    ),
    "bits_that_are_set": lambda x: ops.bitwise_or(integer(ops.sigmoid(x)), np.int64([HUGE])),
    "a_scaled_sum_of_shares": lambda x: integer(
        ops.multiply(ops.reduce_sum(ops.softmax(ops.broadcast(x, [8]), 0), [0], keep_dims=True), np.float32(1e12))
    ),
    "a_product_that_wraps_around": lambda x: ops.convert(
        ops.multiply(ops.clamp(ops.convert(x, "i32"), 70_000, 70_001), np.int32([70_000])), "i64"
    ),
    "a_conversion_that_wraps_around": lambda x: ops.convert(
        ops.convert(ops.clamp(integer(x), 5e9, 5.1e9), "i32"), "i64"
    ),
    "a_number_that_a_loop_doubles_beside_an_input": lambda x: loop(
        50, lambda n, y: [ops.add(n, n), ops.add(y, y)], ops.constant(np.int64([1])), x
    ).outputs[0],
    "a_number_to_which_a_long_loop_adds_an_input": lambda x: loop(
        100_000,
        lambda n, y: [ops.add(ops.add(n, n), integer(ops.sigmoid(y))), y],
        ops.constant(np.int64([1])),
        x,
    ).outputs[0],
}
"""Numbers that depend on an input f32[1], but not in their size."""


# --------------------------------------------------------------------------- tensors that grow


def of_input(build: Callable[[ovir.Layer], ovir.Layer], *shape: int) -> ovir.Model:
    """Return the model of a layer that reads an input f32 of a shape, [1] unless it is given."""
    x = data(shape or (1,))
    return ovir.Model([build(x)], [x])


def grown_by_iterator(x: ovir.Layer) -> ovir.Layer:
    part, state = ops.parameter([1, 1], "f32"), ops.parameter([-1], "f32")
    new, used = ops.result(doubled(state)), ops.result(ops.relu(part))
    layer = ops.tensor_iterator()
    layer.set_body(ovir.Model([new, used], [part, state]))
    layer.set_sliced_input(part, ops.constant(np.ones((50, 1), np.float32)), 0, 1, 1, -1, 0)
    layer.set_merged_input(state, x, new)
    layer.get_iter_value(new, -1)
    layer.get_concatenated_slices(used, 0, 1, 1, -1, 0)
    return layer.outputs[0]


def counted(x: ovir.Layer, count: ovir.Layer) -> Sequence[ovir.Layer]:
    more = ops.add(count, np.int64(1))
    return doubled(x), more, ops.less(more, np.int64(60))


def inner_trips(next_trips: Callable[[ovir.Layer], ovir.Layer], trips: int) -> Callable[[ovir.Layer], ovir.Layer]:
    """Return a function that puts a loop into one that changes how often it runs."""

    def body(n: ovir.Layer, v: ovir.Layer) -> Sequence[ovir.Layer]:
        inner = loop(n, lambda w: [ops.add(w, ONE)], v)
        return next_trips(n), inner.outputs[0]

    return lambda x: loop(trips, body, ops.constant(np.int64(1)), x).outputs[1]


GROWN: dict[str, Callable[[], ovir.Model]] = {
    "doubled by a Loop": lambda: of_input(lambda x: loop(50, lambda v: [doubled(v)], x).outputs[0], 4),
    "doubled by a longer Loop": lambda: of_input(lambda x: loop(200, lambda v: [doubled(v)], x).outputs[0], 4),
    "a constant doubled by a Loop": lambda: ovir.Model(
        [loop(50, lambda v: [doubled(v)], filled(1.0, 4)).outputs[0]], []
    ),
    "doubled by a TensorIterator": lambda: of_input(grown_by_iterator, 4),
    "doubled by Loops within each other": lambda: of_input(
        lambda x: loop(7, lambda v: [loop(7, lambda w: [doubled(w)], v).outputs[0]], x).outputs[0], 4
    ),
    "doubled until a counter ends it": lambda: of_input(
        lambda x: loop(-1, counted, x, ops.constant(np.int64(0)), until=2).outputs[0], 4
    ),
    "doubled by an If in a Loop": lambda: of_input(
        lambda x: loop(60, lambda v: [branch(v, doubled, ops.relu).outputs[0]], x).outputs[0], 4
    ),
    "doubled by an If in a longer Loop": lambda: of_input(
        lambda x: loop(200, lambda v: [branch(v, doubled, ops.relu).outputs[0]], x).outputs[0], 4
    ),
    "a row added in many iterations": lambda: of_input(
        lambda x: loop(900_000, lambda v: [ops.concat([v, filled(1.0, 1024)], 0)], x).outputs[0], 1024
    ),
    "broadcast by an If": lambda: of_input(
        lambda x: branch(x, lambda a: ops.broadcast(a, [HUGE]), lambda b: ops.broadcast(b, [4])).outputs[0]
    ),
    "as many iterations as a large sum": lambda: of_input(
        lambda x: loop(scalar(total(filled(1e8))), lambda v: [ops.add(v, v)], x).outputs[0]
    ),
    "as many iterations as a random number": lambda: of_input(
        lambda x: loop(scalar(uniform(np.int64(10**12))), lambda v: [ops.add(v, v)], x).outputs[0]
    ),
    "as many iterations as a quotient": lambda: of_input(
        lambda x: loop(scalar(COMPUTED_OF_INPUT["a_quotient"](x)), lambda v: [ops.add(v, v)], x).outputs[0]
    ),
    "an inner trip count that doubles": lambda: of_input(inner_trips(lambda n: ops.add(n, n), 50)),
    "an inner trip count that grows": lambda: of_input(
        lambda x: inner_trips(lambda n: ops.multiply(ops.add(n, np.int64(1)), np.int64(2)), 1000)(x)
    ),
    "sizes of an image": lambda: of_input(
        lambda x: opset11.interpolate(
            x, ops.concat([total(filled(1e2))] * 2, 0), "nearest", "sizes", axes=ops.constant(np.int64([2, 3]))
        ),
        *(1, 1, 4, 4),
    ),
    "scales of an image": lambda: of_input(
        lambda x: opset11.interpolate(
            x,
            ops.concat([ops.reduce_sum(filled(10.0), [0], keep_dims=True)] * 2, 0),
            "nearest",
            "scales",
            axes=ops.constant(np.int64([2, 3])),
        ),
        *(1, 1, 4, 4),
    ),
    "the output of a transposed convolution": lambda: of_input(
        lambda x: ops.convolution_backprop_data(
            x,
            np.ones((1, 1, 3, 3), np.float32),
            [1, 1],
            ops.concat([total(filled(10.0))] * 2, 0),
            [0, 0],
            [0, 0],
            [1, 1],
        ),
        *(1, 1, 4, 4),
    ),
}

# --------------------------------------------------------------------------- strings

LONG = 1_000_000
COPIES = [40_000]


def long_string(length: int = LONG) -> ovir.Layer:
    return ops.constant(np.array(["x" * length], np.dtypes.StringDType()))


def packed(begins: object, ends: object, text: object = None) -> ovir.Layer:
    """Return strings made of ranges of a text, of ``LONG`` bytes unless it is given."""
    return opset15.string_tensor_pack(begins, ends, ops.constant(np.full(LONG, 97, np.uint8)) if text is None else text)


def index_of(x: ovir.Layer, shape: Sequence[int]) -> ovir.Layer:
    return ops.convert(ops.broadcast(x, list(shape)), "i32")


STRINGS: dict[str, Callable[[ovir.Layer], ovir.Layer]] = {
    "copies of a long string": lambda x: ops.broadcast(long_string(), COPIES),
    "copies of copies": lambda x: ops.tile(ops.broadcast(long_string(), [200]), [200]),
    "copies that an input chooses": lambda x: ops.gather(long_string(), index_of(x, COPIES), np.int64(0)),
    "copies of one of two strings": lambda x: ops.broadcast(
        ops.gather(ops.concat([long_string(), ops.constant(["short"])], 0), index_of(x, [1]), np.int64(0)), COPIES
    ),
    "strings of the same bytes": lambda x: packed(np.zeros(40_000, np.int32), np.full(40_000, LONG, np.int32)),
    "strings of bytes that an input chooses": lambda x: packed(index_of(x, COPIES), index_of(x, COPIES)),
    "strings of computed bytes": lambda x: packed(
        index_of(x, COPIES), index_of(x, COPIES), ops.convert(ops.broadcast(x, [LONG]), "u8")
    ),
    "copies of a string of computed bytes": lambda x: ops.broadcast(
        packed(index_of(x, [1]), index_of(x, [1]), ops.convert(ops.broadcast(x, [LONG]), "u8")), COPIES
    ),
    "copies of a long string in a branch": lambda x: branch(
        x, lambda a: ops.broadcast(long_string(), COPIES), lambda b: ops.broadcast(ops.constant(["short"]), COPIES)
    ).outputs[0],
    "copies of the long string of a branch": lambda x: ops.broadcast(
        branch(x, lambda a: long_string(), lambda b: ops.constant(["short"])).outputs[0], COPIES
    ),
    "a string doubled by a Loop": lambda x: loop(22, lambda v: [doubled(v)], long_string(LONG // 50)).outputs[0],
    "the bytes of copies": lambda x: opset15.string_tensor_unpack(ops.broadcast(long_string(), COPIES)).outputs[2],
}
"""Layers whose strings take gigabytes, of an input f32[1]."""

MODEST_STRINGS: dict[str, Callable[[ovir.Layer], ovir.Layer]] = {
    "copies of a short string": lambda x: ops.broadcast(ops.constant(["short"]), [1_000_000]),
    "words of a packed vocabulary": lambda x: ops.gather(
        packed(np.arange(100_000, dtype=np.int32) * 5, np.arange(100_000, dtype=np.int32) * 5 + 5),
        index_of(x, [1000]),
        np.int64(0),
    ),
    "words of a vocabulary": lambda x: ops.gather(
        ops.constant(np.array(["word"] * 50_000 + ["x" * 20_000], np.dtypes.StringDType())),
        index_of(x, [1000]),
        np.int64(0),
    ),
    "one long string": lambda x: ops.concat([long_string(), ops.broadcast(ops.constant(["a"]), [100])], 0),
}

Model = Callable[[], ovir.Model]

OVERSIZED: dict[str, Model] = {
    **{
        f"a large sum decides {name}": lambda build=build: of_input(lambda x: build(x, total(filled(1e8))))
        for name, build in SIZED.items()
    },
    **{
        f"{name} as a size": lambda number=number: ovir.Model([tensor_of(number())], [])
        for name, number in COMPUTED.items()
    },
    **{
        f"{name} as a size": lambda number=number: of_input(lambda x: tensor_of(number(x)))
        for name, number in COMPUTED_OF_INPUT.items()
    },
    **{name: lambda build=build: of_input(build) for name, build in STRINGS.items()},
    **GROWN,
}
CODES = {"OVIR007", "OVIR008", "OVIR015", "OVIR017"}
"""The codes of sizes, iterations and runs."""

# --------------------------------------------------------------------------- honest models


def durations(x: ovir.Layer) -> ovir.Layer:
    """Return as many positions as a network predicts."""
    hidden = ops.sigmoid(ops.matmul(x, np.full((8, 8), 0.1, np.float32), False, False))
    steps = ops.ceiling(ops.exp(ops.matmul(hidden, np.ones((8, 1), np.float32), False, False)))
    return ops.range(np.int64(0), integer(ops.reduce_sum(steps, [0, 1, 2], keep_dims=False)), np.int64(1), "i64")


def padded(x: ovir.Layer) -> ovir.Layer:
    """Return an image whose sides are padded to multiples of 32."""
    beyond = ops.mod(ops.shape_of(x, "i64"), np.int64([32]))
    missing = ops.mod(ops.subtract(np.int64([0, 0, 32, 32]), beyond), np.int64([32]))
    return ops.pad(x, np.int64([0, 0, 0, 0]), missing, "constant", np.float32(0))


def decoded(x: ovir.Layer) -> ovir.Layer:
    """Return up to 64 tokens, until one is 0."""

    def step(state: ovir.Layer, tokens: ovir.Layer) -> Sequence[ovir.Layer]:
        hidden = ops.tanh(ops.matmul(state, np.ones((8, 8), np.float32), False, False))
        token = ops.topk(hidden, np.int64(1), 1, "max", "value", "i64").outputs[1]
        return hidden, ops.concat([tokens, token], 1), scalar(ops.not_equal(token, np.int64(0)))

    return loop(64, step, x, ops.constant(np.zeros((1, 1), np.int64)), until=2).outputs[1]


def cached(x: ovir.Layer) -> ovir.Layer:
    """Return the positions of a cache and its new part."""
    cache = ops.concat([ops.read_value(np.zeros((1, 0, 8), np.float32), "v", "f32", [1, -1, 8]), x], 1)
    count = ops.gather(ops.shape_of(cache, "i64"), np.int64(1), np.int64(0))
    return ops.range(np.int64(0), count, np.int64(1), "i64")


def zeros_like_product(x: ovir.Layer) -> ovir.Layer:
    y = ops.matmul(x, np.ones((8, 8), np.float32), False, False)
    return ops.add(y, ops.broadcast(np.float32(0), ops.shape_of(y, "i32")))


MODEST: dict[str, Model] = {
    "a size of a layer that refuses the chosen sizes": lambda: of_input(zeros_like_product, -1, -1),
    **{name: lambda build=build: of_input(build) for name, build in MODEST_STRINGS.items()},
    "many strings of an input": lambda: ovir.Model([ops.broadcast(text := data([1], "string"), [1_000_000])], [text]),
    "as many as an input says": lambda: of_input(lambda x: tensor_of(integer(x))),
    "at most as many as the type holds": lambda: of_input(
        lambda x: ops.relu(tensor_of(ops.clamp(integer(x), 1, 2**31 - 1)))
    ),
    "a small sum of many numbers": lambda: ovir.Model([tensor_of(total(filled(1e-3)))], []),
    "places of numbers": lambda: of_input(ops.non_zero, 100),
    "as many as a constant has other than zero": lambda: ovir.Model(
        [square_of(ops.gather(ops.shape_of(ops.non_zero(filled(0.0))), np.int64([1]), np.int64(0)))], []
    ),
    "places of random numbers": lambda: of_input(
        lambda x: ops.non_zero(ops.less(ops.random_uniform([4], np.float32(0), ONE, "f32", 1, 2), x))
    ),
    "a size of an input": lambda: of_input(
        lambda x: ops.broadcast(ONE, ops.concat([np.int64([1, 4]), ops.multiply(integer(x), np.int64([2]))], 0)), 2
    ),
    "a sequence that grows in a Loop": lambda: of_input(
        lambda x: loop(100, lambda v: [ops.concat([v, filled(1.0, 4)], 0)], x).outputs[0], 4
    ),
    "as many iterations as an input says": lambda: of_input(
        lambda x: loop(scalar(integer(x)), lambda v: [doubled(v)], ops.broadcast(x, [4])).outputs[0]
    ),
    "a recurrent network": lambda: of_input(
        lambda x: loop(20, lambda v: [ops.tanh(ops.add(v, ONE))], x).outputs[0], 1, 8
    ),
    "durations": lambda: of_input(durations, 1, 64, 8),
    "an image padded to a multiple": lambda: of_input(padded, 1, 3, -1, -1),
    "tokens until an end": lambda: of_input(decoded, 1, 8),
    "a cache of keys": lambda: of_input(cached, 1, -1, 8),
}
