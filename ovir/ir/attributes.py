"""Attributes of layers that are unknown or misspelt."""

from __future__ import annotations

from collections.abc import Mapping

from ovir.diagnostics.spelling import closest
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.operator import Operator

ALWAYS_KNOWN = {"PrimitivesPriority", "alt_width", "execution_order", "originalLayersNames"}
"""Attributes that any operation may have. They control how it is executed, not what it computes."""


def misspelt_attributes(cls: type[Operator], given: Mapping[str, object]) -> list[tuple[Attribute, str]]:
    """Return attributes that the specification requires, each with the unknown attribute that may be a misspelling
    of it."""
    missing = [spec for spec in cls.attributes.values() if spec.specified and spec.name not in given]
    if not missing:
        return []
    unknown = [name for name in given if name not in cls.attributes and name not in ALWAYS_KNOWN]
    found = []
    for spec in missing:
        if (misspelt := closest(spec.name, unknown)) is not None:
            unknown.remove(misspelt)
            found.append((spec, misspelt))
    return found
