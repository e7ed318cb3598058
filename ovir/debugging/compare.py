"""`ovir.compare`: finds the layers at which a model differs from another model, an engine or a recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from ovir.analysis.tensor_comparison import Criterion
from ovir.debugging.comparison import Comparison
from ovir.debugging.comparison_session import Session
from ovir.debugging.comparison_setup import Against, ComparisonOptions, GivenInputs, Progress, as_model
from ovir.debugging.device_properties import Explanation
from ovir.debugging.sides import LayerMode
from ovir.model import Model
from ovir.runtime.emulation import NARROW


def compare(
    model: Model | str | os.PathLike[str],
    against: Against = "openvino:CPU",
    *,
    inputs: GivenInputs = None,
    samples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    config: Mapping[str, str] | None = None,
    mode: LayerMode | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    timeout: float | None = None,
    explain: bool = False,
    repeat: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare the outputs and layers of a model in ovir with another side. The result is true if all are within
    tolerance, and do not vary if runs are repeated.

    On a device, layers are compared only if outputs differ or vary, or with a ``mode``. All other sides are compared
    cumulatively; a second model can be isolated, too, and is compared as a device is if its runs are repeated.

    Args:
        model: The model, or the path of an .xml.
        against: A device of OpenVINO (``openvino:CPU``), an ONNX model (``onnx:model.onnx``), a second model (a Model
            or the path of an .xml), or recorded tensors by name (a mapping, or the path of an .npz).
        inputs: One set of inputs as in a run, a list of mappings, the path of an .npz, of a folder of them, or a
            pattern such as ``data/**/*.npz``. By default, recorded inputs, or random ones.
        samples: The number of sets of random inputs.
        seed: The seed of random inputs.
        device: The device on which a second model runs; by default it runs in ovir.
        config: Properties of the device.
        mode: The comparison of layers: ``isolated`` runs each layer alone with the inputs that it has in ovir,
            ``cumulative`` compares the tensors between layers as errors add up.
        rtol: The relative tolerance. By default the tolerance of a tensor follows from its element type and how many
            numbers are summed up. Integers must be equal.
        atol: The absolute tolerance.
        metric: A metric with its limit, such as ``cosine=0.999``, in place of a tolerance.
        timeout: The seconds that one run of a device may take.
        explain: Whether a comparison beyond tolerance is repeated with properties of the device that keep it from
            rounding; ``explanation`` of the result says whether that agrees.
        repeat: How often the other side runs each set of inputs in one request, in new requests, and after new
            compilations. ``varies`` and ``varying`` of the result say in which of these ways, and what.
        progress: Called with how much is done, how much there is, and what is being done.

    Raises InputError for arguments that do not fit, ReadError for files, RunError if the model itself cannot be run. A
    device that fails is part of the result.
    """
    criterion = Criterion.of(rtol, atol, metric)
    options = ComparisonOptions(
        against, criterion, inputs, samples, seed, device, config, timeout, mode, explain, repeat
    )
    return compare_as(options, model, progress)


def compare_as(
    options: ComparisonOptions, model: Model | str | os.PathLike[str], progress: Progress | None
) -> Comparison:
    """Return the result of ``ovir.compare``."""
    first = as_model(model)
    with options.open_side(first) as side:
        session = Session(first, side, options.criterion, progress)
        comparison = session.run(options.sets(first, side), options.mode)
    return explained(comparison, options, lambda again: compare_as(again, first, progress))


def explained(
    comparison: Comparison, options: ComparisonOptions, compare: Callable[[ComparisonOptions], Comparison]
) -> Comparison:
    """Return a comparison with its explanation, if one is wanted and it is beyond tolerance."""
    if not comparison.within and not comparison.failed:
        explanation = options.explanation(comparison.properties, lambda again: compare(again).within)
        comparison.explanation = with_excess(explanation, comparison, options, compare)
    return comparison


def with_excess(
    explanation: Explanation | None,
    comparison: Comparison,
    options: ComparisonOptions,
    compare: Callable[[ComparisonOptions], Comparison],
) -> Explanation | None:
    """Return an explanation that also holds the errors of outputs against those of an emulation of the precision."""
    if explanation is None or not explanation.is_by_precision or comparison.precision not in NARROW:
        return explanation
    emulated = compare(options.emulated(comparison.precision))
    pairs = zip(comparison.outputs, emulated.outputs, strict=True)
    errors = ((a.tensor.worst.rmse, b.tensor.worst.rmse) for a, b in pairs)
    return replace(explanation, excess=max((a / b for a, b in errors if a is not None and b), default=None))
