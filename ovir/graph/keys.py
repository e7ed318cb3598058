"""The types of the arguments that name layers and tensors of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ovir.graph.layers import Layer, Port

LayerKey: TypeAlias = str | int | Layer
"""A layer, or its name, key or id."""
TensorKey: TypeAlias = str | Layer | Port | tuple[LayerKey, int]
"""The name of a tensor or a layer, a layer with the position of an output, or one of these objects."""
TensorKeys: TypeAlias = TensorKey | Iterable[TensorKey]
InputKey: TypeAlias = str | Layer | Port | tuple[LayerKey, int]
"""An input port, a layer with the position of an input, or a layer alone where that says which input is meant."""
InputKeys: TypeAlias = InputKey | Iterable[InputKey]
