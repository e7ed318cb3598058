"""Opening models as the options of commands say, with their extensions, faults and missing weights."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType

from ovir.checks.recovering import Recovered, read_recovering
from ovir.cli.options.arguments import parse_shape, parse_shapes, raise_usage_error, shape_hints
from ovir.cli.terminal.output import print_diagnostics, print_message
from ovir.core.reading import why_not_regular
from ovir.core.shapes import PartialShape
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ModelError
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layers import Layer, Port
from ovir.inference.pinned_sizes import pinned_sizes
from ovir.model import Model, read_model
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Const
from ovir.system.python_runtime import load_module

_loaded: set[str] = set()


def load_extensions(files: Iterable[str]) -> None:
    """Run each module once in this process; raise InputError if one cannot be run."""
    for file in files:
        path = os.path.realpath(file)
        if path not in _loaded:
            load_user_module("--extension", file, "extension")
            _loaded.add(path)


def load_user_module(option: str, file: str, kind: str) -> ModuleType:
    """Run a module that an option names, and return it; raise InputError if it cannot be run."""
    path = os.path.realpath(file)
    if (fault := why_not_regular(path)) is not None:
        raise_usage_error(f"{option} {file}: {fault}")
    if not path.endswith(".py"):
        raise_usage_error(f"{option} {file}: not a Python module; its name must end in .py")
    name = f"ovir_{kind}_{os.path.splitext(os.path.basename(path))[0]}"
    try:
        return load_module(name, path)
    except (Exception, SystemExit) as error:
        what = (
            f"calls sys.exit({'' if error.code is None else repr(error.code)})"
            if isinstance(error, SystemExit)
            else f"fails{_line_in(path, error)}: {type(error).__name__}: {error}"
        )
        raise_usage_error(f"{option} {file}: the module {what}")


def _line_in(path: str, error: BaseException) -> str:
    """Return the line of a file that was running last, as the end of a phrase; empty if none was."""
    from traceback import extract_tb  # only needed here

    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == path]
    return f" in line {lines[-1]}" if lines else ""


_MOST_LAYERS = 100
_LISTED = 3


def constants_at_fault(model: Model, error: Diagnostic) -> str | None:
    """Return the constants that hold the values which an error is about; None if it is about other values.

    These are the constants of the input with whose name the message begins, or of all inputs if it names none.
    """
    layer = _layer_of(model, error)
    if layer is None or layer.operator is None:
        return None
    named = re.match(r"\w+", error.message)
    names = input_names(type(layer.operator))
    if named is not None and named[0] in names[: len(layer.inputs)]:
        return _constants(layer.inputs[names.index(named[0]) :][:1], all)
    return _constants(layer.inputs, all)


def constants_of_sizes(model: Model, error: Diagnostic) -> str | None:
    """Return the constants from which the layer of an error takes sizes or axes; None if there are none."""
    layer = _layer_of(model, error)
    if layer is None or layer.operator is None:
        return None
    return _constants([port for port in layer.inputs if type(layer.operator).reads_value(port.index)], any)


def _layer_of(model: Model, error: Diagnostic) -> Layer | None:
    return next((layer for layer in model.walk() if layer.title == error.layer), None)


def _constants(ports: list[Port], quantity: Callable[[list[bool]], bool]) -> str | None:
    """Return the constants that ports are computed from; None unless all, or any, are computed from constants."""
    chains = [constant_layers(port.source.layer, _MOST_LAYERS) if port.source is not None else None for port in ports]
    if not ports or not quantity([chain is not None for chain in chains]):
        return None
    found = dict.fromkeys(layer.title for chain in chains for layer in chain or () if isinstance(layer.operator, Const))
    listed = ", ".join(list(found)[:_LISTED])
    return f"{listed}, ..." if len(found) > _LISTED else listed


def absent_weights(path: str) -> str:
    """Return the name of the .bin beside an .xml, which ``--no-weights`` does not read."""
    return f"{os.path.splitext(os.path.basename(path))[0]}.bin"


def read_model_or_topology(
    path: str,
    weights: str | None,
    *,
    no_weights: bool,
    shapes: Callable[[Model], Mapping[int, PartialShape]] | None = None,
    legacy_io: bool = False,
) -> Model:
    """Return a model; without weights, its constants have no data. Raise ReadError or ModelError if it is wrong.

    ``shapes`` returns the shapes of inputs in which it is inferred.
    """
    if not no_weights:
        return read_model(path, weights, shapes=shapes, legacy_io=legacy_io)
    if weights is not None:
        raise_usage_error("--weights and --no-weights exclude each other")
    recovered = read_recovering(path, need_weights=False, legacy_io=legacy_io)
    if shapes is not None:
        recovered.reshape(shapes(recovered.model))
    if recovered.errors:
        raise ModelError(*recovered.errors)
    return recovered.model


def open_recovering(arguments: argparse.Namespace) -> Recovered:
    """Return the model that the arguments name, in the shapes that they give, and print its diagnostics."""
    if arguments.weights is not None and arguments.no_weights:
        raise_usage_error("--weights and --no-weights exclude each other")
    need_weights = not arguments.no_weights
    recovered = read_recovering(
        arguments.model, arguments.weights, need_weights=need_weights, legacy_io=arguments.legacy_io
    )
    states, texts = _state_shapes(recovered, arguments.shape)
    shapes = parse_shapes(recovered.model, texts)
    hints = []
    if shapes or states:
        hints = shape_hints(recovered.model, shapes)
        worked = not recovered.errors
        recovered.reshape(shapes, states)
        hints = hints if worked and recovered.errors else []
    pinned = pinned_sizes(recovered.model) if shapes and not recovered.errors else ()
    print_diagnostics((*recovered.errors, *recovered.model.diagnostics, *pinned))
    for hint in hints:
        print_message(hint)
    return recovered


def _state_shapes(recovered: Recovered, texts: Sequence[str]) -> tuple[dict[str, PartialShape], list[str]]:
    """Return the shapes that are given for states by name, and the texts that are for inputs."""
    inputs = {name for port in recovered.model.inputs for name in (*port.names, port.layer.name)}
    states = recovered.states.keys() - inputs
    shapes: dict[str, PartialShape] = {}
    others = []
    for text in texts:
        name, _, shape = text.rpartition("=")  # names may contain "=", shapes do not
        if name not in states:
            others.append(text)
            continue
        if name in shapes:
            raise_usage_error(f"--shape {text}: state '{name}' has two shapes")
        shapes[name] = parse_shape(text, shape)
    return shapes, others
