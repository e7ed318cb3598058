"""Numbers of layers that increase along every edge, by which an edit recognizes that it closes no cycle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ovir.graph.layers import Layer

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
        if not sources:  # it goes to the front, so that the layers that will read it are behind it
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
            if is_forward:
                others = (reader.layer for port in layer.outputs for reader in port.readers)
            else:
                others = (port.source.layer for port in layer.inputs if port.source is not None)
            for other in others:
                rank = self._ranks[other]
                if other not in seen and (rank <= limit if is_forward else rank >= limit):
                    seen.add(other)
                    pending.append(other)
                yield other
