"""``ovir compare``: find the layers at which a model differs from a device, another model or a recording."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ovir.analysis.feeds import random_inputs
from ovir.cli.arguments import (
    add_command,
    add_json,
    add_model,
    add_shape,
    file_name,
    open_model,
    parse_shapes,
    raise_usage_error,
)
from ovir.cli.compare_output import print_comparison
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.output import print_diagnostics, print_message, say_json
from ovir.cli.progress import SearchProgress
from ovir.cli.run_inputs import add_inputs, collect, save_inputs
from ovir.cli.status import DONE, WRONG
from ovir.debugging.compare import compare
from ovir.debugging.input_sets import Inputs
from ovir.debugging.sides import Against, Mode
from ovir.diagnostics.text import plural
from ovir.graph.model import Model
from ovir.inference.declared import reshape_undeclared
from ovir.ir.reader import read_model

LIMIT = 20
"""The number of layers that are shown unless the options say otherwise."""


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "compare",
        run,
        "compare a model with a device, another model or recorded tensors, layer by layer",
        "  ovir compare model.xml --against openvino:CPU\n"
        "  ovir compare model.xml --against openvino:CPU --config INFERENCE_PRECISION_HINT=bf16 --isolated\n"
        "  ovir compare f32.xml int8.xml --samples 10 --metric sqnr_db=30\n"
        "  ovir compare before.xml after.xml --against openvino:GPU --input inputs.npz\n"
        "  ovir compare model.xml --against onnx:model.onnx\n"
        "  ovir compare model.xml --against recorded.npz --json\n"
        "\nexit status: 0 within tolerance, 1 beyond, 2 wrong usage\n",
    )
    add_model(parser)
    parser.add_argument("other", type=file_name, nargs="?", metavar="OTHER.xml", help="a second model to compare with")
    parser.add_argument(
        "--against",
        type=file_name,
        metavar="SIDE",
        help="openvino:DEVICE (with OTHER.xml: where that runs), onnx:FILE, or an .npz with tensors by name",
    )
    parser.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="a property of the device; may be repeated"
    )
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="the most seconds that a run of the device takes")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--isolated",
        action="store_true",
        help="run each layer alone with the inputs that it has in ovir, also if the outputs agree",
    )
    modes.add_argument(
        "--cumulative", action="store_true", help="compare the tensors between the layers, in which errors add up"
    )
    parser.add_argument("--rtol", type=_number, metavar="X", help="the relative tolerance (default: by element type)")
    parser.add_argument("--atol", type=_number, metavar="X", help="the absolute tolerance, also of integers")
    parser.add_argument(
        "--metric", metavar="NAME=LIMIT", help="a limit in place of tolerances, such as cosine=0.999 or sqnr_db=40"
    )
    add_inputs(parser)
    parser.add_argument("--samples", type=_count, metavar="N", help="compare for N sets of random inputs")
    parser.add_argument("--seed", type=_seed, metavar="N", help="seed of the (first) random inputs (default: 0)")
    add_shape(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--limit", type=_count, default=LIMIT, metavar="N", help=f"show N layers (default {LIMIT})")
    shown.add_argument("--all", action="store_true", help="show all layers")
    add_extension(parser)
    add_json(parser)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 0 or more")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if not value:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of 0 or more")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of 1 or more")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    load_extensions(arguments.extension)
    config = _config(arguments.config)
    against, device = _sides(arguments)
    model = open_model(arguments)
    print_diagnostics(model.diagnostics)
    if arguments.other is not None:
        against = _open_other(arguments, model)
    inputs = _inputs(model, arguments, is_recorded=_is_recorded(against))
    mode: Mode | None = "isolated" if arguments.isolated else "cumulative" if arguments.cumulative else None
    with SearchProgress() as progress:
        found = compare(
            model,
            against,
            inputs=inputs,
            samples=arguments.samples,
            seed=arguments.seed or 0,
            device=device,
            config=config,
            mode=mode,
            rtol=arguments.rtol,
            atol=arguments.atol,
            metric=arguments.metric,
            timeout=arguments.timeout,
            progress=lambda done, total, layer: progress.update(total, done, layer),
        )
    print_diagnostics(found.diagnostics)
    if arguments.json:
        say_json(found.to_dict())
    else:
        print_comparison(found, None if arguments.all else arguments.limit)
    return DONE if found.within else WRONG


def _config(texts: list[str]) -> dict[str, str]:
    """Return the properties of the device."""
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise_usage_error(f"--config {text}: expected KEY=VALUE, as in INFERENCE_PRECISION_HINT=bf16")
    return {key: value for key, _, value in (text.partition("=") for text in texts)}


def _sides(arguments: argparse.Namespace) -> tuple[Against, str | None]:
    """Return what to compare with, and the device for a second model."""
    other, against = arguments.other, arguments.against
    if other is None and against is None:
        raise_usage_error("there is nothing to compare with: give a second model, or --against", _WAYS)
    if other is None:
        return str(against), None
    if against is not None and not against.startswith("openvino"):
        raise_usage_error(f"--against {against}: a second model runs in ovir, or on openvino:DEVICE")
    return str(other), against


_WAYS = "as in --against openvino:CPU, --against onnx:model.onnx or --against recorded.npz"


def _open_other(arguments: argparse.Namespace, model: Model) -> Against:
    """Return the second model, in the shapes that ``--shape`` gives for the first one."""
    if not arguments.other.lower().endswith(".xml"):
        return str(arguments.other)
    other = read_model(arguments.other)
    print_diagnostics(other.diagnostics)
    shapes = {}
    for index, shape in parse_shapes(model, arguments.shape).items():
        names = {model.inputs[index].layer.name, *model.inputs[index].names}
        own = (i for i, port in enumerate(other.inputs) if names & {port.layer.name, *port.names})
        shapes[next(own, index)] = shape
    if shapes:
        reshape_undeclared(other, shapes)
    return other


def _is_recorded(against: Against) -> bool:
    return (
        isinstance(against, str) and against.lower().endswith(".npz") and not against.startswith(("onnx:", "openvino"))
    )


def _inputs(model: Model, arguments: argparse.Namespace, *, is_recorded: bool) -> Inputs:
    """Return the inputs as ``compare`` takes them: None for random ones, and for those that a recording has."""
    if len(arguments.input) == 1 and os.path.isdir(arguments.input[0]):
        return str(arguments.input[0])
    if arguments.input:
        if arguments.samples is not None:
            raise_usage_error("--samples draws random inputs: give either it or --input")
        given = collect(model.clone(), arguments)
        if arguments.save_inputs is not None:
            save_inputs(arguments.save_inputs, model, given)
        return given.feeds
    if arguments.save_inputs is not None:
        if arguments.samples is not None:
            raise_usage_error("--save-inputs saves one set of inputs, --samples draws several")
        return _saved(model, arguments)
    if not is_recorded:
        sets = plural(arguments.samples or 1, "set")
        print_message(f"random inputs: {sets}, seed {arguments.seed or 0}")
    return None


def _saved(model: Model, arguments: argparse.Namespace) -> Inputs:
    from ovir.io.tensor_files import save_npz

    arrays = random_inputs(model, arguments.seed or 0)
    save_npz(arguments.save_inputs, arrays)
    return arrays
