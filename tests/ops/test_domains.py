"""The domains that operations declare for indices, against what kernels accept."""

from typing import Any

import numpy as np
import pytest
from fuzz.cases import VERSIONS
from support.grown_cases import Applied, cases_of

from ovir.core.tensor_types import constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.inference.known_values import as_tuple
from ovir.ops import find
from ovir.ops.base.domains import Coordinates, Index
from ovir.ops.base.traits import input_names

pytestmark = pytest.mark.slow

INDICES = [
    (index, cls, name)
    for index, version in enumerate(VERSIONS)
    if (cls := find(*version))
    for name, rule in cls.domains.items()
    if isinstance(rule, (Index, Coordinates)) and getattr(rule, "checked", True)
]


def outcome(case: Applied, position: int, values: Any) -> str:
    """Return what a run with other values of an input comes to."""
    arrays = [*case.arrays[:position], np.asarray(values, case.arrays[position].dtype), *case.arrays[position + 1 :]]
    inputs = [constant_type(array, given) for array, given in zip(arrays, case.types, strict=True)]
    reported: list[str] = []
    try:
        with reporting_to(lambda code, message, effect: reported.append(message)):
            case.op.applied(inputs, as_tuple(case.op.infer(*inputs))).run(*arrays)
    except OperatorError:
        return "refused"
    return "reported" if reported else "accepted"


@pytest.mark.parametrize(("index", "cls", "name"), INDICES, ids=[f"{VERSIONS[i]}-{name}" for i, _, name in INDICES])
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
