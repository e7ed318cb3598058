"""What operations declare about the time and the memory of their kernels, which the check of untrusted files counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from fuzz.cases import VERSIONS
from support.grown_cases import Applied, TooLargeError, cases_of

import ovir
from ovir.diagnostics.errors import OperatorError
from ovir.ops import find

pytestmark = pytest.mark.slow

_TIMES = 30
"""The factor by which attributes are raised."""


def raised(case: Applied) -> Iterator[tuple[str, Applied]]:
    """Yield the case with each attribute that holds integers raised by a large factor."""
    op = case.op
    given = {declared.field: getattr(op, declared.field) for declared in op.attributes.values()}
    for field, value in given.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            new: object = max(abs(value), 1) * _TIMES
        elif isinstance(value, tuple) and value and all(isinstance(item, int) for item in value):
            new = tuple(max(item, 1) * _TIMES for item in value)
        else:
            continue
        with suppress(ValueError):
            yield field, Applied(type(op)(**{**given, field: new}), case.arrays, case.types)


WITH_INTEGERS = [
    index
    for index, version in enumerate(VERSIONS)
    if (cls := find(*version)) and any(declared.type in (int, tuple[int, ...]) for declared in cls.attributes.values())
]
NO_MORE_WORK = {
    ("Multinomial", "global_seed"): "a seed",
    ("Multinomial", "op_seed"): "a seed",
}
"""The attributes whose size changes the time of the kernel, but not by work that it declares, and why."""


@pytest.mark.parametrize("index", WITH_INTEGERS, ids=lambda index: "-".join(map(str, VERSIONS[index])))
def test_work_grows_with_the_attributes_that_the_kernel_takes_longer_for(index: int) -> None:
    for case in cases_of(index, 6):
        try:
            before = min((case.run() for _ in range(3)), key=lambda run: run.seconds)
        except (ovir.OvirError, OperatorError):
            continue
        for field, larger in raised(case):
            try:
                after = larger.run()
            except (ovir.OvirError, OperatorError, TooLargeError):
                continue
            if after.seconds / before.seconds > 40:  # or something else ran meanwhile
                after = min(after, larger.run(), key=lambda run: run.seconds)
            longer = after.seconds > 0.03 and after.seconds / before.seconds > 40
            work = after.op.work(after.inputs, after.outputs) / max(before.op.work(before.inputs, before.outputs), 1)
            assert not longer or work > 10 or (VERSIONS[index][0], field) in NO_MORE_WORK, (field, work)


_SIZE = 1 << 20
_ROUGHLY, _BLOCKS = 5, 1_000_000
"""The copies of the largest tensor that no operation needs to declare, and the bytes of blocks of a fixed size."""

_OF_FEW_PIXELS = "the windows of images of few pixels are copied, as many times as the filter has taps"
UNDECLARED = {
    **dict.fromkeys(["Convolution", "GroupConvolution"], _OF_FEW_PIXELS),
    **dict.fromkeys(["ConvolutionBackpropData", "GroupConvolutionBackpropData"], _OF_FEW_PIXELS),
    "ScaledDotProductAttention": "the scores of several heads, in blocks of a fixed size",
    "StringTensorPack": "strings of Python, which are counted with the strings of the output",
}
"""The operations that may take more than they declare, and why."""
MEASURED = [index for index, (kind, _) in enumerate(VERSIONS) if kind not in UNDECLARED]


@pytest.mark.parametrize("index", MEASURED, ids=lambda index: "-".join(map(str, VERSIONS[index])))
def test_kernels_take_no_more_memory_than_they_declare(index: int) -> None:
    for case in cases_of(index, 2):
        for run in case.grown(_SIZE):
            declared = run.op.temporary_bytes(run.inputs, run.outputs)
            largest = max(t.shape.least_size * max(t.element_type.bits // 8, 4) for t in (*run.inputs, *run.outputs))
            assert run.peak() <= declared + _ROUGHLY * largest + _BLOCKS, (run.inputs, run.outputs, declared)
