"""Fast forms and fast kernels against the ``run`` of their operations, on arrays that models pass to them.

    python -m benchmarks.forms [FOLDER] [--only REGEX] [--write]

Each form is measured in runs of the models of FOLDER, of some of ``benchmarks.real_models``, and of the operations
below, which these models lack or use on small arrays only. A row has the lines of the form up to the next one, its gain
for the smallest and the largest inputs that it met, and the models that contain it. --only chooses models.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import pkgutil
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

import ovir
import ovir.fast
from benchmarks.cases import made
from benchmarks.common import Rows, folder_of_models, report
from benchmarks.models import found_models
from benchmarks.real_models import write
from ovir import opset1, opset2
from ovir import opset13 as ops
from ovir.core.arrays import Array
from ovir.fast import registry
from ovir.fast.base.binder_protocol import run_calls
from ovir.graph.layers import Layer
from ovir.ops.base.operator import Operator
from ovir.runtime import planning, rewrites, step_binder

HEAD = ["fast form", "lines", "elements at least", "gain", "elements at most", "gain with these", "models"]
_REAL = ("resnet50_f16", "mobilenet_v2_f16", "bert_base_f16", "vit_base_f16", "decoder_0_5b_int8")
_SHAPES = ((1, 4, 8, 8), (8, 64, 48, 48))
_OPERATIONS: Sequence[Callable[[Any], Any]] = (
    ops.is_nan,
    ops.erf,
    ops.round,
    lambda x: ops.bitwise_not(ops.convert(x, "i32")),
    lambda x: ops.cum_sum(x, 2),
    lambda x: ops.grn(x, 1e-3),
    lambda x: ops.bucketize(x, np.linspace(-1, 1, 9, dtype=np.float32)),
    lambda x: ops.topk(x, 3, 1, "max", "value")[0],
    lambda x: ops.fake_convert(x, np.float32(2)),
    lambda x: ops.gather_elements(x, ops.convert(ops.abs(x), "i32"), 2),
    lambda x: ops.grid_sample(x, ops.slice(x, [0], [2], [1], [3]), {"mode": "bilinear"}),
    lambda x: ops.batch_norm_inference(x, *[np.ones(x.shape[1].length, np.float32)] * 4, 1e-3),  # type: ignore[arg-type, call-arg]
    lambda x: opset1.batch_norm_inference(x, *[np.ones(x.shape[1].length, np.float32)] * 4, 1e-3),  # type: ignore[arg-type, call-arg]
    lambda x: opset2.mvn(x, True, True),
    lambda x: opset1.binary_convolution(
        x, _random_codes("u1", 16, x.shape[1].length, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], "xnor-popcount", 0.0
    ),
    lambda x: _cell(opset1.lstm_cell, ops.reduce_mean(x, [3], False)),
    lambda x: _cell(ops.lstm_cell, ops.reduce_mean(x, [3], False)),
)
_HIDDEN = 64


def _random_codes(element_type: str, *shape: int) -> Layer:
    return ops.constant(np.random.default_rng(0).integers(0, 2, shape).astype(np.uint8), element_type)


def _cell(function: Callable[..., Layer], x: Layer) -> Any:
    """Return the outputs of an LSTM cell whose input is a row for each element of the batch."""
    batch, *rest = (dim.length for dim in x.outputs[0].shape)
    state, bias = np.zeros((batch, _HIDDEN), np.float32), np.zeros(4 * _HIDDEN, np.float32)
    weights = [np.full((4 * _HIDDEN, width), 1e-3, np.float32) for width in (math.prod(rest), _HIDDEN)]
    rows = ops.reshape(x, [batch, -1], special_zero=False)
    return function(rows, state, state, *weights, bias, _HIDDEN).outputs[0]


_gains: dict[object, list[tuple[int, float]]] = defaultdict(list)
_models: dict[object, list[str]] = defaultdict(list)
_measured: set[object] = set()


def _measuring(model: str) -> Callable[..., bool]:
    """Return a function that binds forms as ``registry.bind`` does, so that each is measured when it first runs."""

    def bind(op: Operator, binder: Any, *inputs: Array) -> bool:
        given: list[Array] = []

        def keep() -> None:
            given[:] = [array.copy("K") for array in inputs]

        def kernel() -> None:  # as a step without a form calls it
            results = op.run(*given)
            for out, result in zip(binder.outputs, results if isinstance(results, tuple) else [results], strict=True):
                if out is not None:
                    np.copyto(out, result)

        def restore() -> None:  # what the form has overwritten
            for array, copy in zip(inputs, given, strict=True):
                if array.flags.writeable:
                    np.copyto(array, copy)

        def measure() -> None:
            if key not in _measured:
                _measured.add(key)
                gain = _fastest(kernel) / _fastest(lambda: run_calls(calls), restore)
                _gains[form].append((max(array.size for array in inputs), gain))

        binder.call(keep)
        if not registry.bind(op, binder, *inputs):
            return False
        form = registry.fast_form(type(op))  # type: ignore[arg-type]  # a class is hashable
        key = op.type, *((array.shape, array.dtype, array.strides) for array in inputs)
        calls = binder.calls[1:]
        if model and model not in _models[form]:
            _models[form].append(model)
        if calls and key not in _measured:
            binder.call(measure)
        else:
            del binder.calls[0]
        return True

    return bind


def _measuring_kernels(model: str) -> Callable[[Operator], Callable[..., Any]]:
    """Return a function that gives kernels as ``registry.kernel_of`` does, so that each fast one is measured."""

    def kernel_of(op: Operator) -> Callable[..., Any]:
        make, kernel = registry._fast_kernel(type(op)), registry.kernel_of(op)  # type: ignore[arg-type]
        if make is None:
            return kernel

        def measured(*inputs: Array) -> Any:
            key = op.type, "kernel", *((array.shape, array.dtype) for array in inputs)
            if model and model not in _models[make]:
                _models[make].append(model)
            if key not in _measured:
                _measured.add(key)
                gain = _fastest(lambda: op.run(*inputs)) / _fastest(lambda: kernel(*inputs))
                _gains[make].append((max(array.size for array in inputs), gain))
            return kernel(*inputs)

        return measured

    return kernel_of


def _fastest(call: Callable[[], object], prepare: Callable[[], None] = lambda: None) -> float:
    times: list[float] = []
    while len(times) < 2 or (sum(times) < 0.02 and len(times) < 100):
        prepare()
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def _run(model: str, path: Path, inputs: Mapping[str, Any]) -> None:
    """Run a model as often as it takes to bind the steps whose shapes only the run shows."""
    vars(step_binder)["bind"] = _measuring(model)
    for module in (planning, rewrites):
        vars(module)["kernel_of"] = _measuring_kernels(model)
    request = ovir.compile_model(path).create_infer_request()
    for _ in range(3):
        request.reset_state()
        request.infer(inputs)


def measure(options: argparse.Namespace) -> Rows:
    with tempfile.TemporaryDirectory() as scratch:
        for name, path, inputs in found_models(options.folder, options.only):
            _run(name, path, inputs)
        for name in filter(re.compile(options.only).search, _REAL):
            path = write(name, Path(scratch))
            _run(name, path, dict(np.load(path.with_name("inputs.npz"))))
        for shape in _SHAPES if not options.only else ():
            for build in _OPERATIONS:
                model, inputs = made(build, x=np.random.default_rng(0).standard_normal(shape, np.float32))
                ovir.save_model(model, Path(scratch) / "model.xml")
                _run("", Path(scratch) / "model.xml", inputs)
    for module in pkgutil.iter_modules(ovir.fast.__path__, "ovir.fast."):
        importlib.import_module(module.name)
    forms: list[Any] = [*{*registry._forms.values(), *registry._kernels.values(), *registry.BY_TRAITS}]
    forms.sort(key=lambda f: (f.__module__, f.__code__.co_firstlineno))
    for form, following in zip_longest(forms, forms[1:]):
        end = len(Path(inspect.getfile(form)).read_text().splitlines()) + 1
        if following is not None and following.__module__ == form.__module__:
            end = following.__code__.co_firstlineno
        title = f"{form.__module__.removeprefix('ovir.fast.')}.{form.__name__}"
        gains, names = sorted(_gains[form]), _models[form]
        ends = [str(gains[0][0]), gains[0][1], str(gains[-1][0]), gains[-1][1]] if gains else [""] * 4
        shown = ", ".join(names[-3:]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield [title, str(end - form.__code__.co_firstlineno), *ends, shown]


if __name__ == "__main__":
    report(__doc__, "forms", HEAD, measure, rounds=1, passes=3, options=folder_of_models)
