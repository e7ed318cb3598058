"""Names of layers and tensors: free ones, default ones, names that two tensors share, and names of inputs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from ovir.core.json_fields import json_fields
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port

# --------------------------------------------------------------------------- free names


def free_name(wanted: str, taken: Container[str], first: int = 2) -> str:
    """Return the name; if it is taken, with the first number from ``first`` on that makes a free one: ``name_2``."""
    name, number = wanted, first
    while name in taken:
        name = f"{wanted}_{number}"
        number += 1
    return name


class TakenNames(set[str]):
    """Names that are never given back, so that no number is tried twice for a popular name."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__(names)
        self._next: dict[str, int] = {}

    def free_name(self, wanted: str, first: int) -> str:
        """Return ``free_name``."""
        name, number = wanted, self._next.get(wanted, first)
        while name in self:
            name = f"{wanted}_{number}"
            number += 1
        self._next[wanted] = number
        return name


def take_name(wanted: str, taken: set[str], first: int = 2) -> str:
    """Return ``free_name``, which is taken from now on."""
    name = taken.free_name(wanted, first) if isinstance(taken, TakenNames) else free_name(wanted, taken, first)
    taken.add(name)
    return name


# --------------------------------------------------------------------------- names of tensors


def default_name(port: Port) -> str:
    """Return the name of an output that has none: the name of its layer, numbered for the outputs after the first."""
    return f"{port.layer.name}.{port.index}" if port.index else port.layer.name


def tensor_names(model: LayerGraph) -> dict[str, Port]:
    """Return the output port of each tensor of a model and its bodies by its names.

    The name of a tensor in a body follows the names of the layers around it, as ``loop/body/name``.
    """
    found: dict[str, Port] = {}
    for graph in model.graphs():
        start = graph.scope.removeprefix(model.scope)
        for layer in graph.layers:
            for port in layer.outputs:
                for name in port.own_names:
                    found.setdefault(start + name, port)
        for port in graph.outputs:
            if port.source is not None:
                for name in port.own_names:
                    found.setdefault(start + name, port.source)
    return found


def legacy_name(port: Port) -> str:
    """Return the name of an output in version 10: the name of its layer, numbered if this has several outputs."""
    layer = port.layer
    return f"{layer.name}.{port.index}" if len(layer.outputs) > 1 else layer.name


def result_name(port: Port) -> str:
    """Return the name that OpenVINO gives to the Result of a tensor."""
    return f"{port.any_name}/sink_port_{port.index}"


def name_tensors(ports: Iterable[Port], taken: set[str]) -> None:
    """Give each tensor without a name its default name; ``taken`` has all names of tensors and gets the new ones."""
    for port in ports:
        if not port.own_names:
            port.own_names = frozenset({take_name(default_name(port), taken)})


def repeated_names(layers: Sequence[Layer]) -> Iterator[tuple[str, Port, Port]]:
    """Yield each name that another tensor has, with the port that has it first and the later one.

    The ports are outputs, in the order of the layers, and then the inputs of Results, which name what they read.
    """
    outputs = [port for layer in layers for port in layer.outputs]
    results = [port for layer in layers if layer.type == "Result" for port in layer.inputs]
    first: dict[str, Port] = {}
    for port in (*outputs, *results):
        for name in sorted(port.own_names):
            other = first.setdefault(name, port)
            if (other.source or other) is not (port.source or port):
                yield name, other, port


def own_tensor_names(layers: Iterable[Layer]) -> set[str]:
    """Return the names of all tensors of layers."""
    return {name for layer in layers for port in (*layer.inputs, *layer.outputs) for name in port.own_names}


def make_names_unique(layers: Sequence[Layer]) -> None:
    """Give repeated names a number, as OpenVINO does when it reads them: ``name_1``."""
    taken = own_tensor_names(layers)
    for name, _, port in list(repeated_names(layers)):
        port.own_names = port.own_names - {name} | {take_name(name, taken, 1)}


# --------------------------------------------------------------------------- names of inputs


def distinct_names(inputs: Sequence[Port]) -> list[str]:
    """Return a name for each input that stands for no other: a tensor name, or else the number of its position."""
    names: list[str] = []
    for i, port in enumerate(inputs):
        others = {name for k, other in enumerate(inputs) if k != i for name in (*other.names, other.layer.name)}
        own = [name for name in (port.any_name, *sorted(port.names), port.layer.name) if name and name not in others]
        names.append(own[0] if own else str(i))
    return names


def names_of_inputs(model: LayerGraph) -> set[str]:
    """Return all names that stand for inputs: those of tensors and of layers."""
    return {name for port in model.inputs for name in (*port.names, port.layer.name)}


def input_named(model: LayerGraph, name: str) -> int:
    """Return the position of an input, given by name or by the number of its position; raise NotFoundError."""
    is_number = name.isdecimal() and name not in names_of_inputs(model)
    return model.input_index(int(name) if is_number else name)


def port_as_json(port: Port) -> dict[str, Any]:
    """Return names and type of an input or output."""
    names = {"name": port.any_name, "names": sorted(port.names)}
    return names | json_fields(port, "layer=layer.name", "shape", "type=element_type")
