"""``ovir.compile_model``, with a choice of engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ovir.diagnostics.errors import InputError, require_flags, require_packages
from ovir.export.hybrid.hybrid_model import HybridModel
from ovir.model import Model, opened
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.emulation import Emulation


class Engine(NamedTuple):
    """A compiler of models, the options that only it supports, and the packages that it needs, after their extra."""

    compile: Callable[..., CompiledModel]
    options: tuple[str, ...]
    packages: tuple[str, ...] = ()


ENGINES = {
    "numpy": Engine(CompiledModel, ("strict", "keep_compressed", "emulate")),
    "onnxruntime": Engine(HybridModel, ("quantize_activations",), ("onnxruntime", "onnxruntime", "onnx", "onnx_ir")),
}
"""The engines by name, the default one first."""


def compile_model(
    model: Model | str | os.PathLike[str],
    device_name: str = "CPU",
    config: Mapping[str, Any] | None = None,
    *,
    engine: str = "numpy",
    threads: int | None = None,
    strict: bool = False,
    keep_compressed: bool | None = None,
    emulate: str | Emulation | None = None,
    quantize_activations: bool = False,
) -> CompiledModel:
    """Compile a model, or the IR file at a path.

    The options from ``strict`` to ``emulate`` concern the engine ``numpy``.

    Args:
        model: The model, or the path of an .xml.
        device_name: ``"CPU"`` or ``"AUTO"``, for calls that were written for OpenVINO; it changes nothing.
        config: None, or an empty dictionary, for calls that were written for OpenVINO.
        engine: ``"numpy"``, or ``"onnxruntime"``, which runs the model exported to ONNX; NumPy then runs only the
            layers that are not exported.
        threads: The most threads that kernels use; by default one for each core.
        strict: As for ``CompiledModel``.
        keep_compressed: As for ``CompiledModel``.
        emulate: As for ``CompiledModel``.
        quantize_activations: Whether onnxruntime rounds what it multiplies with large matrices of 4-bit and 8-bit codes
            to 8 bits, as OpenVINO's CPU plugin does.

    Raises InputError for an engine that is unknown or not installed and for options that exclude each other, ReadError
    for a file that cannot be read, and ModelError for a model that cannot be run.
    """
    if device_name not in ("CPU", "AUTO"):
        hint = f"ovir.compare(model, against='openvino:{device_name}') runs a model on a device of OpenVINO"
        raise InputError.usage(f"ovir runs models on the CPU only, got the device {device_name!r}", hint=hint)
    if config:
        hint = "threads=4, emulate='bf16' and others are keywords; ovir.compare(model, config={...}) is for devices"
        raise InputError.usage(f"ovir has no properties of devices, got {', '.join(map(str, config))}", hint=hint)
    require_flags(quantize_activations=quantize_activations)
    options = {
        "strict": strict,
        "keep_compressed": keep_compressed,
        "emulate": emulate,
        "quantize_activations": quantize_activations,
    }
    found = require_engine(engine, **options)
    model = opened(model)
    return found.compile(model, threads=threads, **{name: options[name] for name in found.options})


def require_engine(name: str, **options: object) -> Engine:
    """Return an engine; raise InputError if it is unknown, not installed, or does not support one of the options."""
    if name not in ENGINES:
        raise InputError.usage(f"unknown engine {name!r}: expected {' or '.join(map(repr, ENGINES))}")
    for other, engine in ENGINES.items():
        if other != name and (given := next((option for option in engine.options if options.get(option)), None)):
            raise InputError.usage(f"needs the engine {other!r}, got {name!r}", option=given)
    if ENGINES[name].packages:
        require_packages(f"the engine {name!r}", *ENGINES[name].packages)
    return ENGINES[name]
