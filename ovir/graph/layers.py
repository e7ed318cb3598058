"""Layers and their ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lxml import etree

from ovir.core.element_types import ElementType, dynamic
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import OWN_FAULT

if TYPE_CHECKING:
    from lxml.etree import _Element

    from ovir.graph.model import Model
    from ovir.ops.base.operator import Operator

UNKNOWN_TENSOR = TensorType(dynamic, PartialShape(None))


@dataclass(eq=False, slots=True)
class Port:
    """An input or output of a layer.

    ``shape`` and ``element_type`` are inferred; ``declared_shape`` and ``stated_element_type`` are what
    the file claims (None where it says nothing). ``id`` is the file's number.
    """

    layer: Layer
    index: int
    id: int
    is_output: bool
    declared_shape: PartialShape | None = None
    declared_element_type: ElementType | None = None
    names: frozenset[str] = frozenset()
    line: int | None = None
    rt_info: _Element | None = None
    source: Port | None = None
    """For an input: the output port that feeds it."""
    readers: Sequence[Port] = ()
    """For an output: the input ports that it feeds."""
    inferred: TensorType | None = None
    """For an output: what inference knows of it; None before inference."""

    @property
    def type(self) -> TensorType:
        """Element type, shape and known content."""
        return (self if self.source is None else self.source).inferred or UNKNOWN_TENSOR

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
        """A tensor name (the first in order that is no mere number), or the layer's name where there is none."""
        return min(self.names, key=lambda name: (name.isdigit(), name)) if self.names else self.layer.name

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
    bodies: dict[str, Model] = field(default_factory=dict)
    line: int | None = None
    data_line: int | None = None
    """That of its <data>."""
    file: str | None = None
    scope: str = ""
    """Of a layer in a body: the names of the layers around it, as ``loop/body/``."""
    rt_info_source: _Element | str | None = None
    """Its <rt_info>, or the text of it."""
    is_dead: bool = False
    """Whether no result and no state depends on it; OpenVINO drops such layers."""

    @property
    def rt_info(self) -> _Element | None:
        """What its writer wanted to be kept with it; the text of it is parsed when it is first asked for."""
        if isinstance(self.rt_info_source, str):
            self.rt_info_source = etree.fromstring(self.rt_info_source, etree.XMLParser(huge_tree=True))
        return self.rt_info_source

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
        """A line that says something of the layer; without one, its own."""
        return Place(self.file, line or self.line, self.title, self.id)

    def __repr__(self) -> str:
        return f"<{self.title}>"


def path_text(layers: Sequence[Layer]) -> str:
    """A way through layers, as messages show it; of a long one the ends."""
    shown = [f"{layer.id} '{layer.name}'" for layer in layers]
    if len(shown) > 2 * _SHOWN:
        shown[_SHOWN:-_SHOWN] = [f"({len(shown) - 2 * _SHOWN} more)"]
    return " -> ".join(shown)


_SHOWN = 10  # layers at either end
