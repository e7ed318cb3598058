"""Random graphs, edited at random: `ovir.diff` reports exactly the edits."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.diff_graphs import UNARY, Graph, Node, scrambled, statuses

import ovir

pytestmark = pytest.mark.slow


def random_graph(random: Random, size: int) -> Graph:
    """Return a graph of unary and binary operations, with constants that all differ; every layer is alive."""
    graph = Graph()
    tensors = [graph.parameter(f"input{i}") for i in range(random.randint(1, 3))]
    for i in range(size):
        kind = random.choice(("unary", "unary", "binary", "constant"))
        recent = tensors[-6:]
        if kind == "unary":
            tensors.append(graph.add(random.choice(UNARY), random.choice(recent), name=f"layer{i}"))
        elif kind == "binary":
            tensors.append(graph.add("Add", random.choice(recent), random.choice(recent), name=f"layer{i}"))
        else:
            value = graph.const(np.full((1, 8), random.random(), np.float32), f"constant{i}")
            tensors.append(graph.add("Multiply", random.choice(recent), value, name=f"layer{i}"))
    for i, tensor in enumerate([node for node in graph.nodes if not graph.readers(node)]):
        graph.result(tensor, f"result{i}")
    return graph


class Editor:
    """Edits a graph at places that are not next to each other, and notes what the comparison must find."""

    def __init__(self, graph: Graph, random: Random) -> None:
        self.graph = graph
        self.random = random
        self.expected: dict[str, list[str]] = {}
        self._touched: set[str] = set()
        self._count = 0

    def edit(self, kind: str) -> None:
        """Carry out one edit if there is a place for it."""
        nodes = [node for node in self.graph.nodes if self._is_free(node) and getattr(self, f"_can_{kind}")(node)]
        if not nodes:
            return
        node = self.random.choice(nodes)
        near = self._near(node)
        self._count += 1
        status = getattr(self, f"_{kind}")(node)
        self._touched |= {other.name for other in near} | {node.name}
        self.expected.setdefault(status[0], []).append(status[1])

    def _near(self, node: Node) -> list[Node]:
        return [node, *(source for source, _ in node.sources), *self.graph.readers(node)]

    def _is_free(self, node: Node) -> bool:
        return not self._touched & {other.name for other in self._near(node)}

    def _can_insert(self, node: Node) -> bool:
        return node.kind in (*UNARY, "Add", "Multiply")

    def _insert(self, node: Node) -> tuple[str, str]:
        name = f"new{self._count}"
        self.graph.insert(node, 0, "Floor", name)
        return "added", name

    def _can_remove(self, node: Node) -> bool:
        return node.kind in UNARY

    def _remove(self, node: Node) -> tuple[str, str]:
        self.graph.remove(node)
        return "removed", node.name

    _can_replace = _can_remove

    def _replace(self, node: Node) -> tuple[str, str]:
        node.kind = "Erf"
        return "replaced", node.name

    def _can_rename(self, node: Node) -> bool:
        return node.kind != "Result"

    def _rename(self, node: Node) -> tuple[str, str]:
        node.name = f"renamed{self._count}"
        return "changed", node.name

    def _can_value(self, node: Node) -> bool:
        return node.array is not None

    def _value(self, node: Node) -> tuple[str, str]:
        node.array = node.array + np.float32(1)
        return "changed", node.name

    def _can_rewire(self, node: Node) -> bool:
        """The old source must be read elsewhere, or it would be dead."""
        return node.kind == "Add" and len(self.graph.readers(node.sources[0][0])) > 1 and bool(self._others(node))

    def _others(self, node: Node) -> list[Node]:
        before = self.graph.nodes[: self.graph.nodes.index(node)]
        taken = [source for source, _ in node.sources]
        return [n for n in before if n.kind in (*UNARY, "Multiply") and n not in taken and self._is_free(n)]

    def _rewire(self, node: Node) -> tuple[str, str]:
        node.sources[0] = (self.random.choice(self._others(node)), 0)
        return "changed", node.name


EDITS = ("insert", "remove", "replace", "rename", "value")


def edited(graph: Graph, random: Random, kinds: list[str]) -> tuple[Graph, dict[str, list[str]]]:
    editor = Editor(graph.copy(), random)
    for kind in kinds:
        editor.edit(kind)
    return editor.graph, {status: sorted(names) for status, names in editor.expected.items()}


def numbers(found: ovir.Diff) -> dict[str, int]:
    return {status: len(names) for status, names in statuses(found).items()}


@settings(deadline=None, max_examples=40)
@given(
    st.randoms(use_true_random=False), st.integers(3, 60), st.lists(st.sampled_from(EDITS), max_size=6), st.booleans()
)
def test_exactly_the_edits_are_found(random: Any, size: int, kinds: list[str], rewire: bool) -> None:
    graph = random_graph(random, size)
    after, expected = edited(graph, random, [*kinds, *(["rewire"] if rewire else [])])
    first, second = graph.model(), after.model(Random(random.randint(0, 99)))
    found = ovir.diff(first, second)
    assert statuses(found) == expected
    assert not found.affected
    back = ovir.diff(second, first)
    mirrored = {{"added": "removed", "removed": "added"}.get(status, status): len(n) for status, n in expected.items()}
    assert numbers(back) == mirrored


@pytest.mark.parametrize("seed", [131, 946, 1108, 1288, 1317, 1555, 1681, 2135])
def test_many_edits_of_a_tiny_graph_are_found(seed: int) -> None:
    """Most layers have changed or have new neighbors, so that some look like others by chance, as in these graphs."""
    random = Random(seed)
    graph = random_graph(random, random.randint(3, 5))
    after, expected = edited(graph, random, [random.choice(EDITS) for _ in range(6)])
    assert statuses(ovir.diff(graph.model(), after.model(random))) == expected


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False), st.integers(3, 60))
def test_a_scrambled_copy_is_equal(random: Any, size: int) -> None:
    graph = random_graph(random, size)
    assert not ovir.diff(graph.model(), scrambled(graph, random.randint(0, 99)), ignore_names=True)


@pytest.mark.parametrize("kind", [kind for kind in EDITS if kind != "rename"])
def test_one_edit_of_a_scrambled_copy_is_nearly_always_found(kind: str) -> None:
    """Without names, layers that look alike may be taken for each other, so that more than the edit is reported."""
    exact = 0
    for seed in range(30):
        random = Random(seed)
        graph = random_graph(random, random.randint(3, 60))
        after, expected = edited(graph, random, [kind])
        found = ovir.diff(graph.model(), scrambled(after, seed), ignore_names=True)
        assert bool(found) == bool(expected)
        exact += numbers(found) == {status: len(names) for status, names in expected.items()}
    assert exact >= 27


@pytest.mark.parametrize("seed", range(3))
def test_two_unrelated_graphs_can_be_compared(seed: int) -> None:
    found = ovir.diff(random_graph(Random(seed), 40).model(), random_graph(Random(seed + 100), 30).model())
    assert found
    found.to_dict()
