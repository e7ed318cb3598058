"""Names of tensors, each of which should belong to one tensor of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovir.graph.layers import Layer, Port


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


def make_names_unique(layers: Sequence[Layer]) -> None:
    """Give repeated names a number, as OpenVINO does when it reads them: ``name_1``."""
    taken = {name for layer in layers for port in (*layer.outputs, *layer.inputs) for name in port.own_names}
    for name, _, port in list(repeated_names(layers)):
        number = 1
        while (new := f"{name}_{number}") in taken:
            number += 1
        taken.add(new)
        port.own_names = port.own_names - {name} | {new}
