"""The element types of OpenVINO and the NumPy dtypes that stand for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

from ovir.diagnostics.wording import did_you_mean, shortened


@dataclass(frozen=True, slots=True, eq=False)
class ElementType:
    """One of OpenVINO's element types.

    Each type exists once, and is compared by identity; ``ElementType.parse("f32")`` returns it.
    """

    name: str
    """The name, such as ``f32``."""
    bits: int
    """The size of a value in the weights file, in bits."""
    kind: str
    """``float``, ``signed``, ``unsigned``, ``boolean``, ``string`` or ``dynamic``."""
    dtype: np.dtype[Any] | None
    """The NumPy dtype of arrays of this type, None for ``dynamic``.

    Types that NumPy and ml_dtypes lack (u1, u3, u6, nf4) are held as uint8, one value (for nf4: one 4-bit code) per
    byte.
    """

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return ElementType.parse, (self.name,)  # so that each type exists once

    def to_dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype (ml_dtypes' where NumPy has none); raise ValueError for ``dynamic``."""
        if self.dtype is None:
            raise ValueError("element type 'dynamic' has no NumPy dtype")
        return self.dtype

    @property
    def is_dynamic(self) -> bool:
        """Return whether the type is not known."""
        return self.kind == "dynamic"

    @property
    def is_real(self) -> bool:
        """Return whether it is a floating-point type, nf4 included."""
        return self.kind == "float"

    @property
    def holds_reals(self) -> bool:
        """Return whether its arrays hold real numbers: those of nf4 hold codes."""
        return self.is_real and self.name != "nf4"

    @property
    def is_integral(self) -> bool:
        """Return whether it is an integer type; boolean is not one."""
        return self.kind in ("signed", "unsigned")

    def stored_bytes(self, count: int) -> int:
        """Return the number of bytes that ``count`` elements take in a .bin, where small ones share bytes."""
        return -(-count * self.bits // 8)

    def merged_with(self, other: ElementType) -> ElementType | None:
        """Return the type that both can be (dynamic gives way), or None if they differ."""
        if other.is_dynamic or other == self:
            return self
        return other if self.is_dynamic else None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, text: str) -> ElementType:
        """Parse a ``precision`` or ``element_type`` text, in any case; raise ValueError if it names no element type."""
        key = text.strip().lower()
        found = _BY_NAME.get(_ALIASES.get(key, key))
        if found is None:
            meant = did_you_mean(key, (*_BY_NAME, *_ALIASES), "{}", cutoff=0.5)
            hint = meant or "expected one such as f32, i64, u8, boolean or string"
            raise ValueError(f"'{shortened(text)}' is not an element type; {hint}")
        return found

    @classmethod
    def parse_attribute(cls, text: str) -> ElementType:
        """Parse an ``element_type`` text of a file: the name in any case, which nothing may surround."""
        found = cls.parse(text)
        if text.lower() not in (found.name, "undefined"):
            raise ValueError(f"'{shortened(text)}' is not an element type: OpenVINO reads '{found}'")
        return found

    @classmethod
    def parse_stored(cls, text: str) -> ElementType:
        """Parse the ``element_type`` text of a Const: the name, or its form in upper case if that is a precision."""
        found = cls.parse_attribute(text)
        if text not in _PRECISIONS:
            raise ValueError(f"'{shortened(text)}' is not an element type of constants: OpenVINO reads '{found}'")
        return found

    @classmethod
    def parse_precision(cls, text: str) -> ElementType:
        """Parse a ``precision`` text of a file: the name, or its form in upper case, such as ``FP32`` for f32."""
        found = cls.parse(text)
        if text not in _PRECISIONS:
            usual = next(known for known in _PRECISIONS if cls.parse(known) is found and known.isupper())
            raise ValueError(f"'{shortened(text)}' is not a precision: OpenVINO reads '{usual}'")
        return found

    @classmethod
    def from_dtype(cls, dtype: Any) -> ElementType:
        """Return the element type of a NumPy dtype; raise ValueError if OpenVINO has none."""
        dtype = np.dtype(dtype)
        if dtype.kind in "USOT":
            return string
        if (found := _BY_DTYPE.get(dtype)) is not None:
            return found
        raise ValueError(f"OpenVINO has no element type for NumPy's {dtype}")


def _type(name: str, bits: int, kind: str, dtype: Any) -> ElementType:
    return ElementType(name, bits, kind, None if dtype is None else np.dtype(dtype))


boolean = _type("boolean", 8, "boolean", np.bool_)
bf16 = _type("bf16", 16, "float", ml_dtypes.bfloat16)
f16 = _type("f16", 16, "float", np.float16)
f32 = _type("f32", 32, "float", np.float32)
f64 = _type("f64", 64, "float", np.float64)
i4 = _type("i4", 4, "signed", ml_dtypes.int4)
i8 = _type("i8", 8, "signed", np.int8)
i16 = _type("i16", 16, "signed", np.int16)
i32 = _type("i32", 32, "signed", np.int32)
i64 = _type("i64", 64, "signed", np.int64)
u1 = _type("u1", 1, "unsigned", np.uint8)
u2 = _type("u2", 2, "unsigned", ml_dtypes.uint2)
u3 = _type("u3", 3, "unsigned", np.uint8)
u4 = _type("u4", 4, "unsigned", ml_dtypes.uint4)
u6 = _type("u6", 6, "unsigned", np.uint8)
u8 = _type("u8", 8, "unsigned", np.uint8)
u16 = _type("u16", 16, "unsigned", np.uint16)
u32 = _type("u32", 32, "unsigned", np.uint32)
u64 = _type("u64", 64, "unsigned", np.uint64)
nf4 = _type("nf4", 4, "float", np.uint8)
f8e4m3 = _type("f8e4m3", 8, "float", ml_dtypes.float8_e4m3fn)
f8e5m2 = _type("f8e5m2", 8, "float", ml_dtypes.float8_e5m2)
f8e8m0 = _type("f8e8m0", 8, "float", ml_dtypes.float8_e8m0fnu)
f4e2m1 = _type("f4e2m1", 4, "float", ml_dtypes.float4_e2m1fn)
string = _type("string", 0, "string", StringDType())
dynamic = _type("dynamic", 0, "dynamic", None)

ELEMENT_TYPES: tuple[ElementType, ...] = (
    boolean, bf16, f16, f32, f64, i4, i8, i16, i32, i64, u1, u2, u3, u4, u6, u8, u16, u32, u64,
    nf4, f8e4m3, f8e5m2, f8e8m0, f4e2m1, string, dynamic,
)  # fmt: skip
_BY_NAME = {t.name: t for t in ELEMENT_TYPES}
_BY_DTYPE = {t.dtype: t for t in ELEMENT_TYPES if t not in (u1, u3, u6, nf4, dynamic)}
# Spellings of ``precision`` attributes that are not just the upper-case name.
_ALIASES = {
    "unspecified": "dynamic", "undefined": "dynamic", "bool": "boolean", "bin": "u1",
    "fp16": "f16", "fp32": "f32", "fp64": "f64",
}  # fmt: skip

_PRECISIONS = {alias.upper(): None for alias in _ALIASES} | {
    spelling: None
    for name in _BY_NAME
    for spelling in (name.upper(), name)
    if spelling not in ("BOOLEAN", "DYNAMIC", "F16", "F32", "F64")
}
_PRECISIONS |= {"undefined": None, "bin": None}
"""The spellings of ``precision`` that OpenVINO reads, first the usual one of each type."""


@cache
def value_range(element_type: ElementType) -> tuple[int, int] | tuple[float, float]:
    """Return the least and the greatest number of a numeric type; of nf4, the least and the greatest code."""
    if element_type.is_integral or element_type == nf4:  # its codes
        highest = 1 << (element_type.bits - (element_type.kind == "signed"))
        return (-highest if element_type.kind == "signed" else 0), highest - 1
    limits: Any = ml_dtypes.finfo(element_type.to_dtype())  # type: ignore[no-untyped-call]
    return float(limits.min), float(limits.max)


def integers_outside(array: NDArray[Any], element_type: ElementType) -> NDArray[Any]:
    """Return the mask of the values of an integer array that an integer type cannot hold."""
    low, high = value_range(element_type)
    if array.size == 0 or low <= int(array.min()) <= int(array.max()) <= high:
        return np.zeros(array.shape, np.bool_)
    held = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
    below = array < low if held is None or held.min < low else np.False_
    above = array > high if held is None or held.max > high else np.False_
    return np.logical_or(below, above)


def shares_dtype(element_type: ElementType) -> bool:
    """Return whether the dtype that stands for a type has values that are none of the type."""
    return element_type.dtype == np.uint8 and element_type != u8


def range_text(element_type: ElementType) -> str:
    """Return the range of a numeric type, of nf4 that of its codes, for messages."""
    low, high = value_range(element_type)
    is_real = isinstance(high, float)
    return f"{low:.6g} to {high:.6g}" if is_real else f"{low} to {high}"


def plain_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Return real numbers in a dtype of NumPy itself, unchanged; raise ValueError for arrays of anything else.

    ml_dtypes does not convert all of its types to each other.
    """
    if array.dtype.isbuiltin == 2:  # a dtype that a package has registered
        try:
            ml_dtypes.iinfo(array.dtype)  # type: ignore[no-untyped-call]
        except ValueError:
            return array.astype(np.float32)
        return array.astype(np.int8)  # of 4 bits or less
    if array.dtype.kind not in "biuf":
        raise ValueError(f"values of NumPy's {array.dtype} are not real numbers")
    return array


def converted_values(array: NDArray[Any], element_type: ElementType) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return numbers in another element type, and the mask of those that the type cannot hold.

    Floating-point types round, but do not make infinity or NaN of a finite number. Other types hold only their
    values; nf4 holds codes. ValueError for an array of anything but real numbers.
    """
    numbers = plain_numbers(array)
    with np.errstate(all="ignore"):
        converted = numbers.astype(element_type.to_dtype())
        if element_type.holds_reals:
            return converted, _lost_numbers(numbers, converted)
        if element_type == boolean:
            return converted, (numbers != 0) & (numbers != 1)
        if numbers.dtype.kind != "f":
            return converted, integers_outside(numbers, element_type)
        low, high = value_range(element_type)
        # One more than the greatest integer is a power of two, so f64 has it.
        wide = numbers.astype(np.promote_types(numbers.dtype, np.float64), copy=False)
        return converted, ~((wide >= low) & (wide < float(high + 1)) & (wide == np.trunc(wide)))


def require_held(array: NDArray[Any], lost: NDArray[np.bool_], element_type: ElementType) -> None:
    """Raise ValueError, with the first value of the mask, if there is one that the type cannot hold."""
    if lost.any():
        raise ValueError(not_a_value(array[lost].reshape(-1)[0], element_type))


def not_a_value(value: Any, element_type: ElementType) -> str:
    """Return the message for a number that a type cannot hold."""
    if element_type == boolean:
        return f"{value} is not a value of boolean, which holds False and True"
    what = "codes" if element_type == nf4 else "numbers" if element_type.is_real else "integers"
    return f"{value} is not a value of {element_type}, which holds {what} from {range_text(element_type)}"


def _lost_numbers(array: NDArray[Any], converted: NDArray[Any]) -> Any:
    """Return the mask of the numbers that a conversion to a floating-point type has made infinite or NaN, or has
    clipped because the type has neither."""
    if converted.dtype == f4e2m1.dtype:
        return ~(np.abs(array.astype(np.float64)) <= _LARGEST_ROUNDED_TO_F4)
    finite = np.isfinite(converted)
    if finite.all():
        return ~finite
    return ~finite & (np.isfinite(array) | (np.isinf(array) & np.isnan(converted)))


_LARGEST_ROUNDED_TO_F4 = 7.0  # half a step above 6, the largest number of f4e2m1
