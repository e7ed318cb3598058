"""The arguments of the functions that create layers, made from the declarations of the operations' classes.

A function takes the required inputs, required attributes, optional inputs and optional attributes of its operation, in
this order, unless OpenVINO's function has other names, another order or other defaults. Then ``arguments`` of the class
lists the arguments, in words:

- ``axis`` is the input or attribute of this name, and ``min_value:min`` is an argument with a name of its own for the
  input or attribute ``min``.
- An argument is required unless ``=`` follows: ``axis=`` has the default of the class (None for an input), ``size=5``
  has this one.
- ``nodes:*`` is a list of all inputs, and ``attrs:**`` is a dictionary of attributes.

Inputs and attributes that are not listed become keywords, after ``name``.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import input_signature

REQUIRED = inspect.Parameter.empty


class Kind(Enum):
    """The role of an argument."""

    INPUT = "one input"
    INPUTS = "a list of all inputs"
    ATTRIBUTE = "one attribute"
    ATTRIBUTES = "a dictionary of attributes"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function.

    ``source`` is the name of the input or the Python name of the attribute. ``default`` is what the function uses if
    the argument is left out; for an attribute, None stands for the default of the class.
    """

    name: str
    kind: Kind
    source: str = ""
    attribute: Attribute | None = None
    default: Any = REQUIRED
    is_keyword: bool = False
    """Whether it can only be given by its name, because OpenVINO's function does not have it."""

    @property
    def shown_default(self) -> Any:
        """Return the default as signatures show it: element types and shapes as strings."""
        return str(self.default) if isinstance(self.default, (ElementType, PartialShape)) else self.default


def has_bodies(cls: type[Operator]) -> bool:
    """Return whether layers of an operation have bodies, whose inputs are added after the layer is created."""
    return "bodies" in input_signature(cls).keywords


def arguments_of(cls: type[Operator]) -> tuple[Argument, ...]:
    """Return the arguments of the function that creates layers of an operation, without those that all functions
    have."""
    known = {argument.source: argument for argument in _declared(cls)}
    if not cls.arguments:
        required = [a for a in known.values() if a.default is REQUIRED]
        return (*required, *(a for a in known.values() if a.default is not REQUIRED))
    listed = [_listed(word, known) for word in cls.arguments.split()]
    named = {argument.source for argument in listed}
    is_covered = any(argument.kind is Kind.ATTRIBUTES for argument in listed)
    rest = [a for source, a in known.items() if source not in named and source != "*"]
    rest = [a for a in rest if not (is_covered and a.kind is Kind.ATTRIBUTE)]
    return (*listed, *(Argument(a.name, a.kind, a.source, a.attribute, a.default, True) for a in rest))


def _declared(cls: type[Operator]) -> Iterator[Argument]:
    """Yield an argument for each input and attribute, inputs first."""
    names, required, variadic, _ = input_signature(cls)
    for index, name in enumerate(names):
        yield Argument(name, Kind.INPUT, name, default=REQUIRED if index < required else None)
    if variadic and not has_bodies(cls):
        yield Argument("inputs", Kind.INPUTS, "*")
    for spec in cls.attributes.values():
        yield Argument(
            spec.field, Kind.ATTRIBUTE, spec.field, spec, default=REQUIRED if spec.required else spec.default
        )


def _listed(word: str, known: dict[str, Argument]) -> Argument:
    """Return the argument for a word of ``arguments``."""
    word, has_default, text = word.partition("=")
    name, _, source = word.partition(":")
    if source == "**":
        return Argument(name, Kind.ATTRIBUTES, source, default=None if has_default else REQUIRED)
    own = known[source or name]
    default: Any = REQUIRED
    if has_default:
        default = ast.literal_eval(text) if text else None if own.default is REQUIRED else own.default
    return Argument(name, own.kind, own.source, own.attribute, default)


def signature_of(arguments: Sequence[Argument], others: Sequence[str]) -> inspect.Signature:
    """Return the signature of a function with these arguments, a name and other keywords."""
    positional = [a for a in arguments if not a.is_keyword]
    keywords = [a for a in arguments if a.is_keyword]
    usual, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *(inspect.Parameter(a.name, usual, default=a.shown_default) for a in positional),
        inspect.Parameter("name", usual, default=None),
        *(inspect.Parameter(a.name, only, default=a.shown_default) for a in keywords),
        *(inspect.Parameter(name, only, default=None) for name in others),
    ]
    return inspect.Signature(parameters)
