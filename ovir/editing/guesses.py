"""Which numbers may be meant otherwise where constants follow other sizes of the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import prod
from typing import Any

from ovir.editing.keys import read_by
from ovir.editing.size_fitting import LEAST_WINDOW, MOST_KNOWN, Fitting, are_whole, shapes_text
from ovir.editing.sizes import Factor, Factors, mixed_ways, new_size, ways
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layers import Layer, Port
from ovir.ops.convolution import ForwardConvolutionBase
from ovir.ops.pooling import PoolBase
from ovir.ops.shape import Reshape

MOST_SEARCHES = 24
"""The most times that later layers are asked whether they contradict another meaning of numbers."""
MOST_LISTED = 16
"""The most numbers that a message shows."""


class Guessing(Fitting):
    """Infers a model for trial sizes, and knows which numbers its repairs leave in doubt."""

    kept: list[Layer]
    """The layers whose result has a fixed size where their data varies, which may be meant so."""
    rows: list[str]
    """The constants with one row for an axis, besides the first, whose old size is 1."""
    suspects: list[Layer]
    """The layers with numbers that may be meant otherwise."""

    def _solve(self) -> None:
        super()._solve()
        old = [layer for layer in self._model.walk() if layer.outputs and layer.outputs[0] in self._before]
        self.kept = [
            layer for layer in old if self._pins(layer, [port.type for port in layer.outputs]) or self._covers(layer)
        ]
        self.rows = [
            read_by(port).layer.key for layer in old for port in self._fixed(layer) if self._is_row(layer, port)
        ]
        guessed = {layer for port, source, layer in self._trail if self._is_guess(port, source)}
        self.suspects = [
            layer
            for layer in old
            if layer in guessed or layer in self.kept or self._fills(layer) or self._has_other_ways(layer)
        ]

    def _has_other_ways(self, layer: Layer) -> bool:
        """Return whether a Reshape may give other sizes."""
        if not isinstance(layer.operator, Reshape) or not self._varying(layer.inputs[0]):
            return False
        return len({tuple(map(new_size, way)) for way in self._ways(layer)}) > 1 or self._parts(layer) is not None

    def sizes(self) -> set[int]:
        """Return the old sizes of all axes that vary."""
        ports = (port for port in self._before if port.layer.owner is not None)
        return {old for port in ports for _, old, _ in self._varying(port)}

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Infer the model instead, and yield the key of each layer with numbers that may be meant otherwise, because no
        other layer contradicts, with a note."""
        self._solve()
        trial, searches = shapes_text(self._model, self._trial), 0
        while self._done:
            (mark, others), number = self._done[-1], len(self._done)
            layer = self._layers[number - 1]
            taken, other = self._numbers(layer), self._parts(layer)
            self._undo(mark)
            port = layer.inputs[1] if other is not None else None
            if fills := self._fills(layer):
                port = max(layer.inputs[2:0:-1], key=lambda own: sum(self._list(own)))
                other = f"where pads up to a multiple of {' or '.join(map(str, fills))} would fit as well"
            old = {own: (read_by(own).layer.name, own.type.constant) for own in layer.inputs}
            for _ in others if layer in self.suspects and port is None else ():
                found = self._numbers(layer)
                port = next((own for own in found if taken.get(own, found[own]) != found[own]), None)
                if port is None or not self._is_likely(layer, old[port][1], taken[port]):
                    continue
                searches += 1
                if searches > MOST_SEARCHES or self._search(number) is None:
                    del self._done[number:]
                    self._undo(mark)
                    other = f"where {found[port]} would fit as well"
                    break
            if port is not None and other is not None:
                name, numbers = old[port][0], _listed(old[port][1])
                becomes = "stays" if taken[port] == numbers else f"becomes {taken[port]}"
                read = f"constant '{name}' of {numbers}" if numbers else f"what '{name}' computes"
                yield layer.key, f"{read} in layer '{layer.name}' {becomes} for {trial}, {other}"
            self._done.pop()

    def _numbers(self, layer: Layer) -> dict[Port, str]:
        """Return the numbers that a layer reads, or the sizes that a Reshape gives."""
        if isinstance(layer.operator, Reshape):
            return {layer.inputs[1]: str(layer.outputs[0].shape)}
        return {port: text for port in layer.inputs if (text := _listed(port.type.constant))}

    def _is_likely(self, layer: Layer, old: Any, taken: str) -> bool:
        """Return whether other numbers may be meant; those that stay are not a small part of the data."""
        sizes = [size for own in layer.inputs for _, size, _ in self._varying(own)]
        numbers = () if old is None else old.reshape(-1).tolist()
        return taken != _listed(old) or any(1 < one <= size <= 2 * one for one in numbers for size in sizes)

    def _is_guess(self, port: Port, source: Port) -> bool:
        """Return whether a number follows a size without being one itself, such as a size less one."""
        old, new = source.type.constant, port.type.constant
        if isinstance(port.layer.operator, Reshape) or old is None or new is None or old.shape != new.shape:
            return False
        before = takewhile(lambda layer: layer is not port.layer, self._layers)
        exact = {(one, other) for layer in before for own in layer.outputs for _, one, other in self._varying(own)}
        pairs = zip(old.reshape(-1).tolist(), new.reshape(-1).tolist(), strict=True)
        return any(one != other and (one, other) not in exact for one, other in pairs)

    def _parts(self, layer: Layer) -> str | None:
        """Return how a Reshape that puts axes in another order may instead join or divide axes; None if it cannot."""
        if not isinstance(layer.operator, Reshape):
            return None
        factors, sizes = self._factors_and_sizes(layer)
        if any(are_whole(way, factors) for way in ways(factors, sizes)):
            return self._swapped(layer, mixed_ways(factors, sizes))
        grown = tuple(Factor(own.old, 3 * own.old if own.varies else own.old) for own in factors)
        for mixed in mixed_ways(grown, sizes)[:1]:
            own = list(map(new_size, mixed))
            for way in ways(grown, sizes):
                if (other := list(map(new_size, way))) != own:
                    return f"and for three times the sizes, {_shown(other)} would fit as well as {_shown(own)}"
        return None

    def _swapped(self, layer: Layer, found: Sequence[Sequence[Factors]]) -> str | None:
        """Return how a Reshape to the same sizes, which did nothing, may put axes in another order."""
        before, after = (
            [dim for dim in self._before[port] if dim != 1] for port in (layer.inputs[0], layer.outputs[0])
        )
        kept = [new for _, new in self._dims(layer.outputs[0])]
        others = (list(map(new_size, way)) for way in found if before == after)
        other = next((sizes for sizes in others if sizes != kept and sorted(sizes) == sorted(kept)), None)
        return None if other is None else f"where {_shown(other)} would fit as well"

    def _is_row(self, layer: Layer, port: Port) -> bool:
        """Return whether a constant has one row for an axis whose old size is 1."""
        if not hasattr(layer.operator, "auto_broadcast") or constant_layers(read_by(port).layer) is None:
            return False
        dims = self._dims(port)
        places = [
            axis - len(self._dims(other))
            for other in layer.inputs
            for axis, old, _ in self._varying(other)
            if axis and old == 1
        ]
        return prod(size for size, _ in dims) > 1 and any(-place <= len(dims) for place in places)

    def _covers(self, layer: Layer) -> bool:
        """Return whether the windows of a pool lie side by side, and had half of the size of an axis, which varies, or
        whether the pads of windows differ at both ends, as they may for some sizes only."""
        op = layer.operator
        sizes = self._dims(layer.inputs[0])[2:] if layer.inputs else []
        if isinstance(op, (ForwardConvolutionBase, PoolBase)) and op.auto_pad == "explicit":
            pads = zip(sizes, op.pads_begin, op.pads_end, strict=False)
            if any(old != new and begin < end for (old, new), begin, end in pads):
                return True
        if not isinstance(op, PoolBase) or op.kernel != op.strides:
            return False
        pairs = zip(sizes, op.kernel, strict=True)
        return any(old != new and n >= LEAST_WINDOW and old <= 2 * n for (old, new), n in pairs)


def _listed(known: Any) -> str:
    """Return the integers of a tensor as a text; an empty text if there are many, or none."""
    return str(known.tolist()) if known is not None and known.dtype.kind in "iu" and known.size <= MOST_LISTED else ""


def _shown(sizes: Sequence[int]) -> str:
    """Return sizes as a shape, in which those that stay open are ``?``."""
    return f"[{','.join('?' if size > MOST_KNOWN else str(size) for size in sizes)}]"
