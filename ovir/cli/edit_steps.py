"""The edits behind the options of ``ovir edit``, with their reports."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Sequence

from ovir.build.values import as_array
from ovir.cli.arguments import parse_shapes, raise_usage_error
from ovir.core.arrays import Array
from ovir.diagnostics.errors import NotFoundError
from ovir.diagnostics.wording import plural
from ovir.editing.keys import TensorKey, tensor_names
from ovir.graph.layers import Layer
from ovir.io.tensor_files import load_tensor, parse_literal, with_element_type
from ovir.model import Model

Report = Callable[[], str]
"""Returns what an edit has done, once the model is inferred."""


def rename(model: Model, text: str) -> Report:
    names = tensor_names(model)
    old, new = _split(text, "--rename", lambda name: name in names or is_layer(model, name))
    model.rename({old: new})
    return lambda: f"renamed '{old}' to '{new}'"


def shape(model: Model, text: str) -> Report:
    ((index, wanted),) = parse_shapes(model, [text]).items()
    port = model.inputs[index]
    before = str(port.shape)
    model.reshape({index: wanted})
    return lambda: f"input '{port.any_name}': {before} -> {port.shape}"


def add_output(model: Model, text: str) -> Report:
    added = model.add_outputs([tensor_key(model, tensor_names(model), text)])
    return lambda: "\n".join(f"output '{port.any_name}': {port.type}" for port in added)


def set_constant(model: Model, text: str) -> Report:
    name, source = _split(text, "--set-constant", lambda name: is_layer(model, name))
    layer = model.layer(name)
    before = str(layer.outputs[0].type) if layer.outputs else ""
    constant = model.set_constant(layer, _array(layer, source, text))
    return lambda: f"constant '{constant.name}': {before} -> {constant.outputs[0].type}"


def decompress(model: Model, text: str) -> Report:
    count = len(model.decompress())
    return lambda: f"decompressed {plural(count, 'constant')}"


def fold_constants(model: Model, text: str) -> Report:
    before = _count(model)
    count = len(model.fold_constants())
    after = _count(model)
    return lambda: f"folded {plural(before - after + count, 'layer')} into {plural(count, 'constant')}"


def prune(model: Model, text: str) -> Report:
    removed = [layer.key for layer in model.prune()]
    listed = f": {_listed(removed)}" if removed else ""
    return lambda: f"removed {plural(len(removed), 'dead layer')}{listed}"


def strip_rt_info(model: Model, text: str) -> Report:
    model.strip_rt_info()
    return lambda: "removed the runtime information"


def set_name(model: Model, text: str) -> Report:
    before, model.name = model.name, text
    return lambda: f"the model was named '{before}' and is named '{text}'"


def compress(model: Model, text: str) -> Report:
    """Return the report only: the writer of the file compresses weights."""
    return lambda: "weights of f32 and f64 are written as f16"


# --------------------------------------------------------------------------- names


def is_layer(model: Model, name: str) -> bool:
    """Return whether a layer of the model or its bodies has this name."""
    try:
        model.layer(name)
    except NotFoundError:
        return False
    return True


def tensor_key(model: Model, names: Container[str], text: str) -> TensorKey:
    """Return the tensor that a text names: a name of a tensor or layer, or ``LAYER:1`` for the second output."""
    if text in names or is_layer(model, text):
        return text
    match = re.fullmatch(r"(.+):(\d{1,9})", text)
    return (match[1], int(match[2])) if match is not None and is_layer(model, match[1]) else text


def _split(text: str, option: str, is_known: Callable[[str], bool]) -> tuple[str, str]:
    """Split ``NAME=rest``; names may contain ``=``, so the first split that gives a known name counts."""
    splits = [(text[:i], text[i + 1 :]) for i, character in enumerate(text) if character == "="]
    if not splits:
        raise_usage_error(f"{option} {text}: there is no '=' between the name and what it gets")
    return next((split for split in splits if is_known(split[0])), splits[0])


# --------------------------------------------------------------------------- values


def _array(layer: Layer, source: str, text: str) -> Array:
    """Return the array of a file, or one that is written out, in the element type that the constant has."""
    path, colon, key = source.partition(".npz:")
    if colon:
        return load_tensor(f"{path}.npz", key)
    tensor = layer.outputs[0].type if layer.outputs else None
    if source.lower().endswith((".npy", ".npz")) or tensor is None:
        array = load_tensor(source, wanted=layer.name)
        return array if tensor is None else with_element_type(array, tensor.element_type)
    try:
        return as_array(parse_literal(source, tensor.element_type, tensor.shape), tensor.element_type)[0]
    except ValueError as error:
        exists = " is no .npy or .npz" if os.path.exists(source) else " does not exist"
        hint = f"the file {source}{exists}; values are written as 1,2,3 or [[1,2],[3,4]]"
        raise_usage_error(f"--set-constant {text}: {error}", hint)


def _count(model: Model) -> int:
    return sum(1 for _ in model.walk())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


_SHOWN = 5  # names of layers in a line
