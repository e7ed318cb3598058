"""The layers of a report, and the lines of the files that they come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from ovir.core.reading import read_bytes
from ovir.diagnostics.wording import escaped, readable, shown
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port


class LayerIndex:
    """Layers by number. The layers of one model are numbered in the order of ``model.walk()``."""

    def __init__(self) -> None:
        self._numbers: dict[Layer, int] = {}
        self._keys: dict[str, int] = {}
        self._titled: dict[tuple[str | None, str | None], Layer] = {}
        self._models: list[str] = []
        self._of: list[int] = []
        """The number of the model of each layer."""
        self.ran: Mapping[Port, str] = {}
        """The types that outputs had in a run."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._numbers)

    def titled(self, file: str | None, title: str | None) -> Layer | None:
        """Return the first layer of a file with this name in diagnostics; None if there is none."""
        return self._titled.get((file, title))

    def add(self, model: LayerGraph, title: str = "", only: Iterable[Layer] | None = None) -> None:
        """Add the layers of a model and of its bodies, or only some of them.

        ``title`` says which model it is, in a report about several.
        """
        self._models.append(title)
        wanted = None if only is None else set(only)
        for layer in model.walk():
            if wanted is None or layer in wanted:
                number = self._numbers[layer] = len(self._numbers)
                self._keys.setdefault(layer.key, number)
                self._titled.setdefault((layer.file, layer.title), layer)
                self._of.append(len(self._models) - 1)

    def types(self, layer: Layer) -> list[str]:
        """Return the types of the outputs of a layer, in a report on a run with the shapes that ran."""
        return [self.ran.get(port, str(port.type)) for port in layer.outputs]

    def number(self, layer: Layer | None) -> int | None:
        """Return the number of a layer; None if it was not added."""
        return None if layer is None else self._numbers.get(layer)

    def keys(self) -> Iterator[str]:
        """Return the keys of the layers, as the page shows them."""
        return (escaped(layer.key) for layer in self._numbers)

    def find(self, key: str) -> int | None:
        """Return the number of the first layer with a key; None if there is none."""
        return self._keys.get(key)

    def cell(self, layer: Layer | str) -> int | str:
        """Return the cell of a layer, which may be given by its key, in a column of layers.

        It is the layer's number, or its key if the layer has no number.
        """
        key, number = (layer, self.find(layer)) if isinstance(layer, str) else (layer.key, self.number(layer))
        return escaped(key) if number is None else number

    def to_data(self) -> dict[str, Any]:
        """Return the names of the models, and a record for each layer."""
        return {
            "models": [escaped(title) for title in self._models],
            "records": [self._record(layer, of) for layer, of in zip(self._numbers, self._of, strict=True)],
        }

    def _record(self, layer: Layer, model: int) -> list[Any]:
        """Return id, key, type, opset, model, line, inputs, outputs and attributes.

        An input is the number or the key of a layer, and which of its outputs it reads; None if nothing feeds it.
        """
        return [
            layer.id,
            escaped(layer.key),
            escaped(layer.type),
            escaped(layer.version),
            model,
            layer.line,
            [None if p.source is None else [self.cell(p.source.layer), p.source.index] for p in layer.inputs],
            self.types(layer),
            {escaped(name): readable(str(shown(value))) for name, value in layer.attributes.items()},
        ]


AROUND = 6
"""The number of lines before and after the one that a diagnostic names."""
LONGEST = 500
"""The number of characters of a line that a report shows; files without line breaks have lines of megabytes."""


class Sources:
    """The lines of files that the excerpts of a page need, each line once."""

    def __init__(self) -> None:
        self._lines = cache(_read)
        self._wanted: dict[str, set[int]] = defaultdict(set)

    def add(self, file: str, line: int) -> bool:
        """Keep the lines around one of a file, counted from 1; return False if the file does not have it."""
        lines = self._lines(file)
        if lines is None or not 1 <= line <= len(lines):
            return False
        self._wanted[file].update(range(max(line - AROUND, 1), min(line + AROUND, len(lines)) + 1))
        return True

    def to_data(self) -> dict[str, list[tuple[int, list[str]]]]:
        """Return by file the runs of lines that are kept: the number of the first, and their texts."""
        return {file: self._runs(file, sorted(numbers)) for file, numbers in self._wanted.items()}

    def _runs(self, file: str, numbers: list[int]) -> list[tuple[int, list[str]]]:
        lines = self._lines(file) or []
        runs: list[tuple[int, list[str]]] = []
        for number in numbers:
            if not runs or number != runs[-1][0] + len(runs[-1][1]):
                runs.append((number, []))
            runs[-1][1].append(_shown(lines[number - 1]))
        return runs


def _read(file: str) -> list[str] | None:
    """Return the lines of a text file, None if it cannot be read; bytes that are not text are replaced."""
    try:
        data = read_bytes(file)
    except (OSError, ValueError):  # the path may have a null character
        return None
    wide = next((encoding for mark, encoding in _WIDE.items() if data.startswith(mark)), "utf-8-sig")
    return data.decode(wide, "replace").replace("\r\n", "\n").split("\n")


_WIDE = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}


def _shown(line: str) -> str:
    text = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    return "\t".join(map(escaped, text.split("\t")))
