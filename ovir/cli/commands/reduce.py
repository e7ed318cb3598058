"""``ovir reduce``: find the smallest model for which a command fails as for the whole model.

Examples:
  ovir reduce model.xml --check 'ovir run {}' -o small.xml
  ovir reduce model.xml --check 'ovir compare {} --against openvino:CPU' -o small.xml
  ovir reduce model.xml --check 'python check.py {}' --timeout 60 --work reduction -o small.xml

{} is the path of a candidate. The status of the command is its exit status, the negative number of the signal that
ended it, or 124 if it took longer than --timeout. A candidate is kept if its status is the same as for the whole model;
any other status means that the failure is gone. A good check has a status of its own for the failure: `ovir compare`
has 1 for a difference and 2 if it cannot compare.

exit status: 0 done, 1 the model is at fault, 2 wrong usage, or a check that cannot be used
"""

from __future__ import annotations

from ovir.cli.options.command import Command, Options
from ovir.cli.options.inputs import InputOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import FileName, OutputFile, natural, seconds
from ovir.cli.terminal.output import DONE, LIMIT, print_message, say, say_filled, say_json, say_table
from ovir.cli.terminal.progress import reported
from ovir.core.arrays import Array
from ovir.core.tables import Table, columns
from ovir.debugging.failure_checks import status_text
from ovir.debugging.reduce import Reduction, reduce
from ovir.diagnostics.wording import plural, readable
from ovir.model import Model


def add_to(command: Command) -> None:
    command.add(ModelOptions("shape", "legacy-io"))
    command.option(
        "--check 'COMMAND {}'",
        "the command that fails, such as 'ovir compare {} --against openvino:CPU'; {} is the path of a model",
        required=True,
    )
    command.option("-o, --output SMALL.xml", "where to save the smallest model", OutputFile, required=True)
    command.option(
        "--status N", "the status to look for (default: the one of the whole model, which must not be 0)", int
    )
    command.option("--timeout SECONDS", "stop the command after this time; its status is 124 then", seconds)
    command.option(
        "--work DIR",
        "keep the answers of the command and the best model so far in this folder; the same call continues there",
        FileName,
    )
    command.option("--max-runs N", "run the command at most N times", natural)
    command.add(InputOptions(folder=False))
    command.shared("json")


def run(options: Options) -> int:
    model, inputs = options[ModelOptions].open(), options[InputOptions]
    last: list[Reduction] = []
    with reported("removing layers") as update:

        def progress(reduction: Reduction, step: str) -> None:
            last[:] = [reduction]
            removed, runs = reduction.layers_before - reduction.layers, plural(reduction.runs, "run")
            update(removed, reduction.layers_before, f"{runs}: {step}")

        try:
            reduction = reduce(
                model,
                options.check,
                output=options.output,
                status=options.status,
                timeout=options.timeout,
                work=options.work,
                inputs=_arrays(model, inputs),
                seed=inputs.seed or 0,
                max_runs=options.max_runs,
                progress=progress,
            )
        except KeyboardInterrupt:
            if last:
                print_message(readable(f"the best model so far is saved: {_summary(last[0], options.output, None)}"))
            raise
    if options.json:
        say_json(reduction.to_dict())
    else:
        _print(reduction, options.output, options.max_runs)
    return DONE


def _arrays(model: Model, options: InputOptions) -> dict[int, Array]:
    """Return the inputs that are given; a model without any gets random ones, only if their values are needed."""
    if not options.input and options.save_inputs is None:
        return {}
    return options.collect(model.clone()).feeds  # the copy gets the shapes of the inputs


def _print(reduction: Reduction, path: str, most: int | None) -> None:
    if reduction.steps:
        rows = [(step.name, step.runs, step.layers) for step in reduction.steps]
        say_table(Table(columns("step: name; runs so far: count; layers left: count"), rows))
        say()
    walked = [layer for layer in reduction.model.walk() if layer.type not in ("Parameter", "Result")]
    rest = [layer for layer in walked if layer.type != "Const"] or walked
    types = ([", ".join(str(port.type) for port in ports) for ports in (x.inputs, x.outputs)] for x in rest)
    left = [(x, f"{x.type} ({x.version})", *both) for x, both in zip(rest, types, strict=True)]
    table = Table(columns("layer: layer; type: type; inputs: list; output: list"), left)
    say_table(table, limit=LIMIT, more="more layer")
    say()
    say_filled(readable(_summary(reduction, path, most)))


def _summary(reduction: Reduction, path: str, most: int | None) -> str:
    unfinished = "" if reduction.complete else f", stopped by --max-runs {most}"
    return (
        f"{path}: {reduction.layers} of {plural(reduction.layers_before, 'layer')}, "
        f"{status_text(reduction.status)} as for the whole model, after {plural(reduction.runs, 'run')}{unfinished}"
    )
