"""The types of arguments, as the stubs of the opsets name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import ShapeLike
from ovir.graph.layers import Layer, Port

Tensor = Layer | Port | Array | np.generic | float | str | Sequence[Any]
"""An input: what another layer computes, or an array, number or list, which becomes a constant."""
Type = ElementType | str | type | np.dtype[Any]
"""An element type: ``f32``, ``np.float32``, or an ``ElementType``."""
Shape = ShapeLike
"""A shape that may have unknown sizes: ``[1, 3, -1, 224]``, ``"1,3,?,200..300"``."""
TensorNames = str | Iterable[str | Iterable[str] | None]
"""Names of the output tensors: a text or a set of texts for the first one, or a list with an entry for each."""
Info = Mapping[str, str | Mapping[str, str]]
"""Runtime information: a value for each name, or a dictionary of the attributes in XML."""
