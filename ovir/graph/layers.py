"""Layers and their ports."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

from ovir.core.element_types import ElementType, dynamic
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import OWN_FAULT
from ovir.graph.rt_info import DeferredRtInfo, RtInfo

if TYPE_CHECKING:
    from ovir.ops.base.operator import Operator

UNKNOWN_TENSOR = TensorType(dynamic, PartialShape(None))


class Owner(Protocol):
    """What a layer asks of the model that it belongs to."""

    @property
    def dead_layers(self) -> AbstractSet[Layer]:
        """The layers that no result and no state depends on."""

    def layer(self, key: str | int) -> Layer:
        """The layer of this id or name."""


@dataclass(eq=False, slots=True)
class Port:
    """An input or output of a layer.

    ``shape`` and ``element_type`` are inferred; ``declared_shape`` and ``declared_element_type`` are what the file
    declares (None where it declares nothing). ``id`` is the file's number.

    The connections of ports are all that a model knows of its graph: an input has one ``source`` or none, an output has
    its ``readers``. They change through ``Model.connect`` and the other edits of a model only.
    """

    layer: Layer
    index: int
    id: int
    is_output: bool
    declared_shape: PartialShape | None = None
    declared_element_type: ElementType | None = None
    own_names: frozenset[str] = frozenset()
    """The tensor names that the port itself has; see ``names``."""
    line: int | None = None
    rt_info: RtInfo | None = None
    inferred: TensorType | None = None
    """For an output: its inferred type; None before inference, and where the operation has no such output."""
    edge_line: int | None = None
    """For an input: the line of the edge that leads to it."""
    _source: Port | None = field(default=None, init=False)
    _readers: dict[Port, None] | None = field(default=None, init=False)

    @property
    def source(self) -> Port | None:
        """For an input: the output port that feeds it."""
        return self._source

    @property
    def readers(self) -> Sequence[Port]:
        """For an output: the input ports that it feeds, in the order in which they were connected."""
        return tuple(self._readers) if self._readers else ()

    @property
    def names(self) -> frozenset[str]:
        """The names of the tensor; the input of a Result has those of the tensor that arrives there, too."""
        if self._source is not None and self.layer.type == "Result":
            return self.own_names | self._source.own_names
        return self.own_names

    @names.setter
    def names(self, names: frozenset[str]) -> None:
        self.own_names = names

    @property
    def type(self) -> TensorType:
        """Element type, shape and known value."""
        return (self if self._source is None else self._source).inferred or UNKNOWN_TENSOR

    @property
    def shape(self) -> PartialShape:
        return self.type.shape

    @property
    def element_type(self) -> ElementType:
        return self.type.element_type

    @property
    def place(self) -> Place:
        return self.layer.at(self.line)

    @property
    def any_name(self) -> str:
        """The first of the sorted tensor names, numbers last; the layer's name where there is none."""
        return min(self.names, key=lambda name: (name.isdigit(), name)) if self.names else self.layer.name

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.layer.owner is None:
            return object.__reduce_ex__(self, protocol)
        return _port_of, (self.layer, self.is_output, self.index)

    def __repr__(self) -> str:
        kind = "output" if self.is_output else "input"
        return f"<{kind} {self.index} of {self.layer.name!r}: {self.type}>"


@dataclass(eq=False, slots=True)
class Layer:
    """One operation of a model.

    ``version`` is the file's text (``opset6``); ``operator`` the operation with typed attributes, None
    where ovir has none for this type and version. ``attributes`` holds every attribute of the file by
    its name there, typed by the operation's declaration; one that it does not declare stays a text.
    """

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, Any] = field(default_factory=dict)
    operator: Operator | None = None
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: dict[str, Any] = field(default_factory=dict)
    """The models inside, each a ``Model``; by name: ``body``, or ``then`` and ``else``."""
    line: int | None = None
    data_line: int | None = None
    """The line of its <data>."""
    file: str | None = None
    scope: str = ""
    """In a body: the names of the layers around it, as ``loop/body/``."""
    rt_info_source: RtInfo | DeferredRtInfo | None = None
    owner: Owner | None = field(default=None, init=False)
    """The model that it belongs to."""

    @property
    def rt_info(self) -> RtInfo | None:
        """The runtime information of the layer; None where the file has no <rt_info>."""
        if callable(self.rt_info_source):
            self.rt_info_source = self.rt_info_source()
        return self.rt_info_source

    @property
    def is_dead(self) -> bool:
        """Whether no result and no state depends on it; OpenVINO drops such layers."""
        return self.owner is not None and self in self.owner.dead_layers

    @property
    def title(self) -> str:
        """How messages name the layer."""
        inside = f" in {self.scope.rstrip('/')}" if self.scope else ""
        return f"layer {self.id} '{self.name}' ({self.type}, {self.version}){inside}"

    @property
    def place(self) -> Place:
        return self.at(None)

    @property
    def data_place(self) -> Place:
        """Where its attributes stand."""
        return self.at(self.data_line)

    @property
    def fault_hint(self) -> str:
        """A hint for an exception that its operation should not raise."""
        if self.operator is not None and not self.operator.opset:
            return f"this is a fault of the class {type(self.operator).__name__}, which was registered for {self.type}"
        return OWN_FAULT

    def at(self, line: int | None) -> Place:
        """Return the place of a line that belongs to the layer; without a line, the place of the layer."""
        return Place(self.file, line or self.line, self.title, self.id)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Go by the model, which does not recurse from layer to layer."""
        return object.__reduce_ex__(self, protocol) if self.owner is None else (_layer_of, (self.owner, self.id))

    def __repr__(self) -> str:
        return f"<{self.title}>"


def _layer_of(owner: Owner, number: int) -> Layer:
    return owner.layer(number)


def _port_of(layer: Layer, is_output: bool, index: int) -> Port:
    return (layer.outputs if is_output else layer.inputs)[index]


def join(source: Port, target: Port, line: int | None = None) -> None:
    """Feed an input port, which has no source yet, from an output port.

    Nothing is checked, and no model takes notice: this is for layers of which a model is yet to be made. The
    connections of a model change through its own methods.
    """
    target._source = source
    target.edge_line = line
    if source._readers is None:
        source._readers = {target: None}
    else:
        source._readers[target] = None


def part(target: Port) -> None:
    """Take an input port's source away; the counterpart of ``join``."""
    if target._source is not None and target._source._readers is not None:
        target._source._readers.pop(target, None)
    target._source = target.edge_line = None


def path_text(layers: Sequence[Layer]) -> str:
    """Return a path through layers as messages show it: of a long one only both ends."""
    shown = [f"{layer.id} '{layer.name}'" for layer in layers]
    if len(shown) > 2 * _SHOWN:
        shown[_SHOWN:-_SHOWN] = [f"({len(shown) - 2 * _SHOWN} more)"]
    return " -> ".join(shown)


_SHOWN = 10  # layers at either end
