"""Special values in data, parameters and attributes, sizes of 0 and 1: the same in each form as from the kernel.

Each operation version runs several times, with other values in between: by a request in its own types, and bound alone
in each other type, since a request does nothing else for these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.binding import Bound
from support.kernel_contract import _TYPES, _close, _converted, _is_by_blas
from support.special_values import infinite_values, special_values

import ovir
from ovir.core import parallel
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, string
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.fast.registry import _by_element, fast_form, kernel_of
from ovir.fuzzing.cases import draw, write
from ovir.fuzzing.making import VERSIONS, Make
from ovir.fuzzing.net import Net
from ovir.ops import find
from ovir.ops.activation import PReLU
from ovir.ops.base.operator import Operator

pytestmark = pytest.mark.usefixtures(
    "calls_are_made_once"
)  # with numbers and types that are among those of these tests

# --------------------------------------------------------------------------- exceptions

APART = {
    **dict.fromkeys(("Const", "Parameter", "Result"), "no kernel"),
    **dict.fromkeys(("Assign", "ReadValue"), "the result depends on a state"),
    **dict.fromkeys(("If", "Loop", "TensorIterator"), "the bodies consist of other operations"),
    **dict.fromkeys(("RandomUniform", "Multinomial"), "each call gives other numbers"),
}
SUMS = dict.fromkeys(
    ("GroupNormalization", "Interpolate", "MVN", "DFT", "IDFT", "RDFT", "IRDFT", "STFT", "ISTFT", "AvgPool"),
    "large numbers cancel or overflow, or do not, depending on the order of a sum",
)
ZEROS = {
    "AdaptiveMaxPool": "the larger one of 0 and -0 is either",
    "MaxPool": "the larger one of 0 and -0 is either",
    "ReLU": "the larger one of 0 and -0 is either",
    "PReLU": "slope 0 gives the sum of 0 and -0",
    "Einsum": "a sum of nothing but -0 may begin with 0",
    **dict.fromkeys(SUMS, "a sum of nothing but -0 may begin with 0"),
}
"""Operations of which the sign of a zero is open, with the reason. Products of matrices belong here, too."""


def _is_sum(op: Operator) -> bool:
    return op.type in SUMS or _is_by_blas(op)


# --------------------------------------------------------------------------- cases

Inputs = list[Array]


class _Small(Make):
    """Draws sizes of 0 and 1 only."""

    def size(self) -> int:
        return self.rng.choice((0, 1, 1))


def _cases(kind: str, opset: int, count: int, maker: type[Make] = Make) -> Iterator[tuple[Make, Inputs]]:
    """Yield legal small cases of an operation version, with their inputs."""
    cls, found = find(kind, opset), 0
    assert cls is not None
    for seed in range(100):
        made = maker(kind, random.Random(f"{kind}-{opset}, {seed}"), opset)
        if not draw(made, cls, np.random.default_rng(seed)):
            continue
        inputs = [np.asarray(given.values) for given in made.inputs]
        if sum(array.nbytes for array in inputs) < 1 << 13:
            yield made, inputs
            found += 1
            if found == count:
                return


def _applied(made: Make, inputs: Sequence[Array], types: Sequence[ElementType]) -> Operator | None:
    """Return the operation as it is applied to inputs, None if it refuses them."""
    cls = find(made.kind, made.opset)
    assert cls is not None
    try:
        op = cls(
            **{cls.attributes[name].field: cls.attributes[name].parse(text) for name, text in made.attributes.items()}
        )
        given = [
            constant_type(array, t) if op.reads_value(i) else TensorType(t, PartialShape(array.shape))
            for i, (array, t) in enumerate(zip(inputs, types, strict=True))
        ]
        inferred = op.infer(*given)
    except (OperatorError, ValueError):
        return None
    return op.applied(given, inferred if isinstance(inferred, tuple) else (inferred,))


def _typed(made: Make, inputs: Inputs) -> Iterator[tuple[Operator, Inputs, list[ElementType]]]:
    """Yield a case in its own types, and with the type of input 0 replaced by every other one that is accepted."""
    types = [ElementType.parse(given.element_type) for given in made.inputs]
    own = _applied(made, inputs, types)
    if own is None:
        return
    yield own, inputs, types
    if not types or string in types[:1]:
        return
    changed = [i for i, t in enumerate(types) if t == types[0] and not own.reads_value(i)]
    for element_type in _TYPES:
        if element_type == types[0] or not changed:
            continue
        others = [element_type if i in changed else t for i, t in enumerate(types)]
        with np.errstate(all="ignore"):
            arrays = [_converted(a, element_type.to_dtype()) if i in changed else a for i, a in enumerate(inputs)]
        op = _applied(made, arrays, others)
        if op is not None:
            yield op, arrays, others


def _is_free(op: Operator, index: int, inputs: Inputs, types: list[ElementType]) -> bool:
    """Return whether an input may hold any values."""
    if op.reads_value(index) and not types[index].is_real:
        return False
    try:
        return op.domain_of(index, [constant_type(a, t) for a, t in zip(inputs, types, strict=True)]) is None
    except Exception:  # domains rely on what inference has checked
        return False


def _special(
    array: Array, element_type: ElementType, rng: np.random.Generator, share: float, *, finite: bool, large: bool
) -> Array:
    """Return an array with special values in the place of a share of its elements."""
    values = special_values(element_type)
    if finite:
        values = values[: len(values) - len(infinite_values(element_type))]
    if not large and element_type.is_real:
        with np.errstate(all="ignore"):
            sizes = np.abs(values.astype(np.float64))
        values = values[~((sizes > 1e3) & np.isfinite(sizes))]
    if not len(values):
        return array
    drawn = values[rng.integers(0, len(values), array.shape)]
    return np.where(rng.random(array.shape) < share, drawn, array).astype(array.dtype)


# --------------------------------------------------------------------------- what is compared


def _kernel(op: Operator, inputs: Inputs) -> list[Any] | None:
    with np.errstate(all="ignore"), reporting_to(lambda code, message, effect: None):
        try:
            result = op.run(*inputs)
        except OperatorError:
            return None
    return list(result) if isinstance(result, tuple) else [result]


_DIGITS = {
    np.dtype(np.float16): 2.0**-10,
    np.dtype(ml_dtypes.bfloat16): 2.0**-7,
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float64): 1e-5,
}


def _difference(op: Operator, got: Array, wanted: Array) -> str:
    """Return how a result differs: in a NaN, an infinity, the sign of a zero, or more than the last digits; each
    element alone, so that no large one excuses a small one."""
    if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        return f"{got.dtype}{list(got.shape)} and not {wanted.dtype}{list(wanted.shape)}"
    if got.dtype not in _DIGITS:
        same = _close(got, wanted)
        return "" if same else f"{got.reshape(-1)[:5]} and not {wanted.reshape(-1)[:5]}"
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    largest = np.abs(b[finite]).max(initial=0) if _is_sum(op) else 0
    least = float(ml_dtypes.finfo(got.dtype).smallest_subnormal)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= _DIGITS[got.dtype] * np.maximum(np.abs(b), largest) + 3 * least
    wrong = np.where(finite, ~near, ~((a == b) | (np.isnan(a) & np.isnan(b))))
    if op.type not in ZEROS and not _is_sum(op):
        wrong |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return f"{a[wrong][0]} and not {b[wrong][0]}" if wrong.any() else ""


Run = Callable[[Inputs], Sequence[Array]]


def _requested(made: Make, first: Inputs, types: list[ElementType], constants: set[int]) -> Run | None:
    """Return the run of a request, None if folding calls the kernel, which refuses the constants."""
    net = Net()
    ends = [
        net.const(array, types[i].name)
        if i in constants
        else net.parameter(f"x{i}", ",".join(map(str, array.shape)), types[i].name)
        for i, array in enumerate(first)
    ]
    for end in write(net, made, ends):
        net.result(end)
    try:
        request = ovir.compile_model(net.model()).create_infer_request()
    except ovir.OvirError:
        assert constants >= set(range(len(first)))
        return None
    return lambda inputs: list(request.infer([a for i, a in enumerate(inputs) if i not in constants]).values())


def _bound(op: Operator, first: Inputs, constants: set[int]) -> Run | None:
    """Return the run of an operation that is bound alone, None if its outputs have no fixed arrays."""
    if string in op.output_types or not all(shape.is_static for shape in op.output_shapes):
        return None
    outputs = [np.empty(s.to_tuple(), t.to_dtype()) for s, t in zip(op.output_shapes, op.output_types, strict=True)]
    bound = Bound(op, tuple(first), outputs, constants, kernel=kernel_of(op))
    return lambda inputs: bound.run(tuple(inputs))


def _assert_runs_as_kernel(
    made: Make,
    op: Operator,
    given: list[Inputs],
    types: list[ElementType],
    constants: set[int],
    *,
    by_request: bool = False,
) -> None:
    """Run all inputs, and the first again at the end."""
    bound = None if by_request else _bound(op, given[0], constants)
    run = bound or _requested(made, given[0], types, constants)
    if run is None:
        return
    wanted = [_kernel(op, inputs) for inputs in given]
    for number, inputs in enumerate([*given, given[0]]):
        expected = wanted[number % len(given)]
        title = f"{op!r} of {types[:1]} {[a.shape for a in inputs]}, {sorted(constants)} constant, in run {number}"
        got: Sequence[Array] | None = None
        with suppress(ovir.OvirError, OperatorError):
            got = run(inputs)
        assert (got is None) == (expected is None), f"{title}: only one of kernel and form refuses these values"
        for array, exact in zip(got or (), expected or (), strict=True):
            if exact is not None:
                found = _difference(op, array, np.asarray(exact))
                assert not found, f"{title}: {found}"


# --------------------------------------------------------------------------- tests

_RUN = [version for version in VERSIONS if version[0] not in APART]


def _names(version: Any) -> str:
    return "-".join(map(str, version))


@pytest.mark.slow
@pytest.mark.parametrize("version", _RUN, ids=_names)
def test_every_operation_in_every_type(version: tuple[str, int]) -> None:
    rng = np.random.default_rng(0)
    for made, drawn in [*_cases(*version, 1), *_cases(*version, 1, _Small)]:
        for number, (op, inputs, types) in enumerate(_typed(made, drawn)):
            free = [i for i in range(len(inputs)) if _is_free(op, i, inputs, types)]
            read = {i for i in range(len(inputs)) if op.reads_value(i)}
            is_sum = _is_sum(op)

            def special(arrays: Inputs, places: Sequence[int], share: float, finite: bool) -> Inputs:
                return [
                    _special(a, types[i], rng, share, finite=finite, large=not is_sum) if i in places else a  # noqa: B023
                    for i, a in enumerate(arrays)
                ]

            others = {0} if isinstance(made, _Small) else {*range(1, len(inputs))}
            for constants in {frozenset(read), frozenset(others | read)} if len(inputs) > 1 else {frozenset(read)}:
                held = {i for i in constants if i < len(inputs) and types[i].bits % 8 == 0 and types[i] != string}
                changing = [i for i in free if i not in held]
                base = special(inputs, [i for i in free if i in held], 0.7, finite=False)
                applied = _applied(made, base, types)
                if applied is None or not changing:
                    continue
                given = [special(base, changing, share, finite=False) for share in (0.5, 0, 1)]
                given.append(special(base, changing, 0.3, finite=True))
                if number == 0:
                    first = given[2][changing[0]]  # one array for several inputs
                    repeated = [i for i in changing if (base[i].shape, types[i]) == (first.shape, types[changing[0]])]
                    given.append([first if i in repeated else a for i, a in enumerate(base)])
                    for array in given[2]:
                        array.flags.writeable = False
                _assert_runs_as_kernel(made, applied, given, types, held, by_request=number == 0)


@pytest.mark.slow
@pytest.mark.parametrize("version", _RUN, ids=_names)
def test_every_attribute(version: tuple[str, int]) -> None:
    cls = find(*version)
    assert cls is not None
    names = [name for name, spec in cls.attributes.items() if spec.type is float]
    for made, inputs in _cases(*version, 1) if names else ():
        types = [ElementType.parse(given.element_type) for given in made.inputs]
        before = dict(made.attributes)
        for name in names:
            for text in ("0", "-0", "inf", "-inf", "nan", "3.4e38", "1e-45", "0.5", "-1"):
                made.attributes = {**before, name: text}
                op = _applied(made, inputs, types)
                if op is not None:
                    read = {i for i in range(len(inputs)) if op.reads_value(i)}
                    _assert_runs_as_kernel(made, op, [inputs], types, read)


def _is_by_element(cls: Any) -> bool:
    return fast_form(cls) in _by_element


_WITH_PARAMETERS = [
    version
    for version in _RUN
    if (cls := find(*version)) is not None and (issubclass(cls, PReLU) or _is_by_element(cls))
]


@pytest.mark.slow
@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16", "i8", "i32"])
@pytest.mark.parametrize("version", _WITH_PARAMETERS, ids=_names)
def test_every_number_as_parameter(version: tuple[str, int], element_type: str) -> None:
    own = ElementType.parse(element_type)
    values = special_values(own)
    for made, drawn in _cases(*version, 1):
        types = [own] * len(drawn)
        for value in values if len(drawn) > 1 else ():
            # A PReLU has the slopes of channels.
            numbers = [np.full(1 if version[0] in ("PReLU", "Selu") else (), value, values.dtype) for _ in drawn[1:]]
            inputs = [values, *numbers]
            op = _applied(made, inputs, types)
            if op is None:
                break
            _assert_runs_as_kernel(made, op, [inputs], types, set(range(1, len(inputs))))


@pytest.mark.slow
@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16", "i8"])
@pytest.mark.parametrize("version", _WITH_PARAMETERS, ids=_names)
def test_in_parts_threads_and_tables(version: tuple[str, int], element_type: str) -> None:
    own = ElementType.parse(element_type)
    values = special_values(own)
    data, constants = np.resize(values, (1 << 18) + 7), set(range(1, 9))
    for made, drawn in _cases(*version, 1):
        parameter = np.full(1 if version[0] in ("PReLU", "Selu") else (), values[0], values.dtype)
        inputs = [data, *[parameter] * (len(drawn) - 1)]
        op = _applied(made, inputs, [own] * len(inputs))
        if op is not None:
            with parallel.limit(2):
                _assert_runs_as_kernel(made, op, [inputs], [own] * len(inputs), constants)


def test_exceptions_are_of_operations_that_exist() -> None:
    kinds = {kind for kind, _ in VERSIONS}
    assert {*APART, *SUMS, *ZEROS} <= kinds
