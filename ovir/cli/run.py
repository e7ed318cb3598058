"""``ovir run``: run a model on files or random numbers and show the outputs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ovir.cli.arguments import (
    add_command,
    add_json,
    add_model,
    add_shape,
    check_target,
    file_name,
    find_input,
    misused,
    open_model,
    split_name,
)
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.output import complain, complain_of, listed_layers
from ovir.cli.progress import ProgressBar
from ovir.cli.report import Report
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import BAD_INPUT, NO_RESULT, NOT_SUPPORTED, Severity
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError, RunError
from ovir.diagnostics.text import escaped, readable
from ovir.graph.model import Model
from ovir.runtime.compiled import CompiledModel, Results
from ovir.runtime.listeners import Listener, matching_layers

if TYPE_CHECKING:
    from ovir.analysis.profile import Profile
    from ovir.analysis.random_inputs import RandomInput


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "run",
        run,
        "run a model, and say what came out",
        "  ovir run model.xml\n"
        "  ovir run model.xml --shape image=4,3,224,224 --seed 7 --profile\n"
        "  ovir run model.xml --input image=photo.npy --input ids=batch.npz:ids --output out.npz\n"
        "  ovir run model.xml --input inputs.npz --tap 'conv[0-9]+$' --json\n"
        "\nWithout --input, inputs are random numbers; those that serve as indices stay in range.\n",
    )
    add_model(parser)
    add_extension(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="its value: NAME=file.npy, NAME=file.npz:key, or an inputs.npz with an array for each; may be repeated",
    )
    add_shape(parser)
    parser.add_argument("--seed", type=_seed, metavar="N", help="of random inputs (default 0)")
    parser.add_argument(
        "--output", type=file_name, metavar="FILE.npz", help="save the outputs, and what was tapped under tap:NAME"
    )
    parser.add_argument(
        "--tap",
        type=_pattern,
        action="append",
        default=[],
        metavar="REGEX",
        help="show the outputs of layers of this name, too",
    )
    add_json(parser)
    parser.add_argument("--threads", type=_threads, metavar="N", help="use at most N threads (default: all cores)")
    parser.add_argument("--profile", action="store_true", help="show the time by layer and by operation type")
    parser.add_argument(
        "--strict", action="store_true", help="a value that the specification excludes is an error, not a warning"
    )
    parser.add_argument(
        "--keep-compressed",
        action="store_true",
        help="restore large compressed weights at each use: takes longer, and little more memory than the file has",
    )


def _seed(text: str) -> int:
    return _integer(text, 0)


def _threads(text: str) -> int:
    return _integer(text, 1)


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(readable(f"'{text}' is not an integer")) from None
    if value < least:
        raise argparse.ArgumentTypeError(readable(f"must be at least {least}, got {value}"))
    return value


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
    if arguments.output is not None:
        check_target("--output", arguments.output)
    load_extensions(arguments.extension)
    model = open_model(arguments)
    complain_of(model.diagnostics)
    if not model.outputs:
        message = "the model has no Result: there is nothing to compute" if model.layers else "the model has no layers"
        raise ModelError(diagnose(NO_RESULT, message, Place(model.path), severity=Severity.ERROR))
    feeds, made, chosen = _inputs(model, arguments)
    try:
        taps = _taps(model, arguments.tap)
        compiled = CompiledModel(
            model,
            threads=arguments.threads,
            strict=arguments.strict,
            keep_compressed=arguments.keep_compressed,
        )
        profile = _profile() if arguments.profile else None
        results, seconds = _infer(compiled, feeds, taps, profile)
    except RunError as error:
        _hint_at_choices(error, made, chosen)
        from ovir.analysis.summary import not_run

        if lacking := not_run(model):
            error.add_note(f"  cannot be run yet: {readable(listed_layers(lacking))}")
        raise
    complain_of(results.diagnostics)
    if arguments.output is not None:
        _save(arguments.output, results)
    report = Report(model, feeds, made, results, profile, seconds)
    if arguments.json:
        report.print_json(seed=(arguments.seed or 0) if made else None)
    else:
        report.print_tables()
    return 0


def _profile() -> Profile:
    from ovir.analysis.profile import Profile

    return Profile()


def _infer(
    compiled: CompiledModel, feeds: dict[int, Array], taps: Sequence[str], profile: Profile | None
) -> tuple[Results, float]:
    listeners: list[Listener] = []
    bar = ProgressBar(len(compiled.plan(taps).steps)) if sys.stderr.isatty() else None
    if bar is not None:
        listeners.append(bar)
    if profile is not None:
        listeners.append(profile)
    start = perf_counter()
    try:
        results = compiled(feeds, taps=taps, listeners=listeners)
    finally:
        if bar is not None:
            bar.stop()
    return results, perf_counter() - start


def _taps(model: Model, patterns: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        names = matching_layers(model, pattern)
        if not names:
            misused(f"--tap {pattern}: no layer's name matches", "`ovir infer` lists the layers")
        found.update(dict.fromkeys(names))
    return list(found)


# --------------------------------------------------------------------------- what goes in


def _inputs(
    model: Model, arguments: argparse.Namespace
) -> tuple[dict[int, Array], list[RandomInput], dict[int, tuple[int, ...]]]:
    """Return the arrays by position of the input, the random ones among them, and the chosen shapes."""
    feeds = _given_inputs(model, arguments.input)
    missing = [i for i in range(len(model.inputs)) if i not in feeds]
    if not missing:
        return feeds, [], {}
    if feeds and arguments.seed is None:
        # Mixing given and random inputs is rarely intended, so it must be requested.
        listed = ", ".join(f"'{model.inputs[i].any_name}' {model.inputs[i].type}" for i in missing)
        hint = "with --seed N random values are made for what is not given"
        raise InputError(diagnose(BAD_INPUT, f"no value is given for {listed}", Place(model.path), hint=hint))
    from ovir.analysis.random_inputs import fix_shapes, random_inputs  # given inputs do not need it

    # A given array of a wrong shape is rejected later, as without random inputs.
    shapes = {i: (model.inputs[i].shape, PartialShape(array.shape)) for i, array in feeds.items()}
    try:
        chosen = fix_shapes(model, {i: given if given.compatible(own) else own for i, (own, given) in shapes.items()})
    except ModelError as error:
        dynamic = (port for port in model.inputs if not port.shape.is_static)
        if sizes := ", ".join(f"{escaped(port.any_name)}={port.shape}" for port in dynamic):
            error.add_note(f"  hint: no sizes were found for the dynamic inputs {sizes}: give them with --shape")
        raise
    made = random_inputs(model, arguments.seed or 0, missing)
    for item in made:
        index = model.inputs.index(item.port)
        was_chosen = " (size chosen)" if index in chosen else ""
        complain(f"random input: {readable(str(item))}{was_chosen}")
        feeds[index] = item.array
    return feeds, made, chosen


def _hint_at_choices(error: RunError, made: Sequence[RandomInput], chosen: dict[int, tuple[int, ...]]) -> None:
    if error.diagnostic.code == NOT_SUPPORTED.id:
        return
    if chosen:
        shapes = " ".join(f"--shape {item.port.any_name}={','.join(map(str, item.array.shape))}" for item in made)
        error.add_note(f"  hint: sizes were chosen for this run; give others as in: {escaped(shapes)}")
    elif made:
        error.add_note("  hint: the inputs were random; give real ones with --input NAME=file.npy")


def _given_inputs(model: Model, texts: Sequence[str]) -> dict[int, Array]:
    feeds: dict[int, Array] = {}
    if not texts:
        return feeds
    from ovir.io.tensor_files import load_npz, load_tensor, with_element_type

    def give(index: int, array: Array, text: str) -> None:
        port = model.inputs[index]
        if index in feeds:
            misused(f"--input {text}: input '{port.any_name}' is given twice")
        feeds[index] = with_element_type(array, port.element_type)

    for text in texts:
        name, source = split_name(model, text)
        if name is not None:
            index = find_input(model, name)
            path, key = _split_key(source)
            give(index, load_tensor(path, key, wanted=model.inputs[index].any_name), text)
        elif len(model.inputs) == 1 and source.endswith(".npy"):
            give(0, load_tensor(source), text)
        else:
            for key, array in load_npz(source).items():
                give(find_input(model, key), array, text)
    return feeds


def _split_key(source: str) -> tuple[str, str | None]:
    """Split ``file.npz:key``, unless a file has that very name or the colon belongs to a drive."""
    if os.path.exists(source):
        return source, None
    head, colon, key = source.partition(".npz:")
    return (f"{head}.npz", key) if colon else (source, None)


# --------------------------------------------------------------------------- what comes out


def _save(path: str, results: Results) -> None:
    from ovir.io.tensor_files import save_npz

    arrays: dict[str, Array] = dict(results.to_dict())
    for name, tapped in results.taps.items():
        for index, array in enumerate(tapped):
            arrays[f"tap:{name}" if len(tapped) == 1 else f"tap:{name}:{index}"] = np.asarray(array)
    save_npz(path, arrays)
