"""The base of all operations.

An operation is a class: its attributes, what it infers and its kernel stand together. See
docs/adding-an-operation.md for a worked example.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import ElementType, i32, i64, nf4
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import MAX_ELEMENTS, Value, from_bounds, from_moved
from ovir.diagnostics.codes import AXIS, ELEMENT_TYPE, RANK, TYPES_DIFFER, Code
from ovir.diagnostics.errors import OperatorError
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.bodies import BodyMap
from ovir.ops.base.traits import ALL, Traits

Kernel = Callable[..., "Array | tuple[Array, ...]"]
V = TypeVar("V")


class Operator(Traits):
    """One version of one operation, with the attribute values of one layer.

    A subclass declares its attributes (``axis: int = attribute(default=0)``) and defines

    ``infer(self, data: TensorType, ...) -> TensorType`` (or a tuple): output types and shapes. Its
    parameters name the inputs; those with a default are optional; ``*inputs`` takes any number.

    ``run(self, data, ..., *, out=None)``: the kernel on arrays. ``out``, if given, is always a C-contiguous array of
    the result's shape and type that shares memory with no input, but for those that it may be itself (``inplace``).
    The result is written there, or into a new array, and returned in any case. Inputs must not be written to. A kernel
    without ``out`` is never given one.
    With several outputs ``out`` and the result are tuples. A keyword ``bodies`` or ``variable`` in
    either signature asks for the layer's bodies or its state variable; ``wanted`` in that of ``run`` tells for
    each output whether it is read at all: where it is not, the result may have None.
    """

    type: ClassVar[str]
    opset: ClassVar[int]
    attributes: ClassVar[dict[str, Attribute]] = {}
    required_attributes: ClassVar[tuple[Attribute, ...]] = ()
    fields: ClassVar[frozenset[str]] = frozenset()
    """The Python names of the attributes."""
    _defaults: ClassVar[dict[str, Any]] = {}

    views: ClassVar[bool] = False
    """Whether an output may share memory with an input."""
    inplace: ClassVar[tuple[int, ...]] = ()
    """The inputs that ``out`` may be the same array as."""
    pure: ClassVar[bool] = True
    """Whether equal inputs give equal outputs, so that constants may be folded."""
    guards_sizes: ClassVar[bool] = False
    """Whether ``run`` itself fails on inputs whose sizes do not fit together. Where they were unknown to inference,
    that of any other operation is asked again, with the sizes of the run."""
    value_inputs: ClassVar[tuple[int, ...]] = ()
    """The inputs whose known values ``infer`` may read, such as the target shape of Reshape: those that determine the
    sizes of outputs, and axes that inference checks. Of all other inputs it may read the element type and the shape
    only: layers that agree in these and in the values named here share one inference."""
    monotone: ClassVar[tuple[int, ...]] = ()
    """The inputs in which each output element is monotone: its bounds lie at corners of theirs."""

    input_types: tuple[ElementType, ...] = ()
    output_types: tuple[ElementType, ...] = ()
    output_shapes: tuple[PartialShape, ...] = ()
    """What was inferred of the inputs and outputs: see ``applied``."""
    content: object = None
    """What the outputs depend on besides attributes and inputs: the data of a constant."""
    wiring: Mapping[str, BodyMap] = MappingProxyType({})
    """Of an operation with bodies: how each is joined to the layer's inputs and outputs."""

    def __init__(self, **attributes: Any) -> None:
        """Attributes by Python name; those left out take their default. ValueError names a bad one."""
        declared = {a.field: a for a in self.attributes.values()}
        for field, spec in declared.items():
            if field in attributes:
                try:
                    value = spec.check(attributes.pop(field))
                except ValueError as error:
                    raise ValueError(f"attribute '{spec.name}': {error}") from None
            elif spec.required:
                raise ValueError(f"attribute '{spec.name}' is missing")
            else:
                value = spec.default
            setattr(self, field, value)
        if attributes:
            raise ValueError(f"{self.type} has no attribute '{next(iter(attributes))}'")

    @classmethod
    def of_parsed(cls, values: Mapping[str, Any]) -> Self:
        """An operation whose attribute values, by Python name, have been checked, and none that is required misses."""
        op = cls.__new__(cls)
        op.__dict__.update(cls._defaults)
        op.__dict__.update(values)
        return op

    def applied(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> Self:
        """Return this operation as it is applied to inputs of these types, from which these outputs were inferred.

        ``run``, ``prepare`` and ``infer_value`` are called on the result and read ``input_types``, ``output_types`` and
        ``output_shapes``. The operation itself, which equal layers may share, stays as it is.
        """
        op = copy(self)
        op.input_types = tuple([tensor.element_type for tensor in inputs])
        op.output_types = tuple([tensor.element_type for tensor in outputs])
        op.output_shapes = tuple([tensor.shape for tensor in outputs])
        return op

    @classmethod
    def reads_value(cls, index: int) -> bool:
        """Return whether ``infer`` may read the known value of this input."""
        return index in cls.value_inputs or cls.value_inputs == ALL

    # ----- to be defined by each operation

    infer: Callable[..., TensorType | tuple[TensorType, ...]]
    run: Kernel

    def prepare(self, *constants: Array | None) -> Kernel | None:
        """A form of ``run`` that has done what can be done once; None where there is no better one.

        ``constants`` has, for each input, its array where it is the same in every call, else None.
        The result takes the arguments of ``run``, the constants included.
        """
        return None

    def infer_value(self, *inputs: TensorType) -> Value | tuple[Value | None, ...] | None:
        """What is known of the output's content when not all inputs are constants; several outputs: a tuple.

        The default follows ``carries`` and ``monotone``: the kernel is run on bounds and symbols. The other inputs
        must then be constants.
        """
        if self.carries:
            return self._carried(inputs)
        return self._cornered(inputs) if self.monotone else None

    # ----- for the use of operations

    def require(self, condition: object, message: str, *values: object, code: Code | None = None) -> None:
        """Raise the message, its ``{}`` filled with ``values``, unless the condition holds."""
        if not condition:
            self.fail(message, *values, code=code)

    def require_known(self, value: V | None, message: str, *values: object, code: Code | None = None) -> V:
        """Return the value, or raise the message, its ``{}`` filled with ``values``, where it is None."""
        if value is None:
            self.fail(message, *values, code=code)
        return value

    def fail(self, message: str, *values: object, code: Code | None = None, hint: str | None = None) -> NoReturn:
        """Raise the message; whoever called the operation adds file, line and layer."""
        raise OperatorError(message.format(*map(shown, values)) if values else message, code, hint)

    def normalize_axis(self, axis: int, rank: int | None, name: str = "axis", of: object = None) -> int:
        """The axis counted from the front; as it is where the rank is unknown. ``of`` is shown in the error."""
        if rank is None:
            return axis
        # OpenVINO allows axis 0 and -1 on a scalar.
        low, high = (-rank, rank - 1) if rank else (-1, 0)
        if not low <= axis <= high:
            place = f" for data of shape {of}" if of is not None else f" of a tensor of rank {rank}"
            self.fail("{} {} is outside [{}, {}]{}", name, axis, low, high, place, code=AXIS)
        return axis + max(rank, 1) if axis < 0 else axis

    def normalize_axes(
        self, axes: Sequence[int], rank: int | None, name: str = "axis", *, unique: bool = True
    ) -> list[int]:
        """Each axis counted from the front; a repeated one is an error unless ``unique`` is False."""
        result = [self.normalize_axis(int(axis), rank, name) for axis in axes]
        if unique:
            named = list(map(int, axes))
            self.require(len(set(result)) == len(result), "{} {} names a dimension twice", name, named, code=AXIS)
        return result

    def merge_types(self, *types: ElementType, names: Sequence[str] = ()) -> ElementType:
        """The one element type that all the inputs have; an error names the two that differ."""
        merged = types[0]
        for i, other in enumerate(types[1:], 1):
            both = merged.merged_with(other)
            if both is None:
                first, second = (names[0], names[i]) if names else ("input 0", f"input {i}")
                message = "{} is {} and {} is {}: their element types must be equal"
                self.fail(message, first, merged, second, other, code=TYPES_DIFFER)
            merged = both
        return merged

    def require_type(
        self, name: str, element_type: ElementType, allowed: Callable[[ElementType], bool], words: str
    ) -> None:
        """Raise unless the element type is dynamic or one of those allowed, which ``words`` describe."""
        if not (element_type.is_dynamic or allowed(element_type)):
            self.fail("{} must be {}, got {}", name, words, element_type, code=ELEMENT_TYPE)

    def require_real(self, name: str, element_type: ElementType) -> None:
        """Raise unless the element type is a floating-point one (or not known yet); nf4 holds codes, not numbers."""
        self.require_type(name, element_type, lambda t: t.is_real and t != nf4, "of a floating-point type")

    def require_numeric(self, name: str, element_type: ElementType) -> None:
        """Raise unless the element type is a floating-point or an integer one (or not known yet)."""
        self.require_type(name, element_type, lambda t: (t.is_real and t != nf4) or t.is_integral, "of a numeric type")

    def require_integers(self, name: str, element_type: ElementType) -> None:
        """Raise unless the element type is an integer one (or not known yet)."""
        self.require_type(name, element_type, lambda t: t.is_integral, "of an integer type")

    def require_index_type(self, name: str, element_type: ElementType, *, known: bool = False) -> None:
        """Raise unless the element type is i32 or i64, or not known yet; an attribute's is ``known``."""
        if known or not element_type.is_dynamic:
            allowed = element_type in (i32, i64)
            self.require(allowed, "{} must be i32 or i64, got {}", name, element_type, code=ELEMENT_TYPE)

    def require_rank(self, name: str, shape: PartialShape, *ranks: int) -> None:
        """Raise unless the shape's rank is one of those given (or not known yet)."""
        if shape.rank is not None and shape.rank not in ranks:
            self.fail("{} must have rank {}, got shape {}", name, " or ".join(map(str, ranks)), shape, code=RANK)

    def require_rank_at_least(self, name: str, shape: PartialShape | tuple[int, ...], least: int) -> None:
        """Raise unless the shape has that many dimensions or more (or its rank is not known yet)."""
        rank = len(shape) if isinstance(shape, tuple) else shape.rank
        if rank is not None and rank < least:
            self.fail("{} must have rank {} or more, got shape {}", name, least, shape, code=RANK)

    def require_one_element(self, name: str, shape: PartialShape) -> None:
        """Raise unless the shape is that of a scalar or of one element (or may be, as far as it is known)."""
        one = shape.rank is None or all(dim.contains(1) for dim in shape)
        self.require(
            one and (shape.rank or 0) <= 1, "{} must be a scalar or have one element, got shape {}", name, shape
        )

    def merge_dims(self, what: str, **places: tuple[PartialShape, int]) -> Dimension:
        """The one size that a dimension of each input has, given as ``name=(shape, axis)``; an error names two."""
        (first, (shape, axis)), *others = places.items()
        size = shape[axis]
        for name, (other, position) in others:
            merged = size.merged_with(other[position])
            if merged is None:
                message = "{} of shape {} and {} of shape {} must have the same number of {} (dimensions {} and {})"
                self.fail(message, first, shape, name, other, what, axis, position)
            size = merged
        return size

    def count_of(self, name: str, tensor: TensorType) -> Dimension:
        """The size that a tensor of one element gives, as far as it is known; an error for one below 0."""
        if tensor.value is None:
            return UNKNOWN
        self.check_count(name, float(tensor.value.upper.item()))
        return tensor.value.dimensions()[0]

    def check_count(self, name: str, count: float) -> None:
        """Raise for a count below 0."""
        self.require(count >= 0, "{} must not be negative, got {:.0f}", name, count)

    # ----- value propagation

    def _carried(self, inputs: tuple[TensorType, ...]) -> Value | tuple[Value | None, ...] | None:
        carried = _chosen(self.carries, inputs)
        values = _followed(carried, inputs)
        if values is None:
            return None

        def moved(part: Callable[[Value], Array]) -> tuple[Array, ...]:
            result = self.run(*(part(v) if i in carried else v.constant for i, v in enumerate(values)))
            return result if isinstance(result, tuple) else (result,)

        parts = zip(
            self.output_types,
            moved(lambda v: v.lower),
            moved(lambda v: v.upper),
            moved(lambda v: v.symbols),
            strict=True,
        )
        return tuple(from_moved(*part) for part in parts)

    def _cornered(self, inputs: tuple[TensorType, ...]) -> Value | None:
        chosen = _chosen(self.monotone, inputs)
        values = _followed(chosen, inputs)
        if values is None:
            return None

        def ends(i: int, value: Value) -> tuple[Array | None, ...]:
            if i not in chosen:
                return (value.constant,)
            if not self.input_types[i].is_real:
                return value.lower, value.upper
            # An unknown real number can be NaN, and infinite.
            return tuple(np.where(value.is_unknown, np.nan, end) for end in (value.lower, value.upper))

        corners = [self.run(*corner) for corner in product(*(ends(i, v) for i, v in enumerate(values)))]
        return from_bounds(self.output_types[0], np.min(corners, axis=0), np.max(corners, axis=0))


def _chosen(indices: tuple[int, ...], inputs: Sequence[TensorType]) -> Sequence[int]:
    return range(len(inputs)) if indices == ALL else indices


def _followed(chosen: Sequence[int], inputs: Sequence[TensorType]) -> list[Value] | None:
    """What is known of each input; None if that is nothing, or if one that is not chosen is no constant."""
    values = []
    for i, tensor in enumerate(inputs):
        value = tensor.bounds_or_unknown() if i in chosen else tensor.value
        if value is None or (i not in chosen and value.constant is None):
            return None
        values.append(value)
    return values


def assumed(spec: Attribute) -> object:
    """Return what messages say that a reader assumes where an attribute is missing."""
    return spec.assumed or (shown(spec.default) if spec.default != "" else "''")


def shown(value: object) -> object:
    """A value as messages show it: sequences of integers, most of them shapes, as a PartialShape shows itself."""
    if isinstance(value, tuple | list) and all(isinstance(item, int | np.integer) for item in value):
        return f"[{','.join(map(str, value))}]"
    return value


def signature(function: Callable[..., Any]) -> tuple[list[str], int, bool, frozenset[str]]:
    """Of ``infer`` or ``run``: the inputs' names, how many are required, whether any number may
    follow, and the keywords it asks for."""
    names: list[str] = []
    required = 0
    variadic = False
    keywords: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            variadic = True
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords.add(parameter.name)
        else:
            names.append(parameter.name)
            required += parameter.default is parameter.empty
    return names, required, variadic, frozenset(keywords)


def can_fold(op: Operator, inputs: Sequence[TensorType]) -> bool:
    """Whether inference may run the kernel on these inputs: all constant, and small together."""
    if not op.pure or op.wiring:
        return False
    if not all(t.has_value for t in inputs):
        return False
    return all(t.constant is not None and t.constant.size <= 16 * MAX_ELEMENTS for t in inputs)
