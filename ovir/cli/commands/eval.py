"""``ovir eval``: measure how good a model is on labeled inputs.

Examples:
  ovir eval model.xml --inputs images/ --labels labels.csv --metric top5
  ovir eval int8.xml --inputs images/ --labels labels.csv --against f32.xml
  ovir eval model.xml --inputs data/ --labels labels.csv --against openvino:CPU --workers 8
  ovir eval ocr.xml --inputs lines/ --labels texts.csv --metric my_metrics.py:cer
  ovir eval detector.xml --inputs images/ --labels instances.json --metric map --box-size 640x640
  ovir eval denoise.xml --inputs noisy/ --labels clean/ --metric psnr --json
"""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ovir.analysis.evaluation import CONFIDENCE, Interval, ModelEvaluation, ScoreDifference
from ovir.analysis.metrics import FunctionMetric, MetricBase
from ovir.analysis.set_metrics import NAMES, AveragePrecision, SetMetric, metric_of, parse_columns
from ovir.cli.commands.sides import is_recorded, open_other
from ovir.cli.options.command import Command, Group, Options
from ovir.cli.options.comparison import DeviceOptions
from ovir.cli.options.engine import EngineOptions
from ovir.cli.options.inputs import FileOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.opening import load_user_module
from ovir.cli.options.values import FileName, amount, positive, raise_usage_error
from ovir.cli.options.workers import WorkerOptions
from ovir.cli.terminal.output import DONE, WRONG, say, say_filled, say_json, say_table
from ovir.cli.terminal.progress import advance
from ovir.core.arrays import Array
from ovir.core.tables import Table, columns
from ovir.diagnostics.errors import OvirError
from ovir.diagnostics.wording import did_you_mean, plural, readable
from ovir.io.input_files import InputFile, Loader, read_labels
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.results import output_keys
from ovir.system.progress import stage

if TYPE_CHECKING:
    from ovir.debugging.sides import Side

SHOWN = 20
"""The most classes that are printed; JSON has all."""


@dataclass
class EvaluatedSide:
    """A model with its evaluation, and the errors of inputs by their name."""

    name: str
    evaluation: ModelEvaluation
    failed: dict[str, str] = field(default_factory=dict)

    def fail(self, name: str, error: OvirError) -> None:
        """Record that an input has failed."""
        from ovir.cli.commands.run_many import error_text  # `ovir --help` does not need it

        self.failed[name] = error_text(error, name)


def evaluation_as_json(sides: Sequence[EvaluatedSide]) -> dict[str, Any]:
    """Return the evaluations of one or two models, and the difference of two."""
    models = [
        {
            "model": side.name,
            **side.evaluation.to_dict(),
            "failed": [{"input": name, "error": error} for name, error in side.failed.items()],
        }
        for side in sides
    ]
    if len(sides) == 1:
        return models[0]
    difference = sides[0].evaluation.difference(sides[1].evaluation)
    return {**models[0], "against": models[1], "difference": difference.to_dict()}


def print_evaluation(sides: Sequence[EvaluatedSide]) -> None:
    """Print the same for people."""
    from ovir.cli.commands.run_many import print_failures  # `ovir --help` does not need it

    for side in sides:
        say_filled(readable(f"{side.name}: {_value_text(side.evaluation)}"))
    if len(sides) == 2:
        first, second = (side.evaluation for side in sides)
        for line in _difference_lines(first, first.difference(second)):
            say_filled(readable(line))
    _print_classes(sides[0].evaluation)
    for side in sides:
        prefix = f"failed in {side.name}" if len(sides) == 2 else "failed"
        print_failures(side.failed, "--json", prefix)


def _value_text(found: ModelEvaluation) -> str:
    if found.value is None:
        reason = "no label has any class" if found.samples else "all inputs failed"
        return f"{found.metric.name} is not known, because {reason}"
    is_share = found.metric.is_share
    text = f"{found.metric.name} {_number(found.value, is_share)}{_interval_text(found.interval, is_share)}"
    samples = found.samples
    if isinstance(found.metric, SetMetric):
        text += f"; of {plural(samples, 'input')} together, {_direction(found)}"
    elif is_share:
        text += f"; {int(found.scores.sum()):,} of {samples:,} right"
    else:
        text += f"; mean of {plural(samples, 'input')}, {_direction(found)}"
    return text


def _direction(found: ModelEvaluation) -> str:
    return "higher is better" if found.metric.higher_is_better else "lower is better"


def _number(value: float, is_share: bool, sign: str = "") -> str:
    return f"{value:{sign}.2%}" if is_share else f"{value:{sign}.6g}"


def _interval_text(interval: Interval | None, is_share: bool, sign: str = "") -> str:
    if interval is None:
        return ", without an interval"
    low, high = (_number(end, is_share, sign) for end in interval[:2])
    return f", {CONFIDENCE:.0%} interval {low} to {high} ({interval.method})"


def _difference_lines(first: ModelEvaluation, found: ScoreDifference) -> Iterator[str]:
    if found.value is None:
        yield "difference: none is known, because no input ran in both or no label has any class"
        return
    is_share = first.metric.is_share
    text = f"difference {_number(found.value, is_share, '+')}{_interval_text(found.interval, is_share, '+')}"
    if found.only_first is not None:
        text += f"; right in the first alone {found.only_first:,}, in the second alone {found.only_second:,}"
    yield f"{text}; {plural(found.samples, 'sample')}"
    if found.p_value is None:
        return
    is_better = (found.value > 0) == first.metric.higher_is_better
    verdict = f"the first model is {'better' if is_better else 'worse'}" if found.is_shown else "no difference is shown"
    yield f"{verdict}: p = {found.p_value:.3g} ({found.test})"


def _print_classes(found: ModelEvaluation) -> None:
    """Print the figures of each class, if there are few."""
    classes = found.classes()
    if not 1 < len(classes) <= SHOWN:
        return
    rows = [
        (
            item.number,
            item.samples,
            item.right,
            item.right / item.samples,
            "-" if item.instead is None else f"{item.instead[0]} ({item.instead[1]:,})",
        )
        for item in classes
    ]
    say()
    heads = "class: counts; samples: count; right: count; share: share; most often taken for: name"
    say_table(Table(columns(heads), rows))


Runs = Generator[tuple[InputFile, Array | OvirError]]
"""The output that is evaluated, or the error, of each input in any order."""


class MetricOptions(Group):
    """The metric, and what only some metrics need."""

    metric: str
    peak: float | None
    columns: tuple[str, ...] | None
    box_size: tuple[float, float] | None

    def add_to(self, command: Command) -> None:
        command.option(
            "--metric NAME",
            f"one of {', '.join(NAMES)} (default: {NAMES[0]}), or a function of your own, as FILE.py:NAME, which gets "
            "an output and a label and returns a number",
            default=NAMES[0],
        )
        command.option(
            "--peak X",
            "for psnr: the largest value that a signal can have (default: 255 for labels of u8, otherwise 1)",
            amount,
        )
        command.option(
            "--columns x1,y1,...",
            "for map: the columns of the output: x1, y1, x2, y2, class, score, image, and _ for others",
            _columns,
        )
        command.option(
            "--box-size WxH",
            "for map: divide boxes of the output by this width and height to have the unit of the labels",
            _size,
        )

    def chosen(self) -> MetricBase:
        """Return the metric: one that ovir has, or a function of a module."""
        path, colon, name = self.metric.rpartition(".py:")
        if not colon:
            metric = metric_of(self.metric, peak=self.peak, columns=self.columns, size=self.box_size)
            if not isinstance(metric, AveragePrecision):
                self.refuse(_OF_BOXES, "--columns", "--box-size")
            if self.metric != "psnr":
                self.refuse(_OF_PSNR, "--peak")
            return metric
        self.refuse(_OF_BOXES, "--columns", "--box-size")
        self.refuse(_OF_PSNR, "--peak")
        module = load_user_module("--metric", f"{path}.py", "metric")
        function = getattr(module, name, None)
        if not callable(function):
            known = [other for other, value in vars(module).items() if callable(value) and not other.startswith("_")]
            raise_usage_error(f"--metric {self.metric}: {path}.py has no function {name!r}", did_you_mean(name, known))
        return FunctionMetric(name, function)


_OF_PSNR = "is for the metric psnr"
_OF_BOXES = "is for the metrics map and map50"


def add_to(command: Command) -> None:
    command.add(ModelOptions("shape", "legacy-io"))
    command.add(FileOptions())
    command.option(
        "--labels FILE",
        "a .csv with the name and the label of each input, an .npz with an array for each, a folder of files, or "
        "boxes as .json of COCO",
        FileName,
        required=True,
    )
    command.add(MetricOptions())
    command.option("--output NAME", "the output to evaluate, if the model has several")
    command.option(
        "--against, --compare-with SIDE",
        "also evaluate other.xml, openvino:DEVICE or onnx:FILE, and report the difference on the same inputs",
        FileName,
    )
    command.add(EngineOptions())
    command.add(WorkerOptions())
    command.option("--batch N", "run N inputs at once, stacked along a dynamic axis", positive)
    command.add(DeviceOptions())
    command.shared("json")


def run(options: Options) -> int:
    source, device, engine = options[ModelOptions], options[DeviceOptions], options[EngineOptions]
    if options[FileOptions].inputs is None:
        raise_usage_error("--inputs is missing: give a folder, a pattern or a list of the inputs that have labels")
    if options.against is None:
        device.refuse(_NO_DEVICE, "--config", "--timeout")
    metric = options[MetricOptions].chosen()
    model = engine.open(source)
    files = options[FileOptions].find(model)
    index = _output(model, options.output)
    labels = read_labels(
        options.labels,
        [file.name for file in files],
        model.outputs[index].any_name,
        texts=isinstance(metric, FunctionMetric),
        boxes=isinstance(metric, AveragePrecision),
    )
    with options[WorkerOptions].opened() as workers:
        task = _Task(files, labels, metric, options.batch, workers)
        sides = [task.evaluated(source.path, task.mapped(engine.compiled(model), index))]
        if options.against is not None:
            sides.append(_other_side(options.against, source, device, model, index, task))
    if options.json:
        say_json(evaluation_as_json(sides))
    else:
        print_evaluation(sides)
    return WRONG if any(side.failed for side in sides) else DONE


def _columns(text: str) -> tuple[str, ...]:
    """Convert the text of ``--columns``."""
    try:
        return parse_columns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _size(text: str) -> tuple[float, float]:
    """Convert the text of ``--box-size``."""
    width, _, height = text.partition("x")
    try:
        return float(positive(width)), float(positive(height))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"expected a width and a height, as in 640x480, got {text!r}") from None


def _output(model: Model, name: str | None) -> int:
    """Return the position of the output that is evaluated."""
    keys = output_keys(model.outputs)
    listed = ", ".join(f"'{port.any_name}'" for port in model.outputs)
    if name is None and len(model.outputs) > 1:
        raise_usage_error(f"the model has several outputs: say which to evaluate with --output; they are {listed}")
    if name is not None and name not in keys:
        raise_usage_error(f"--output {name}: there is no such output; the outputs are {listed}")
    return 0 if name is None else keys[name]


@dataclass(frozen=True)
class _Task:
    """The inputs, labels and metric with which each model is evaluated, and the options of the workers."""

    files: Sequence[InputFile]
    labels: dict[str, Loader]
    metric: MetricBase
    batch: int | None
    workers: dict[str, Any]

    def evaluated(self, name: str, runs: Runs) -> EvaluatedSide:
        """Return the evaluation of a model, which runs meanwhile."""
        side = EvaluatedSide(name, ModelEvaluation(self.metric))
        with closing(runs), stage("evaluating", len(self.files)) as progress:
            for file, output in runs:
                try:
                    if isinstance(output, OvirError):
                        raise output
                    side.evaluation.add(file.name, output, self.labels[file.name]())
                except OvirError as error:
                    side.fail(file.name, error)
                advance(progress)
        return side

    def mapped(self, compiled: CompiledModel, index: int) -> Runs:
        """Run a model on the inputs by workers."""
        from ovir.workers.map import MapError, map

        with map(compiled, self.files, batch=self.batch, ordered=False, on_error="return", **self.workers) as results:
            for result in results:
                yield self.files[result.index], result if isinstance(result, MapError) else result[index]

    def by_side(self, side: Side, model: Model, index: int) -> Runs:
        """Run a model on the inputs in another engine, one after the other."""
        from ovir.debugging.engines.process import EngineMissingError
        from ovir.runtime.inputs import collect_inputs

        for file in self.files:
            try:
                output = side.outputs(collect_inputs(model, file.load(model), model.input_index))[index]
            except EngineMissingError:
                raise
            except OvirError as error:
                yield file, error
                continue
            if output is None:
                raise_usage_error(f"{side.description} has no such output")
            yield file, output


def _other_side(
    name: str, source: ModelOptions, device: DeviceOptions, model: Model, index: int, task: _Task
) -> EvaluatedSide:
    """Return the evaluation of the side that ``--against`` names."""
    from ovir.analysis.tensor_comparison import Criterion
    from ovir.compiling import compile_model
    from ovir.debugging.comparison_setup import ComparisonOptions
    from ovir.debugging.sides import Partners

    against = open_other(name, model, source)
    if is_recorded(against):
        raise_usage_error(f"--against {against}: expected other.xml, openvino:DEVICE or onnx:FILE")
    if not isinstance(against, Model):
        options = ComparisonOptions(against, Criterion(), config=device.properties, timeout=device.timeout)
        with options.open_side(model) as side:
            return task.evaluated(side.description, task.by_side(side, model, index))
    device.refuse(_NO_DEVICE, "--config", "--timeout")
    place = Partners(model, against).outputs[index]
    if place is None:
        raise_usage_error(f"--against {name}: the model has no such output")
    return task.evaluated(name, task.mapped(compile_model(against), place))


_NO_DEVICE = "needs openvino:DEVICE or onnx:FILE to compare with (--against)"
