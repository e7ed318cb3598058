"""Arguments that ``compare`` and ``bisect`` share: the other side and tolerances."""

from __future__ import annotations

import argparse

from ovir.cli.arguments import amount, parse_shapes, raise_usage_error, seconds
from ovir.cli.output import print_diagnostics
from ovir.debugging.sides import Against
from ovir.inference.models import reshape_undeclared
from ovir.model import Model, read_model


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="a property of the device; may be repeated"
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="the most seconds that a run of the device takes")


def add_tolerances(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rtol", type=amount, metavar="X", help="the relative tolerance (default: by element type)")
    parser.add_argument("--atol", type=amount, metavar="X", help="the absolute tolerance, also of integers")
    parser.add_argument(
        "--metric", metavar="NAME=LIMIT", help="a limit in place of tolerances, such as cosine=0.999 or sqnr_db=40"
    )


def config_of(texts: list[str]) -> dict[str, str]:
    """Return the properties of the device."""
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise_usage_error(f"--config {text}: expected KEY=VALUE, as in INFERENCE_PRECISION_HINT=bf16")
    return {key: value for key, _, value in (text.partition("=") for text in texts)}


def sides_of(arguments: argparse.Namespace) -> tuple[Against, str | None]:
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


def open_other(arguments: argparse.Namespace, model: Model) -> Against:
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


def is_recorded(against: Against) -> bool:
    return (
        isinstance(against, str) and against.lower().endswith(".npz") and not against.startswith(("onnx:", "openvino"))
    )
