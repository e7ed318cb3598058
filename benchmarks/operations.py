"""Operations on a million numbers: ovir's time over that of OpenVINO's CPU plugin at f32.

    python -m benchmarks.operations [--only REGEX] [--rounds N] [--markdown]

Each operation is a model of one layer that both sides read from a file and infer in this process, in turns. A ratio is
the median over the rounds: below 1, ovir is the faster one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import openvino
import openvino.opset8
import openvino.opset14
import openvino.opset16 as ops

from benchmarks.common import geometric_mean, in_turns, infer_requests, largest_difference
from ovir.core.arrays import Array

Build = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One layer: ``build`` makes it from a parameter for each input. An operation may have several outputs."""

    group: str
    name: str
    build: Build
    inputs: tuple[Array, ...]

    def model(self) -> openvino.Model:
        parameters = [ops.parameter(array.shape, array.dtype) for array in self.inputs]
        node = self.build(*parameters)
        outputs = [node] if isinstance(node, openvino.Output) else node.outputs()
        return openvino.Model(outputs, parameters)


@dataclass(frozen=True)
class Timing:
    case: Case
    ours: float
    theirs: float
    ratio: float
    difference: float


# --------------------------------------------------------------------------- inputs

_rng = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return _rng.standard_normal(shape, np.float32)


def uniform(low: float, high: float, *shape: int) -> Array:
    return (_rng.random(shape, np.float32) * (high - low) + low).astype(np.float32)


def integers(high: int, *shape: int, dtype: Any = np.int64) -> Array:
    return _rng.integers(0, high, shape).astype(dtype)


SQUARE = normal(1000, 1000)
OTHER = normal(1000, 1000)
IMAGE = normal(1, 64, 128, 128)
LAYERS = normal(100, 100, 100)
BOOLEANS, OTHER_BOOLEANS = SQUARE > 0, OTHER > 0
POSITIVE = uniform(0.1, 4, 1000, 1000)
UNIT = uniform(-0.99, 0.99, 1000, 1000)
ABOVE_ONE = uniform(1, 4, 1000, 1000)


def i64(*values: int) -> Any:
    return ops.constant(np.array(values, np.int64))


def scalar(value: float, dtype: Any = np.float32) -> Any:
    return ops.constant(dtype(value))


# --------------------------------------------------------------------------- the operations


def cases() -> Iterator[Case]:
    for group, members in GROUPS.items():
        for case in members():
            yield Case(group, *case)


Members = Iterator[tuple[str, Build, tuple[Array, ...]]]


def unary() -> Members:
    any_number = (
        "abs acos:UNIT asin:UNIT atan ceiling cos cosh exp floor log:POSITIVE negative sign sin sinh sqrt:POSITIVE"
    )
    any_number += " tan:UNIT asinh acosh:ABOVE_ONE atanh:UNIT round erf is_finite is_inf is_nan"
    for entry in any_number.split():
        function, _, data = entry.partition(":")
        yield _title(function), _operation(function), (globals()[data or "SQUARE"],)


def _title(function: str) -> str:
    return "".join(part.capitalize() for part in function.split("_"))


def _operation(function: str) -> Build:
    if function == "round":
        return lambda x: ops.round(x, "half_to_even")
    build: Build = getattr(ops, function)
    return build


def binary() -> Members:
    row, column = POSITIVE[:1], np.ascontiguousarray(POSITIVE[:, :1])
    for function in [
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "minimum",
        "squared_difference",
        "floor_mod",
        "mod",
        "power",
    ]:
        a = POSITIVE if function == "power" else SQUARE
        yield _title(function), getattr(ops, function), (a, POSITIVE)
    yield "Add a row", ops.add, (SQUARE, row)
    yield "Multiply a column", ops.multiply, (SQUARE, column)
    yield "Add a row and a column", ops.add, (row, column)
    yield "Divide by a number", lambda a: ops.divide(a, scalar(3)), (SQUARE,)
    yield "Power 2", lambda a: ops.power(a, scalar(2)), (SQUARE,)
    yield "Power 0.5", lambda a: ops.power(a, scalar(0.5)), (POSITIVE,)
    yield "Add i32", ops.add, (integers(9, 1000, 1000, dtype=np.int32),) * 2


def comparison() -> Members:
    for function in ["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]:
        yield _title(function), getattr(ops, function), (SQUARE, OTHER)
    yield "Greater than a number", lambda a: ops.greater(a, scalar(0)), (SQUARE,)


def logic() -> Members:
    for function in ["logical_and", "logical_or", "logical_xor"]:
        yield _title(function), getattr(ops, function), (BOOLEANS, OTHER_BOOLEANS)
    yield "LogicalNot", ops.logical_not, (BOOLEANS,)
    yield "Select", ops.select, (BOOLEANS, SQUARE, OTHER)
    yield "Select of a row", ops.select, (BOOLEANS[:1], SQUARE, OTHER)


def activation() -> Members:
    for function in ["relu", "sigmoid", "tanh", "hsigmoid", "hswish", "mish", "softplus", "softsign"]:
        yield _title(function), getattr(ops, function), (SQUARE,)
    yield "Clamp", lambda x: ops.clamp(x, -1.0, 1.0), (SQUARE,)
    yield "Elu", lambda x: ops.elu(x, 1.0), (SQUARE,)
    yield "Elu alpha 2", lambda x: ops.elu(x, 2.0), (SQUARE,)
    yield "Selu", lambda x: ops.selu(x, scalar(1.67326), scalar(1.0507)), (SQUARE,)
    yield "HardSigmoid", lambda x: ops.hard_sigmoid(x, scalar(0.2), scalar(0.5)), (SQUARE,)
    yield "PRelu of a number", lambda x: ops.prelu(x, ops.constant(np.array([0.1], np.float32))), (SQUARE,)
    yield "PRelu of channels", ops.prelu, (IMAGE, uniform(-0.1, 0.5, 64))
    yield "Swish", ops.swish, (SQUARE,)
    yield "Swish beta", lambda x: ops.swish(x, scalar(1.5)), (SQUARE,)
    yield "Gelu erf", lambda x: ops.gelu(x, "erf"), (SQUARE,)
    yield "Gelu tanh", lambda x: ops.gelu(x, "tanh"), (SQUARE,)
    yield "Softmax last", lambda x: ops.softmax(x, 1), (SQUARE,)
    yield "Softmax first", lambda x: ops.softmax(x, 0), (SQUARE,)
    yield "Softmax of 10", lambda x: ops.softmax(x, 1), (normal(100_000, 10),)
    yield "LogSoftmax last", lambda x: ops.log_softmax(x, 1), (SQUARE,)
    yield "LogSoftmax first", lambda x: ops.log_softmax(x, 0), (SQUARE,)


def reduction() -> Members:
    places = {"last": (2,), "first": (0,), "middle": (1,), "all": (0, 1, 2)}
    for function in ["sum", "mean", "max", "min", "prod", "l1", "l2"]:
        for place, axes in places.items():
            data = uniform(0.99, 1.01, 100, 100, 100) if function == "prod" else LAYERS
            yield f"Reduce{function.capitalize()} {place}", _reduction(function, axes), (data,)
    for function in ("logical_and", "logical_or"):
        for place, axes in places.items():
            yield f"Reduce{_title(function)} {place}", _reduction(function, axes), (LAYERS > -9,)
    for place, axis in ("last", 2), ("first", 0):
        yield f"CumSum {place}", _cum_sum(axis), (LAYERS,)


def _reduction(function: str, axes: tuple[int, ...]) -> Build:
    return lambda x: getattr(ops, f"reduce_{function}")(x, i64(*axes), False)


def _cum_sum(axis: int) -> Build:
    return lambda x: ops.cum_sum(x, scalar(axis, np.int64))


def movement() -> Members:
    yield "Broadcast a row", lambda x: ops.broadcast(x, i64(1000, 1000)), (SQUARE[:1],)
    yield "Broadcast a column", lambda x: ops.broadcast(x, i64(1000, 1000)), (SQUARE[:, :1].copy(),)
    yield "Tile last", lambda x: ops.tile(x, i64(1, 10)), (normal(1000, 100),)
    yield "Tile first", lambda x: ops.tile(x, i64(10, 1)), (normal(100, 1000),)
    yield "Concat last", lambda a, b: ops.concat([a, b], 1), (normal(1000, 500), normal(1000, 500))
    yield "Concat first", lambda a, b: ops.concat([a, b], 0), (normal(500, 1000), normal(500, 1000))
    for mode in ["constant", "edge", "reflect", "symmetric"]:
        yield f"Pad {mode}", _pad(mode), (IMAGE,)
    yield "Reshape", lambda x: ops.reshape(x, i64(-1, 10), False), (SQUARE,)
    yield "Roll", lambda x: ops.roll(x, i64(3, 5), i64(0, 1)), (SQUARE,)
    yield "Slice", lambda x: ops.slice(x, i64(10, 10), i64(990, 990), i64(1, 1), i64(0, 1)), (SQUARE,)
    yield "Slice step 2", lambda x: ops.slice(x, i64(0), i64(1000), i64(2), i64(1)), (SQUARE,)
    yield "Slice backwards", lambda x: ops.slice(x, i64(-1), i64(-2000), i64(-1), i64(1)), (SQUARE,)
    yield "StridedSlice", _strided_slice, (SQUARE,)
    yield "Split last", lambda x: ops.split(x, scalar(1, np.int64), 4), (SQUARE,)
    yield "Split first", lambda x: ops.split(x, scalar(0, np.int64), 4), (SQUARE,)
    yield "VariadicSplit", lambda x: ops.variadic_split(x, scalar(1, np.int64), i64(300, 700)), (SQUARE,)
    yield "Transpose 2-D", lambda x: ops.transpose(x, i64(1, 0)), (SQUARE,)
    yield "Transpose to NHWC", lambda x: ops.transpose(x, i64(0, 2, 3, 1)), (IMAGE,)
    yield "Transpose to NCHW", lambda x: ops.transpose(x, i64(0, 3, 1, 2)), (normal(1, 128, 128, 64),)
    yield "Transpose heads", lambda x: ops.transpose(x, i64(0, 2, 1, 3)), (normal(1, 1024, 16, 64),)
    for mode in ("blocks_first", "depth_first"):
        yield f"DepthToSpace {mode}", _depth_to_space(mode), (IMAGE,)
        yield f"SpaceToDepth {mode}", _space_to_depth(mode), (IMAGE,)
    yield "BatchToSpace", _batch_to_space, (normal(4, 64, 64, 64),)
    yield "SpaceToBatch", _space_to_batch, (IMAGE,)
    yield "ShuffleChannels", lambda x: ops.shuffle_channels(x, 1, 4), (IMAGE,)
    yield "ReverseSequence", lambda x: ops.reverse_sequence(x, ops.constant(np.full(100, 90)), 0, 1), (LAYERS,)
    yield "Convert f32 to f16", lambda x: ops.convert(x, "f16"), (SQUARE,)
    yield "Convert f16 to f32", lambda x: ops.convert(x, "f32"), (SQUARE.astype(np.float16),)
    yield "Convert f32 to i32", lambda x: ops.convert(x, "i32"), (SQUARE * 100,)
    yield "Convert f32 to i8", lambda x: ops.convert(x, "i8"), (SQUARE * 20,)
    yield "Convert i8 to f32", lambda x: ops.convert(x, "f32"), (integers(100, 1000, 1000, dtype=np.int8),)
    yield "Convert i32 to f32", lambda x: ops.convert(x, "f32"), (integers(100, 1000, 1000, dtype=np.int32),)


def _pad(mode: str) -> Build:
    return lambda x: ops.pad(x, i64(0, 0, 2, 2), i64(0, 0, 2, 2), mode, scalar(1) if mode == "constant" else None)


def _strided_slice(x: Any) -> Any:
    return ops.strided_slice(x, i64(10, 0), i64(900, 999), i64(1, 3), [0, 0], [0, 0])


def _depth_to_space(mode: str) -> Build:
    return lambda x: ops.depth_to_space(x, mode, 2)


def _space_to_depth(mode: str) -> Build:
    return lambda x: ops.space_to_depth(x, mode, 2)


def _batch_to_space(x: Any) -> Any:
    return ops.batch_to_space(x, i64(1, 1, 2, 2), i64(0, 0, 0, 0), i64(0, 0, 0, 0))


def _space_to_batch(x: Any) -> Any:
    return ops.space_to_batch(x, i64(1, 1, 2, 2), i64(0, 0, 0, 0), i64(0, 0, 0, 0))


def indexing() -> Members:
    places = np.stack(np.divmod(_rng.permutation(1_000_000)[:100_000], 1000), -1).astype(np.int32)
    points = integers(100, 100_000, 2, dtype=np.int32)
    rows = _rng.permutation(1000)[:500].astype(np.int32)
    yield "Gather rows", lambda x, i: ops.gather(x, i, scalar(0, np.int64)), (SQUARE, rows)
    yield (
        "GatherElements",
        lambda x, i: ops.gather_elements(x, i, 1),
        (SQUARE, integers(1000, 1000, 1000, dtype=np.int32)),
    )
    yield "GatherND rows", ops.gather_nd, (normal(100, 100, 100), points[:10_000])
    yield "GatherND numbers", ops.gather_nd, (normal(100, 100), points)
    yield "ScatterUpdate", lambda x, i, u: ops.scatter_update(x, i, u, scalar(0, np.int64)), (SQUARE, rows, OTHER[:500])
    yield (
        "ScatterElementsUpdate",
        _scatter_elements("none"),
        (SQUARE, integers(1000, 500, 1000, dtype=np.int32), OTHER[:500]),
    )
    for reduction in ["sum", "prod", "max", "mean"]:
        inputs = SQUARE, integers(1000, 500, 1000, dtype=np.int32), OTHER[:500]
        yield f"ScatterElementsUpdate {reduction}", _scatter_elements(reduction), inputs
    yield "ScatterNDUpdate rows", ops.scatter_nd_update, (SQUARE, rows.reshape(-1, 1), OTHER[:500])
    yield "ScatterNDUpdate numbers", ops.scatter_nd_update, (normal(1000, 1000), places, normal(100_000))
    yield "OneHot", lambda i: ops.one_hot(i, scalar(100, np.int64), scalar(1), scalar(0), -1), (integers(100, 10_000),)
    yield (
        "OneHot first",
        lambda i: ops.one_hot(i, scalar(100, np.int64), scalar(1), scalar(0), 0),
        (integers(100, 10_000),),
    )
    yield "Bucketize", lambda x: ops.bucketize(x, ops.constant(np.linspace(-2, 2, 30, dtype=np.float32))), (SQUARE,)


def _scatter_elements(reduction: str) -> Build:
    return lambda x, i, u: ops.scatter_elements_update(x, i, u, scalar(0, np.int64), reduction)


def sorting() -> Members:
    yield "TopK 1 of 1000", _top_k(1, 1, "value"), (SQUARE,)
    yield "TopK 10 of 1000", _top_k(10, 1, "value"), (SQUARE,)
    yield "TopK 10 of 1000 by index", _top_k(10, 1, "index"), (SQUARE,)
    yield "TopK 500 of 1000", _top_k(500, 1, "value"), (SQUARE,)
    yield "TopK 10 of 1000 along the first", _top_k(10, 0, "value"), (SQUARE,)
    yield "TopK 100 of a million", _top_k(100, 0, "value"), (normal(1_000_000),)
    yield "NonZero", ops.non_zero, (SQUARE * BOOLEANS,)
    yield "Unique", ops.unique, (integers(1000, 1_000_000, dtype=np.int32),)


def _top_k(k: int, axis: int, sort: str) -> Build:
    return lambda x: ops.topk(x, scalar(k, np.int64), axis, "max", sort)


def products() -> Members:
    yield "MatMul 1000", lambda a, b: ops.matmul(a, b, False, False), (SQUARE, OTHER)
    yield "MatMul 1000 transposed", lambda a, b: ops.matmul(a, b, False, True), (SQUARE, OTHER)
    yield "MatMul a vector", lambda a, b: ops.matmul(a, b, False, False), (SQUARE, normal(1000))
    yield "MatMul in batches", lambda a, b: ops.matmul(a, b, False, True), (normal(16, 256, 64), normal(16, 256, 64))
    yield "Einsum ij,jk", lambda a, b: ops.einsum([a, b], "ij,jk->ik"), (SQUARE, OTHER)
    yield "Einsum bij,bkj", lambda a, b: ops.einsum([a, b], "bij,bkj->bik"), (normal(16, 256, 64), normal(16, 256, 64))
    yield "Einsum ij->ji", lambda a: ops.einsum([a], "ij->ji"), (SQUARE,)


def pooling() -> Members:
    small = normal(1, 32, 16, 16)
    yield "MaxPool 2x2/2", _max_pool(2, 2, 0), (IMAGE,)
    yield "MaxPool 3x3", _max_pool(3, 1, 1), (IMAGE,)
    yield "MaxPool 3x3/2", _max_pool(3, 2, 1), (IMAGE,)
    yield "MaxPool 2x2/2 small", _max_pool(2, 2, 0), (small,)
    yield "AvgPool 2x2/2", _avg_pool(2, 2, 0), (IMAGE,)
    yield "AvgPool 3x3", _avg_pool(3, 1, 1), (IMAGE,)
    yield "AvgPool 3x3/2", _avg_pool(3, 2, 1), (IMAGE,)
    yield "AvgPool 2x2/2 small", _avg_pool(2, 2, 0), (small,)
    yield "AdaptiveAvgPool", lambda x: ops.adaptive_avg_pool(x, i64(7, 7)), (IMAGE,)
    yield "AdaptiveMaxPool", lambda x: ops.adaptive_max_pool(x, i64(7, 7), "i32"), (IMAGE,)


def _max_pool(kernel: int, stride: int, pad: int) -> Build:
    pads = [pad, pad]
    # MaxPool-14 would run in OpenVINO's reference.
    return lambda x: openvino.opset8.max_pool(x, [stride] * 2, [1, 1], pads, pads, [kernel] * 2).output(0)


def _avg_pool(kernel: int, stride: int, pad: int) -> Build:
    pads = [pad, pad]
    # AvgPool-16 crashes OpenVINO 2026.4.1.
    return lambda x: openvino.opset14.avg_pool(x, [stride] * 2, pads, pads, [kernel] * 2, True)


def normalization() -> Members:
    channels = [normal(64), normal(64), normal(64), uniform(0.5, 2, 64)]
    yield "MVN last", _mvn(1), (SQUARE,)
    yield "MVN of an image", _mvn(2, 3), (IMAGE,)
    yield "MVN across channels", _mvn(1, 2, 3), (IMAGE,)
    yield "NormalizeL2 channels", lambda x: ops.normalize_l2(x, i64(1), 1e-6, "add"), (IMAGE,)
    yield "NormalizeL2 last", lambda x: ops.normalize_l2(x, i64(1), 1e-6, "add"), (SQUARE,)
    yield "GRN", lambda x: ops.grn(x, 1.0), (IMAGE,)
    yield "LRN", lambda x: ops.lrn(x, i64(1), 1e-4, 0.75, 1.0, 5), (IMAGE,)
    yield "BatchNormInference", lambda x: ops.batch_norm_inference(x, *map(ops.constant, channels), 1e-5), (IMAGE,)
    yield (
        "GroupNormalization",
        lambda x: ops.group_normalization(x, *map(ops.constant, channels[:2]), 8, 1e-5),
        (IMAGE,),
    )


def _mvn(*axes: int) -> Build:
    return lambda x: ops.mvn(x, i64(*axes), True, 1e-6, "inside_sqrt")


def quantization() -> Members:
    low, high = uniform(-3, -2, 1, 64, 1, 1), uniform(2, 3, 1, 64, 1, 1)
    ends = np.float32(-2.5), np.float32(2.4)
    yield "FakeQuantize", _fake_quantize(256, *ends, *ends), (IMAGE,)
    yield "FakeQuantize of channels", _fake_quantize(256, low, high, low, high), (IMAGE,)


def _fake_quantize(levels: int, *ranges: Any) -> Build:
    return lambda x: ops.fake_quantize(x, *map(ops.constant, ranges), levels)


def half() -> Members:
    a, b, image = SQUARE.astype(np.float16), POSITIVE.astype(np.float16), IMAGE.astype(np.float16)
    yield "f16 Add", ops.add, (a, b)
    yield "f16 Divide", ops.divide, (a, b)
    yield "f16 Relu", ops.relu, (a,)
    yield "f16 Sigmoid", ops.sigmoid, (a,)
    yield "f16 Softmax", lambda x: ops.softmax(x, 1), (a,)
    yield "f16 ReduceSum last", _reduction("sum", (1,)), (a,)
    yield "f16 MVN", _mvn(2, 3), (image,)
    yield "f16 Transpose", lambda x: ops.transpose(x, i64(1, 0)), (a,)


GROUPS: dict[str, Callable[[], Members]] = {
    "arithmetic of one": unary,
    "arithmetic of two": binary,
    "comparison": comparison,
    "logic": logic,
    "activation": activation,
    "reduction": reduction,
    "movement": movement,
    "indexing": indexing,
    "sorting": sorting,
    "products": products,
    "pooling": pooling,
    "normalization": normalization,
    "quantization": quantization,
    "f16": half,
}


# --------------------------------------------------------------------------- measuring


def measure(case: Case, core: openvino.Core, rounds: int) -> Timing:
    runs = infer_requests(case.model(), case.inputs, core)
    ours, theirs = (list(run().values()) for run in runs.values())
    difference = max(largest_difference(a, b) for a, b in zip(ours, theirs, strict=True))
    times = in_turns(runs, rounds)
    ratio = median(a / b for a, b in zip(times["ovir"], times["openvino"], strict=True))
    return Timing(case, median(times["ovir"]), median(times["openvino"]), ratio, difference)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", type=re.compile, default=re.compile(""), metavar="REGEX", help="cases, by 'group: name'"
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--markdown", action="store_true", help="print the tables as docs/performance.md has them")
    arguments = parser.parse_args()

    core = openvino.Core()
    timings = []
    for case in cases():
        if not arguments.only.search(f"{case.group}: {case.name}"):
            continue
        try:
            timings.append(measure(case, core, arguments.rounds))
        except Exception as error:
            print(f"{case.name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        print(f"\r{len(timings)}: {case.name:40}", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    if not timings:
        parser.error("no case matches")
    timings.sort(key=lambda timing: -timing.ratio)
    (print_markdown if arguments.markdown else print_table)(timings)


def print_table(timings: list[Timing]) -> None:
    print(f"{'ratio':>7}{'ovir ms':>10}{'openvino ms':>13}{'difference':>12}  operation")
    for t in timings:
        numbers = f"{t.ratio:7.2f}{t.ours * 1e3:10.3f}{t.theirs * 1e3:13.3f}{t.difference:12.0e}"
        print(f"{numbers}  {t.case.group}: {t.case.name}")
    print(f"{geometric_mean([t.ratio for t in timings]):7.2f}  geometric mean of {len(timings)}")


def print_markdown(timings: list[Timing]) -> None:
    print("| group | operations | geometric mean | worst |\n|---|---|---|---|")
    for group in GROUPS:
        members = [t for t in timings if t.case.group == group]
        if members:
            mean = geometric_mean([t.ratio for t in members])
            print(f"| {group} | {len(members)} | {mean:.2f} | {members[0].ratio:.2f} {members[0].case.name} |")
    print(f"| all | {len(timings)} | {geometric_mean([t.ratio for t in timings]):.2f} | |\n")
    print("| ratio | ovir, ms | OpenVINO, ms | operation |\n|---|---|---|---|")
    for t in timings:
        print(f"| {t.ratio:.2f} | {t.ours * 1e3:.3f} | {t.theirs * 1e3:.3f} | {t.case.name} |")


if __name__ == "__main__":
    main()
