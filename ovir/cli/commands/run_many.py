"""``ovir run --inputs``: run a model on many inputs, with one file of results for each."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

from ovir.cli.options.arguments import opened_workers, raise_usage_error
from ovir.cli.options.compiling import compiled_as, named_arrays, open_runnable, taps_of
from ovir.cli.options.inputs import input_files, refuse_single_inputs
from ovir.cli.terminal.output import DONE, WRONG, print_message, say, say_json
from ovir.cli.terminal.progress import advance
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

SHOWN = 20
"""The number of different faults, and of kinds of warnings, that are printed."""
_NAMED = 3
"""The number of inputs of one fault that are named."""


def print_failures(errors: Mapping[str, str], where: str, prefix: str = "failed") -> None:
    """Print the errors of inputs by their name, with one line for all inputs that have the same.

    ``where`` says what has the inputs that are not shown.
    """
    names: dict[str, list[str]] = {}
    for name, error in errors.items():
        names.setdefault(error.partition("\n")[0], []).append(escaped(name))
    for error, failed in list(names.items())[:SHOWN]:
        more = f" and {len(failed) - _NAMED:,} more" if len(failed) > _NAMED else ""
        say(f"{escaped(prefix)}: {', '.join(failed[:_NAMED])}{more}: {escaped(error)}")
    shown = sum(min(len(failed), _NAMED) for failed in list(names.values())[:SHOWN])
    if shown < len(errors):
        say(f"{len(errors):,} inputs failed; {where} lists all of them")


_WRITERS = 4
"""Threads that write results, because each waits for the disk."""
_OPTIONS = (
    *("shape", "tap", "engine", "emulate", "strict", "keep_compressed", "legacy_io", "quantize_activations"),
    *("mean", "scale", "layout", "resize", "bgr"),
)


def run_many(arguments: argparse.Namespace) -> int:
    """Run a model on the inputs that have no result yet, and return the exit status."""
    _refuse_contradictions(arguments)
    mark, options = _identity(arguments)  # before the model is read: if it changes meanwhile, inputs run again
    model = open_runnable(arguments)
    files = input_files(model, arguments, without=arguments.output)
    taps = taps_of(model, arguments.tap)
    with ResultFolder(arguments.output, arguments.model, mark, options, resume=arguments.resume) as folder:
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
                _run_pending(arguments, compiled_as(arguments, model), taps, folder, pending)
        except KeyboardInterrupt:
            left = plural(len(folder.pending(files)), "input")
            print_message(f"{escaped(arguments.output)}: {left} of {len(files):,} left; --resume continues")
            raise
        folder.require_there()
        missing = folder.missing(files)
        _report(arguments, folder, files, missing, len(pending), perf_counter() - start)
        if pending and len(folder.failures(files)) == len(files):
            _hint_at_sizes(model, files[0])
        return WRONG if folder.failures(files) or missing else DONE


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


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    """Raise a usage error for options that do not go with ``--inputs``."""
    refuse_single_inputs(arguments, "--record", "--top", "--watch", "--repeat", "--profile", "--html", "--node-data")
    if arguments.output is None:
        raise_usage_error("--inputs needs --output FOLDER, which the results are written to")
    if arguments.batch is not None and arguments.tap:
        raise_usage_error("--batch and --tap exclude each other")


def _identity(arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return the fingerprint of the model, and the options that results depend on."""
    weights = arguments.weights or f"{os.path.splitext(arguments.model)[0]}.bin"
    options = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in _OPTIONS}
    options["--extension"] = [checksum(path) for path in arguments.extension]
    return fingerprint(arguments.model, weights), options


def _run_pending(
    arguments: argparse.Namespace,
    compiled: CompiledModel,
    taps: Sequence[str],
    folder: ResultFolder,
    pending: Sequence[InputFile],
) -> None:
    """Run the model on inputs, and write each result as soon as it is there."""
    from ovir.workers.map import MapError, map

    warnings: Counter[Diagnostic] = Counter()
    written: deque[Future[None]] = deque()
    with (
        ThreadPoolExecutor(_WRITERS) as writers,
        opened_workers(arguments) as workers,
        map(
            compiled, pending, taps=taps, batch=arguments.batch, ordered=False, on_error="return", **workers
        ) as results,
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
    for found, count in warnings.most_common(SHOWN):
        print_message(f"{found} ({plural(count, 'input')})")


def _report(
    arguments: argparse.Namespace,
    folder: ResultFolder,
    files: Sequence[InputFile],
    missing: Sequence[Row],
    ran: int,
    seconds: float,
) -> None:
    """Print a summary, with the inputs that failed, and those whose results are ``missing``."""
    failed = folder.failures(files)
    if arguments.json:
        document = {
            "model": arguments.model,
            "output": arguments.output,
            "inputs": len(files),
            "done": len(files) - len(failed) - len(missing),
            "kept": len(files) - ran,
            "failed": [{"input": row.input, "error": row.error} for row in failed],
            "missing": [{"input": row.input, "result": row.result} for row in missing],
            "seconds": seconds,
        }
        say_json(document)
        return
    kept = f" ({len(files) - ran:,} of an earlier run)" if len(files) > ran else ""
    rate = f"; {seconds:.1f} s, {ran / seconds:.4g} inputs/s" if ran else ""
    lost = f", {len(missing):,} removed since they were written (--resume runs them again)" if missing else ""
    done = f"{len(files) - len(failed) - len(missing):,} done{kept}, {len(failed):,} failed{lost}"
    say(f"{escaped(arguments.output)}: {plural(len(files), 'input')}, {done}{rate}")
    where = os.path.join(escaped(arguments.output), NAME)
    print_failures({row.input: row.error or "" for row in failed}, where)


def error_text(error: OvirError, name: str) -> str:
    """Return the diagnostics of an error of an input, without the place in the model's file, and the input's name."""
    lines = (str(replace(found, file=None, line=None, column=None)) for found in error.diagnostics)
    return "\n".join(line.replace(f"{name}: ", "", 1) for line in lines)
