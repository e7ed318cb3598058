"""ovir reads OpenVINO IR, infers every shape, reports what is wrong with a file, and runs it with NumPy.

``import ovir`` itself imports almost nothing: a public name is loaded on its first use.
"""

TYPE_CHECKING = False  # importing typing, or __future__, takes time, in which Ctrl-C would print a traceback
if TYPE_CHECKING:
    from typing import Any

    from ovir.analysis.changes import Change as Change
    from ovir.analysis.diff import Affected as Affected
    from ovir.analysis.diff import Diff as Diff
    from ovir.analysis.diff import LayerDiff as LayerDiff
    from ovir.analysis.diff import diff as diff
    from ovir.analysis.random_inputs import random_inputs as random_inputs
    from ovir.building.creation import create_layer as create_layer
    from ovir.checks.checker import check as check
    from ovir.checks.untrusted.budget import Budget as Budget
    from ovir.compiling import compile_model as compile_model
    from ovir.core.element_types import ElementType as ElementType
    from ovir.core.shapes import Dimension as Dimension
    from ovir.core.shapes import PartialShape as PartialShape
    from ovir.core.tensor_types import TensorType as TensorType
    from ovir.debugging.bisect import Bisection as Bisection
    from ovir.debugging.bisect import bisect as bisect
    from ovir.debugging.compare import Comparison as Comparison
    from ovir.debugging.compare import compare as compare
    from ovir.debugging.edit_proof import EditProof as EditProof
    from ovir.debugging.edit_proof import prove_edit as prove_edit
    from ovir.debugging.precision import LayerSensitivity as LayerSensitivity
    from ovir.debugging.precision import Precision as Precision
    from ovir.debugging.precision import precision as precision
    from ovir.debugging.reduce import Reduction as Reduction
    from ovir.debugging.reduce import ReductionStep as ReductionStep
    from ovir.debugging.reduce import reduce as reduce
    from ovir.debugging.watch import Watch as Watch
    from ovir.debugging.watch import WatchEvent as WatchEvent
    from ovir.diagnostics.codes import Severity as Severity
    from ovir.diagnostics.diagnostic import Diagnostic as Diagnostic
    from ovir.diagnostics.errors import ExportError as ExportError
    from ovir.diagnostics.errors import InputError as InputError
    from ovir.diagnostics.errors import ModelError as ModelError
    from ovir.diagnostics.errors import OvirError as OvirError
    from ovir.diagnostics.errors import ReadError as ReadError
    from ovir.diagnostics.errors import RunError as RunError
    from ovir.diagnostics.errors import WriteError as WriteError
    from ovir.export.export_onnx import export_onnx as export_onnx
    from ovir.export.exported import Exported as Exported
    from ovir.export.exporters import exports as exports
    from ovir.fuzzing.findings import Finding as Finding
    from ovir.fuzzing.fuzz import Fuzzing as Fuzzing
    from ovir.fuzzing.fuzz import fuzz as fuzz
    from ovir.generation.generate import Generated as Generated
    from ovir.generation.generate import TextGenerator as TextGenerator
    from ovir.generation.generate import generate as generate
    from ovir.generation.token_comparison import CandidateToken as CandidateToken
    from ovir.generation.token_comparison import TokenComparison as TokenComparison
    from ovir.generation.token_comparison import TokenDifference as TokenDifference
    from ovir.graph.layers import Layer as Layer
    from ovir.graph.layers import Port as Port
    from ovir.ir.writing.save import to_python as to_python
    from ovir.model import Model as Model
    from ovir.model import join as join
    from ovir.model import read_model as read_model
    from ovir.model import save_model as save_model
    from ovir.ops.base.attributes import attribute as attribute
    from ovir.ops.base.operator import Operator as Operator
    from ovir.ops.base.registry import register as register
    from ovir.runtime.compiled import CompiledModel as CompiledModel
    from ovir.runtime.compiled import InferRequest as InferRequest
    from ovir.runtime.listeners import Listener as Listener
    from ovir.runtime.results import Results as Results
    from ovir.workers.map import MapError as MapError
    from ovir.workers.map import MappedResults as MappedResults
    from ovir.workers.map import map as map

__version__ = "0.1.0"

_NAMES = {
    "ovir.analysis.changes": ("Change",),
    "ovir.analysis.diff": ("Affected", "Diff", "LayerDiff", "diff"),
    "ovir.analysis.random_inputs": ("random_inputs",),
    "ovir.building.creation": ("create_layer",),
    "ovir.checks.checker": ("check",),
    "ovir.checks.untrusted.budget": ("Budget",),
    "ovir.core.element_types": ("ElementType",),
    "ovir.core.shapes": ("Dimension", "PartialShape"),
    "ovir.core.tensor_types": ("TensorType",),
    "ovir.debugging.bisect": ("Bisection", "bisect"),
    "ovir.debugging.compare": ("Comparison", "compare"),
    "ovir.debugging.edit_proof": ("EditProof", "prove_edit"),
    "ovir.debugging.precision": ("LayerSensitivity", "Precision", "precision"),
    "ovir.debugging.reduce": ("Reduction", "ReductionStep", "reduce"),
    "ovir.debugging.watch": ("Watch", "WatchEvent"),
    "ovir.diagnostics.codes": ("Severity",),
    "ovir.diagnostics.diagnostic": ("Diagnostic",),
    "ovir.diagnostics.errors": (
        "ExportError",
        "InputError",
        "ModelError",
        "OvirError",
        "ReadError",
        "RunError",
        "WriteError",
    ),
    "ovir.export.export_onnx": ("export_onnx",),
    "ovir.export.exported": ("Exported",),
    "ovir.fuzzing.findings": ("Finding",),
    "ovir.fuzzing.fuzz": ("Fuzzing", "fuzz"),
    "ovir.generation.generate": ("Generated", "TextGenerator", "generate"),
    "ovir.generation.token_comparison": ("CandidateToken", "TokenComparison", "TokenDifference"),
    "ovir.export.exporters": ("exports",),
    "ovir.graph.layers": ("Layer", "Port"),
    "ovir.compiling": ("compile_model",),
    "ovir.ir.writing.save": ("to_python",),
    "ovir.model": ("Model", "join", "read_model", "save_model"),
    "ovir.ops.base.attributes": ("attribute",),
    "ovir.ops.base.operator": ("Operator",),
    "ovir.ops.base.registry": ("register",),
    "ovir.runtime.compiled": ("CompiledModel", "InferRequest"),
    "ovir.runtime.listeners": ("Listener",),
    "ovir.runtime.results": ("Results",),
    "ovir.workers.map": ("MapError", "MappedResults", "map"),
}
"""The public names by the module that defines them."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)


_ELSEWHERE = {
    "Core": "ovir.read_model and ovir.compile_model, which need no Core",
    "Type": "the name of the type, such as 'f32'",
    "Tensor": "NumPy arrays",
    "Shape": "a list of integers",
    "Node": "ovir.Layer",
    "Output": "ovir.Port",
    "serialize": "ovir.save_model",
    "set_batch": "model.set_batch",
    "preprocess": "model.preprocess",
    "AsyncInferQueue": "ovir.map",
    "convert_model": "openvino.convert_model, and then ovir.read_model for the file that openvino.save_model writes",
}
"""How ovir does what a name of OpenVINO's module does."""


def __getattr__(name: str) -> "Any":
    """Load a public name, or the functions of an opset, on its first use."""
    import importlib.util

    module = _MODULES.get(name)
    if module is None:
        if not name.startswith("opset") or importlib.util.find_spec(f"{__name__}.{name}") is None:
            way = f": use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{way}")
        return importlib.import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    """Return the public names, and those of the opsets."""
    from ovir.ops.base.opsets import NEWEST_OPSET

    return [*__all__, *(f"opset{number}" for number in range(1, NEWEST_OPSET + 1)), "__version__"]
