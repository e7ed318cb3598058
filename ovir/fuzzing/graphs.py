"""Random graphs of 3 to 12 layers, which ovir can run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from ovir.diagnostics.errors import OvirError
from ovir.fuzzing.graph_recipes import RECIPES, Graph, Tensor, Unfit
from ovir.runtime.compiled import CompiledModel

MOST_ELEMENTS = 5000


def make_graph(seed: int) -> Graph:
    """Return a random graph that ovir can run, with Results for all ends and some tensors between."""
    rng = np.random.default_rng(seed)
    graph = Graph(rng)
    rank = graph.integer(1, 5)
    graph.parameter([graph.choose(1, 2, 3, 4, 6) for _ in range(rank)], graph.choose("f32", "f32", "f32", "f16", "i32"))
    recipes = [recipe for recipe, weight in RECIPES for _ in range(weight)]
    wanted = graph.integer(3, 12)
    for _ in range(4 * wanted):
        if _operations(graph) >= wanted:
            break
        _extend(graph, recipes[int(rng.integers(len(recipes)))])
    read = {source for source, _ in graph.edges()}
    results = [t for t in graph.tensors if t.end not in read or graph.chance(0.15)]
    for tensor in results:
        graph.net.result(tensor.end)
    _relax(graph)
    return graph


def _operations(graph: Graph) -> int:
    return sum(layer.kind not in ("Parameter", "Const") for layer in graph.layers)


def _extend(graph: Graph, recipe: Any) -> None:
    """Add a layer; leave the graph as it was if the recipe finds nothing or makes something too large."""
    net = graph.net
    before = len(net.layers), len(net.edges), len(net.blob), net.count, len(graph.tensors), len(graph.layers)
    fed = dict(graph.feeds)
    try:
        recipe(graph)
        first = next(i for i, tensor in enumerate(graph.tensors) if not tensor.type)
        new = _measured(graph, graph.tensors[first:])
        if any(not tensor.shape or 0 < np.prod(tensor.shape) <= MOST_ELEMENTS for tensor in new):
            graph.tensors[first:] = new
            return
    except Unfit:
        pass
    del net.layers[before[0] :], net.edges[before[1] :], net.blob[before[2] :], graph.tensors[before[4] :]
    del graph.layers[before[5] :]
    net.count, graph.feeds = before[3], fed


def _measured(graph: Graph, tensors: list[Tensor]) -> list[Tensor]:
    """Return the tensors with the shapes and types that they have in a run."""
    net = replace(graph.net, layers=list(graph.net.layers), edges=list(graph.net.edges))
    for tensor in tensors:
        net.result(tensor.end)
    try:
        model = net.model()
        arrays = list(CompiledModel(model)(graph.feeds).values())
    except OvirError:
        raise Unfit from None
    types = [str(port.element_type) for port in model.outputs]
    return [replace(t, shape=a.shape, type=e) for t, a, e in zip(tensors, arrays, types, strict=True)]


def _relax(graph: Graph) -> None:
    """Declare some sizes of the inputs as unknown."""
    for number, layer in enumerate(graph.net.layers):
        if 'type="Parameter"' in layer:
            sizes = re.search(r'shape="([^"]*)"', layer)
            assert sizes is not None
            declared = ",".join("?" if size and graph.chance(0.15) else size for size in sizes[1].split(","))
            graph.net.layers[number] = layer.replace(sizes[0], f'shape="{declared}"')
