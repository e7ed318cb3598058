"""``ovir compare``: find the layers at which a model differs from a device, another model or a recording."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ovir.cli.arguments import (
    add_command,
    add_json,
    add_model,
    add_shape,
    file_name,
    open_model,
    positive,
    raise_usage_error,
)
from ovir.cli.compare_output import print_comparison
from ovir.cli.extensions import add_extension, load_extensions
from ovir.cli.html import add_html, check_html, write_html
from ovir.cli.input_sets import add_input_sets, inputs_of, random_note
from ovir.cli.node_data import add_node_data, check_node_data, write_node_data
from ovir.cli.output import print_diagnostics, say_json
from ovir.cli.progress import reported
from ovir.cli.sides import add_device, add_tolerances, config_of, is_recorded, open_other, sides_of
from ovir.cli.status import DONE, UNUSABLE, WRONG
from ovir.cli.workers import add_workers, opened_workers
from ovir.debugging.compare import compare
from ovir.debugging.comparison import Comparison
from ovir.debugging.side import Mode
from ovir.model import Model

if TYPE_CHECKING:
    from ovir.reports.page import Page

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
        "  ovir compare model.xml --against onnx:model.onnx --inputs data/ --workers 8\n"
        "  ovir compare model.xml --against recorded.npz --json\n"
        "\nexit status: 0 within tolerance, 1 beyond, 2 nothing could be compared\n",
    )
    parser.set_defaults(error_status=UNUSABLE)  # status 1 would say that the models differ
    add_model(parser)
    parser.add_argument("other", type=file_name, nargs="?", metavar="OTHER.xml", help="a second model to compare with")
    parser.add_argument(
        "--against",
        type=file_name,
        metavar="SIDE",
        help="openvino:DEVICE (with OTHER.xml: where that runs), onnx:FILE, or an .npz with tensors by name",
    )
    add_device(parser)
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--isolated",
        action="store_true",
        help="run each layer alone with the inputs that it has in ovir, also if the outputs agree",
    )
    modes.add_argument(
        "--cumulative", action="store_true", help="compare the tensors between the layers, in which errors add up"
    )
    add_tolerances(parser)
    add_input_sets(parser)
    add_workers(parser, default="this process alone")
    add_shape(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--limit", type=positive, default=LIMIT, metavar="N", help=f"show N layers (default {LIMIT})")
    shown.add_argument("--all", action="store_true", help="show all layers")
    add_extension(parser)
    add_node_data(parser, "the largest absolute error of each layer")
    add_json(parser)
    add_html(parser)


def run(arguments: argparse.Namespace) -> int:
    check_html(arguments)
    check_node_data(arguments)
    load_extensions(arguments.extension)
    config = config_of(arguments.config)
    against, device = sides_of(arguments)
    model = open_model(arguments)
    print_diagnostics(model.diagnostics)
    if arguments.other is not None:
        against = open_other(arguments, model)
    recorded = is_recorded(against)
    inputs = inputs_of(model, arguments, is_recorded=recorded)
    mode: Mode | None = "isolated" if arguments.isolated else "cumulative" if arguments.cumulative else None
    options: dict[str, Any] = {
        "samples": arguments.samples,
        "seed": arguments.seed or 0,
        "device": device,
        "config": config,
        "mode": mode,
        "rtol": arguments.rtol,
        "atol": arguments.atol,
        "metric": arguments.metric,
        "timeout": arguments.timeout,
    }
    has_workers = arguments.workers is not None or arguments.dask is not None
    if has_workers and (recorded or (arguments.inputs is None and arguments.samples is None)):
        raise_usage_error("--workers and --dask divide many sets of inputs: give them with --inputs or --samples")
    if has_workers and arguments.extension:
        raise_usage_error("--extension and --workers exclude each other here: workers would not have its operations")
    note = random_note(arguments, is_recorded=recorded)
    if has_workers:
        from ovir.workers.comparing import compare_by_workers

        files: Any = None if arguments.inputs is None else inputs
        with reported("comparing inputs", note, rate_of="inputs") as update, opened_workers(arguments) as workers:
            found = compare_by_workers(model, against, files, **options, **workers, progress=update)
    else:
        rate_of = None if arguments.inputs is None else "layers"
        with reported("comparing layers", note, rate_of=rate_of) as update:
            found = compare(model, against, inputs=inputs, **options, progress=update)
    print_diagnostics(found.diagnostics)
    if arguments.node_data is not None:
        from ovir.integrations.model_explorer.overlays import of_comparison

        write_node_data(arguments.node_data, of_comparison(model, found)[0], model)
    if arguments.json:
        say_json(found.to_dict())
    else:
        print_comparison(found, None if arguments.all else arguments.limit)
    write_html(arguments, lambda: _page(found, model))
    return DONE if found.within else WRONG


def _page(found: Comparison, model: Model) -> Page:
    from ovir.reports.compare_page import compare_page

    return compare_page(found, model)
