"""``ovir run``: run a model and show its outputs.

Examples:
  ovir run model.xml
  ovir run model.xml --shape image=4,3,224,224 --seed 7 --profile
  ovir run model.xml --input image=photo.npy --input ids=batch.npz:ids --output out.npz
  ovir run model.xml --input inputs.npz --tap 'conv[0-9]+$' --json
  ovir run model.xml --input image=photo.jpg --mean 124,116,104 --scale 58,57,57 --top 5
  ovir run model.xml --watch nan,inf,overflow:f16
  ovir run model.xml --record all.npz --tap attention
  ovir run model.xml --input ids=[[101,7592,102]] --input text='some words' --repeat 20
  ovir run model.xml --inputs images/ --output results/ --workers 8 --resume

Without --input, inputs are random numbers; those that serve as indices stay in range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ovir.analysis.tensor_stats import as_numbers, likely_classes, stats
from ovir.cli.options.budget import BudgetOptions
from ovir.cli.options.command import Command, Options
from ovir.cli.options.engine import EngineOptions, named_arrays, taps_of
from ovir.cli.options.inputs import InputOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.node_data import NodeDataOptions
from ovir.cli.options.targets import check_target
from ovir.cli.options.values import FileName, OutputFile, output_with, pattern, positive, raise_usage_error
from ovir.cli.options.workers import WorkerOptions
from ovir.cli.terminal import output
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, cell_text, columns
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ReadError, RunError
from ovir.diagnostics.wording import escaped, plural, readable
from ovir.graph.layers import Port
from ovir.model import Model
from ovir.reports.ran import Ran, element_type_text, tensors_table
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.listeners import Listener, steps_wanted_by, tapped_ports
from ovir.runtime.results import Results
from ovir.runtime.weight_files import require_unchanged
from ovir.system.files import replaced_file
from ovir.system.progress import stage

if TYPE_CHECKING:
    from ovir.analysis.metrics import Score
    from ovir.analysis.profile import Profile, RunTimes
    from ovir.checks.untrusted.budget import Budget
    from ovir.debugging.watch import Watch, WatchedConstant

IN_FULL = 1024
"""JSON contains the values of tensors of up to this many elements."""
ROWS = 10
"""Scores of so many rows are shown; JSON has all."""


def print_tables(ran: Ran) -> None:
    output.say_table(tensors_table("output", ran.outputs))
    for name, array, _, _ in ran.outputs:
        if ran.top is not None:
            _print_scores(name, ran.scores(array) or ())
        elif classes := likely_classes(array):
            shown = ", ".join(f"{c} ({p:.3f})" for c, p in classes[:10]) + (", ..." if len(classes) > 10 else "")
            output.say()
            output.say_filled(f"{readable(name)}: the most probable class by row: {shown}")
    if ran.results.taps:
        output.say()
        output.say_table(tensors_table("tap", ran.taps))
    if ran.watch is not None:
        print_watch(ran.watch)
    if ran.profile is not None:
        _print_profile(ran.profile, ran.profiled)
    if ran.times is not None:
        from ovir.analysis.profile import WARM_UP

        text = ", ".join(f"{name} {seconds * 1000:.3f}" for name, seconds in ran.times.to_dict().items())
        output.say()
        output.say_filled(f"{plural(len(ran.times.seconds), 'run')} after {WARM_UP} to warm up, in ms: {text}")


def _print_profile(profile: Profile, profiled: RunTimes | None) -> None:
    runs = f"medians of {plural(profile.runs, 'run')}"
    output.say()
    output.say_filled(f"time in layers {profile.seconds * 1000:.2f} ms; a run without the profile: {profiled}; {runs}")
    output.say()
    output.say_table(profile.types_table())
    output.say()
    output.say_table(profile.layers_table(), limit=output.LIMIT, more="faster layer")


def print_json(ran: Ran, seed: int | None) -> None:
    document: dict[str, Any] = {
        "model": ran.model.path,
        "seed": seed,
        "seconds": ran.seconds,
        "inputs": [
            {"name": port.any_name, **_tensor(ran.feeds[i], port), "random": i in ran.random}
            for i, port in enumerate(ran.model.inputs)
        ],
        "outputs": [
            {"name": name, "names": sorted(port.names), **_tensor(array, port), **_top(ran.scores(array))}
            for port, (name, array, *_) in zip(ran.model.outputs, ran.outputs, strict=True)
        ],
        "taps": {
            name: [_tensor(*pair) for pair in zip(arrays, tapped_ports(ran.model, name), strict=True)]
            for name, arrays in ran.results.taps.items()
        },
        "diagnostics": [d.to_dict() for d in (*ran.model.diagnostics, *ran.results.diagnostics)],
    }
    if ran.profile is not None:
        document["profile"] = {
            "seconds": ran.profile.seconds,
            "runs": [] if ran.profiled is None else list(ran.profiled.seconds),
            "types": [{"type": t.type, "calls": t.calls, "seconds": t.seconds} for t in ran.profile.types()],
            "layers": [vars(t) for t in ran.profile.layers()],
        }
    if ran.watch is not None:
        document.update(ran.watch.to_dict())
    if ran.times is not None:
        document["repeat"] = {"runs": list(ran.times.seconds), **ran.times.to_dict()}
    output.say_json(document)


def _top(rows: list[list[Score]] | None) -> dict[str, Any]:
    """Return the highest scores for JSON; those of classes without names have no label."""
    scores = [[{k: v for k, v in score._asdict().items() if v is not None} for score in row] for row in rows or ()]
    return {} if rows is None else {"top": scores}


def _print_scores(name: str, rows: Sequence[Sequence[Score]]) -> None:
    """Print the highest scores of each row."""
    if not rows:
        return
    output.say()
    shown = [(row, s.number, s.value, s.label) for row, scores in enumerate(rows[:ROWS]) for s in scores]
    has_labels = any(label is not None for *_, label in shown)
    table = Table(columns("row: count; class: count; score: real" + "; label: text" * has_labels), shown)
    output.say_table(table, title=f"{readable(name)}: the highest scores by row")
    if len(rows) > ROWS:
        output.say(f"and {plural(len(rows) - ROWS, 'row')} more; --json has all")


def _tensor(array: Array, port: Port) -> dict[str, Any]:
    """Return an array for JSON."""
    entry: dict[str, Any] = {"shape": list(array.shape), "type": element_type_text(array, port)}
    entry |= json_fields(stats(array), "min=minimum", "max=maximum", "mean", "nonfinite")
    if array.size <= IN_FULL:
        entry["values"] = array.tolist() if array.dtype.kind in "TUSOb" else as_numbers(array).tolist()
    return entry


_MARGINS = 10
_CONTENTS = {"nan": "NaN", "inf": "infinity"}


def print_watch(watch: Watch) -> None:
    """Print the layers that made watched values, and those that are nearest to overflow."""
    watched = ", ".join(map(str, watch.conditions))
    output.say()
    for name, what in watch.inputs:
        contents = _CONTENTS.get(what, f"values of {what}")
        consequence = "; layers that depend on it are not reported" if what == "nan" else ""
        output.say_filled(readable(f"input '{name}' contains {contents}{consequence}"))
    for constant in watch.constants[: output.LIMIT]:
        output.say_filled(readable(_watched_constant(constant)))
    if (more := len(watch.constants) - output.LIMIT) > 0:
        output.say(f"and {plural(more, 'constant')} more; --json has all")
    if watch.events:
        table = watch.table()
        output.say_table(replace(table, rows=table.rows[: output.LIMIT]), title=f"watched for {watched}:")
        if (more := len(watch.events) - output.LIMIT) > 0:
            output.say(f"and {plural(more, 'layer')} more; --json has all")
    else:
        known = [kind for kind, items in (("inputs", watch.inputs), ("constants", watch.constants)) if items]
        others = f", apart from what follows from these {' and '.join(known)}" if known else ""
        output.say_filled(f"watched for {watched}: no layer makes such values{others}")
    _print_margins(watch)


def _watched_constant(constant: WatchedConstant) -> str:
    more = f" and {constant.count - 1:,} more" if constant.count > 1 else ""
    numbers = f"{cell_text('real', constant.value)}{more}"
    readers = f", read by {', '.join(constant.readers[:3])}" if constant.readers else ""
    kind = constant.what.partition(":")[2]
    what = f"is beyond {kind}: {numbers}" if kind else f"contains {_CONTENTS[constant.what]}"
    return f"constant '{constant.layer}' {what}{readers}"


def _print_margins(watch: Watch) -> None:
    margins = watch.margins
    for name in dict.fromkeys(name for margin in margins for name in margin.margins):
        nearest = sorted(margins, key=lambda margin: margin.margins[name])[:_MARGINS]
        output.say()
        rows = [(m.layer, m.type, m.largest, m.margins[name]) for m in nearest]
        table = Table(columns("layer: layer; operation: type; largest: real; margin: real"), rows)
        output.say_table(table, title=f"nearest to overflow in {name}:")
        if beyond := sum(margin.margins[name] < 1 for margin in margins):
            output.say(f"{plural(beyond, 'layer')} beyond {name} (margin below 1)")


def add_to(command: Command) -> None:
    command.add(ModelOptions("shape", "adapt", "legacy-io"))
    command.add(InputOptions())
    command.add(WorkerOptions())
    many = command.under("many inputs")
    many("--batch N", "with --inputs: run N inputs at once, stacked along a dynamic axis", positive)
    many(
        "--resume",
        "with --inputs: keep the results of an interrupted run, and run what is missing, failed or out of date",
    )
    outputs = command.under("outputs")
    outputs(
        "--output FILE.npz",
        "save the outputs, and taps as tap:NAME; with --inputs, the folder for a file of each input",
        OutputFile,
    )
    outputs(
        "--tap REGEX",
        "also show the outputs of layers whose name, or whose tensor's name, matches; with --record, save only these",
        pattern,
        repeated=True,
    )
    outputs(
        "--record FILE.npz",
        "save the inputs and the result of every layer, or of those that --tap selects, as they are computed",
        output_with(".npz"),
    )
    outputs("--top N", "show the N highest scores of each row of the outputs", positive)
    outputs("--labels FILE", "with --top: a text file with the name of one class in each line", FileName)
    command.under("checks")(
        "--watch WHAT",
        "report the layers that make such values first: nan, inf, overflow:TYPE, denormal:TYPE, as in "
        "nan,inf,overflow:f16; the exit status is then 1 if there are any",
        repeated=True,
    )
    command.add(EngineOptions())
    engine = command.under("engine")
    engine("--repeat N", "run N more times, and show how long the runs take (median, percentiles)", positive)
    engine("--profile", "show the time that each layer and each type of operation takes")
    command.add(NodeDataOptions("the largest absolute value of each layer, or with --profile its time,"))
    command.add(BudgetOptions("run the model in a process with limited time, memory and size of files"))
    command.shared("json", "html")


def run(options: Options) -> int:
    source, given = options[ModelOptions], options[InputOptions]
    engine, node_data = options[EngineOptions], options[NodeDataOptions]
    if (budget := options[BudgetOptions].budget()) is not None:
        options.refuse("and --untrusted exclude each other: it limits one process", "--workers", "--dask")
        return _run_guarded(options[BudgetOptions].without(options.command_line), source, budget)
    if given.inputs is not None:
        from ovir.cli.commands.run_many import run_many

        return run_many(options)
    options.refuse("is for many inputs, which --inputs gives", "--workers", "--dask", "--batch", "--resume")
    given.refuse_folders()
    if options.top is None:
        options.refuse("names the classes that --top N shows", "--labels")
    labels: Sequence[str] = ()
    if options.labels is not None:
        from ovir.io.tensor_files import read_texts  # most runs do not need it

        labels = read_texts(options.labels)
    if options.output is not None:
        check_target("--output", options.output, ".npz")
    watch = _watch(options.watch, engine.emulate) if options.watch else None
    ranges = node_data.ranges(engine.engine, times=options.profile)
    model = engine.open(source)
    inputs = given.collect(model)
    try:
        taps = taps_of(model, options.tap)
        compiled = engine.compiled(model)
        listeners: list[Listener] = [listener for listener in (watch, ranges) if listener is not None]
        if options.record is not None:
            results, seconds = _record(compiled, inputs.feeds, taps if options.tap else None, listeners, options.record)
        else:
            results, seconds = _run_compiled(compiled, inputs.feeds, taps, listeners)
        profile = profiled = times = None
        if options.profile or options.repeat:
            from ovir.analysis.costs import costs_with
            from ovir.analysis.profile import profile_runs, time_runs

            profile, profiled = profile_runs(compiled, inputs.feeds) if options.profile else (None, None)
            if profile is not None:
                profile.add_costs(costs_with(model, [inputs.feeds[i].shape for i in range(len(model.inputs))]))
            times = time_runs(compiled, inputs.feeds, options.repeat) if options.repeat else None
    except RunError as error:
        inputs.hint_at_choices(model, error)
        from ovir.analysis.summary import not_run

        if lacking := not_run(model):
            error.add_note(f"  cannot be run yet: {readable(output.listed_layers(lacking))}")
        raise
    output.print_diagnostics(results.diagnostics)
    is_doubtful = _are_overwritten(compiled)
    if engine.emulate == "f16" and watch is None:
        _print_clamped(model)
    if options.output is not None:
        from ovir.io.tensor_files import save_npz

        save_npz(options.output, named_arrays(results), "write the results")
    if node_data.node_data is not None:
        node_data.write_run(model, profile, ranges)
    random = frozenset(model.inputs.index(item.port) for item in inputs.made)
    ran = Ran(
        *(model, inputs.feeds, results, seconds, random, profile, times, watch),
        profiled=profiled,
        top=options.top,
        labels=labels,
    )
    _refuse_labels(ran, options.labels)
    if options.json:
        print_json(ran, seed=(given.seed or 0) if random else None)
    else:
        print_tables(ran)
    if options.html is not None:
        from ovir.analysis.profile import time_runs
        from ovir.cli.options.report import write_html
        from ovir.reports.run_page import run_page, types_of_run

        later = None if times or profiled else time_runs(compiled, ran.feeds, 1)
        typed = replace(ran, types=types_of_run(compiled, ran.feeds), later=later)
        write_html(options.html, lambda: run_page(typed), options.command_line, given.drawn_seed)
    return output.WRONG if is_doubtful or (watch is not None and watch.events) else output.DONE


def _refuse_labels(ran: Ran, file: str | None) -> None:
    """Raise InputError for names of classes that fit no output: each would name a wrong class."""
    rows = [row for _, array, *_ in ran.outputs for row in ran.scores(array) or ()]
    if file is not None and rows and all(score.label is None for row in rows for score in row):
        lengths = ", ".join(f"'{name}' {array.shape}" for name, array, *_ in ran.outputs)
        scores = plural(len(ran.labels), "score")
        raise_usage_error(f"--labels {file}: no output has {scores}, one for each name: {lengths}")


def _run_guarded(command: Sequence[str], source: ModelOptions, budget: Budget) -> int:
    """Run the command in a process within a budget, and return the exit status."""
    from ovir.checks.untrusted.guarded_command import run_guarded  # trusted models do not need it

    outcome = run_guarded(command, source.require_file("--untrusted"), source.weights, budget)
    if isinstance(outcome, Diagnostic):
        output.print_diagnostics([outcome])
        return output.WRONG
    status, messages = outcome
    if messages:
        output.print_message(messages.rstrip("\n"))
    return status


def _are_overwritten(compiled: CompiledModel) -> bool:
    """Print an error, and return True, if the weights were overwritten while the model ran."""
    try:
        require_unchanged(compiled.weight_files, "the results may be of both")
    except ReadError as error:
        output.print_diagnostics(error.diagnostics)
        return True
    return False


def _watch(texts: Sequence[str], emulated: str | None) -> Watch:
    """Return the watch of ``--watch``. In an emulated run, overflowing values have become infinite."""
    from ovir.debugging.watch import Watch

    what = ",".join(texts)
    watch = Watch(what)
    if emulated is not None and f"overflow:{emulated}" in map(str, watch.conditions):
        return Watch(f"{what},inf")
    return watch


def _print_clamped(model: Model) -> None:
    """Print the constants that f16 cannot hold."""
    from ovir.debugging.value_conditions import parse_conditions
    from ovir.debugging.watch import large_constants

    constants = list(large_constants(model, parse_conditions("overflow:f16")))
    for constant in constants[: output.LIMIT]:
        output.print_message(readable(f"{_watched_constant(constant)}; it is clamped"))
    if (more := len(constants) - output.LIMIT) > 0:
        output.print_message(f"and {plural(more, 'constant')} more")


def _record(
    compiled: CompiledModel,
    feeds: dict[int, Array],
    taps: Sequence[str] | None,
    listeners: Sequence[Listener],
    path: str,
) -> tuple[Results, float]:
    from ovir.analysis.record import Recorder
    from ovir.io.tensor_files import NpzWriter

    with replaced_file(path, "write the record") as file, NpzWriter(file) as writer:
        recorder = Recorder(compiled.model, writer.write, taps)
        failure = None
        try:
            done = _run_compiled(compiled, feeds, (), [*listeners, recorder])
        except RunError as error:  # the record of the layers before shows why
            failure = error
    if failure is not None:
        raise failure
    output.print_message(f"recorded {plural(recorder.count, 'tensor')} in {escaped(path)}")
    return done


def _run_compiled(
    compiled: CompiledModel, feeds: dict[int, Array], taps: Sequence[str], listeners: Sequence[Listener]
) -> tuple[Results, float]:
    with stage("compiling"):
        compiled.plan([*taps, *steps_wanted_by(listeners)])
    with stage("running") as timed:
        results = compiled(feeds, taps=taps, listeners=listeners)
        return results, timed.seconds
