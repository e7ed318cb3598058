"""``ovir.bisect``: finds the first layer at which a device, another model or a recording differs from a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ovir.core.files import target_paths
from ovir.debugging.bisecting.at_hand import TensorSearch
from ovir.debugging.bisecting.bisection import Bisection, suspect_of
from ovir.debugging.bisecting.judge import Judge
from ovir.debugging.bisecting.prefixes import PrefixSearch
from ovir.debugging.bisecting.reproducer import Reproducer, run_on, smallest_part
from ovir.debugging.compare import Progress
from ovir.debugging.criterion import Criterion
from ovir.debugging.input_sets import Inputs
from ovir.debugging.reducing import candidates
from ovir.debugging.reducing.stage import Stage
from ovir.debugging.sides import Against, DeviceSide, as_model, open_side, sets_for
from ovir.model import Model


def bisect(
    model: Model | str | os.PathLike[str],
    against: Against = "openvino:CPU",
    *,
    inputs: Inputs = None,
    samples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    config: Mapping[str, str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    timeout: float | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Bisection:
    """Find the first layer at which another side differs from a model. The result is true if none was found.

    ``against``, ``device``, ``config``, ``timeout`` and the tolerances are the same as for ``ovir.compare``. On a
    device, ovir runs and compares beginnings of the model, about as many as the logarithm of the number of layers. A
    device computes a beginning as it computes the whole model, except for what it would have joined with later layers.

    A second model, an ONNX model and a recording have tensors of a whole run, which are compared in order. Where they
    do not have all tensors, several layers are ``suspects``: those between the tensors that agree and the first one
    that differs.

    ``inputs``, ``samples`` and ``seed`` give sets of inputs as for ``ovir.compare``. The layer is looked for with the
    first set for which something differs.

    ``output`` is the path of an .xml, to which the smallest part of the model that was found to differ is saved, if
    there is one: the suspects, and on a device as many layers before the diverging one as are needed. Beside it are its
    inputs, the outputs of ovir, and the outputs of the other side, as .npz, and the same part of a second model.

    Raises InputError for arguments that do not fit, ReadError for files, RunError if the model itself cannot be run.
    """
    criterion = Criterion.of(rtol, atol, metric)
    target = None if output is None else Path(target_paths(output).text)
    first = as_model(model)
    with open_side(first, against, device, None, config, timeout) as side:
        runs, sets = 0, sets_for(first, side, inputs, samples, seed)
        for number, load in enumerate(sets):
            stage = Stage(first, given=dict(enumerate(load())))
            name = first.path or first.name or "the model"
            found = Bisection(name, side.description, len(candidates.layers_of(stage)), 0, criterion)
            if isinstance(side, DeviceSide) and side.partners.b is first:
                reproducer = _on_device(found, stage, side, progress, is_saved=target is not None)
            else:
                search = TensorSearch(stage, side, criterion)
                search.run(found, progress)
                reproducer = search.reproducer
            found.runs += runs
            found.sets, found.searched_set, runs = len(sets), number, found.runs
            if not found.within:
                break
        if target is not None and reproducer is not None:
            found.part = reproducer.save(target)
    return found


def _on_device(
    found: Bisection, stage: Stage, side: DeviceSide, progress: Progress | None, *, is_saved: bool
) -> Reproducer | None:
    """Find the layer by running beginnings of the model; return the smallest part that differs if it is to be saved."""
    judge = Judge(side.device, found.criterion)
    search = PrefixSearch(stage, judge, progress)
    length = search.run()
    found.probes = [search.probes[count] for count in sorted(search.probes)]
    reproducer = None
    if length is not None:
        found.suspects = [suspect_of(stage.model.layer(search.layers[length - 1]))]
        if is_saved:
            if progress is not None:
                progress(len(search.layers) - length, len(search.layers), "looking for the smallest part")
            reproducer = run_on(side.device, smallest_part(search.part(length), judge))
    found.runs = judge.runs
    return reproducer
