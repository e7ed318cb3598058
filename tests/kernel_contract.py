"""What every kernel promises (see ``Operator``), checked at each call while tests run.

The kernels of all operations, and those that ``prepare`` makes, are wrapped. What a call breaks is noted and not raised
on the spot, where it could be taken for the error that a test expects.

When a test has ended, calls of new kinds (other attributes, types or ranks, sizes of 0 and 1) are made again with the same
inputs in other layouts: the results must be the same, and the inputs must stay as they are.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from binding import bound_results
from layouts import OF_KERNELS, elements

from ovir.core.element_types import ElementType
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.ops import import_all
from ovir.ops.base.operator import Operator

Array = np.ndarray[Any, Any]

faults: list[str] = []
_local = threading.local()

_LARGEST = 1 << 14
"""Bytes of the inputs of a call that is made again, at most."""
_BY_BLAS = (
    "MatMul",
    "Einsum",
    "Convolution",
    "GroupConvolution",
    "ScaledDotProductAttention",
    "GroupedMatMul",
    "Inverse",
)
"""Operations of matrix products (and those whose type ends in Convolution, BackpropData, Cell or Sequence): the order of
their sums depends on the layout, and so do the last digits."""


@dataclass(frozen=True)
class _Call:
    op: Operator
    run: Callable[..., Any]
    inputs: tuple[Any, ...]
    keywords: dict[str, Any]


_calls: list[_Call] = []
_kinds: set[object] = set()


@pytest.fixture(scope="session", autouse=True)
def _watched_kernels() -> Iterator[None]:
    import_all()
    with pytest.MonkeyPatch.context() as patch:
        for cls in _classes(Operator):
            if "run" in vars(cls):
                patch.setattr(cls, "run", watched_run(vars(cls)["run"]))
            if "prepare" in vars(cls):
                patch.setattr(cls, "prepare", watched_prepare(vars(cls)["prepare"]))
        yield


@pytest.fixture(autouse=True)
def _kernels_keep_their_contract() -> Iterator[None]:
    faults.clear()
    _calls.clear()
    yield
    for call in _calls:
        faults.extend(_layout_faults(call))
    assert not faults, "\n".join(dict.fromkeys(faults))


def _classes(cls: type[Operator]) -> set[type[Operator]]:
    return {cls}.union(*map(_classes, cls.__subclasses__()))


def watched_prepare(prepare: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(prepare)
    def watched(op: Operator, *constants: Array | None) -> Any:
        kernel = prepare(op, *constants)
        return (
            None if kernel is None else functools.wraps(kernel)(functools.partial(watched_run(_without_op(kernel)), op))
        )

    return watched


def _without_op(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *inputs, **keywords: kernel(*inputs, **keywords)


def watched_run(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def watched(op: Operator, *inputs: Any, **keywords: Any) -> Any:
        active = _local.__dict__.setdefault("active", set())
        if id(op) in active:  # one form of the kernel calls another
            return run(op, *inputs, **keywords)
        active.add(id(op))
        try:
            arrays = [a for a in inputs if isinstance(a, np.ndarray)]
            before = [a.tobytes() if a.flags.writeable else None for a in arrays]
            again = _to_make_again(op, run, inputs, keywords)
            with np.errstate(all="ignore"):  # as whoever calls a kernel does
                result = run(op, *inputs, **keywords)
        finally:
            active.discard(id(op))
        if again is not None:
            _calls.append(again)
        out = keywords.get("out")
        given = [a for a in (out if isinstance(out, tuple) else (out,)) if a is not None]
        # An input that ``out`` may be is the output's memory, not the input's any more.
        foreign = [not any(np.may_share_memory(a, b) for b in given) for a in arrays]
        for i, array in enumerate(arrays):
            if foreign[i] and before[i] is not None and array.tobytes() != before[i]:
                faults.append(f"{op.type}-{op.opset} wrote to input {i}")
        outputs = result if isinstance(result, tuple) else (result,)
        kept = [array for array, is_foreign in zip(arrays, foreign, strict=True) if is_foreign]
        faults.extend(f"{op.type}-{op.opset}: {fault}" for fault in _output_faults(op, inputs, kept, outputs))
        return result

    return watched


def _to_make_again(
    op: Operator, run: Callable[..., Any], inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> _Call | None:
    """The call with copies of its inputs, None where it is large, not the first of its kind, or depends on a state."""
    if not op.pure or not keywords.keys() <= {"out", "wanted"}:
        return None
    arrays = [a for a in inputs if isinstance(a, np.ndarray)]
    if len(arrays) < len([a for a in inputs if a is not None]) or sum(a.nbytes for a in arrays) > _LARGEST:
        return None
    attributes = tuple(repr(getattr(op, name, None)) for name in sorted(op.fields))
    shapes = tuple((a.dtype.name, tuple(min(size, 2) for size in a.shape)) for a in arrays)
    kind = (type(op), run.__qualname__, attributes, shapes)
    if kind in _kinds:
        return None
    _kinds.add(kind)
    kept = {name: value for name, value in keywords.items() if name != "out"}
    return _Call(op, run, tuple(a.copy() if isinstance(a, np.ndarray) else a for a in inputs), kept)


def _layout_faults(call: _Call) -> Iterator[str]:
    """What depends on how the inputs of a call lie in memory, or is done to them."""
    name = f"{call.op.type}-{call.op.opset}"
    with reporting_to(lambda code, message: None), np.errstate(all="ignore"):
        expected = _outputs(call.run(call.op, *call.inputs, **call.keywords))
        yield from _bound_faults(call, expected)
        for title, layout in OF_KERNELS.items():
            inputs = [None if a is None else layout(a) for a in call.inputs]
            shapes = [a.shape for a in inputs if a is not None]
            try:
                results = _outputs(call.run(call.op, *inputs, **call.keywords))
            except Exception as error:
                yield f"{name} fails on inputs that are {title}, of shapes {shapes}: {error!r}"
                continue
            for i, (got, wanted) in enumerate(zip(results, expected, strict=True)):
                if not _agree(call.op, got, wanted):
                    yield f"{name}: output {i} of inputs that are {title}, of shapes {shapes}, differs"
            for i, (array, given) in enumerate(zip(inputs, call.inputs, strict=True)):
                if array is not None and elements(array) != elements(given):
                    yield f"{name} wrote to input {i}, which was {title}"


def _bound_faults(call: _Call, expected: list[Any]) -> Iterator[str]:
    """What the bound form of an operation computes differently, for constant and for changing inputs."""
    inputs = call.inputs
    shapes = [getattr(a, "shape", None) for a in inputs]
    arrays = all(isinstance(a, np.ndarray) and a.dtype != np.dtypes.StringDType() for a in (*inputs, *expected))
    if not arrays or not call.op.output_types or not call.op.opset or call.op.wiring:
        return
    if not _have_types(inputs, call.op.input_types) or not _have_types(tuple(expected), call.op.output_types):
        return
    if len(call.op.output_shapes) != len(expected):
        return
    if any(not shape.contains(array.shape) for shape, array in zip(call.op.output_shapes, expected, strict=True)):
        return
    every = set(range(len(inputs)))
    for constants in (every - {0}, every - {1}, set()) if len(inputs) > 1 else (set(),):
        for title, layout in {"in C order": np.array, "with channels last": _channels_last}.items():
            for wanted in [set(range(len(expected))), {0}][: len(expected)]:
                given = tuple(a if i in constants else layout(a) for i, a in enumerate(inputs))
                got = bound_results(call.op, given, expected, constants, wanted)
                for i in wanted if got else ():
                    if not _close(got[i], expected[i]):
                        where = f"output {i} of inputs {title}, of shapes {shapes}, of which {constants} are constant"
                        yield f"{call.op.type}-{call.op.opset} bound: {where}, differs"
        given = tuple(a if i in constants else _channels_last(a) for i, a in enumerate(inputs))
        got = bound_results(call.op, given, expected, constants, shares_memory=True)
        for i, (array, wanted_array) in enumerate(zip(got or (), expected, strict=False)):
            if not _close(array, wanted_array):
                where = f"output {i} of inputs of shapes {shapes}, of which {constants} are constant"
                yield f"{call.op.type}-{call.op.opset} bound, in memory that is shared: {where}, differs"


def _channels_last(array: Array) -> Array:
    """A copy whose second axis is the fastest in memory; the first one of a matrix."""
    if array.ndim < 2:
        return array.copy()
    axis = 1 if array.ndim > 2 else 0
    return np.moveaxis(np.moveaxis(array, axis, -1).copy(), -1, axis)


def _close(got: Array, wanted: Array) -> bool:
    """Whether a bound form agrees: its sums may have another order, and its functions other last digits."""
    if elements(got) == elements(wanted):
        return True
    if got.dtype != wanted.dtype or got.shape != wanted.shape or got.dtype not in (np.float32, np.float64):
        return False
    finite = np.isfinite(wanted)
    largest = np.abs(wanted[finite]).max(initial=0)
    return np.allclose(got, wanted, rtol=1e-5, atol=1e-5 * largest, equal_nan=True)


def _outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _agree(op: Operator, got: Any, wanted: Any) -> bool:
    if not isinstance(got, np.ndarray) or not isinstance(wanted, np.ndarray):
        return type(got) is type(wanted)
    if elements(got) == elements(wanted):
        return True
    by_blas = op.type in _BY_BLAS or op.type.endswith(("Convolution", "BackpropData", "Cell", "Sequence"))
    if not by_blas or got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    precision = 1e-13 if got.dtype == np.float64 else 1e-5 if got.dtype == np.float32 else 1e-2
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    return np.allclose(
        a, b, rtol=precision, atol=precision * max(np.abs(b).max(initial=0, where=np.isfinite(b)), 1), equal_nan=True
    )


def _output_faults(op: Operator, inputs: tuple[Any, ...], kept: list[Array], outputs: tuple[Any, ...]) -> Iterator[str]:
    # Bounds pass through kernels in a type of their own, and weights are decompressed in f32, whatever the declared types.
    as_declared = bool(op.output_types) and _have_types(inputs, op.input_types)
    for i, output in enumerate(outputs):
        if output is None:  # one that nobody wants
            continue
        if not isinstance(output, np.ndarray):
            yield f"output {i} is a {type(output).__name__}, not an array"
            continue
        if not op.views and output.size and any(np.may_share_memory(output, a) for a in kept):
            yield f"output {i} shares memory with an input, and views is False"
        for j, other in enumerate(outputs[:i]):
            if isinstance(other, np.ndarray) and np.shares_memory(output, other):
                yield f"outputs {j} and {i} overlap"
        if as_declared and not op.output_types[i].is_dynamic and output.dtype != op.output_types[i].to_dtype():
            yield f"output {i} is {output.dtype}, inferred was {op.output_types[i]}"


def _have_types(inputs: tuple[Any, ...], types: tuple[ElementType, ...]) -> bool:
    return len(inputs) == len(types) and all(
        isinstance(a, np.ndarray) and not t.is_dynamic and a.dtype == t.to_dtype()
        for a, t in zip(inputs, types, strict=True)
    )
