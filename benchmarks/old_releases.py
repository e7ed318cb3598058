"""Models lowered for old releases of OpenVINO, and run by these releases.

    python -m benchmarks.old_releases [FOLDER] [--only REGEX] [--write]

FOLDER holds ``<name>/model.xml``, ``<name>/inputs.npz`` and ``<name>/expected.npz``, whose tensors have the names of
inputs and the order of outputs. Each model is lowered for each release, saved, and run there on the same inputs. Says
on stderr why a release does not run what is lowered for it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import ovir
from benchmarks.common import Rows, folder_of_models, report
from benchmarks.releases import OldRuntime, array_of, steps_of
from ovir.core.arrays import Array
from ovir.debugging.engines.process import EngineError
from ovir.lowering.releases import IR_VERSION_11, parse_release

RELEASES = ("2021.4", "2022.1", "2022.3", "2023.3", "2024.6")
Step = tuple[dict[str, Array], dict[str, Array]]
"""Inputs and expected outputs of a run."""


def steps(path: Path) -> list[Step]:
    """Return the runs of a model; the second set of inputs follows the first one in the same request."""
    found: list[Step] = []
    for number in ("", "2"):
        inputs, expected = (path.with_name(f"{kind}{number}.npz") for kind in ("inputs", "expected"))
        if inputs.exists() and expected.exists():
            found += zip(steps_of(inputs) or [{}], steps_of(expected), strict=True)
    return found


def verdict(path: Path, runtime: OldRuntime, folder: Path) -> tuple[str, str]:
    """Lower a model for a release, and run it there; return what came of it, and why."""
    given = steps(path)
    model = ovir.read_model(path)
    original = model.clone()
    before = [(layer.type, layer.version) for layer in model.walk()]
    version = 11 if parse_release(runtime.release) >= IR_VERSION_11 else 10
    try:
        if version == 10:  # whose readers know no unknown sizes
            given = _of_first_shapes(given)
            model.reshape({port: array_of(given[0][0], port).shape for port in model.inputs})
        model.lower(runtime.release)
        ovir.save_model(model, folder / "lowered.xml", version=version)
    except ovir.OvirError as error:
        return "refused", str(error)
    try:
        results = runtime.run(folder / "lowered.xml", model, [inputs for inputs, _ in given])
    except EngineError as error:
        return "fails", str(error)
    expected = [[_wanted(step, position, model) for position in range(len(model.outputs))] for _, step in given]
    loose = version == 10
    if difference := _first_difference(results, expected, loose=loose):
        # OpenVINO may have rounded to other codes of quantized models than older releases and ovir do.
        request = ovir.compile_model(original).create_infer_request()
        ours = [list(request.infer(inputs).values()) for inputs, _ in given]
        if _first_difference(results, ours, loose=loose):
            return "fails", f"differs: {difference}"
    same = before == [(layer.type, layer.version) for layer in model.walk()]
    return "as it is" if same else "rewritten", ""


def _of_first_shapes(given: list[Step]) -> list[Step]:
    """Return the steps whose inputs have the shapes of the first one."""
    shapes = [{name: array.shape for name, array in inputs.items()} for inputs, _ in given]
    return [step for step, shape in zip(given, shapes, strict=True) if shape == shapes[0]]


def _first_difference(
    results: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array | None]], *, loose: bool
) -> str:
    for step, (found, wanted) in enumerate(zip(results, expected, strict=True)):
        for position, (array, other) in enumerate(zip(found, wanted, strict=True)):
            if other is not None and (difference := _difference(array, other, loose=loose)):
                return f"step {step}, output {position}: {difference}"
    return ""


def _wanted(expected: Mapping[str, Array], position: int, model: ovir.Model) -> Array | None:
    """Return the expected output at a position: by the name ``out<position>``, by a name of the output, or in order."""
    port = model.outputs[position]
    for name in (f"out{position}", port.layer.name, *port.names):
        if name in expected:
            return expected[name]
    in_order = list(expected.values())
    by_number = any(re.fullmatch(r"out\d+", name) for name in expected)  # an output without a number is not compared
    return None if by_number else in_order[position]


def _difference(found: Array, wanted: Array, *, loose: bool) -> str:
    """Return in what two arrays differ, nothing if they agree; ``loose`` compares no element types, which 2021.4
    chooses itself."""
    if loose and not wanted.shape:  # the Inference Engine has no scalars
        found = found.reshape(()) if found.size == 1 else found
    if found.shape != wanted.shape:
        return f"shape {list(found.shape)} instead of {list(wanted.shape)}"
    if wanted.dtype.kind in "USOT":
        return "" if list(map(str, found.flat)) == list(map(str, wanted.flat)) else "other strings"
    if not loose and found.dtype != wanted.dtype:
        return f"element type {found.dtype} instead of {wanted.dtype}"
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1e-3))
    close = np.isclose(a, b, rtol=2e-3, atol=1e-3 * scale, equal_nan=True)
    if close.all():
        return ""
    worst = np.abs(a - b)[~close]
    return f"{worst.size} of {close.size} numbers, by up to {np.nanmax(worst) if worst.size else np.nan:.3g}"


def measure(options: argparse.Namespace) -> Rows:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        runtimes = [stack.enter_context(OldRuntime(release)) for release in RELEASES]
        for path in sorted(options.folder.glob("*/model.xml")):
            if not re.search(options.only, path.parent.name):
                continue
            row = [f"`{path.parent.name}`"]
            for runtime in runtimes:
                found, why = verdict(path, runtime, Path(folder))
                row.append(found)
                if why:
                    print(f"{runtime.release} {found}: {' '.join(why.split())[:400]}", file=sys.stderr)
            yield row


if __name__ == "__main__":
    head = ["model", *RELEASES]
    report(__doc__, "models by releases", head, measure, rounds=1, page="old-releases.md", options=folder_of_models)
