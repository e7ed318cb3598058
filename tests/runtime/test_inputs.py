"""What becomes of the values that a user feeds."""

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.runtime import inputs


def identity(shape: str, element_type: str = "f32") -> Net:
    net = Net()
    net.result(net.parameter("x", shape, element_type))
    return net


def fed(element_type: str, value: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return identity("?", element_type).compiled()([value])[0]


@pytest.mark.parametrize(
    ("element_type", "value"),
    [
        ("i64", np.uint64([1, 2**63 - 1])),
        ("u64", np.int64([0, 2**63 - 1])),
        ("i8", np.int64([-128, 127])),
        ("u4", np.int32([0, 15])),
        ("i4", np.int32([-8, 7])),
        ("u1", np.int64([0, 1])),
        ("i4", np.array([0, 7], ml_dtypes.uint4)),
        ("f16", np.array([-8, 7], ml_dtypes.int4)),
        ("i32", [True, False]),
        ("f32", np.float64([1.5, -np.inf])),
        ("f32", np.array([1.5, -2], ">f4")),
        ("i16", np.array([1, -2], ">i8")),
        ("f16", np.int64([65504, -3])),
        ("bf16", np.float32([1.5, 3e38, np.nan])),
        ("f32", np.ma.masked_array([1.0, 2.0], mask=[False, False])),
    ],
)
def test_values_arrive(element_type: str, value: Any) -> None:
    expected = np.asarray(value).astype(np.float64)
    np.testing.assert_allclose(fed(element_type, value).astype(np.float64), expected, rtol=1e-2)


@pytest.mark.parametrize(
    ("element_type", "value", "lost"),
    [
        ("i64", np.uint64([1, 2**64 - 1]), 2**64 - 1),
        ("i64", [2**64 - 1], 2**64 - 1),
        ("u64", np.int64([-1]), -1),
        ("u8", np.int64([256]), 256),
        ("i4", np.int32([0, 8]), 8),
        ("i4", np.array([9], ml_dtypes.uint4), 9),
        ("u1", np.int64([2]), 2),
        ("u1", np.uint8([2]), 2),
        ("u6", np.uint8([64]), 64),
        ("nf4", np.uint8([3, 16]), 16),
        ("f32", np.float64([0, 1e300]), r"1e\+300"),
        ("f32", [0, -1e300], r"-1e\+300"),
        ("f16", np.float32([70000]), "70000"),
        ("f16", np.int64([70000]), "70000"),
        ("f8e4m3", np.float32([1000]), "1000"),
        ("f8e4m3", np.float32([np.inf]), "inf"),
        ("f8e8m0", np.float32([0]), "0.0"),
        ("f4e2m1", np.float32([6, 7.5]), "7.5"),
        ("f4e2m1", np.float32([np.nan]), "nan"),
        ("f4e2m1", np.int64([-1000]), "-1000"),
    ],
)
def test_values_that_the_type_cannot_hold(element_type: str, value: Any, lost: Any) -> None:
    with pytest.raises(ovir.InputError, match=f"is {element_type}, which cannot hold the value {lost}"):
        fed(element_type, value)


@pytest.mark.parametrize(
    "value",
    [["a", "é"], [b"a", "é".encode()], np.array(["a", "é".encode()], object), np.array([b"a", b"\xff"], object)],
)
def test_strings_arrive(value: Any) -> None:
    expected = [item if isinstance(item, str) else item.decode(errors="surrogateescape") for item in value]
    assert fed("string", value).tolist() == expected


def test_the_values_of_every_call_are_checked() -> None:
    compiled = identity("?", "u3").compiled()
    compiled([np.uint8([7])])
    with pytest.raises(ovir.InputError, match="is u3, which cannot hold the value 8 "):
        compiled([np.uint8([8])])


def test_integers_of_lists_are_exact() -> None:
    value = [2**64 - 1, 1, 2**63 + 1]  # NumPy makes real numbers of such a list
    assert fed("u64", value).tolist() == value
    with pytest.raises(ovir.InputError, match="9223372036854775809 is not a value of i64, which holds integers from "):
        fed("i64", [1, 2**63 + 1])
    with pytest.raises(ovir.InputError, match="1180591620717411303424 is not a value of u64"):
        fed("u64", 2**70)
    with pytest.raises(ovir.InputError, match="-1 is not a value of u64"):
        fed("u64", [2**64 - 1, -1])


@pytest.mark.parametrize(
    ("element_type", "value", "message"),
    [
        ("f4e2m1", np.float32([1, 1000, -8]), "input 'x' is f4e2m1, which cannot hold the value 1000.0 of the array of f32: 2 of the 3 values do not fit into -6 to 6"),
        ("f8e5m2", np.float64([1e6]), "cannot hold the value 1000000.0 of the array of f64: it does not fit into -57344 to 57344"),
        ("i4", np.int32([9, -9, 0]), "cannot hold the value 9 of the array of i32: 2 of the 3 values do not fit into -8 to 7"),
        ("u64", np.int64([-1, 1]), "value -1 of the array of i64: 1 of the 2 values does not fit into 0 to 18446744073709551615"),
    ],
)  # fmt: skip
def test_the_message_counts_them_and_names_the_range(element_type: str, value: Any, message: str) -> None:
    with pytest.raises(ovir.InputError) as caught:
        fed(element_type, value)
    assert message in str(caught.value)


def test_what_is_rounded_to_the_largest_number_is_held() -> None:
    assert fed("f4e2m1", np.float32([6.9, -7])).astype(np.float32).tolist() == [6, -6]


@pytest.mark.parametrize(
    ("element_type", "value", "message"),
    [
        ("f32", np.ma.masked_array([1.0, 2.0], mask=[True, False]), "values of the array are masked"),
        ("nf4", np.float32([0.5]), "takes nf4, got an array of f32"),
        ("i32", np.float32([1]), "takes i32, got an array of f32"),
        ("string", [1, 2], "takes string, got an array of"),
        ("f32", np.array([0.5], object), "takes f32, got an array of Python objects"),
        ("string", np.array(["a", 1], object), "takes string, got an array of"),
        ("string", np.array([b"a", None], object), "takes string, got an array of"),
    ],
)
def test_arrays_that_are_refused(element_type: str, value: Any, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        fed(element_type, value)


def test_inputs_are_named_by_ports_and_by_integers_of_numpy() -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("a", "?"), net.parameter("b", "?")))
    model = net.model()
    a, b = model.inputs
    one, two = np.float32([1]), np.float32([2])
    compiled = ovir.compile_model(model)
    for feeds in ({a: one, b: two}, {np.int64(0): one, np.uint8(1): two}, {a: one, 1: two}):
        np.testing.assert_array_equal(compiled(feeds)[0], [3])
    with pytest.raises(ovir.InputError, match=r"input 0 'a' is given twice, once as 0"):
        compiled({a: one, 0: two})
    with pytest.raises(ovir.InputError, match=r"no input <input 0 of"):
        compiled({model.outputs[0]: one})


def test_inputs_to_reshape_are_named_by_ports_and_by_integers_of_numpy() -> None:
    model = identity("?,?").model()
    model.reshape({model.inputs[0]: [np.int64(3), -1]})
    assert str(model.inputs[0].shape) == "[3,?]"
    model.reshape({np.int32(0): np.array([4, 5])})
    assert str(model.inputs[0].shape) == "[4,5]"
    for key in (model.outputs[0], False, np.int64(1), -1, None):
        with pytest.raises(ovir.InputError, match="the model has no input"):
            model.reshape({key: [1, 1]})


def test_messages_count_in_the_singular() -> None:
    with pytest.raises(ovir.InputError, match=r"2 values given for 1 input: 'x'"):
        identity("?").compiled()([[1.0], [2.0]])
    with pytest.raises(ovir.InputError, match=r"the input has 1 dimension, the array 2"):
        identity("?").compiled()([np.ones((2, 2), np.float32)])


A, B = np.ones((2, 3), np.float32), np.arange(4)
UNALIGNED = np.frombuffer(b"\0" + A.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("feeds", "is_known"),
    [
        ([A, B], True),
        ((A, B), False),
        ({"a": A, "b": B}, True),
        ({0: A, "b": B}, False),  # another key
        ([A.astype(np.float64), B], False),
        ([A, B[:3]], True),  # another shape that the input allows
        ([A.T.copy().T, B], False),
        ([UNALIGNED, B], False),
        ([A, B.tolist()], False),
    ],
)
def test_what_has_been_seen_is_not_collected_again(feeds: Any, is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    for end in (net.parameter("a", "2,3"), net.parameter("b", "?", "i64")):
        net.result(end)
    collected = []
    collect = inputs.collect_inputs
    monkeypatch.setattr(inputs, "collect_inputs", lambda *given: collected.append(given) or collect(*given))
    compiled = net.compiled()
    for seen in ([A, B], {"a": A, "b": B}, feeds):
        compiled(seen)
    assert len(collected) == 1 + (not is_known)  # and for the keys of the first mapping
    arrays = compiled.create_infer_request()._collect(feeds)
    assert all(array.flags.c_contiguous and array.flags.aligned for array in arrays)


def test_few_shapes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_MOST_SHAPES", 2)
    request = identity("?").compiled().create_infer_request()
    for count in (1, 2, 3, 4, 5):
        request.infer([np.ones(count, np.float32)])
    assert request._collect._shapes == [{(5,)}]


def test_one_array_is_the_only_input() -> None:
    net = Net()
    net.result(net.parameter("x", "2,3"))
    collector = net.compiled().create_infer_request()._collect
    collector(A)
    assert collector._known(A) is not None
    assert collector._known([A]) is not None
    assert collector._known([A, A]) is None


def test_an_empty_list_has_the_type_of_the_input() -> None:
    assert [fed(kind, []).dtype for kind in ("i64", "f16")] == [np.int64, np.float16]


def test_an_input_of_unknown_type_keeps_its_own() -> None:
    assert fed("dynamic", np.int16([3])).dtype == np.int16


def test_a_model_without_inputs_needs_no_feeds() -> None:
    net = Net()
    net.result(net.const(np.float32([1, 2])))
    for feeds in (None, {}, []):
        assert net.compiled()(feeds)[0].tolist() == [1, 2]
