"""The weights of a layer, as a user sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.graph.layers import Layer, Port


@dataclass(frozen=True)
class Weights:
    """The weights that one input of a layer reads."""

    input: Port
    """The input port of the layer that reads them."""
    constant: Layer
    """The Const that holds the numbers of the file, without scales and zero points."""
    compression: str
    """The compression to undo, such as ``u4 with scale and zero point, groups of 128``; ``none`` for nothing."""
    decompress: Callable[[Port], Array] = field(repr=False)
    """Computes the tensor of the output port that feeds ``input``."""

    @property
    def layer(self) -> Layer:
        """Return the layer that reads the weights."""
        return self.input.layer

    @property
    def shape(self) -> PartialShape:
        """Return the shape that the layer reads."""
        return self.input.shape

    @property
    def element_type(self) -> ElementType:
        """Return the element type that the layer reads."""
        return self.input.element_type

    @property
    def stored_type(self) -> ElementType:
        """Return the element type of the numbers in the file."""
        return self.constant.outputs[0].element_type

    @property
    def array(self) -> Array:
        """Return the weights as the layer reads them, decompressed anew at each call.

        As in a run, decompression computes f16 and bf16 in f32, and weights restored from them are f32. Constants that
        need no decompression are returned as they are, read-only.
        """
        assert self.input.source is not None
        return self.decompress(self.input.source)
