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
from typing import TYPE_CHECKING

from ovir.analysis.metrics import FunctionMetric, MetricBase
from ovir.analysis.set_metrics import NAMES, AveragePrecision, metric_of, parse_columns
from ovir.cli.commands.sides import open_other
from ovir.cli.options.command import Command, Group, Options
from ovir.cli.options.comparison import DeviceOptions
from ovir.cli.options.engine import EngineOptions
from ovir.cli.options.inputs import FileOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.opening import load_user_module
from ovir.cli.options.values import FileName, amount, positive, raise_usage_error
from ovir.cli.options.workers import WorkerOptions
from ovir.cli.terminal.output import DONE, LIMIT, WRONG, say, say_filled, say_json, say_table
from ovir.cli.terminal.progress import advance
from ovir.diagnostics.wording import did_you_mean, readable
from ovir.io.input_files import read_labels
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.workers.evaluate import Evaluation


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the scores for people."""
    from ovir.cli.commands.run_many import print_failures  # `ovir --help` does not need it

    for line in str(evaluation).splitlines():
        say_filled(readable(line))
    table = evaluation.classes_table()
    if 1 < len(table.rows) <= LIMIT:
        say()
        say_table(table)
    for model in evaluation.models:
        prefix = f"failed in {model.name}" if len(evaluation.models) == 2 else "failed"
        print_failures(model.failed, "--json", prefix)


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
    from ovir.workers.evaluate import LabeledInputs, output_index  # `ovir --help` does not need it

    source, device, engine = options[ModelOptions], options[DeviceOptions], options[EngineOptions]
    if options[FileOptions].inputs is None:
        raise_usage_error("--inputs is missing: give a folder, a pattern or a list of the inputs that have labels")
    against = None
    if options.against is None:
        device.refuse(_NO_DEVICE, "--config", "--timeout")
    metric = options[MetricOptions].chosen()
    model = engine.open(source)
    files = options[FileOptions].find(model)
    index = output_index(model, options.output)
    names = [file.name for file in files]
    labels = read_labels(
        options.labels,
        names,
        model.outputs[index].any_name,
        texts=isinstance(metric, FunctionMetric),
        boxes=isinstance(metric, AveragePrecision),
    )
    if options.against is not None:
        against = open_other(options.against, model, source)
        if isinstance(against, Model):
            device.refuse(_NO_DEVICE, "--config", "--timeout")
    with options[WorkerOptions].opened() as workers:
        workers = {**workers, "batch": options.batch}
        task = LabeledInputs(files, names, [labels[name] for name in names], metric, workers, advance)
        found = task.evaluate(
            engine.compiled(model),
            against,
            index,
            title=source.path,
            other=options.against or "",
            config=device.properties,
            timeout=device.timeout,
        )
    if options.json:
        say_json(found.to_dict())
    else:
        print_evaluation(found)
    return WRONG if any(model.failed for model in found.models) else DONE


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


_NO_DEVICE = "needs openvino:DEVICE or onnx:FILE to compare with (--against)"
