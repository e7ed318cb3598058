"""A compiler with planted faults: it runs models layer by layer, and does something wrong at one type of operation.

    python -m tests.fuzz.faulty [--unchanged]

fuzzes a compiler with each fault alone until it is found, and prints after how many models that was; or one without
faults, in which nothing may be found.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":  # as a module of the repository, not of the tests
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

import ovir
from ovir.core.arrays import Array
from ovir.fuzzing import findings, typed
from ovir.fuzzing.models import NAMES
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import method_signature
from ovir.runtime.plan import applied_operator

Outputs = list[Array]
Fault = Callable[[Operator, Sequence[Array]], Outputs]


def run(op: Operator, inputs: Sequence[Array]) -> Outputs:
    """Return the outputs of an operation."""
    with np.errstate(all="ignore"):
        found = op.run(*inputs)
    return [np.asarray(array) for array in (found if isinstance(found, tuple) else (found,))]


def attribute(**changes: Any) -> Fault:
    """Return a fault that takes an attribute for another value, or for what a function makes of its value."""

    def fault(op: Operator, inputs: Sequence[Array]) -> Outputs:
        changed = copy.copy(op)
        for name, value in changes.items():
            if hasattr(op, name):
                setattr(changed, name, value(getattr(op, name)) if callable(value) else value)
        return run(changed, inputs)

    return fault


def given(position: int, change: Callable[[Array], Any]) -> Fault:
    """Return a fault that changes an input, if the operation has it."""

    def fault(op: Operator, inputs: Sequence[Array]) -> Outputs:
        changed = list(inputs)
        if position < len(changed):
            with np.errstate(all="ignore"):
                changed[position] = np.asarray(change(changed[position])).astype(changed[position].dtype)
        return run(op, changed)

    return fault


def result(change: Callable[..., Any]) -> Fault:
    """Return a fault that changes the first output, of which it may see the inputs."""

    def fault(op: Operator, inputs: Sequence[Array]) -> Outputs:
        first, *others = run(op, inputs)
        with np.errstate(all="ignore"):
            return [np.asarray(change(first, *inputs)).astype(first.dtype), *others]

    return fault


def _last(array: Array, *_: Array) -> Array:
    """Return an array whose last element is the one before it."""
    found = array.copy()
    found.reshape(-1)[-1:] = found.reshape(-1)[-2:-1] if found.size > 1 else found.reshape(-1)
    return found


def _every_other_run() -> Fault:
    runs = [0]

    def fault(op: Operator, inputs: Sequence[Array]) -> Outputs:
        runs[0] += 1
        first, *others = run(op, inputs)
        return [first if runs[0] % 2 else _plus_one(first), *others]

    return fault


def _plus_one(array: Array, *_: Array) -> Array:
    return ~array if array.dtype == bool else array + np.asarray(1, array.dtype)


def _numbers(array: Array, *_: Array) -> Array:
    return np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)


def _swapped(array: Array, *_: Array) -> Array:
    return np.swapaxes(array, -1, -2) if array.ndim > 1 and array.shape[-1] == array.shape[-2] else array


def _away_from_zero(array: Array, x: Array) -> Array:
    return np.trunc(x.astype(np.float64) + np.copysign(0.5, x.astype(np.float64)))


_other_axis = attribute(axis=lambda axis: 0 if axis in (-1, 1) else -1)
FAULTS: dict[str, Fault] = {
    # the wrong axis
    "SoftMax": _other_axis,
    "LogSoftmax": _other_axis,
    "Concat": result(lambda y, *x: np.flip(y, 0) if y.ndim > 1 else y),
    "CumSum": given(1, np.zeros_like),
    "Reverse": result(lambda y, x, *_: np.flip(x, -1) if x.ndim else y),
    "GatherElements": result(_swapped),
    "MatMul": result(_swapped),
    "Transpose": result(lambda y, x, *_: x.reshape(y.shape)),
    "NormalizeL2": given(1, lambda axes: axes[:1]),
    "ReduceMax": given(1, lambda axes: axes[:1] if axes.ndim else axes),
    "ShuffleChannels": result(lambda y, x: x),
    # off by one, at borders
    "MaxPool": result(_last),
    "AvgPool": attribute(exclude_pad=lambda flag: not flag),
    "Convolution": result(_last),
    "ConvolutionBackpropData": result(_last),
    "GroupConvolution": result(_last),
    "Pad": attribute(pad_mode=lambda mode: "edge" if mode in ("reflect", "symmetric") else mode),
    "Roll": given(1, lambda shift: shift + 1),
    "Interpolate": result(_last),
    "GridSample": attribute(align_corners=lambda flag: not flag),
    "ROIAlign": attribute(spatial_scale=lambda scale: scale * 1.1),
    "Tile": result(_last),
    "Slice": result(_last),
    "StridedSlice": result(_last),
    "ExtractImagePatches": result(_last),
    "SpaceToDepth": result(_last),
    "AdaptiveAvgPool": result(_last),
    "Eye": result(lambda y, *_: np.roll(y, 1, -1)),
    "Range": result(_last),
    # ties
    "Round": result(_away_from_zero),
    "Bucketize": attribute(with_right_bound=lambda flag: not flag),
    "SearchSorted": attribute(right_mode=lambda flag: not flag),
    "Sign": result(lambda y, x: np.where(x == 0, np.ones_like(y), y)),
    "GreaterEqual": result(lambda y, a, b: a > b),
    "Less": result(lambda y, a, b: a <= b),
    "TopK": given(0, lambda x: x[::-1] if x.ndim and x.dtype.kind in "iu" else x),
    # NaN, infinities
    "Maximum": result(_numbers),
    "ReLU": result(_numbers),
    "Tanh": result(_numbers),
    "Exp": result(lambda y, x: np.minimum(y.astype(np.float64), 1e30) if y.dtype.kind in "fV" else y),
    "IsNaN": result(lambda y, x: np.zeros_like(y)),
    "IsFinite": result(lambda y, x: np.ones_like(y)),
    "Equal": result(lambda y, a, b: y | ((a != a) & (b != b))),
    # an attribute or an input that is ignored
    "Elu": attribute(alpha=1.0),
    "Clamp": attribute(max=3e38),
    "LRN": attribute(size=1),
    "MVN": attribute(normalize_variance=True),
    "PReLU": given(1, np.abs),
    "Gelu": attribute(approximation_mode="TANH"),
    "Swish": given(1, np.ones_like),
    "HardSigmoid": given(2, np.zeros_like),
    "FakeQuantize": attribute(levels=256),
    "DepthToSpace": attribute(mode="blocks_first"),
    "GroupNormalization": attribute(num_groups=1),
    "Divide": attribute(m_pythondiv=False),
    "ScatterElementsUpdate": attribute(reduction="none"),
    "OneHot": result(lambda y, *_: ~y if y.dtype == bool else 1 - y),
    "LSTMCell": attribute(clip=0.0, activations=("tanh", "tanh", "tanh")),
    "GRUCell": attribute(linear_before_reset=lambda flag: not flag),
    "EmbeddingBagPacked": attribute(reduction="sum"),
    # a second run that differs
    "Sigmoid": _every_other_run(),
    "Subtract": _every_other_run(),
    "Select": _every_other_run(),
}


def compiler(faults: dict[str, Fault]) -> Callable[[str, Sequence[Array]], Outputs]:
    """Return a compiler with faults by the type of operation."""

    def outputs(path: str, inputs: Sequence[Array]) -> Outputs:
        model = ovir.read_model(path)
        values = dict(zip(model.inputs, inputs, strict=True))
        for layer in model.layers:
            op = layer.operator
            if layer.type in ("Parameter", "Result"):
                continue
            if op is None or layer.bodies or "variable" in method_signature(type(op).run).keywords:
                raise NotImplementedError(layer.type)
            own = [values[port.source] for port in layer.inputs if port.source is not None]
            fault = run if layer.type == "Const" else faults.get(layer.type, run)
            values.update(zip(layer.outputs, fault(applied_operator(layer, op), own), strict=False))
        return [values[port.source] for port in model.outputs if port.source is not None]

    return outputs


def first_finding(name: str) -> tuple[int, list[list[str]]]:
    """Return the number of models after which a fault is found, with the operations of each finding."""
    following = 0
    for models in range(1, MOST_MODELS + 1):
        found = ovir.fuzz(compiler({name: FAULTS[name]}), models=1, seed=following, ops=f"^{name}-")
        if found.findings:
            return models, [finding.operations for finding in found.findings]
        following = found.next
    return MOST_MODELS, []


def findings_without_faults() -> list[str]:
    """Return what is found with no fault in each sixth of the operation versions, with other kinds of values in each."""
    models = len(NAMES) * 8 // 7 // 6  # one of eight is a graph
    return [
        f"{finding.signature}: {finding.message} (model {finding.number})"
        for part in range(3)
        for finding in ovir.fuzz(compiler({}), models=models, seed=4 * part * models).findings
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unchanged", action="store_true", help="plant nothing")
    if parser.parse_args().unchanged:
        found = findings_without_faults()
        print(*found, sep="\n")
        return 1 if found else 0
    missed = 0
    for name in FAULTS:
        models, operations = first_finding(name)
        is_found = {kind.rpartition("-")[0] for kinds in operations for kind in kinds} == {name}
        missed += not is_found
        print(f"{name}: {'found' if is_found else 'MISSED'} after {models} models: {operations}")
    return 1 if missed else 0


MOST_MODELS = 60
"""How many models of an operation are made to find its fault."""


if __name__ == "__main__":
    findings._MOST_RUNS = 1  # what is found matters, and not how small it gets
    typed.types_of = lambda kind, opset: ()  # nor do the cells of a map that stay empty
    sys.exit(main())
