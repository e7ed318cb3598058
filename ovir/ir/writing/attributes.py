"""The attributes of layers as texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ovir.diagnostics.codes import BAD_ATTRIBUTE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError
from ovir.graph.layers import Layer
from ovir.ops.base.attributes import Attribute


def data_items(layer: Layer, *, is_read: bool, changed: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return the names and texts of a layer's attributes; ``changed`` has values in place of the operator's.

    A layer that was read from the model's file keeps the order of the file and leaves out what the file leaves out,
    since readers may have other defaults. A layer that a program created has all attributes that its operation
    declares.
    """
    op = layer.operator
    declared: Mapping[str, Attribute] = {} if op is None else op.attributes
    names = layer.attributes if is_read else layer.attributes | dict.fromkeys(declared)
    items = []
    for name in names:
        spec = declared.get(name)
        if spec is None:
            items.append((name, _text(layer.attributes[name])))
            continue
        value = (changed or {}).get(name, getattr(op, spec.field))
        if name not in layer.attributes and not _is_worth_writing(spec, value):
            continue
        try:
            items.append((name, spec.format(value)))
        except (ValueError, TypeError) as error:
            raise ModelError(diagnose(BAD_ATTRIBUTE, f"attribute '{name}': {error}", layer.data_place)) from None
    return items


def _is_worth_writing(spec: Attribute, value: Any) -> bool:
    """Return whether an attribute that nobody has set is written.

    Some defaults say that the attribute is missing; no file could give them. Details of another attribute, such as
    ``auto_broadcast.auto_broadcast_axis``, are written only if they are not the default.
    """
    return value is not None and spec.allows(value) and ("." not in spec.name or value != spec.default)


def _text(value: Any) -> str:
    """Return the text of an attribute that no operation declares: a text of the file, or a value of a program."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return str(value)
