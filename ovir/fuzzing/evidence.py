"""What a finding shows, as texts: for its report, and for the page of a search."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.debugging.layerwise_run import ENDS
from ovir.fuzzing.device_map import version_of
from ovir.graph.layers import Layer
from ovir.model import Model
from ovir.ops.base.operator import Operator

SPECIFICATIONS = "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs.html"
_SHOWN = 60
"""The most elements of an array that are shown whole."""


@dataclass(frozen=True)
class LayerText:
    """A layer of the smallest model."""

    name: str
    operation: str
    attributes: str
    inputs: list[str]
    outputs: list[str]


@dataclass(frozen=True)
class Evidence:
    """The smallest model, what it was given, and what came of it."""

    layers: list[LayerText] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """The outputs in ovir."""
    got: list[str] = field(default_factory=list)
    """The outputs of the other side; none if it gave none."""
    specification: dict[str, str] = field(default_factory=dict)
    """What the operation versions compute."""

    @classmethod
    def of(cls, model: Model, inputs: Sequence[Array], expected: Sequence[Array], actual: Sequence[Array]) -> Evidence:
        """Return the evidence of a model with its inputs, and the outputs of both sides."""
        layers = [layer for layer in model.layers if layer.type not in ENDS]
        kinds = dict.fromkeys(type(layer.operator) for layer in layers if layer.operator is not None)
        return cls(
            list(map(_layer_text, layers)),
            list(map(_array_text, inputs)),
            list(map(_array_text, expected)),
            list(map(_array_text, actual)),
            {f"{kind.type}-{kind.opset}": _summary(kind) for kind in kinds},
        )

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Evidence:
        """Return the evidence that ``asdict`` has described."""
        return cls(**{**content, "layers": [LayerText(**layer) for layer in content["layers"]]})


def _layer_text(layer: Layer) -> LayerText:
    attributes = ", ".join(f"{name}={value}" for name, value in layer.attributes.items())
    ports = ([str(port.type) for port in side] for side in (layer.inputs, layer.outputs))
    return LayerText(layer.name, version_of(layer), attributes, *ports)


def _array_text(array: Array) -> str:
    return np.array2string(np.asarray(array), threshold=_SHOWN)


def _summary(kind: type[Operator]) -> str:
    """Return the first paragraph about an operation."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    return " ".join(text.split())
