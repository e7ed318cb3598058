"""RandomUniform and Multinomial."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.tensors import const

from ovir.core.element_types import ElementType, bf16, f16, f32, f64, i32, i64
from ovir.diagnostics.errors import OperatorError
from ovir.ops.random import (
    Multinomial,
    RandomUniform,
    _seed_sequence,
    mersenne_words,
    mersenne_words_of_seeds,
    philox_words,
)

# ----- the generators


@pytest.mark.parametrize(
    ("key", "counter", "position", "words"),
    [  # known answers of Random123 for philox4x32 with 10 rounds
        (0, 0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (2**64 - 1, 2**64 - 1, 2**64 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0x299F31D0A4093822, 0x0370734413198A2E, 0x85A308D3243F6A88, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_known_answers(key: int, counter: int, position: int, words: str) -> None:
    found = philox_words(key, counter, position, 1)
    assert " ".join(f"{word:08x}" for word in found) == words


def test_philox_gives_the_same_words_alone_and_among_others() -> None:
    words = philox_words(7, 2**40 + 3, 5, 70_000)
    for position in (0, 4095, 69_999):
        alone = philox_words(7, 2**40 + 3, 5 + position, 1)
        assert alone.tolist() == words[4 * position : 4 * position + 4].tolist()


def test_mersenne_twister_as_the_standard_seeds_it() -> None:
    # The standard requires 4123659995 as the 10000th word of the default seed.
    assert mersenne_words(5489, 10_000)[-1] == 4123659995
    assert mersenne_words(2**32 + 5489, 40_000)[9_999] == 4123659995


# ----- RandomUniform


def uniform(shape: list[int], low: float, high: float, element_type: ElementType, **attributes: Any) -> Any:
    op = RandomUniform(output_type=element_type, **attributes)
    inputs = const(shape), const(low, element_type), const(high, element_type)
    inferred = op.infer(*inputs)
    assert str(inferred) == f"{element_type}[{','.join(map(str, shape))}]"
    op.input_types, op.output_types = tuple(t.element_type for t in inputs), (inferred.element_type,)
    arrays = [t.constant for t in inputs]
    return op.run(*arrays)


@pytest.mark.parametrize(
    ("element_type", "shape", "span", "seeds", "expected"),
    [
        (f32, [2, 2], (0, 1), (150, 10), [0.7011236, 0.30539632, 0.93931055, 0.9456035]),
        (f64, [2, 2], (2, 10), (80, 100), [5.65927959, 4.23122376, 2.67008206, 2.36423758]),
        (i32, [2, 3], (50, 100), (80, 100), [65, 70, 56, 59, 82, 92]),
    ],
)
def test_philox_examples_of_the_specification(
    element_type: ElementType, shape: list[int], span: tuple[int, int], seeds: tuple[int, int], expected: list[float]
) -> None:
    found = uniform(shape, *span, element_type, global_seed=seeds[0], op_seed=seeds[1])
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-7)


@pytest.mark.parametrize("element_type", [f32, f64])
def test_pytorch_alignment_is_numpys_twister(element_type: ElementType) -> None:
    found = uniform([1000], 0, 1, element_type, global_seed=3, alignment="pytorch")
    generator = np.random.RandomState(3)
    words = generator.randint(0, 1 << 32, 2000, dtype=np.uint64)
    if element_type == f32:
        expected = (words[:1000] % 2**24) / 2**24
    else:
        expected = ((words[::2] << np.uint64(32)) | words[1::2]) % np.uint64(2**53) / 2**53
    assert np.array_equal(found, expected.astype(found.dtype))


@pytest.mark.parametrize("alignment", ["tensorflow", "pytorch"])
@pytest.mark.parametrize(
    ("element_type", "span"),
    [
        *[(t, (-3, 5)) for t in (f16, bf16, f32, f64, i32, i64)],
        *[(i32, (-(2**31), 2**31 - 1)), (i64, (-(2**62), 2**62)), (i64, (5, 2**40)), (i64, (-(2**63), 7))],
    ],
)
def test_numbers_fill_the_range(element_type: ElementType, span: tuple[int, int], alignment: str) -> None:
    numbers = uniform([20_001], *span, element_type, op_seed=1, alignment=alignment)
    if alignment == "pytorch" and span == (-(2**63), 7):
        span = -(2**63), 2**32 - 2**63  # as PyTorch does, of one word a number
    values = numbers.astype(np.float64)
    low, high = map(float, span)
    is_rounded = element_type in (f16, bf16)
    assert values.min() >= low
    assert values.max() <= high if is_rounded else values.max() < high
    share = np.histogram(values, 4, (low, high))[0] / values.size
    np.testing.assert_allclose(share, 0.25, atol=0.02)


def test_modulo_of_integers_is_exact() -> None:
    words = philox_words(4, 9, 0, 2)
    found = uniform([4], -10, 10, i64, global_seed=4, op_seed=9)
    expected = [(int(high) << 32 | int(low)) % 20 - 10 for low, high in words.reshape(-1, 2)]
    assert found.tolist() == expected
    assert uniform([8], -10, 10, i32, global_seed=4, op_seed=9).tolist() == [int(word) % 20 - 10 for word in words]


def test_a_scalar_and_an_empty_tensor() -> None:
    assert uniform([], 0, 1, f32, op_seed=1).shape == ()
    assert uniform([0, 3], 0, 1, f32, op_seed=1).shape == (0, 3)


def random_net(**attributes: Any) -> Net:
    net = Net()
    inputs = net.const([6]), net.const(0.0, "f32"), net.const(1.0, "f32")
    net.result(net.op("RandomUniform", *inputs, opset=8, output_type="f32", **attributes))
    return net


def test_a_compiled_model_goes_on_with_its_sequence() -> None:
    compiled = random_net(global_seed=1, op_seed=2).compiled()
    first = compiled({})[0]
    second = compiled.create_infer_request().infer({})[0]
    assert not np.array_equal(first, second)
    # Six numbers take two groups of words, each of which leaves room for 255 more.
    words = philox_words(1, 2, 512, 2)[:6]
    assert np.array_equal(second, (words % 2**23 / 2**23).astype(np.float32))
    assert np.array_equal(random_net(global_seed=1, op_seed=2).compiled()({})[0], first)


def test_pytorch_alignment_begins_anew_with_each_call() -> None:
    compiled = random_net(global_seed=1, alignment="pytorch").compiled()
    assert np.array_equal(compiled({})[0], compiled({})[0])


@pytest.mark.parametrize("alignment", ["tensorflow", "pytorch"])
def test_without_seeds_numbers_differ(alignment: str) -> None:
    compiled = random_net(alignment=alignment).compiled()
    assert not np.array_equal(compiled({})[0], compiled({})[0])
    assert not np.array_equal(compiled({})[0], random_net(alignment=alignment).compiled()({})[0])


# ----- Multinomial


def sampled(probs: Any, count: int, element_type: ElementType = f32, **attributes: Any) -> Any:
    op = Multinomial(**{"convert_type": i32, "global_seed": 1, "op_seed": 2, **attributes})
    array = np.array(probs).astype(element_type.to_dtype())
    op.input_types, op.output_types = (element_type, i64), (op.convert_type,)
    return op.run(array, np.array([count]))


def test_seeds_are_read_modulo_2_to_the_32_and_weights_need_not_sum_to_1() -> None:
    few, same = [[0.125, 0.25, 0.125]], {"global_seed": 2**32 + 1, "op_seed": 2 - 2**32}
    assert (
        sampled(few, 40, with_replacement=True, **same).tolist()
        == sampled([[1, 2, 1]], 40, with_replacement=True).tolist()
    )


def test_samples_are_words_of_the_seeded_twister() -> None:
    # What std::mt19937 gives first after std::seed_seq{1, 2}, in steps of 1 / 4096.
    mersenne_words_of_seeds.cache_clear()
    _seed_sequence.cache_clear()
    found = sampled(np.ones((1, 4096)), 8, with_replacement=True)
    assert found.tolist() == [[3082, 3069, 1512, 662, 1729, 674, 221, 287]]
    assert sampled(np.ones((1, 4096)), 2, with_replacement=True, global_seed=2**32 + 1)[0, 0] == 3082
    assert not mersenne_words_of_seeds((1, 2), 8).flags.writeable


@pytest.mark.parametrize("element_type", [f16, bf16, f32, f64])
@pytest.mark.parametrize("log_probs", [False, True])
def test_classes_come_as_often_as_they_are_probable(element_type: ElementType, log_probs: bool) -> None:
    probs = np.array([[1, 0, 3], [0, 4, 4]])
    far = 500 if element_type in (f32, f64) else 0  # beyond what exp can hold
    rows = np.log(probs) + far if log_probs else probs
    found = sampled(rows, 8000, element_type, with_replacement=True, log_probs=log_probs, convert_type=i64)
    shares = np.stack([np.bincount(row, minlength=3) for row in found]) / 8000
    np.testing.assert_allclose(shares, [[0.25, 0, 0.75], [0, 0.5, 0.5]], atol=0.03)
    assert found.dtype == np.int64


def test_without_replacement_each_class_is_drawn_once() -> None:
    found = sampled(np.arange(1, 31).reshape(3, 10), 10, op_seed=5)
    assert np.sort(found, axis=1).tolist() == [list(range(10))] * 3
    assert sampled([[0, 1, 0, 1]], 2).tolist() in ([[1, 3]], [[3, 1]])


def test_every_call_gives_the_same_samples_unless_there_are_no_seeds() -> None:
    probs = np.ones((1, 1000))
    assert np.array_equal(sampled(probs, 9), sampled(probs, 9))
    unseeded = {"global_seed": 0, "op_seed": 0}
    assert not np.array_equal(sampled(probs, 9, **unseeded), sampled(probs, 9, **unseeded))
    assert sampled(probs, 0).shape == (1, 0)


@pytest.mark.parametrize(
    ("probs", "count", "attributes", "message"),
    [
        ([[1.0, 1.0], [0.0, 0.0]], 1, {}, "row 1 of probs must hold probabilities, and at least one must be above 0"),
        ([[0.0, 1.0], [1.0, np.nan]], 1, {"log_probs": True}, r"row 1 of probs must .* NaN or \+inf, and not all -inf"),
        ([[-np.inf, -np.inf]], 1, {"log_probs": True}, r"row 0 of probs .* not NaN or \+inf, and not all -inf"),
        ([[1.0, 0.0, 2.0]], 3, {}, "num_samples is 3, but row 0 of probs has only 2 classes to draw"),
        ([[]], 1, {}, r"probs of shape \[1,0\] has no classes to draw from"),
        ([[1.0]], -1, {}, "num_samples must not be negative, got -1"),
    ],
)
def test_multinomial_refuses_what_is_no_distribution(
    probs: Any, count: int, attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(OperatorError, match=message):
        sampled(probs, count, **attributes)


@pytest.mark.parametrize(("element_type", "digits"), [(f16, 10), (bf16, 7), (f32, 23), (f64, 52)])
def test_tensorflow_takes_the_low_bits_as_a_fraction(element_type: ElementType, digits: int) -> None:
    words = philox_words(4, 9, 0, 8).astype(object)
    if element_type == f64:
        words = words[::2] * 2**32 + words[1::2]
    found = uniform([16], 0, 1, element_type, global_seed=4, op_seed=9)
    assert found.astype(float).tolist() == [word % 2**digits / 2**digits for word in words[:16]]
