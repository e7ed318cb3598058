"""What every kernel promises (see ``Operator``), checked at each call while tests run.

The kernels of all operations are wrapped, and called for each step of the first run of an executor, which calls fast
forms itself. What a call breaks is noted and not raised on the spot, where it could be taken for the error that a test
expects.

When a test has ended, calls of new kinds (other attributes, types or ranks, sizes of 0 and 1) are made again:

- with the same inputs in other layouts: the results must be the same, and the inputs must stay as they are;
- by the fast kernel of the operation, if it has one;
- bound to arrays, several times with changing inputs, which must give what the kernel gives;
- in every other element type that the operation takes, also bound; f16 and bf16 give what f32 gives, rounded once.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ovir.core.element_types import ELEMENT_TYPES, ElementType, bf16, f8e8m0, f16, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError, RunError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.fast.registry import kernel_of
from ovir.graph.layers import Layer
from ovir.kernels.precision import integer_range, lowest_finite
from ovir.ops import import_all
from ovir.ops.base.operator import Operator
from ovir.ops.base.regions import RegionBase
from ovir.runtime.executor import Executor
from ovir.runtime.listeners import Listener
from ovir.runtime.unbound_calls import UnboundCall
from support.binding import Bound, bound_results
from support.inference_contract import Active
from support.layouts import OF_KERNELS, elements

Array = np.ndarray[Any, Any]

faults: list[str] = []
_active = Active()

_LARGEST = 1 << 14
"""Bytes of the inputs of a call that is made again, at most."""
_BY_BLAS = (
    *("MatMul", "Einsum", "Convolution", "GroupConvolution", "ScaledDotProductAttention"),
    *("GroupedMatMul", "Inverse"),
)
"""Operations of matrix products (and those whose type ends in Convolution, BackpropData, Cell or Sequence): the order of
their sums depends on the layout, and so do the last digits."""


@dataclass(frozen=True)
class _Call:
    op: Operator
    run: Callable[..., Any]
    inputs: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.op.type}-{self.op.opset}"

    @property
    def run_on(self) -> Callable[..., Any]:
        """The kernel on inputs."""
        return functools.wraps(self.run)(functools.partial(self.run, self.op))

    def results(self, inputs: tuple[Any, ...]) -> list[Any] | None:
        """The outputs for other inputs, None if the kernel refuses them."""
        with suppress(OperatorError):
            return _outputs(self.run(self.op, *inputs, **self.keywords))
        return None


_calls: list[_Call] = []
_kinds: set[object] = set()


@pytest.fixture(scope="session", autouse=True)
def _watched_kernels() -> Iterator[None]:
    import_all()
    with pytest.MonkeyPatch.context() as patch:
        for cls in _classes(Operator):
            if "run" in vars(cls):
                patch.setattr(cls, "run", watched_run(vars(cls)["run"]))
        patch.setattr(Executor, "run", _with_kernels(Executor.run))
        yield


@pytest.fixture(autouse=True)
def _kernels_keep_their_contract() -> Iterator[None]:
    faults.clear()
    _calls.clear()
    yield
    for call in list(_calls):  # to make a call again may call the kernel of a base class, which is no call of its own
        faults.extend(_layout_faults(call))
    assert not faults, "\n".join(dict.fromkeys(faults))


@pytest.fixture
def calls_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no call be made again after a test: of kernels that others call alike, or that are not what it is about."""
    monkeypatch.setattr(sys.modules[__name__], "_LARGEST", -1)


@contextmanager
def unwatched(op: Operator) -> Iterator[None]:
    """Let calls of a kernel pass by the watch, which copies what the kernel is given."""
    _active.operations.add(id(op))
    try:
        yield
    finally:
        _active.operations.discard(id(op))


class _Kernels(Listener):
    """Calls the kernel of each small step, too, where the executor calls its fast form."""

    sees_tensors = False

    def __init__(self, executor: Executor) -> None:
        self._steps = {}
        calls = iter(executor._calls)
        for step, (count, after) in zip(executor.plan.steps, executor._counts, strict=True):
            functions = [type(function) for function, _ in islice(calls, count + after)]
            if step.may_use_fast_form and UnboundCall not in functions:
                self._steps[step.shown] = step

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        step = self._steps.get(layer)
        if step is None or sum(array.nbytes for array in inputs) > _LARGEST:
            return
        with suppress(OperatorError, RunError), reporting_to(lambda code, message, effect: None):
            step.operator.run(*[array.copy() for array in inputs])

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        pass


def _with_kernels(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def watched(executor: Executor, inputs: Any, listeners: Any = (), *, share: bool = False) -> Any:
        if not hasattr(executor, "has_run"):
            executor.has_run = True  # type: ignore[attr-defined]
            listeners = [*listeners, _Kernels(executor)]
        return run(executor, inputs, listeners, share=share)

    return watched


def _classes(cls: type[Operator]) -> set[type[Operator]]:
    return {cls}.union(*map(_classes, cls.__subclasses__()))


def watched_run(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def watched(op: Operator, *inputs: Any, **keywords: Any) -> Any:
        active = _active.operations
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
        for i, array in enumerate(arrays):
            if before[i] is not None and array.tobytes() != before[i]:
                faults.append(f"{op.type}-{op.opset} wrote to input {i}")
        outputs = result if isinstance(result, tuple) else (result,)
        for fault in _output_faults(op, inputs, arrays, outputs):
            faults.append(f"{op.type}-{op.opset}: {fault}")
        return result

    return watched


def _to_make_again(
    op: Operator,
    run: Callable[..., Any],
    inputs: tuple[Any, ...],
    keywords: dict[str, Any],
) -> _Call | None:
    """The call with copies of its inputs, None where it is large, not the first of its kind, or depends on a state."""
    if not op.pure or not keywords.keys() <= {"wanted"}:
        return None
    arrays = [a for a in inputs if isinstance(a, np.ndarray)]
    if len(arrays) < len([a for a in inputs if a is not None]) or sum(a.nbytes for a in arrays) > _LARGEST:
        return None
    attributes = tuple([getattr(op, name, None) for name in op.fields])
    shapes = tuple([(a.dtype, *[min(size, 2) for size in a.shape]) for a in arrays])
    kind = (type(op), run.__qualname__, attributes, shapes)
    if kind in _kinds:
        return None
    _kinds.add(kind)
    return _Call(op, run, tuple(a.copy() if isinstance(a, np.ndarray) else a for a in inputs), dict(keywords))


def _layout_faults(call: _Call) -> Iterator[str]:
    """What depends on how the inputs of a call lie in memory, or is done to them."""
    name = call.name
    with reporting_to(lambda code, message, effect: None), np.errstate(all="ignore"):
        expected = _outputs(call.run(call.op, *call.inputs, **call.keywords))
        yield from _fast_kernel_faults(call, expected)
        yield from _bound_faults(call)
        yield from _other_types_faults(call)
        seen = [_memory_of(call.inputs)]
        for title, layout in OF_KERNELS.items():
            inputs = [None if a is None else layout(a) for a in call.inputs]
            if _memory_of(inputs) in seen:
                continue
            seen.append(_memory_of(inputs))
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


def _memory_of(inputs: Sequence[Any]) -> list[object]:
    """How inputs lie in memory, and whether a kernel could write to them."""
    return [None if a is None else (a.strides, a.flags.writeable, a.flags.aligned) for a in inputs]


def _fast_kernel_faults(call: _Call, expected: list[Any]) -> Iterator[str]:
    """What the fast kernel of an operation computes differently."""
    kernel = kernel_of(call.op) if call.op.opset and hasattr(call.op, "run") else None
    if kernel is not None and kernel != call.op.run:
        got = _outputs(kernel(*call.inputs, **call.keywords))
        yield from _differences(call, got, expected, None, "from its fast kernel")


def _bound_faults(call: _Call) -> Iterator[str]:
    """What the fast form of an operation computes differently, for constant and for changing inputs."""
    if not call.op.output_shapes and _has_types(call):  # a test called the kernel without inferring the operation
        call = replace(call, op=_applied(call.op, call.inputs, {}) or call.op)
    expected = _outputs(call.run(call.op, *call.inputs, **call.keywords))
    if not _may_be_bound(call, expected):
        return
    fixed = _sizing_inputs(call)
    every = frozenset(range(len(call.inputs)))
    for constants in {fixed, every - {0} | fixed, every - {1} | fixed}:
        yield from _repeated_faults(call, expected, constants)
        has_layouts = any(a.ndim > 1 for i, a in enumerate(call.inputs) if i not in constants)
        if has_layouts:
            yield from _form_faults(call, expected, constants, _channels_last, "with channels last")
        if len(expected) > 1:
            for title, layout in {"in C order": np.array, "with channels last": _channels_last}.items():
                if has_layouts or layout is np.array:
                    yield from _form_faults(call, expected, constants, layout, title, {0})
        if call.op.inplace:
            yield from _form_faults(call, expected, constants, _channels_last, "that share memory", shares_memory=True)


def _has_types(call: _Call) -> bool:
    """Whether the operation can be inferred from the inputs of a call."""
    if not call.op.opset or call.op.wiring:
        return False
    return all(isinstance(a, np.ndarray) and a.dtype != np.dtypes.StringDType() for a in call.inputs)


def _sizing_inputs(call: _Call) -> frozenset[int]:
    """The inputs whose elements determine the shapes of outputs: they are the same in all runs of a bound plan."""
    return frozenset(
        i
        for i, array in enumerate(call.inputs)
        if call.op.reads_value(i) and _applied(call.op, call.inputs, {i: ElementType.from_dtype(array.dtype)}) is None
    )


def _may_be_bound(call: _Call, expected: list[Any]) -> bool:
    op = call.op
    arrays = all(isinstance(a, np.ndarray) and a.dtype != np.dtypes.StringDType() for a in expected)
    if not arrays or not op.output_types or not _has_types(call):
        return False
    if not _have_types(call.inputs, op.input_types) or not _have_types(tuple(expected), op.output_types):
        return False
    if len(op.output_shapes) != len(expected):
        return False
    return all(shape.contains(array.shape) for shape, array in zip(op.output_shapes, expected, strict=True))


def _form_faults(
    call: _Call,
    expected: list[Any],
    constants: frozenset[int],
    layout: Callable[[Array], Array],
    title: str,
    wanted: set[int] | None = None,
    *,
    shares_memory: bool = False,
) -> Iterator[str]:
    """What the operation's own fast form computes differently for inputs in another layout."""
    inputs = tuple(a if i in constants else layout(a) for i, a in enumerate(call.inputs))
    got = bound_results(call.op, inputs, expected, constants, wanted, shares_memory=shares_memory)
    if got is not None:
        yield from _differences(
            call, got, expected, wanted, f"bound to inputs {title}, of which {sorted(constants)} are constant"
        )


def _repeated_faults(call: _Call, expected: list[Any], constants: frozenset[int]) -> Iterator[str]:
    """What the bound call computes differently for the inputs, for others of these shapes, for extreme numbers, and for
    the inputs again."""
    inputs = call.inputs
    changes: dict[str, Callable[[Array], Array]] = {"other": _reversed}
    samples_follow_sizes = isinstance(call.op, RegionBase) and call.op.positions() is None  # large regions take long
    if not _is_by_blas(call.op) and not samples_follow_sizes:
        changes |= {title: functools.partial(_extreme, numbers=numbers) for title, numbers in _EXTREMES.items()}
    given = {"first": inputs}
    for title, change in changes.items():
        changed = tuple(a if i in constants else change(a) for i, a in enumerate(inputs))
        if any(a is not b for a, b in zip(changed, inputs, strict=True)):
            given[title] = changed
    given["last"] = inputs
    bound = Bound(call.op, inputs, expected, constants, kernel=call.run_on)
    title = (
        f"bound{'' if bound.has_form else ' as its kernel'}, with inputs {sorted(constants)} constant, in the {{}} run"
    )
    units = 3 * (inputs[0].ndim if call.op.type == "Interpolate" else 1)  # it may round after each axis
    for run, arrays in given.items():
        wanted = expected if arrays is inputs else call.results(arrays)
        try:
            got = bound.run(arrays)
        except OperatorError as error:
            if wanted is not None and all(a.shape == b.shape for a, b in zip(wanted, expected, strict=True)):
                yield f"{call.name} fails {title.format(run)}: {error}"
            continue
        if wanted is not None:
            yield from _differences(call, got, wanted, None, title.format(run), units=units * (run in _EXTREMES))


def _differences(
    call: _Call, got: list[Any], expected: list[Any], wanted: set[int] | None, title: str, units: int = 0
) -> Iterator[str]:
    for i in range(len(expected)) if wanted is None else wanted:
        if not _close(got[i], expected[i], units):
            types = ", ".join(f"{a.dtype}{list(a.shape)}" for a in call.inputs)
            yield f"{call.name}: output {i} of {types} differs {title}"


def _reversed(array: Array) -> Array:
    return array.reshape(-1)[::-1].reshape(array.shape) if array.size > 1 else array


def _extreme(array: Array, numbers: Callable[[Any, Array], Array]) -> Array:
    """Return an array of extreme numbers like a given one, which is returned unless it has real numbers."""
    return _extremes(numbers, array.dtype, array.shape) if array.dtype in _LAST_DIGITS and array.size else array


@functools.cache
def _extremes(numbers: Callable[[Any, Array], Array], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    found = numbers(ml_dtypes.finfo(dtype), np.random.default_rng(prod(shape)).uniform(-1, 1, shape))  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        found = np.asarray(found).astype(dtype)
    found.flags.writeable = False  # many calls read it
    return found


_EXTREMES: dict[str, Callable[[Any, Array], Array]] = {
    # All are positive and a quarter of the largest number, because the order of the sums would decide whether others
    # become infinite.
    "large": lambda info, x: np.abs(x) * float(info.max) / 4,
    "small": lambda info, x: np.rint(x * 9) * float(info.smallest_subnormal),
    "one large": lambda info, x: np.where(x > 0.9, float(info.max) / 4, x),
    "one infinite": lambda info, x: np.where(x > 0.9, np.inf, x),
    "one missing": lambda info, x: np.where(x > 0.9, np.nan, x),
}
"""By the names of runs, functions of the limits of a type and of random numbers from -1 to 1."""


# --------------------------------------------------------------------------- other element types


_TYPES = [
    t
    for t in ELEMENT_TYPES
    if t.kind not in ("dynamic", "string") and t is not f8e8m0 and ElementType.from_dtype(t.dtype) is t
]
"""The element types that arrays tell; f8e8m0, which has no zero, is for scales alone."""


def _other_types_faults(call: _Call) -> Iterator[str]:
    """What goes wrong with the inputs of the type of input 0 in every other element type that the operation takes."""
    if not call.inputs or not _has_types(call):
        return
    op, own = call.op, call.inputs[0].dtype
    dtypes = tuple(a.dtype for a in call.inputs)
    changed = [i for i, dtype in enumerate(dtypes) if dtype == own and not op.reads_value(i)]
    for element_type in _TYPES:
        taken, tried = (type(op), element_type), (type(op), element_type, dtypes)
        if element_type.dtype == own or taken in _kinds or tried in _kinds:
            continue
        _kinds.add(tried)
        applied = _applied(op, call.inputs, dict.fromkeys(changed, element_type))
        if applied is None:
            continue
        _kinds.add(taken)
        dtype = element_type.to_dtype()
        inputs = tuple(_converted(a, dtype) if i in changed else a for i, a in enumerate(call.inputs))
        other = replace(call, op=applied, inputs=inputs)
        try:
            expected = other.results(inputs)
        except Exception as error:
            yield f"{call.name} fails on inputs of {element_type}: {error!r}"
            continue
        if expected is None:
            continue
        yield from (f"{call.name} of {element_type}: {fault}" for fault in _type_faults(applied, expected))
        if element_type in (f16, bf16) and call.op.type not in _ROUND_STEPS:
            yield from _rounding_faults(other, expected, changed)
        if _may_be_bound(other, expected):
            yield from _repeated_faults(other, expected, _sizing_inputs(other))


_ROUND_STEPS = ("FakeConvert", "RGBtoNV12", "BGRtoNV12")
"""Operations whose formulas round intermediate results as well."""


def _rounding_faults(call: _Call, expected: list[Any], changed: list[int]) -> Iterator[str]:
    """What differs from the results in f32, rounded once."""
    inputs = tuple(a.astype(np.float32) if i in changed else a for i, a in enumerate(call.inputs))
    op = _applied(call.op, inputs, dict.fromkeys(changed, f32))
    wide = None if op is None else replace(call, op=op).results(inputs)
    if wide is not None:
        for i, (got, exact) in enumerate(zip(expected, wide, strict=True)):
            if got.dtype not in _LAST_DIGITS:
                continue
            once = exact.astype(got.dtype)
            once[exact == lowest_finite(exact.dtype)] = lowest_finite(got.dtype)  # the maximum of nothing
            if not np.array_equal(got, once, equal_nan=True):
                yield f"{call.name}: output {i} of {got.dtype} is not what f32 gives, rounded once"


def _type_faults(op: Operator, outputs: Sequence[Any]) -> Iterator[str]:
    for i, (output, declared) in enumerate(zip(outputs, op.output_types, strict=False)):
        if isinstance(output, np.ndarray) and not declared.is_dynamic and output.dtype != declared.to_dtype():
            yield f"output {i} is {output.dtype}, inferred was {declared}"


def _applied(op: Operator, inputs: tuple[Array, ...], others: Mapping[int, ElementType]) -> Operator | None:
    """The operation as it is applied to these inputs, some of which have other types and unknown elements; None if it
    refuses them or has outputs of unknown size."""
    types = [
        constant_type(a)
        if op.reads_value(i) and i not in others
        else TensorType(others.get(i) or ElementType.from_dtype(a.dtype), PartialShape(a.shape))
        for i, a in enumerate(inputs)
    ]
    try:
        inferred = op.infer(*types)
    except OperatorError:
        return None
    outputs = inferred if isinstance(inferred, tuple) else (inferred,)
    is_known = all(output.shape.is_static and not output.element_type.is_dynamic for output in outputs)
    return op.applied(types, outputs) if is_known else None


def _converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """The elements in another type, those that it cannot hold as the nearest that it can."""
    if dtype.kind == "b":
        return array.astype(dtype)
    if dtype.kind in "iu" or "int" in dtype.name:
        low, high = integer_range(dtype)
        array = np.clip(np.nan_to_num(array.astype(np.float64)), max(low, -(2**53)), min(high, 2**53))
    return np.asarray(array).astype(np.float64).astype(dtype)


def _channels_last(array: Array) -> Array:
    """A copy whose second axis is the fastest in memory; the first one of a matrix."""
    if array.ndim < 2:
        return array.copy()
    axis, last = 1 if array.ndim > 2 else 0, array.ndim - 1
    outer, inner = range(axis), range(axis, last)
    return array.transpose([*outer, *(i + 1 for i in inner), axis]).copy().transpose([*outer, last, *inner])


def _close(got: Array, wanted: Array, units: int = 0) -> bool:
    """Whether a fast form agrees: its sums may have another order, and its functions other last digits, or differ by so
    many of the smallest numbers of the type."""
    if elements(got) == elements(wanted):
        return True
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    if got.dtype not in _LAST_DIGITS:
        return _equal_numbers(got, wanted)
    precision, least = _LAST_DIGITS[got.dtype], float(ml_dtypes.finfo(got.dtype).smallest_subnormal)  # type: ignore[no-untyped-call]
    got, wanted = (array.astype(np.float64) for array in (got, wanted))
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    return np.allclose(got, wanted, rtol=precision, atol=1e-5 * largest + units * least, equal_nan=True)


def _equal_numbers(got: Array, wanted: Array) -> bool:
    """Return whether arrays of equal types and shapes are equal but for the signs of NaN, which are left open."""
    if not ElementType.from_dtype(got.dtype).is_real:
        return elements(got) == elements(wanted)
    numbers = ~(np.isnan(got.astype(np.float64)) & np.isnan(wanted.astype(np.float64)))
    return elements(got[numbers]) == elements(wanted[numbers])


_LAST_DIGITS = {
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float64): 1e-5,
    np.dtype(np.float16): 2.0**-10,  # one unit in the last place, where f32 is rounded to the other side
    np.dtype(ml_dtypes.bfloat16): 2.0**-7,
}


def _outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _agree(op: Operator, got: Any, wanted: Any) -> bool:
    if not isinstance(got, np.ndarray) or not isinstance(wanted, np.ndarray):
        return type(got) is type(wanted)
    if elements(got) == elements(wanted):
        return True
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    if not _is_by_blas(op):
        return _equal_numbers(got, wanted)
    precision = 1e-13 if got.dtype == np.float64 else 1e-5 if got.dtype == np.float32 else 1e-2
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    return np.allclose(
        a, b, rtol=precision, atol=precision * max(np.abs(b).max(initial=0, where=np.isfinite(b)), 1), equal_nan=True
    )


def _is_by_blas(op: Operator) -> bool:
    return op.type in _BY_BLAS or op.type.endswith(("Convolution", "BackpropData", "Cell", "Sequence"))


def _overlap(arrays: list[Array]) -> bool:
    """Return whether two arrays share memory, as views of one tensor do."""
    return any(np.may_share_memory(a, b) for a, b in combinations(arrays, 2))


def _output_faults(op: Operator, inputs: tuple[Any, ...], kept: list[Array], outputs: tuple[Any, ...]) -> Iterator[str]:
    for i, output in enumerate(outputs):
        if output is None:  # one that nobody wants
            continue
        if not isinstance(output, np.ndarray):
            yield f"output {i} is a {type(output).__name__}, not an array"
            continue
        if not op.views and output.size and any(np.may_share_memory(output, a) for a in kept):
            yield f"output {i} shares memory with an input, and views is False"
        for j, other in enumerate(outputs[:i]):
            if isinstance(other, np.ndarray) and np.shares_memory(output, other) and not (op.views and _overlap(kept)):
                yield f"outputs {j} and {i} overlap"
    # Bounds pass through kernels in a type of their own, and weights are decompressed in f32, whatever the declared types.
    if (found := list(_type_faults(op, outputs))) and _have_types(inputs, op.input_types):
        yield from found


def _have_types(inputs: tuple[Any, ...], types: tuple[ElementType, ...]) -> bool:
    return len(inputs) == len(types) and all(
        isinstance(a, np.ndarray) and not t.is_dynamic and a.dtype == t.to_dtype()
        for a, t in zip(inputs, types, strict=True)
    )
