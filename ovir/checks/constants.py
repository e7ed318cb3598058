"""Inputs of a layer that are constants, and the values that its operation accepts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovir.checks.rule import Constant
from ovir.core.arrays import Array
from ovir.graph.layers import Layer, Port
from ovir.ops.base.domains import DomainRule
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Const


def constant_of(port: Port) -> Array | None:
    """Return the data of an input that is a Const of the file, else None."""
    if port.source is None or not isinstance(op := port.source.layer.operator, Const):
        return None
    return Constant(op).data


def means_open_end(data: Array) -> Array:
    """Return which 64-bit integers mean "to the end": those within 2**33 of 2**63 or of -(2**63).

    Exporters write a limit of i64 for an open end, or a number close to it.
    """
    return np.abs(np.abs(data.astype(np.float64)) - 2.0**63) <= 2.0**33


def layer_domains(layer: Layer) -> Iterator[tuple[Port, DomainRule]]:
    """Yield each input of a layer whose values its operation restricts, with the restriction."""
    op = layer.operator
    if op is not None and op.domains:
        for name, port in zip(input_names(type(op)), layer.inputs, strict=False):
            if name in op.domains:
                yield port, op.domains[name]
