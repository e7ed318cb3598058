"""Models that are built again by the code that ``ovir.to_python`` writes, compared with the original."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from ovir.core.arrays import Array


def rebuilt(model: ovir.Model, folder: Path) -> ovir.Model:
    """Return the model that the code builds."""
    path = folder / "build.py"
    ovir.to_python(model, path)
    result: ovir.Model = runpy.run_path(str(path))["model"]
    return result


def described(model: ovir.Model) -> dict[str, Any]:
    """Return the name, inputs, outputs, and every layer that a result depends on, those of bodies included."""
    layers = [_described(layer) for layer in model.walk() if not layer.is_dead or layer.type == "Parameter"]
    return {
        "name": model.name,
        "inputs": [(port.layer.name, sorted(port.names), str(port.type)) for port in model.inputs],
        "outputs": [(port.layer.name, sorted(port.names), str(port.type)) for port in model.outputs],
        "layers": sorted(layers, key=str),
    }


def _described(layer: ovir.Layer) -> tuple[object, ...]:
    op = layer.operator
    where = ("offset", "size", "value") if layer.type == "Const" else ()
    attributes = [] if op is None else sorted((f, repr(getattr(op, f))) for f in op.fields if f not in where)
    sources = [(port.source.layer.name, port.source.index) for port in layer.inputs if port.source is not None]
    outputs = [(str(port.type), sorted(port.names)) for port in layer.outputs]
    return layer.scope, layer.name, layer.type, op and op.opset, attributes, sources, outputs


def results(model: ovir.Model, feeds: dict[str, Array]) -> list[tuple[str, Array]] | str:
    """Return the outputs of a run, or a text if the run fails."""
    try:
        found = ovir.compile_model(model)(feeds, share_outputs=True)
    except ovir.OvirError as error:
        return error.diagnostic.message
    return [(port.any_name, array) for port, array in zip(model.outputs, found.values(), strict=True)]


def equal(first: list[tuple[str, Array]] | str, second: list[tuple[str, Array]] | str) -> bool:
    """Return whether two runs give the same: equal elements, or NaN in both."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return [name for name, _ in first] == [name for name, _ in second] and all(
        a.dtype == b.dtype and a.shape == b.shape and _equal(a, b) for (_, a), (_, b) in zip(first, second, strict=True)
    )


def _equal(a: Array, b: Array) -> bool:
    if a.dtype.kind in "TOU" or a.tobytes() == b.tobytes():
        return bool((a == b).all()) if a.dtype.kind in "TOU" else True
    return np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)


def difference(model: ovir.Model, again: ovir.Model, feeds: dict[str, Array] | None = None) -> str:
    """Return what differs between a model and its copy; empty if nothing does."""
    one, other = described(model), described(again)
    for key in one:
        if one[key] != other[key]:
            pairs = (
                []
                if isinstance(one[key], str)
                else [p for p in zip(one[key], other[key], strict=False) if p[0] != p[1]]
            )
            return f"{key}: {pairs[0] if pairs else (one[key], other[key])}"
    if feeds is not None:
        expected = results(model, feeds)
        if not equal(expected, results(again, feeds)) and equal(expected, results(model, feeds)):  # not random
            return "the results of a run"
    return ""
