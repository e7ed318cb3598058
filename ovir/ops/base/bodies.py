"""The wiring of an operation with bodies (If, Loop, TensorIterator) to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType


class InferBody(Protocol):
    """Maps types of a body's parameters to types of its results. The layers of the body keep the types of the last
    call."""

    @property
    def parameters(self) -> list[TensorType]:
        """Return the types that the body declares."""

    def __call__(self, given: Sequence[TensorType]) -> list[TensorType]: ...


class RunBody(Protocol):
    """Maps arrays for a body's parameters to arrays of its results, whose memory is separate from all other arrays.

    The next call may overwrite them.
    """

    @property
    def parameters(self) -> Sequence[TensorType]:
        """Return the types that were inferred for the body's parameters."""

    def result_shapes(self, given: Sequence[PartialShape]) -> Sequence[PartialShape]:
        """Return the shapes that inference gives the results for parameters of these shapes."""

    def __call__(self, given: Sequence[NDArray[Any]], /) -> list[NDArray[Any]]: ...


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Base of the parts of a wiring: the line of the part in its file, and the ids of its ends there, for messages."""

    line: int | None = None
    ids: tuple[int, int] | None = None
    """The ids of the two ends, in the order of the positions."""


@dataclass(frozen=True, kw_only=True)
class Entry(Connection):
    """Base of both kinds of entries of a port map: how a tensor is sliced or concatenated, and its special purpose."""

    axis: int | None = None
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1
    purpose: str = ""


@dataclass(frozen=True)
class InputMap(Entry):
    """One ``<input>`` of a port map: an input of the layer (-1: none) feeds a parameter of the body."""

    external: int
    parameter: int

    @property
    def source(self) -> str:
        return f"input {self.ids[0] if self.ids else self.external}"

    @property
    def target(self) -> str:
        return f"parameter {self.ids[1] if self.ids else self.parameter} of the body"


@dataclass(frozen=True)
class OutputMap(Entry):
    """One ``<output>`` of a port map: a result of the body feeds an output of the layer (-1: none)."""

    external: int
    result: int

    @property
    def target(self) -> str:
        return f"output {self.ids[0] if self.ids else self.external}"


@dataclass(frozen=True)
class BackEdge(Connection):
    """One back edge: a result of one iteration becomes a parameter of the next."""

    result: int
    parameter: int

    @property
    def source(self) -> str:
        return f"result {self.ids[0] if self.ids else self.result}"

    @property
    def target(self) -> str:
        return f"parameter {self.ids[1] if self.ids else self.parameter}"


@dataclass(frozen=True)
class BodyMap:
    """The wiring of one body.

    It holds positions instead of ids: inputs and outputs of the layer, parameters and results of the body are each
    counted from 0.
    """

    inputs: tuple[InputMap, ...] = ()
    outputs: tuple[OutputMap, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()
    parameter_count: int = 0
