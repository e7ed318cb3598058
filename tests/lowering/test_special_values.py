"""Decompositions give NaN and infinities where their operations do, and only there, and meet sizes of 0 and 1.

Every registered decomposition is compared with ``run`` of its operation.
"""

import re
import zlib
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from fuzz.cases import VERSIONS, choices_of, make_case
from support.special_values import infinite_values, spread

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array
from ovir.lowering import registry
from ovir.lowering.registry import decomposition_of
from ovir.ops import find

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("calls_are_made_once")]

OLDEST = 7
"""The opset of release 2021.4, the oldest one that models are lowered to."""
ATTEMPTS = 30
"""Random models of each operation version, of which some are refused."""
TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-5}
"""The difference that real numbers of a size in bytes may have, as a part of the largest one."""
DECOMPOSED = [
    (index, kind, birth)
    for index, (kind, birth) in enumerate(VERSIONS)
    if birth > OLDEST and decomposition_of(find(kind, birth)) is not None  # type: ignore[arg-type]
]
EXCEPTIONS = {
    ("AdaptiveMaxPool", 8): ("nan|all|mixed", "NaN is the largest of a window, and MaxPool-8 passes it over"),
    ("BitwiseLeftShift", 15): ("in input 1", "the specification leaves open what negative and large shifts give"),
    ("BitwiseRightShift", 15): ("in input 1", "the specification leaves open what negative and large shifts give"),
    ("GridSample", 9): (
        "(e.38|inf|nan|finite ones|all) in input 1|everywhere|mixed",
        "the specification does not say which pixel is at a position that is infinite or no number",
    ),
    ("ISTFT", 16): ("e.38 in input 1|(all|finite ones) in input 1", "squares of the window are infinite"),
    ("Inverse", 14): ("nan|inf|all|mixed", "the order of the elimination decides which elements become NaN"),
    ("ScaledDotProductAttention", 13): ("65504.0 in input [01] of f16", "parts of f16 cannot hold the largest scores"),
    ("SearchSorted", 15): ("in input 0|mixed|everywhere", "the sequence has to be sorted"),
}
"""Versions of which some special values may give other results: a pattern of the faults, and why."""


def pairs(
    index: int, birth: int, most: int, *, small: bool = False
) -> Iterator[tuple[ovir.Model, ovir.Model, list[Array]]]:
    """Yield models of an operation version that run, each with its decomposition and inputs: so many, and then those
    with further values of attributes."""
    found, missing = 0, choices_of(*VERSIONS[index])
    for attempt in range(ATTEMPTS):
        case = make_case(index + attempt * len(VERSIONS), small=small)
        is_wanted = found < most or missing & case.attributes.items()
        if not is_wanted or not all(map(_is_finite, (*case.feeds, *case.constants))):
            continue
        try:
            model = ovir.read_model(case.text, case.weights)
            ovir.compile_model(model)(case.feeds)
        except ovir.OvirError:
            continue
        for opset in dict.fromkeys((OLDEST, birth - 1)):
            lowered = model.clone()
            try:
                lowered.lower(opset)
            except ovir.ExportError:
                continue
            yield model, lowered, case.feeds
            found += 1
            missing -= case.attributes.items()
            break
        if found >= most and not missing:
            return


def _is_finite(array: Array) -> bool:
    return array.dtype.kind not in "fV" or bool(np.isfinite(array.astype(np.float64)).all())


def changed_feeds(model: ovir.Model, feeds: list[Array], rng: np.random.Generator) -> Iterator[tuple[str, list[Array]]]:
    """Yield inputs with special values, each with a title: in one input, then in all inputs of real numbers."""
    layers = [port.readers[0].layer for port in model.inputs]
    for position, (port, layer) in enumerate(zip(model.inputs, layers, strict=True)):
        reader = next(i for i, each in enumerate(layer.inputs) if each.source is port)
        sizes = layer.operator is not None and layer.operator.reads_value(reader) and port.element_type.is_integral
        for title, array in spread(feeds[position], port.element_type, rng):
            if not sizes or int(array.max()) < 1 << 10:  # a large size would take all memory
                where = f"in input {reader} of {port.element_type}{list(array.shape)}"
                yield f"{title} {where}", [*feeds[:position], array, *feeds[position + 1 :]]
    values = {i: np.append(infinite_values(port.element_type), [0, -0.0]) for i, port in enumerate(model.inputs)}
    reals = [i for i, found in values.items() if len(found) > 2]
    types = ", ".join(f"{model.inputs[i].element_type}{list(feeds[i].shape)}" for i in reals)
    for number in range(max(map(len, values.values()), default=0) if reals else 0):
        full = {i: np.full_like(feeds[i], values[i][number % len(values[i])]) for i in reals}
        yield f"everywhere {full[reals[0]].flat[:1]}, of {types}", [full.get(i, a) for i, a in enumerate(feeds)]
    for _ in range(8 if reals else 0):
        some = {i: rng.choice(values[i], feeds[i].shape).astype(feeds[i].dtype) for i in reals}
        some = {i: np.where(rng.random(a.shape) < 0.3, a, feeds[i]) for i, a in some.items()}
        yield f"mixed, of {types}", [some.get(i, a) for i, a in enumerate(feeds)]


def faults_of(model: ovir.Model, lowered: ovir.Model, feeds: list[Array], rng: np.random.Generator) -> Iterator[str]:
    """Yield what a decomposition gives differently for special values that its operation accepts."""
    own, other = ovir.compile_model(model), ovir.compile_model(lowered)
    before = list(own(feeds).values())
    for title, given in changed_feeds(model, feeds, rng):
        try:
            wanted = list(own(given).values())
        except ovir.OvirError:
            continue
        try:
            found = list(other(given).values())
        except ovir.OvirError as error:
            yield f"{title}: {error.diagnostic.message}"
            continue
        for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
            if fault := difference(ours, theirs, before[number]):
                yield f"{title}: {fault}"


def difference(found: Array, wanted: Array, before: Array) -> str:
    """Return how results of a decomposition differ from those of its operation; ``before`` has those of ordinary
    numbers, with which elements that do not depend on the special values agree."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind not in "fV":
        differs = np.asarray(found != wanted)
    else:
        with np.errstate(all="ignore"):
            ours, theirs = found.astype(np.float64), wanted.astype(np.float64)
            finite = np.isfinite(theirs)
            differs = ~finite & ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
            is_same = finite & (theirs == before.astype(np.float64) if before.shape == wanted.shape else False)
            for members in (finite, is_same):
                largest = max(np.abs(theirs[members]).max(initial=0), 1e-2)
                bound = TOLERANCE.get(wanted.dtype.itemsize, 0.1) * largest
                differs |= members & ~(np.abs(ours - theirs) <= bound)
        found, wanted = ours, theirs
    if not differs.any():
        return ""
    return f"{found[differs][:3]} instead of {wanted[differs][:3]}, {differs.sum()} of {differs.size}"


@pytest.mark.parametrize(("index", "kind", "birth"), DECOMPOSED, ids=lambda value: str(value))
def test_special_values(index: int, kind: str, birth: int) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    excepted, _ = EXCEPTIONS.get((kind, birth), ("(?!)", ""))
    faults = [fault for pair in pairs(index, birth, 6) for fault in faults_of(*pair, rng)]
    assert not [fault for fault in faults if not re.search(excepted, fault)], "\n".join(faults)
    assert bool(faults) == ((kind, birth) in EXCEPTIONS), "the exception is no longer needed"


@pytest.mark.parametrize(("index", "kind", "birth"), DECOMPOSED, ids=lambda value: str(value))
def test_sizes_of_0_and_1(index: int, kind: str, birth: int) -> None:
    for model, lowered, feeds in pairs(index, birth, 4, small=True):
        wanted = ovir.compile_model(model)(feeds).values()
        for ours, theirs in zip(ovir.compile_model(lowered)(feeds).values(), wanted, strict=True):
            assert not difference(ours, theirs, theirs)


@pytest.mark.parametrize("mode", ["bilinear_pillow", "bicubic_pillow"])
@pytest.mark.parametrize("count", [5, 12])
def test_pixels_reach_only_what_reads_them(mode: str, count: int) -> None:
    image = ops.parameter([1, 1, 9, 9], "f32")
    resized = ops.interpolate(image, np.array([5, count]), mode, "sizes", [0] * 4, [0] * 4, axes=np.array([2, 3]))
    model = ovir.Model([resized], [image])
    lowered = model.clone()
    lowered.lower("2022.3")
    own, other = ovir.compile_model(model), ovir.compile_model(lowered)
    for value, place in product((np.inf, np.nan), range(0, 81, 4)):
        data = np.random.default_rng(0).standard_normal((1, 1, 9, 9)).astype(np.float32)
        data.flat[place] = value
        found, wanted = other([data])[0], own([data])[0]
        is_finite = np.isfinite(wanted)  # the operation may also read a pixel whose weight is 0
        np.testing.assert_allclose(found[is_finite], wanted[is_finite], atol=1e-5)
        assert not np.isfinite(found).all()


# --------------------------------------------------------------------------- the test itself


def test_a_decomposition_that_subtracts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {("Identity", 16): lambda op, data: ops.subtract(ops.multiply(data, 2), data)}
    monkeypatch.setattr(registry, "_decompositions", {**registry._decompositions, **wrong})
    (index,) = (index for index, kind, _ in DECOMPOSED if kind == "Identity")
    with pytest.raises(AssertionError, match=r"one inf .*\[nan\] instead of \[inf"):
        test_special_values(index, "Identity", 16)


def test_two_infinities_that_meet_are_noticed() -> None:
    models = []
    for is_right in (True, False):
        x, y = (ops.parameter([4], "f32") for _ in "xy")
        a, b = ops.abs(x), ops.abs(y)
        found = ops.maximum(a, b) if is_right else ops.add(a, ops.relu(ops.subtract(b, a)))
        models.append(ovir.Model([found], [x, y]))
    feeds = [np.array(row, np.float32) for row in ([1, -2, 3, 0.5], [0, 4, -1, 2])]
    faults = list(faults_of(models[0], models[1], feeds, np.random.default_rng(0)))
    assert any(fault.startswith("everywhere [inf]") for fault in faults)
    assert not [fault for fault in faults if fault.startswith("one inf")]
