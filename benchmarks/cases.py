"""The models of ``regressions`` and ``operations``: a case is a line of ``CASES``; those of a kind share a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from benchmarks.real_models import Inputs, Made, Weights, decoder, decoder_inputs, encoder
from ovir import opset13 as ops
from ovir import opset14
from ovir.core.arrays import Array

_random = np.random.default_rng(0)


def _numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return _random.standard_normal(shape).astype(dtype)


def made(build: Callable[..., Any], **inputs: Array) -> Made:
    """Return the model that a function of the Parameters builds."""
    parameters = [ops.parameter(array.shape, array.dtype, name=name) for name, array in inputs.items()]
    return ovir.Model([build(*parameters)], parameters), inputs


def gather(
    data: tuple[int, ...], indices: tuple[int, ...], axis: int, dtype: Any = np.int64, batch_dims: int = 0
) -> Made:
    """Pick from an array of the caller."""
    picks = _random.integers(0, data[axis], indices).astype(dtype)
    return made(lambda x, i: ops.gather(x, i, np.int64(axis), batch_dims), data=_numbers(*data), indices=picks)


def gather_elements(data: tuple[int, ...], indices: tuple[int, ...], axis: int, dtype: Any = np.int64) -> Made:
    picks = _random.integers(0, data[axis], indices).astype(dtype)
    return made(lambda x, i: ops.gather_elements(x, i, axis), data=_numbers(*data), indices=picks)


def product(form: str, rows: int) -> Made:
    """Multiply rows by 2 million weights of a form."""
    weights = Weights(form)(2048, 1024, inputs=1024)
    return made(lambda x: ops.matmul(x, weights, False, True), x=_numbers(rows, 1024))


def product_of_counted_rows(form: str) -> Made:
    """Multiply the rows that a run counts by 2 million weights, as the steps of a decoder after its cache do."""
    weights = Weights(form)(2048, 1024, inputs=1024)

    def build(x: Any, is_wanted: Any) -> Any:
        places = ops.reshape(ops.non_zero(is_wanted, "i64"), np.array([-1]), False)
        return ops.matmul(ops.gather(x, places, np.int64(0)), weights, False, True)

    return made(build, x=_numbers(8, 1024), is_wanted=np.eye(8, dtype=np.float32)[0])


def convolutions(groups: int) -> Made:
    def build(x: Any) -> Any:
        weights = Weights("f16")
        for stride in (2, 1, 1):
            shape = (32, 32, 3, 3) if groups == 1 else (32, 1, 1, 3, 3)
            convolve = ops.convolution if groups == 1 else ops.group_convolution
            filters = weights(*shape, inputs=9 * 32 // groups)
            x = ops.relu(convolve(x, filters, [stride, stride], [1, 1], [1, 1], [1, 1]))
        return x

    return made(build, image=_numbers(1, 32, 112, 112))


def elementwise(function: Callable[[Any], Any], dtype: Any = np.float32) -> Made:
    """Compute a function of a million numbers."""
    return made(function, x=_numbers(8, 64, 48, 48, dtype=dtype))


def recurrence(steps: int, size: int) -> Made:
    """Run an LSTM over more steps than a copy of its input takes time."""
    weights, bias, zeros = _numbers(1, 4 * size, size), _numbers(1, 4 * size), np.zeros((1, 1, size), np.float32)
    return made(
        lambda x: ops.lstm_sequence(x, zeros, zeros, np.array([steps]), weights, weights, bias, size, "forward")[0],
        x=_numbers(1, steps, size),
    )


def transformer(form: str) -> Made:
    return encoder(Weights(form), width=384, heads=12, layers=1)


def step_of_decoder(layers: int) -> Made:
    sizes = {"width": 256, "wide": 1024, "heads": 4, "groups": 2, "vocabulary": 2048}
    model, _ = decoder(Weights("f16"), layers=layers, **sizes)
    return model, decoder_inputs(np.array([[7]]))


def chain(layers: int) -> Made:
    """Add another constant and clip, again and again: 3 layers a turn."""

    def build(x: Any) -> Any:
        for number in range(layers // 3):
            x = ops.relu(ops.add(x, np.full(64, number, np.float32)))
        return x

    return made(build, x=_numbers(1, 64))


CASES: Mapping[str, Callable[[], Made]] = {
    "Gather 7 rows of 50": partial(gather, (50, 40), (7,), 0),
    "Gather 1,000 rows of 300": partial(gather, (300, 100), (1000,), 0),
    "Gather 600 rows of 32,000": partial(gather, (32_000, 512), (2, 300), 0),
    "Gather a middle axis": partial(gather, (48, 700, 96), (180,), 1, np.int32),
    "Gather 600,000 numbers": partial(gather, (300_000,), (600_000,), 0),
    "Gather with batch_dims": partial(gather, (2000, 90), (2000, 15), 1, np.int32, 1),
    "Gather few with batch_dims": partial(gather, (4, 30), (4, 5), 1, np.int64, 1),
    "GatherElements small": partial(gather_elements, (9, 11), (9, 11), 1),
    "GatherElements of a middle axis": partial(gather_elements, (6, 48, 40, 40), (6, 48, 40, 40), 1),
    "GatherElements of the last axis": partial(gather_elements, (300, 700), (300, 500), 1, np.int32),
    **{
        f"{form} weights, {rows} rows": partial(product, form, rows)
        for form in ("f32", "f16", "int8", "int4_sym")
        for rows in (1, 128)
    },
    "int8 weights, rows that a run counts": partial(product_of_counted_rows, "int8"),
    "convolutions": partial(convolutions, 1),
    "depthwise convolutions": partial(convolutions, 32),
    **{
        f"{name}, {dtype}": partial(elementwise, function, dtype)
        for dtype in ("float32", "float16")
        for name, function in {
            "sum": lambda x: ops.add(ops.multiply(x, x), x),
            "Sigmoid": ops.sigmoid,
            "Gelu": lambda x: ops.gelu(x, "erf"),
            "Softmax": lambda x: ops.softmax(x, 1),
            "MVN": lambda x: ops.mvn(x, np.array([2, 3]), True, 1e-5, "inside_sqrt"),
            "MaxPool": lambda x: opset14.max_pool(x, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3])[0],
            "ReduceMean": lambda x: ops.reduce_mean(x, [2, 3]),
        }.items()
    },
    "LSTM of 1,000 steps": partial(recurrence, 1000, 80),
    "CumSum of 2,000 rows": lambda: made(lambda x: ops.cum_sum(x, np.int64(0)), x=_numbers(2000, 256)),
    "encoder f32": partial(transformer, "f32"),
    "encoder f16": partial(transformer, "f16"),
    "decoder": partial(step_of_decoder, 6),
    "4,000 layers": partial(chain, 4000),
}
"""By name, functions that return a model and its inputs."""

COMMANDS = {
    "import ovir": ("-c", "import ovir"),
    "ovir run": ("-m", "ovir", "run", "{Gather 7 rows of 50}"),
    "ovir check": ("-m", "ovir", "check", "{decoder}"),
    "ovir check, 4,000 layers": ("-m", "ovir", "check", "{4,000 layers}"),
}
"""Whole processes, by name: arguments of Python, with models by their names in braces."""


def write(case: str, folder: Path) -> Path:
    """Write the model of a case and its inputs to a new folder, and return the path of the model."""
    folder.mkdir()
    model, inputs = CASES[case]()
    ovir.save_model(model, folder / "model.xml")
    arrays: Inputs = dict(inputs)
    np.savez(folder / "inputs.npz", **arrays)
    return folder / "model.xml"
