"""What a run of the model would take: rules for untrusted files, and that for loops which never end, for all files.

They look at the model for certain sizes of its inputs; see ``Context.sized``. What is still unknown counts as its
upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite

from ovir.checks.conditions import Ending, ending
from ovir.checks.rule import Context, diagnostic, greatest, rule
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import HEAVY_RUN, LARGE_TENSOR, LONG_LOOP, UNLIMITED_LOOP, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.wording import exact_size_text, plural, size_text
from ovir.graph.layers import Layer, Port
from ovir.ir.elements import line_of
from ovir.model import Model
from ovir.ops.control_flow import IterationBase, Loop, known_truth

# --------------------------------------------------------------------------- sizes


@rule(LARGE_TENSOR, for_untrusted=True)
def large_tensor(context: Context) -> Iterator[Diagnostic]:
    """Report tensors that are far larger than the file, where they first become so; and the outputs of the model."""
    limit = _limit(context)
    sizes: dict[Port | None, int] = {}
    is_found = False
    for port in [port for layer in context.sized.walk() for port in layer.outputs]:
        size = sizes[port] = _bytes(port)
        given = max((sizes.get(source.source, 0) for source in port.layer.inputs), default=0)
        if size > limit and size > given:
            is_found = True
            takes = "takes" if port.shape.is_static else "can take"
            message = f"{port.type} {takes} {exact_size_text(size)}, more than {_limit_text(context)}"
            yield diagnostic(LARGE_TENSOR, message, port, severity=Severity.ERROR)
    total = sum(sizes.get(port.layer.inputs[0].source, 0) for port in context.sized.outputs)
    if total > limit and not is_found:
        message = f"the outputs take {exact_size_text(total)} together, more than {_limit_text(context)}"
        yield diagnose(LARGE_TENSOR, message, Place(context.file, line_of(context.root)))


def _limit(context: Context) -> int:
    return max(_LARGE, _TIMES * context.weights.data.size)


def _limit_text(context: Context, times: int = 1) -> str:
    limit = times * _limit(context)
    why = "the limit for every file" if limit == times * _LARGE else f"{times * _TIMES} times the weights"
    return f"{size_text(limit)}, {why}"


def _greatest(tensor: TensorType) -> TensorType:
    shape = tensor.shape
    return tensor if shape.is_static else TensorType(tensor.element_type, greatest(shape))


def _bytes(port: Port) -> int:
    return -(-_greatest(port.type).shape.least_size * max(port.element_type.bits, 1) // 8)


_LARGE = 1 << 32
_TIMES = 16

# --------------------------------------------------------------------------- all of a run


@rule(HEAVY_RUN, for_untrusted=True)
def heavy_run(context: Context) -> Iterator[Diagnostic]:
    """Report a model whose run computes too much, or holds too many tensors at one time."""
    place = Place(context.file, line_of(context.root))
    work, most = 0.0, 0.0
    heaviest: Layer | None = None
    for model, times in _times_of(context).items():
        for layer in model.layers:
            share = min(times, _MOST) * _work(layer)  # LONG_LOOP reports more
            work += share
            if share > most:
                most, heaviest = share, layer
    if work > _MOST_WORK:
        name = "" if heaviest is None else f"; {most / work:.0%} of it in {heaviest.title}"
        message = f"a run takes {work:.3g} multiply-adds, more than {_MOST_WORK:.0e}, the limit for every file{name}"
        yield diagnose(HEAVY_RUN, message, place)
    held = _held(context.sized)
    if held > _LIVE * _limit(context):
        limit = _limit_text(context, _LIVE)
        message = f"a run holds tensors of {exact_size_text(held)} at one time, more than {limit}"
        yield diagnose(HEAVY_RUN, message, place)


def _work(layer: Layer) -> float:
    """Return the multiply-adds of a layer without a body, as far as its sizes are known."""
    is_inferred = all(port.inferred is not None for port in layer.outputs)
    if layer.operator is None or not layer.outputs or not is_inferred or layer.bodies:
        return 0.0
    types = [[_greatest(port.type) for port in ports] for ports in (layer.inputs, layer.outputs)]
    try:
        work = layer.operator.work(*types)
    except OperatorError:  # the upper bounds do not fit together
        work = 0.0
    return _STEP + (work if isfinite(work) else 0.0)


def _held(model: Model) -> int:
    """Return the most bytes that the tensors of a model and of its bodies take at one time, without its constants and
    parameters.

    A tensor is held until the last layer that reads it has run; outputs and states are held to the end.
    """
    last: dict[Port, int] = {}
    for index, layer in enumerate(model.layers):
        kept = layer.type in ("Result", "Assign")
        for port in layer.inputs:
            if port.source is not None:
                last[port.source] = max(last.get(port.source, 0), len(model.layers) if kept else index)
    ending_at: dict[int, int] = {}
    held = most = 0
    for index, layer in enumerate(model.layers):
        if layer.type not in ("Const", "Parameter"):
            for port in layer.outputs:
                size = _bytes(port)
                held += size
                end = last.get(port, index)
                ending_at[end] = ending_at.get(end, 0) + size
        most = max(most, held + max(map(_held, layer.bodies.values()), default=0))
        held -= ending_at.pop(index, 0)
    return most


_LIVE = 2
"""How many times the limit of one tensor a run may hold: a layer reads a tensor while it writes another."""
_MOST_WORK = 1e14
_STEP = 10_000
"""The multiply-adds that the call of a kernel is taken to last, at least."""

# --------------------------------------------------------------------------- loops


@rule(LONG_LOOP)
def long_loop(context: Context) -> Iterator[Diagnostic]:
    """Report loops that never end; in untrusted files also those whose bodies run more than a million times, the loops
    around them included."""
    if not context.options.untrusted:
        for layer in context.by_type.get("Loop", ()):
            if reason := endless(layer):
                yield diagnostic(LONG_LOOP, reason, layer, severity=Severity.WARNING)
        return
    for model, around in _times_of(context).items():
        for layer in model.layers:
            found = _iterations(layer)
            if found.endless:
                yield diagnostic(LONG_LOOP, found.endless, layer, severity=Severity.ERROR)
            if around * max(found.count, 1) > _MOST >= around:
                inside = "" if around == 1 else f", {around:,} times in the loops around it"
                message = f"the body runs {plural(found.count, 'time')}{inside}; more than {_MOST:,} are no model's"
                yield diagnostic(LONG_LOOP, message, layer, severity=Severity.ERROR)


@rule(UNLIMITED_LOOP, for_untrusted=True)
def unlimited_loop(context: Context) -> Iterator[Diagnostic]:
    """Report loops that may end, but have neither a trip count nor a counter in the condition."""
    for layer in context.sized.walk():
        if not _iterations(layer).is_limited:
            message = f"neither a trip count of at most {_MOST:,} nor a counter in the condition limits the iterations"
            yield diagnostic(UNLIMITED_LOOP, message, layer)


def endless(layer: Layer) -> str:
    """Return why a loop never ends; nothing if it may end, or if the layer is no loop."""
    return _iterations(layer).endless


def _times_of(context: Context) -> Mapping[Model, int]:
    """Return how often the model, once, and each body runs, as far as that is known."""
    times = {context.sized: 1}
    pending = [context.sized]
    while pending:
        model = pending.pop()
        for layer in model.layers:
            for body in layer.bodies.values():
                times[body] = times[model] * max(_iterations(layer).count, 1)
                pending.append(body)
    return times


def _iterations(layer: Layer) -> Ending:
    """Return how often the body of a layer runs, 1 if that depends on the inputs of the model."""
    operator = layer.operator
    body = layer.bodies.get("body")
    if not isinstance(operator, IterationBase) or body is None or "body" not in operator.wiring:
        return Ending(1)
    try:
        iterations = operator.iterations([port.type for port in layer.inputs], [port.type for port in body.outputs])
    except (OperatorError, IndexError):  # inference has reported it
        return Ending(1)
    if not isinstance(operator, Loop):
        return Ending(iterations.lower if iterations.upper is None else iterations.upper)
    trips = layer.inputs[0].type.value
    if iterations.upper is not None and iterations.upper <= _MOST:
        return Ending(iterations.upper)
    again = body.outputs[operator.condition().result]
    is_unlimited = trips is not None and trips.size == 1 and trips.upper.max() < 0
    if trips is None or (iterations.upper is None and not is_unlimited and trips.lower.max() <= _MOST):
        return Ending(1)  # the input of the model decides
    if not is_unlimited and known_truth(again.type) is True:
        return Ending(iterations.upper or iterations.lower)
    return ending(layer, body, _MOST)


_MOST = 1_000_000
