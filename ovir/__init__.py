"""ovir reads OpenVINO IR, infers every shape, reports what is wrong with a file, and runs it with NumPy.

``import ovir`` itself imports almost nothing: a public name is loaded on its first use. For type checkers,
``__init__.pyi`` imports the names; it is written with the stubs of the opsets.
"""

import sys

TYPE_CHECKING = False  # importing typing, or __future__, takes time, in which Ctrl-C would print a traceback
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "ovir.analysis.changes": ("Change",),
    "ovir.analysis.diff": ("Affected", "Diff", "LayerDiff", "diff"),
    "ovir.analysis.random_inputs": ("random_inputs",),
    "ovir.analysis.summary": ("Summary", "summarize"),
    "ovir.building.creation": ("create_layer",),
    "ovir.checks.checker": ("check",),
    "ovir.checks.fixing": ("Fixed", "fix"),
    "ovir.checks.untrusted.budget": ("Budget",),
    "ovir.core.element_types": ("ElementType",),
    "ovir.core.shapes": ("Dimension", "PartialShape"),
    "ovir.core.tensor_types": ("TensorType",),
    "ovir.debugging.bisect": ("bisect",),
    "ovir.debugging.bisection": ("Bisection",),
    "ovir.debugging.compare": ("compare",),
    "ovir.debugging.comparison": ("Comparison",),
    "ovir.debugging.edit_proof": ("EditProof", "prove_edit"),
    "ovir.debugging.precision": ("LayerSensitivity", "Precision", "precision"),
    "ovir.debugging.reduce": ("Reduction", "ReductionStep", "reduce"),
    "ovir.debugging.watch": ("Watch", "WatchEvent"),
    "ovir.diagnostics.codes": ("Severity",),
    "ovir.diagnostics.diagnostic": ("Diagnostic", "Fix"),
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
    "ovir.workers.evaluate": ("Evaluation", "evaluate"),
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
"""The counterparts in ovir of names of OpenVINO's module."""


def __getattr__(name: str) -> "Any":
    """Load a public name on its first use."""
    import importlib

    module = _MODULES.get(name)
    if module is None:
        way = f": use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{way}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    """Return the public names, and those of the opsets."""
    return [*__all__, *_OPSETS, "__version__"]


class _Opset(type(sys)):
    """The module of an opset: the functions that create its layers, each made on its first use."""

    def __getattr__(self, name: str) -> "Any":
        """Make a function, or ``__all__``."""
        if name.startswith("__") and name != "__all__":  # tools ask all modules for these
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from ovir.building.opset import member

        value = member(int(self.__name__.rpartition("opset")[2]), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> "list[str]":
        """Return the names of the functions."""
        names: list[str] = self.__all__
        return names


_OPSETS = [f"opset{number}" for number in range(1, 18)]
for _opset in _OPSETS:
    _module = _Opset(f"{__name__}.{_opset}", f"The operations of {_opset} as functions that create layers.")
    _module.__spec__ = type(__spec__)(_module.__name__, None)  # which importlib and pydoc ask for
    globals()[_opset] = sys.modules[_module.__name__] = _module
