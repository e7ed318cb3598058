"""The types of the arguments that name layers and tensors of a model, and functions that find these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, TypeAlias, TypeGuard, cast

from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError, NotFoundError
from ovir.diagnostics.wording import did_you_mean, plural
from ovir.editing.transaction import outermost, owner_of
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.names import tensor_names

LayerKey: TypeAlias = str | int | Layer
"""A layer, or its name, key or id."""
TensorKey: TypeAlias = str | Layer | Port | tuple[LayerKey, int]
"""The name of a tensor or a layer, a layer with the position of an output, or one of these objects."""
TensorKeys: TypeAlias = TensorKey | Iterable[TensorKey]
InputKey: TypeAlias = str | Layer | Port | tuple[LayerKey, int]
"""An input port, a layer with the position of an input, or a layer alone where that says which input is meant."""
InputKeys: TypeAlias = InputKey | Iterable[InputKey]


def find_layer(model: LayerGraph, key: LayerKey) -> Layer:
    """Return the layer of a model or its bodies with this name, key or id, or the layer itself."""
    if not isinstance(key, Layer):
        return model.layer(key)
    if key.owner is None or outermost(owner_of(key)) is not outermost(model):
        refuse("the layer is not in this model", key)
    return key


def find_tensors(model: LayerGraph, keys: TensorKeys, *, repeated: bool = False) -> list[Port]:
    """Return the output ports of tensors; a layer stands for all its outputs.

    Raises InputError for a tensor that is given twice unless ``repeated`` is True, and NotFoundError for one that does
    not exist.
    """
    names: dict[str, Port] = {}
    found: list[Port] = []
    seen: set[Port] = set()
    for key in cast("list[TensorKey]", _as_list(keys, "tensors", "names of tensors or layers", "output")):
        if isinstance(key, str) and not names:
            names = tensor_names(model)
        for port in _tensors_of(model, key, names):
            if port in seen and not repeated:
                refuse(f"tensor '{port.any_name}' is given twice", port.layer)
            seen.add(port)
            found.append(port)
    return found


def find_tensor(model: LayerGraph, key: TensorKey) -> Port:
    """Return the output port of one tensor; InputError for a layer with several outputs."""
    ports = _tensors_of(model, key, tensor_names(model) if isinstance(key, str) else {})
    if len(ports) != 1:
        layer = ports[0].layer
        refuse(f"the layer has {plural(len(ports), 'output')}: give one of them, as ({layer.name!r}, 0)", layer)
    return ports[0]


def _tensors_of(model: LayerGraph, key: TensorKey, names: Mapping[str, Port]) -> list[Port]:
    """Return the output ports that a key stands for: at least one. Tensor names come before names of layers."""
    if isinstance(key, Port):
        find_layer(model, key.layer)
        return [read_by(key)]
    if isinstance(key, Layer):
        return _outputs_of(find_layer(model, key))
    if _is_pair(key):
        layer = find_layer(model, key[0])
        return [_port(layer, _outputs_of(layer), key[1], "output")]
    if not isinstance(key, str):
        hint = "a tensor is given by its name, by the name of its layer, or as (layer, position of the output)"
        raise InputError.usage(f"expected a tensor, got {key!r}", Place(model.path), hint=hint)
    return [names[key]] if key in names else _outputs_of(layer_named(model, key) or refuse_unknown(model, key))


def find_input(model: LayerGraph, key: InputKey) -> Port:
    """Return an input port; a layer stands for its only input."""
    ports = _inputs_of(model, key)
    if len(ports) != 1:
        layer = find_layer(model, cast("LayerKey", key))
        hint = f"give one of them, as ({layer.name!r}, 0)" if ports else None
        refuse(f"the layer has {plural(len(ports), 'input')}, not one", layer, hint)
    return ports[0]


def find_readers(model: LayerGraph, source: Port, keys: InputKeys) -> list[Port]:
    """Return input ports that read a tensor; a layer stands for all of its inputs that do."""
    readers: dict[Port, None] = {}
    for key in _as_list(keys, "readers", "input ports or layers", "input"):
        ports = _inputs_of(model, cast("InputKey", key))
        reading = [port for port in ports if port.source is source]
        if not reading:
            layer = ports[0].layer if ports else find_layer(model, cast("LayerKey", key))
            what = f"input {ports[0].index} of this layer" if len(ports) == 1 else "the layer"
            refuse(f"{what} does not read {source.layer.title}", layer)
        readers |= dict.fromkeys(reading)
    return list(readers)


def _inputs_of(model: LayerGraph, key: InputKey) -> list[Port]:
    """Return the input port of a key, or all input ports of a layer."""
    if isinstance(key, Port):
        find_layer(model, key.layer)
        if key.is_output:
            refuse(f"expected an input port, got output {key.index} of this layer", key.layer)
        return [key]
    if not _is_pair(key):
        if not isinstance(key, (str, Layer)):
            hint = "an input is given as a port, as (layer, position of the input), or by the name of its layer"
            raise InputError.usage(f"expected an input, got {key!r}", Place(model.path), hint=hint)
        return list(find_layer(model, key).inputs)
    layer = find_layer(model, key[0])
    return [_port(layer, layer.inputs, key[1], "input")]


def _as_list(keys: object, kind: str, names: str, end: str) -> list[object]:
    if isinstance(keys, (str, Layer, Port)) or _is_pair(keys):
        return [keys]
    if not isinstance(keys, Iterable):
        hint = f"give {names}, or pairs of a layer and the position of its {end}"
        raise InputError.usage(f"expected {kind}, got {keys!r}", hint=hint)
    return list(keys)


def _is_pair(key: object) -> TypeGuard[tuple[LayerKey, int]]:
    """Return whether a key is a layer with the position of an output, and not a tuple of two names."""
    return isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], int) and not isinstance(key[1], bool)


def _outputs_of(layer: Layer) -> list[Port]:
    if layer.type == "Result" and layer.inputs:
        return [read_by(layer.inputs[0])]
    if not layer.outputs:
        refuse("the layer has no outputs", layer)
    return list(layer.outputs)


def _port(layer: Layer, ports: Sequence[Port], index: int, end: str) -> Port:
    if not 0 <= index < len(ports):
        message = f"the layer has no {end} {index}: it has {plural(len(ports), end)}, counted from 0"
        raise NotFoundError.usage(message, layer.place)
    return ports[index]


def read_by(port: Port) -> Port:
    """Return an output port; for an input port, the one that feeds it."""
    if port.is_output:
        return port
    if port.source is None:
        refuse(f"input {port.index} of this layer has no source", port.layer)
    return port.source


# --------------------------------------------------------------------------- names


def layer_named(model: LayerGraph, name: str) -> Layer | None:
    """Return the layer of a model or its bodies with this name or key; None if there is none."""
    try:
        return model.layer(name)
    except NotFoundError:
        return None


def refuse_unknown(model: LayerGraph, key: str) -> NoReturn:
    """Raise NotFoundError for a name that neither a tensor nor a layer has."""
    known = [*dict.fromkeys((*(layer.key for layer in model.walk()), *tensor_names(model)))]
    message = f"no tensor and no layer is named {key!r}"
    raise NotFoundError.usage(message, Place(model.path), hint=did_you_mean(key, known))


def refuse(message: str, layer: Layer | None = None, hint: str | None = None) -> NoReturn:
    """Raise InputError for arguments of an edit."""
    raise InputError.usage(message, None if layer is None else layer.place, hint=hint)
