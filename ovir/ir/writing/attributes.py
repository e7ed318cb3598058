"""The attributes of layers as texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ovir.diagnostics.codes import BAD_ATTRIBUTE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError
from ovir.graph.layers import Layer
from ovir.ops.base.attributes import Attribute


def data_items(layer: Layer, changed: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return the names and texts of a layer's attributes; ``changed`` has values in place of those of the operator.

    A layer of a file keeps the order of the file and leaves out what the file leaves out, since readers may have other
    defaults. A layer that was built by a program has all attributes that its operation declares.
    """
    op = layer.operator
    declared: Mapping[str, Attribute] = {} if op is None else op.attributes
    names = dict.fromkeys(layer.attributes)
    if layer.line is None:
        names |= dict.fromkeys(declared)
    items = []
    for name in names:
        spec = declared.get(name)
        if spec is None:
            items.append((name, _text(layer.attributes[name])))
            continue
        value = (changed or {}).get(name, getattr(op, spec.field))
        if name not in layer.attributes and _stands_for_nothing(spec, value):
            continue
        try:
            items.append((name, spec.format(value)))
        except (ValueError, TypeError) as error:
            raise ModelError(diagnose(BAD_ATTRIBUTE, f"attribute '{name}': {error}", layer.data_place)) from None
    return items


def _stands_for_nothing(spec: Attribute, value: Any) -> bool:
    """Return whether a default says that the attribute is missing, because no file could give this value."""
    try:
        spec.check(value)
    except ValueError:
        return True
    return value is None


def _text(value: Any) -> str:
    """Return the text of an attribute that no operation declares: a text of the file, or a value of a program."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return str(value)
