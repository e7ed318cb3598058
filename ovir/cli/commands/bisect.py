"""``ovir bisect``: find the first layer at which a device, another model or recorded tensors differ, with few runs.

Examples:
  ovir bisect model.xml --against openvino:CPU
  ovir bisect model.xml --against openvino:GPU --config INFERENCE_PRECISION_HINT=f16 -o part.xml
  ovir bisect before.xml after.xml
  ovir bisect before.xml after.xml --against openvino:CPU
  ovir bisect model.xml --against onnx:model.onnx
  ovir bisect model.xml --against recorded.npz --json

exit status: 0 no difference or a known one, 1 a diverging layer was found, 2 nothing could be searched
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ovir.cli.commands.sides import open_sides
from ovir.cli.options.command import Command, Options
from ovir.cli.options.comparison import OtherSideOptions
from ovir.cli.options.inputs import InputSetOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import OutputFile
from ovir.cli.terminal import output
from ovir.cli.terminal.causes import about_properties, about_quantization, status_of_difference
from ovir.cli.terminal.progress import reported
from ovir.core.tables import Table, columns
from ovir.debugging.bisect import bisect_as
from ovir.debugging.bisection import Bisection, Suspect
from ovir.debugging.reproducer import PART_ENDINGS
from ovir.diagnostics.wording import plural, readable


def add_to(command: Command) -> None:
    command.saved_beside = PART_ENDINGS
    command.error_status = output.UNUSABLE  # status 1 would say that a layer was found
    command.add(ModelOptions("shape", "legacy-io"))
    command.add(OtherSideOptions())
    command.option(
        "-o, --output PART.xml",
        "save the smallest part found to differ, and beside it its inputs and outputs as .npz",
        OutputFile,
    )
    command.add(InputSetOptions())
    command.shared("json")


def run(options: Options) -> int:
    sides = open_sides(options[ModelOptions], options[OtherSideOptions], options[InputSetOptions])
    with reported("excluding layers", sides.note) as update:
        bisection = bisect_as(sides.options, sides.model, options.output, update)
    output.print_diagnostics(bisection.diagnostics)
    if options.json:
        output.say_json(bisection.to_dict())
    else:
        causes = about_quantization(bisection, sides.model, sides.options.against), about_properties(bisection, options)
        for line in (*_head(bisection), *chain(*causes)):
            output.say_filled(readable(line))
        _print_suspects(bisection)
        if bisection.probes:
            output.say()
            output.say_table(bisection.table())
        for line in _tail(bisection):
            output.say_filled(readable(line))
    if options.output is not None and bisection.part is None:
        reason = "nothing differs" if bisection.within else "ovir cannot run any part of the model that differs alone"
        output.print_message(readable(f"note: {options.output} is not written, because {reason}"))
    return status_of_difference(bisection, options)


def _head(bisection: Bisection) -> Iterator[str]:
    sets = f", {plural(bisection.sets, 'set')} of inputs" if bisection.sets > 1 else ""
    missing = len(bisection.not_compared)
    compared = f" ({bisection.layers - missing} compared, {missing} not)" if missing else ""
    runs = f"{plural(bisection.layers, 'layer')}{compared}, {plural(bisection.runs, 'run')}{sets}"
    precision = "" if bisection.precision is None else f", which computes in {bisection.precision}"
    yield f"{bisection.model} against {bisection.against}{precision}: {runs}"
    first = bisection.first
    if first is None:
        some = "all tensors that were compared are within tolerance; the others are unknown"
        yield some if missing else "within tolerance"
        return
    if bisection.sets > 1:
        yield f"set {bisection.searched_set + 1} of the inputs, counted from 1, is the first for which tensors differ"
    shown = f"{first.type} '{first.name}' (id {first.id})"
    if len(bisection.suspects) > 1:
        yield f"first tensor that was seen to differ: of {shown}"
        yield f"at least one of {len(bisection.suspects)} layers is at fault, {_between(bisection.between, first.name)}"
    else:
        yield f"first layer beyond tolerance: {shown}"
    if bisection.known is not None:
        yield f"known divergence: {bisection.known}"
    if (problem := first.verdict.problem) is not None:
        yield f"there the other side fails: {problem}"
    if (before := bisection.beyond_before) is not None:
        yield f"tensors differ before: after {before.type} '{before.name}' (id {before.id})"
    if (again := bisection.recovered) is not None:
        seen = "all tensors that were compared agree" if missing else "all tensors agree"
        yield f"errors are not monotone: after {again.type} '{again.name}' (id {again.id}) {seen} again"


def _between(names: Sequence[str], last: str) -> str:
    """Return the place of the suspects in words, such as ``between 'a', 'b' and 'c'``."""
    listed = [f"'{name}'" for name in names[:_MOST]]
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    return f"between {', '.join([*listed, *more]) or 'the constants'} and '{last}'"


def _print_suspects(bisection: Bisection) -> None:
    if len(bisection.suspects) < 2:
        return
    output.say()
    shown = bisection.suspects[-output.LIMIT :]
    rows = [(x.name, x.type, x.id, _state(bisection, x)) for x in shown]
    output.say_table(Table(columns("suspect: layer; type: type; id: counts; its tensors: sentence"), rows))
    if len(shown) < len(bisection.suspects):
        output.say(f"{len(bisection.suspects) - len(shown)} more before them: --json lists them all")


def _state(bisection: Bisection, suspect: Suspect) -> str:
    if suspect.reason is not None:
        return f"not compared: {suspect.reason}"
    is_first = bisection.first is not None and suspect.id == bisection.first.id
    return "differ" if is_first else "within tolerance, not equal"


def _tail(bisection: Bisection) -> Iterator[str]:
    if bisection.part is not None:
        yield ""
        names = bisection.part.names
        what = "part of all suspects, which differs" if len(bisection.suspects) > 1 else "smallest part that differs"
        yield f"{what}: {plural(len(names), 'layer')}: {output.listed(names)}"
        yield f"saved as {', '.join(bisection.part.files)}"


_MOST = 5
"""The largest number of names in a line."""
