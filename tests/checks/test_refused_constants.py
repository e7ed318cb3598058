"""Constants that a kernel refuses are errors in untrusted files, for every operation that declares such values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.checks.checker import check_here
from ovir.checks.options import CheckOptions
from ovir.checks.rules.refused_constants import _is_restriction
from ovir.fuzzing.cases import make_case
from ovir.fuzzing.making import VERSIONS
from ovir.ops import find
from ovir.ops.base.traits import input_names

ROUNDS = 5


def restricted(kind: str, opset: int) -> list[int]:
    """Return the inputs of which kernels accept only some values, by position."""
    cls = find(kind, opset)
    assert cls is not None
    return [
        index
        for index, name in enumerate(input_names(cls))
        if name in cls.domains and _is_restriction(cls.domains[name]) and not cls.reads_value(index)
    ]


CASES = [(index, *version) for index, version in enumerate(VERSIONS) if restricted(*version)]


def codes_of(model: ovir.Model, folder: Path) -> set[str]:
    ovir.save_model(model, folder / "model.xml")
    found = check_here(folder / "model.xml", None, CheckOptions(untrusted=True))
    return {d.code for d in found if d.code in ("OVIR018", "OVIR511", "OVIR999")}


@pytest.mark.slow
@pytest.mark.parametrize(("index", "kind", "opset"), CASES, ids=[f"{kind}-{opset}" for _, kind, opset in CASES])
def test_constants_that_a_kernel_refuses_are_reported(index: int, kind: str, opset: int, tmp_path: Path) -> None:
    refused = 0
    for round_ in range(ROUNDS):
        case = make_case(index + round_ * len(VERSIONS))
        try:
            model = ovir.read_model(case.text, case.weights)
            ovir.compile_model(model)(case.feeds)
        except ovir.OvirError:  # random sizes that do not fit together
            continue
        for feed in case.feeds:
            model.fix_input(model.inputs[0], feed, verify=False)
        (layer,) = [layer for layer in model.layers if layer.type == kind]
        assert codes_of(model, tmp_path) == set()
        for position in restricted(kind, opset):
            if position >= len(layer.inputs) or (source := layer.inputs[position].source) is None:
                continue
            for value, place in ((-7, 0), (99, 0), (-7, -1), (99, -1)):
                constant = model.clone()
                array = np.array(source.type.constant)
                if not array.size:
                    continue
                array.flat[place] = np.array(value).astype(array.dtype)
                constant.set_constant(source.layer.name, array)
                try:
                    ovir.compile_model(constant)([])
                    is_refused = False
                except ovir.OvirError:
                    is_refused = True
                found = codes_of(constant, tmp_path)
                assert bool(found) == is_refused, (round_, position, value, found)
                refused += is_refused
    assert refused or kind in NEVER_REFUSED


NEVER_REFUSED = {"EmbeddingSegmentsSum", "OneHot"}
"""Operations of which the kernel accepts all values: those that name no row of the output have no effect."""


def built(build: Callable[..., ovir.Layer], *inputs: ovir.Layer) -> ovir.Model:
    return ovir.Model([build(*inputs)], list(inputs))


def reversed_(lengths: list[int], *shape: object, kind: str = "f32") -> Callable[[], ovir.Model]:
    return lambda: built(
        lambda x: ops.reverse_sequence(x, np.int32(lengths), 0, 1),
        ops.parameter(shape, kind),  # type: ignore[arg-type]
    )


def bags(offsets: list[int]) -> Callable[[], ovir.Model]:
    table = np.ones((5, 2), np.float32)
    return lambda: built(
        lambda x: ops.embedding_bag_offsets_sum(table, x, np.int64(offsets)), ops.parameter([-1], "i64")
    )


OPEN: dict[str, tuple[Callable[[], ovir.Model], bool]] = {
    "lengths of an axis that the caller chooses": (reversed_([5, 9], 2, -1), False),
    "negative lengths": (reversed_([5, -9], 2, -1), True),
    "lengths up to the largest axis": (reversed_([5, 8], 2, (1, 8)), False),
    "lengths beyond the largest axis": (reversed_([5, 9], 2, (1, 8)), True),
    "lengths of a batch that the caller chooses": (reversed_([5, 9], -1, 5), True),
    "lengths of strings": (reversed_([5, 9], 2, 5, kind="string"), True),
    "lengths of large data": (reversed_([5, 9], 2, 8, 30_000_000), True),
    "offsets of as many indices as the caller gives": (bags([0, 3]), False),
    "equal offsets": (bags([0, 3, 3]), False),
    "decreasing offsets": (bags([0, 3, 2]), True),
    "parents after as many steps as the caller says": (
        lambda: built(
            lambda x, steps: ops.gather_tree(x, np.int32([[[0, 0]]] * 3 + [[[9, 9]]]), steps, np.int32(0)),
            ops.parameter([4, 1, 2], "i32"),
            ops.parameter([1], "i32"),
        ),
        True,
    ),
    "labels of as many as the caller says": (
        lambda: built(
            lambda x, count: ops.ctc_loss(x, np.int32([5]), np.int32([[0, 1, 99, 0, 0]]), count, np.int32(3)),
            ops.parameter([1, 5, 4], "f32"),
            ops.parameter([1], "i32"),
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_the_caller_chooses_sizes_and_lengths(name: str, tmp_path: Path) -> None:
    build, is_refused = OPEN[name]
    assert codes_of(build(), tmp_path) == ({"OVIR018"} if is_refused else set())


@pytest.mark.parametrize("kind", ["Divide", "Mod", "FloorMod"])
@pytest.mark.parametrize("element_type", ["i8", "i32", "i64"])
@pytest.mark.parametrize("is_computed", [False, True])
def test_the_least_integer_is_not_divided_by_minus_one(
    kind: str, element_type: str, is_computed: bool, tmp_path: Path
) -> None:
    function = {"Divide": ops.divide, "Mod": ops.mod, "FloorMod": ops.floor_mod}[kind]
    least = np.iinfo(element_type.replace("i", "int")).min

    def codes(dividend: int, divisor: int) -> list[str]:
        a, b = (ops.constant([3, number], element_type) for number in (dividend, divisor))
        if is_computed:
            b = ops.multiply(b, ops.constant([1, 1], element_type))
        path = tmp_path / "model.xml"
        ovir.save_model(ovir.Model([function(a, b)], []), path)
        found = check_here(path, None, CheckOptions(untrusted=True))
        return [d.code for d in found if d.code in ("OVIR514", "OVIR999")]

    assert codes(least, -1) == ["OVIR514"]
    assert codes(least + 1, -1) == codes(least, -2) == []
    assert codes(3, 0) == ["OVIR514"]
