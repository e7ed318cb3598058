"""Cases in which OpenVINO and ovir differ: the rows of ``divergences.tsv``, of which docs/divergences.md is made.

A row with an *effect* is recognized in runs: a device gives other ``values``, or it ``fails``. Its condition looks at
one layer and at the arrays around it in ovir's run, so it holds only if what makes the two differ has occurred there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, i32, i64, value_range
from ovir.core.reading import read_text
from ovir.debugging.value_conditions import largest_of
from ovir.graph.layers import Layer, Port, layers_before
from ovir.graph.order import trace_back
from ovir.lowering.releases import Release
from ovir.model import Model
from ovir.ops.reduction import ReductionBase


@dataclass(frozen=True)
class Divergence:
    """A case in which OpenVINO differs from ovir."""

    section: str
    case: str
    openvino: str
    """What OpenVINO does."""
    ovir: str
    """What ovir does."""
    devices: str
    """``CPU``, ``reference`` or ``all``."""
    releases: str
    """The releases of OpenVINO that have it, as in ``2023.0 to 2025.1``, ``2023.0 to`` or ``to 2025.1``; all if neither
    the first nor the last one is known. All rows are measured with the release that docs/divergences.md names, or an
    older one."""
    effect: str = ""
    """What a run shows: ``values``, ``fails``, both with a space, or nothing."""
    operations: str = ""
    """A regular expression for operations such as ``TopK`` or ``TopK-11``."""
    condition: str = ""
    """A key of ``CONDITIONS``, or ``says`` with a regular expression for messages of the device."""

    def __str__(self) -> str:
        return f"{self.case}. OpenVINO: {self.openvino}. ovir: {self.ovir}"

    def to_dict(self) -> dict[str, str]:
        """Return the case for JSON."""
        return {"case": self.case, "openvino": self.openvino, "ovir": self.ovir, "section": self.section}

    def holds(self, seen: Seen, device: str, failure: str | None) -> bool:
        """Return whether it explains what a device such as ``OpenVINO 2026.4.1 on CPU`` shows at a layer."""
        version = seen.layer.operator.opset if seen.layer.operator is not None else ""
        effect = "values" if failure is None else "fails"
        if effect not in self.effect.split() or not any(kind in device for kind in _DEVICES[self.devices]):
            return False
        if not self._is_in_release(device):
            return False
        if not any(re.fullmatch(self.operations, name) for name in (seen.layer.type, f"{seen.layer.type}-{version}")):
            return False
        if self.condition.startswith("says "):
            return re.search(self.condition.removeprefix("says "), failure or "") is not None
        return bool(CONDITIONS[self.condition](seen))

    def _is_in_release(self, device: str) -> bool:
        """Return whether the release of a device may have it; a name without a release may be any."""
        release = _release(device)
        first, _, last = self.releases.partition("to")
        return release is None or (_release(first) or release) <= release <= (_release(last) or release)


def _release(text: str) -> Release | None:
    """Return the release that a text names, which may be newer than those that ovir knows."""
    match = re.search(r"(\d+)\.(\d+)", text)
    return None if match is None else (int(match[1]), int(match[2]))


_DEVICES = {"CPU": ("CPU",), "all": ("CPU", "GPU", "NPU"), "reference": ()}


@cache
def divergences() -> tuple[Divergence, ...]:
    """Return all rows, in the order of the page."""
    lines = read_text(os.path.join(os.path.dirname(__file__), "divergences.tsv")).splitlines()
    return tuple(Divergence(*line.split("\t")) for line in lines[1:])


@dataclass(frozen=True)
class Seen:
    """One layer in a run."""

    layer: Layer
    inputs: Sequence[Array]
    outputs: Sequence[Array]

    @property
    def is_dynamic(self) -> bool:
        """Return whether sizes were unknown before the run."""
        return any(not port.shape.is_static for port in self.layer.inputs)

    @property
    def output_type(self) -> ElementType:
        """Return the element type of the first output."""
        return self.layer.outputs[0].element_type

    @property
    def before(self) -> list[Layer]:
        """Return the layers that feed it."""
        return layers_before(self.layer)

    def get(self, name: str) -> Any:
        """Return an attribute by its name in Python."""
        return getattr(self.layer.operator, name)


def row_of(
    layer: Layer, inputs: Sequence[Array | None], outputs: Sequence[Array], device: str, failure: str | None = None
) -> Divergence | None:
    """Return the row that explains other values of a device at a layer, or its failure: a message, empty without
    one."""
    arrays = [array for array in inputs if array is not None]
    if len(arrays) < len(layer.inputs) or not device:  # compressed weights, of which no row speaks
        return None
    seen = Seen(layer, arrays, outputs)
    return next((row for row in divergences() if row.holds(seen, device, failure)), None)


def reason_of_failure(
    model: Model, message: str | None, arrays: Mapping[Port, Array], device: str
) -> Divergence | None:
    """Return why a device refuses a model with a message, or crashes (None)."""
    return _first_row(model.layers, arrays, device, message or "")


def reason_of_value(model: Model, output: int, arrays: Mapping[Port, Array], device: str) -> Divergence | None:
    """Return why a result may differ; ``arrays`` are the tensors of the run."""
    above, _ = trace_back([model.outputs[output].layer], lambda port: True)
    return _first_row([layer for layer in model.layers if layer in above], arrays, device)


def _first_row(
    layers: Iterable[Layer], arrays: Mapping[Port, Array], device: str, failure: str | None = None
) -> Divergence | None:
    for layer in layers:
        inputs = [arrays.get(port.source) for port in layer.inputs if port.source is not None]
        outputs = [arrays[port] for port in layer.outputs if port in arrays]
        if outputs and (row := row_of(layer, inputs, outputs, device, failure)) is not None:
            return row
    return None


# --------------------------------------------------------------------------- conditions

EXACT: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "SquaredDifference": lambda a, b: (a - b) ** 2,
    "Power": np.power,
    "Negative": np.negative,
    "Abs": np.abs,
    "CumSum": lambda a, axis: np.cumsum(a, int(axis.ravel()[0])),
    "Exp": np.exp,
}


def _any(arrays: Iterable[Array], test: Callable[[Array], Array]) -> bool:
    """Return whether any real number passes a test."""
    return any(array.dtype.kind in "fV" and bool(test(array.astype(np.float64)).any()) for array in arrays)


def _tensors(seen: Seen) -> list[Array]:
    return [*seen.inputs, *seen.outputs]


def _converts_beyond_range(seen: Seen) -> bool:
    if seen.inputs[0].dtype.kind not in "fi" or not seen.output_type.is_integral:
        return False
    least, greatest = value_range(seen.output_type)
    values = seen.inputs[0].astype(np.float64)
    return not bool(((values > least - 1.0) & (values < greatest + 1.0)).all())


def saturates(seen: Seen) -> bool:
    """Return whether the exact result of integers leaves the range of the type."""
    if not seen.output_type.is_integral:
        return False
    least, greatest = value_range(seen.output_type if seen.output_type != i64 else i32)
    wide = [array.astype(np.float64) for array in seen.inputs]
    if (aligned := getattr(seen.layer.operator, "aligned", None)) is not None:
        wide[1] = aligned(*wide)
    with np.errstate(all="ignore"):
        exact = np.asarray(EXACT[seen.layer.type](*wide))
    return bool(((exact < least) | (exact > greatest)).any())


def _are_lost(seen: Seen, narrow: type, wide: str) -> bool:
    """Return whether a narrower type does not hold some elements of tensors of these types."""
    arrays = [array for array in _tensors(seen) if array.dtype.name in wide.split()]
    return any(bool((array.astype(np.float64) != array.astype(narrow)).any()) for array in arrays)


def _beyond_f32(seen: Seen) -> bool:
    with np.errstate(over="ignore"):
        wide = [array for array in _tensors(seen) if array.dtype == np.float64]
        return any(bool((np.isfinite(array) & np.isinf(array.astype(np.float32))).any()) for array in wide)


def _equal_elements(seen: Seen) -> bool:
    """Return whether elements among which TopK chooses are equal; the CPU's order of them is not stable."""
    if not (seen.is_dynamic or seen.get("sort") == "index"):
        return False
    ordered = np.sort(seen.inputs[0], axis=seen.get("axis"))
    return bool((np.diff(ordered, axis=seen.get("axis")) == 0).any())


def _slope_of_product(seen: Seen) -> bool:
    """Return whether the slopes of PReLU belong to the rows of a product, and could belong to its columns."""
    if seen.before[0].type != "MatMul" or seen.inputs[1].ndim != 1:
        return False
    shape = seen.inputs[0].shape
    return len(shape) > 2 and shape[1] == shape[-1] == seen.inputs[1].size > 1


def _pointwise_convolution_with_pads(seen: Seen) -> bool:
    if seen.before[0].type in ("Parameter", "Const"):
        return False
    is_pointwise = all(size == 1 for size in seen.inputs[1].shape[2:])
    return is_pointwise and max(seen.get("strides")) > 1 and any((*seen.get("pads_begin"), *seen.get("pads_end")))


def _converted_quotient(seen: Seen) -> bool:
    if seen.before[0].type != "Divide" or not seen.is_dynamic:
        return False
    return seen.inputs[0].dtype.itemsize == 1 and seen.output_type.is_real


def _converted_to_integers(seen: Seen) -> bool:
    before = seen.before[0]
    return before.type == "Convert" and before.inputs[0].element_type.is_real and _has_integers(seen)


def _transposed_reduction(seen: Seen) -> bool:
    before = seen.before[0].operator
    return isinstance(before, ReductionBase) and not before.keep_dims and 1 in seen.inputs[0].shape


def _half_normalization(seen: Seen) -> bool:
    return any(x.type == "GroupNormalization" and x.inputs[0].element_type.name == "f16" for x in seen.before)


def _lacks_attributes(seen: Seen) -> bool:
    op = seen.layer.operator
    return op is not None and not op.attributes.keys() <= seen.layer.attributes.keys()


def _has_unused_rows(seen: Seen) -> bool:
    """Return whether the last row of a result holds only 0 or -1, as rows do that nothing was found for."""
    return any(x.shape[:1] > (0,) and bool(((x[-1] == 0) | (x[-1] == -1)).all()) for x in seen.outputs)


def _has_integers(seen: Seen) -> bool:
    return seen.layer.inputs[0].element_type.is_integral


CONDITIONS: dict[str, Callable[[Seen], object]] = {
    "8-bit integers": lambda x: _has_integers(x) and x.inputs[0].dtype.itemsize == 1,
    "8-bit integers, cubic or linear": lambda x: (
        _has_integers(x) and x.inputs[0].dtype.itemsize == 1 and x.get("mode").startswith(("cubic", "linear"))
    ),
    "8-bit integers beyond the range": lambda x: x.inputs[0].dtype.itemsize == 1 and saturates(x),
    "NaN": lambda x: _any(x.inputs, np.isnan),
    "a 1x1 kernel, strides and pads": _pointwise_convolution_with_pads,
    "a Convert to integers before it": _converted_to_integers,
    "a Divide of 8-bit integers of unknown sizes before it": _converted_quotient,
    "a FakeQuantize before it": lambda x: x.before[0].type == "FakeQuantize",
    "a GroupNormalization of f16 before it": _half_normalization,
    "a Reduce before it without a dimension of size 1": _transposed_reduction,
    "a constant": lambda x: x.before[0].type == "Const",
    "a coordinate that is not finite": lambda x: not np.isfinite(x.inputs[1]).all(),
    "a magnitude above 0.99": lambda x: _any(x.inputs, lambda array: np.abs(array) > 0.99),
    "a negative maximum": lambda x: len(x.inputs) > 2 and x.inputs[2] < 0,
    "a scalar results": lambda x: x.outputs[0].ndim == 0,
    "a side of 0 or below": lambda x: (
        (x.get("sampling_ratio"), x.get("aligned_mode") == "asymmetric") == (0, False)
        and (x.inputs[1][:, 2:4] <= x.inputs[1][:, :2]).any()
    ),
    "a sigma above 0": lambda x: len(x.inputs) > 5 and x.inputs[5] > 0,
    "a window of 16 bits without data": lambda x: (
        x.output_type in (f16, bf16) and (x.outputs[0] == -largest_of(x.output_type)).any()
    ),
    "activations left out": lambda x: "activations" not in x.layer.attributes,
    "activations other than sigmoid, tanh and relu": lambda x: {*x.get("activations")} - {"sigmoid", "tanh", "relu"},
    "alpha 0": lambda x: (x.inputs[1] == 0).any(),
    "an attribute left out": _lacks_attributes,
    "an empty input": lambda x: not all(array.size for array in x.inputs),
    "an empty range": lambda x: (x.inputs[1] == x.inputs[2]).any(),
    "an infinity": lambda x: _any(x.inputs, np.isinf),
    "an integer divided by 0": lambda x: _has_integers(x) and not x.inputs[1].all(),
    "an offset at the end": lambda x: (x.inputs[2] == x.inputs[1].size).any(),
    "auto_broadcast pdpd": lambda x: getattr(x.layer.operator, "auto_broadcast", "") == "pdpd",
    "does not run": lambda x: not (x.inputs[0].all() and x.inputs[1].all()),
    "empty second input": lambda x: len(x.inputs) > 1 and not x.inputs[1].size,
    "equal elements": _equal_elements,
    "f16 beyond its range": lambda x: _any((y for y in _tensors(x) if y.dtype == np.float16), np.isinf),
    "f16 or bf16": lambda x: x.inputs[0].dtype.itemsize == 2,
    "f64": lambda x: x.inputs[0].dtype == np.float64,
    "f64 beyond f32": _beyond_f32,
    "f8e4m3": lambda x: x.get("destination_type") == "f8e4m3",
    "fewer than 8 candidates": lambda x: min(x.inputs[0][:1].size // 2, x.get("pre_nms_topn")) < 8,
    "fill_mode lowest": lambda x: x.get("fill_mode") == "lowest" and x.outputs[0].dtype not in (np.float32, np.int32),
    "flatten left out": lambda x: "flatten" not in x.layer.attributes,
    "integers": _has_integers,
    "integers beyond 32 bits": lambda x: _are_lost(x, np.int32, "int64 uint64 uint32"),
    "integers that f32 does not hold": lambda x: _are_lost(x, np.float32, "int32 int64 uint32 uint64"),
    "integers beyond the range": saturates,
    "integers of 32 or 64 bits": lambda x: _has_integers(x) and x.inputs[0].dtype.itemsize >= 4,
    "k of 0": lambda x: not x.inputs[1].all(),
    "mode bicubic_pillow, not -0.5": lambda x: x.get("mode") == "bicubic_pillow" and x.get("cube_coeff") != -0.5,
    "mode linear of infinities": lambda x: x.get("mode") == "linear" and not np.isfinite(x.inputs[0]).all(),
    "negative integers, m_pythondiv": lambda x: (
        x.get("m_pythondiv") and _has_integers(x) and any((array.astype(np.float64) < 0).any() for array in x.inputs)
    ),
    "nms_eta below 1": lambda x: x.get("nms_eta") < 1,
    "no data": lambda x: not x.inputs[0].size,
    "no results": lambda x: not x.outputs[0].size,
    "numbers beyond the integer type": _converts_beyond_range,
    "numbers of other types than f32 and i32": lambda x: x.outputs[0].dtype not in (np.float32, np.int32),
    "probabilities of 0 or below": lambda x: (x.inputs[0] <= 0).any(),
    "rounding ceil, an empty window": lambda x: x.get("rounding_type") == "ceil" and (x.outputs[0] == 0).any(),
    "signal_size given": lambda x: len(x.inputs) > 2,
    "slopes for the rows of a product": _slope_of_product,
    "sorted by class": lambda x: x.get("sort_result_type") == "classid",
    "the mean of integers": lambda x: x.get("reduction") == "mean" and _has_integers(x),
    "unknown sizes, auto_pad same": lambda x: x.is_dynamic and str(x.get("auto_pad")).startswith("same"),
    "unknown sizes, ended sequences": lambda x: (
        x.is_dynamic and (next(y for y in x.inputs if y.dtype.kind == "i") < x.inputs[0].shape[1]).any()
    ),
    "unknown sizes, several repeats": lambda x: x.is_dynamic and (x.inputs[1] > 1).sum() > 1,
    "unused rows": _has_unused_rows,
}
