"""The random models that are compared, by number."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovir.core.arrays import Array
from ovir.core.element_types import ELEMENT_TYPES, ElementType
from ovir.debugging.layerwise_run import ENDS
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean
from ovir.fuzzing.device_map import ANYWHERE, TYPES, type_of_layer, version_of
from ovir.fuzzing.making import VERSIONS, Make
from ovir.model import Model, read_model
from ovir.runtime.inputs import Feeds, collect_inputs

if TYPE_CHECKING:
    from ovir.fuzzing.cases import Case

NAMES = [f"{kind}-{opset}" for kind, opset in VERSIONS]
_GRAPHS = 8
"""One of so many models is a graph of several layers."""
_REALS = ("", "ties", "extreme")
"""The real numbers of inputs in one round through all operation versions, in the next one, and so on."""
MAP = 10**9
"""The first of the numbers whose models have one operation version and element type each: all in turn, then again."""
_PLACES = [(name, element_type) for element_type in TYPES for name in NAMES]
ROUND = len(_PLACES)


@dataclass(frozen=True)
class Choice:
    """The choice of models to make."""

    ops: str | None = None
    """A regular expression that matches a part of ``Type-opset``; then models have one such operation each."""
    types: Collection[str] = ()
    """The element types of inputs and constants, apart from those of indices and masks; all if there are none."""

    def __post_init__(self) -> None:
        names = []
        for name in self.types:
            try:
                names.append(str(ElementType.parse(name)))
            except ValueError:
                hint = did_you_mean(name, map(str, ELEMENT_TYPES))
                raise InputError.usage(f"{name!r} is not an element type", option="types", hint=hint) from None
        object.__setattr__(self, "types", tuple(names))  # F32 and FP32 are f32
        try:
            found = self.versions
        except re.error as error:
            message = f"{self.ops!r} is not a regular expression: {error}"
            raise InputError.usage(message, option="ops") from None
        if not found:
            hint = did_you_mean(self.ops or "", {name.rpartition("-")[0] for name in NAMES})
            message = f"{self.ops!r} matches no operation version, such as 'Gather-8'"
            raise InputError.usage(message, option="ops", hint=hint)

    @property
    def versions(self) -> list[str]:
        """Return the operation versions that are wanted."""
        return [name for name in NAMES if self.ops is None or re.search(self.ops, name)]

    def version(self, number: int) -> str | None:
        """Return the operation version that the model of a number is about; None for a graph."""
        if number >= MAP:
            return _PLACES[(number - MAP) % ROUND][0]
        return None if number % _GRAPHS == _GRAPHS - 1 else NAMES[_seed_of(number) % len(NAMES)]

    def make(self, number: int) -> tuple[Model, list[Array]] | None:
        """Return the model of a number with its inputs; None if it is not among the wanted ones.

        Raises OvirError for a model that ovir refuses.
        """
        from ovir.fuzzing.graphs import make_graph  # which imports all operations

        version = self.version(number)
        if self.ops is not None and (version is None or not re.search(self.ops, version)):
            return None
        if version is None:
            graph = make_graph(number // _GRAPHS)
            model = graph.net.model()
            feeds: Feeds = graph.feeds
        else:
            case, wanted = _case_of(number)
            model, feeds = read_model(case.text, case.weights), case.feeds
            found = [type_of_layer(layer) for layer in model.layers if version_of(layer) == version]
            if wanted is not None and wanted not in found:
                return None
        held = {str(layer.outputs[0].element_type) for layer in model.layers if layer.type in ("Parameter", "Const")}
        if self.types and (held.isdisjoint(self.types) or not held <= {*self.types, *ANYWHERE}):
            return None
        return model, collect_inputs(model, feeds, model.input_index)

    def types_of(self, name: str) -> list[str]:
        """Return the element types that an operation version takes, as far as they are wanted."""
        from ovir.fuzzing.typed import types_of  # which imports all operations

        kind, opset = VERSIONS[NAMES.index(name)]
        taken = () if kind in ENDS else types_of(kind, opset)
        return [element_type for element_type in taken if not self.types or element_type in self.types]

    def places(self) -> dict[tuple[str, str], int]:
        """Return the wanted operation versions and element types, each with the first number of such a model; others
        follow at distances of ``ROUND``."""
        wanted = {(name, element_type) for name in self.versions for element_type in self.types_of(name)}
        return {place: MAP + index for index, place in enumerate(_PLACES) if place in wanted}


def _seed_of(number: int) -> int:
    """Return the number of a model among those that are no graphs."""
    return number - number // _GRAPHS


def _case_of(number: int) -> tuple[Case, str | None]:
    """Return the model of one operation that a number stands for, and the element type that it must have, if any."""
    from ovir.fuzzing.cases import make_case  # these import all operations
    from ovir.fuzzing.typed import Typed

    make: Callable[..., Make] = Make
    wanted = None
    if number >= MAP:
        round_, index = divmod(number - MAP, ROUND)
        name, wanted = _PLACES[index]
        seed, make = round_ * len(NAMES) + NAMES.index(name), partial(Typed, wanted=wanted)
    else:
        seed = _seed_of(number)
    return make_case(seed, reals=_REALS[seed // len(NAMES) % len(_REALS)], make=make), wanted
