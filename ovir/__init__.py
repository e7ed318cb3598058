"""ovir reads OpenVINO IR, infers every shape, says what is wrong with a file, and runs it with NumPy."""

from ovir.checks import check
from ovir.codes import Severity
from ovir.diagnostics import Diagnostic, InputError, ModelError, OvirError, ReadError, RunError
from ovir.element_types import ElementType
from ovir.ir.reader import read_model
from ovir.model import Layer, Model, Port
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, register
from ovir.runtime.compiled import CompiledModel, InferRequest, Results, compile_model
from ovir.types import Dimension, PartialShape
from ovir.values import TensorType

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
