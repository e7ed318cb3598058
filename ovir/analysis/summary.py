"""A summary of a model: its operations, parameters, bytes, multiply-accumulates, variables and provenance."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from ovir.core.shapes import Dimension
from ovir.graph.layer_graph import state_ports
from ovir.graph.layers import Layer, Port
from ovir.graph.rt_info import RtInfo
from ovir.model import Model
from ovir.ops.base import opsets
from ovir.ops.infrastructure import Const
from ovir.system.progress import counted


@dataclass
class ConstantTotals:
    """The constants of one element type."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0
    """Their size in the weights file, where types of less than a byte are packed."""


@dataclass
class VariableInfo:
    """A variable, which ReadValue and Assign share."""

    name: str
    type: str
    shape: str


@dataclass
class Summary:
    name: str
    path: str | None
    ir_version: int
    inputs: list[Port]
    outputs: list[Port]
    layers: int
    """The number of layers, including those in bodies."""
    operations: dict[str, int]
    """Layers by type, the most frequent first."""
    opsets: list[str]
    parameters: dict[str, ConstantTotals]
    """Constants by element type."""
    weights_bytes: int
    """Bytes of the weights file that constants use; shared bytes count once."""
    file_bytes: int | None
    """The size of the weights file, None if there is none."""
    macs: int
    """Multiply-accumulates of the layers with static shapes; a body counts for one iteration."""
    macs_unknown: list[str] = field(default_factory=list)
    """Layers whose count is unknown because a shape is dynamic."""
    states: list[VariableInfo] = field(default_factory=list)
    not_run: dict[str, int] = field(default_factory=dict)
    """Layers by operation version (``Interpolate-11``) that ovir cannot execute, the most frequent first."""
    rt_info: dict[str, Any] = field(default_factory=dict)
    """The runtime information of the model."""

    @property
    def model_info(self) -> list[tuple[str, str]]:
        """Return the texts of the section ``model_info``, which applications read, with the path of each."""
        return list(_texts(self.rt_info.get("model_info")))


def _texts(info: Any, before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in info.items() if isinstance(info, dict) else ():
        if isinstance(value, str):
            yield f"{before}{key}", value
        else:
            yield from _texts(value, f"{before}{key}/")


def summarize(model: Model, weights: str | None = None) -> Summary:
    """Return the numbers of a model. ``weights`` is the path of its weights if it is not the .bin next to the model."""
    layers = list(model.walk())
    macs = {layer: layer_macs(layer) for layer in counted("summing up", layers)}
    known = {layer: count for layer, count in macs.items() if count is not None}
    return Summary(
        name=model.name,
        path=model.path,
        ir_version=model.version,
        inputs=model.inputs,
        outputs=model.outputs,
        layers=len(layers),
        operations=dict(Counter(layer.type for layer in layers).most_common()),
        opsets=sorted({layer.version for layer in layers}, key=lambda v: (len(v), v)),
        parameters=_parameters(layers),
        weights_bytes=_covered_bytes(layers),
        file_bytes=_file_size(model.path, weights),
        macs=sum(count.lower for count in known.values() if count.is_static),
        macs_unknown=[layer.scope + layer.name for layer, count in known.items() if not count.is_static],
        states=[
            VariableInfo(name, str(port.element_type), str(port.shape)) for name, port in state_ports(layers).items()
        ],
        not_run=not_run(model),
        rt_info=model.rt_info.to_dict(),
    )


def not_run(model: Model) -> dict[str, int]:
    """Return the number of layers without a kernel, by operation version; dead layers are left out."""
    layers = (layer for layer in model.walk() if not layer.is_dead and layer.type not in ("Parameter", "Result"))
    return dict(Counter(_version(layer) for layer in layers if not hasattr(layer.operator, "run")).most_common())


def _version(layer: Layer) -> str:
    known = opsets.resolve(layer.type, layer.version)
    return f"{layer.type} of {layer.version}" if known is None else f"{layer.type}-{known.opset}"


def _constants(layers: Iterable[Layer]) -> Iterable[Const]:
    return (layer.operator for layer in layers if isinstance(layer.operator, Const))


def _parameters(layers: Iterable[Layer]) -> dict[str, ConstantTotals]:
    found: dict[str, ConstantTotals] = {}
    for const in _constants(layers):
        entry = found.setdefault(str(const.element_type), ConstantTotals())
        entry.tensors += 1
        entry.elements += prod(const.shape)
        entry.bytes += _stored(const)
    return dict(sorted(found.items(), key=lambda item: -item[1].bytes))


def _covered_bytes(layers: Iterable[Layer]) -> int:
    """Return the size of the union of all constants' byte ranges."""
    covered, end = 0, 0
    for start, stop in sorted((c.offset, c.offset + c.size) for c in _constants(layers)):
        covered += max(stop - max(start, end), 0)
        end = max(end, stop)
    return covered


def _file_size(path: str | None, weights: str | None) -> int | None:
    if weights is None and path is None:
        return None
    file = Path(weights) if weights is not None else Path(str(path)).with_suffix(".bin")
    return file.stat().st_size if file.is_file() else None


def stored_bytes(layer: Layer) -> int | None:
    """Return the number of bytes that a Const takes in its files; None for any other layer."""
    return _stored(layer.operator) if isinstance(layer.operator, Const) else None


def _stored(const: Const) -> int:
    return const.size or len(const.value.encode())


# --------------------------------------------------------------------------- multiply-accumulates


def layer_macs(layer: Layer) -> Dimension | None:
    """Return the multiply-accumulates of a layer as an interval; None for an operation that is not counted."""
    if layer.operator is None or not layer.outputs or any(port.source is None for port in layer.inputs):
        return None
    inputs = layer.operator.named([port.type for port in layer.inputs])
    shapes = {name: tensor.shape for name, tensor in inputs.items()}
    return layer.operator.multiply_accumulates(shapes, layer.outputs[0].shape)


_PARAMETERS = ("conversion_parameters", "cli_parameters")
"""The entries with a converter's options; the second in files of version 10."""


@dataclass
class Provenance:
    """The programs that made a model; fields are None if the file does not record them."""

    framework: str | None = None
    """The framework of the original model: ``onnx``, ``pytorch``, ``tf``."""
    source: str | None = None
    """The file name of the original model."""
    converter: str | None = None
    """The version of the converter."""
    runtime: str | None = None
    """The version of the OpenVINO that wrote the file."""
    tools: dict[str, str] = field(default_factory=dict)
    """The versions of others that had a part in it, such as nncf."""

    def __str__(self) -> str:
        return ", ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        if version := self.runtime or self.converter:
            yield f"OpenVINO {_short(version)}"
        if self.converter and self.runtime and _short(self.converter) != _short(self.runtime):
            yield f"converter {_short(self.converter)}"
        if self.framework or self.source:
            yield f"from {self.framework or self.source}"
        for tool, version in self.tools.items():
            yield f"{tool} {_short(version)}"


def provenance(info: RtInfo | None) -> Provenance:
    """Return the provenance that the runtime information of a model records."""
    found = Provenance()
    if info is None:
        return found
    found.converter = _text(info, "MO_version")
    found.runtime = _text(info, "Runtime_version") or _text(info, "OpenVINO Runtime")
    for key in _PARAMETERS:
        if isinstance(parameters := info.get(key), RtInfo):
            found.framework = found.framework or _text(parameters, "framework")
            source = _text(parameters, "input_model")
            found.source = found.source or (os.path.basename(source.replace("\\", "/")) if source else None)
    for key, value in info.items():
        if isinstance(value, RtInfo) and key not in _PARAMETERS:
            for name, text in value.items():
                if isinstance(text, str) and (name == "version" or name.endswith("_version")):
                    found.tools[key if name == "version" else name.removesuffix("_version")] = text
    return found


def _text(info: RtInfo, key: str) -> str | None:
    value = info.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _short(version: str) -> str:
    """Return a version without build number and commit: ``2022.1.0-7019-cdb9bec7210`` is 2022.1.0."""
    head = version.split("-", 1)[0]
    return head if head[:1].isdigit() else version
