"""Compares the connections of matched layers, and finds layers that were replaced or moved.

A connection that leads past a removed layer, or through an added one, has not changed by itself: the entry of that
layer explains it. The same holds for layers that have moved: they count as removed from one place and as added at the
other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ovir.analysis.matching import NONE, Matching
from ovir.analysis.signatures import Side

Source = tuple[int, int]
"""The number of a layer and the index of its output."""


@dataclass(frozen=True)
class ChangedInput:
    """An input that reads something else; None stands for an input that one of the layers does not have."""

    index: int
    old: Source | None
    new: Source | None


class Connections:
    """The connections that differ between two models whose layers are matched."""

    def __init__(self, matching: Matching) -> None:
        self.matching = matching
        self.a, self.b = matching.a, matching.b
        self._moved_a: set[int] = set()
        self._moved_b: set[int] = set()
        self.replaced = set(self._replacements())
        """Pairs of a removed layer and one that was added in its place; they are matched from now on."""
        for i, j in self.replaced:
            matching.to_b[i], matching.to_a[j] = j, i
        self.restored = {(i, j) for i, j in matching.pairs() if self._is_restored(i, j)}
        """Pairs of constants of which at least one is compressed in another way."""
        self.absorbed_a, self.absorbed_b = self._absorbed(self.a, 0), self._absorbed(self.b, 1)
        """The layers that decompress these."""
        self.moved: list[list[tuple[int, int]]] = []
        """The pairs of each subgraph that has moved."""
        if any(True for _ in self._broken()):
            self._find_moved()

    def changed_inputs(self, i: int, j: int) -> list[ChangedInput]:
        """Return the inputs of a pair that read something else, for which no other entry is an explanation."""
        if (i, j) in self.restored:
            return []
        old, new = self.a.sources[i], self.b.sources[j]
        if (i, j) in self.replaced:
            old, new = old[: len(new)], new[: len(old)]
        found = []
        for k in range(max(len(old), len(new))):
            first = old[k] if k < len(old) and old[k][0] >= 0 else None
            second = new[k] if k < len(new) and new[k][0] >= 0 else None
            if not self._is_kept(first, second):
                found.append(ChangedInput(k, first, second))
        return found

    def is_gone(self, i: int) -> bool:
        """Return whether a layer of the first model is no longer in its place."""
        return self.matching.to_b[i] == NONE or i in self._moved_a

    def is_new(self, j: int) -> bool:
        """Return whether a layer of the second model was not in its place before."""
        return self.matching.to_a[j] == NONE or j in self._moved_b

    def _is_kept(self, old: Source | None, new: Source | None) -> bool:
        """Return whether an input reads the same as before, or something that the entry of another layer explains."""
        if old is None or new is None:
            return (old is None or self.is_gone(old[0])) and (new is None or self.is_new(new[0]))
        if self.matching.to_b[old[0]] == new[0]:
            return old[1] == new[1]
        if self.is_new(new[0]):
            return not self._is_elsewhere(old, new)
        return self.is_gone(old[0]) and self._leads_back(old[0], new[0])

    def _is_elsewhere(self, old: Source, new: Source) -> bool:
        """Return whether a layer in its place now reads a layer that has moved, but not in between its old source."""
        if self.matching.to_a[new[0]] == NONE or self.is_gone(old[0]):
            return False
        return not self._passes_through(new[0], self.matching.to_b[old[0]])

    def _leads_back(self, start: int, end: int) -> bool:
        """Return whether layers that are gone, from ``start`` on, read the partner of ``end``."""
        wanted = self.matching.to_a[end]
        return wanted in _ends(self.a, start, self.is_gone)

    def _passes_through(self, start: int, end: int) -> bool:
        """Return whether new layers, from ``start`` on, read ``end``."""
        return end in _ends(self.b, start, self.is_new)

    # ----- replaced layers

    def _replacements(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of unmatched layers between the same layers: same source and same reader, or the same name."""
        to_b, to_a = self.matching.to_b, self.matching.to_a
        taken: set[int] = set()
        for i, partner in enumerate(to_b):
            if partner != NONE:
                continue
            votes: Counter[int] = Counter()
            sources = {to_b[source] for source, _ in self.a.sources[i] if source >= 0} - {NONE}
            for reader, k, _ in self.a.readers[i]:
                if to_b[reader] == NONE or k >= len(self.b.sources[to_b[reader]]):
                    continue
                j = self.b.sources[to_b[reader]][k][0]
                if j >= 0 and to_a[j] == NONE and self._is_replacement(i, j, sources):
                    votes[j] += 1
            best = next((j for j, _ in votes.most_common() if j not in taken), None)
            if best is not None:
                taken.add(best)
                yield i, best

    def _is_replacement(self, i: int, j: int, sources: set[int]) -> bool:
        near = {source for source, _ in self.b.sources[j]}
        if not self.a.sources[i] or not near:
            return not self.a.sources[i] and not near
        same_name = self.a.layers[i].name == self.b.layers[j].name
        return bool(near & sources) or same_name

    # ----- constants that are compressed in another way

    def _is_restored(self, i: int, j: int) -> bool:
        if not (self.a.is_weight[i] and self.b.is_weight[j]):
            return False
        if self.a.layers[i].type == self.b.layers[j].type == "Const":
            return False
        if self.a.layers[i].outputs[0].shape != self.b.layers[j].outputs[0].shape:
            return False
        return _chain(self.a, i) != _chain(self.b, j)

    def _absorbed(self, side: Side, position: int) -> set[int]:
        """Return the layers that only serve constants which are compared as a whole."""
        roots = {pair[position] for pair in self.restored}
        found: set[int] = set()
        pending = list(roots)
        while pending:
            for source, _ in side.sources[pending.pop()]:
                if source not in found and all(r in found or r in roots for r, *_ in side.readers[source]):
                    found.add(source)
                    pending.append(source)
        return found

    # ----- moved subgraphs

    def _broken(self) -> Iterator[tuple[int, int, ChangedInput]]:
        for i, j in self.matching.pairs():
            for changed in self.changed_inputs(i, j):
                yield i, j, changed

    def _find_moved(self) -> None:
        """Find the subgraphs that read something else and are read by others than before, the smallest ones first."""
        import networkx as nx  # importing it takes longer than most comparisons

        graph: nx.Graph[int] = nx.Graph()
        leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for i, j in self.matching.pairs():
            graph.add_node(i)
            changed = {item.index for item in self.changed_inputs(i, j)}
            for k, (source, _) in enumerate(self.a.sources[i]):
                if source < 0 or self.a.is_constant[source]:
                    continue
                if k in changed:
                    leaving[source].append((i, j))
                elif self.matching.to_b[source] != NONE:
                    graph.add_edge(source, i)
                else:
                    ends = _ends(self.a, source, self.is_gone)
                    graph.add_edges_from((end, i) for end in ends if not self.a.is_constant[end])
        parts = sorted(nx.connected_components(graph), key=lambda part: (len(part), min(part)))
        for part in parts[:-1]:
            pairs = [(i, self.matching.to_b[i]) for i in sorted(part)]
            if all(self.a.is_constant[i] for i in part):
                continue
            enters = any(
                item.old is None or item.old[0] not in part for pair in pairs for item in self.changed_inputs(*pair)
            )
            leaves = any(self._still_changed(i, other) for i in part for other in leaving[i] if other[0] not in part)
            if enters and leaves:
                self._moved_a.update(i for i, _ in pairs)
                self._moved_b.update(j for _, j in pairs)
                self.moved.append(pairs)
        self.moved.sort()

    def _still_changed(self, source: int, reader: tuple[int, int]) -> bool:
        return any(item.old is not None and item.old[0] == source for item in self.changed_inputs(*reader))


def _ends(side: Side, start: int, is_open: Callable[[int], bool]) -> set[int]:
    """Return the first layers that are not ``is_open`` on the ways back from ``start``."""
    found: set[int] = set()
    seen, pending = {start}, [start]
    while pending:
        layer = pending.pop()
        if not is_open(layer):
            found.add(layer)
            continue
        for source, _ in side.sources[layer]:
            if source >= 0 and source not in seen:
                seen.add(source)
                pending.append(source)
    return found


def _chain(side: Side, root: int) -> list[str]:
    """Return the types of the layers that decompress a constant, in a fixed order."""
    found: list[str] = []
    pending = [root]
    while pending and len(found) < _LONGEST:
        layer = pending.pop()
        found.append(side.layers[layer].type)
        pending.extend(source for source, _ in side.sources[layer])
    return found


_LONGEST = 100  # layers
