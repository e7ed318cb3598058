"""A summary of a model: its operations, constants, costs, variables and provenance."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from ovir.analysis.costs import LayerCost, ModelCosts, StateCost, by_type, call_of, costs_of, sized_call, stored_bytes
from ovir.core.json_fields import json_fields
from ovir.core.shapes import ShapeLike
from ovir.core.tables import Table, columns
from ovir.diagnostics.errors import ModelError, require_counts
from ovir.graph.layers import Layer, Port
from ovir.graph.names import port_as_json
from ovir.graph.rt_info import RtInfo
from ovir.model import Model, read_model
from ovir.ops.base import opsets
from ovir.ops.infrastructure import Const


@dataclass
class ConstantTotals:
    """The constants of one element type."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0
    """Their size in the weights file, where types of less than a byte are packed."""


@dataclass(frozen=True)
class Summary:
    """The numbers of a model; ``layers`` has the cost of each layer."""

    name: str
    """The name of the model."""
    path: str | None
    """The path of its file; None if it was not read from one."""
    ir_version: int
    """The version of the format."""
    inputs: list[Port]
    """Its inputs."""
    outputs: list[Port]
    """Its outputs."""
    costs: ModelCosts
    """The costs of its layers, and their sum."""
    sizes: dict[str, str]
    """The shapes that were chosen for dynamic inputs, by name, for the costs."""
    unsized: str | None
    """The reason why no sizes were found; None if there is no such reason."""
    sized: Model
    """The model at the sizes that were counted."""
    layer_count: int
    """The number of layers, including those in bodies."""
    operations: dict[str, int]
    """Layers by type, the most frequent first."""
    opsets: list[str]
    """The opsets of its layers."""
    constants: dict[str, ConstantTotals]
    """Constants by element type."""
    weights_bytes: int
    """Bytes of the weights file that constants use; shared bytes count once."""
    file_bytes: int | None
    """The size of the weights file, None if there is none."""
    states: list[StateCost] = field(default_factory=list)
    """Its variables, with the bytes that they take."""
    not_run: dict[str, int] = field(default_factory=dict)
    """Layers by operation version (``Interpolate-11``) that ovir cannot execute, the most frequent first."""
    rt_info: dict[str, Any] = field(default_factory=dict)
    """The runtime information of the model."""

    @property
    def layers(self) -> list[LayerCost]:
        """Return the cost of each layer that computes something or reads constants, in the order of the model."""
        return self.costs.layers

    @property
    def macs(self) -> int:
        """Return the multiply-accumulates of a call without ``macs_unknown``, the most if they depend on values."""
        return self.costs.total.macs.upper or sum(row.macs or 0 for row in self.layers)

    @property
    def macs_unknown(self) -> list[str]:
        """Return the names of the layers whose multiply-accumulates have no bound, because of a shape or of a loop."""
        return [row.name for row in self.layers if row.macs is None]

    @property
    def sizes_text(self) -> str:
        """Return the shapes for which a dynamic model was counted, such as ``at x=[1,8]``; empty for static ones."""
        return "".join(f"{' ' if i else 'at '}{name}={shape}" for i, (name, shape) in enumerate(self.sizes.items()))

    @property
    def parameters(self) -> int:
        """Return the number of elements of all constants; one that several layers read counts once."""
        return self.costs.parameters

    @property
    def model_info(self) -> list[tuple[str, str]]:
        """Return the texts of the section ``model_info``, which applications read, with the path of each."""
        return list(_texts(self.rt_info.get("model_info")))

    def to_dict(self) -> dict[str, Any]:
        """Return what ``ovir show --json`` prints."""
        return {
            **json_fields(self, "name", "path", "ir_version"),
            "inputs": [port_as_json(port) for port in self.inputs],
            "outputs": [port_as_json(port) for port in self.outputs],
            **json_fields(self, "layers=layer_count", "operations", "opsets"),
            "parameters": {name: vars(totals) for name, totals in self.constants.items()},
            **json_fields(self, "weights_bytes", "file_bytes", "macs", "macs_least=costs.total.macs.lower"),
            **json_fields(self, "macs_unknown", "counted_at=sizes", "states", "not_run", "rt_info", "costs=layers"),
        }

    def _repr_html_(self) -> str:
        largest = sorted(self.layers, key=lambda row: (-(row.macs or 0), -row.parameters))
        rows = [(row.layer.type, row.layer, *row.cells) for row in largest]
        title = f"{self.name}: {self.macs:,} MACs, {self.parameters:,} parameters in {self.layer_count:,} layers"
        return Table([*columns("operation: type; layer: layer"), *LayerCost.cost_columns], rows).in_notebook(title)

    def operations_table(self) -> Table:
        """Return the layers of each operation, and in a report their cost."""
        costs, none = {group.name: group.cells for group in by_type(self.layers)}, (None,) * len(LayerCost.cost_columns)
        rows = [(name, n, n / self.layer_count, *costs.get(name, none)) for name, n in self.operations.items()]
        more = [replace(column, only="reports") for column in LayerCost.cost_columns]
        return Table([*columns("operation: type; layers: count; share: share in reports"), *more], rows)

    def constants_table(self) -> Table:
        """Return the constants of each element type."""
        rows = [(name, name, p.tensors, p.elements, p.bytes) for name, p in self.constants.items()]
        heads = "parameters: text in texts; element type: text in reports; tensors: count; elements: count; "
        return Table(columns(heads + "stored as: bytes"), rows, empty="The model has no constants.")

    def states_table(self) -> Table:
        """Return the variables, with the bytes that they take."""
        rows = [(s.name, s.read, s.assigned, s.bytes, s.step_bytes) for s in self.states]
        return Table(columns("state: name; type: tensor; after a call: tensor; bytes: bytes; per step: bytes"), rows)

    def info_table(self) -> Table:
        """Return the texts of the section ``model_info``."""
        return Table(columns("model_info: name; value: list 3"), self.model_info)


def ports_table(kind: str, ports: Sequence[Port]) -> Table:
    """Return the names and types of ``inputs`` or ``outputs``."""
    others = [", ".join(sorted(port.names - {port.any_name})) for port in ports]
    rows = [(p.any_name, p.layer, p.element_type, p.shape, other) for p, other in zip(ports, others, strict=True)]
    heads = columns(f"{kind}: name; layer: layer in reports; type: text; shape: tensor; other names: names")
    return Table(heads, rows, empty=f"The model has no {kind}.")


def _texts(info: Any, before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in info.items() if isinstance(info, dict) else ():
        if isinstance(value, str):
            yield f"{before}{key}", value
        else:
            yield from _texts(value, f"{before}{key}/")


def summarize(
    model: Model | str | os.PathLike[str],
    shapes: Mapping[Any, ShapeLike] | ShapeLike | None = None,
    *,
    weights: str | None = None,
    state_length: int | None = None,
) -> Summary:
    """Return the numbers of a model, or of the file at a path, and the cost of each layer in a call of it.

    ``shapes`` are shapes of inputs, as ``Model.reshape`` takes them. For inputs that are dynamic nonetheless, sizes are
    chosen as for a run with random inputs; where none fit, the numbers that depend on them are not known.
    ``state_length`` is the length of variables that grow from call to call, such as caches of keys and values; without
    it, they have their initial values. ``weights`` is the path of the weights if it is not the .bin next to the model.

    Raises ReadError and ModelError for a file that cannot be read or is wrong, and ModelError for shapes that a layer
    refuses.
    """
    if not isinstance(model, Model):
        model = read_model(model, weights)
    if shapes is not None:
        model = model.clone()
        model.reshape(shapes)
    require_counts(state_length=state_length)
    layers, call, unsized = list(model.walk()), call_of(model), None
    if not model.needs_inference:  # after an error of inference, no sizes fit
        try:
            call = sized_call(model, state_length)
        except ModelError as error:
            if state_length is not None:
                raise
            unsized = error.diagnostic.message
    return Summary(
        name=model.name,
        path=model.path,
        ir_version=model.version,
        inputs=model.inputs,
        outputs=model.outputs,
        costs=costs_of(model, call.model),
        sizes=call.sizes,
        unsized=unsized,
        sized=call.model,
        layer_count=len(layers),
        operations=dict(Counter(layer.type for layer in layers).most_common()),
        opsets=sorted({layer.version for layer in layers}, key=lambda v: (len(v), v)),
        constants=_constants_by_type(layers),
        weights_bytes=_covered_bytes(layers),
        file_bytes=_file_size(model.path, weights),
        states=call.states,
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


def _constants_by_type(layers: Iterable[Layer]) -> dict[str, ConstantTotals]:
    totals: dict[str, ConstantTotals] = {}
    for layer in layers:
        if isinstance(const := layer.operator, Const):
            entry = totals.setdefault(str(const.element_type), ConstantTotals())
            entry.tensors += 1
            entry.elements += prod(const.shape)
            entry.bytes += stored_bytes(layer)
    return dict(sorted(totals.items(), key=lambda item: -item[1].bytes))


def _covered_bytes(layers: Iterable[Layer]) -> int:
    """Return the size of the union of all constants' byte ranges."""
    consts = (layer.operator for layer in layers if isinstance(layer.operator, Const))
    covered, end = 0, 0
    for start, stop in sorted((c.offset, c.offset + c.size) for c in consts):
        covered += max(stop - max(start, end), 0)
        end = max(end, stop)
    return covered


def _file_size(path: str | None, weights: str | None) -> int | None:
    if weights is None and path is None:
        return None
    file = Path(weights) if weights is not None else Path(str(path)).with_suffix(".bin")
    return file.stat().st_size if file.is_file() else None


# --------------------------------------------------------------------------- provenance


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
