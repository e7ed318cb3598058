"""What a model derives from its connections, and long chains of layers."""

from typing import Any

from ovir.model import Model
from support.builder import Net


def derived_of(model: Model) -> Any:
    """All that is derived from connections, by ids."""
    graph = model.graph
    return (
        [layer.id for layer in model.layers],
        model.edges,
        [port.layer.id for port in model.inputs],
        [port.layer.id for port in model.outputs],
        {layer.id for layer in model.layers if layer.is_dead},
        list(graph.nodes),
        sorted(
            (a, b, key, data["from_port"], data["to_port"]) for a, b, key, data in graph.edges(keys=True, data=True)
        ),
        [sorted(port.names) for port in model.outputs],
    )


def chain(length: int) -> Model:
    net = Net()
    x = net.parameter("x", "2")
    for _ in range(length):
        x = net.op("ReLU", x)
    net.result(x)
    return net.model()
