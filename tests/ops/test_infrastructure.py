"""Constants: the parts of their data, read from a file or held as an array."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.core.element_types import ElementType
from ovir.core.values import MAX_ELEMENTS
from ovir.ops.infrastructure import Const


def read(element_type: str, *shape: int) -> Const:
    """Return a constant of a file, with random bits that are a number of each type."""
    kind = ElementType.parse(element_type)
    net, size = Net(), int(np.prod(shape))
    raw = np.random.default_rng(size).integers(0, 60, -(-size * kind.bits // 8), np.uint8)
    net.blob += raw.tobytes()
    text = ",".join(map(str, shape))
    net.result(net.op("Const", element_type=element_type, shape=text, offset=0, size=raw.size))
    (layer,) = (layer for layer in net.model().layers if layer.type == "Const")
    assert isinstance(layer.operator, Const)
    return layer.operator


def held(element_type: str, *shape: int) -> Const:
    const = read(element_type, *shape)
    return Const.of(const.decoded(), const.element_type)


def same(one: Any, other: Any) -> bool:
    return np.array_equal(np.asarray(one).astype(np.float64), np.asarray(other).astype(np.float64), equal_nan=True)


@pytest.mark.parametrize("make", [read, held])
@pytest.mark.parametrize("shape", [(), (24,), (5, 3), (5, 8), (3, 2, 4), (0, 8), (2, 1)])
@pytest.mark.parametrize("element_type", ["u1", "u4", "i4", "u3", "nf4", "u8", "i32", "f16"])
def test_parts_of_a_constant_are_those_of_the_whole(make: Any, shape: tuple[int, ...], element_type: str) -> None:
    const, whole = make(element_type, *shape), make(element_type, *shape).data
    is_packed = element_type in ("u1", "u4", "i4", "u3", "nf4")
    assert const.is_packed == is_packed
    in_bytes = make is held or not is_packed or int(np.prod(shape[1:])) % 8 == 0
    assert const.has_slices == (bool(shape) and in_bytes)
    assert (const.stored() is None) == (make is held)
    if const.has_slices:
        for which in (slice(0, 2), np.arange(len(whole))[::-1]):
            assert same(const.slices(which), whole[which])
    for start, stop in ((0, whole.size), (8 * (whole.size > 8), min(13, whole.size)), (0, min(3, whole.size))):
        assert same(const.elements(start, stop), whole.reshape(-1)[start:stop])
    if make is read and is_packed:
        assert const._data is None  # nothing so far has decoded all of it
    assert same(const.data, whole)
    assert const.data is const.data
    assert const.decoded() is const.data
    assert not const.data.flags.writeable


def test_a_constant_of_a_file_is_copied_without_what_is_decoded() -> None:
    for const, has_data in ((read("i32", 3), False), (held("i32", 3), True)):
        assert const.data.size == 3
        assert ("_data" in const.__getstate__()) == has_data
        assert deepcopy(const).data is const.data
    assert same(pickle.loads(pickle.dumps(held("i32", 3))).data, held("i32", 3).data)


def test_a_constant_holds_an_array_or_a_copy_of_it() -> None:
    array = np.arange(3)
    for copy in (False, True):
        const = Const.of(array, copy=copy)
        assert np.shares_memory(const.data, array) != copy
        assert not const.data.flags.writeable
    assert array.flags.writeable
    assert (const.has_data, read("i32", 3).has_data, Const(element_type=const.element_type, shape=()).has_data) == (
        True,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("element_type", "size", "is_known"),
    [("f32", MAX_ELEMENTS + 1, True), ("u4", MAX_ELEMENTS, True), ("u4", MAX_ELEMENTS + 1, False)],
)
def test_much_that_is_packed_is_not_decoded_ahead(element_type: str, size: int, is_known: bool) -> None:
    assert read(element_type, size).infer().may_have_value == is_known
