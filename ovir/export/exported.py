"""The result of an export: the ONNX model and its names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass
class Exported:
    """A model in ONNX, and the names of its inputs, outputs and variables."""

    onnx: ir.Model
    """The model, as an object of the package onnx_ir."""
    inputs: list[str] = field(default_factory=list)
    """The names of the inputs, in the order of the inputs of the model, without the variables."""
    outputs: list[str] = field(default_factory=list)
    """The names of the outputs, in the order of the outputs of the model, without the variables."""
    state_inputs: dict[str, str] = field(default_factory=dict)
    """The input that holds each variable before a call, by its id."""
    state_outputs: dict[str, str] = field(default_factory=dict)
    """The output that holds each variable after a call, by its id."""
