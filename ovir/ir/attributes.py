"""Attributes of layers that are unknown or misspelt, and operators that layers with equal attributes share."""

from __future__ import annotations

from collections.abc import Mapping

from ovir import ops
from ovir.diagnostics.spelling import closest
from ovir.graph.layers import Layer
from ovir.ir.port_maps import BODY_OPERATIONS
from ovir.ops.base import opsets
from ovir.ops.base.attributes import Attribute
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Parameter

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


def is_shared(op: Operator, layer: Layer) -> bool:
    """Return whether layers with equal attributes share this operator.

    A Parameter can get another shape, an operation with bodies has the wiring of its layer, and the instances of a
    user's class may have any state.
    """
    return bool(op.opset) and not isinstance(op, Parameter) and layer.type not in BODY_OPERATIONS


def other_version(name: str, cls: type[Operator]) -> str | None:
    """Return a hint if another version of an operation has an attribute; the layer's version may be wrong."""
    for opset in opsets.OPERATIONS.get(cls.type, ()):
        other = ops.find(cls.type, opset)
        if other is not None and other is not cls and name in other.attributes:
            return f"{cls.type} of opset{opset} has it: perhaps the version of the layer is wrong"
    return None
