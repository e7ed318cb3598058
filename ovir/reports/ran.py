"""The results of a run, for the report and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovir.analysis.tensor_stats import as_numbers, stats
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tables import Table, columns
from ovir.core.tensor_types import type_name
from ovir.diagnostics.wording import number_text, shortened
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.runtime.listeners import tapped_ports
from ovir.runtime.results import Results

if TYPE_CHECKING:  # most runs on a terminal need none of them
    from ovir.analysis.metrics import Score
    from ovir.analysis.profile import Profile, RunTimes
    from ovir.debugging.watch import Watch

Tensors = Sequence[tuple[str, Array, str, Layer | None]]
"""Tensors with their names and element types, and the Parameter or Result of inputs and outputs."""


@dataclass(frozen=True)
class Ran:
    """The results of a run."""

    model: LayerGraph
    feeds: Mapping[int, Array]
    results: Results
    seconds: float
    """The time of the first run."""
    random: frozenset[int] = field(default_factory=frozenset)
    """The positions of the inputs that are random."""
    profile: Profile | None = None
    times: RunTimes | None = None
    """The times of the runs that ``--repeat`` asks for."""
    watch: Watch | None = None
    later: RunTimes | None = None
    """The time of a run after those in which steps bind themselves, where nothing else has measured one."""
    profiled: RunTimes | None = None
    """The times of runs beside those of the profile, without it."""
    types: Mapping[Port, str] = field(default_factory=dict)
    """The types that outputs of unknown sizes had."""
    top: int | None = None
    """The number of scores of each row that are shown."""
    labels: Sequence[str] = ()
    """The names of classes."""

    def scores(self, array: Array) -> list[list[Score]] | None:
        """Return the highest scores of each row of an output, if they are wanted and it has rows of scores."""
        if self.top is None:
            return None
        from ovir.analysis.metrics import top_scores  # most runs do not need it

        return top_scores(array, self.top, self.labels)

    @property
    def inputs(self) -> Tensors:
        return [_tensor(self.feeds[i], port) for i, port in enumerate(self.model.inputs)]

    @property
    def outputs(self) -> Tensors:
        return [_tensor(self.results[i], port) for i, port in enumerate(self.model.outputs)]

    @property
    def taps(self) -> Tensors:
        return [
            (name if len(arrays) == 1 else f"{name}:{index}", array, element_type_text(array, port), None)
            for name, arrays in self.results.taps.items()
            for index, (array, port) in enumerate(zip(arrays, tapped_ports(self.model, name), strict=True))
        ]


def _tensor(array: Array, port: Port) -> tuple[str, Array, str, Layer]:
    return port.any_name, array, element_type_text(array, port), port.layer


def element_type_text(array: Array, port: Port) -> str:
    """Return the element type of a tensor. An array of nf4, u1, u3 or u6 does not tell it, which a port knows."""
    return type_name(array.dtype) if port.element_type.is_dynamic else str(port.element_type)


FIRST_VALUES = 6


def tensors_table(kind: str, tensors: Tensors) -> Table:
    """Return the types and numbers of tensors of a kind, such as ``output``."""
    rows = []
    for name, array, element_type, _ in tensors:
        s, shape = stats(array), PartialShape(array.shape)
        rows.append((name, element_type, shape, s.minimum, s.maximum, s.mean, s.nonfinite, _first_values(array)))
    heads = f"{kind}: name 1.5; type: text; shape: tensor; min: real; max: real; mean: real; nonfinite: count; "
    empty = f"The model has no {kind}s."
    return Table(columns(heads + "first values: values 2"), rows, empty=empty, least=("mean", "nonfinite", "type"))


def _first_values(array: Array) -> str:
    first = array.reshape(-1)[:FIRST_VALUES]
    is_text = array.dtype.kind in "TUSO"
    values = [repr(shortened(str(x))) for x in first] if is_text else map(number_text, as_numbers(first).tolist())
    return " ".join(values) + (" ..." if array.size > FIRST_VALUES else "")
