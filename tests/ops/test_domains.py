"""The domains that operations declare for indices, against what kernels accept."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from fuzz.cases import VERSIONS
from support.grown_cases import Applied, cases_of
from support.tensors import const, operation, reports, tensor, types

from ovir.core.element_types import i64
from ovir.core.tensor_types import constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.inference.known_values import as_tuple
from ovir.ops import find
from ovir.ops.base.domains import Axis, Coordinates, Domain, Index, Length
from ovir.ops.base.traits import input_names

pytestmark = pytest.mark.slow


def declared(*kinds: type[Any]) -> list[tuple[int, Any, str]]:
    """Return all inputs with rules of these kinds: the number of an operation version, its class, the input's name."""
    return [
        (index, cls, name)
        for index, version in enumerate(VERSIONS)
        if (cls := find(*version))
        for name, rule in cls.domains.items()
        if isinstance(rule, kinds) and getattr(rule, "checked", True)
    ]


def outcome(case: Applied, position: int, values: Any) -> str:
    """Return what a run with other values of an input comes to."""
    arrays = [*case.arrays[:position], np.asarray(values, case.arrays[position].dtype), *case.arrays[position + 1 :]]
    inputs = [constant_type(array, given) for array, given in zip(arrays, case.types, strict=True)]
    try:
        with reports() as reported:
            case.op.applied(inputs, as_tuple(case.op.infer(*inputs))).run(*arrays)
    except OperatorError:
        return "refused"
    return "reported" if reported else "accepted"


@pytest.mark.parametrize(("index", "cls", "name"), declared(Index, Coordinates))
def test_kernels_accept_the_indices_that_are_inside_by_their_rule(index: int, cls: Any, name: str) -> None:
    rng = np.random.default_rng(index)
    position, rule, seen = input_names(cls).index(name), cls.domains[name], set()
    for case in cases_of(index, 6):
        if position >= len(case.arrays) or outcome(case, position, given := case.arrays[position]) != "accepted":
            continue
        types = [constant_type(array, given) for array, given in zip(case.arrays, case.types, strict=True)]
        inputs = dict(zip(input_names(cls), types, strict=False))
        domain = rule(case.op, inputs)
        for end in (domain.low, domain.high):
            assert outcome(case, position, np.full(given.shape, end)) == "accepted", (case, end)
            seen.add("accepted")
        for _ in range(10):
            values = given.astype(np.int64)
            place = tuple(rng.integers(size) for size in values.shape)
            values[place] = rng.integers(-domain.high - 3, domain.high + 4)
            parts = list(rule.parts(case.op, inputs, values))
            expected = "accepted"
            if any((part < 0).any() for part, _ in parts) and rule.negative != "from the end":
                expected = "refused" if rule.negative == "forbidden" else "reported"
            if any((part < -size).any() or (part >= size).any() for part, size in parts):
                expected = "reported" if cls.type == "Gather" else "refused"  # Gather reads zeros there
            assert outcome(case, position, values) == expected, (case, values)
            seen.add(expected)
    assert len(seen) > 1


UNBOUNDED = {
    ("Unsqueeze", "axes"): "axes of the result",
    ("Reverse", "axes"): "in the mode mask, whether to reverse",
    ("Slice", "stop"): "cut",
    ("StridedSlice", "end"): "cut",
    ("GatherTree", "max_seq_len"): "cut",
    ("STFT", "frame_size"): "a frame is longer than its window",
}
"""Axes and lengths beyond their domain that an operation accepts, and what they are there."""


def test_kernels_refuse_the_axes_and_lengths_beyond_their_domain() -> None:
    tried = set()
    for index, cls, name in declared(Axis, Length):
        position = input_names(cls).index(name)
        for case in cases_of(index, 4):
            if position >= len(case.arrays) or outcome(case, position, given := case.arrays[position]) != "accepted":
                continue
            inputs = [constant_type(array, given) for array, given in zip(case.arrays, case.types, strict=True)]
            domain = cls.domains[name](case.op, dict(zip(input_names(cls), inputs, strict=False)))
            values = given.astype(np.int64)
            values.reshape(-1)[-1:] = domain.high + 1
            if domain.high < 3:  # which types of two bits hold
                beyond = outcome(case, position, values)
                assert (cls.type, name) in UNBOUNDED or beyond in ("refused", "reported"), (case, values)
                tried.add((cls.type, name))
    assert len(tried) >= 40


@pytest.mark.parametrize("op", ["Add-1", "Subtract-1", "Multiply-1"])
@pytest.mark.parametrize("constant", [[2], [3, 1], [1, 5]])
@pytest.mark.parametrize("position", [0, 1])
def test_the_domain_before_arithmetic_holds_what_leads_to_the_wanted(
    op: str, constant: list[int], position: int
) -> None:
    made, others, numbers = operation(op), const(constant), np.arange(-30, 31)
    inputs = [tensor("1", i64), others] if position == 0 else [others, tensor("1", i64)]
    columns = numbers[:, np.newaxis], np.array(constant)
    results = made.run(*(columns if position == 0 else columns[::-1]))
    assert isinstance(results, np.ndarray)
    for low, high in product((None, -7, 0, 4), (None, 0, 9)):
        domain = made.domain_before(position, inputs, Domain(low, high))
        assert domain is not None
        fitting, found = (
            numbers[
                ((n >= (-999 if a is None else a)) & (n <= (999 if b is None else b))).reshape(len(n), -1).all(axis=1)
            ]
            for n, a, b in ((results, low, high), (numbers, domain.low, domain.high))
        )
        assert found.tolist() == fitting.tolist() or not fitting.size, (low, high, domain)
        both = made.domain_before(position, [tensor("1", i64)] * 2, Domain(low, high))
        assert both is not None
        assert (both.low, both.high) == (0, (high or 0) // 2 if op == "Add-1" else 0)


@pytest.mark.parametrize(("constant", "low", "high"), [([0, 3], 0, 0), ([-1, 3], 0, 0), ([1, 3], 1, 3)])
def test_a_factor_that_may_not_be_above_0_leaves_0(constant: list[int], low: int, high: int) -> None:
    domain = operation("Multiply-1").domain_before(0, [tensor("1", i64), const(constant)], Domain(1, 9, why="x"))
    assert domain == Domain(low, high, why="x")


@pytest.mark.parametrize(
    ("op", "inputs", "position", "domain"),
    [
        ("Broadcast-3", "4,2..7 i64[3] i64[2]", 1, "4"),
        ("Broadcast-3 mode=bidirectional", "4,2..7 i64[3]", 1, "1"),
        ("Broadcast-3 mode=explicit", "4,2 i64[3] i64[2]", 2, "0..2"),
        ("Col2Im-15 strides=2,1 pads_begin=1,0", "2,4,12 i64[2] =[2,2]", 1, "5"),
        ("Col2Im-15", "2,4,8 i64[2] =[2,2]", 1, "None"),
        ("Col2Im-15", "2,4,1 i64[2] =[1,1]", 1, "1"),
        ("Col2Im-15", "2,4,9 i64[2] i64[2]", 1, "3"),
        ("CTCLoss-4", "2,5,4 i64[2] i64[2,5] i64[2] i64[]", 1, "5"),
        ("CTCLoss-4", "2,5,4 i64[2] i64[2,5] i64[2] i64[]", 2, "0..2"),
        ("CTCLoss-4", "2,5,1 i64[2] i64[2,5] i64[2] i64[]", 2, "0"),
        ("CTCLoss-4", "2,5,4 i64[2] i64[2,5] i64[2] i64[]", 3, "1..5"),
        ("CTCLoss-4", "2,5,4 i64[2] i64[2,5] i64[2] i64[]", 4, "3"),
        ("Divide-1", "i32[2] i32[2]", 1, "1..9"),
        ("Divide-1", "2 2", 1, "None"),
        ("Gather-8", "4,3..9 i64[2] =1", 1, "0..2"),
        ("Gather-8", "4,3..9 i64[2] =-2", 1, "0..3"),
        ("Gather-8", "4,3..9 i64[2] =[0,0]", 1, "0..2"),
        ("Gather-8", "4,3..9 i64[2] i64[]", 1, "0..2"),
        ("Gather-8", "4,? i64[2] =1", 1, "0"),
        ("Gather-8", "... i64[2] =1", 1, "0"),
        ("Gather-8", "4,3 i64[2] i64[]", 2, "0..1"),
        ("Gather-8", "... i64[2] i64[]", 2, "0"),
        ("GatherElements-6 axis=2", "4,3 i64[2,3]", 1, "0"),
        ("GatherElements-6 axis=-3", "4,3 i64[2,3]", 1, "0"),
        ("GatherND-8 batch_dims=1", "5,4,3,2 i64[5,2]", 1, "0..2"),
        ("GatherND-8", "5,4,..3 i64[5,3]", 1, "0"),
        ("GatherND-8", "5,4,3 i64[...]", 1, "0..4"),
        ("GatherND-8", "... i64[5,2]", 1, "0"),
        ("ISTFT-16", "5,7,2 8 i64[] i64[]", 2, "8"),
        ("ISTFT-16", "1,7,2 8 i64[] i64[]", 2, "1"),
        ("MulticlassNms-9", "2,7,4 2,7 i64[3]", 2, "0..2"),
        ("OneHot-1", "i64[2] =3 f32[] f32[]", 0, "0..2"),
        ("OneHot-1", "i64[2] =0 f32[] f32[]", 0, "0"),
        ("OneHot-1", "i64[2] i64[] f32[] f32[]", 0, "0..1"),
        ("Slice-8", "4,3..9 i64[1] i64[1] i64[1]", 2, "1..3"),
        ("Slice-8", "0,3 i64[1] i64[1] i64[1]", 2, "1"),
        ("Squeeze-15", "2,1,?,1 i64[1]", 1, "1.."),
        ("Squeeze-15", "2,3 i64[1]", 1, "0.."),
        ("STFT-15", "30 5..8 i64[] i64[]", 2, "5"),
    ],
)
def test_a_domain_follows_from_what_is_known_of_the_inputs(op: str, inputs: str, position: int, domain: str) -> None:
    assert str(operation(op).domain_of(position, types(inputs))) == domain
