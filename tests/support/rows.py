"""Rows of tables that tests read: an operation version with its attributes, and its inputs, as text.

An input is an element type, ``:`` for a parameter or ``=`` for a constant, and sizes, of which those with ``?`` are
unknown before the run: ``f32:2,?3``. Its numbers are drawn, or stand in place of the sizes: ``i64=[0,1]``; a scalar is
``i64=#1``, and all sizes of ``f32:?[1,2]`` are unknown. ``f32:boxes2,6,4`` are boxes of which many overlap.
``f32~2,3`` is a tensor whose rank only the run shows; the results are then lists, because ONNX refuses an output of
unknown rank.
"""

import json
import re

import numpy as np

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.fuzzing.net import Net, output


def _array(element_type: ElementType, text: str, number: int) -> Array:
    dtype = element_type.to_dtype()
    if text.startswith(("[", "#")):
        return np.array(json.loads(text.removeprefix("#")), dtype)
    rng = np.random.default_rng(number)
    shape = tuple(map(int, re.findall(r"\d+", text)))
    if text.startswith("boxes"):
        corners = rng.integers(0, 9, (*shape[:-1], 2))
        return np.concatenate([corners, corners + rng.integers(1, 9, corners.shape)], -1).astype(dtype)
    if element_type.is_real:
        return np.asarray(rng.uniform(0.5 if number else -2, 2, shape).astype(dtype))
    return np.asarray(rng.integers(0, 2 if element_type.bits < 3 else 7, shape).astype(dtype))


def model_of(operation: str, inputs: str) -> tuple[ovir.Model, list[Array]]:
    """Return the model of a row, with arrays for its inputs. ``outputs=2`` among the attributes is no attribute."""
    version, *attributes = operation.split()
    kind, _, opset = version.partition("-")
    net, ends, feeds = Net(), [], []
    for number, given in enumerate(inputs.split()):
        name, sign, text = re.split("([:=~])", given, maxsplit=1)
        array = _array(ElementType.parse(name), re.sub(r"^\?(?=\[)", "", text), number)
        if sign == "=":
            ends.append(net.const(array, name))
            continue
        if sign == "~":
            flat, shape = net.parameter(f"x{number}", "?", name), net.parameter(f"shape{number}", "?", "i64")
            ends.append(net.op("Reshape", flat, shape, special_zero="false"))
            feeds += [array.ravel(), np.array(array.shape, np.int64)]
            continue
        sizes = re.sub(r"\?\d+", "?", text.removeprefix("boxes"))
        if text.startswith(("[", "?[", "#")):
            sizes = ",".join("?" * array.ndim if text[0] == "?" else map(str, array.shape))
        ends.append(net.parameter(f"x{number}", sizes, name))
        feeds.append(array)
    given = dict(attribute.split("=", 1) for attribute in attributes)
    outputs = int(given.pop("outputs", 1))
    made = net.op(kind, *ends, opset=int(opset), outputs=outputs, **given)
    for index in range(outputs):
        found = output(made, index)
        if "~" in inputs:
            found = net.op("Reshape", found, net.const(np.array([-1])), special_zero="false")
        net.result(found)
    return net.model(), feeds
