"""The base of the operations of openvino_tokenizers: strings as bytes, ragged tensors, and prepared constants.

Strings are three tensors: string i is bytes [begins[i], ends[i]) of the third. A ragged tensor has the begins and ends
of its rows among elements; the elements are a tensor, or strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.core.tensor_types import Outputs, TensorType
from ovir.diagnostics.codes import Code
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import report, reporting_to
from ovir.ops.base.operator import Operator

K = TypeVar("K", bound=Sized)
T = TypeVar("T")

STRINGS = "begins i32[S...]; ends i32[S...]; symbols u8[...]"
VOCABULARY = "vocabulary_begins i32[V...]; vocabulary_ends i32[V...]; vocabulary_symbols u8[...]"
ROWS = "row_begins i32[Rows...]; row_ends i32[Rows...]"
"""What operations take: strings, other strings, and the rows of a ragged tensor."""
MADE_STRINGS = "begins i32[S...]; ends i32[S...]; symbols u8[Bytes]"
STRING_ROWS = "begins i32[Rows...]; ends i32[Rows...]; symbols u8[Bytes]"
WORDS = f"{ROWS}; begins i32[Words]; ends i32[Words]; symbols u8[Bytes]"
"""What operations give: as many strings as they take, one for each row, and rows of words."""

_MOST_PREPARED = 16
_prepared: dict[tuple[object, ...], Any] = {}
"""The objects last prepared from constants of layers, for other layers with the same constants."""


class TokenizerOperator(Operator):
    """An operation of openvino_tokenizers."""

    value_inputs: ClassVar[tuple[int, ...]] = ()
    bounded = False
    views = True
    guards_sizes = True

    _latest: Mapping[Callable[..., Any], tuple[tuple[Array, ...], Any, list[tuple[Code, str, str]]]] = MappingProxyType(
        {}
    )

    # ----- kernels

    def prepared(self, make: Callable[..., T], *constants: Array) -> T:
        """Return ``make(self, *constants)``, made once for equal constants.

        Arrays that nobody can write to, as those of constant layers, are equal if they are the same.
        """
        latest = self._latest.get(make)
        if latest is None or not all(map(_is_same, latest[0], constants)):
            latest = constants, *self._made(make, constants)
            self._latest = {**self._latest, make: latest}
        for code, message, effect in latest[2]:
            report(message, effect, code=code)
        return latest[1]

    def _made(self, make: Callable[..., T], constants: tuple[Array, ...]) -> tuple[T, list[tuple[Code, str, str]]]:
        """Return ``make(self, *constants)``, and what it reports, which each run with these constants repeats."""
        contents = [
            (str(array.dtype), array.shape, blake2b(np.ascontiguousarray(array).data).digest()) for array in constants
        ]
        key = (type(self), make, *[getattr(self, name) for name in sorted(self.fields)], *contents)
        if key not in _prepared:
            while len(_prepared) >= _MOST_PREPARED:
                _prepared.pop(next(iter(_prepared)), None)
            reports: list[tuple[Code, str, str]] = []
            with reporting_to(lambda *warning: reports.append(warning)):
                _prepared[key] = make(self, *constants), reports
        return _prepared[key]  # type: ignore[no-any-return]


def _is_same(one: Array, other: Array) -> bool:
    return one is other and not one.flags.writeable


class StringOperator(TokenizerOperator):
    """Base of operations that change each string. A fourth, boolean input says which strings are left as they are."""

    takes: ClassVar[str | tuple[str, ...]] = STRINGS
    gives = MADE_STRINGS

    def infer(self, *inputs: TensorType) -> Outputs:
        has_skips = len(inputs) > 3 and inputs[3].element_type == boolean
        return self.solved(*inputs).outputs(f"{MADE_STRINGS}; skips boolean[Skips...]" if has_skips else MADE_STRINGS)

    def changed(self, inputs: tuple[Array, ...], change: Callable[[bytes], bytes]) -> tuple[Array, ...]:
        """Return the strings that are the first inputs, changed, and which were left as they are."""
        strings = unpacked(*inputs[:3])
        if len(inputs) == 3 or inputs[3].dtype != bool:
            return packed(map(change, strings), inputs[0].shape)
        skips = inputs[3].ravel().tolist()
        changed = (text if skip else change(text) for text, skip in zip(strings, skips, strict=True))
        return *packed(changed, inputs[0].shape), inputs[3]


# --------------------------------------------------------------------------- results for words

_LONGEST = 256
"""The length, such as the number of bytes, of the longest key whose result is kept."""


class Memo(dict[K, T]):
    """The results of a function of keys; those of other keys are computed. When it is full, it begins anew."""

    def __init__(self, compute: Callable[[K], T], capacity: int) -> None:
        super().__init__()
        self._compute = compute
        self._capacity = capacity

    def __missing__(self, key: K) -> T:
        """Compute the result for a key."""
        result = self._compute(key)
        if len(key) <= _LONGEST:
            if len(self) >= self._capacity:
                self.clear()
            self[key] = result
        return result


# --------------------------------------------------------------------------- strings


def unpacked(begins: Array, ends: Array, symbols: Array) -> list[bytes]:
    """Return strings as bytes, in row-major order."""
    if begins.size != ends.size:
        raise OperatorError(f"{begins.size} begins and {ends.size} ends of strings do not fit")
    whole = symbols.tobytes()
    return [whole[begin:end] for begin, end in zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)]


def packed(strings: Iterable[bytes], shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return begins, ends and bytes of strings, in a shape."""
    items = list(strings)
    ends = np.cumsum([len(item) for item in items], dtype=np.int64).astype(np.int32)
    return begins_of(ends).reshape(shape), ends.reshape(shape), np.frombuffer(b"".join(items), np.uint8)


def begins_of(ends: Array) -> Array:
    """Return the begins of parts that follow each other without gaps, from their ends."""
    begins = np.zeros_like(ends)
    begins.reshape(-1)[1:] = ends.reshape(-1)[:-1]
    return begins


def rows_until(row_ends: Sequence[int], rows_begin: Array, rows_end: Array) -> tuple[Array, Array]:
    """Return the begins and ends of rows that follow each other, in the shapes of the begins and ends of other rows."""
    ends = as_i32(row_ends)
    return begins_of(ends).reshape(rows_begin.shape), ends.reshape(rows_end.shape)


def ranges(begins: Array, ends: Array, count: int) -> list[tuple[int, int]]:
    """Return the begin and end of each row, which lie inside of ``count`` elements."""
    if begins.size != ends.size:
        raise OperatorError(f"{begins.size} begins and {ends.size} ends of rows do not fit")
    found = list(zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True))
    for begin, end in found:
        if not 0 <= begin <= end <= count:
            raise OperatorError(f"a row is [{begin}, {end}), outside of the {count} elements")
    return found


def sums(counts: Array) -> Array:
    """Return the sums of the first counts: of none, of one, and so on."""
    result = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=result[1:])
    return result


def as_i32(numbers: Sequence[int] | Array, shape: tuple[int, ...] = (-1,)) -> Array:
    """Return numbers as a tensor of i32."""
    return np.array(numbers, np.int32).reshape(shape)
