"""The random models that are compared, by number."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.diagnostics.errors import InputError
from ovir.fuzzing.making import VERSIONS
from ovir.model import Model, read_model
from ovir.runtime.inputs import Feeds, collect_inputs

NAMES = [f"{kind}-{opset}" for kind, opset in VERSIONS]
_GRAPHS = 8
"""One of so many models is a graph of several layers."""
_VALUES = ("usual", "ties", "extreme")
"""The values of inputs in one round through all operation versions, in the next one, and so on."""
_ANYWHERE = {"i32", "i64", "boolean"}
"""Element types of indices, sizes and masks, which models of all types have."""


@dataclass(frozen=True)
class Choice:
    """The choice of models to make."""

    ops: str | None = None
    """A regular expression that matches a part of ``Type-opset``; then models have one such operation each."""
    types: Collection[str] = ()
    """The element types of inputs and constants; all if there are none."""

    def __post_init__(self) -> None:
        for name in self.types:
            try:
                ElementType.parse(name)
            except ValueError:
                raise InputError.usage(f"types: there is no element type {name!r}") from None
        try:
            found = self.versions
        except re.error as error:
            raise InputError.usage(f"ops is not a regular expression: {error}: {self.ops}") from None
        if not found:
            raise InputError.usage(f"ops: no operation version matches {self.ops!r}, as in 'Gather-8'")

    @property
    def versions(self) -> list[str]:
        """Return the operation versions that are wanted."""
        return [name for name in NAMES if self.ops is None or re.search(self.ops, name)]

    def make(self, number: int) -> tuple[Model, list[Array]] | None:
        """Return the model of a number with its inputs; None if it is not among the wanted ones.

        Raises OvirError for a model that ovir refuses.
        """
        from ovir.fuzzing.cases import make_case  # these import all operations
        from ovir.fuzzing.graphs import make_graph

        quotient, rest = divmod(number, _GRAPHS)
        if rest == _GRAPHS - 1:
            if self.ops is not None:
                return None
            graph = make_graph(quotient)
            model = graph.net.model()
            feeds: Feeds = graph.feeds
        else:
            seed = quotient * (_GRAPHS - 1) + rest
            if self.ops is not None and not re.search(self.ops, NAMES[seed % len(NAMES)]):
                return None
            values = _VALUES[seed // len(NAMES) % len(_VALUES)]
            case = make_case(seed, extreme=values == "extreme", ties=values == "ties")
            model, feeds = read_model(case.text, case.weights), case.feeds
        if self.types and not _types_of(model) <= {*self.types, *_ANYWHERE}:
            return None
        return model, collect_inputs(model, feeds, model.input_index)


def _types_of(model: Model) -> set[str]:
    """Return the element types of inputs and constants."""
    return {str(layer.outputs[0].element_type) for layer in model.layers if layer.type in ("Parameter", "Const")}
