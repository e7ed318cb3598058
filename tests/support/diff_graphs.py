"""Small graphs that can be edited, and written as IR in any order, with any ids and names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

import ovir

UNARY = ("ReLU", "Sigmoid", "Tanh", "Exp", "Abs", "Negative", "Sin", "Cos")


@dataclass(eq=False)
class Node:
    """One layer."""

    name: str
    kind: str
    sources: list[tuple[Node, int]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    opset: int = 1
    array: np.ndarray[Any, Any] | None = None
    stored_as: str = ""
    """The element type of a constant."""
    outputs: int = 1
    tensor_names: str = ""
    rt_info: str = ""
    inside: str = ""


class Graph:
    """A graph whose nodes are added in topological order."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.name = "graph"
        self.rt_info = ""

    def add(self, kind: str, *sources: Node | tuple[Node, int], name: str | None = None, **options: Any) -> Node:
        """Add a node; ``options`` are fields of ``Node`` or, if there is no such field, attributes."""
        fields = {key: value for key, value in options.items() if key in Node.__dataclass_fields__}
        data = {key: value for key, value in options.items() if key not in fields}
        ends = [source if isinstance(source, tuple) else (source, 0) for source in sources]
        node = Node(name or f"{kind.lower()}{len(self.nodes)}", kind, ends, data, **fields)
        self.nodes.append(node)
        return node

    def parameter(self, name: str, shape: str = "2,8", element_type: str = "f32") -> Node:
        return self.add("Parameter", name=name, shape=shape, element_type=element_type, tensor_names=name)

    def const(self, array: Any, name: str | None = None, element_type: str | None = None) -> Node:
        array = np.asarray(array)
        kind = element_type or str(ovir.ElementType.from_dtype(array.dtype))
        return self.add("Const", name=name, array=array, stored_as=kind)

    def result(self, source: Node | tuple[Node, int], name: str | None = None) -> Node:
        return self.add("Result", source, name=name)

    def find(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def readers(self, node: Node) -> list[Node]:
        return [other for other in self.nodes if any(source is node for source, _ in other.sources)]

    def copy(self) -> Graph:
        return copy.deepcopy(self)

    # ----- edits

    def insert(self, reader: Node, index: int, kind: str, name: str, **options: Any) -> Node:
        """Insert a node before one input."""
        node = self.add(kind, reader.sources[index], name=name, **options)
        self.nodes.insert(self.nodes.index(reader), self.nodes.pop())
        reader.sources[index] = (node, 0)
        return node

    def remove(self, node: Node) -> None:
        """Remove a node; its readers read its first source."""
        for reader in self.readers(node):
            reader.sources = [node.sources[0] if end[0] is node else end for end in reader.sources]
        self.nodes.remove(node)

    # ----- writing

    def model(self, shuffle: Random | None = None, rename: Callable[[Node], str] | None = None) -> ovir.Model:
        xml, weights = self.written(shuffle, rename)
        return ovir.read_model(xml, weights)

    def written(
        self, shuffle: Random | None = None, rename: Callable[[Node], str] | None = None
    ) -> tuple[bytes, bytes]:
        """Return the .xml and the .bin; ``shuffle`` changes ids, the order of layers and edges, and that of the data."""
        nodes = list(self.nodes)
        if shuffle is not None:
            shuffle.shuffle(nodes)
            for kind in ("Parameter", "Result"):  # their order has a meaning
                places = [i for i, node in enumerate(nodes) if node.kind == kind]
                for place, node in zip(places, [n for n in self.nodes if n.kind == kind], strict=True):
                    nodes[place] = node
        ids = {node: i for i, node in enumerate(nodes)}
        if shuffle is not None:
            ids = dict(zip(nodes, shuffle.sample(range(10 * len(nodes)), len(nodes)), strict=True))
        blob = bytearray(b"\0" * (8 if shuffle is not None else 0))
        layers = [_layer(node, ids[node], rename(node) if rename else node.name, blob) for node in nodes]
        edges = [
            f'<edge from-layer="{ids[source]}" from-port="{len(source.sources) + port}" to-layer="{ids[node]}" to-port="{i}"/>'
            for node in nodes
            for i, (source, port) in enumerate(node.sources)
        ]
        if shuffle is not None:
            shuffle.shuffle(edges)
        body = ["<layers>", *layers, "</layers><edges>", *edges, "</edges>", f"<rt_info>{self.rt_info}</rt_info>"]
        return f'<net name="{self.name}" version="11">{"".join(body)}</net>'.encode(), bytes(blob)


def _layer(node: Node, number: int, name: str, blob: bytearray) -> str:
    data = dict(node.data)
    if node.array is not None:
        raw = node.array.astype(ovir.ElementType.parse(node.stored_as).to_dtype()).tobytes()
        shape = ",".join(map(str, node.array.shape))
        data = {"element_type": node.stored_as, "shape": shape, "offset": len(blob), "size": len(raw)}
        blob += raw
    texts = " ".join(f"{key}={quoteattr(str(value))}" for key, value in data.items())
    parts = [
        f'<layer id="{number}" name={quoteattr(name)} type="{node.kind}" version="opset{node.opset}"><data {texts}/>'
    ]
    if node.rt_info:
        parts.append(f"<rt_info>{node.rt_info}</rt_info>")
    if node.sources:
        ports = "".join(f'<port id="{i}" precision="UNSPECIFIED"/>' for i in range(len(node.sources)))
        parts.append(f"<input>{ports}</input>")
    if node.kind != "Result":
        first = len(node.sources)
        names = f' names="{node.tensor_names}"' if node.tensor_names else ""
        ports = "".join(
            f'<port id="{first + i}" precision="UNSPECIFIED"{names if not i else ""}/>' for i in range(node.outputs)
        )
        parts.append(f"<output>{ports}</output>")
    return "".join([*parts, node.inside, "</layer>"])


def network(blocks: int = 4, seed: int = 0) -> Graph:
    """Blocks of a product, a bias, an activation and a residual connection; constants differ from block to block."""
    graph, rng = Graph(), np.random.default_rng(seed)
    x = graph.parameter("data")
    for i in range(blocks):
        weights = graph.const(rng.standard_normal((8, 8)).astype(np.float32), f"block{i}/weights")
        product = graph.add("MatMul", x, weights, name=f"block{i}/product", transpose_a="false", transpose_b="false")
        bias = graph.const(rng.standard_normal((1, 8)).astype(np.float32), f"block{i}/bias")
        added = graph.add("Add", product, bias, name=f"block{i}/add", auto_broadcast="numpy")
        active = graph.add(UNARY[i % 2], added, name=f"block{i}/act", tensor_names=f"act{i}")
        x = graph.add("Add", active, x, name=f"block{i}/sum", auto_broadcast="numpy")
    graph.result(graph.add("SoftMax", x, name="probabilities", opset=8, axis=1), "out")
    return graph


def scrambled(graph: Graph, seed: int = 1) -> ovir.Model:
    """Return the model with other ids, names, and orders."""
    order = list(range(len(graph.nodes)))
    Random(seed).shuffle(order)
    numbers = dict(zip(graph.nodes, order, strict=True))
    return graph.model(Random(seed), lambda node: f"layer_{numbers[node]}")


def statuses(found: ovir.Diff) -> dict[str, list[str]]:
    """Return the names of the layers that differ, by status."""
    result: dict[str, list[str]] = {}
    for entry in found.layers:
        result.setdefault(entry.status, []).append(entry.layer.key)
    return {status: sorted(names) for status, names in result.items()}


def whats(found: ovir.Diff, names: Sequence[str] = ()) -> list[str]:
    """Return all changes as texts, or those of the named layers."""
    chosen = [entry for entry in found.layers if not names or entry.layer.key in names]
    return [str(change) for entry in chosen for change in entry.changes]
