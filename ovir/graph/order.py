"""The orders of layers: the topological order with the algorithms around it, the order of the file, and ranks.

An Assign must run after the ReadValues of its variable although no edge connects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from ovir.diagnostics.codes import CYCLE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError
from ovir.graph.layers import Layer, Port, layers_after, layers_before, path_text

Followers = Callable[[Layer], Iterable[Layer]]


def is_ordered(layers: Iterable[Layer]) -> bool:
    """Return whether every layer comes after the layers that feed it."""
    seen: set[Layer] = set()
    for layer in layers:
        for port in layer.inputs:
            source = port._source
            if source is not None and source.layer not in seen:
                return False
        seen.add(layer)
    return True


def topological_order(layers: list[Layer]) -> list[Layer]:
    """Return the layers in topological order; raise ModelError, which names the cycle, if they form one.

    The result is the given list itself if that is ordered. Otherwise each layer comes as early as its place in the
    given list and its sources allow.
    """
    by_state = state_followers(layers)
    is_in_order = is_ordered(layers)
    if is_in_order and not by_state:
        return layers
    position = {layer: i for i, layer in enumerate(layers)}
    pairs = ((reader, assign) for reader, assigns in by_state.items() for assign in assigns)
    if is_in_order and all(position[reader] < position[assign] for reader, assign in pairs):
        return layers
    waiting_for = [sum(port.source is not None for port in layer.inputs) for layer in layers]
    for assigns in by_state.values():
        for assign in assigns:
            waiting_for[position[assign]] += 1
    ready = [i for i, count in enumerate(waiting_for) if not count]
    heapify(ready)
    order: list[Layer] = []
    while ready:
        layer = layers[heappop(ready)]
        order.append(layer)
        for follower in followers(layer, by_state):
            place = position[follower]
            waiting_for[place] -= 1
            if not waiting_for[place]:
                heappush(ready, place)
    if len(order) < len(layers):
        raise _cycle_error(layers, set(order), by_state)
    return order


def state_followers(layers: Iterable[Layer]) -> dict[Layer, list[Layer]]:
    """Return the Assigns of its variable for each ReadValue."""
    readers: dict[Any, list[Layer]] = {}
    assigns: list[Layer] = []
    for layer in layers:
        if layer.type == "ReadValue":
            readers.setdefault(layer.attributes.get("variable_id"), []).append(layer)
        elif layer.type == "Assign":
            assigns.append(layer)
    found: dict[Layer, list[Layer]] = {}
    for assign in assigns:
        for reader in readers.get(assign.attributes.get("variable_id"), ()):
            found.setdefault(reader, []).append(assign)
    return found


def followers(layer: Layer, by_state: dict[Layer, list[Layer]]) -> Iterator[Layer]:
    """Yield the layers that must come after a layer: one for each input that it feeds, and the Assigns of its
    variable."""
    for port in layer.outputs:
        for reader in port.readers:
            yield reader.layer
    yield from by_state.get(layer, ())


def find_path(starts: Iterable[Layer], end: Layer, next_of: Followers) -> list[Layer] | None:
    """Return a shortest path from any of ``starts`` to ``end``, including both ends; None if there is none."""
    came_from: dict[Layer, Layer | None] = dict.fromkeys(starts)
    frontier = list(came_from)
    while frontier and end not in came_from:
        behind: list[Layer] = []
        for layer in frontier:
            for follower in next_of(layer):
                if follower not in came_from:
                    came_from[follower] = layer
                    behind.append(follower)
        frontier = behind
    if end not in came_from:
        return None
    path: list[Layer] = []
    step: Layer | None = end
    while step is not None:
        path.append(step)
        step = came_from[step]
    return path[::-1]


def trace_back(ends: Iterable[Layer], enters: Callable[[Port], bool]) -> tuple[dict[Layer, None], dict[Port, None]]:
    """Return the layers that ``ends`` are computed from, ``ends`` included, and the tensors at which the search stops.

    ``enters`` is called with each tensor that such a layer reads, and returns whether the search goes on to its layer.
    """
    reached, border = dict.fromkeys(ends), dict[Port, None]()
    pending = list(reached)
    for layer in pending:  # which grows
        for port in layer.inputs:
            source = port.source
            if source is None:
                continue
            if not enters(source):
                border[source] = None
            elif source.layer not in reached:
                reached[source.layer] = None
                pending.append(source.layer)
    return reached, border


def walk(layers: Iterable[Layer]) -> Iterator[Layer]:
    """Yield layers, each followed by those of its bodies."""
    for layer in layers:
        yield layer
        for body in layer.bodies.values():
            yield from walk(body.layers)


def dead_layers(layers: Iterable[Layer]) -> set[Layer]:
    """Return the layers that no Result and no Assign depends on; a Parameter is never dead.

    A model without Results and Assigns has no dead layers, because nothing says which layers matter.
    """
    everything = list(layers)
    ends = [layer for layer in everything if layer.type in ("Result", "Assign")]
    if not ends:
        return set()
    alive, _ = trace_back(ends, lambda _: True)
    return {layer for layer in everything if layer not in alive and layer.type != "Parameter"}


def _cycle_error(layers: Sequence[Layer], done: set[Layer], by_state: dict[Layer, list[Layer]]) -> ModelError:
    """Return the error that names a cycle among the layers that are not in ``done``."""
    import networkx as nx  # valid models do not need it

    waiting = [layer for layer in layers if layer not in done]
    graph: nx.DiGraph[Layer] = nx.DiGraph()
    graph.add_edges_from((layer, follower) for layer in waiting for follower in followers(layer, by_state))
    cycle = [layer for layer, *_ in nx.find_cycle(graph)]
    first = min(cycle, key=lambda layer: layer.line or 0)
    at = cycle.index(first)
    cycle = [*cycle[at:], *cycle[:at], first]
    return ModelError(diagnose(CYCLE, f"these layers depend on each other: {path_text(cycle)}", first.place))


# --------------------------------------------------------------------------- the order of the file


class FileOrder:
    """Layers in the order of the file.

    An edit is only recorded; the next access to ``layers`` carries out all of them in one pass. So a sequence of edits
    takes time in proportion to their number, not to the number of layers each.
    """

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._layers = list(layers)
        self._after: dict[Layer, list[Layer]] = {}
        """The layers inserted after a layer, the nearest one last."""
        self._removed: set[Layer] = set()

    @property
    def layers(self) -> list[Layer]:
        """Return the layers in order; the list must not be changed."""
        if self._after or self._removed:
            result: list[Layer] = []
            for first in self._layers:
                pending = [first]
                while pending:
                    layer = pending.pop()
                    if layer not in self._removed:
                        result.append(layer)
                    pending.extend(self._after.get(layer, ()))
            self._layers = result
            self._after = {}
            self._removed = set()
        return self._layers

    def append(self, layer: Layer) -> None:
        """Add a layer after all others."""
        self.layers.append(layer)

    def insert(self, layer: Layer, before: Layer) -> None:
        """Insert a layer directly after the layer ``before``."""
        if layer in self._removed:
            self._layers = self.layers
        self._after.setdefault(before, []).append(layer)

    def remove(self, layer: Layer) -> None:
        self._removed.add(layer)


# --------------------------------------------------------------------------- ranks

NARROW, WIDE = 1 << 60, 1 << 600
"""Differences of the ranks of successive layers; a wide one has room for more edits, but takes more memory."""


class Ranks:
    """The rank of each layer is above the ranks of the layers that feed it; unrelated layers may have equal ranks.

    Edits keep the ranks up to date: a layer gets a rank between those around it. Only if there is none, all ranks have
    to be made anew.
    """

    def __init__(self, order: Sequence[Layer], gap: int) -> None:
        """Set the ranks of layers that are in topological order."""
        self._gap = gap
        self._ranks = {layer: i * gap for i, layer in enumerate(order, 1)}
        self.only_edges = not any(
            layer.type == "Assign" and any(port.readers for port in layer.outputs) for layer in order
        )
        """Whether no path leads through the state, that is from a ReadValue through the Assign of its variable."""

    def place(self, layer: Layer) -> bool:
        """Give a layer a rank that suits its connections; return False if there is none."""
        sources = [self._ranks[port.source.layer] for port in layer.inputs if port.source is not None]
        readers = [self._ranks[reader.layer] for port in layer.outputs for reader in port.readers]
        if not sources:  # it goes to the front, so that the layers that will read it come after it
            self._ranks[layer] = min([0, *(rank - 1 for rank in readers)])
            return True
        low = max(sources)
        high = min(readers, default=low + 2 * self._gap)
        if high - low < 2:
            return False
        self._ranks[layer] = (low + high) // 2
        return True

    def remove(self, layer: Layer) -> None:
        del self._ranks[layer]

    def backward(self, source: Layer, targets: Iterable[Layer]) -> list[Layer]:
        """Return the targets that are not ranked above ``source``."""
        limit = self._ranks[source]
        return [layer for layer in targets if self._ranks[layer] <= limit]

    def may_reach(self, starts: Sequence[Layer], end: Layer) -> bool:
        """Return whether a path leads from any of ``starts`` to ``end``.

        The search begins at both sides and stops when one of them has nowhere left to go, because most edits connect a
        layer with few others around it.
        """
        ahead, behind = set(starts), {end}
        if end in ahead:
            return True
        lowest, highest = min(self._ranks[layer] for layer in starts), self._ranks[end]
        forward = self._walk(list(ahead), ahead, highest, is_forward=True)
        backward = self._walk([end], behind, lowest, is_forward=False)
        return any(one in behind or other in ahead for one, other in zip(forward, backward, strict=False))

    def _walk(self, pending: list[Layer], seen: set[Layer], limit: int, *, is_forward: bool) -> Iterator[Layer]:
        """Yield the other end of each edge that is met, and add the layers there to ``seen``."""
        while pending:
            layer = pending.pop()
            for other in layers_after(layer) if is_forward else layers_before(layer):
                rank = self._ranks[other]
                if other not in seen and (rank <= limit if is_forward else rank >= limit):
                    seen.add(other)
                    pending.append(other)
                yield other


def dependents(starts: Iterable[Layer]) -> set[Layer]:
    """Return the layers that read tensors of these layers, directly or through others, with the layers of bodies."""
    pending = list(starts)
    found: set[Layer] = set()
    while pending:
        for port in pending.pop().outputs:
            for layer in {reader.layer for reader in port.readers} - found:
                found.update(walk([layer]))
                pending.append(layer)
    return found
