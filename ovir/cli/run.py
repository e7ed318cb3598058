"""``ovir run``: run a model on files or random numbers and show the outputs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ovir.cli.arguments import (
    add_command,
    add_json,
    add_model,
    add_shape,
    check_target,
    natural,
    positive,
    raise_usage_error,
)
from ovir.cli.compiling import add_compiling, compiled_as, named_arrays, open_runnable, taps_of
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.html import add_html, check_html, write_html
from ovir.cli.input_sets import add_input_files, refuse_folders
from ovir.cli.node_data import add_node_data, ranges_for_node_data, write_run_data
from ovir.cli.output import listed_layers, print_diagnostics, print_message
from ovir.cli.outputs import output_file
from ovir.cli.report import Report
from ovir.cli.run_inputs import add_inputs, collect, save_inputs
from ovir.cli.status import DONE, WRONG
from ovir.cli.workers import add_workers
from ovir.core.arrays import Array
from ovir.core.files import replaced_file
from ovir.core.progress import stage
from ovir.diagnostics.errors import RunError
from ovir.diagnostics.wording import escaped, plural, readable
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.listeners import Listener, steps_wanted_by
from ovir.runtime.results import Results

if TYPE_CHECKING:
    from ovir.analysis.profile import Profile, RunTimes
    from ovir.debugging.watch import Watch


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "run",
        run,
        "run a model and show its outputs",
        "  ovir run model.xml\n"
        "  ovir run model.xml --shape image=4,3,224,224 --seed 7 --profile\n"
        "  ovir run model.xml --input image=photo.npy --input ids=batch.npz:ids --output out.npz\n"
        "  ovir run model.xml --input inputs.npz --tap 'conv[0-9]+$' --json\n"
        "  ovir run model.xml --input image=photo.jpg --mean 124,116,104 --scale 58,57,57 --top 5\n"
        "  ovir run model.xml --watch nan,inf,overflow:f16\n"
        "  ovir run model.xml --record all.npz --tap attention\n"
        "  ovir run model.xml --input ids=[[101,7592,102]] --input text='some words' --repeat 20\n"
        "  ovir run model.xml --inputs images/ --output results/ --workers 8 --resume\n"
        "\nWithout --input, inputs are random numbers; those that serve as indices stay in range.\n",
    )
    add_model(parser)
    add_extension(parser)
    add_inputs(parser)
    _add_many(parser)
    add_shape(parser)
    parser.add_argument("--seed", type=natural, metavar="N", help="seed of the random inputs (default: 0)")
    parser.add_argument(
        "--output",
        type=output_file,
        metavar="FILE.npz",
        help="save the outputs, and taps as tap:NAME; with --inputs, the folder for a file of each input",
    )
    parser.add_argument(
        "--tap",
        type=_pattern,
        action="append",
        default=[],
        metavar="REGEX",
        help="also show the outputs of layers whose name, or whose tensor's name, matches; "
        "with --record, save only these",
    )
    parser.add_argument(
        "--record",
        type=output_file,
        metavar="FILE.npz",
        help="save the inputs and the result of every layer, or of those that --tap selects, as they are computed",
    )
    parser.add_argument(
        "--top", type=positive, metavar="N", help="show the N highest scores of each row of the outputs"
    )
    parser.add_argument(
        "--watch",
        metavar="WHAT",
        help="report the layers that make such values first: nan, inf, overflow:TYPE, denormal:TYPE, as in "
        "nan,inf,overflow:f16; the exit status is then 1 if there are any",
    )
    add_json(parser)
    add_html(parser)
    add_compiling(parser)
    parser.add_argument(
        "--repeat",
        type=positive,
        metavar="N",
        help="run N more times, and show how long the runs take (median, percentiles)",
    )
    parser.add_argument(
        "--profile", action="store_true", help="show the time that each layer and each type of operation takes"
    )
    add_node_data(parser, "the largest absolute value of each layer, or with --profile its time,")


def _add_many(parser: argparse.ArgumentParser) -> None:
    """Add the options that apply to many inputs alone."""
    add_input_files(parser)
    add_workers(parser)
    parser.add_argument(
        "--batch", type=positive, metavar="N", help="with --inputs: run N inputs at once, stacked along a dynamic axis"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="with --inputs: keep the results of an interrupted run, and run what is missing, failed or out of date",
    )


def _pattern(text: str) -> str:
    import re
    import warnings

    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about syntax that a later Python may change
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not a regular expression: {error}")) from None
    return text


def run(arguments: argparse.Namespace) -> int:
    if arguments.inputs is not None:
        from ovir.cli.run_many import run_many

        return run_many(arguments)
    _refuse_many(arguments)
    check_html(arguments)
    for option in ("output", "save_inputs", "record"):
        if (target := getattr(arguments, option)) is not None:
            check_target(f"--{option.replace('_', '-')}", target, ".npz")
    watch = _watch(arguments) if arguments.watch is not None else None
    ranges = ranges_for_node_data(arguments)
    load_extensions(arguments.extension)
    model = open_runnable(arguments)
    inputs = collect(model, arguments)
    if arguments.save_inputs is not None:
        save_inputs(arguments.save_inputs, model, inputs)
    try:
        taps = taps_of(model, arguments.tap)
        compiled = compiled_as(arguments, model)
        listeners: list[Listener] = [listener for listener in (watch, ranges) if listener is not None]
        if arguments.record is not None:
            results, seconds = _record(compiled, inputs.feeds, taps, listeners, arguments)
        else:
            results, seconds = _run_compiled(compiled, inputs.feeds, taps, listeners)
        profile, profiled = _profile(compiled, inputs.feeds) if arguments.profile else (None, seconds)
        times = _times(compiled, inputs.feeds, arguments.repeat) if arguments.repeat else None
    except RunError as error:
        inputs.hint_at_choices(model, error)
        from ovir.analysis.summary import not_run

        if lacking := not_run(model):
            error.add_note(f"  cannot be run yet: {readable(listed_layers(lacking))}")
        raise
    print_diagnostics(results.diagnostics)
    if arguments.output is not None:
        _save(arguments.output, results)
    if arguments.node_data is not None:
        write_run_data(arguments.node_data, model, profile, ranges)
    report = Report(model, inputs.feeds, inputs.made, results, profile, seconds, profiled, times, arguments.top, watch)
    if arguments.json:
        report.print_json(seed=(arguments.seed or 0) if inputs.made else None)
    else:
        report.print_tables()
    write_html(arguments, report.page)
    return WRONG if watch is not None and watch.events else DONE


def _refuse_many(arguments: argparse.Namespace) -> None:
    """Raise a usage error for options that apply to many inputs alone, and for a folder as one input."""
    for option in ("workers", "dask", "batch", "resume"):
        if getattr(arguments, option):
            raise_usage_error(f"--{option} is for many inputs, which --inputs gives")
    refuse_folders(arguments)


def _watch(arguments: argparse.Namespace) -> Watch:
    """Return the watch of ``--watch``. In an emulated run, what overflows has become infinite."""
    from ovir.debugging.watch import Watch

    watch = Watch(arguments.watch)
    if arguments.emulate is not None and f"overflow:{arguments.emulate}" in map(str, watch.conditions):
        return Watch(f"{arguments.watch},inf")
    return watch


def _profile(compiled: CompiledModel, feeds: dict[int, Array]) -> tuple[Profile, float]:
    from ovir.analysis.profile import profile_runs

    return profile_runs(compiled, feeds)


def _record(
    compiled: CompiledModel,
    feeds: dict[int, Array],
    taps: Sequence[str],
    listeners: Sequence[Listener],
    arguments: argparse.Namespace,
) -> tuple[Results, float]:
    from ovir.analysis.record import Recorder
    from ovir.io.tensor_files import NpzWriter

    with replaced_file(arguments.record, "write the record") as file, NpzWriter(file) as writer:
        recorder = Recorder(compiled.model, writer.write, taps if arguments.tap else None)
        failure = None
        try:
            done = _run_compiled(compiled, feeds, (), [*listeners, recorder])
        except RunError as error:  # the record of the layers before shows why
            failure = error
    if failure is not None:
        raise failure
    print_message(f"recorded {plural(recorder.count, 'tensor')} in {escaped(arguments.record)}")
    return done


def _run_compiled(
    compiled: CompiledModel, feeds: dict[int, Array], taps: Sequence[str], listeners: Sequence[Listener]
) -> tuple[Results, float]:
    with stage("compiling"):
        compiled.plan([*taps, *steps_wanted_by(listeners)])
    with stage("running") as timed:
        results = compiled(feeds, taps=taps, listeners=listeners)
        return results, timed.seconds


def _times(compiled: CompiledModel, feeds: dict[int, Array], count: int) -> RunTimes:
    from ovir.analysis.profile import time_runs

    return time_runs(compiled, feeds, count)


# --------------------------------------------------------------------------- outputs


def _save(path: str, results: Results) -> None:
    from ovir.io.tensor_files import save_npz

    save_npz(path, named_arrays(results), "write the results")
