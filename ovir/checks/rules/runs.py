"""Rules about the cost of a run, for untrusted files, and the rule about endless loops, for all files.

They look at the model for certain sizes of its inputs; see ``Context.choose_sizes``. An unknown size counts as
its upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite

from ovir.checks.conditions import MOST_ITERATIONS
from ovir.checks.owners import counted_sizes
from ovir.checks.rule import Context, Found, rule
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import LONG_LOOP, Code, Severity
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.wording import exact_size_text, plural, size_text
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.base.operator import Operator

Estimate = Callable[[Sequence[TensorType], Sequence[TensorType]], float]

# --------------------------------------------------------------------------- sizes


@rule(Code.error(7, "a tensor is out of proportion to the file", danger=7.5), for_untrusted=True, of_runs=True)
def large_tensor(context: Context) -> Iterator[Found]:
    """Error. A tensor, or all outputs of the model together, need more than 4.3 GB and more than 16 times the size of
    the weights. A file of one kilobyte can ask for terabytes. Tensors that are no larger than an input of their layer
    are not reported. A size that is not known counts as its upper bound; a size of an input without one counts as 1,
    because its caller chooses it. A string counts as 32 bytes and the longest string, or the bytes, it can come from.
        <data shape="2000000,1000000" element_type="f32" />
    Fix: reshape the model to the sizes that it is used with.
    """
    limit = _limit(context)
    is_found = False
    for port, size in context.sizes.items():
        if size > limit and size > max((_size(context, source) for source in port.layer.inputs), default=0):
            is_found = True
            takes = "takes" if port.shape.is_static else "can take"
            message = f"{port.type} {takes} {exact_size_text(size)}, more than {_limit_text(context)}"
            yield Found(message, port, severity=Severity.ERROR)
    total = sum(_size(context, port.layer.inputs[0]) for port in context.model.outputs)
    if total > limit and not is_found:
        message = f"the outputs take {exact_size_text(total)} together, more than {_limit_text(context)}"
        yield Found(message, context.place)


def _size(context: Context, port: Port) -> int:
    """Return the bytes of an input."""
    return 0 if port.source is None else context.sizes[port.source]


def _limit(context: Context) -> int:
    return max(_LARGE, _TIMES * context.weights.data.size)


def _limit_text(context: Context, times: int = 1) -> str:
    limit = times * _limit(context)
    why = "the limit for every file" if limit == times * _LARGE else f"{times * _TIMES} times the weights"
    return f"{size_text(limit)}, {why}"


def _counted(tensor: TensorType) -> TensorType:
    """Return the tensor at its counted sizes; a static one keeps its known value, which ``work`` may read."""
    return tensor if tensor.shape.is_static else TensorType(tensor.element_type, counted_sizes(tensor.shape))


_LARGE = 1 << 32
_TIMES = 16


@rule(
    Code.error(17, "nothing bounds a size that the file decides", danger=7.5),
    for_untrusted=True,
    of_runs=True,
    needs_whole_graph=True,
)
def unbounded(context: Context) -> Iterator[Found]:
    """Error. The size of a tensor, or the iterations of a loop, follow from constants or random numbers, in a way that
    the check does not follow, and nothing bounds them: the run may need any amount of memory or time. Sizes that depend
    on the values of inputs are the caller's and are not reported.
        <layer id="7" name="count" type="ReduceSum" version="opset1">   <!-- the sum over a random tensor, as a size -->
    Fix: write the size as a constant, or bound it, for example by Minimum.
    """
    for layer in context.layers:
        if (reason := context.owners.unbounded(layer)) is not None:
            what = "the iterations of its body" if layer.bodies else "the size of its output"
            yield Found(f"nothing bounds {what}: {reason}", layer, severity=Severity.ERROR)


# --------------------------------------------------------------------------- all of a run


@rule(Code.error(15, "a run computes or holds too much", danger=7.5), for_untrusted=True, of_runs=True)
def heavy_run(context: Context) -> Iterator[Found]:
    """Error. A run takes more than 10^14 multiply-adds over all layers, those of bodies as often as their loops run; or
    it holds tensors of more than 8.6 GB, and of more than 32 times the weights, at one time, besides the inputs and
    constants. An element that is read or written counts as 4 multiply-adds, each tap of a window and each pixel of a
    sample as 1, and each call of a kernel as 10,000. A tensor is held until the last layer that reads it has run;
    outputs, states and results of constants are held to the end. The temporaries of a kernel are held while it runs.
        <data shape="32768,32768" element_type="f32" />   <!-- and 500 products of it -->
    Fix: reshape the model to the sizes that it is used with.
    """
    work, most = 0.0, 0.0
    heaviest: Layer | None = None
    for model, times in context.times.items():
        for layer in model.layers:
            share = min(times, MOST_ITERATIONS) * _work(layer)  # LONG_LOOP reports more
            work += share
            if share > most:
                most, heaviest = share, layer
    if work > _MOST_WORK:
        name = "" if heaviest is None else f"; {most / work:.0%} of it in {heaviest.title}"
        message = f"a run takes {work:.3g} multiply-adds, more than {_MOST_WORK:.0e}, the limit for every file{name}"
        yield Found(message, context.place)
    held = _held(context.model, context.sizes)
    if held > _LIVE * _limit(context):
        limit = _limit_text(context, _LIVE)
        message = f"a run holds tensors of {exact_size_text(held)} at one time, more than {limit}"
        yield Found(message, context.place)


def _work(layer: Layer) -> float:
    """Return the multiply-adds of a layer without a body, as far as its sizes are known."""
    work = _estimated(layer, lambda op: op.work)
    return 0.0 if work is None else _STEP + work


def _estimated(layer: Layer, estimate: Callable[[Operator], Estimate]) -> float | None:
    """Return an estimate of a layer for the upper bounds of its sizes, or None for a layer that has no kernel."""
    is_inferred = all(port.inferred is not None for port in layer.outputs)
    if layer.operator is None or not layer.outputs or not is_inferred or layer.bodies:
        return None
    types = [[_counted(port.type) for port in ports] for ports in (layer.inputs, layer.outputs)]
    try:
        estimated = estimate(layer.operator)(*types)
    except OperatorError:  # the upper bounds do not fit together
        estimated = 0.0
    return estimated if isfinite(estimated) else 0.0


def _held(model: Model, sizes: Mapping[Port, int]) -> int:
    """Return the most bytes that the tensors of a model and of its bodies, and the temporaries of one kernel, take at
    one time, without its constants and parameters.

    A tensor is held until the last layer that reads it has run; outputs and states are held to the end, and so is what
    the run reads of what is computed from constants alone, before anything else.
    """
    folded = _computed_from_constants(model)
    layers = sorted(model.layers, key=lambda layer: layer not in folded)
    last: dict[Port, int] = {}
    for index, layer in enumerate(layers):
        for port in layer.inputs:
            if (source := port.source) is not None:
                kept = layer.type in ("Result", "Assign") or (source.layer in folded and layer not in folded)
                last[source] = max(last.get(source, 0), len(layers) if kept else index)
    ending_at: dict[int, int] = {}
    held = most = 0
    for index, layer in enumerate(layers):
        if layer.type not in ("Const", "Parameter"):
            for port in layer.outputs:
                size = sizes[port]
                held += size
                end = last.get(port, index)
                ending_at[end] = ending_at.get(end, 0) + size
        inside = max((_held(body, sizes) for body in layer.bodies.values()), default=0)
        most = max(most, held + inside + int(_estimated(layer, lambda op: op.temporary_bytes) or 0))
        held -= ending_at.pop(index, 0)
    return most


def _computed_from_constants(model: Model) -> set[Layer]:
    """Return the constants of a model and the layers that need nothing else, which a compiler computes beforehand."""
    folded: set[Layer] = set()
    for layer in model.layers:
        if (op := layer.operator) is None or not op.pure:
            continue
        read = [port.source for port in op.with_elements_read(layer.inputs)]
        if all(source is None or source.layer in folded for source in read) and all(
            port.type.shape.is_static for port in (*layer.inputs, *layer.outputs)
        ):
            folded.add(layer)
    return folded


_LIVE = 2
"""The number of tensors of the largest size that a run may hold: a layer reads one while it writes another."""
_MOST_WORK = 1e14
_STEP = 10_000
"""The multiply-adds that the call of a kernel is taken to last, at least."""

# --------------------------------------------------------------------------- loops


@rule(LONG_LOOP, of_runs=True)
def long_loop(context: Context) -> Iterator[Found]:
    """Report loops that never end; in untrusted files also those whose bodies run more than a million times, the loops
    around them included."""
    severity = Severity.ERROR if context.options.untrusted else Severity.WARNING
    for layer, loop in context.endings.items():
        if loop.endless:
            yield Found(loop.endless, layer, severity=severity)
    if not context.options.untrusted:
        return
    for model, around in context.times.items():
        for layer in model.layers:
            if (end := context.endings.get(layer)) is None:
                continue
            if around * max(end.count, 1) > MOST_ITERATIONS >= around:
                inside = "" if around == 1 else f", {around:,} times in the loops around it"
                most = f"no real model runs more than {MOST_ITERATIONS:,} iterations"
                message = f"the body runs {plural(end.count, 'time')}{inside}; {most}"
                yield Found(message, layer, severity=Severity.ERROR)


@rule(Code.warning(16, "nothing in the file limits the iterations of a loop"), for_untrusted=True, of_runs=True)
def unlimited_loop(context: Context) -> Iterator[Found]:
    """Warning. A loop has no trip count of at most a million, and its condition may become false, but no integer in it
    counts towards a limit. Whether and when it ends depends on the inputs.
        <layer id="7" name="go_on" type="Less" version="opset1">   <!-- sum(x) < 100, where each iteration changes x -->
    Fix: give the loop a trip count.
    """
    for layer, end in context.endings.items():
        if not end.is_limited:
            message = f"neither a trip count of at most {MOST_ITERATIONS:,} nor a counter in the condition limits the"
            yield Found(f"{message} iterations", layer)
