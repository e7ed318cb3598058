"""Names of variables for layers."""

from __future__ import annotations

import builtins
import keyword
import re

from ovir.graph.layers import Layer
from ovir.graph.names import take_name

_LONGEST = 40


class Variables:
    """The variables of one function, or of the module; each new name is added to the set of those that are taken."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._names: dict[Layer, str] = {}

    def add(self, layer: Layer) -> str:
        """Return a new name for the result of a layer."""
        self._names[layer] = name = take_name(identifier(layer.name or layer.type), self._taken)
        return name

    def __getitem__(self, layer: Layer) -> str:
        return self._names[layer]


def identifier(text: str) -> str:
    """Return a short name of a variable, in snake case, that is made of the end of a text."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])", "_", text).lower()
    words = [word for word in re.split(r"[^0-9a-z]+", text) if word]
    kept: list[str] = []
    while words and sum(map(len, kept)) + len(kept) + len(words[-1]) <= _LONGEST:
        kept.insert(0, words.pop())
    name = "_".join(kept) or (words[-1][:_LONGEST] if words else "layer")
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) or keyword.issoftkeyword(name) or hasattr(builtins, name) else name
