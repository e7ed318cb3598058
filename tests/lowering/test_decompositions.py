"""Decompositions compute the same as the operations, on random models of every operation version."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fuzz.cases import VERSIONS, Case, Choice, choices_of, covering_cases
from support.rows import model_of

import ovir
from ovir.core.arrays import Array
from ovir.lowering.registry import decomposition_of
from ovir.ops import find

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("calls_are_made_once")]

OLDEST = 7
"""The opset of release 2021.4, the oldest one that models are lowered to."""
DIFFERENT = {
    ("MaxPool", 8): "positions are read in all random models",
}
"""Versions whose random models are not compared, and why; other tests have models of them."""
DECOMPOSED = [
    (index, kind, birth)
    for index, (kind, birth) in enumerate(VERSIONS)
    if birth > OLDEST and (kind, birth) not in DIFFERENT and decomposition_of(find(kind, birth)) is not None  # type: ignore[arg-type]
]
NOT_DECOMPOSED = {
    ("DeformableConvolution", 8): {("bilinear_interpolation_pad", "true")},
    ("PriorBox", 8): {("min_max_aspect_ratios_order", "false")},
}
"""Choices with which no model of a version is decomposed."""
ATTEMPTS = 6
"""Random models of each operation version, of which some are illegal or cannot be decomposed."""
TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-5}
"""The difference that real numbers of a size in bytes may have, as a part of the largest one."""


LARGE = 2**9
"""A factor of numbers of f16 whose squares f16 does not hold."""
SMALL = {("ScaledDotProductAttention", 13): "parts of f16 round large scores, whose differences the softmax magnifies"}
"""Versions without large inputs of f16, and why."""


def cases(index: int, ran: Counter[Choice]) -> Iterator[tuple[ovir.Model, list[Array], list[Array], set[Choice]]]:
    """Yield random models of an operation version that run, with inputs, results of ordinary size, and choices."""
    for case, choices in covering_cases(index, ATTEMPTS, ran):
        for feeds in _inputs(case, with_large=VERSIONS[index] not in SMALL):
            try:
                model = ovir.read_model(case.text, case.weights)
                results = list(ovir.compile_model(model)(feeds).values())
            except (ovir.OvirError, IndexError):
                continue
            saturates = case.attributes.get("reduction") == "prod" and results[0].dtype.itemsize == 1
            if all(map(_is_ordinary, (*feeds, *case.constants, *results))) and not saturates:  # as Multiply does
                yield model, feeds, results, choices


ROWS = (Path(__file__).parent / "parts.txt").read_text().splitlines()
"""An operation with its attributes; its inputs (``support.rows``); an opset or a release; the operations of the parts,
or ``refused:`` and why."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split()[0])
def test_parts(row: str) -> None:
    """Several ways often give the same numbers, so that only the parts tell which one was chosen."""
    operation, inputs, target, expected = row.split(" | ")
    model, feeds = model_of(operation, inputs)
    goal = int(target) if target.isdecimal() else target
    if expected.startswith("refused: "):
        with pytest.raises(ovir.ExportError, match=re.escape(expected.removeprefix("refused: "))):
            model.lower(goal)
        return
    wanted = list(ovir.compile_model(model)(feeds).values())
    model.lower(goal)
    found = Counter(layer.type for layer in model.walk() if layer.type not in ("Parameter", "Result"))
    assert " ".join(name if count == 1 else f"{name}*{count}" for name, count in found.items()) == expected
    assert_close(list(ovir.compile_model(model)(feeds).values()), wanted)


def _inputs(case: Case, *, with_large: bool) -> Iterator[list[Array]]:
    """Yield the inputs of a model, and large ones if some are of f16."""
    yield case.feeds
    if with_large and np.float16 in [array.dtype for array in case.feeds]:
        with np.errstate(over="ignore"):
            yield [array * np.float16(LARGE) if array.dtype == np.float16 else array for array in case.feeds]


def _is_ordinary(array: Array) -> bool:
    return array.dtype.kind in "biuTUO" or bool((np.abs(array.astype(np.float64)) < 1e4).all())


@pytest.mark.parametrize(("index", "kind", "birth"), DECOMPOSED, ids=lambda value: str(value))
def test_results_agree(index: int, kind: str, birth: int) -> None:
    refused = NOT_DECOMPOSED.get((kind, birth), set())
    ran = Counter(list(refused) * ATTEMPTS)
    for model, feeds, wanted, choices in cases(index, ran):
        compared = False
        for opset, is_dynamic in ((birth - 1, False), (OLDEST, True)):
            lowered = model.clone()
            try:
                if is_dynamic:
                    known = {i: port.shape for i, port in enumerate(lowered.inputs) if port.shape.rank}
                    lowered.reshape({i: [-1, *shape.dims[1:]] for i, shape in known.items()})
                    ovir.compile_model(lowered.clone())(feeds)  # may break what inference promises of dynamic sizes
                lowered.lower(opset)
            except (ovir.RunError, ovir.ExportError) as error:
                if "do not fit together" in str(error) or "OVIR999" in str(error):
                    raise
                continue
            found = list(ovir.compile_model(lowered)(feeds).values())
            assert_close(found, wanted)
            assert not choices & refused
            compared = True
        ran.update(choices if compared else ())
    assert ran.keys() == choices_of(kind, birth)


def assert_close(found: list[Array], wanted: list[Array]) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        if theirs.dtype.kind not in "fV":
            np.testing.assert_array_equal(ours, theirs)
            continue
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        largest = max(float(np.abs(b[np.isfinite(b)]).max(initial=0)), 1e-2)
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE.get(theirs.dtype.itemsize, 1e-1) * largest)


@pytest.mark.parametrize("seed", range(60))
def test_pools_that_round_as_torch_does(seed: int) -> None:
    """Three axes at a time have sizes, windows and pads of any relation."""
    rng = np.random.default_rng(seed)
    length, kernel, stride, dilation = (rng.integers(1, high, 3).tolist() for high in (8, 4, 5, 3))
    for name in ("MaxPool", "AvgPool"):
        x = ovir.opset14.parameter([1, 1, *length], "f32")
        most = 8 if name == "MaxPool" else 3
        begin, end = (rng.integers(0, rng.integers(1, most), 3).tolist() for _ in "ab")
        given = {
            "kernel": kernel,
            "strides": stride,
            "pads_begin": begin,
            "pads_end": end,
            "rounding_type": "ceil_torch",
        }
        given |= {"dilations": dilation} if name == "MaxPool" else {"exclude-pad": bool(rng.integers(2))}
        try:
            model = ovir.Model([ovir.create_layer(name, [x], given, version="opset14").outputs[0]], [x])
        except ovir.ModelError:  # a window is larger than the data
            continue
        data = [rng.standard_normal((1, 1, *length)).astype(np.float32)]
        wanted = list(ovir.compile_model(model)(data).values())
        model.lower(13)
        assert_close(list(ovir.compile_model(model)(data).values()), wanted)


@pytest.mark.parametrize(("kind", "error"), [("f32", 1e-6), ("f64", 1e-14)])
def test_the_inverse_of_erf_has_all_digits(kind: str, error: float) -> None:
    x = ovir.opset17.parameter([-1], kind)
    model = ovir.Model([ovir.create_layer("ErfInv", [x], version="opset17")], [x])
    near = 1 - np.logspace(-1, -7 if kind == "f32" else -15, 400)
    data = [np.concatenate([np.linspace(-0.9, 0.9, 400), near, -near]).astype(kind.replace("f", "float"))]
    (wanted,) = ovir.compile_model(model)(data).values()
    model.lower(16)
    (found,) = ovir.compile_model(model)(data).values()
    np.testing.assert_allclose(found, wanted, rtol=error)


# --------------------------------------------------------------------------- the table


@pytest.mark.parametrize(("kind", "birth"), [version for version in VERSIONS if version[1] > OLDEST])
def test_a_version_has_a_decomposition_or_a_reason(kind: str, birth: int) -> None:
    operation = find(kind, birth)
    assert operation is not None
    assert decomposition_of(operation) is not None or operation.unmatched
