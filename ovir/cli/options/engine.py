"""The engine that runs the model of a command, and the model compiled for it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ovir.cli.options.command import Command, Group
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import positive, raise_usage_error
from ovir.cli.terminal.output import print_diagnostics
from ovir.compiling import ENGINES, compile_model, require_engine
from ovir.core.arrays import Array
from ovir.diagnostics.codes import LONG_LOOP, NO_RESULT, Severity
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import ModelError
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.emulation import NARROW
from ovir.runtime.listeners import matching_taps
from ovir.runtime.results import Results


class EngineOptions(Group):
    """The engine, and what only some engines can do."""

    emulate: str | None
    engine: str
    quantize_activations: bool
    threads: int | None
    strict: bool
    keep_compressed: bool | None

    def add_to(self, command: Command) -> None:
        option = command.under("engine")
        option(
            "--emulate",
            "round weights and the results of layers to this type, as a device does that computes in it",
            choices=NARROW,
        )
        option(
            "--engine",
            "the engine: numpy, or onnxruntime for all layers that ONNX can express (default: numpy)",
            choices=ENGINES,
            default=next(iter(ENGINES)),
        )
        option(
            "--quantize-activations",
            "let onnxruntime round the inputs that it multiplies by large matrices of 4-bit and 8-bit codes to 8 bits: "
            "faster, and less exact",
        )
        option("--threads N", "use at most N threads (default: all cores)", positive)
        option("--strict", "treat values that the specification excludes as errors instead of warnings")
        option(
            "--keep-compressed",
            "decompress weights at each use, or all of them at once (default: weights of 16 bits at once, if they fit "
            "in half of the free memory; matrices of up to a million codes at once in models whose codes take at most "
            "128 MiB in f32)",
            action=argparse.BooleanOptionalAction,
        )

    def open(self, options: ModelOptions) -> Model:
        """Return a model, and print its diagnostics.

        Raises InputError for options of another engine, before the model is read, and ModelError without outputs.
        """
        require_engine(self.engine, **self._of_engines)
        model = options.open()
        if not model.outputs:
            what = "the model has no Result: there is nothing to compute" if model.layers else "the model has no layers"
            raise ModelError(diagnose(NO_RESULT, what, Place(model.path), severity=Severity.ERROR))
        _warn_of_endless_loops(model)
        return model

    def compiled(self, model: Model) -> CompiledModel:
        """Return a compiled model, and print its diagnostics."""
        compiled = compile_model(model, engine=self.engine, threads=self.threads, **self._of_engines)
        print_diagnostics(compiled.diagnostics)
        return compiled

    @property
    def _of_engines(self) -> dict[str, Any]:
        """Return the options that only one engine supports."""
        return {name: getattr(self, name) for engine in ENGINES.values() for name in engine.options}


def _warn_of_endless_loops(model: Model) -> None:
    """Print the loops that never end, so that nobody waits for them."""
    for layer in model.walk():
        if layer.type == "Loop":
            from ovir.checks.conditions import ending  # only such models need it

            if reason := ending(layer).endless:
                print_diagnostics([diagnose(LONG_LOOP, reason, layer.place, severity=Severity.WARNING)])


def named_arrays(results: Results) -> dict[str, Array]:
    """Return outputs and taps by the names under which they are saved; taps get the names ``tap:NAME``."""
    arrays = dict(results.to_dict())
    for name, tapped in results.taps.items():
        for index, array in enumerate(tapped):
            arrays[f"tap:{name}" if len(tapped) == 1 else f"tap:{name}:{index}"] = array
    return arrays


def taps_of(model: Model, patterns: Sequence[str]) -> list[str]:
    """Return the names to tap that the texts of ``--tap`` match."""
    found: dict[str, None] = {}
    for pattern in patterns:
        names = matching_taps(model, pattern)
        if not names:
            hint = "`ovir infer` lists the layers"
            raise_usage_error(f"--tap {pattern}: no name of a layer or a tensor matches", hint)
        found.update(dict.fromkeys(names))
    return list(found)
