"""The ONNX graph under construction, and its tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, partial, reduce
from typing import Any, NoReturn

import numpy as np
import onnx
import onnx_ir as ir

from ovir.core import element_types as t
from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN as UNKNOWN_SIZE
from ovir.core.shapes import PartialShape, static_shape
from ovir.diagnostics.wording import filled
from ovir.export.support import SINCE, computed_as, data_type, has_kernel, held_as, kernel_types, spelled, spelling
from ovir.kernels.precision import integer_range
from ovir.ops.base.elementwise import ElementwiseBase

UNKNOWN = PartialShape(None)
CONTRIB = "com.microsoft"
"""The domain of the operators that onnxruntime contributes."""


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A tensor of an ONNX graph: an input, an initializer or an output of a node.

    ``shape`` is what inference knows of a tensor of the IR model; for tensors between the nodes of one layer it is
    unknown unless the exporter adds it (``graph.shaped``). ``constant`` is the array if it is the same in every run.
    """

    value: ir.Value
    element_type: t.ElementType
    shape: PartialShape = UNKNOWN
    constant: Array | None = None

    @property
    def rank(self) -> int | None:
        """Return the number of dimensions, None if it is unknown."""
        return self.shape.rank

    @property
    def name(self) -> str:
        """Return the name in the ONNX graph, which may be given later."""
        return self.value.name or ""

    @property
    def number(self) -> float | None:
        """Return the number in a constant of one element, None for other tensors."""
        if self.constant is None or self.constant.size != 1:
            return None
        return float(self.constant.reshape(()).astype(np.float64))

    @property
    def real_type(self) -> t.ElementType:
        """Return the type in which the real numbers of a tensor are computed: f64 stays, all others become f32."""
        return t.f64 if self.element_type == t.f64 else t.f32

    @property
    def summed_in(self) -> t.ElementType:
        """Return the type in which numbers are summed: narrow ones are rounded or wrap around once, at the end."""
        if self.element_type.is_real:
            return self.real_type
        return t.i32 if self.element_type.bits < 8 or self.element_type == t.boolean else self.element_type


Operand = Tensor | Array | np.generic | bool | int | float | Sequence[int] | Sequence[float] | None
"""An input of a node: a tensor, a value that becomes a constant, or None for an optional input that is left out."""
Size = Tensor | int
"""A size: a tensor of i64 with shape [1], or a number in its place."""
FIRST = -(2**63)
LAST = 2**63 - 1
"""Positions before the first and after the last element of any dimension."""
_BOUND_TYPES = frozenset(("Cast", "If", "Loop", "Scan"))
"""Operators that run in the types that they are given: a Cast before a Cast would need another one, without end, and
bodies have types of their own."""
_SHARED = 64
"""Equal constants of at most this many elements are stored once."""
_COMPUTED = 1 << 16
"""The most integers of a tensor that the graph computes itself if it depends on constants only."""
NARROW = (t.u1, t.u2, t.u3, t.u4, t.u6)
"""Unsigned types whose elements are held in a wider type, of which only the low bits count."""


class NotExportable(Exception):  # noqa: N818  (it describes a layer, not a fault)
    """A layer that cannot be expressed in ONNX, with the reason."""

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


class Graph:
    """A graph, or the body of a loop or a branch, to which nodes are added.

    Each operator of ONNX is a method: ``graph.Softmax(data, axis=1)`` adds a node and returns its output. Inputs are
    tensors, arrays, numbers and lists of integers; numbers take the element type of the tensors beside them, lists
    become one-dimensional. Attributes that are None are left out. Tensors of a type that the operator does not take, or
    that onnxruntime has no kernel for, are cast to a wider type, and the results are cast back. Operators with several
    outputs: ``graph.node("TopK", data, 5, outputs=2)``. Raise ``NotExportable`` for what the opset lacks.

    Sizes are tensors of i64 with shape [1]. Those computed from known ones are constants, so that an exporter needs no
    other formula for sizes that only a run shows.
    """

    def __init__(
        self, opset: int, *, needs_kernels: bool = False, contrib: bool = False, rounds_products: bool = False
    ) -> None:
        """Begin a graph; with ``needs_kernels``, nodes for which onnxruntime has no kernel are refused, and with
        ``contrib``, operators are used that only onnxruntime has. With ``rounds_products``, these may round what they
        multiply with codes to 8 bits."""
        self.opset = opset
        self.needs_kernels: bool = needs_kernels
        self.contrib: bool = contrib
        self.rounds_products: bool = rounds_products
        self.nodes: list[ir.Node] = []
        self.initializers: list[ir.Value] = []
        self._constants: dict[object, Tensor] = {}
        self._symbols: dict[int, str] = {}
        """The names of unknown sizes by their symbols."""
        self._fixed: set[ir.Value] = set()
        """Tensors that are computed of constants only."""

    def child(self) -> Graph:
        """Return the graph of a body, which can read the tensors of this graph; see ``body``."""
        child = copy(self)
        child.nodes = []
        return child

    def body(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str) -> ir.Graph:
        """Return this graph as the attribute of an operator with bodies; outputs that no node of it makes, or that are
        listed twice, are copied."""
        computed = {value for node in self.nodes for value in node.outputs}
        results = []
        for tensor in outputs:
            results.append(tensor if tensor.value in computed else self.Identity(tensor))
            computed.discard(tensor.value)
        made = [value for node in self.nodes for value in node.outputs]
        unnamed: list[ir.Node | ir.Value] = [node for node in self.nodes if node.name is None]
        unnamed += [value for value in (*made, *(x.value for x in inputs)) if value.name is None]
        graph = ir.Graph([x.value for x in inputs], [x.value for x in results], nodes=self.nodes, name=name)
        for item in unnamed:  # the new graph gave names that are unique in this graph only
            item.name = None
        return graph

    # ----- nodes

    def __getattr__(self, op_type: str) -> Callable[..., Tensor]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return partial(self._single, op_type)

    def _single(
        self, op_type: str, *inputs: Operand, element_type: t.ElementType | None = None, **attributes: Any
    ) -> Tensor:
        known = _computed(op_type, inputs, attributes) if op_type in _FUNCTIONS else None
        if known is not None:
            return self.constant(known)
        return self.node(op_type, *inputs, element_type=element_type, **attributes)[0]

    def node(
        self,
        op_type: str,
        *inputs: Operand,
        outputs: int = 1,
        element_type: t.ElementType | Sequence[t.ElementType] | None = None,
        **attributes: Any,
    ) -> list[Tensor]:
        """Add a node and return its outputs.

        ``element_type`` is the type of the outputs (or a list of them) where the schema does not derive it from the
        inputs.
        """
        schema = self._schema(op_type)
        for name in attributes:
            if name not in schema.attributes:
                self.fail("{} of opset {} has no attribute '{}'", op_type, self.opset, name)
        if len(inputs) > schema.max_input:
            self.fail("{} of opset {} takes {} inputs, not {}", op_type, self.opset, schema.max_input, len(inputs))
        formal = list(_formal(schema, schema.inputs, len(inputs)))
        types = self._bound_types(schema, formal, inputs)
        is_fixed = bool(inputs) and all(map(self.is_fixed, inputs))
        computed = {variable: self._computed_type(schema, variable, kind, is_fixed) for variable, kind in types.items()}
        values = [self._operand(x, variable, types, computed) for x, variable in zip(inputs, formal, strict=True)]
        while values and values[-1] is None:
            values.pop()
        present = {name: value for name, value in attributes.items() if value is not None}
        node = ir.node(op_type, values, present, num_outputs=outputs)
        self.nodes.append(node)
        if is_fixed:
            self._fixed.update(node.outputs)
        tensors = []
        for index, variable in enumerate(_formal(schema, schema.outputs, outputs)):
            requested = element_type[index] if isinstance(element_type, Sequence) else element_type
            actual = requested or computed.get(variable) or spelled(variable)
            assert actual is not None, f"{op_type} needs element_type="
            wanted = requested or types.get(variable) or actual
            tensor = self._tensor(node.outputs[index], actual)
            tensors.append(self.cast(tensor, wanted))
        return tensors

    def contributed(self, op_type: str, *inputs: Operand, **attributes: Any) -> Tensor:
        """Add a node of an operator that onnxruntime contributes, and return its output, f32.

        The inputs are tensors and arrays, in types that the operator takes.
        """
        values = [self.constant(x) if isinstance(x, np.ndarray) else x for x in inputs]
        assert all(value is None or isinstance(value, Tensor) for value in values), op_type
        listed = [value.value if isinstance(value, Tensor) else None for value in values]
        self.nodes.append(ir.node(op_type, listed, attributes, domain=CONTRIB))
        return self._tensor(self.nodes[-1].outputs[0], t.f32)

    def input(self, element_type: t.ElementType, shape: PartialShape = UNKNOWN, name: str | None = None) -> Tensor:
        """Return a new input of a graph or a body; the caller lists it as an input."""
        held = self.held(element_type)
        value = ir.Value(name=name, type=ir.TensorType(data_type(held)), shape=self.onnx_shape(shape))
        return Tensor(value, held, shape)

    def constant(self, array: Any, element_type: t.ElementType | None = None) -> Tensor:
        """Return a constant with the contents of an array. ``element_type`` is needed where NumPy has no such type."""
        data = np.asarray(array)
        element_type = element_type or t.ElementType.from_dtype(data.dtype)
        held = self.held(element_type)
        key = (held, data.shape, data.tobytes()) if data.size <= _SHARED and held != t.string else None
        if key is not None and key in self._constants:
            return self._constants[key]
        value = ir.Value(type=ir.TensorType(data_type(held)), shape=ir.Shape(data.shape))
        value.const_value = _stored(data, held)
        self.initializers.append(value)
        tensor = Tensor(value, held, static_shape(data.shape), data)
        if key is not None:
            self._constants[key] = tensor
        return tensor

    def deferred(self, make: Callable[[], Array], element_type: t.ElementType, shape: tuple[int, ...]) -> Tensor:
        """Return a constant whose array is made each time that it is asked for, and not kept."""
        held = self.held(element_type)
        kind = data_type(held)
        value = ir.Value(type=ir.TensorType(kind), shape=ir.Shape(shape))
        value.const_value = ir.LazyTensor(lambda: _stored(make(), held), kind, ir.Shape(shape))
        self.initializers.append(value)
        return Tensor(value, held, static_shape(shape))

    def number(self, value: Any, element_type: t.ElementType) -> Tensor:
        """Return a constant of an element type without dimensions."""
        return self.constant(np.asarray(value, element_type.to_dtype()), element_type)

    def cast(self, tensor: Tensor, element_type: t.ElementType) -> Tensor:
        """Return a tensor converted as ONNX's Cast does it; the tensor itself if it has the type."""
        held = self.held(element_type)
        if tensor.element_type == held:
            return tensor
        # This refuses a type that the opset lacks, which a tensor of a refused layer may have.
        self.held(tensor.element_type)
        if tensor.constant is not None and tensor.constant.size <= _SHARED and {held, tensor.element_type} <= _PLAIN:
            with np.errstate(all="ignore"):
                return self.constant(tensor.constant.astype(held.to_dtype()), held)
        converted = self._single("Cast", tensor, element_type=held, to=data_type(held), **_CASTS.get(held, {}))
        return self.shaped(converted, tensor.shape)

    def shaped(self, tensor: Tensor, shape: PartialShape | Sequence[Any]) -> Tensor:
        """Return the tensor with a shape that the exporter knows."""
        known = shape if isinstance(shape, PartialShape) else PartialShape(shape)
        return Tensor(tensor.value, tensor.element_type, known, tensor.constant)

    def onnx_shape(self, shape: PartialShape) -> ir.Shape | None:
        """Return a shape as ONNX writes it. Equal symbols become equal names; other unknown sizes have none."""
        if shape.rank is None:
            return None
        for dim in shape:
            if dim.symbol:
                self._symbols.setdefault(dim.symbol, f"d{len(self._symbols)}")
        return ir.Shape([dim.lower if dim.is_static else self._symbols.get(dim.symbol) for dim in shape])

    def name_equally(self, symbols: Iterable[set[int]]) -> None:
        """Give the symbols of each set one name: their sizes are equal, although inference does not know it."""
        for equal in symbols:
            name = f"d{len(self._symbols)}"
            self._symbols.update(dict.fromkeys(equal, name))

    def held(self, element_type: t.ElementType) -> t.ElementType:
        """Return the type that holds the values of an element type in this opset."""
        held = held_as(element_type, self.opset)
        if held is None:
            first = SINCE.get(element_type)
            need = f"needs opset {first}" if first else "is unknown to ONNX"
            self.fail("element type {} {}", element_type, need)
        return held

    # ----- what exporters check

    def has(self, op_type: str, opset: int | None = None) -> bool:
        """Return whether the opset has an operator; with ``opset``, whether it has the version of that opset."""
        schema = _schema(op_type, self.opset)
        return schema is not None and (opset is None or self.opset >= opset)

    def require(self, condition: object, message: str, *values: object) -> None:
        """Raise NotExportable unless the condition holds. ``values`` fill the ``{}`` of the message."""
        if not condition:
            self.fail(message, *values)

    def fail(self, message: str, *values: object) -> NoReturn:
        """Raise NotExportable."""
        raise NotExportable(filled(message, values) if values else message)

    def is_fixed(self, x: Operand) -> bool:
        """Return whether an input of a node is a constant, or computed of constants only."""
        return not isinstance(x, Tensor) or x.value.const_value is not None or x.value in self._fixed

    def rank(self, tensor: Tensor, name: str = "data") -> int:
        """Return the rank of a tensor; raise NotExportable if it is unknown."""
        if tensor.rank is None:
            self.fail("the rank of {} is unknown", name)
        return tensor.rank

    def known(self, tensor: Tensor, name: str) -> Array:
        """Return the array of a constant; raise NotExportable if it is not known before the run."""
        if tensor.constant is None:
            self.fail("{} must be constant", name)
        return tensor.constant

    def sizes(self, tensor: Tensor, name: str = "data") -> tuple[int, ...]:
        """Return the sizes of a tensor of static shape; raise NotExportable for other shapes."""
        if not tensor.shape.is_static:
            self.fail("{} has the dynamic shape {}", name, tensor.shape)
        return tensor.shape.to_tuple()

    # ----- sizes

    def size_of(self, tensor: Tensor, axis: int) -> Tensor:
        """Return the size of a dimension; negative axes count from the end."""
        return self.shape_of(tensor, axis, axis + 1 or None)

    def scalar_size_of(self, tensor: Tensor, axis: int) -> Tensor:
        """Return the size of a dimension as a tensor without dimensions."""
        return self.as_scalar(self.size_of(tensor, axis))

    def sizes_of(self, tensor: Tensor, name: str = "data") -> list[Tensor]:
        """Return all sizes of a tensor; raise NotExportable if its rank is unknown."""
        return [self.size_of(tensor, axis) for axis in range(self.rank(tensor, name))]

    def shape_of(self, tensor: Tensor, start: int = 0, end: int | None = None) -> Tensor:
        """Return the shape of a tensor, or the sizes of some axes; a constant if they are static."""
        dims = tensor.shape.slice(start, end)
        if dims.is_static:
            return self.constant(np.array(dims.to_tuple(), np.int64))
        return self.Shape(tensor, start=start or None, end=end)

    def items(self, tensor: Tensor, name: str, count: int | None = None) -> list[Tensor]:
        """Return the elements of a list of integers, whose length must be known, as lists of one."""
        if tensor.constant is not None:
            count = tensor.constant.size
        elif count is None:
            self.require(tensor.shape.is_static, "{} has an unknown number of elements", name)
            count = tensor.shape.size().length
        flat = self.as_list(tensor)
        return [flat] if count == 1 else [self.Gather(flat, [i], axis=0) for i in range(count)]

    def as_list(self, tensor: Tensor) -> Tensor:
        """Return integers as a one-dimensional tensor of i64."""
        whole = self.cast(tensor, t.i64)
        if tensor.constant is not None:
            return self.constant(tensor.constant.ravel().astype(np.int64))
        return whole if tensor.rank == 1 else self.shaped(self.Reshape(whole, [-1]), [tensor.shape.size()])

    def as_scalar(self, tensor: Tensor) -> Tensor:
        """Return the one element of a tensor as a tensor without dimensions."""
        if tensor.rank == 0:
            return tensor
        count = tensor.shape.size()
        self.require(not count.is_static or count.length == 1, "one element is needed, got shape {}", tensor.shape)
        if tensor.constant is not None:
            return self.constant(tensor.constant.reshape(()), tensor.element_type)
        return self.shaped(self.Reshape(tensor, self.constant(np.zeros(0, np.int64))), PartialShape([]))

    def positions_below(self, count: Size) -> Tensor:
        """Return the numbers 0, 1, ... below ``count``, i64; a tensor has one element."""
        number = count.number if isinstance(count, Tensor) else count
        if number is not None:
            return self.constant(np.arange(int(number)))
        assert isinstance(count, Tensor)
        return self.shaped(self.Range(0, self.as_scalar(count), 1), [UNKNOWN_SIZE])

    def axes_from_front(self, axes: Tensor, rank: Size) -> Tensor:
        """Return axes that the run chooses as a list counted from the front; one that the data lacks fails the run."""
        if isinstance(rank, int):
            rank = max(rank, 1)  # a scalar has the axes 0 and -1
        return self.Gather(self.positions_below(rank), self.as_list(axes), axis=0)

    def product(self, sizes: Sequence[Size]) -> Tensor:
        """Return the product of some sizes."""
        factors = sorted((self.vector([size]) for size in sizes), key=lambda size: size.constant is None)
        return reduce(self.Mul, factors or [self.constant([1])])

    def vector(self, sizes: Sequence[Size]) -> Tensor:
        """Return sizes as a one-dimensional tensor, a constant if all are known."""
        lists = [size if isinstance(size, Tensor) else self.constant([size]) for size in sizes]
        return lists[0] if len(lists) == 1 else self.Concat(*lists, axis=0)

    def of_rank(self, tensor: Tensor, rank: int) -> Tensor:
        """Return a tensor whose rank is known because the operation requires it."""
        return tensor if tensor.rank is not None else self.shaped(tensor, [UNKNOWN_SIZE] * rank)

    def part(self, data: Tensor, start: Size, stop: Size, axis: int = 0) -> Tensor:
        """Return the elements along an axis from ``start`` up to ``stop``, which is excluded."""
        return self.Slice(data, self.vector([start]), self.vector([stop]), [axis])

    def reshaped(self, tensor: Tensor, sizes: Sequence[Size]) -> Tensor:
        """Return a tensor reshaped to sizes whose product is its number of elements; an initializer stays one."""
        known = _known(sizes)
        is_static = not any(isinstance(size, Tensor) and size.constant is None for size in sizes)
        if is_static and tensor.constant is not None and tensor.value.const_value is not None:
            return self.constant(tensor.constant.reshape(known), tensor.element_type)
        is_static = is_static or (known.count(-1) == 1 and 0 not in known)
        target = self.constant(np.array(known, np.int64)) if is_static else self.vector(sizes)
        result = self.Reshape(tensor, target, allowzero=1 if 0 in known or not is_static else None)
        return self.shaped(result, known)

    def in_shape(self, tensor: Tensor, shape: Tensor) -> Tensor:
        """Return a tensor in a shape in which 0 is a size; Reshape alone copies a size there."""
        return self.Reshape(tensor, shape, allowzero=1)

    def expanded(self, tensor: Tensor, sizes: Sequence[Size]) -> Tensor:
        """Return a tensor broadcast to some sizes; it must not be larger than these."""
        return self.shaped(self.Expand(tensor, self.vector(sizes)), _known(sizes))

    # ----- groups of nodes

    def saturated(self, data: Tensor, element_type: t.ElementType) -> Tensor:
        """Return numbers of a wider type clipped to the range of an integer type, and converted to it."""
        low, high = integer_range(element_type.to_dtype())
        if element_type.bits < 64 or not data.element_type.is_real:
            return self.cast(self.Clip(data, low, high) if element_type.bits < 64 else data, element_type)
        inside = self.cast(self.Max(data, low), element_type)
        # The greatest integer of 64 bits is no real number.
        return self.Where(self.GreaterOrEqual(data, high + 1), self.number(high, element_type), inside)

    def wrapped(self, data: Tensor, element_type: t.ElementType) -> Tensor:
        """Return the low bits of integers, as many as their type has, where a wider type holds its elements."""
        if data.element_type.bits <= element_type.bits:
            return data
        if element_type == t.i4:
            return self.Sub(self.Mod(self.Add(data, 8), 16), 8)
        if element_type not in NARROW:
            return data
        return self.Mod(data, 1 << element_type.bits)

    def truncated(self, data: Tensor) -> Tensor:
        """Return real numbers rounded towards 0."""
        return self.Mul(self.Sign(data), self.Floor(self.Abs(data)))

    def rounded_away(self, data: Tensor) -> Tensor:
        """Return real numbers rounded to the nearest integer, and halves away from 0."""
        # onnxruntime computes f16 in f32, so the predecessor of 0.5 must be the one of the type that is computed in.
        wide = self.cast(data, data.real_type)
        half = np.nextafter(wide.element_type.to_dtype().type(0.5), 0)  # 0.5 would round its predecessor up to 1
        return self.cast(self.Mul(self.Sign(wide), self.Floor(self.Add(self.Abs(wide), half))), data.element_type)

    def aligned(self, op: ElementwiseBase, a: Tensor, b: Tensor) -> Tensor:
        """Return ``b`` in a shape that ONNX broadcasts to the shape of ``a``, by the mode of the operation."""
        if op.auto_broadcast != "pdpd" or op.axis == -1:
            return b
        rank, count = self.rank(a, "a"), self.rank(b, "b")
        extra = rank - op.axis - count
        if extra >= 0:
            return self.with_trailing(b, extra)
        beyond = list(range(max(count + extra, 0), count))  # sizes of 1 beyond the rank of a
        return self.Squeeze(b, beyond) if beyond else b

    def with_trailing(self, data: Tensor, count: int) -> Tensor:
        """Return the tensor with a number of further dimensions of size 1 at its end."""
        if count == 0:
            return data
        if data.constant is not None:
            return self.constant(data.constant.reshape(*data.constant.shape, *[1] * count), data.element_type)
        rank = self.rank(data)
        shaped = self.Unsqueeze(data, list(range(rank, rank + count)))
        return self.shaped(shaped, data.shape + PartialShape([1] * count))

    def per_channel(self, parameter: Tensor, data: Tensor) -> Tensor:
        """Return one number per channel, shaped to be broadcast to data, whose second dimension is the channels."""
        return self.with_trailing(parameter, self.rank(data) - 2)

    def swapped(self, data: Tensor) -> Tensor:
        """Return matrices transposed: the last two dimensions are swapped."""
        rank = self.rank(data)
        order = [*range(rank - 2), rank - 1, rank - 2]
        shape = PartialShape([data.shape[axis] for axis in order])
        return self.shaped(self.Transpose(data, perm=order), shape)

    def split_evenly(self, data: Tensor, count: int, axis: int) -> list[Tensor]:
        """Return equal parts of data along an axis."""
        options: dict[str, Any] = {"num_outputs": count} if self.has("Split", 18) else {}
        return self.node("Split", data, outputs=count, axis=axis, **options)

    def reduced(self, op_type: str, data: Tensor, axes: Sequence[int] | Tensor, *, keep: bool = True) -> Tensor:
        """Return a reduction along axes, which are an input in newer opsets, and an attribute before."""
        newer = 13 if op_type == "ReduceSum" else 18
        if self.opset >= newer:
            listed: Tensor | list[int] = axes if isinstance(axes, Tensor) else list(axes)
            return self.node(op_type, data, listed, keepdims=int(keep), noop_with_empty_axes=1)[0]
        if isinstance(axes, Tensor):
            self.fail("{} with computed axes needs opset {} of ONNX", op_type, newer)
        return self.node(op_type, data, axes=list(axes), keepdims=int(keep))[0] if axes else data

    # ----- inside

    def _schema(self, op_type: str) -> Any:
        schema = _schema(op_type, self.opset)
        if schema is None:
            later = range(self.opset, onnx.defs.onnx_opset_version() + 1)
            first = next((opset for opset in later if _schema(op_type, opset)), None)
            assert first is not None, f"ONNX has no operator {op_type}"
            self.fail("{} needs opset {} of ONNX, but the model is exported to opset {}", op_type, first, self.opset)
        return schema

    def _bound_types(self, schema: Any, formal: Sequence[str], inputs: Sequence[Operand]) -> dict[str, t.ElementType]:
        """Return the element type of each type variable, by the first tensor or array that has it."""
        types: dict[str, t.ElementType] = {}
        for x, variable in zip(inputs, formal, strict=True):
            element_type = _own_type(x)
            if element_type is None:
                continue
            bound = types.setdefault(variable, element_type)
            if bound != element_type and not spelled(variable):
                may_differ = {parameter.type_str for parameter in schema.inputs if not parameter.is_homogeneous}
                assert variable in may_differ, f"{schema.name} mixes {bound} and {element_type}"
        return types

    def _computed_type(self, schema: Any, variable: str, element_type: t.ElementType, is_fixed: bool) -> t.ElementType:
        """Return the type in which an operator computes the tensors of a type variable."""
        allowed = _allowed(schema, variable)
        kernels = kernel_types(schema.name, schema.since_version, variable)
        result: t.ElementType | None
        if schema.name in _BOUND_TYPES:
            result = element_type if spelling(element_type) in allowed else None
        else:
            result = computed_as(element_type, allowed, kernels)
            if is_fixed and result == t.f16 and kernels is not None and spelling(t.f16) not in kernels:
                result = t.f32  # onnxruntime casts f16 itself, but after it has computed what depends on constants only
        if result and self.needs_kernels and kernels is not None and not has_kernel(result, kernels):
            self.fail("onnxruntime has no kernel of {} for element type {}", schema.name, element_type)
        if result is None and spelled(variable) == t.i64 and element_type.is_integral:
            result = t.i64
        if result is None:
            self.fail("{} of opset {} does not take element type {}", schema.name, self.opset, element_type)
        return result

    def _operand(
        self, x: Operand, variable: str, types: Mapping[str, t.ElementType], computed: Mapping[str, t.ElementType]
    ) -> ir.Value | None:
        if x is None:
            return None
        if isinstance(x, Tensor):
            target = x.element_type if types[variable] != x.element_type else computed[variable]
            return self.cast(x, target).value
        if isinstance(x, (np.ndarray, np.generic)):
            return self.cast(self.constant(x), computed[variable]).value
        wanted = computed.get(variable) or spelled(variable)
        if wanted is None:
            wanted = t.f32 if np.asarray(x).dtype.kind == "f" else t.i64
        try:
            return self.constant(np.asarray(x, wanted.to_dtype()), wanted).value
        except OverflowError:
            self.fail("{} is outside of the range of {}", x, wanted)

    def _tensor(self, value: ir.Value, element_type: t.ElementType) -> Tensor:
        value.type = ir.TensorType(data_type(element_type))
        return Tensor(value, element_type)


_PLAIN = frozenset((t.boolean, t.f16, t.f32, t.f64, t.i8, t.i16, t.i32, t.i64, t.u8, t.u16, t.u32, t.u64))
"""The types that NumPy converts as ONNX does."""


_CASTS: dict[t.ElementType, dict[str, object]] = {
    t.f8e4m3: {"saturate": 0},
    t.f8e5m2: {"saturate": 0},
    t.f8e8m0: {"saturate": 1, "round_mode": "nearest"},
}
"""The attributes of Cast as OpenVINO converts: numbers that are too large become infinite, or NaN in f8e4m3."""


def _divided(a: Array, b: Array) -> Array:
    """Return quotients rounded towards 0, as ONNX divides integers."""
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)))


def _reshaped(data: Array, shape: Array, allowzero: int | None = None) -> Array:
    return data.reshape([data.shape[i] if size == 0 and not allowzero else size for i, size in enumerate(shape)])


def _reduced(function: Callable[..., Any], data: Array, axes: Array | None = None, keepdims: int = 1) -> Array:
    return np.asarray(function(data, axis=None if axes is None else tuple(axes), keepdims=bool(keepdims)))


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _divided,
    "Mod": operator.mod,
    "Neg": operator.neg,
    "Max": lambda *arrays: reduce(np.maximum, arrays),
    "Min": lambda *arrays: reduce(np.minimum, arrays),
    "Less": operator.lt,
    "Equal": operator.eq,
    "Or": operator.or_,
    "Where": np.where,
    "Concat": lambda *arrays, axis: np.concatenate(arrays, axis),
    "Gather": lambda data, indices, axis=0: np.take(data, indices, axis),
    "Reshape": _reshaped,
    "ReduceSum": partial(_reduced, np.sum),
    "ReduceProd": partial(_reduced, np.prod),
}
"""The functions of operators that compute sizes and positions."""


def _computed(op_type: str, inputs: Sequence[Operand], attributes: Mapping[str, Any]) -> Array | None:
    """Return the integers or booleans that an operator computes of few constants, None for all others."""
    values = [x.constant if isinstance(x, Tensor) else x for x in inputs]
    if any(x is None or isinstance(x, float) for x in values):
        return None
    arrays = [np.asarray(x) for x in values]
    if any(a.dtype not in (np.int64, bool) or a.size > _COMPUTED for a in arrays):
        return None
    try:
        with np.errstate(over="ignore", divide="raise"):
            return np.asarray(_FUNCTIONS[op_type](*arrays, **attributes))
    except (FloatingPointError, IndexError, ValueError):
        return None  # the run refuses them


def _known(sizes: Sequence[Size]) -> list[int]:
    """Return the numbers of sizes, -1 for those that only a run shows."""
    numbers = [size.number if isinstance(size, Tensor) else size for size in sizes]
    return [-1 if number is None else int(number) for number in numbers]


def _stored(data: Array, element_type: t.ElementType) -> ir.TensorProtocol:
    if element_type == t.string:
        texts = [text.encode() if isinstance(text, str) else bytes(text) for text in data.ravel().tolist()]
        return ir.StringTensor(texts, shape=ir.Shape(data.shape))
    return ir.Tensor(data.astype(element_type.to_dtype(), copy=False), dtype=data_type(element_type))


def _own_type(x: Operand) -> t.ElementType | None:
    if isinstance(x, Tensor):
        return x.element_type
    return t.ElementType.from_dtype(x.dtype) if isinstance(x, (np.ndarray, np.generic)) else None


def _formal(schema: Any, parameters: Iterable[Any], count: int) -> Iterator[str]:
    """Yield the type variable of each of ``count`` inputs or outputs, or the type of a variable that has only one.

    The last parameter may stand for many.
    """
    listed = list(parameters)
    for index in range(count):
        variable = listed[min(index, len(listed) - 1)].type_str
        allowed = _allowed(schema, variable)
        yield next(iter(allowed)) if len(allowed) == 1 else variable


@cache
def _schema(op_type: str, opset: int) -> Any:
    """Return the schema of an operator in an opset, None if the opset has no such operator."""
    try:
        schema = onnx.defs.get_schema(op_type, opset)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema


@cache
def _allowed(schema: Any, variable: str) -> frozenset[str]:
    for constraint in schema.type_constraints:
        if constraint.type_param_str == variable:
            return frozenset(constraint.allowed_type_strs)
    return frozenset([variable])
