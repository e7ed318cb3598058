"""``ovir run --inputs``: run a model on many inputs, with one file of results for each."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ovir.cli.options.command import Options
from ovir.cli.options.engine import EngineOptions, named_arrays, taps_of
from ovir.cli.options.inputs import InputOptions
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import raise_usage_error
from ovir.cli.options.workers import WorkerOptions
from ovir.cli.terminal.output import DONE, LIMIT, WRONG, listed, print_message, say, say_json
from ovir.cli.terminal.progress import advance
from ovir.core.json_fields import json_fields
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ModelError, OvirError
from ovir.diagnostics.wording import escaped, plural, readable
from ovir.io.images import ENDINGS
from ovir.io.input_files import InputFile
from ovir.io.result_folder import NAME, ResultFolder, Row, checksum, fingerprint
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel
from ovir.system.interrupts import result_of, uninterrupted
from ovir.system.progress import stage

_NAMED = 3
"""The number of inputs of one fault that are named."""


def print_failures(errors: Mapping[str, str], where: str, prefix: str = "failed") -> None:
    """Print the errors of inputs by their name, with one line for all inputs that have the same.

    ``where`` says what has the inputs that are not shown.
    """
    names: dict[str, list[str]] = {}
    for name, error in errors.items():
        names.setdefault(error.partition("\n")[0], []).append(escaped(name))
    for error, failed in list(names.items())[:LIMIT]:
        say(f"{escaped(prefix)}: {listed(failed, _NAMED)}: {escaped(error)}")
    shown = sum(min(len(failed), _NAMED) for failed in list(names.values())[:LIMIT])
    if shown < len(errors):
        say(f"{len(errors):,} inputs failed; {where} lists all of them")


_WRITERS = 4
"""Threads that write results, because each waits for the disk."""
_OPTIONS = (
    *("shape", "adapt", "tap", "engine", "emulate", "strict", "keep_compressed", "legacy_io", "quantize_activations"),
    *("mean", "scale", "layout", "resize", "bgr"),
)


def run_many(options: Options) -> int:
    """Run a model on the inputs that have no result yet, and return the exit status."""
    source, inputs, engine = options[ModelOptions], options[InputOptions], options[EngineOptions]
    inputs.refuse_single("--record", "--top", "--labels", "--watch", "--repeat", "--profile", "--html", "--node-data")
    if options.output is None:
        raise_usage_error("--inputs needs --output FOLDER, which the results are written to")
    if options.tap:
        options.refuse("and --tap exclude each other", "--batch")
    output: str = options.output
    if output.lower().endswith(".npz"):
        raise_usage_error(f"--output {output}: the results of many inputs need a folder, not one file")
    # The model is read later: if it changes meanwhile, inputs run again.
    path = source.require_file("--inputs")
    mark = fingerprint(path, source.weights or f"{os.path.splitext(path)[0]}.bin")
    results_depend_on = _options({**vars(source), **vars(inputs), **vars(engine), "tap": options.tap})
    model = engine.open(source)
    files = inputs.find(model, without=output)
    taps = taps_of(model, options.tap)
    with ResultFolder(output, source.path, mark, results_depend_on, resume=options.resume) as folder:
        if folder.manifest.is_anew:
            print_message(f"{escaped(folder.manifest.path)}: the file was empty or torn, so all inputs run")
        if folder.manifest.unreadable:
            count, first = len(folder.manifest.unreadable), escaped(folder.manifest.unreadable[0])
            path = escaped(folder.manifest.path)
            print_message(f"{path}: {plural(count, 'row')} cannot be read, and their inputs run again; {first}")
        pending = folder.pending(files)
        start = perf_counter()
        try:
            if pending:
                _run_pending(engine.compiled(model), taps, options.batch, options[WorkerOptions], folder, pending)
        except KeyboardInterrupt:
            left = plural(len(folder.pending(files)), "input")
            print_message(f"{escaped(output)}: {left} of {len(files):,} left; --resume continues")
            raise
        folder.require_there()
        missing = folder.missing(files)
        failed, seconds = folder.failures(files), perf_counter() - start
        outcome = ManyRuns(source.path, output, files, failed, missing, len(pending), seconds)
        if options.json:
            say_json(outcome.to_dict())
        else:
            outcome.say()
        if pending and len(failed) == len(files):
            _hint_at_sizes(model, files[0])
        return WRONG if failed or missing else DONE


def _hint_at_sizes(model: Model, file: InputFile) -> None:
    """Print the sizes that the model accepts if it refuses those of an input."""
    from ovir.analysis.input_sizes import fix_image_sizes, fix_shapes  # only needed here

    with suppress(OvirError):
        trial, shapes = model.clone(), {i: array.shape for i, array in file.load(model).items()}
        try:
            trial.reshape(shapes)
        except ModelError:
            if not (file.path.lower().endswith(ENDINGS) and fix_image_sizes(trial)):
                fix_shapes(trial)
            ports = (trial.inputs[i] for i, port in enumerate(model.inputs) if not port.shape.is_static)
            texts = (f"--shape {port.any_name}={','.join(map(str, port.shape))}" for port in ports)
            print_message(readable(f"  hint: the model takes other sizes, as in: {' '.join(texts)}"))


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that results depend on."""
    options = {f"--{name.replace('_', '-')}": values[name] for name in _OPTIONS}
    return {**options, "--extension": [checksum(path) for path in values["extension"]]}


def _run_pending(
    compiled: CompiledModel,
    taps: Sequence[str],
    batch: int | None,
    options: WorkerOptions,
    folder: ResultFolder,
    pending: Sequence[InputFile],
) -> None:
    """Run the model on inputs, and write each result as soon as it is there."""
    from ovir.workers.map import MapError, error_text, map

    warnings: Counter[Diagnostic] = Counter()
    written: deque[Future[None]] = deque()
    with (
        ThreadPoolExecutor(_WRITERS) as writers,
        options.opened() as workers,
        map(compiled, pending, taps=taps, batch=batch, ordered=False, on_error="return", **workers) as results,
        stage("running", len(pending)) as progress,
    ):
        for result in results:
            file = pending[result.index]
            if isinstance(result, MapError):
                folder.fail(file, error_text(result, result.name))
            else:
                with uninterrupted():
                    written.append(writers.submit(folder.keep, file, named_arrays(result), result.seconds))
                warnings.update(dict.fromkeys(result.diagnostics, 1))
            if len(written) > 2 * _WRITERS:
                result_of(written.popleft())
            advance(progress)
        for future in written:
            result_of(future)
    for found, count in warnings.most_common(LIMIT):
        print_message(f"{found} ({plural(count, 'input')})")


@dataclass(frozen=True)
class ManyRuns:
    """The outcome for many inputs: those that failed, and those whose results are ``missing``."""

    model: str
    output: str
    files: Sequence[InputFile]
    failed: Sequence[Row]
    missing: Sequence[Row]
    ran: int
    seconds: float

    @property
    def done(self) -> int:
        return len(self.files) - len(self.failed) - len(self.missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON has it."""
        return {
            **json_fields(self, "model", "output"),
            "inputs": len(self.files),
            "done": self.done,
            "kept": len(self.files) - self.ran,
            "failed": [json_fields(row, "input", "error") for row in self.failed],
            "missing": [json_fields(row, "input", "result") for row in self.missing],
            "seconds": self.seconds,
        }

    def say(self) -> None:
        """Print a summary, with the inputs that failed."""
        count = len(self.files)
        kept = f" ({count - self.ran:,} of an earlier run)" if count > self.ran else ""
        rate = f"; {self.seconds:.1f} s, {self.ran / self.seconds:.4g} inputs/s" if self.ran else ""
        removed = f", {len(self.missing):,} removed since they were written (--resume runs them again)"
        lost = removed if self.missing else ""
        done = f"{self.done:,} done{kept}, {len(self.failed):,} failed{lost}"
        say(f"{escaped(self.output)}: {plural(count, 'input')}, {done}{rate}")
        where = os.path.join(escaped(self.output), NAME)
        print_failures({row.input: row.error or "" for row in self.failed}, where)
