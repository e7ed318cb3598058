"""Opening and compiling a model as the options say, for commands that run it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ovir.cli.options.arguments import (
    add_shared,
    open_model,
    options_of,
    positive,
    raise_usage_error,
)
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


def add_compiling(parser: argparse.ArgumentParser) -> None:
    option = options_of(parser, "engine")
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
        "let onnxruntime round the inputs that it multiplies by large matrices of 4-bit and 8-bit codes "
        "to 8 bits: faster, "
        "and less exact",
    )
    option("--threads N", "use at most N threads (default: all cores)", positive)
    option("--strict", "treat values that the specification excludes as errors instead of warnings")
    option(
        "--keep-compressed",
        "decompress weights at each use, or all of them at once (default: weights of 16 bits at once, if "
        "they fit in half of the free memory; matrices of up to a million codes at once in "
        "models whose codes take at most 128 MiB in f32)",
        action=argparse.BooleanOptionalAction,
    )
    add_shared(parser, "legacy-io")


def open_runnable(arguments: argparse.Namespace) -> Model:
    """Return the model that the arguments name, and print its diagnostics.

    Raises InputError for options of another engine, before the model is read, and ModelError without outputs.
    """
    require_engine(arguments.engine, **_options_of_engines(arguments))
    model = open_model(arguments)
    print_diagnostics(model.diagnostics)
    if not model.outputs:
        message = "the model has no Result: there is nothing to compute" if model.layers else "the model has no layers"
        raise ModelError(diagnose(NO_RESULT, message, Place(model.path), severity=Severity.ERROR))
    _warn_of_endless_loops(model)
    return model


def _warn_of_endless_loops(model: Model) -> None:
    """Print the loops that never end, so that nobody waits for them."""
    for layer in model.walk():
        if layer.type == "Loop":
            from ovir.checks.conditions import ending  # only such models need it

            if reason := ending(layer).endless:
                print_diagnostics([diagnose(LONG_LOOP, reason, layer.place, severity=Severity.WARNING)])


def compiled_as(arguments: argparse.Namespace, model: Model) -> CompiledModel:
    """Return the model compiled with the options of ``add_compiling``."""
    compiled = compile_model(
        model,
        engine=arguments.engine,
        threads=arguments.threads,
        **_options_of_engines(arguments),
    )
    print_diagnostics(compiled.diagnostics)
    return compiled


def _options_of_engines(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``add_compiling`` that only one engine supports."""
    return {name: getattr(arguments, name) for engine in ENGINES.values() for name in engine.options}


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
            raise_usage_error(
                f"--tap {pattern}: no name of a layer or a tensor matches", "`ovir infer` lists the layers"
            )
        found.update(dict.fromkeys(names))
    return list(found)
