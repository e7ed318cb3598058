"""The element types of operations: those that they take, and models in which they have a wanted one."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ovir.core.element_types import ElementType
from ovir.diagnostics.codes import ELEMENT_TYPE
from ovir.diagnostics.errors import OvirError
from ovir.fuzzing.cases import draw, written
from ovir.fuzzing.device_map import TYPES, main_type, type_of_layer
from ovir.fuzzing.making import Make
from ovir.model import read_model
from ovir.ops import find

_ATTEMPTS = 8
_SHARE = 0.75
"""The share of choices among types that take the wanted one."""


@dataclass
class Typed(Make):
    """Draws an operation of a wanted element type, which may be one that its recipe does not draw."""

    wanted: str = ""

    def __post_init__(self) -> None:
        self.rng.seed(f"{self.wanted}, {self.rng.random()}")  # otherwise all types draw the same numbers

    def pick(self, *choices: Any) -> Any:
        if all(choice in TYPES for choice in choices) and self._fits(choices) and self.chance(_SHARE):
            return self.wanted
        return super().pick(*choices)

    def type(self, name: str, *choices: str) -> str:
        is_other = name == "index" and self.wanted not in choices
        return super().type(name, *(choices if is_other or not self._fits(choices) else [self.wanted]))

    @property
    def mostly_real(self) -> str:
        return self.number

    def _fits(self, choices: Iterable[str]) -> bool:
        """Return whether the wanted type may stand for some: a recipe that draws only real numbers takes no others."""
        return ElementType.parse(self.wanted).is_real or not all(ElementType.parse(x).is_real for x in choices)


@cache
def types_of(kind: str, opset: int) -> tuple[str, ...]:
    """Return the element types that an operation version takes, as inference says."""
    return tuple(name for name in TYPES if _takes(kind, opset, name))


def _takes(kind: str, opset: int, wanted: str) -> bool:
    cls = find(kind, opset)
    assert cls is not None
    for attempt in range(_ATTEMPTS):
        made = Typed(kind, random.Random(f"{kind}-{opset}, {attempt}"), opset, wanted=wanted)
        is_legal = draw(made, cls, np.random.default_rng(attempt))
        if made.refusal is not None and made.refusal.code == ELEMENT_TYPE:
            return False
        if is_legal and _drawn_type(made) == wanted:
            return True
    return False


def _drawn_type(made: Typed) -> str | None:
    """Return the element type that stands for an operation that is drawn; None if it is not legal."""
    if made.bodies or made.kind in ("Assign", "ReadValue"):  # which only a model infers
        case = written(made)
        try:
            layers = read_model(case.text, case.weights).layers
        except OvirError:
            return None
        return next(type_of_layer(layer) for layer in layers if layer.type == made.kind)
    return main_type([given.element_type for given in made.inputs], [tensor.element_type for tensor in made.results])
