"""ovir reads OpenVINO IR, infers every shape, says what is wrong with a file, and runs it with NumPy."""

from ovir.checks import check
from ovir.core.dimensions import Dimension
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import InputError, ModelError, OvirError, ReadError, RunError
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.ir.reader import read_model
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator, register
from ovir.runtime.compiled import CompiledModel, InferRequest, Results, compile_model

__version__ = "0.1.0"

__all__ = [
    "CompiledModel",
    "Diagnostic",
    "Dimension",
    "ElementType",
    "InferRequest",
    "InputError",
    "Layer",
    "Model",
    "ModelError",
    "Operator",
    "OvirError",
    "PartialShape",
    "Port",
    "ReadError",
    "Results",
    "RunError",
    "Severity",
    "TensorType",
    "attribute",
    "check",
    "compile_model",
    "read_model",
    "register",
]
