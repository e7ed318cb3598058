"""Attributes of operations: how a class declares them, and how their texts in a file are parsed."""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from ovir.core.element_types import ElementType
from ovir.core.shapes import Dimension, PartialShape, parse_integer, parse_value
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean, shortened, shown


class ChoiceError(ValueError):
    """A value has the right type but is not among the values that the attribute allows."""


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()


@dataclass(frozen=True)
class Attribute:
    """A declared attribute. ``name`` is its name in files (``exclude-pad``), ``field`` its Python name."""

    name: str
    field: str
    type: Any
    default: Any
    choices: tuple[str, ...] = ()
    minimum: int | float | None = None
    specified: bool = False
    assumed: str | None = None
    is_strict: bool = False
    instead: str | None = None
    misread: str | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def is_lacking(self, given: Container[str]) -> bool:
        """Return whether the specification requires the attribute beside the given ones, which lack it."""
        return self.specified and self.name not in given and self.instead not in given

    def is_misread(self, op: Any) -> bool:
        """Return whether OpenVINO computes something else than an operation does if the attribute is missing.

        A detail of another attribute, such as the axis of ``auto_broadcast``, counts in mode pdpd only.
        """
        mode = self.name.rpartition(".")[0]
        return self.misread is not None and (not mode or getattr(op, mode) == "pdpd")

    @property
    def assumed_text(self) -> str:
        """Return the text for the value that a reader assumes if the attribute is missing."""
        return self.assumed or (str(shown(self.default)) if self.default != "" else "''")

    def parse(self, text: str) -> Any:
        """Return the typed value of a text; raise ValueError with the reason if there is none."""
        return self.check((_STRICT_PARSERS if self.is_strict else _PARSERS)[self.type](text))

    def format(self, value: Any) -> str:
        """Return the text of a value, as OpenVINO writes it; the inverse of ``parse``.

        Raises ValueError if no text stands for the value: an item of a list of texts cannot have commas.
        """
        return _FORMATTERS[self.type](value)

    def check(self, value: Any) -> Any:
        """Return the value in canonical form; raise ValueError if the attribute does not allow it."""
        if self.choices:
            spelling = {choice.lower(): choice for choice in self.choices}
            value = spelling.get(str(value).lower(), str(value))
            if value not in self.choices:
                meant = did_you_mean(value, self.choices, "{}")
                known = f"'{shortened(value)}' is not one of {', '.join(self.choices)}"
                raise ChoiceError(f"{known}; {meant}" if meant else known)
        if self.minimum is not None:
            for item in value if isinstance(value, tuple) else (value,):
                if not item >= self.minimum:
                    raise ChoiceError(f"{item} is below {self.minimum}")
        return value

    def allows(self, value: Any) -> bool:
        """Return whether a layer can be given a value; some defaults only stand for a missing attribute."""
        try:
            self.check(value)
        except ValueError:
            return False
        return True


def attribute(
    default: Any = REQUIRED,
    *,
    name: str = "",
    choices: tuple[str, ...] = (),
    minimum: int | float | None = None,
    specified: bool = False,
    assumed: str | None = None,
    is_strict: bool = False,
    instead: str | None = None,
    misread: str | None = None,
) -> Any:
    """Declare an attribute in the body of an Operator class.

    Its annotation is its type: int, float, bool, str, ElementType, PartialShape, Dimension, ``tuple[int, ...]``,
    ``tuple[float, ...]`` or ``tuple[str, ...]``. Without ``default`` a file must give the attribute. ``choices``
    restricts a text to an enumeration, in which case does not matter. ``name`` is the name in files if it differs from
    the Python name. ``minimum`` is the smallest number (or smallest item) allowed. ``specified`` marks an attribute
    that the specification requires although readers accept files without it and use the default; ``ovir check`` warns
    then. ``assumed`` is the text for a default in messages, if its value does not explain itself. ``is_strict`` marks
    an integer that OpenVINO reads as it reads ids, so that nothing may follow its digits, or an element type that it
    reads as it reads precisions, so that case matters. ``instead`` is the name of an attribute that the specification
    allows in place of a ``specified`` one. ``misread`` is the text of the value that OpenVINO takes if the attribute is
    missing, where the specification has another default; ``ovir check`` warns.

    ``register`` raises InputError for an attribute without annotation, or of another type.
    """
    # ``declared_attributes`` fills in the field, and its type.
    return Attribute(name, "", None, default, choices, minimum, specified, assumed, is_strict, instead, misread)


def declared_attributes(cls: type) -> dict[str, Attribute]:
    """Return the attributes that a class and its bases declare, by their names in files."""
    found: dict[str, Attribute] = {}
    for base in reversed(cls.__mro__):
        own = {name: declared for name, declared in vars(base).items() if isinstance(declared, Attribute)}
        hints = _hints(base, own)
        for name, declared in own.items():
            if hints.get(name) not in _PARSERS:
                message = f"attribute '{name}' of {base.__name__} is annotated with no type that attributes can have"
                raise InputError.usage(message, hint="as in `axis: int = ovir.attribute()`")
            file_name = declared.name or name
            found[file_name] = replace(declared, name=file_name, field=name, type=hints[name])
    return found


def _hints(cls: type, names: Iterable[str]) -> dict[str, Any]:
    """Return the types that the annotations of these attributes mean.

    Other annotations are not evaluated: a class has many, and there are hundreds of classes.
    """
    own = getattr(cls, "__annotations__", {})
    annotated = SimpleNamespace(__annotations__={name: own[name] for name in names if name in own})
    return typing.get_type_hints(annotated, vars(sys.modules[cls.__module__]), dict(vars(cls)))


# --------------------------------------------------------------------------- texts


_FLOAT = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)


def parse_float(text: str) -> float:
    """Parse a number in C's notation; Python's ``float`` also accepts ``1_0`` and digits of other scripts."""
    text = text.strip(" \t\r\n")
    if _FLOAT.fullmatch(text) is None:
        raise ValueError(f"'{shortened(text)}' is not a number")
    return float(text)


def parse_bool(text: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
    value = known.get(text.strip().lower())
    if value is None:
        raise ValueError(f"'{shortened(text)}' is neither true nor false")
    return value


_MOST_ITEMS = 1 << 16


def split_list(text: str) -> list[str]:
    """Split a comma-separated list; an empty text is an empty list. Raise ValueError for more items than any operation
    needs, before they are parsed."""
    if len(text) > _MOST_ITEMS and (count := text.count(",") + 1) > _MOST_ITEMS:
        raise ValueError(f"a list has at most {_MOST_ITEMS} items, got {count}")
    return [item.strip() for item in text.split(",")] if text.strip() else []


def split_names(text: str) -> list[str]:
    r"""Split comma-separated names, in which ``\,`` stands for a comma of the name itself, as OpenVINO does."""
    if "\\" not in text:
        return [name for name in text.split(",") if name]
    return [name.replace("\\,", ",") for name in re.split(r"(?<!\\),", text) if name]


def _parse_numbers(text: str, parse: Callable[[str], Any]) -> tuple[Any, ...]:
    try:
        return tuple(parse(item) for item in split_list(text))
    except ValueError as error:
        if re.search(r"\d *[;:| ] *[-\d]", text):
            raise ValueError(f"{error}; the numbers of a list are separated by commas") from None
        if text.lstrip().startswith(("[", "(", "{")):
            raise ValueError(f"{error}; a list is written without brackets") from None
        raise


def _parse_shape(text: str) -> PartialShape:
    if text.strip().startswith(("{", "(")):
        raise ValueError(f"'{shortened(text)}' is not a shape: OpenVINO reads 1,?,2..5 or [1,?,2..5]")
    return PartialShape.parse(text)


_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    int: parse_value,
    float: parse_float,
    bool: parse_bool,
    str: str,
    ElementType: ElementType.parse_attribute,
    PartialShape: _parse_shape,
    Dimension: Dimension.parse,
    tuple[int, ...]: lambda text: _parse_numbers(text, parse_value),
    tuple[float, ...]: lambda text: _parse_numbers(text, parse_float),
    tuple[str, ...]: lambda text: tuple(split_list(text)),
}
_STRICT_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    int: parse_integer,
    ElementType: ElementType.parse_stored,
}


# --------------------------------------------------------------------------- values as texts


def _format_texts(values: Iterable[str]) -> str:
    items = tuple(values)
    text = ", ".join(items)
    if tuple(split_list(text)) != items:
        raise ValueError(f"no text stands for the list {shown(items)}: its items are joined by commas")
    return text


_FORMATTERS: Mapping[Any, Callable[[Any], str]] = {
    int: lambda value: str(int(value)),
    float: "{:.17g}".format,  # as OpenVINO writes them: 17 digits determine a value of f64
    bool: lambda value: "true" if value else "false",
    str: str,
    ElementType: str,
    PartialShape: lambda shape: str(shape)[1:-1],
    Dimension: str,
    tuple[int, ...]: lambda values: ", ".join(str(int(value)) for value in values),
    tuple[float, ...]: lambda values: ", ".join(repr(float(value)).removesuffix(".0") for value in values),
    tuple[str, ...]: _format_texts,
}
