"""Divide a model into a few large parts that onnxruntime runs; NumPy runs what is between them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ovir.export.exporter import is_known_size
from ovir.graph.layers import Layer, Port
from ovir.inference.constant_layers import all_constant_layers
from ovir.model import Model
from ovir.ops.state import AssignBase, ReadValueBase

_ENDS = "Parameter", "Result"


@dataclass(frozen=True)
class Part:
    """Layers that run together. No path between two of them leaves the part."""

    layers: list[Layer]
    exported: list[Layer]
    """The layers and what they need of the layers that are computed from constants, in the order of the model."""
    inputs: list[Port]
    outputs: list[Port]


def find_parts(model: Model, excluded: Collection[Layer], shown: Collection[Port] = ()) -> list[Part]:
    """Return the parts of a model. ``excluded`` layers are in none; ``shown`` tensors become outputs.

    Each layer gets a stage: the stage of its latest source, or the next one if one of them runs in onnxruntime and the
    other in NumPy. All layers of a stage form one part, so that there are as many parts as a path changes sides.
    """
    constant = all_constant_layers(model)
    stages: dict[Layer, int] = {}
    parts: dict[int, list[Layer]] = {}
    for layer in model.layers:
        if layer in constant or layer.is_dead:
            continue
        stage = max((stages.get(port.source.layer, 0) for port in layer.inputs if port.source is not None), default=0)
        is_part = not _runs_in_numpy(layer) and layer not in excluded
        if stage % 2 != is_part:
            stage += 1
        stages[layer] = stage
        if is_part:
            parts.setdefault(stage, []).append(layer)
    own = constant - set(excluded)
    return [_part(model, parts[stage], own, shown) for stage in sorted(parts)]


def _runs_in_numpy(layer: Layer) -> bool:
    return layer.type in _ENDS or isinstance(layer.operator, (ReadValueBase, AssignBase))


def _part(model: Model, layers: list[Layer], constant: Collection[Layer], shown: Collection[Port]) -> Part:
    members = set(layers)
    pending = list(members)
    inputs: dict[Port, None] = {}
    while pending:
        for port in pending.pop().inputs:
            source = port.source
            if source is None or source.layer in members or is_known_size(source):
                continue
            if source.layer in constant:
                members.add(source.layer)
                pending.append(source.layer)
            else:
                inputs[source] = None
    outputs = [
        port
        for layer in layers
        for port in layer.outputs
        if port in shown or any(reader.layer not in members for reader in port.readers)
    ]
    return Part(layers, [layer for layer in model.layers if layer in members], list(inputs), outputs)
