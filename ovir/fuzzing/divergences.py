"""Reasons for which models differ between ovir and OpenVINO's CPU plugin; each is a row of docs/divergences.md.

A rule looks at one layer that a differing result depends on, and at the arrays around it in ovir's run. So a layer
explains a difference only if what makes the two differ has occurred there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.graph.layers import Layer, Port
from ovir.graph.order import trace_back
from ovir.model import Model


@dataclass(frozen=True)
class Seen:
    """One layer in a run."""

    layer: Layer
    inputs: list[Array]
    outputs: list[Array]
    is_dynamic: bool
    """Whether sizes were unknown before the run."""

    @property
    def kind(self) -> str:
        return self.layer.type

    @property
    def before(self) -> list[Layer]:
        """Return the layers that feed it."""
        return [port.source.layer for port in self.layer.inputs if port.source is not None]

    def get(self, name: str) -> Any:
        """Return an attribute by its name in Python."""
        return getattr(self.layer.operator, name)


Rule = Callable[[Seen], bool]
EXACT: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "SquaredDifference": lambda a, b: (a - b) ** 2,
    "Power": np.power,
    "Negative": np.negative,
    "Abs": np.abs,
    "CumSum": lambda a, axis: a.sum(),
    "Exp": np.exp,
}


def _any_nan(array: Array) -> bool:
    return array.dtype.kind in "fV" and bool(np.isnan(array.astype(np.float64)).any())


def _any_infinite(array: Array) -> bool:
    return array.dtype.kind in "fV" and bool(np.isinf(array.astype(np.float64)).any())


def _converts_beyond_range(seen: Seen) -> bool:
    if seen.kind != "Convert" or seen.inputs[0].dtype.kind not in "fi" or seen.outputs[0].dtype.kind not in "iu":
        return False
    limits = np.iinfo(seen.outputs[0].dtype)
    values = seen.inputs[0].astype(np.float64)
    return not bool(((values > limits.min - 1.0) & (values < limits.max + 1.0)).all())


def _saturates(seen: Seen) -> bool:
    """Return whether the exact result of integers leaves the range of the type."""
    if seen.kind not in EXACT or seen.outputs[0].dtype.kind not in "iu":
        return False
    limits = np.iinfo(seen.outputs[0].dtype if seen.outputs[0].dtype != np.int64 else np.int32)
    wide = [array.astype(np.float64) for array in seen.inputs]
    if (aligned := getattr(seen.layer.operator, "aligned", None)) is not None:
        wide[1] = aligned(*wide)
    with np.errstate(all="ignore"):
        exact = np.asarray(EXACT[seen.kind](*wide))
    return bool(((exact < limits.min) | (exact > limits.max)).any())


def _beyond_32_bits(seen: Seen) -> bool:
    wide = [array for array in (*seen.inputs, *seen.outputs) if array.dtype in (np.int64, np.uint64, np.uint32)]
    return any(bool((array.astype(np.float64) != array.astype(np.int32)).any()) for array in wide)


def _beyond_f32(seen: Seen) -> bool:
    with np.errstate(over="ignore"):
        wide = [array for array in (*seen.inputs, *seen.outputs) if array.dtype == np.float64]
        return any(bool((np.isfinite(array) & np.isinf(array.astype(np.float32))).any()) for array in wide)


def _python_division(seen: Seen) -> bool:
    return (
        seen.kind == "Divide"
        and seen.get("m_pythondiv")
        and seen.inputs[0].dtype.kind == "i"
        and any(bool((array < 0).any()) for array in seen.inputs)
    )


def _equal_elements(seen: Seen) -> bool:
    """Return whether elements among which TopK chooses are equal; the CPU's order of them is not stable."""
    if seen.kind != "TopK" or not (seen.is_dynamic or seen.get("sort") == "index"):
        return False
    ordered = np.sort(seen.inputs[0], axis=seen.get("axis"))
    return bool((np.diff(ordered, axis=seen.get("axis")) == 0).any())


def _slope_of_product(seen: Seen) -> bool:
    """Return whether the slopes of PReLU belong to the rows of a product, and could belong to its columns."""
    if seen.kind != "PReLU" or seen.before[0].type != "MatMul" or seen.inputs[1].ndim != 1:
        return False
    shape = seen.inputs[0].shape
    return len(shape) > 2 and shape[1] == shape[-1] == seen.inputs[1].size > 1


def _pointwise_convolution_with_pads(seen: Seen) -> bool:
    if seen.kind != "Convolution" or seen.before[0].type in ("Parameter", "Const"):
        return False
    is_pointwise = all(size == 1 for size in seen.inputs[1].shape[2:])
    return is_pointwise and max(seen.get("strides")) > 1 and any((*seen.get("pads_begin"), *seen.get("pads_end")))


def _converted_quotient(seen: Seen) -> bool:
    if seen.kind != "Convert" or seen.before[0].type != "Divide" or not seen.is_dynamic:
        return False
    return seen.inputs[0].dtype.itemsize == 1 and seen.outputs[0].dtype.kind == "f"


def _nonzero_of_converted(seen: Seen) -> bool:
    return (
        seen.kind == "NonZero"
        and seen.before[0].type == "Convert"
        and seen.before[0].inputs[0].element_type.is_real
        and seen.inputs[0].dtype.kind in "iu"
    )


def _transposed_reduction(seen: Seen) -> bool:
    if seen.kind != "Transpose" or not seen.before[0].type.startswith("Reduce"):
        return False
    return not getattr(seen.before[0].operator, "keep_dims", True) and 1 in seen.inputs[0].shape


RULES: dict[str, Rule] = {
    "NaN": lambda x: any(map(_any_nan, x.inputs)),
    "Convert of numbers beyond the range of an integer type": _converts_beyond_range,
    "integers beyond the range of their type": _saturates,
    "i64, u64 or u32 beyond 32 bits": _beyond_32_bits,
    "f64 beyond f32": _beyond_f32,
    "Reduce of integers": lambda x: _is(x, "Reduce(Sum|Mean|L1|Prod)") and x.inputs[0].dtype.kind in "iu",
    "Divide of negative integers with m_pythondiv": _python_division,
    "Tile of unknown sizes by several repeats": lambda x: (
        _is(x, "Tile") and x.is_dynamic and int((x.inputs[1] > 1).sum()) > 1
    ),
    "MaxPool of unknown sizes with auto_pad same_lower or same_upper": lambda x: (
        _is(x, "MaxPool") and x.is_dynamic and str(x.get("auto_pad")).startswith("same")
    ),
    "SquaredDifference of 8-bit integers": lambda x: _is(x, "SquaredDifference") and x.outputs[0].dtype.itemsize == 1,
    "TopK of equal elements": _equal_elements,
    "a window that contains no data": lambda x: _is(x, "(Avg|Max)Pool") and x.get("rounding_type") == "ceil",
    "PReLU of a MatMul, as many rows as columns": _slope_of_product,
    "Convolution 1x1 with strides and pads": _pointwise_convolution_with_pads,
    "FakeQuantize and an elementwise operation behind it": lambda x: (
        _is(x, "FakeQuantize|Clamp") and x.before[0].type == "FakeQuantize"
    ),
    "Divide of 8-bit integers of unknown sizes that is converted": _converted_quotient,
    "NonZero of numbers that were converted to integers": _nonzero_of_converted,
    "Interpolate linear of infinities and NaN": lambda x: (
        _is(x, "Interpolate") and x.get("mode") == "linear" and not bool(np.isfinite(x.inputs[0]).all())
    ),
    "Transpose of a Reduce that moves only dimensions of size 1": _transposed_reduction,
    "f16 beyond its range": lambda x: any(y.dtype == np.float16 and _any_infinite(y) for y in (*x.inputs, *x.outputs)),
    "infinities": lambda x: (
        _is(x, "SoftMax|LogSoftmax|Gelu|ScaledDotProductAttention|I?R?DFT") and any(map(_any_infinite, x.inputs))
    ),
    "HardSigmoid with alpha 0": lambda x: _is(x, "HardSigmoid") and bool((x.inputs[1] == 0).any()),
    "MVN without axes": lambda x: _is(x, "MVN") and x.layer.inputs[1:] != [] and not x.inputs[1].size,
    "a reduction over no elements": lambda x: _is(x, "Reduce.*") and not x.inputs[0].size,
    "FakeConvert": lambda x: _is(x, "FakeConvert"),
    "FakeQuantize of an empty range": lambda x: _is(x, "FakeQuantize") and bool((x.inputs[1] == x.inputs[2]).any()),
    "IsInf of f64": lambda x: _is(x, "IsInf") and x.inputs[0].dtype == np.float64,
    "Exp of 8-bit integers": lambda x: _is(x, "Exp") and x.inputs[0].dtype.kind in "iu",
    "Interpolate of u8, or bicubic_pillow": lambda x: (
        _is(x, "Interpolate") and (x.inputs[0].dtype == np.uint8 or x.get("mode") == "bicubic_pillow")
    ),
    "sequence_lengths where X is dynamic": lambda x: _is(x, "(RNN|GRU|LSTM)Sequence") and x.is_dynamic,
    "fewer boxes than rows": lambda x: _is(x, "NonMaxSuppression") and x.layer.operator.opset in (1, 3, 4),  # type: ignore[union-attr]
    "NonMaxSuppression with sigma": lambda x: (
        _is(x, "NonMaxSuppression") and len(x.inputs) > 5 and bool(x.inputs[5] > 0)
    ),
    "MulticlassNms with nms_eta": lambda x: _is(x, "MulticlassNms") and x.get("nms_eta") < 1,
    "MatrixNms sorted by class": lambda x: _is(x, "MatrixNms") and x.get("sort_result_type") == "classid",
    "scores behind the last box": lambda x: _is(x, "Proposal"),
    "boxes below min_size": lambda x: _is(x, "ExperimentalDetectronGenerateProposalsSingleImage"),
    "fewer regions than max_rois": lambda x: _is(x, "ExperimentalDetectronTopKROIs"),
    "ROIAlign without samples, or of samples below 0": lambda x: _is(x, "ROIAlign.*"),
    "IRDFT of more than there is": lambda x: _is(x, "IRDFT"),
    "DFT without axes": lambda x: _is(x, "I?DFT") and not x.inputs[1].size,
    "images without pixels": lambda x: _is(x, "GridSample") and not x.inputs[0].size,
    "Gather of no data": lambda x: _is(x, "Gather.*") and not x.inputs[0].size,
    "random numbers": lambda x: _is(x, "RandomUniform|Multinomial"),
    "a mean of integers that is scattered": lambda x: (
        _is(x, "ScatterElementsUpdate") and x.inputs[0].dtype.kind in "iu"
    ),
    "a loop that does not run": lambda x: _is(x, "Loop") and not (x.inputs[0].all() and x.inputs[1].all()),
    "SparseFillEmptyRows without entries": lambda x: _is(x, "SparseFillEmptyRows") and not x.inputs[0].size,
    "no time steps": lambda x: _is(x, "CTC.*|GatherTree|(RNN|GRU|LSTM)Sequence") and not all(y.size for y in x.inputs),
    "TopK of no elements": lambda x: _is(x, "TopK") and not x.inputs[1].all(),
}
REFUSED = {
    "Default output not supported": "Convert of one of several outputs to boolean is refused",
    "failed at src/core/src/op/select.cpp": "Select of boolean tensors that are computed is refused",
    "unsupported dst_prc: boolean": "Select of boolean tensors that are computed is refused",
    "failed at src/plugins/intel_cpu/src/dnnl_postops_composer.cpp": "Multiply of the rows of a MatMul is refused",
    "Unsupported operation of type: GroupNormalization": "GroupNormalization of unknown sizes is refused",
}
_COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")


def _half_normalization_compared(seen: Seen) -> bool:
    normalized = any(x.type == "GroupNormalization" and x.inputs[0].element_type.name == "f16" for x in seen.before)
    return seen.kind in _COMPARISONS and normalized


FAILURES: dict[str, Rule] = {
    "Broadcast of a scalar to a scalar crashes": lambda x: _is(x, "Broadcast") and x.outputs[0].ndim == 0,
    "GroupNormalization of f16 that is compared crashes": _half_normalization_compared,
    "Gather of empty indices crashes": lambda x: _is(x, "Gather.*") and not all(y.size for y in x.inputs),
    "sequences without steps or batch, with other activations than the usual ones": lambda x: (
        _is(x, "(RNN|GRU|LSTM)(Sequence|Cell)")
        and (not all(y.size for y in x.inputs) or "activations" not in x.layer.attributes or _has_unusual(x))
    ),
    "EmbeddingBag with empty bags": lambda x: _is(x, "EmbeddingBag.*"),
    "nothing is selected": lambda x: _is(x, "MatrixNms"),
    "Proposal of fewer than 8 candidates": lambda x: _is(x, "Proposal"),
    "RDFT and IRDFT of signals longer than the data, or of their whole axis": lambda x: (
        _is(x, "I?RDFT") and len(x.inputs) > 2
    ),
    "auto_broadcast pdpd": lambda x: getattr(x.layer.operator, "auto_broadcast", "") == "pdpd",
    "TopK of no elements is refused": lambda x: _is(x, "TopK") and not x.inputs[1].all(),
    "Assign to a variable of dynamic shape": lambda x: _is(x, "Assign|ReadValue") and x.is_dynamic,
    "images without pixels crash": lambda x: _is(x, "GridSample") and not x.inputs[0].size,
    "negative maximum of boxes": lambda x: _is(x, "NonMaxSuppression") and len(x.inputs) > 2 and bool(x.inputs[2] < 0),
}


def _has_unusual(seen: Seen) -> bool:
    return not {*seen.get("activations")} <= {"sigmoid", "tanh", "relu"}


def _is(seen: Seen, kinds: str) -> bool:
    return re.fullmatch(kinds, seen.kind) is not None


def reason_of_failure(model: Model, message: str | None, arrays: Mapping[Port, Array]) -> str | None:
    """Return why OpenVINO refuses a model with a message, or crashes (None)."""
    reason = next((reason for text, reason in REFUSED.items() if message is not None and text in message), None)
    return reason or _first_reason(list(model.layers), FAILURES, arrays)


def reason_of_value(model: Model, output: int, arrays: Mapping[Port, Array]) -> str | None:
    """Return why a result may differ; ``arrays`` are the tensors of the run."""
    above, _ = trace_back([model.outputs[output].layer], lambda port: True)
    return _first_reason([layer for layer in model.layers if layer in above], RULES, arrays)


def _first_reason(layers: Sequence[Layer], rules: Mapping[str, Rule], arrays: Mapping[Port, Array]) -> str | None:
    for layer in layers:
        inputs = [arrays[x] for port in layer.inputs if (x := port.source) is not None and x in arrays]
        outputs = [arrays[port] for port in layer.outputs if port in arrays]
        if len(inputs) == len(layer.inputs) and outputs:
            seen = Seen(layer, inputs, outputs, any(not port.shape.is_static for port in layer.inputs))
            if (reason := next((reason for reason, rule in rules.items() if rule(seen)), None)) is not None:
                return reason
    return None
