"""Faults that are planted in models, for ``ovir.compare`` and ``ovir.bisect`` to find."""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from ovir.building.creation import create_layer
from ovir.core.arrays import Array
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layers import Layer

EFFECT = 1e-2
"""The least change of a layer's outputs, as a share of their root mean square, that counts as a fault."""


@dataclass(frozen=True)
class Fault:
    """A changed model, and the layers of which one must be named."""

    model: ovir.Model
    layer: str
    names: frozenset[str]
    what: str


def plant(model: ovir.Model, feeds: dict[str, Array], rng: random.Random) -> Iterator[Fault]:
    """Yield faults at random layers of a model, each in a copy of its own, at most one for each layer."""
    layers = [x for x in model.layers if not x.is_dead and x.type not in ("Parameter", "Result", "Const", "Assign")]
    layers = [layer for layer in layers if constant_layers(layer) is None]
    rng.shuffle(layers)
    expected = _outputs(model, feeds, [layer.key for layer in layers])
    for layer in layers:
        changes = [*_weights(layer), *_attributes(layer)]
        rng.shuffle(changes)
        for name, value in changes:
            fault = _changed(model, layer, name, value, rng)
            if fault is not None and _has_effect(fault, feeds, expected):
                yield fault
                break


def _weights(layer: Layer) -> list[tuple[str, Any]]:
    """Return the constants of real numbers that a layer reads, itself or through their decompression."""
    found: dict[str, Layer] = {}
    for port in layer.inputs:
        chain = constant_layers(port.source.layer) if port.source is not None else None
        for source in chain or ():
            is_own = all(len(output.readers) == 1 for x in chain or () for output in x.outputs)
            if source.type == "Const" and source.operator.data.dtype.kind == "f" and is_own:
                found[source.key] = source
    return [("weight", source) for source in found.values()]


def _attributes(layer: Layer) -> list[tuple[str, Any]]:
    """Return other values for the attributes of a layer."""
    changes: list[tuple[str, Any]] = []
    for name, spec in type(layer.operator).attributes.items():
        value = getattr(layer.operator, spec.field)
        if isinstance(value, bool):
            changes.append((name, not value))
        elif isinstance(value, int):
            changes += [(name, value + step) for step in (1, -1)]
        elif isinstance(value, float):
            changes.append((name, value * 3 + 1))
        elif isinstance(value, str) and spec.choices:
            changes += [(name, choice) for choice in spec.choices if choice != value]
        elif isinstance(value, tuple) and value and all(type(x) is int for x in value):
            changes.append((name, (*value[:-1], value[-1] + 1)))
            changes.append((name, value[::-1]))
    return [("attribute " + name, (name, value)) for name, value in changes]


def _changed(model: ovir.Model, layer: Layer, what: str, change: Any, rng: random.Random) -> Fault | None:
    """Return a copy of the model with a change; None if the model is not a valid one then."""
    copied = model.clone()
    own = copied.layer(layer.key)
    names = {layer.key}
    try:
        if what == "weight":
            names |= {x.key for port in layer.inputs if port.source for x in constant_layers(port.source.layer) or ()}
            data = np.array(change.operator.data)
            picked = np.random.default_rng(rng.randrange(2**32)).random(data.shape) < 0.5
            picked.reshape(-1)[:1] = True
            data[picked] = data[picked] * 2 + np.asarray(np.abs(data).mean() or 1, data.dtype)
            copied.set_constant(change.key, data)
        else:
            name, value = change
            attributes = {**own.attributes, name: value}
            new = create_layer(own.type, [port.source for port in own.inputs], attributes, version=own.version)
            new.name = own.name
            copied.replace(own, new)
    except ovir.OvirError:
        return None
    shapes = zip(layer.outputs, copied.layer(layer.key).outputs, strict=True)
    if any(a.shape != b.shape or a.element_type != b.element_type for a, b in shapes):
        return None
    return Fault(copied, layer.key, frozenset(names), what)


def _has_effect(fault: Fault, feeds: dict[str, Array], expected: dict[str, list[Array]]) -> bool:
    """Return whether the outputs of the layer are others, seen by running the model."""
    try:
        found = _outputs(fault.model, feeds, [fault.layer])[fault.layer]
    except ovir.OvirError:
        return False
    port_is_read = [bool(port.readers) for port in fault.model.layer(fault.layer).outputs]
    for one, other, is_read in zip(found, expected[fault.layer], port_is_read, strict=True):
        if is_read and one.shape == other.shape and one.dtype.kind in "fiub" and one.size:
            a, b = one.astype(np.float64), other.astype(np.float64)
            if np.isfinite(a).all() and np.sqrt(np.mean((a - b) ** 2)) > EFFECT * np.sqrt(np.mean(b**2)):
                return True
    return False


def _outputs(model: ovir.Model, feeds: dict[str, Array], names: list[str]) -> dict[str, list[Array]]:
    return ovir.compile_model(model)(feeds, taps=names).taps


# --------------------------------------------------------------------------- the search for them


def recording(model: ovir.Model, feeds: dict[str, Array], rng: random.Random, share: float = 1 / 3) -> dict[str, Array]:
    """Return a random share of the tensors between layers, as ``ovir run --record`` saves them."""
    names = [x.key for x in model.layers if x.type not in ("Const", "Result", "Assign") and not x.is_dead]
    found = {
        f"{name}:{i}": array for name, arrays in _outputs(model, feeds, names).items() for i, array in enumerate(arrays)
    }
    return {name: array for name, array in found.items() if rng.random() < share}


def bisect_problem(fault: Fault, against: ovir.Model | dict[str, Array], feeds: dict[str, Array]) -> str | None:
    """Return what is wrong with how ``ovir.bisect`` blames layers for a fault; None if nothing is.

    The layer at fault must be among the suspects, and the part that is saved must hold all of them and differ when it is
    compared again. Nothing can be found in a recording whose tensors are not affected.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = ovir.bisect(fault.model, against, inputs=feeds, output=Path(folder) / "part.xml")
        if found.within:
            is_seen = not ovir.compare(fault.model, against, inputs=feeds)
            return "not found" if is_seen or not found.not_compared else None
        suspects = {suspect.name for suspect in found.suspects}
        if not suspects & fault.names:
            return f"not among {sorted(suspects)}"
        if found.part is None:
            return "no part was saved"
        part = ovir.read_model(Path(folder) / "part.xml")
        if missing := suspects - {layer.key for layer in part.layers}:
            return f"the part lacks {sorted(missing)}"
        sides = [name for name in ("part_actual.npz", "part_other.xml") if (Path(folder) / name).exists()]
        for name in sides:
            if ovir.compare(part, Path(folder) / name, inputs=Path(folder) / "part_input.npz"):
                return f"the part does not differ from {name}"
    return None if sides else "nothing was saved to compare the part with"
