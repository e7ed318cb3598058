"""``ovir view``: draw a model in a browser with Model Explorer, until Ctrl-C.

Examples:
  ovir view model.xml
  ovir view model.xml --check --profile
  ovir view model.xml --run inputs.npz            minimum, maximum, mean and NaN of each layer
  ovir view model.xml --compare openvino:CPU      where a device computes something else
  ovir view model.xml --executed openvino:CPU     what the device fused, in which types, how long it took
  ovir view before.xml --diff after.xml           both models, with what was removed and added

The page is served to this machine only, and loads nothing from the network.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from ovir.analysis.diff import diff
from ovir.checks.checker import check
from ovir.checks.recovering import Recovered, read_recovering
from ovir.checks.rules import CODES
from ovir.cli.options.command import Command, Options
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import FileName, natural
from ovir.cli.terminal.display import last_line
from ovir.cli.terminal.output import DONE, print_diagnostics, print_message, say
from ovir.cli.terminal.signals import Terminated
from ovir.debugging.compare import compare
from ovir.debugging.device_queries import execute
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.wording import plural
from ovir.ir.executed import read_executed
from ovir.view.overlays import Overlay, comparison_verdict, of_comparison, of_diagnostics, of_diff, of_executed
from ovir.view.server import open_browser, open_server
from ovir.view.view import ViewedModel, measure, shown_models, viewed


def add_to(command: Command) -> None:
    command.add(ModelOptions("no-weights", "shape", "legacy-io"))
    command.option("--check", "color layers by the severity of their diagnostics")
    command.option("--profile", "run the model, and color layers by the time they take")
    command.option(
        "--run INPUTS.npz",
        "run the model on these inputs, and color layers by the minimum, maximum and mean of their values, "
        "and by how many are NaN or infinite",
        FileName,
        dest="inputs",
    )
    command.option(
        "--compare SIDE",
        "color layers by their error: against openvino:DEVICE, onnx:FILE, OTHER.xml or an .npz of tensors",
        FileName,
    )
    command.option(
        "--executed GRAPH",
        "color layers by the time that a device took, and show in which type and with which others it computed "
        "them: openvino:DEVICE runs the model, exec_graph.xml was written elsewhere",
        FileName,
    )
    command.option("--diff OTHER.xml", "also draw this model, and what differs", FileName)
    command.option("--hide-constants", "leave out the layers of constants")
    command.option("--port N", "the port of the server (default: 8080 or, if it is busy, any free one)", _port)
    command.option("--no-browser", "only print the address of the page")


def _port(text: str) -> int:
    number = natural(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"a port is at most 65535, got {number}")
    return number


def run(options: Options) -> int:
    source = options[ModelOptions]
    with open_server(options.port) as server:  # a busy port is reported before the work
        recovered = source.recover()
        overlays, diagnostics = _checked(source, recovered, is_wanted=options.check)
        runs, failures = _ran(recovered, options.inputs, options.compare, times=options.profile)
        executed = [] if options.executed is None else _executed(recovered, options.executed, options.inputs)
        diffs, others = ([], []) if options.diff is None else _differing(recovered, options.diff)
        overlays = sorted(
            [*overlays, *runs, *executed, *diffs], key=lambda overlay: not overlay.items
        )  # one with data is selected
        model = viewed(source.path, recovered.model, [*diagnostics, *failures], recovered.declared, overlays)
        server.show(shown_models([model, *others], hide_constants=options.hide_constants))
        say(server.url)
        print_message("Ctrl-C stops the server")
        sys.stdout.flush()  # it may be a pipe, and nothing else is printed for long
        if not options.no_browser and not open_browser(server.url):
            print_message("no browser was found: open the address yourself")
        last_line.close()  # nothing is in progress any more
        try:
            server.serve_forever()
        except Terminated:
            raise
        except KeyboardInterrupt:  # the way in which users end it, when they have seen what they wanted
            print_message("the server has stopped")
    return DONE


def _checked(source: ModelOptions, recovered: Recovered, *, is_wanted: bool) -> tuple[list[Overlay], list[Diagnostic]]:
    """Return the severities of layers, and the diagnostics that they show: a check finds them if one is requested or
    the model has faults."""
    if not is_wanted and not recovered.errors:
        # The reader tolerates some errors, which a check reports with their severity.
        return [], [replace(found, severity=CODES[found.code].severity) for found in recovered.model.diagnostics]
    found = check(source.source, source.weights, need_weights=not source.no_weights)
    if is_wanted:
        print_message(f"{plural(len(found), 'diagnostic')} from the check")
    if source.shape:
        found += recovered.errors
    return [of_diagnostics(recovered.model, found)], found


def _ran(
    recovered: Recovered, inputs: str | None, other: str | None, *, times: bool
) -> tuple[list[Overlay], list[Diagnostic]]:
    """Return the overlays of runs, and of a comparison with another side, and the diagnostics of runs that failed."""
    is_wanted = times or inputs is not None or other is not None
    if is_wanted and _cannot_run(recovered):
        return [], []
    overlays: list[Overlay] = []
    failures: list[Diagnostic] = []
    model = recovered.model
    if is_wanted and inputs is None:
        print_message("random inputs: 1 set, seed 0")
    if times or inputs is not None:
        overlays, error = measure(model, inputs, times=times, ranges=inputs is not None)
        if error is not None:
            print_message(str(error))
            failures += error.diagnostics
    if other is not None:
        comparison = compare(model, other, inputs=inputs, mode="cumulative")
        print_diagnostics(comparison.diagnostics)
        print_message(f"{comparison_verdict(comparison)}, against {comparison.against}")
        overlays += of_comparison(model, comparison)
    return overlays, failures


def _cannot_run(recovered: Recovered) -> bool:
    """Return whether a model cannot be run, and say so."""
    if recovered.errors or recovered.lacks_weights:
        print_message("the model has faults, or no weights: it is drawn, but not run")
        return True
    return False


def _executed(recovered: Recovered, name: str, inputs: str | None) -> list[Overlay]:
    """Return the overlays of the graph that a device executes, or has executed elsewhere."""
    model = recovered.model
    if not name.startswith("openvino:"):
        graph = read_executed(name)
        graph.require_made_from(model, name)
    elif _cannot_run(recovered):
        return []
    else:
        graph = execute(model, name, inputs)
    print_message(graph.summary(model))
    return of_executed(model, graph)


def _differing(recovered: Recovered, path: str) -> tuple[list[Overlay], list[ViewedModel]]:
    """Return an overlay of the differences from another model, and that model with its overlay."""
    other = read_recovering(path)
    diagnostics = [*other.errors, *other.model.diagnostics]
    print_diagnostics(diagnostics)
    difference = diff(recovered.model, other.model)
    print_message(str(difference))
    overlays = of_diff(difference, "b")
    return of_diff(difference, "a"), [viewed(path, other.model, diagnostics, other.declared, overlays)]
