"""Traits of an operation: properties for code outside ``ops``, besides inference and its kernel.

Each trait has a default that claims nothing, so an operation declares only what is special about it;
docs/operation-classes.md lists all traits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import Outputs, TensorType
from ovir.ops.base.domains import Domain, DomainRule
from ovir.ops.base.layouts import declarations

ALL: tuple[int, ...] = (-1,)
"""Stands for every input in traits that list inputs by position."""


InnerStep = Callable[[str, tuple[int, ...], Array], Array]
"""Gets the name of an intermediate result, the leading indices of a block of it, and the block."""


class Traits:
    """Base of Operator: the traits of an operation with their defaults."""

    takes: ClassVar[str | tuple[str, ...]] = ""
    """The names, element types and layouts of the inputs, for an operation whose inputs have fixed ranks; several texts
    if the number of inputs decides. See ``ovir.ops.base.layouts``."""
    gives: ClassVar[str] = ""
    """The names, element types and layouts of the outputs, unless the operation overrides ``infer``."""

    recipe: ClassVar[str] = ""
    """What random models of the operation have: element types, shapes and values of inputs, sizes, and attributes. An
    operation that declares what it takes needs only what is special about its values."""

    moves_elements: ClassVar[tuple[int, ...]] = ()
    """The inputs whose elements are only moved, not changed: bounds and symbols follow ``run``."""
    forwards_values: ClassVar[tuple[int, ...]] = ()
    """Further inputs whose values become values of the output, in another type or only in part. Requirements on the
    output's values apply to them too."""
    same_types: ClassVar[tuple[int, ...]] = ()
    """The inputs that have one element type, so that a number takes the type of the others."""
    domains: ClassVar[Mapping[str, DomainRule]] = MappingProxyType({})
    """The values that inputs may take, by the input's name; see ``ovir.ops.base.domains``."""
    arguments: ClassVar[str] = ""
    """The arguments of OpenVINO's function that creates layers, where they are not the inputs and attributes in their
    usual order; see ``ovir.building.arguments``."""
    fillers: ClassVar[tuple[tuple[str, float, str], ...]] = ()
    """The constants that take the place of an optional input when a later one is given: the name of the input, the
    value, and the element type or the input that has the same one."""
    converts: ClassVar[bool] = False
    """Whether the output is exactly input 0 in another element type."""
    rearranges: ClassVar[bool] = False
    """Whether the output has the elements of input 0 in their order, in another shape."""
    scales: ClassVar[bool] = False
    """Whether input 1 is a factor of input 0."""
    offsets: ClassVar[bool] = False
    """Whether input 1 is subtracted from input 0."""
    quantizes: ClassVar[bool] = False
    """Whether the output is input 0 rounded to the few values of a smaller type."""
    multiplied: ClassVar[tuple[str, ...]] = ()
    """The inputs, by name, whose elements are multiplied with those of another input and summed up: what may be the
    weights of a product or convolution."""
    exact_inputs: ClassVar[tuple[int, ...]] = ()
    """The inputs that give sizes or positions: tensors that they are computed from must not be rounded to f16."""
    steps: ClassVar[bool] = False
    """Whether real results jump where an input changes a little, as those of Floor do. Integers and booleans that are
    computed from real numbers always do."""
    decompresses: ClassVar[tuple[int, ...]] = ()
    """The inputs through which compressed weights may come. When the plan decompresses such weights, it computes the
    layer in f32, by rows if ``rows_from`` allows it."""

    bounded: ClassVar[bool] = True
    """Whether the kernel takes memory of the order of its inputs and outputs, and about the time that ``kernel_time``
    estimates. A kernel for which this is not true neither runs in inference nor is folded."""

    inplace: ClassVar[tuple[int, ...]] = ()
    """The inputs that a fast form may write the output over."""
    copies: ClassVar[float] = 0
    """The temporary arrays of the kernel or fast form at one time, each of the elements of the largest input or output,
    if they are more than about five."""

    within: ClassVar[tuple[float, float]] = (-inf, inf)
    """The least and the greatest number that the outputs can hold, NaN aside. Integers computed from integers of the
    same type may lie outside, as they wrap around."""

    leftovers: ClassVar[frozenset[str]] = frozenset()
    """Attributes without effect that the Model Optimizer wrote into old files."""
    is_filled: ClassVar[bool] = False
    """Whether OpenVINO 2021.4 fills the outputs with -1 up to the upper bounds of sizes that only a run shows."""

    unmatched: ClassVar[str] = ""
    """What older operations do not do, such as "pool rotated regions": the reason for having no decomposition. Without
    an exporter, ONNX does not do it either."""

    infer: Callable[..., Outputs]
    run: Callable[..., Array | tuple[Array, ...]]

    # ----- values of inputs

    @classmethod
    def named(cls, inputs: Sequence[TensorType]) -> dict[str, TensorType]:
        """Return the inputs by name; inputs that only ``*inputs`` of ``infer`` accepts have no name."""
        return dict(zip(input_names(cls), inputs, strict=False))

    @classmethod
    def shapes_of(cls, inputs: Sequence[TensorType]) -> dict[str, PartialShape]:
        """Return the shapes of the inputs by name."""
        return {name: tensor.shape for name, tensor in cls.named(inputs).items()}

    def domain_of(self, position: int, inputs: Sequence[TensorType]) -> Domain | None:
        """Return the domain of the values of an input, or None if they are not restricted."""
        names = input_names(type(self))
        rule = self.domains.get(names[position]) if position < len(names) else None
        return rule(self, self.named(inputs)) if rule is not None else None

    def domain_before(self, position: int, inputs: Sequence[TensorType], wanted: Domain) -> Domain | None:
        """Return the domain of an input for which the output lies in ``wanted``, or None if it is unknown."""
        passed = (*self.moves_elements, *self.forwards_values)
        return wanted if position in passed or passed == ALL else None

    def clips(self, inputs: Sequence[Array], steps: float) -> tuple[tuple[Array, Array], tuple[Array, Array]] | None:
        """Return which elements of input 0 are below the range of the operation by more than so many steps between its
        results, and what these become, and the same of elements above it; None for operations without a range."""
        return None

    def least_sizes(self, inputs: Sequence[TensorType]) -> Mapping[int, int]:
        """Return, for axes of input 0, the size that a window, stride or resize needs to have any effect there."""
        return {}

    # ----- what the layer amounts to

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension | None:
        """Return the number of multiply-accumulates of the layer, or None for an operation without a count.

        ``output`` is the shape of the first output.
        """
        return None

    def kernel_time(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Return an estimate of the kernel's time in nanoseconds, infinite if there is no bound on it.

        Inference runs the kernel on constants (``can_fold``), and a plan folds the layer (``FoldingBudget``), only if
        this is short. Kernels that inference runs on bounds of small known values are limited by ``can_evaluate``
        instead.
        """
        return self.work(inputs, outputs) if self.bounded else inf

    def reads(self, inputs: Sequence[TensorType], output: PartialShape) -> float:
        """Return how many elements each element of the first output is combined of, such as the taps of a window and
        the samples of a bin, as far as ``multiply_accumulates`` does not count them; infinite if there is no bound."""
        return 0

    def python_steps(self, inputs: Sequence[TensorType]) -> Dimension:
        """Return how many steps in Python the kernel takes one after another, such as the times of a sequence."""
        return Dimension(0, 0)

    def work(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Return about how many multiply-adds take as long as the kernel, infinite if a size has no bound.

        The default counts the multiply-accumulates, ``reads``, 4 for each element of the inputs and outputs, and 10,000
        for each of ``python_steps``; operations that take longer override it.
        """
        sizes = [tensor.shape.size().upper for tensor in (*inputs, *outputs)]
        steps = self.python_steps(inputs).upper
        if None in sizes or steps is None:
            return inf
        products, reads = None, 0.0
        if outputs:
            reads = self.reads(inputs, outputs[0].shape) * outputs[0].shape.least_size
            products = self.multiply_accumulates(inputs, outputs[0].shape)
        if products is not None and products.upper is None:
            return inf
        multiplied = (products.upper or 0) if products is not None else 0
        return multiplied + reads + 4.0 * sum(size or 0 for size in sizes) + 1e4 * steps

    def temporary_bytes(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Return about how many bytes the kernel takes at one time besides its inputs and outputs.

        The default is ``copies`` of the largest tensor, in a type of at least 4 bytes. If kernels compute in another
        type than that of the tensors, it is 2 copies more, and 6 for functions of elements that have no fast form in
        this type. Operations that take more override it.
        """
        bits = [tensor.element_type.bits for tensor in (*inputs, *outputs)]
        sizes = [t.shape.least_size * max(t.element_type.bits // 8, 4) for t in (*inputs, *outputs)]
        largest = max(sizes, default=0)
        copies = self.copies
        if not self.moves_elements:
            copies += 2 if any(0 < width < 32 for width in bits) else 6 * (bool(self.inplace) and 64 in bits)
        return copies * largest

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        """Return the reason why the output certainly equals input 0, such as ``it converts f32 to f32``; else None."""
        return None

    def is_same_for(self, before: TensorType, inputs: Sequence[TensorType], output: TensorType) -> bool:
        """Return whether the output is certainly the same if input 0 is a tensor of the type ``before`` that a layer of
        the same kind has converted, or arranged in another shape, and inference then knows as much of it."""
        return False

    def permutation(self, inputs: Sequence[TensorType]) -> list[int] | None:
        """Return the axes of input 0 in the order of the output; None unless the operation only permutes them in a
        known order."""
        return None

    # ----- quantization

    def scale_axes(self, position: int, rank: int) -> tuple[int, ...] | None:
        """Return the axes of an input along which its numbers have scales of their own if they are constant and
        quantized: those that become channels of the output. None means that quantizers leave the input as it is."""
        return None

    # ----- steps inside of the layer

    has_steps: ClassVar[bool] = False
    """Whether devices compute the layer in several steps, and ``run_in_steps`` does, too."""

    run_in_steps: Callable[..., Array]
    """The function from an ``InnerStep`` and the inputs to the output, computed in the steps that devices take.

    It calls the ``InnerStep`` with each intermediate result, in blocks, and goes on with what that returns.
    """

    # ----- rows: slices along the first axis

    def rows_from(self, inputs: Sequence[TensorType], output: PartialShape) -> tuple[int, ...] | None:
        """Return for each input how many of its rows make one row of the output, or 0 if each row needs all of them.

        None means that a row of the output cannot be computed without the others. All shapes are static.
        """
        return None

    def run_rows(self, shape: tuple[int, ...], *inputs: Array) -> Array:
        """Return rows of the output, of the given shape, from the rows of the inputs that ``rows_from`` requires."""
        result = self.run(*inputs)
        assert isinstance(result, np.ndarray)
        return result


class Signature(NamedTuple):
    """The inputs of an operation, as the parameters of ``infer`` or ``run`` declare them."""

    names: tuple[str, ...]
    """The names of the inputs; those that only ``*inputs`` accepts have none."""
    required: int
    variadic: bool
    """Whether any number of inputs may follow the named ones."""
    keywords: frozenset[str]
    """The parameters besides inputs, such as ``bodies``."""


def signature(function: Callable[..., Any]) -> Signature:
    """Return the signature of a bound method or a function without self."""
    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return Signature(
        tuple(p.name for p in named),
        sum(p.default is p.empty for p in named),
        any(p.kind is p.VAR_POSITIONAL for p in parameters),
        frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY),
    )


@cache
def method_signature(method: Callable[..., Any]) -> Signature:
    """Return the signature of a method, such as ``infer``, given as the function of a class, without self."""
    whole = signature(method)
    return whole._replace(names=whole.names[1:], required=whole.required - 1)


def input_signature(cls: type[Traits]) -> Signature:
    """Return the inputs of an operation, from what it ``takes`` or else from the signature of ``infer``."""
    return _taken(cls.takes) if cls.takes else method_signature(cls.infer)


@cache
def _taken(takes: str | tuple[str, ...]) -> Signature:
    known = declarations(takes)
    inputs = max((declared.inputs for declared in known), key=len)
    names = tuple(tensor.name for tensor in inputs if not tensor.is_repeated)
    return Signature(names, min(d.required for d in known), len(names) < len(inputs), frozenset())


def input_names(cls: type[Traits]) -> tuple[str, ...]:
    """Return the names of the inputs of an operation; those of which there may be any number have none."""
    return input_signature(cls).names
