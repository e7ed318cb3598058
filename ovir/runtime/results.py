"""The results of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.html import html_table
from ovir.core.tensor_types import array_text
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import NotFoundError
from ovir.diagnostics.wording import did_you_mean
from ovir.graph.layers import Port


class Results(Mapping[Any, Array]):
    """The outputs of one run, as arrays: ``results[0]``, ``results["name"]`` or ``results[port]``.

    Any name of an output's tensor finds it. It is a mapping from the ports of the outputs, in their
    order, to arrays of the dtypes that their element types have. Raises InputError for an output that does not exist.
    """

    def __init__(
        self,
        ports: Sequence[Port],
        keys: Mapping[str | Port, int],
        arrays: Sequence[Array],
        taps: dict[str, list[Array]],
        diagnostics: list[Diagnostic],
    ) -> None:
        self._ports = ports
        self._keys = keys
        self._arrays = arrays
        self.taps: dict[str, list[Array]] = taps
        """Copies of the tapped outputs, by the names given for them."""
        self.diagnostics: list[Diagnostic] = diagnostics
        """Warnings of kernels about values, such as indices outside the specified range."""

    def __getitem__(self, key: Any) -> Array:
        if key in self:
            if isinstance(key, (int, np.integer)):
                return self._arrays[int(key)]
            return self._arrays[self._keys[key]]
        known = ", ".join(f"{i}: '{port.any_name}'" for i, port in enumerate(self._ports)) or "none"
        names = [name for name in self._keys if isinstance(name, str)]
        hint = did_you_mean(key, names) if isinstance(key, str) else None
        raise NotFoundError.usage(f"there is no output {key!r}; the outputs are {known}", hint=hint)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, (int, np.integer)):
            return -len(self._arrays) <= int(key) < len(self._arrays)
        return isinstance(key, (str, Port)) and key in self._keys

    def __iter__(self) -> Iterator[Port]:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shown = (f"{name} {array_text(array)}" for name, array in self.to_dict().items())
        return f"<Results: {listed(shown)}>"

    def _repr_html_(self) -> str:
        rows = [(name, array_text(array), _range_text(array)) for name, array in self.to_dict().items()]
        return html_table("Results", ("output", "type", "values"), rows)

    def to_dict(self) -> dict[str, Array]:
        """Return one entry per output, under a name of its own (a repeated name is numbered)."""
        named: dict[str, Array] = {}
        counts: dict[str, int] = {}
        for port, array in zip(self._ports, self._arrays, strict=True):
            own = name = port.any_name
            while name in named:
                counts[own] = counts.get(own, 1) + 1
                name = f"{own}_{counts[own]}"
            named[name] = array
        return named


def _range_text(array: Array) -> str:
    """Return the smallest and the largest value, or a value alone."""
    if array.size == 1:
        return str(array.item())
    if not array.size or array.dtype.kind not in "iuf":
        return ""
    return f"{array.min():g} to {array.max():g}"


def listed(texts: Iterable[str]) -> str:
    """Return strings as a representation shows them: the first few, and how many follow."""
    first, *others = [*texts] or ["none"]
    more = f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return ", ".join([first, *others[:_SHOWN]]) + more


_SHOWN = 5
"""The number of texts that a representation shows after the first."""


def output_keys(ports: Sequence[Port]) -> dict[str | Port, int]:
    """Return the position of each output by its port and by its names: tensor names come first, then the names and keys
    of its Result, then the names and keys of the layer before it."""
    keys: dict[str | Port, int] = {port: index for index, port in enumerate(ports)}
    for index, port in enumerate(ports):
        for name in port.names:
            keys.setdefault(name, index)
    for layers in ([port.layer for port in ports], [port.source.layer if port.source else None for port in ports]):
        for index, layer in enumerate(layers):
            if layer is not None:
                keys.setdefault(layer.name, index)
                keys.setdefault(layer.key, index)
    return keys
