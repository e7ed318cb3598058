"""Scores of a model on labeled inputs, and of a second model or device on the same inputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ovir.analysis.evaluation import CONFIDENCE, Interval, ModelEvaluation, ScoreDifference
from ovir.analysis.metrics import FunctionMetric, MetricBase
from ovir.analysis.set_metrics import SetMetric, metric_of
from ovir.core.arrays import Array
from ovir.core.tables import Table, columns
from ovir.diagnostics.errors import InputError, OvirError
from ovir.diagnostics.wording import plural
from ovir.model import Model, read_model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.inputs import collect_inputs
from ovir.runtime.results import output_keys
from ovir.system.progress import Stage, stage
from ovir.workers.map import MapError, error_text, map
from ovir.workers.model_runs import load

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ovir.debugging.comparison_setup import Against
    from ovir.debugging.sides import Side

Runs = Generator[tuple[int, Array | OvirError]]
"""The output that is evaluated, or the error, of each input, with its position, in any order."""


@dataclass
class EvaluatedModel:
    """A model, or an engine that ran it, with its scores, and the errors of inputs by their name."""

    name: str
    evaluation: ModelEvaluation
    failed: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        failed = [{"input": name, "error": error} for name, error in self.failed.items()]
        return {"model": self.name, **self.evaluation.to_dict(), "failed": failed}


@dataclass
class Evaluation:
    """The scores of a model on labeled inputs, beside those of what it was compared with; ``str`` shows them.

    The result of ``ovir.evaluate``. A notebook also shows a table of the classes.
    """

    models: list[EvaluatedModel]
    """The model, and what it was compared with, if it was."""

    @property
    def value(self) -> float | None:
        """Return the value of the metric for the model; None if all inputs failed or no label has any class."""
        return self.models[0].evaluation.value

    @property
    def interval(self) -> Interval | None:
        """Return the 95% confidence interval of the value: ``low``, ``high`` and ``method``; None if there is none."""
        return self.models[0].evaluation.interval

    @property
    def failed(self) -> dict[str, str]:
        """Return the errors of the inputs that the model failed on, by their names; they do not count."""
        return self.models[0].failed

    @property
    def difference(self) -> ScoreDifference | None:
        """Return the value minus that of the other model, on the inputs that both ran; None without another one."""
        if len(self.models) == 1:
            return None
        return self.models[0].evaluation.difference(self.models[1].evaluation)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, as ``ovir eval --json`` prints them."""
        first, *others = (model.to_dict() for model in self.models)
        if (difference := self.difference) is None:
            return first
        return {**first, "against": others[0], "difference": difference.to_dict()}

    def __str__(self) -> str:
        lines = [f"{model.name}: {_value_text(model)}" for model in self.models]
        if (difference := self.difference) is not None:
            lines += _difference_lines(self.models[0].evaluation, difference)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.classes_table().in_notebook(str(self))

    def classes_table(self) -> Table:
        """Return how each class is recognized by the model, for the metric top1."""
        rows = [
            (
                item.number,
                item.samples,
                item.right,
                item.right / item.samples,
                "-" if item.instead is None else f"{item.instead[0]} ({item.instead[1]:,})",
            )
            for item in self.models[0].evaluation.classes()
        ]
        heads = "class: counts; samples: count; right: count; share: share; most often taken for: name"
        return Table(columns(heads), rows)


def _value_text(model: EvaluatedModel) -> str:
    result = model.evaluation
    if result.value is None:
        reason = "all inputs failed" if model.failed else "there are no inputs"
        return f"{result.metric.name} is not known, because {'no label has any class' if result.samples else reason}"
    is_share = result.metric.is_share
    text = f"{result.metric.name} {_number(result.value, is_share)}{_interval_text(result.interval, is_share)}"
    samples = result.samples
    if isinstance(result.metric, SetMetric):
        text += f"; of {plural(samples, 'input')} together, {_direction(result)}"
    elif is_share:
        text += f"; {int(result.scores.sum()):,} of {samples:,} right"
    else:
        text += f"; mean of {plural(samples, 'sample')}, {_direction(result)}"
    return f"{text}; {plural(len(model.failed), 'input')} failed" if model.failed else text


def _direction(evaluation: ModelEvaluation) -> str:
    return "higher is better" if evaluation.metric.higher_is_better else "lower is better"


def _number(value: float, is_share: bool, sign: str = "") -> str:
    return f"{value:{sign}.2%}" if is_share else f"{value:{sign}.6g}"


def _interval_text(interval: Interval | None, is_share: bool, sign: str = "") -> str:
    if interval is None:
        return ", without an interval"
    low, high = (_number(end, is_share, sign) for end in interval[:2])
    return f", {CONFIDENCE:.0%} interval {low} to {high} ({interval.method})"


def _difference_lines(first: ModelEvaluation, difference: ScoreDifference) -> Iterator[str]:
    if difference.value is None:
        yield "difference: none is known, because no input ran in both or no label has any class"
        return
    is_share = first.metric.is_share
    text = f"difference {_number(difference.value, is_share, '+')}{_interval_text(difference.interval, is_share, '+')}"
    if difference.only_first is not None:
        text += f"; right in the first alone {difference.only_first:,}, in the second alone {difference.only_second:,}"
    yield f"{text}; {plural(difference.samples, 'sample')}"
    if difference.p_value is None:
        return
    is_better = (difference.value > 0) == first.metric.higher_is_better
    rank = "better" if is_better else "worse"
    verdict = f"the first model is {rank}" if difference.is_shown else "no difference is shown"
    yield f"{verdict}: p = {difference.p_value:.3g} ({difference.test})"


@dataclass(frozen=True)
class LabeledInputs:
    """Inputs with their labels, and the metric with which each model is evaluated on them."""

    inputs: Sequence[Any]
    names: Sequence[str]
    labels: Sequence[Callable[[], Array]]
    """Functions that return the labels."""
    metric: MetricBase
    workers: Mapping[str, Any]
    """Keyword arguments of ``ovir.map``."""
    advance: Callable[[Stage], None] | None = None
    """A function that counts one more input of a stage."""

    def evaluate(
        self,
        model: CompiledModel | Model,
        against: Against | None = None,
        output: str | int | None = None,
        *,
        title: str = "",
        other: str = "",
        config: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Evaluation:
        """Evaluate a model, and what it is compared with; ``title`` and ``other`` name them in the result."""
        from ovir.analysis.tensor_comparison import Criterion
        from ovir.compiling import compile_model
        from ovir.debugging.comparison_setup import ComparisonOptions
        from ovir.debugging.sides import Partners

        graph = model.model if isinstance(model, CompiledModel) else model
        index = output_index(graph, output)
        found = Evaluation([self._evaluated(title or graph.path or graph.name, self._mapped(model, index))])
        if against is None:
            return found
        if str(against).lower().endswith(".xml") and isinstance(against, (str, os.PathLike)):
            against = read_model(against)
        if isinstance(against, Model):
            place = Partners(graph, against).outputs[index]
            if place is None:
                raise InputError.usage("names a model without such an output", option="against")
            runs = self._mapped(compile_model(against), place)
            found.models.append(self._evaluated(other or against.path or against.name, runs))
            return found
        if isinstance(against, Mapping) or str(against).lower().endswith(".npz"):
            raise InputError.usage(f"{against}: expected other.xml, openvino:DEVICE or onnx:FILE", option="against")
        options = ComparisonOptions(against, Criterion(), config=config, timeout=timeout)
        with options.open_side(graph) as side:
            found.models.append(self._evaluated(side.description, self._by_side(side, graph, index)))
        return found

    def _evaluated(self, name: str, runs: Runs) -> EvaluatedModel:
        """Return the evaluation of a model, which runs meanwhile."""
        side = EvaluatedModel(name, ModelEvaluation(self.metric))
        with closing(runs), stage("evaluating", len(self.inputs)) as progress:
            for index, output in runs:
                try:
                    if isinstance(output, OvirError):
                        raise output
                    side.evaluation.add(self.names[index], output, self.labels[index]())
                except OvirError as error:
                    side.failed[self.names[index]] = error_text(error, self.names[index])
                if self.advance is not None:
                    self.advance(progress)
        side.failed = {name: side.failed[name] for name in self.names if name in side.failed}
        return side

    def _mapped(self, model: CompiledModel | Model, index: int) -> Runs:
        """Run a model on the inputs by workers."""
        with map(model, self.inputs, ordered=False, on_error="return", **self.workers) as results:
            for result in results:
                yield result.index, result if isinstance(result, MapError) else result[index]

    def _by_side(self, side: Side, model: Model, index: int) -> Runs:
        """Run a model on the inputs in another engine, one after the other."""
        from ovir.debugging.engines.process import EngineMissingError

        for place, item in enumerate(self.inputs):
            try:
                output = side.outputs(collect_inputs(model, load(item, model), model.input_index))[index]
            except EngineMissingError:
                raise
            except OvirError as error:
                yield place, error
                continue
            if output is None:
                raise InputError.usage(f"{side.description} has no such output")
            yield place, output


def output_index(model: Model, key: str | int | None) -> int:
    """Return the position of the output that is evaluated."""
    keys: dict[Any, int] = {**output_keys(model.outputs), **{i: i for i in range(len(model.outputs))}}
    known = ", ".join(f"'{port.any_name}'" for port in model.outputs)
    if key is None and len(model.outputs) > 1:
        raise InputError.usage(f"has to say which of several outputs is evaluated; they are {known}", option="output")
    if key is not None and (not isinstance(key, Hashable) or key not in keys):
        raise InputError.usage(f"{key}: there is no such output; the outputs are {known}", option="output")
    return 0 if key is None else keys[key]


def evaluate(
    model: CompiledModel | Model | str | os.PathLike[str],
    inputs: Iterable[Any],
    labels: Iterable[Any],
    metric: str | Callable[[Array, Any], Any] = "top1",
    *,
    against: Model | str | None = None,
    output: str | int | None = None,
    batch: int | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Measure how good a model is on labeled inputs, as ``ovir eval`` does, and return the scores.

    Args:
        model: A compiled model, a model, or the path of an .xml.
        inputs: The inputs, as ``ovir.map`` takes them.
        labels: The label of each input, in the same order: a class, or an array as the metric needs it.
        metric: The name of a metric, such as ``"top5"`` or ``"mse"``, or a function that gets an output and a label and
            returns a number, or one for each sample of stacked inputs.
        against: A second model that is evaluated on the same inputs: a Model, the path of an .xml, ``openvino:DEVICE``
            or ``onnx:FILE``.
        output: The name or the position of the output that is evaluated; needed if the model has several.
        batch: Number of inputs to stack along the first axis that all inputs leave open.
        executor: As for ``ovir.map``.
        workers: The number of processes in place of an executor; by default one for each core.
        config: Properties of the device of ``against``.

    Raises InputError for wrong arguments. Inputs that fail are listed in ``failed`` and do not count.
    """
    if not isinstance(model, (CompiledModel, Model)):
        model = read_model(model)
    chosen = metric_of(metric) if isinstance(metric, str) else FunctionMetric(_name_of(metric), metric)
    given, arrays = (_listed(name, values) for name, values in (("inputs", inputs), ("labels", labels)))
    if len(given) != len(arrays):
        raise InputError.usage(f"each input needs one label: there are {len(given)} inputs and {len(arrays)} labels")
    task = LabeledInputs(
        given,
        [f"input {i}" for i in range(len(given))],
        [lambda label=label: np.asarray(label) for label in arrays],  # type: ignore[misc]
        chosen,
        {"batch": batch, "executor": executor, "workers": workers},
    )
    return task.evaluate(model, against, output, config=config)


def _listed(name: str, values: Iterable[Any]) -> list[Any]:
    if not isinstance(values, Iterable):
        raise InputError.usage(f"must be a list or another iterable, got {values!r}", option=name)
    return list(values)


def _name_of(function: object) -> str:
    if not callable(function):
        raise InputError.usage(f"must be the name of a metric or a function, got {function!r}", option="metric")
    return getattr(function, "__name__", type(function).__name__)
