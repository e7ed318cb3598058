"""Orders, paths and parts of graphs, compared with networkx and with definitions."""

import networkx as nx
import numpy as np
import pytest
from support.bodies import conditional
from support.edited import layer, operation

import ovir
from ovir.graph.layers import Layer, join, path_text
from ovir.graph.order import (
    dead_layers,
    dependents,
    find_path,
    followers,
    is_ordered,
    state_followers,
    topological_order,
    trace_back,
)

Graph = tuple[list[Layer], "nx.DiGraph[Layer]"]


def random_graph(seed: int) -> Graph:
    """Return layers in a random order, and their edges, with those from a ReadValue to an Assign of its variable."""
    rng = np.random.default_rng(seed)
    kinds = ["Parameter", "ReLU", "Concat", "Concat", "ReadValue", "Assign", "Result"]
    made: list[Layer] = []
    graph: nx.DiGraph[Layer] = nx.DiGraph()
    for number in range(14):
        kind = kinds[rng.integers(len(kinds))]
        inputs, outputs = {"Parameter": 0, "Concat": 2}.get(kind, 1), int(kind != "Result")
        new = layer(f"l{number}", operation("ReLU"), inputs, number, outputs)
        new.type, new.attributes = kind, {"variable_id": f"v{rng.integers(2)}"}
        graph.add_node(new)
        for port in new.inputs:
            sources = [other for other in made if other.outputs]
            if sources and rng.random() < 0.9:
                source = sources[rng.integers(len(sources))]
                join(source.outputs[0], port)
                graph.add_edge(source, new)
        made.append(new)
    for read in made:
        for assign in made:
            if (read.type, assign.type) == ("ReadValue", "Assign") and read.attributes == assign.attributes:
                graph.add_edge(read, assign)
    return [made[i] for i in rng.permutation(len(made))], graph


SEEDS = pytest.mark.parametrize("seed", range(60))


@SEEDS
def test_each_layer_comes_as_early_as_its_sources_and_its_place_allow(seed: int) -> None:
    layers, graph = random_graph(seed)
    by_state = state_followers(layers)
    for one in layers:
        assert set(followers(one, by_state)) == set(graph.successors(one))
    if not nx.is_directed_acyclic_graph(graph):
        with pytest.raises(ovir.ModelError, match="these layers depend on each other: "):
            topological_order(layers)
        return
    place = {one: i for i, one in enumerate(layers)}
    expected = list(nx.lexicographical_topological_sort(graph, key=place.__getitem__))
    found = topological_order(layers)
    assert found == expected
    assert (found is layers) == (expected == layers)
    assert topological_order(found) is found
    only_edges = graph.copy()
    only_edges.remove_edges_from([(a, b) for a, b in graph.edges if b not in [r.layer for r in _readers(a)]])
    assert is_ordered(layers) == all(place[a] < place[b] for a, b in only_edges.edges)


def _readers(one: Layer) -> list[ovir.Port]:
    return [reader for port in one.outputs for reader in port.readers]


@SEEDS
def test_paths_and_parts(seed: int) -> None:
    layers, graph = random_graph(seed)
    by_state = state_followers(layers)
    for one in layers[:4]:
        for other in layers[4:8]:
            path = find_path([one], other, lambda item: followers(item, by_state))
            assert (path is not None) == nx.has_path(graph, one, other)
            if path is not None:
                assert (path[0], path[-1]) == (one, other)
                assert nx.is_path(graph, path)
                assert len(path) == nx.shortest_path_length(graph, one, other) + 1
    edges = nx.DiGraph([(one, reader.layer) for one in layers for reader in _readers(one)])
    edges.add_nodes_from(layers)
    ends = [one for one in layers if one.type in ("Result", "Assign")]
    behind, before = set[Layer](), set(ends)
    for one in layers[:3]:
        behind |= nx.descendants(edges, one)
    for one in ends:
        before |= nx.ancestors(edges, one)
    assert dependents(layers[:3]) == behind
    assert dead_layers(layers) == {one for one in layers if ends and one not in before and one.type != "Parameter"}
    cut = [one.outputs[0] for one in layers[::3] if one.outputs]
    found, border = trace_back(ends, lambda port: port not in cut)
    edges.remove_edges_from([(port.layer, reader.layer) for port in cut for reader in port.readers])
    assert found.keys() == set(ends).union(*(nx.ancestors(edges, one) for one in ends))
    assert border.keys() == {port for port in cut if any(reader.layer in found for reader in port.readers)}


def test_what_depends_on_a_layer_includes_bodies() -> None:
    model = conditional()
    found = dependents([model.inputs[0].layer])
    assert found == {one for one in model.walk() if one.key not in ("x", "chosen")}


def test_the_cycle_of_a_file_is_named_from_its_first_line() -> None:
    layers = [layer(name, operation("ReLU"), 1, number) for number, name in enumerate("abcd")]
    for number, (source, target) in enumerate(((0, 1), (1, 2), (2, 0), (2, 3))):
        join(layers[source].outputs[0], layers[target].inputs[0])
        layers[number].line = 10 - number
    with pytest.raises(ovir.ModelError, match=r"depend on each other: 2 'c' -> 0 'a' -> 1 'b' -> 2 'c'$") as caught:
        topological_order(layers)
    assert caught.value.diagnostic.line == 8


@pytest.mark.parametrize("count", [1, 20, 21, 30])
def test_long_paths_are_shortened(count: int) -> None:
    shown = [f"{number} 'l{number}'" for number in range(count)]
    if count > 20:
        shown[10:-10] = [f"({count - 20} more)"]
    layers = [layer(f"l{number}", operation("ReLU"), 1, number) for number in range(count)]
    assert path_text(layers) == " -> ".join(shown)
