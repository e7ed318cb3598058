"""Layers and their ports, and the lists and dictionaries of a graph that callers can read but not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, SupportsIndex, TypeVar

from ovir.core.element_types import ElementType, dynamic
from ovir.core.html import html_table
from ovir.core.public_names import PublicNames
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.diagnostic import Place, caller
from ovir.diagnostics.errors import OWN_FAULT, InputError, NotFoundError, require_texts
from ovir.diagnostics.wording import plural
from ovir.graph.rt_info import NO_RT_INFO, DeferredRtInfo, RtInfo

if TYPE_CHECKING:
    from ovir.ops.base.operator import Operator

T = TypeVar("T")

UNKNOWN_TENSOR = TensorType(dynamic, PartialShape(None))


class Owner(Protocol):
    """The part of a model that its layers use."""

    @property
    def dead_layers(self) -> AbstractSet[Layer]:
        """Return the layers that no Result and no Assign depends on."""

    def layer(self, key: str | int) -> Layer:
        """Return the layer with this id, name or key."""

    def own_key(self, layer: Layer) -> str:
        """Return the part of a layer's key that tells it from the other layers of the same model."""


def _applies(kind: str, *, is_reflected: bool = False) -> Callable[[Any, Any], Layer]:
    """Return the method that applies an operation to an operand and another one, which comes first if reflected."""

    def method(self: Arithmetic, other: Any) -> Layer:
        return self._apply(kind, other, self) if is_reflected else self._apply(kind, self, other)

    return method


class Arithmetic:
    """The arithmetic of layers and of output ports: ``a + b`` is a new layer that adds them.

    The other operand is a layer, a port, an array or a number; a number takes the element type of this operand. The
    new layer is created by the function of ``set_arithmetic``, because only packages above this one can infer it.
    """

    __slots__ = ()
    __array_ufunc__ = None  # so that ``array + layer`` is left to the layer
    _apply: ClassVar[Callable[..., Layer]]

    __add__ = _applies("Add")
    __radd__ = _applies("Add", is_reflected=True)
    __sub__ = _applies("Subtract")
    __rsub__ = _applies("Subtract", is_reflected=True)
    __mul__ = _applies("Multiply")
    __rmul__ = _applies("Multiply", is_reflected=True)
    __truediv__ = _applies("Divide")
    __rtruediv__ = _applies("Divide", is_reflected=True)
    __mod__ = _applies("FloorMod")
    __rmod__ = _applies("FloorMod", is_reflected=True)
    __pow__ = _applies("Power")
    __rpow__ = _applies("Power", is_reflected=True)
    __matmul__ = _applies("MatMul")
    __rmatmul__ = _applies("MatMul", is_reflected=True)

    def __neg__(self) -> Layer:
        return self._apply("Negative", self)

    def __abs__(self) -> Layer:
        return self._apply("Abs", self)


def set_arithmetic(apply: Callable[..., Layer]) -> None:
    """Set the function that returns a new layer for the type of an operation and its operands."""
    Arithmetic._apply = staticmethod(apply)


def name_order(name: str) -> tuple[bool, str]:
    """Return a key by which names are sorted: numbers come last."""
    return name.isdigit(), name


def _texts(names: Iterable[str]) -> frozenset[str]:
    """Return names of a tensor; a text is one name. Raise InputError for anything that is no text."""
    if isinstance(names, str):
        return frozenset((names,))
    items = list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(item, str) for item in items):
        raise InputError.usage(f"must be texts, got {names!r}", option="names")
    return frozenset(items)


@dataclass(eq=False, slots=True)
class Port(Arithmetic, PublicNames):
    """An input or output of a layer.

    The connections of ports are the only record of the graph: an input has at most one ``source``, an output has
    ``readers``. Only ``Model.connect`` and the other edits of a model change them.
    """

    _internal = frozenset(("place", "edge_line", "own_names", "inferred"))
    _elsewhere: ClassVar = {
        "get_shape": "port.shape, or port.shape.to_tuple() for a tuple of integers",
        "get_index": "port.index",
        "get_tensor": "port.type, port.names and port.rt_info",
        "tensor": "port.type and port.names, or port.set_names and port.add_names",
        "get_target_inputs": "port.readers",
        "target_inputs": "port.readers",
        "get_source_output": "port.source",
        "get_rt_info": "port.rt_info",
        "replace": "model.insert_after(port, layer) or model.move_readers(port, other)",
    }

    layer: Layer
    """The layer that has the port."""
    index: int
    """The position among the inputs or outputs of the layer."""
    id: int
    """The number in the file."""
    is_output: bool
    """Whether it is an output of the layer."""
    declared_shape: PartialShape | None = None
    """The shape that the file declares; None if it declares none. ``shape`` is the inferred one."""
    declared_element_type: ElementType | None = None
    """The element type that the file declares; None if it declares none. ``element_type`` is the inferred one."""
    own_names: frozenset[str] = frozenset()
    """The tensor names that the file gives to this port; see ``names``."""
    line: int | None = None
    """The line of the <port> in the file, from 1."""
    rt_info: RtInfo = NO_RT_INFO
    """The runtime information of the port, which is empty if the file has none."""
    inferred: TensorType | None = None
    """The inferred type of an output; None before inference, or if the operation has no such output."""
    edge_line: int | None = None
    """The line of the edge that leads to an input."""
    _source: Port | None = field(default=None, init=False)
    _readers: dict[Port, None] | None = field(default=None, init=False)

    @property
    def source(self) -> Port | None:
        """Return the output port that feeds this input; None for an output."""
        return self._source

    @property
    def readers(self) -> Sequence[Port]:
        """Return the input ports that this output feeds, in the order in which they were connected."""
        return tuple(self._readers) if self._readers else ()

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the tensor; the input of a Result also has the names of the tensor that it reads."""
        if self._source is not None and self.layer.type == "Result":
            return self.own_names | self._source.own_names
        return self.own_names

    @names.setter
    def names(self, names: Iterable[str]) -> None:
        self.own_names = _texts(names)

    @property
    def type(self) -> TensorType:
        """Return the element type, shape and known value."""
        return (self if self._source is None else self._source).inferred or UNKNOWN_TENSOR

    @property
    def shape(self) -> PartialShape:
        """Return the inferred shape."""
        return self.type.shape

    @property
    def element_type(self) -> ElementType:
        """Return the inferred element type."""
        return self.type.element_type

    @property
    def place(self) -> Place:
        """Return the place of this port in the file."""
        return self.layer.at(self.line)

    @property
    def any_name(self) -> str:
        """Return one tensor name: the first in sorted order, numbers last; without names, the name of the layer."""
        return min(self.names, key=name_order) if self.names else self.layer.name

    # ----- the same under OpenVINO's names

    @property
    def partial_shape(self) -> PartialShape:
        """Return ``shape``."""
        return self.shape

    @property
    def node(self) -> Layer:
        """Return ``layer``."""
        return self.layer

    def get_any_name(self) -> str:
        """Return ``any_name``."""
        return self.any_name

    def get_names(self) -> frozenset[str]:
        """Return ``names``."""
        return self.names

    def set_names(self, names: Iterable[str]) -> None:
        """Set ``names``."""
        self.names = names

    def add_names(self, names: Iterable[str]) -> None:
        """Add names to ``names``."""
        self.own_names |= _texts(names)

    def get_partial_shape(self) -> PartialShape:
        """Return ``shape``."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """Return ``element_type``."""
        return self.element_type

    def get_node(self) -> Layer:
        """Return ``layer``."""
        return self.layer

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.layer.owner is None:
            return object.__reduce_ex__(self, protocol)
        return Layer.output if self.is_output else Layer.input, (self.layer, self.index)

    def __repr__(self) -> str:
        kind = "output" if self.is_output else "input"
        return f"<{kind} {self.index} of {self.layer.name!r}: {self.type}>"


@dataclass(eq=False, slots=True)
class Layer(Arithmetic, PublicNames):
    """One operation of a model.

    A layer created by the functions of an opset (``from ovir import opset13 as ops``) reads its sources, but is not
    among their readers and has no name of its own before it is part of a model.
    """

    _internal = frozenset(("at", "place", "data_place", "data_line", "fault_hint", "owner", "rt_info_source", "scope"))
    _elsewhere: ClassVar = {
        "friendly_name": "layer.name",
        "get_friendly_name": "layer.name",
        "set_friendly_name": "model.rename({old: new})",
        "get_name": "layer.name",
        "get_type_name": "layer.type",
        "get_attributes": "layer.attributes",
        "set_attribute": "model.replace(layer, new)",
        "get_rt_info": "layer.rt_info",
        "get_element_type": "layer.element_type",
        "get_output_shape": "layer.output(i).shape",
        "get_output_partial_shape": "layer.output(i).shape",
        "get_output_element_type": "layer.output(i).element_type",
        "get_output_size": "len(layer.outputs)",
        "get_input_shape": "layer.input(i).shape",
        "get_input_partial_shape": "layer.input(i).shape",
        "get_input_element_type": "layer.input(i).element_type",
        "get_input_size": "len(layer.inputs)",
        "input_value": "layer.input(i).source",
        "input_values": "[port.source for port in layer.inputs]",
        "get_data": "layer.output().type.constant, which is None for other layers than constants",
        "data": "layer.output().type.constant, which is None for other layers than constants",
    }

    id: int
    """The number in the file, which no other layer of the model or body has."""
    name: str
    """The name, which other layers may have, too; ``key`` is unique."""
    type: str
    """The operation, such as ``Gather``."""
    version: str
    """The version in the file, such as ``opset6``."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Every attribute of the file under its name there.

    Its type is the one that the operation declares; an attribute that the operation does not declare remains a text.
    Inference and runs use the values of ``operator``, so this dictionary is read-only once the layer is in a model;
    ``Model.replace`` changes attributes.
    """
    operator: Operator | None = None
    """The operation with typed attributes; None if ovir has no operation of this type and version."""
    inputs: list[Port] = field(default_factory=list)
    """The input ports."""
    outputs: list[Port] = field(default_factory=list)
    """The output ports."""
    bodies: dict[str, Any] = field(default_factory=dict)
    """The bodies by name (``body``, or ``then`` and ``else``); each is a ``Model``."""
    line: int | None = None
    """The line of the <layer> in the file, from 1."""
    data_line: int | None = None
    """The line of the <data> element, or of the layer if it has none; None if a program has created the layer."""
    file: str | None = None
    """The path of the file; None for a layer that was not read from one."""
    scope: str = ""
    """For a layer in a body: the names of the layers around it, such as ``loop/body/``."""
    rt_info_source: RtInfo | DeferredRtInfo | None = None
    owner: Owner | None = field(default=None, init=False)
    """The model that this layer belongs to."""

    @property
    def rt_info(self) -> RtInfo:
        """Return the runtime information of the layer, which is empty if the file has none."""
        if callable(self.rt_info_source):
            self.rt_info_source = self.rt_info_source()
        return NO_RT_INFO if self.rt_info_source is None else self.rt_info_source

    def input(self, index: int = 0) -> Port:
        """Return an input port. Raises InputError, which is also an IndexError, if there is none."""
        return self._port(self.inputs, index, "input")

    def output(self, index: int = 0) -> Port:
        """Return an output port. Raises InputError, which is also an IndexError, if there is none."""
        return self._port(self.outputs, index, "output")

    def _port(self, ports: list[Port], index: int, kind: str) -> Port:
        if 0 <= index < len(ports):
            return ports[index]
        message = f"there is no {kind} {index}: the layer has {plural(len(ports), kind)}"
        raise NotFoundError.usage(message, replace(caller(), layer=self.title, layer_id=self.id))

    def __getitem__(self, index: int) -> Port:
        return self.output(index)

    def __iter__(self) -> Iterator[Port]:
        """Yield the output ports, so that ``values, indices = ops.topk(...)`` unpacks them."""
        return iter(self.outputs)

    @property
    def shape(self) -> PartialShape:
        """Return the inferred shape of the first output."""
        return self.output().shape

    @property
    def element_type(self) -> ElementType:
        """Return the inferred element type of the first output."""
        return self.output().element_type

    @property
    def key(self) -> str:
        """Return the name that finds the layer among the layers of the model and all its bodies.

        It is the layer's name after the names of the layers around it, as ``loop/body/name``. Where that is not unique,
        the id follows: ``name#7``. ``Model.layer``, taps and the names of results accept it.
        """
        return self.scope + (self.name if self.owner is None else self.owner.own_key(self))

    @property
    def is_dead(self) -> bool:
        """Return whether no Result and no Assign depends on this layer; OpenVINO removes such layers."""
        return self.owner is not None and self in self.owner.dead_layers

    @property
    def title(self) -> str:
        """Return the name of the layer for messages."""
        inside = f" in {self.scope.rstrip('/')}" if self.scope else ""
        return f"layer {self.id} '{self.name}' ({self.type}, {self.version}){inside}"

    @property
    def place(self) -> Place:
        """Return the place of this layer in the file."""
        return self.at(None)

    @property
    def data_place(self) -> Place:
        """Return the place of the layer's attributes in the file."""
        return self.at(self.data_line)

    def fault_hint(self, error: BaseException, *functions: Callable[..., Any]) -> str:
        """Return the hint for an exception that the operation of this layer should not have raised.

        For the class of a user, it names the line that was running of the files of this class and of ``functions``.
        """
        if self.operator is None or self.operator.opset:
            return OWN_FAULT
        cls = type(self.operator)
        text = f"this is a fault of the class {cls.__name__}, which was registered for {self.type}"
        own = (vars(base).values() for base in cls.__mro__ if not base.__module__.startswith("ovir."))
        codes = (getattr(function, "__code__", None) for function in (*chain.from_iterable(own), *functions))
        files = {code.co_filename for code in codes if code is not None}
        place, trace = "", error.__traceback__
        while trace is not None:
            if (file := trace.tb_frame.f_code.co_filename) in files:
                place = f"; it fails in {file}, line {trace.tb_lineno}"
            trace = trace.tb_next
        return text + place

    def at(self, line: int | None) -> Place:
        """Return the place of a line that belongs to this layer; without a line, the place of the layer."""
        return Place(self.file, line or self.line, self.title, self.id)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Pickle the model in place of the layer, because pickling a model does not recurse from layer to layer."""
        owner = self.owner
        return object.__reduce_ex__(self, protocol) if owner is None else (type(owner).layer, (owner, self.id))

    def __repr__(self) -> str:
        types = ", ".join(str(port.type) for port in self.outputs or self.inputs)
        return f"<{self.title}: {types}>" if types else f"<{self.title}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [(f"attribute {name}", value) for name, value in self.attributes.items()]
        for kind, ports in (("input", self.inputs), ("output", self.outputs)):
            for port in ports:
                source = f" from {port.source.layer.key}" if port.source is not None else ""
                rows.append((f"{kind} {port.index}", f"{port.type}{source}"))
        return html_table(self.title, (), rows)


def _set_name(layer: Layer, name: str) -> None:
    if type(name) is not str:
        require_texts(name=name)
    _NAME.__set__(layer, name)


_NAME = Layer.__dict__["name"]  # the slot
setattr(Layer, "name", property(_NAME.__get__, _set_name, doc=_NAME.__doc__))  # noqa: B010  (as mypy sees the field)


def sources_of(layer: Layer) -> list[Port]:
    """Return the tensors that a layer reads, in the order of its inputs."""
    return [port.source for port in layer.inputs if port.source is not None]


def layers_before(layer: Layer) -> list[Layer]:
    """Return the layers whose tensors a layer reads, in the order of its inputs."""
    return [port.layer for port in sources_of(layer)]


def layers_after(layer: Layer) -> list[Layer]:
    """Return the layers that read tensors of a layer, in the order of its outputs."""
    return [reader.layer for port in layer.outputs for reader in port.readers]


def declared_type(port: Port) -> TensorType:
    """Return the declared type of a port. Without dimensions the rank is unknown: it may be a scalar."""
    return TensorType(port.declared_element_type or dynamic, port.declared_shape or PartialShape(None))


def has_declared(port: Port) -> bool:
    """Return whether the file declares dimensions for a port."""
    return bool(port.declared_shape)


def agrees(port: Port, tensor: TensorType) -> bool:
    """Return whether a tensor may have the type that a port declares.

    A port without dimensions is a scalar or has an unknown rank; the format does not distinguish the two.
    """
    shape, element_type = port.declared_shape, port.declared_element_type
    if shape is not None and shape is not tensor.shape and shape.rank and not shape.compatible(tensor.shape):
        return False
    return (
        element_type is None
        or element_type is tensor.element_type
        or (element_type.merged_with(tensor.element_type) is not None)
    )


LayerOrPort = Layer | Port
"""An argument that stands for a tensor: one of its ports, or the layer that has it."""


def join(source: Port, target: Port, line: int | None = None) -> None:
    """Connect an input port that has no source with an output port.

    Use this only for layers that are in no model yet: it checks nothing, and clears nothing that a model has derived.
    """
    target._source = source
    target.edge_line = line
    if source._readers is None:
        source._readers = {target: None}
    else:
        source._readers[target] = None


def attach(source: Port, target: Port) -> None:
    """Let an input port of a layer that is in no model read an output port, which does not list it as a reader."""
    target._source = source


def forget_readers(source: Port) -> None:
    """Remove all readers of an output port, which still read it: the counterpart of ``join`` after ``attach``."""
    source._readers = None


def separate(target: Port) -> None:
    """Remove the source of an input port; the counterpart of ``join`` and of ``attach``."""
    if target._source is not None and target._source._readers is not None:
        target._source._readers.pop(target, None)
    target._source = target.edge_line = None


def path_text(layers: Sequence[Layer]) -> str:
    """Return a path through layers as messages show it: a long path is shortened in the middle."""
    shown = [f"{layer.id} '{layer.name}'" for layer in layers]
    if len(shown) > 2 * _SHOWN:
        shown[_SHOWN:-_SHOWN] = [f"({len(shown) - 2 * _SHOWN} more)"]
    return " -> ".join(shown)


_SHOWN = 10  # number of layers at each end


# --------------------------------------------------------------------------- read-only lists and dictionaries


class ReadOnlyList(list[T]):
    """A list of layers or ports that is derived from a model; copies of it are plain lists."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        layers = [item for item in self if isinstance(item, Layer)]
        if layers:
            rows = [
                (item.id, item.key, item.type, ", ".join(str(port.type) for port in item.outputs)) for item in layers
            ]
            return html_table(plural(len(rows), "layer"), ("id", "layer", "operation", "outputs"), rows)
        ports = [item for item in self if isinstance(item, Port)]
        lines = [(port.any_name, port.type, ", ".join(sorted(port.names - {port.any_name}))) for port in ports]
        return html_table(plural(len(lines), "port"), ("name", "type", "other names"), lines)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type[list[T]], tuple[list[T]]]:
        return list, (list(self),)


class ReadOnlyDict(dict[str, Any]):
    """The attributes of a layer; copies of it are plain dictionaries."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def _refuse_list(self: object, *arguments: object, **keywords: object) -> NoReturn:
    message = "this list of a model cannot be changed"
    hint = "change a copy, list(...), or edit the model: Model.add_layer, Model.remove_layer"
    raise InputError.usage(message, hint=hint)


def _refuse_dict(self: object, *arguments: object, **keywords: object) -> NoReturn:
    message = "the attributes of a layer cannot be changed: its operator has its own values"
    hint = "replace the layer by one with other attributes: Model.replace_layer"
    raise InputError.usage(message, hint=hint)


_BOTH = ("clear", "pop", "__setitem__", "__delitem__")
_LIST = ("append", "extend", "insert", "remove", "reverse", "sort", "__iadd__", "__imul__")
_DICT = ("popitem", "setdefault", "update", "__ior__")

for _name in (*_BOTH, *_LIST):
    setattr(ReadOnlyList, _name, _refuse_list)
for _name in (*_BOTH, *_DICT):
    setattr(ReadOnlyDict, _name, _refuse_dict)
