"""``ovir show``: summarize a model: inputs, outputs, operations, parameters, the cost of each layer, states.

Examples:
  ovir show model.xml
  ovir show model.xml --shape 1,3,224,224 --json
  ovir show model.xml --layers --sort params --limit 10
  ovir show model.xml --by prefix --csv blocks.csv
  ovir show llm.xml --shape input_ids=1,1 --state-length 4096 --memory
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ovir.analysis.summary import Provenance, Summary, ports_table, provenance, summarize
from ovir.checks.recovering import Recovered
from ovir.cli.options.command import Command, Options
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import output_with, pattern, positive
from ovir.cli.terminal import output
from ovir.cli.terminal.costs import MEASURES, cost_rows, say_costs, write_csv
from ovir.diagnostics.errors import RunError
from ovir.diagnostics.wording import escaped, plural, readable, size_text
from ovir.lowering.releases import Need, oldest_release, release_text

if TYPE_CHECKING:
    from ovir.runtime.memory import MemoryUse


def add_to(command: Command) -> None:
    command.add(ModelOptions("no-weights", "shape", "legacy-io"))
    command.option("--memory", "also plan a run, and show how much memory it takes")
    command.option("--layers", "show the cost of each layer: MACs, parameters, bytes of weights and of results")
    command.option(
        "--by type|prefix", "show costs by operation, or by the beginnings of names", choices=("type", "prefix")
    )
    command.option(
        "--sort KEY", "sort costs by macs (default), params, bytes, activations or name", choices=(*MEASURES, "name")
    )
    command.option("--filter REGEX", "show costs of the layers whose names match", pattern)
    command.option("--limit N", f"show so many rows of costs (default {output.LIMIT})", positive)
    command.option("--csv FILE.csv", "write all rows of costs to a file", output_with(".csv"))
    command.option(
        "--state-length N", "count a call in which growing states, such as caches, have this length", positive
    )
    command.shared("json", "html")


def run(options: Options) -> int:
    recovered = options[ModelOptions].recover()
    model = recovered.model
    summary = summarize(model, weights=options[ModelOptions].weights, state_length=options.state_length)
    rows = cost_rows(summary.layers, options.filter, options.by, options.sort)
    if options.csv is not None:
        write_csv(rows, options.csv)
        output.print_message(f"{escaped(options.csv)}: {plural(len(rows), 'row')} written")
    made, needs = provenance(model.rt_info), oldest_release(model)
    memory = _memory(recovered, summary) if options.memory else None
    shows_costs = any(name in options.given for name in ("--layers", "--by", "--filter", "--sort", "--limit"))
    for note in _notes(recovered, summary, options.state_length):
        output.print_note(note)
    if options.json:
        release = None if needs.release is None else release_text(needs.release)
        document = summary.to_dict() | {"made_by": vars(made)}
        document["oldest_release"] = {"release": release, "for": needs.what}
        if memory is not None:
            without_reuse = summary.costs.total.written.upper
            document["memory"] = {**vars(memory), "activations_without_reuse": without_reuse}
        output.say_json(document | {"costs": [row.to_dict() for row in rows]})
    elif shows_costs:
        if summary.sizes:
            output.say_filled(f"counted {readable(summary.sizes_text)}; --shape gives other sizes")
        say_costs(rows, options.filter is not None, summary, options.limit or output.LIMIT)
    else:
        _print(summary, made, needs)
    if memory is not None and not options.json:
        output.say()
        output.say(f"memory      {_memory_text(memory)}")
        if (whole := summary.costs.total.written.upper) is not None:
            output.say(f"            {size_text(whole)} between layers, without reuse of memory")
    if options.html is not None:
        from ovir.cli.options.report import write_html
        from ovir.reports.show_page import Shown, show_page

        shown = Shown(recovered, summary, made, needs, memory)
        write_html(options.html, lambda: show_page(shown), options.command_line)
    return output.status_of(recovered.errors)


def _notes(recovered: Recovered, summary: Summary, state_length: int | None) -> Iterator[str]:
    """Yield why numbers are not known, and which option has no effect."""
    if summary.unsized is not None and summary.macs_unknown:
        yield f"no sizes were found for the dynamic inputs (give them with --shape): {summary.unsized}"
    elif recovered.lacks_weights and summary.macs_unknown:
        yield "sizes that constants decide are not known, because there are no weights"
    if state_length is not None and not any(state.step_bytes for state in summary.states):
        yield "--state-length has no effect: no state of the model grows from call to call"


def _memory(recovered: Recovered, summary: Summary) -> MemoryUse | None:
    """Return the memory that a run takes; print a message and return None for a model that cannot be run."""
    from ovir.runtime.compiled import CompiledModel
    from ovir.runtime.memory import memory_use  # these need the runtime

    if recovered.errors or recovered.lacks_weights:
        output.print_message("the memory of a run is not known: the model has faults, or no weights")
        return None
    try:
        return memory_use(CompiledModel(summary.sized).plan())
    except RunError as error:
        output.print_message(str(error))
        return None


def _memory_text(memory: MemoryUse) -> str:
    if not memory.unknown:
        return f"{size_text(memory.total)} at most in a run: {memory}"
    unknown = f"{plural(memory.unknown, 'tensor')} of unknown size (fix the inputs with --shape)"
    return f"{size_text(memory.total)} in a run without {unknown}: {memory}"


def _print(summary: Summary, made: Provenance, needs: Need) -> None:
    parts = f"IR version {summary.ir_version}", plural(summary.layer_count, "layer"), *summary.opsets
    output.say(f"{escaped(summary.name) or '(no name)'}: {', '.join(parts)}")
    if text := str(made):
        output.say(f"made by {readable(text)}")
    output.say(f"needs {readable(str(needs))}")
    if not summary.layer_count:
        return
    for title, ports in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        output.say()
        output.say_table(ports_table(title, ports))
    output.say()
    output.say_table(summary.operations_table())
    output.say()
    output.say_table(summary.constants_table())
    output.say()
    parameters = summary.constants.values()
    constants = plural(sum(p.tensors for p in parameters), "constant")
    once = "" if summary.parameters == sum(p.elements for p in parameters) else "; equal bytes of the file count once"
    output.say(f"parameters  {summary.parameters:,} elements in {constants}{once}")
    size = summary.file_bytes
    file = f" of a file of {size_text(size)}" if size is not None else ", but there is no file"
    output.say(f"weights     {size_text(summary.weights_bytes)}{file if summary.weights_bytes or size else ''}")
    output.say(f"MACs        {_macs(summary)}")
    if summary.not_run:
        output.say(f"cannot be run yet: {readable(output.listed_layers(summary.not_run))}")
    if summary.states:
        output.say()
        states = summary.states
        output.say_table(summary.states_table())
        whole, step = (
            sum(amounts) for amounts in zip(*((s.bytes or 0, s.step_bytes or 0) for s in states), strict=True)
        )
        grow = f"; each step, such as a token, adds {size_text(step)}" if step else ""
        output.say(f"states      {size_text(whole)} after the call{grow}")
    if summary.model_info:
        output.say()
        output.say_table(summary.info_table())


def _macs(summary: Summary) -> str:
    total, unknown = summary.costs.total.macs, len(summary.macs_unknown)
    text = f"{summary.macs:,}"
    if not unknown and not total.is_static:
        text = f"{total.lower:,} to {text}, which depends on values"
    if summary.sizes:
        text += f" {readable(summary.sizes_text)}"
    return f"{text}, and unknown for {plural(unknown, 'layer')}" if unknown else text
