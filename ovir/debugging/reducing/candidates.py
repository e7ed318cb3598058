"""Smaller models made of a stage: without some layers, past some layers, with fewer outputs or inputs, or one body.

Each function returns None where there is no such model, and raises OvirError where inference refuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.debugging.reducing.stage import Stage
from ovir.diagnostics.errors import OvirError
from ovir.editing.constant_edits import as_constant, put_constant
from ovir.editing.transaction import owner_of
from ovir.graph.layers import Layer, Port
from ovir.model import Model

LayerPath = tuple[int | str, ...]
"""The ids and names of bodies that lead to a layer: ``(7,)``, or ``(7, "body", 3)``. Candidates keep them."""

_ENDS = ("Parameter", "Result", "Const", "Assign")
"""Types of layers that are not counted: they come and go with the layers that they serve."""


class Fill(StrEnum):
    """What takes the place of tensors whose layers are removed.

    Tensors that inference knows, or that follow from constants, become constants in any case.
    """

    PARAMETERS = "parameters"
    MIXED = "mixed"
    """Constants for indices, shapes and the like; Parameters for real numbers."""
    CONSTANTS = "constants"
    """All inputs of the model remain, although nothing may read them, because the check may feed them."""


def layers_of(stage: Stage) -> list[int]:
    """Return the ids of the layers that compute something from inputs or states, in topological order."""
    fixed = stage.constant_layers
    return [layer.id for layer in stage.model.layers if layer.type not in _ENDS and layer.id not in fixed]


def constant_layers_of(stage: Stage) -> list[int]:
    """Return the ids of the layers, without Consts, that are computed from constants alone."""
    fixed = stage.constant_layers
    return [layer.id for layer in stage.model.layers if layer.type not in _ENDS and layer.id in fixed]


def count(model: Model) -> int:
    """Return the number of layers, layers of bodies included, without Parameters, Results, Consts and Assigns."""
    return sum(layer.type not in _ENDS for layer in model.walk())


# --------------------------------------------------------------------------- parts


def without(stage: Stage, removed: Collection[int], fill: Fill = Fill.PARAMETERS) -> Stage | None:
    """Return the part of a model without some layers; all tensors that only they have read are outputs."""
    kept = _kept(stage, removed)
    if not kept:
        return None
    inputs = _own_inputs(stage.model, kept, everything=fill is Fill.CONSTANTS)
    own = len(inputs)
    inputs += dict.fromkeys(
        source for port in _inputs(_with_constants(stage, kept, removed)) if (source := _cut(port, removed)) is not None
    )
    part = stage.model.extract(inputs=inputs, outputs=_open_ends(kept))
    if count(part) >= count(stage.model):  # an Assign has brought back what it depends on
        return None
    constants = [i for i in range(own, len(inputs)) if _becomes_constant(stage, inputs[i], fill)]
    if constants and not _fix(stage, part, {i: inputs[i] for i in constants}):
        return None
    return Stage(part, stage, [port for i, port in enumerate(inputs) if i not in constants])


def _kept(stage: Stage, removed: Collection[int]) -> list[Layer]:
    """Return the layers whose tensors a part is to compute; constants follow them."""
    left = [layer for layer in stage.model.layers if layer.type not in _ENDS and layer.id not in removed]
    return [layer for layer in left if layer.id not in stage.constant_layers] or left


def _with_constants(stage: Stage, kept: Sequence[Layer], removed: Collection[int]) -> list[Layer]:
    """Return the layers with those that compute their inputs from constants and are not removed."""
    found = dict.fromkeys(kept)
    pending = list(kept)
    while pending:
        for port in pending.pop().inputs:
            layer = port.source.layer if port.source is not None else None
            if layer is None or layer in found or layer.id in removed:
                continue
            if layer.id in stage.constant_layers:
                found[layer] = None
                pending.append(layer)
    return list(found)


def _inputs(layers: Sequence[Layer]) -> Iterator[Port]:
    return (port for layer in layers for port in layer.inputs)


def _cut(port: Port, removed: Collection[int]) -> Port | None:
    """Return the tensor that an input reads if its layer is removed."""
    return port.source if port.source is not None and port.source.layer.id in removed else None


def _own_inputs(model: Model, kept: Sequence[Layer], *, everything: bool) -> list[Port]:
    if everything:
        return list(model.inputs)
    read = {port.source for port in _inputs(kept)}
    return [port for port in model.inputs if port in read]


def _open_ends(kept: Sequence[Layer]) -> list[Port]:
    """Return the tensors that a layer outside reads, or nothing, if nothing reads any output of the layer."""
    among = set(kept)
    found: list[Port] = []
    for layer in kept:
        read = [port for port in layer.outputs if any(reader.layer not in among for reader in port.readers)]
        is_read = any(port.readers for port in layer.outputs)
        found += read if is_read else layer.outputs[:1]
    return found


def _becomes_constant(stage: Stage, port: Port, fill: Fill) -> bool:
    if port.layer.id in stage.constant_layers or port.type.constant is not None:
        return True
    return fill is Fill.CONSTANTS or (fill is Fill.MIXED and not port.element_type.is_real)


def _fix(stage: Stage, part: Model, sources: dict[int, Port]) -> bool:
    """Replace inputs of a part by the values that their tensors have; return False if they cannot be replaced.

    A constant with NaN or infinity would hide the layer that makes it.
    """
    ports = [part.inputs[i] for i in sources]
    known = {source: array for source in sources.values() if (array := source.type.constant) is not None}
    others = [source for source in sources.values() if source not in known]
    known |= dict(zip(others, stage.values(others), strict=True))
    with part.editing():
        for port, source in zip(ports, sources.values(), strict=True):
            operator = as_constant(source, known[source])
            if operator is None or (source.element_type.is_real and not np.isfinite(as_numbers(known[source])).all()):
                return False
            put_constant(port.layer, operator)
    return True


def with_outputs(stage: Stage, removed: Collection[int]) -> Stage | None:
    """Return the model without some outputs, given by the ids of their Results; all inputs remain."""
    model = stage.model
    wanted = dict.fromkeys(port.source for port in model.outputs if port.layer.id not in removed)
    tensors = [port for port in wanted if port is not None]
    if not tensors:
        return None
    return Stage(model.extract(inputs=list(model.inputs), outputs=tensors), stage, model.inputs)


def without_inputs(stage: Stage, removed: Collection[int]) -> Stage | None:
    """Return the model without some inputs that nothing reads, given by the ids of their layers."""
    model = stage.model.clone()
    with model.editing():
        for number in removed:
            model.remove_layer(model.layer(number))
    return Stage(model, stage, [port for port in stage.model.inputs if port.layer.id not in removed])


def bodies(stage: Stage) -> Iterator[Stage]:
    """Yield the bodies of layers as models."""
    for layer in stage.model.layers:
        for body in layer.bodies.values():
            outputs = dict.fromkeys(port.source for port in body.outputs if port.source is not None)
            with suppress(OvirError):  # such as a body that returns constants alone
                yield Stage(stage.model.extract(outputs=list(outputs)), stage)


# --------------------------------------------------------------------------- past layers


def paths(stage: Stage) -> list[LayerPath]:
    """Return the paths of the layers that have an input of the same type as an output, layers of bodies included."""
    return [path for path, layer in _walk(stage.model) if any(_same_type(layer, port) for port in layer.outputs)]


def past(stage: Stage, bypassed: Collection[LayerPath], *, shortest: bool) -> Stage | None:
    """Return the model in which the readers of layers read an input of the same type instead.

    Of several such inputs, ``shortest`` chooses the one that comes first in topological order, so that whole branches
    are left out; otherwise it is the one that comes last, so that branches remain and shortcuts are left out.
    """
    model = stage.model.clone()
    place = {layer: i for i, layer in enumerate(model.walk())}
    moved = False
    with model.editing():
        for path, layer in list(_walk(model)):
            if path in bypassed:
                moved |= _bypass(layer, place, shortest)
        if not moved:
            return None
        model.prune()
    return Stage(model, stage, stage.model.inputs)


def _walk(model: Model, start: LayerPath = ()) -> Iterator[tuple[LayerPath, Layer]]:
    for layer in model.layers:
        if layer.type not in _ENDS:
            yield (*start, layer.id), layer
        for name, body in layer.bodies.items():
            yield from _walk(body, (*start, layer.id, name))


def _same_type(layer: Layer, output: Port) -> list[Port]:
    """Return the tensors that a layer reads and that have the type of an output."""
    sources = dict.fromkeys(port.source for port in layer.inputs if port.source is not None)
    return [source for source in sources if source.type == output.type and source.layer.type != "Const"]


def _bypass(layer: Layer, place: Mapping[Layer, int], shortest: bool) -> bool:
    """Let the readers of a layer read one of its inputs; return whether that is possible for any output."""
    graph = owner_of(layer)
    moved = False
    for port in layer.outputs:
        found = sorted(_same_type(layer, port), key=lambda source: place[source.layer])
        if found and port.readers:
            source = found[0 if shortest else -1]
            if any(reader.layer.type == "Result" for reader in port.readers):
                source.own_names, port.own_names = source.own_names | port.own_names, frozenset()
            graph.move_readers(port, source)
            moved = True
    return moved
