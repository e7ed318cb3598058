"""What code outside ``ops`` may ask of an operation, beside inference and its kernel.

Each trait has a default that claims nothing, so that an operation declares only what is special in it. Nobody outside
``ops`` asks for an operation by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import Dimension
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.base.domains import Domain, DomainRule

if TYPE_CHECKING:
    from ovir.ops.base.rows import Rows

ALL: tuple[int, ...] = (-1,)
"""For traits that list inputs by position: every input."""


class Traits:
    """The traits of an operation, which subclasses override."""

    carries: ClassVar[tuple[int, ...]] = ()
    """The inputs whose elements come out unchanged, only moved: bounds and symbols follow ``run``."""
    passes: ClassVar[tuple[int, ...]] = ()
    """Further inputs whose values are values of the output, in another type or only some of them. What a reader of the
    output asks of its values is asked of theirs."""
    domains: ClassVar[Mapping[str, DomainRule]] = MappingProxyType({})
    """The values that inputs may take, by the name of the input; see ``ovir.ops.base.domains``."""
    converts: ClassVar[bool] = False
    """Whether the output is input 0 in another element type, and nothing else."""
    scales: ClassVar[bool] = False
    """Whether input 1 is a factor of input 0."""
    offsets: ClassVar[bool] = False
    """Whether input 1 is subtracted from input 0."""
    restores: ClassVar[tuple[int, ...]] = ()
    """The inputs through which compressed weights may come. The plan then computes the layer in f32 when it restores
    them, by rows where ``rows_from`` allows it."""

    infer: Callable[..., TensorType | tuple[TensorType, ...]]
    run: Callable[..., Array | tuple[Array, ...]]

    # ----- values of inputs

    @classmethod
    def named(cls, inputs: Sequence[TensorType]) -> dict[str, TensorType]:
        """Return the inputs by name; those that only ``*inputs`` of ``infer`` takes have none."""
        return dict(zip(input_names(cls), inputs, strict=False))

    def domain_of(self, position: int, inputs: Sequence[TensorType]) -> Domain | None:
        """Return the domain of the values of an input, None for no restriction."""
        names = input_names(type(self))
        rule = self.domains.get(names[position]) if position < len(names) else None
        return rule(self, self.named(inputs)) if rule is not None else None

    def domain_before(self, position: int, inputs: Sequence[TensorType], wanted: Domain) -> Domain | None:
        """Return what an input may hold so that the output lies in ``wanted``; None if there is no saying."""
        passed = (*self.carries, *self.passes)
        return wanted if position in passed or passed == ALL else None

    # ----- what the layer amounts to

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension | None:
        """Return how many multiply-accumulates the layer takes, from the shapes of its inputs, by name, and of its
        first output; None for an operation that is not counted."""
        return None

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        """Return why the output is certainly equal to input 0, as ``it converts f32 to f32``; None if it is not."""
        return None

    def permutation(self, inputs: Sequence[TensorType]) -> list[int] | None:
        """Return the axes of input 0 in the order of the output's, where the operation does nothing but permute them
        and the order is known."""
        return None

    # ----- rows: slices along the first axis

    def rows_from(self, inputs: Sequence[TensorType], output: PartialShape) -> tuple[int, ...] | None:
        """Return for each input how many of its rows make one row of the output, 0 where all are needed for each.

        None: a row of the output cannot be had without the rest. All shapes are static.
        """
        return None

    def run_rows(self, shape: tuple[int, ...], *inputs: Array) -> Array:
        """Return rows of the output, of the given shape, from the rows of the inputs that ``rows_from`` asks for."""
        result = self.run(*inputs)
        assert isinstance(result, np.ndarray)
        return result

    def prepare_by_rows(
        self, position: int, rows: Rows, constants: Sequence[Array | None]
    ) -> Callable[..., Any] | None:
        """Return a kernel that reads the input at ``position`` row by row and takes the other inputs as arguments.

        ``constants`` has, for each input, its array where it is known. None: the operation needs the input whole.
        """
        return None


def input_names(cls: type[Traits]) -> tuple[str, ...]:
    """Return the names of the inputs of an operation, from the signature of ``infer``."""
    return _positional(cls.infer) if hasattr(cls, "infer") else ()


@cache
def _positional(infer: Callable[..., Any]) -> tuple[str, ...]:
    parameters = list(inspect.signature(infer).parameters.values())[1:]  # without self
    return tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
