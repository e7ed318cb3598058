"""``ovir.bisect``: finds the first layer at which another side differs from a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ovir.analysis.tensor_comparison import Criterion
from ovir.debugging import candidates
from ovir.debugging.bisection import Bisection
from ovir.debugging.candidates import Candidate
from ovir.debugging.compare import compare_as, with_excess
from ovir.debugging.comparison_setup import Against, ComparisonOptions, GivenInputs, Progress, as_model
from ovir.debugging.prefix_search import search_prefixes
from ovir.debugging.tensor_search import TensorSearch
from ovir.model import Model
from ovir.system.files import target_paths


def bisect(
    model: Model | str | os.PathLike[str],
    against: Against = "openvino:CPU",
    *,
    inputs: GivenInputs = None,
    samples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    config: Mapping[str, str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    timeout: float | None = None,
    explain: bool = False,
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Bisection:
    """Find the first layer at which another side differs from a model. The result is true if none was found.

    On a device, ovir runs and compares beginnings of the model, about as many as the logarithm of the number of layers.
    A device computes a beginning as it computes the whole model, except where it would fuse layers with later ones. If
    the device fails, as by a crash, the search is for the first layer at which it fails.

    A second model, an ONNX model and a recording have tensors of a whole run, which are compared in order. Where they
    do not have all tensors, several layers are ``suspects``: those between the tensors that agree and the first one
    that differs.

    Args:
        model: The model, or the path of an .xml.
        against: The other side, as for ``ovir.compare``.
        inputs: One set of inputs as in a run, a list of mappings, the path of an .npz, of a folder of them, or a
            pattern such as ``data/**/*.npz``. By default, recorded inputs, or random ones.
        samples: The number of sets of random inputs. The layer is looked for with the first set for which something
            differs.
        seed: The seed of random inputs.
        device: The device on which a second model runs; by default it runs in ovir.
        config: Properties of the device.
        rtol: The relative tolerance, as for ``ovir.compare``.
        atol: The absolute tolerance.
        metric: A metric with its limit, such as ``cosine=0.999``, in place of a tolerance.
        timeout: The seconds that one run of a device may take.
        explain: Whether the search is repeated, if something differs, with properties of the device that keep it from
            rounding; ``explanation`` of the result says whether that agrees.
        output: The path of an .xml, to which the smallest part of the model that was found to differ is saved, if there
            is one: the suspects, and on a device as many layers before the diverging one as are needed. Beside it are
            its inputs, the outputs of ovir, and the outputs of the other side, as .npz, and the same part of a second
            model.
        progress: Called with how much is done, how much there is, and what is being done.

    Raises InputError for arguments that do not fit, ReadError for files, RunError if the model itself cannot be run.
    """
    criterion = Criterion.of(rtol, atol, metric)
    options = ComparisonOptions(against, criterion, inputs, samples, seed, device, config, timeout, explain=explain)
    return bisect_as(options, model, output, progress)


def bisect_as(
    options: ComparisonOptions,
    model: Model | str | os.PathLike[str],
    output: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> Bisection:
    """Return the result of ``ovir.bisect``."""
    criterion = options.criterion
    target = None if output is None else Path(target_paths(output)[0])
    first = as_model(model)
    with options.open_side(first) as side:
        runs, sets = 0, options.sets(first, side)
        for number, load in enumerate(sets):
            whole = Candidate(first, given=dict(enumerate(load())))
            name = first.path or first.name or "the model"
            result = Bisection(name, side.description, len(candidates.layers_of(whole)), 0, criterion)
            if side.device is not None and side.runs_parts:
                reproducer = search_prefixes(result, whole, side.device, progress, is_saved=target is not None)
            else:
                reproducer = TensorSearch(whole, side, criterion).run(result, progress)
            result.precision, result.properties = side.precision, side.settings
            result.diagnostics = [*load.diagnostics, *result.diagnostics]
            result.sets, result.searched_set = len(sets), number
            result.runs = runs = runs + result.runs
            if not result.within:
                break
        if target is not None and reproducer is not None:
            result.part = reproducer.save(target)
    if result.beyond_before is not None:
        result.known = None  # it explains the failure alone
    if not result.within and not result.failed:
        explanation = options.explanation(
            result.properties, lambda again: bisect_as(again, first, None, progress).within
        )
        if explanation is not None and explanation.is_by_precision:
            outputs = compare_as(replace(options, explain=False), first, progress)
            explanation = with_excess(explanation, outputs, options, lambda again: compare_as(again, first, progress))
        result.explanation = explanation
    return result
