"""The *executed graph* that a device ran in place of a model, and the layers of the file that its layers stand for.

OpenVINO serializes it (``compiled.get_runtime_model()``) as a topology whose layers say what was executed, in which
order, type and time, and from which layers of the file it was made.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from ovir.core.element_types import ELEMENT_TYPES
from ovir.core.json_fields import json_fields
from ovir.core.reading import read_bytes
from ovir.diagnostics.codes import NOT_IR
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import ReadError
from ovir.diagnostics.wording import plural, reason_of
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, layers_after
from ovir.ir.elements import SAFE


@dataclass(frozen=True)
class ExecutedLayer:
    """One layer of an executed graph."""

    name: str
    type: str
    """The device's name of the operation, such as ``FullyConnected`` or ``Reorder``."""
    order: int
    originals: str
    """The names of layers that it was made from, joined by commas, which names may have as well."""
    precision: str | None = None
    """The element type in which it computes, such as ``bf16``."""
    weights: str | None = None
    """The element type of its weights if that is another one."""
    output_precisions: str | None = None
    layouts: str | None = None
    primitive: str | None = None
    """The implementation, such as ``brgconv_avx512_I8``."""
    microseconds: float | None = None
    """The time that it took; None if it was not measured."""

    @property
    def types(self) -> str | None:
        """Return in which type it computes, and that of its weights if it is another one; None if it is not known."""
        return self.precision if self.weights is None else f"{self.precision}, weights in {self.weights}"


@dataclass(frozen=True)
class Execution:
    """The execution of a layer of a model."""

    by: ExecutedLayer
    with_layers: tuple[str, ...]
    """The layers of the file that were executed as one with it, in the order that the device gives."""
    is_named: bool = True
    """Whether the device names the layer; otherwise all that reads it is executed as one layer, which it is part of."""

    def fused_into(self, layer: Layer) -> str | None:
        """Return the first of the layers that were executed as one with a layer; None for that one itself."""
        return self.with_layers[0] if layer.name != self.with_layers[0] else None

    def __str__(self) -> str:
        precision = f"computed in {self.by.types}" if self.by.types else f"computed as {self.by.type}"
        return precision if self.is_named else f"{precision}, as part of '{self.with_layers[0]}'"

    def to_dict(self) -> dict[str, Any]:
        """Return the execution for JSON."""
        head = json_fields(self.by, "name", "type", "precision", "weights", "primitive", "microseconds")
        return head | json_fields(self, "with=with_layers", "is_named")


@dataclass(frozen=True)
class ExecutedGraph:
    """The executed graph of one model."""

    layers: tuple[ExecutedLayer, ...]
    """In the order of execution."""

    @property
    def microseconds(self) -> float | None:
        """Return the time of all layers; None if it was not measured."""
        times = [layer.microseconds for layer in self.layers if layer.microseconds is not None]
        return sum(times) if times else None

    def summary(self, model: LayerGraph) -> str:
        """Return in one line how many layers of a model became how many of the device, and how long they took."""
        items = [item for layer, item in self.of(model).items() if layer.type not in _PASSIVE]
        ran = {item.by for item in items}
        time = "" if self.microseconds is None else f", {self.microseconds / 1000:.3g} ms"
        kinds = sorted({layer.precision for layer in ran if layer.precision is not None})
        names = ", ".join(kinds) or "unknown types"
        return f"executed: {plural(len(items), 'layer')} as {len(ran):,}, in {names}{time}"

    def require_made_from(self, model: LayerGraph, file: str) -> None:
        """Raise ReadError if the graph in a file names no layer that computes something in a model."""
        computing = {layer.name for layer in model.walk() if layer.type not in _PASSIVE}
        if computing and not any(
            name in computing
            for executed in self.layers
            for name in (*split_names(executed.originals, computing), executed.name)
        ):
            message = f"the executed graph of another model: it names none of the {plural(len(computing), 'layer')}"
            hint = "layers are found by their names, in the file that the device compiled"
            raise ReadError(diagnose(NOT_IR, message, Place(file), hint=hint))

    def of(self, model: LayerGraph) -> dict[Layer, Execution]:
        """Return the executions of a model's layers; those that the device dropped or folded are missing."""
        by_name: dict[str, Layer] = {}
        for layer in model.walk():
            by_name.setdefault(layer.name, layer)
        executions: dict[Layer, Execution] = {}
        for executed in self.layers:
            names = [name for name in split_names(executed.originals, by_name) if name in by_name]
            if not names and executed.name in by_name:
                names = [executed.name]
            for name in names:
                executions.setdefault(by_name[name], Execution(executed, tuple(names)))
        return executions | dict(_unnamed(model, executions))


def _unnamed(model: LayerGraph, executions_of: Mapping[Layer, Execution]) -> Iterator[tuple[Layer, Execution]]:
    """Yield the layers that a device does not name, but whose results only one executed layer reads: it replaced them,
    as it does with a Convolution before a multiplication."""
    inside: dict[Layer, Execution] = {}
    constant = all_constant_layers(model)
    for layer in reversed(list(model.layers)):
        if layer in executions_of or layer in constant or layer.type in _PASSIVE or layer.is_dead:
            continue
        readers = set(layers_after(layer))
        if any(reader.type == "Result" for reader in readers):  # which computes nothing that could include others
            continue
        executions = [executions_of.get(reader) or inside.get(reader) for reader in readers]
        first = executions[0] if executions else None
        if first is not None and all(item is not None and item.by is first.by for item in executions):
            inside[layer] = Execution(first.by, first.with_layers, is_named=False)
            yield layer, inside[layer]


def split_names(text: str, known: Collection[str]) -> list[str]:
    """Split names at commas, so that as many as possible are known: names may have commas themselves."""
    pieces = text.split(",") if text else []
    longest = max((name.count(",") for name in known), default=0) + 1
    names = []
    start = 0
    while start < len(pieces):
        ends = range(min(len(pieces), start + longest), start + 1, -1)
        end = next((end for end in ends if ",".join(pieces[start:end]) in known), start + 1)
        names.append(",".join(pieces[start:end]))
        start = end
    return names


_PASSIVE = frozenset({"Const", "Parameter", "Result"})
"""Operations that compute nothing."""

# --------------------------------------------------------------------------- the file


def read_executed(path: str | os.PathLike[str]) -> ExecutedGraph:
    """Read an executed graph that OpenVINO has serialized.

    Raises ReadError for a file that cannot be read and for one that is not an executed graph.
    """
    name = os.fspath(path)
    try:
        content = read_bytes(name)
    except OSError as error:
        raise ReadError.of_file(name, f"cannot read the file: {reason_of(error)}") from None
    return parse_executed(content, name)


def parse_executed(content: bytes, name: str) -> ExecutedGraph:
    """Return the executed graph in the bytes of a file of this name."""
    parser: etree.XMLParser[etree._Element] = etree.XMLParser(**SAFE)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise ReadError(diagnose(NOT_IR, f"not an executed graph: {error.msg}", Place(name, error.lineno))) from None
    layers = [layer for element in root.iterfind("layers/layer") if (layer := _layer(element)) is not None]
    if not layers:
        hint = "an executed graph is what `openvino.serialize(compiled.get_runtime_model(), path)` writes"
        message = "not an executed graph: no layer says how it was executed"
        raise ReadError(diagnose(NOT_IR, message, Place(name), hint=hint))
    return ExecutedGraph(tuple(sorted(layers, key=lambda layer: layer.order)))


def refuse_executed(root: etree._Element, place: Place) -> None:
    """Raise ReadError if a topology without versions of operations is an executed graph."""
    if any(_layer(layer) is not None for layer in root.iterfind("layers/layer")):
        message = "this is an executed graph: it lists the layers that a device ran in place of those of a model"
        hint = "give the model; `ovir view` and `ovir compare` read this file with --executed, beside the model"
        raise ReadError(diagnose(NOT_IR, message, place, hint=hint))


def _layer(element: etree._Element) -> ExecutedLayer | None:
    """Return the layer of an element; None for one that does not say how it was executed."""
    said: dict[str, str] = {}
    for data in element.iterfind("data"):
        said.update({str(key): str(value) for key, value in data.attrib.items()})
    for attribute in element.iterfind("rt_info/*"):  # where the runtime model itself has them
        if (key := attribute.get("name") or attribute.tag) and (value := attribute.get("value")) is not None:
            said.setdefault(str(key), value)
    if "originalLayersNames" not in said and "execOrder" not in said:
        return None
    order, time = said.get("execOrder", ""), said.get("execTimeMcs", "")
    kind, primitive = said.get("layerType") or element.get("type") or "", said.get("primitiveType")
    precision, weights = _precisions(kind, primitive or "", said.get("runtimePrecision", ""))
    return ExecutedLayer(
        name=element.get("name") or "",
        type=kind,
        order=int(order) if order.isdecimal() and order.isascii() else 0,
        originals=said.get("originalLayersNames", ""),
        precision=precision,
        weights=weights,
        output_precisions=_precision(said.get("outputPrecisions", "")),
        layouts=said.get("outputLayouts") or None,
        primitive=primitive or None,
        microseconds=_time(time),
    )


def _precisions(kind: str, primitive: str, said: str) -> tuple[str | None, str | None]:
    """Return the element type in which an executed layer computes, and that of its weights if it is another one.

    The name of a primitive ends with the type of the data, where ``I8`` stands for u8. OpenVINO's CPU plugin calls the
    narrower type of data and weights the ``runtimePrecision`` of a layer.
    """
    narrower, last = _precision(said), primitive.rpartition("_")[2]
    data = "u8" if last == "I8" else _precision(last)
    if not any(data == known.name for known in ELEMENT_TYPES):
        return narrower, None
    return data, narrower if kind in _WITH_WEIGHTS and narrower != data else None


_WITH_WEIGHTS = frozenset({"Convolution", "Deconvolution", "FullyConnected", "GatherMatmul", "MatMul"})


def _precision(text: str) -> str | None:
    """Return an element type as this format names it; older releases write FP16."""
    return text.lower().replace("fp", "f") or None


def _time(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # not_executed
        return None
