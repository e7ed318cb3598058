"""Random models of every operation version are exported and compute what ovir computes."""

from collections import Counter

import numpy as np
import pytest
from fuzz.cases import VERSIONS, Choice, choices_of, covering_cases

import ovir

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("calls_are_made_once")]

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the comparison of exported models needs {package}")

from support.export_comparison import check_exported  # noqa: E402  (it imports these packages)

from ovir.export.exporters import NOT_EXPORTED, exported_as, exporter_of, rows  # noqa: E402
from ovir.export.support import default_opset  # noqa: E402
from ovir.ops import find  # noqa: E402

EXPORTED = [
    (index, *version)
    for index, version in enumerate(VERSIONS)
    if exporter_of(find(*version)) is not None  # type: ignore[arg-type]
]
OPSETS = [17, default_opset()]
MODELS = 3
"""Models of each operation version in each opset."""
ATTEMPTS = 12
"""Random models of which some are illegal, or have values for which runtimes may differ."""
MOST_ELEMENTS = 1 << 14
NOT_COMPARED: dict[tuple[str, int], set[Choice]] = {("Interpolate", 1): {("mode", "area")}}
"""Choices of operation versions with which no model is exported or run."""
NOT_EXPORTED_TO = {("DeformableConvolution", birth): [17] for birth in (1, 8)}
"""Opsets to which no model of an operation version is exported."""
NOT_RUN = {
    ("AdaptiveMaxPool", 8): "empty tensors",
    ("Gather", 8): "indices of an axis of size 0",
    ("Mod", 1): "division of integers by zero",
    ("GridSample", 9): "spellings of the modes before opset 20, for types without a kernel in onnxruntime",
}
"""Operation versions of which some exported models run in neither onnxruntime nor onnx.reference, and which ones."""


def _runs(model: ovir.Model, feeds: list[np.ndarray]) -> bool:
    """Return whether ovir runs a model and all real numbers are finite and of ordinary size, as in a real model."""
    if any(port.shape.size().lower > MOST_ELEMENTS for layer in model.layers for port in layer.outputs):
        return False
    try:
        results = ovir.compile_model(model)(feeds).values()
    except (ovir.OvirError, IndexError):
        return False
    return all(_is_ordinary(array) for array in (*feeds, *results))


def _is_ordinary(array: np.ndarray) -> bool:
    if array.dtype.kind in "iu":
        return not array.size or np.abs(array.astype(np.float64)).max() < 1 << 30
    if array.dtype.kind in "bTUO":
        return True
    return bool((np.abs(array.astype(np.float64)) < 1e4).all())


@pytest.mark.parametrize(("index", "kind", "birth"), EXPORTED, ids=lambda value: str(value))
def test_operation(index: int, kind: str, birth: int) -> None:
    """Export the same models to an old opset and to the newest one, which runs every choice of the operation."""
    compared: Counter[int] = Counter()
    ran = Counter(list(NOT_COMPARED.get((kind, birth), ())) * ATTEMPTS)
    for case, choices in covering_cases(index, ATTEMPTS, ran):
        opsets = [opset for opset in OPSETS if compared[opset] < MODELS]
        if not choices <= ran.keys():
            opsets = [*{*opsets, OPSETS[-1]}]
        if not opsets:
            continue
        try:
            model = ovir.read_model(case.text, case.weights)
        except ovir.OvirError:
            continue
        if not all(map(_is_ordinary, case.constants)) or not _runs(model, case.feeds):
            continue
        for opset in opsets:
            try:
                difference = check_exported(model, case.feeds, opset)
            except ovir.ExportError:  # the limits are in docs/onnx.md
                continue
            except ovir.RunError:
                if (kind, birth) not in NOT_RUN:
                    raise
                continue
            assert difference is None, f"opset {opset}, {case.attributes}: {difference}"
            compared[opset] += 1
            if opset == OPSETS[-1]:
                ran.update([*choices] * 2)  # `covering_cases` looks for two models, and one is enough here
    assert [opset for opset in OPSETS if not compared[opset]] == NOT_EXPORTED_TO.get((kind, birth), [])
    assert ran.keys() == choices_of(kind, birth)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: "{}-{}".format(*version))
def test_an_operation_is_exported_or_has_a_reason(version: tuple[str, int]) -> None:
    operation = find(*version)
    assert operation is not None
    assert exported_as(operation)[0] != NOT_EXPORTED or operation.unmatched


def test_limits_continue_a_sentence() -> None:
    # `ovir ops` puts a semicolon before them and a period after them.
    for name, target, limits in rows():
        assert target == NOT_EXPORTED or not limits.endswith("."), name
