"""``ovir compare``: compare a model with a device, another model or recorded tensors, layer by layer.

Examples:
  ovir compare model.xml --against openvino:CPU
  ovir compare model.xml --against openvino:CPU --config INFERENCE_PRECISION_HINT=bf16 --isolated
  ovir compare f32.xml int8.xml --samples 10 --metric sqnr_db=30
  ovir compare before.xml after.xml --against openvino:GPU --input inputs.npz
  ovir compare model.xml --against onnx:model.onnx --inputs data/ --workers 8
  ovir compare model.xml --against openvino:GPU --repeat 5
  ovir compare model.xml --against recorded.npz --json

exit status: 0 within tolerance or a known divergence, 1 beyond, or repeated runs vary, 2 nothing could be compared
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ovir.cli.commands.sides import is_recorded, open_sides
from ovir.cli.options.command import Command, Options
from ovir.cli.options.comparison import OtherSideOptions
from ovir.cli.options.inputs import InputSetOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.node_data import NodeDataOptions
from ovir.cli.options.values import FileName, at_least_two, positive
from ovir.cli.options.workers import WorkerOptions
from ovir.cli.terminal import output
from ovir.cli.terminal.causes import about_clipping, about_properties, about_quantization, status_of_difference
from ovir.cli.terminal.progress import reported
from ovir.core.tables import Table, cell_text
from ovir.debugging.compare import compare_as
from ovir.debugging.comparison import Comparison, LayerDifference, OutputDifference, TensorDifference
from ovir.debugging.repeats import WAYS
from ovir.debugging.sides import LayerMode, NotCompared
from ovir.diagnostics.wording import plural, readable
from ovir.ir.executed import read_executed


def print_comparison(
    comparison: Comparison,
    limit: int | None,
    quantized: Sequence[str] = (),
    requested: str | None = None,
    causes: Sequence[str] = (),
) -> None:
    """Print the result for people: ``limit`` outputs and layers that differ, or all that were compared.

    ``quantized`` are the lines of ``about_quantization``, ``causes`` other lines about causes; ``requested`` says in
    which precision the device was asked to compute.
    """
    for line in (*_head(comparison, requested), *_about_quantization(comparison, quantized), *causes):
        output.say_filled(readable(line))
    if comparison.varying:
        output.say()
        title = "runs with other bits than the first, and how far apart all runs are"
        output.say_table(comparison.varying_table(), title=title, limit=limit, more="more varying tensor")
    if comparison.outputs:
        output.say()
        _print_outputs(comparison, limit)
    if comparison.layers:
        output.say()
        _print_layers(comparison, limit)
    if comparison.not_compared:
        output.say()
        for line in _not_compared(comparison.not_compared):
            output.say_filled(readable(line))


def _head(comparison: Comparison, requested: str | None) -> Iterator[str]:
    """Yield the lines before the tables; ``requested`` is the precision that the device was asked for."""
    sets = f"{plural(comparison.sets, 'set')} of inputs"
    precision = "" if comparison.precision is None else f", which computes in {comparison.precision}"
    yield f"{comparison.model} against {comparison.against}{precision}: {comparison.compared}, {sets}"
    without_outputs = "" if comparison.outputs or comparison.failed else ", but no output was compared"
    yield f"{comparison.verdict}{without_outputs}"
    if requested in ("f32", *_NARROW) and comparison.precision not in (None, requested):
        yield f"the device does not honor INFERENCE_PRECISION_HINT={requested}: it computes in {comparison.precision}"
    if comparison.repeat is not None:
        yield _about_repeats(comparison)
    first, largest = comparison.first, comparison.largest
    if comparison.known is not None:
        yield f"known divergence: {comparison.known}"
    if first is not None:
        fails = comparison.failed and first.tensor.worst.problem is not None
        what = "at which the other side fails" if fails else "beyond tolerance"
        yield f"first layer {what}: {_described(comparison, first)}"
    if largest is not None and largest is not first:
        yield f"largest contributor: {_described(comparison, largest)}"
    if first is None and not comparison.within and comparison.layers:
        failed = _FAILED if len(comparison.layers) > 1 else _FAILED_ALONE
        yield failed if comparison.failed else _ADVICE[comparison.mode]
    if rounded := next((item for item in _tensors(comparison) if item.tolerance.rounded_to is not None), None):
        kind = rounded.tolerance.rounded_to
        yield f"the model rounds to {kind}, which a device in f32 does not: later tensors have the tolerance of {kind}"
    if rounded := next((item for item in _tensors(comparison) if item.tolerance.weights_in is not None), None):
        kind = rounded.tolerance.weights_in
        yield f"one side alone has weights in {kind}: later tensors have the tolerance of rounding them to {kind}"


def _about_repeats(comparison: Comparison) -> str:
    if comparison.varies is None:
        return f"the same bits in {len(WAYS)} x {comparison.repeat} runs"
    text = f"results vary {WAYS[comparison.varies]}"
    if (first := comparison.first_varying) is None:
        return f"{text}, but those of no layer that was compared"
    return f"{text}; the first layer that varies: {first.type} '{first.name}' (id {first.id})"


def _about_quantization(comparison: Comparison, quantized: Sequence[str]) -> Iterator[str]:
    yield from quantized
    if not quantized:
        return
    if rounding := [layer for layer in comparison.layers if not layer.within and layer.rounds]:
        beyond, size = rounding[0].tensor.worst.beyond, rounding[0].tensor.worst.size
        yield (
            f"'{rounding[0].name}' is the first layer that rounds to other levels: "
            f"{beyond:,} of {plural(size, 'element')}"
        )


def _tensors(comparison: Comparison) -> list[TensorDifference]:
    return [*(item.tensor for item in comparison.outputs), *(item.tensor for item in comparison.layers)]


_NARROW = ("bf16", "f16")

_ADVICE = {
    "isolated": "no layer alone is beyond tolerance: errors add up, or the device computes several layers as one; "
    "--cumulative shows where errors grow",
    "cumulative": "no tensor between layers is beyond tolerance",
}
_FAILED_ALONE = "the device fails on the model, but not on its one layer alone, whose sizes are known in that run"
_FAILED = "the device fails on the whole model, but on no layer alone: `ovir reduce` finds the smallest part that fails"


def _described(comparison: Comparison, layer: LayerDifference) -> str:
    """Return a layer with its fault, in one line."""
    worst = layer.tensor.worst
    text = f"{layer.type} '{layer.name}' (id {layer.id})"
    if layer.has_bodies:
        text += f", compared as a whole with its {'bodies' if layer.type == 'If' else 'body'}"
    if layer.other is not None:
        text += f", '{layer.other}' in the other model"
    if layer.lone_before:
        text += f", after {' and '.join(layer.lone_before)}"
    if layer.execution is not None:
        text += f", {layer.execution}"
    if comparison.sets > 1:
        text += f", with {layer.tensor.worst_input}"
    if worst.problem is not None:
        return f"{text}: {worst.problem}"
    if worst.position is None:
        return text
    actual, reference = comparison.values
    place = ",".join(map(str, worst.position))
    share = f"{worst.beyond:,} of {plural(worst.size, 'element')} beyond"
    values = f"[{place}] {actual} {_value(worst.actual)}, {reference} {_value(worst.reference)}"
    if (metric := comparison.criterion.metric) is not None:
        value = cell_text("real", getattr(worst, metric))
        return f"{text}: {metric} {value}, the limit is {comparison.criterion.limit:g}; {values}"
    return f"{text}: {values}, {share}"


def _value(value: float | int | str | None) -> str:
    return repr(value) if isinstance(value, str) else cell_text("real", value)


def _print_outputs(comparison: Comparison, limit: int | None) -> None:
    outputs, equal = _shown(sorted(comparison.outputs, key=lambda item: item.within), limit)
    shown = outputs[:limit]
    _say_items(comparison.outputs_table(shown), shown)
    rest = sum(not item.within for item in outputs[len(shown) :])
    beyond = f", {rest:,} of them beyond tolerance" if rest else ""
    _print_rest("output", len(outputs) - len(shown), equal, beyond)


_Item = TypeVar("_Item", OutputDifference, LayerDifference)


def _shown(items: Sequence[_Item], limit: int | None) -> tuple[Sequence[_Item], int]:
    """Return the items that differ, and the number of equal ones; without a limit, return all items."""
    if limit is None:
        return items, 0
    different = [item for item in items if not item.tensor.worst.is_equal]
    return different, len(items) - len(different)


def _print_rest(noun: str, more: int, equal: int, beyond: str = "") -> None:
    """Print the number of outputs or layers that the table omits."""
    if more:
        others = f", and {equal:,} without any difference" if equal else ""
        output.say(f"and {plural(more, f'more {noun}')}{beyond}{others}; --all shows all")
    elif equal:
        output.say(f"{plural(equal, noun)} without any difference; --all shows all")


def _print_layers(comparison: Comparison, limit: int | None) -> None:
    layers, equal = _shown(comparison.ranked(), limit)
    shown = layers[:limit]
    if shown:
        output.say("layers by the noise that they add; those beyond tolerance come first")
    _say_items(comparison.layers_table(shown), shown)
    _print_rest("layer", len(layers) - len(shown), equal)


def _say_items(table: Table, items: Sequence[OutputDifference | LayerDifference]) -> None:
    """Print the table of the items, if there are any. A problem becomes a note with a number."""
    problems = dict.fromkeys(problem for item in items if (problem := item.tensor.worst.problem) is not None)
    notes = {problem: number for number, problem in enumerate(problems, 1)}
    names = [column.name for column in table.columns]
    start, end = names.index("max abs"), names.index("nonfinite")
    rows = [["" if row[0] == "within" else row[0], *row[1:]] for row in table.rows]
    for cells in rows:
        if (problem := cells[end]) in notes:
            cells[start : end + 1] = [f"see ({notes[problem]})", *[None] * (end - start)]
    if rows:
        output.say_table(replace(table, rows=rows))
    for text, number in notes.items():
        output.say_filled(readable(f"({number}) {text}"))


def _not_compared(layers: Sequence[NotCompared]) -> Iterator[str]:
    """Yield a line for each reason, with the first layers."""
    by_reason: dict[str, list[NotCompared]] = defaultdict(list)
    for layer in layers:
        by_reason[layer.reason].append(layer)
    for reason, group in by_reason.items():
        names = output.listed([f"{layer.type} '{layer.name}'" for layer in group], _SHOWN)
        text = reason if len(group) == 1 else _in_plural(reason)
        yield f"not compared: {plural(len(group), 'layer')}, because {text}: {names}"


def _in_plural(reason: str) -> str:
    """Return the reason why several layers are not compared, made from the reason for one."""
    one = next(filter(reason.startswith, _PLURALS), "")
    return _PLURALS.get(one, "") + reason.removeprefix(one)


_PLURALS = {
    "it was": "they were",
    "it is in": "they are in",
    "it is": "each is",
    "it cannot": "they cannot",
    "it draws": "they draw",
    "it only sets": "they only set",
    "its outputs": "their outputs",
    "nothing reads its outputs": "nothing reads their outputs",
    "the other model has no such layer": "the other model has no such layers",
}
_SHOWN = 3  # layers


def add_to(command: Command) -> None:
    command.error_status = output.UNUSABLE  # status 1 would say that the models differ
    command.add(ModelOptions("shape", "adapt", "legacy-io"))
    command.add(OtherSideOptions())
    modes = command.under("comparison", exclusive=True)
    modes("--isolated", "run each layer alone with the inputs that it has in ovir, also if the outputs agree")
    modes("--cumulative", "compare the tensors between the layers, where errors add up")
    command.add(InputSetOptions())
    command.under("comparison")(
        "--repeat N",
        "run the other side N times in one request, in new requests and after new compilations, and say what varies",
        at_least_two,
    )
    command.add(WorkerOptions(default="this process alone"))
    command.under("comparison")(
        "--executed exec_graph.xml",
        "the graph that a device executed: layers that differ are shown with the types that the device names for them",
        FileName,
    )
    shown = command.under("outputs", exclusive=True)
    shown("--limit N", f"show N outputs and N layers (default {output.LIMIT})", positive, default=output.LIMIT)
    shown("--all", "show all outputs and layers")
    command.add(NodeDataOptions("the largest absolute error of each layer"))
    command.shared("json", "html")


def run(options: Options) -> int:
    executed = None if options.executed is None else read_executed(options.executed)
    mode: LayerMode | None = "isolated" if options.isolated else "cumulative" if options.cumulative else None
    other, sets = options[OtherSideOptions], options[InputSetOptions]
    sides = open_sides(options[ModelOptions], other, sets, mode, options.repeat)
    model, against = sides.model, sides.options.against
    if executed is not None:
        executed.require_made_from(model, options.executed)
    if is_recorded(against) or (sets.inputs is None and sets.samples is None):
        options.refuse("divides many sets of inputs: give it with --inputs or --samples", "--workers", "--dask")
    if options[WorkerOptions].are_given:
        from ovir.workers.comparing import compare_by_workers

        options.refuse("and --workers exclude each other here: workers would not have its operations", "--extension")
        with (
            reported("comparing inputs", sides.note, rate_of="inputs") as update,
            options[WorkerOptions].opened() as workers,
        ):
            comparison = compare_by_workers(model, sides.options, update, **workers)
    else:
        rate_of = None if sets.inputs is None else "layers"
        with reported("comparing layers", sides.note, rate_of=rate_of) as update:
            comparison = compare_as(sides.options, model, update)
    output.print_diagnostics(comparison.diagnostics)
    if executed is not None:
        comparison.add_executions({layer.key: item for layer, item in executed.of(model).items()})
    if options[NodeDataOptions].node_data is not None:
        from ovir.view.overlays import of_comparison

        options[NodeDataOptions].write(of_comparison(model, comparison)[1], model)  # the errors
    requested = other.properties.get("INFERENCE_PRECISION_HINT")
    causes = [*about_clipping(comparison), *about_properties(comparison, options)]
    if options.json:
        output.say_json(comparison.to_dict())
    else:
        limit = None if options.all else options.limit
        print_comparison(comparison, limit, about_quantization(comparison, model, against), requested, causes)
    if options.html is not None:
        from ovir.cli.options.report import write_html
        from ovir.reports.compare_page import compare_page

        notes = [*list(_head(comparison, requested))[2:], *causes]
        write_html(options.html, lambda: compare_page(comparison, model, notes), options.command_line, sets.drawn_seed)
    return output.WRONG if comparison.varies is not None else status_of_difference(comparison, options)
