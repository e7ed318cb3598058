"""Results as JSON: attributes of objects under their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape


def json_fields(item: object, *names: str) -> dict[str, Any]:
    """Return attributes of an object for JSON, in this order.

    ``by.name`` is an attribute of an attribute, whose key is ``name``; ``tolerance=criterion`` gives another key.
    """
    return {key: _plain(get(item)) for key, get in _getters(names)}


@cache
def _getters(names: tuple[str, ...]) -> list[tuple[str, Callable[[object], Any]]]:
    keys = (name.partition("=")[0].rpartition(".")[2] for name in names)
    return [(key, attrgetter(name.rpartition("=")[2])) for key, name in zip(keys, names, strict=True)]


_AS_IS = frozenset({int, float, str, bool, type(None)})  # most values: spares the questions below


def _plain(value: Any) -> Any:
    if type(value) in _AS_IS:
        return value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, ElementType | PartialShape):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
