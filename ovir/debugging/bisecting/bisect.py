"""``ovir.bisect``: finds the first layer at which a device, another model or a recording differs from a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ovir.debugging.bisecting.at_hand import probes_of
from ovir.debugging.bisecting.bisection import Bisection
from ovir.debugging.bisecting.judge import Judge
from ovir.debugging.bisecting.prefixes import PrefixSearch
from ovir.debugging.bisecting.reproducer import save_part, smallest_part
from ovir.debugging.compare import Session
from ovir.debugging.criterion import Criterion
from ovir.debugging.input_sets import Inputs, InputSet
from ovir.debugging.others import OtherBase
from ovir.debugging.reducing import candidates
from ovir.debugging.reducing.stage import Stage
from ovir.debugging.sides import Against, DeviceSide, as_model, open_side, sets_for
from ovir.graph.model import Model
from ovir.ir.writing.pair import target_paths

Progress = Callable[[int, int, str], None]
"""Called with the number of layers that are excluded, their total, and what is being done."""


def bisect(
    model: Model | str | os.PathLike[str],
    against: Against = "openvino:CPU",
    *,
    inputs: Inputs = None,
    samples: int | None = None,
    seed: int = 0,
    config: Mapping[str, str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    timeout: float | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Bisection:
    """Find the first layer at which another side differs from a model; ``if bisect(...)`` means that there is none.

    ``against``, ``config``, ``timeout`` and the tolerances are the same as for ``ovir.compare``. On a device, ovir runs
    and compares beginnings of the model, about as many as the logarithm of the number of layers. A device computes a
    beginning as it computes the whole model, except for what it would have joined with later layers. For a second
    model, an ONNX model and a recording, the tensors of all layers are at hand, and are compared in order.

    ``inputs``, ``samples`` and ``seed`` give sets of inputs as for ``ovir.compare``. The layer is looked for with the
    first set for which something differs.

    ``output`` is the path of an .xml, to which the smallest part of the model that was found to differ is saved, if
    there is one: the diverging layer with as many layers before it as are needed. Beside it are its inputs, the outputs
    of ovir, and the outputs of the device, as .npz.

    Raises InputError for arguments that do not fit, ReadError for files, RunError if the model itself cannot be run.
    """
    criterion = Criterion.of(rtol, atol, metric)
    target = None if output is None else Path(target_paths(output).text)
    first = as_model(model)
    with open_side(first, against, None, None, config, timeout) as side:
        runs, sets = 0, sets_for(first, side, inputs, samples, seed)
        for number, load in enumerate(sets):
            stage = Stage(first, given=dict(enumerate(load())))
            if isinstance(side, DeviceSide):
                found = _on_device(stage, side, criterion, target, progress)
            else:
                found = _at_hand(stage, side, criterion, target, progress)
            found.runs += runs
            found.sets, found.searched_set, runs = len(sets), number, found.runs
            if not found.within:
                break
    return found


def _on_device(
    stage: Stage,
    side: DeviceSide,
    criterion: Criterion,
    output: Path | None,
    progress: Progress | None,
) -> Bisection:
    """Find the layer by running beginnings of the model."""
    judge = Judge(side.device, criterion)
    search = PrefixSearch(stage, judge, progress)
    length = search.run()
    found = _bisection(stage, side, criterion, len(search.layers))
    found.probes = [search.probes[count] for count in sorted(search.probes)]
    if length is not None and output is not None:
        if progress is not None:
            progress(len(search.layers) - length, len(search.layers), "looking for the smallest part")
        found.part = save_part(smallest_part(search.part(length), judge), output, side.device)
    found.runs = judge.runs
    return found


def _at_hand(
    stage: Stage,
    side: OtherBase,
    criterion: Criterion,
    output: Path | None,
    progress: Progress | None,
) -> Bisection:
    """Find the layer in the tensors that the other side has for all layers."""
    compared = Session(stage.model, side, criterion, progress).run([InputSet("the inputs", lambda: stage.feeds)], None)
    layers = candidates.layers_of(stage)
    found = _bisection(stage, side, criterion, len(layers))
    found.runs = 1
    found.probes = probes_of(stage, compared)
    found.diagnostics = compared.diagnostics
    if output is not None and (first := found.first) is not None:
        part = candidates.without(stage, [number for number in layers if number != first.id])
        found.part = save_part(part or stage, output, None)
    return found


def _bisection(stage: Stage, side: OtherBase, criterion: Criterion, layers: int) -> Bisection:
    name = stage.model.path or stage.model.name or "the model"
    return Bisection(name, side.description, layers, 0, criterion)
