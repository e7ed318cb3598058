"""The base of all operations.

An operation is a class with its attributes, its inference and its kernel. See docs/adding-an-operation.md for a worked
example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, dynamic, i32, i64
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import Outputs, TensorType
from ovir.core.values import MAX_ELEMENTS, Value, bound_text, from_bounds, from_moved
from ovir.diagnostics.codes import AXIS, ELEMENT_TYPE, RANK, TYPES_DIFFER, Code
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.wording import filled, shown
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.bodies import BodyMap
from ovir.ops.base.layouts import Solved
from ovir.ops.base.traits import ALL, Traits

Kernel = Callable[..., "Array | tuple[Array, ...]"]
V = TypeVar("V")
Typed = ElementType | TensorType


class Operator(Traits):
    """One version of one operation, with the attribute values of one layer.

    A subclass declares its attributes (``axis: int = attribute(default=0)``) and defines two methods.

    ``infer(self, data: TensorType, ...) -> TensorType`` (or a tuple) returns the types of the outputs. Its parameters
    name the inputs; parameters with a default are optional inputs, and ``*inputs`` accepts any number.

    ``run(self, data, ...)`` is the kernel on arrays: it returns an array, or a tuple of arrays for several outputs, and
    does not write to its inputs.

    A keyword ``bodies`` or ``variable`` in either signature asks for the layer's bodies or its state variable.
    """

    type: ClassVar[str]
    """The name of the operation, such as ``Gather``."""
    opset: ClassVar[int]
    """The opset that introduced this version; 0 for operations that are in none."""
    attributes: ClassVar[dict[str, Attribute]] = {}
    """The declared attributes, by their names in files."""
    required_attributes: ClassVar[tuple[Attribute, ...]] = ()
    fields: ClassVar[frozenset[str]] = frozenset()
    """The Python names of the attributes."""
    _defaults: ClassVar[dict[str, Any]] = {}

    views: ClassVar[bool] = False
    """Whether an output may share memory with an input."""
    pure: ClassVar[bool] = True
    """Whether equal inputs give equal outputs, so that constants may be folded."""
    guards_sizes: ClassVar[bool] = False
    """Whether ``run`` itself raises for inputs whose sizes do not match. If sizes were unknown to inference, ``infer``
    of any other operation is called again with the sizes of the run."""
    value_inputs: ClassVar[tuple[int, ...]] = ()
    """The inputs whose known values ``infer`` may read, such as the target shape of Reshape: inputs that determine
    sizes of outputs, and axes that inference checks. From all other inputs it may read only the element type and the
    shape: layers for which these and the values named here are equal share one inference.
    """
    shape_inputs: ClassVar[tuple[int, ...]] = ()
    """The inputs of which the operation reads the element type and the shape, but no element."""
    monotone: ClassVar[tuple[int, ...]] = ()
    """The inputs in which each output element is monotone: its bounds are at corners of their bounds."""
    stays_in_type: ClassVar[bool] = False
    """Whether the integers that a monotone operation or a reduction computes never wrap around."""

    input_types: tuple[ElementType, ...] = ()
    """The inferred element types of the inputs, for ``run`` and ``infer_value``; see ``applied``."""
    output_types: tuple[ElementType, ...] = ()
    """The inferred element types of the outputs."""
    output_shapes: tuple[PartialShape, ...] = ()
    """The inferred shapes of the outputs."""
    constant_data: object = None
    """The data of a constant, on which the outputs depend besides attributes and inputs."""
    wiring: Mapping[str, BodyMap] = MappingProxyType({})
    """For an operation with bodies, how each body is joined to the layer's inputs and outputs."""

    def __init__(self, **attributes: Any) -> None:
        """Set attributes by their Python names, or to their defaults; raise ValueError for an invalid one."""
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

    def __repr__(self) -> str:
        values = (f"{spec.name}={spec.format(getattr(self, spec.field))}" for spec in self.attributes.values())
        version = f"-{self.opset}" if self.opset else ""
        return f"<{self.type}{version}({', '.join(values)})>"

    @classmethod
    def from_parsed(cls, values: Mapping[str, Any]) -> Self:
        """Return an operation with checked attribute values by Python name, which must include all required
        attributes."""
        op = cls.__new__(cls)
        op.__dict__.update(cls._defaults)
        op.__dict__.update(values)
        return op

    def applied(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> Self:
        """Return this operation as it is applied to inputs of these types, from which these outputs were inferred.

        ``run`` and ``infer_value`` are called on the result and read ``input_types``, ``output_types`` and
        ``output_shapes``. The operation itself, which equal layers may share, stays as it is.
        """
        op = type(self).__new__(type(self))
        op.__dict__.update(self.__dict__)  # as copy() does, in a fifth of the time
        op.input_types = tuple([tensor.element_type for tensor in inputs])
        op.output_types = tuple([tensor.element_type for tensor in outputs])
        op.output_shapes = tuple([tensor.shape for tensor in outputs])
        return op

    @classmethod
    def reads_value(cls, index: int) -> bool:
        """Return whether ``infer`` may read the known value of this input."""
        return index in cls.value_inputs or cls.value_inputs == ALL

    @classmethod
    def with_elements_read(cls, inputs: Sequence[V]) -> Sequence[V]:
        """Return the inputs whose elements the operation reads."""
        if not cls.shape_inputs:
            return inputs
        return [item for index, item in enumerate(inputs) if index not in cls.shape_inputs]

    # ----- to be defined by each operation

    def infer(self, *inputs: Any, **others: Any) -> Outputs:
        """Return the types of the outputs for the types of the inputs; the default follows ``takes`` and ``gives``."""
        return Solved(self, inputs).outputs()

    run: Kernel
    """The kernel: the function from the arrays of the inputs to the arrays of the outputs."""

    def infer_value(self, *inputs: TensorType) -> Value | tuple[Value | None, ...] | None:
        """Return the known value of the output if not all inputs are constants; a tuple for several outputs.

        The default follows ``moves_elements`` and ``monotone`` and runs the kernel on bounds and symbols. All other
        inputs must then be constants.
        """
        if self.moves_elements:
            return self._values_from_moves(inputs)
        return self._value_from_corners(inputs) if self.monotone else None

    # ----- for the use of operations

    def solved(self, *inputs: TensorType | None) -> Solved:
        """Return the sizes and types of the inputs that ``takes`` names; raise an error if they contradict each
        other."""
        return Solved(self, inputs)

    def require(self, condition: object, message: str, *values: object, code: Code | None = None) -> None:
        """Raise an error unless the condition holds. ``values`` fill the ``{}`` of the message."""
        if not condition:
            self.fail(message, *values, code=code)

    def require_known(self, value: V | None, message: str, *values: object, code: Code | None = None) -> V:
        """Return the value, or raise an error if it is None. ``values`` fill the ``{}`` of the message."""
        if value is None:
            self.fail(message, *values, code=code)
        return value

    def fail(self, message: str, *values: object, code: Code | None = None, hint: str | None = None) -> NoReturn:
        """Raise an error. The caller of the operation adds file, line and layer."""
        raise OperatorError(filled(message, values) if values else message, code, hint)

    def normalize_axis(self, axis: int | Array, rank: int | None, name: str = "axis", of: object = None) -> int:
        """Return the axis, which may be an array of one element, counted from the front, or unchanged if the rank is
        unknown. An error shows ``of``."""
        if not isinstance(axis, int):
            axis = int(axis.item())
        if rank is None:
            return axis
        # OpenVINO allows axis 0 and -1 on a scalar.
        low, high = (-rank, rank - 1) if rank else (-1, 0)
        if not low <= axis <= high:
            place = f" for data of shape {shown(of)}" if of is not None else f" of a tensor of rank {rank}"
            self.fail("{} {} is outside [{}, {}]{}", name, axis, low, high, place, code=AXIS)
        return axis + max(rank, 1) if axis < 0 else axis

    def normalize_axes(
        self, axes: Sequence[int], rank: int | None, name: str = "axis", *, unique: bool = True
    ) -> list[int]:
        """Return each axis counted from the front; a repeated axis is an error unless ``unique`` is False."""
        result = [self.normalize_axis(int(axis), rank, name) for axis in axes]
        if unique:
            names, given = "axes" if name == "axis" else name, list(map(int, axes))
            self.require(len(set(result)) == len(result), "{} {} are not distinct", names, given, code=AXIS)
        return result

    def shared_type(self, **inputs: TensorType | None) -> ElementType:
        """Return the element type that all given inputs share; an error names two that differ."""
        given = {name: tensor.element_type for name, tensor in inputs.items() if tensor is not None}
        return self.merge_types(*given.values(), names=list(given))

    def merge_types(self, *types: ElementType, names: Sequence[str] = ()) -> ElementType:
        """Return the merged element type; raise an error that names two if they differ."""
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
        self, name: str, given: Typed, allowed: Callable[[ElementType], bool], words: str, *ranks: int
    ) -> None:
        """Raise unless an element type is dynamic or allowed; ``words`` describe the allowed types.

        ``given`` is the type or a tensor that has it, which must also have one of ``ranks``, if there are any.
        """
        element_type = given.element_type if isinstance(given, TensorType) else given
        if not (element_type.is_dynamic or allowed(element_type)):
            self.fail("{} must be {}, got {}", name, words, element_type, code=ELEMENT_TYPE)
        if ranks and isinstance(given, TensorType):
            self.require_rank(name, given.shape, *ranks)

    def require_real(self, name: str, given: Typed, *ranks: int) -> None:
        """Raise unless the element type is floating-point or still unknown; nf4 does not count, since it holds
        codes."""
        self.require_type(name, given, lambda t: t.holds_reals, "of a floating-point type", *ranks)

    def require_numeric(self, name: str, given: Typed, *ranks: int) -> None:
        """Raise unless the element type is floating-point, integer or still unknown."""
        words = "of a numeric type"
        self.require_type(name, given, lambda t: t.holds_reals or t.is_integral, words, *ranks)

    def require_integers(self, name: str, given: Typed, *ranks: int) -> None:
        """Raise unless the element type is integer or still unknown."""
        self.require_type(name, given, lambda t: t.is_integral, "of an integer type", *ranks)

    def require_index_type(self, name: str, given: Typed, *ranks: int, known: bool = False) -> None:
        """Raise unless the element type is i32, i64 or still unknown; the type in an attribute is always ``known``."""
        words = "i32 or i64"
        self.require_type(name, given, lambda t: t in (i32, i64), words, *ranks)
        self.require(not known or given != dynamic, "{} must be {}, got {}", name, words, given, code=ELEMENT_TYPE)

    def require_rank(self, name: str, shape: PartialShape, *ranks: int) -> None:
        """Raise unless the shape's rank is one of ``ranks`` or still unknown."""
        if shape.rank is not None and shape.rank not in ranks:
            self.fail("{} must have rank {}, got shape {}", name, " or ".join(map(str, ranks)), shape, code=RANK)

    def require_rank_at_least(self, name: str, shape: PartialShape | tuple[int, ...], least: int) -> None:
        """Raise unless the shape's rank is at least ``least`` or still unknown."""
        rank = len(shape) if isinstance(shape, tuple) else shape.rank
        if rank is not None and rank < least:
            self.fail("{} must have rank {} or more, got shape {}", name, least, shape, code=RANK)

    def require_one_element(self, name: str, shape: PartialShape) -> None:
        """Raise unless the shape is, or may be, the shape of a scalar or of one element."""
        one = shape.rank is None or all(dim.contains(1) for dim in shape)
        self.require(
            one and (shape.rank or 0) <= 1, "{} must be a scalar or have one element, got shape {}", name, shape
        )

    def merge_dims(self, what: str, **places: tuple[PartialShape, int]) -> Dimension:
        """Return the size that a dimension of each input shares, given as ``name=(shape, axis)``; an error names two
        inputs."""
        (first, (shape, axis)), *others = places.items()
        size = shape[axis]
        for name, (other, position) in others:
            merged = size.merged_with(other[position])
            if merged is None:
                message = "{} of shape {} and {} of shape {} must have the same number of {} (dimensions {} and {})"
                self.fail(message, first, shape, name, other, what, axis, position)
            size = merged
        return size

    def sizes_in(self, name: str, vector: Value) -> list[Dimension]:
        """Return the sizes in a vector, as far as they are known; raise if one is negative."""
        for i, size in enumerate(vector.upper):
            self.check_count(f"{name}[{i}]", float(size))
        return vector.dimensions()

    def count_of(self, name: str, tensor: TensorType) -> Dimension:
        """Return the size in a tensor of one element, as far as it is known; raise if it is negative."""
        if tensor.value is None:
            return UNKNOWN
        self.check_count(name, float(tensor.value.upper.item()))
        return tensor.value.dimensions()[0]

    def check_count(self, name: str, count: float) -> None:
        """Raise for a negative count."""
        self.require(count >= 0, "{} must not be negative, got {}", name, bound_text(count))

    # ----- value propagation

    def _values_from_moves(self, inputs: tuple[TensorType, ...]) -> Value | tuple[Value | None, ...] | None:
        carried = _positions(self.moves_elements, inputs)
        values = _known_values(carried, inputs)
        if values is None:
            return None

        def moved(part: Callable[[Value], Array]) -> tuple[Array, ...]:
            result = self.run(*(part(v) if i in carried else v.constant for i, v in enumerate(values)))
            return result if isinstance(result, tuple) else (result,)

        parts = map(moved, (lambda v: v.lower, lambda v: v.upper, lambda v: v.marks))
        return tuple(from_moved(*part) for part in zip(self.output_types, *parts, strict=True))

    def _value_from_corners(self, inputs: tuple[TensorType, ...]) -> Value | None:
        monotone = _positions(self.monotone, inputs)
        values = _known_values(monotone, inputs)
        if values is None:
            return None

        def ends(i: int, value: Value) -> tuple[Array | None, ...]:
            return value.known_ends(self.input_types[i]) if i in monotone else (value.constant,)

        corners = [self.run(*corner) for corner in product(*(ends(i, v) for i, v in enumerate(values)))]
        lower, upper = np.min(corners, axis=0), np.max(corners, axis=0)
        sizes = all(values[i].is_size.all() for i in monotone)
        return from_bounds(self.output_types[0], lower, upper, sizes=sizes, may_wrap=not self.stays_in_type)


def _positions(indices: tuple[int, ...], inputs: Sequence[TensorType]) -> Sequence[int]:
    """Return the positions of the inputs that a trait lists."""
    return range(len(inputs)) if indices == ALL else indices


def _known_values(positions: Sequence[int], inputs: Sequence[TensorType]) -> list[Value] | None:
    """Return the known value of each input; None if nothing is known of one, or if one outside ``positions`` is not
    constant."""
    values = []
    for i, tensor in enumerate(inputs):
        value = tensor.bounds_or_unknown()
        if value is None or (i not in positions and value.constant is None):
            return None
        values.append(value)
    return values


# --------------------------------------------------------------------------- kernels that run before a model does

_MOST_READ = 16 * MAX_ELEMENTS
"""The most elements of an input that inference gives to a kernel."""
_INFERENCE_TIME = 2e7
"""The most nanoseconds that inference lets one kernel take."""
_FEW_REALS = 64


def can_evaluate(op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> bool:
    """Return whether inference may compute known values of these small outputs by running the kernel.

    It serves the arithmetic of shapes: integers, booleans and strings, reals where bounds are followed element by
    element, and the few reals that scale sizes. A kernel that may need more memory than inputs and outputs is not run.
    """
    if not op.pure or not op.bounded or op.wiring:
        return False
    if any(tensor.may_have_value and tensor.shape.least_size > _MOST_READ for tensor in op.with_elements_read(inputs)):
        return False
    tensors = (*inputs, *outputs)
    if not any(tensor.element_type.is_real for tensor in tensors):
        return True
    if op.moves_elements or op.monotone or type(op).infer_value is not Operator.infer_value:
        return True
    return sum(tensor.shape.least_size for tensor in tensors) <= _FEW_REALS


def can_fold(op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> bool:
    """Return whether inference may run the kernel on these inputs: all are constant and small, and it is quick."""
    if not op.pure or op.wiring:
        return False
    if not all(t.may_have_value and t.shape.least_size <= _MOST_READ for t in inputs):
        return False
    return op.kernel_time(inputs, outputs) <= _INFERENCE_TIME and all(t.constant is not None for t in inputs)


def keeps_arrays(op: Operator) -> bool:
    """Return whether an operation may keep arrays that it has read or returned, as an Assign or one of a user may."""
    return not op.pure or not op.opset
