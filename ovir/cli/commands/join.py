"""``ovir join``: make one model of two: outputs of the first feed inputs of the second.

Examples:
  ovir join resize.xml detector.xml --connect image_out=image -o both.xml
  ovir join encoder.xml decoder.xml --connect states=states --connect mask=mask -o both.xml

Inputs and outputs that are not connected remain. If both models use a name, that of the second gets a number.
"""

from __future__ import annotations

from typing import NoReturn

from ovir.cli.commands.edit import tensor_key
from ovir.cli.options.command import Command, Options
from ovir.cli.options.values import FileName, OutputFile, raise_usage_error, split_known
from ovir.cli.terminal.output import DONE, say, say_ports, say_saved
from ovir.diagnostics.wording import plural, readable
from ovir.editing.keys import layer_named
from ovir.graph.names import input_named, names_of_inputs, tensor_names
from ovir.model import Model, join, read_model, save_model


def add_to(command: Command) -> None:
    for number, name in (("first", "FIRST.xml"), ("second", "SECOND.xml")):
        command.argument(number, name, f"the .xml of the {number} model", FileName)
    command.option(
        "--connect OUT=IN",
        "feed a tensor of the first model, or LAYER:1, to an input of the second; may be repeated",
        repeated=True,
    )
    command.option("-o, --output JOINED.xml", "where to save the model", OutputFile, required=True)
    command.shared("extension", "json")


def run(options: Options) -> int:
    first, second = read_model(options.first), read_model(options.second)
    if not options.connect:
        _refuse_nothing(first, second)
    connections: dict[str | tuple[str, int], list[int]] = {}
    names = tensor_names(first)
    for text in options.connect:
        tensor, target = _split(first, second, text)
        connections.setdefault(tensor_key(first, names, tensor), []).append(input_named(second, target))
    joined = join(first, second, connections)
    warnings = save_model(joined, options.output)
    if say_saved(options.json, joined, options.output, [layer.key for layer in first.walk()], warnings):
        return DONE
    say_ports(joined)
    say()
    say(readable(f"{options.output}: {plural(len(joined.layers), 'layer')}"))
    return DONE


def _refuse_nothing(first: Model, second: Model) -> NoReturn:
    """Raise InputError, which names outputs of the first model and inputs of the second that fit together."""
    pairs = [
        f"--connect {output.any_name}={port.any_name}"
        for port in second.inputs
        for output in first.outputs
        if output.element_type.merged_with(port.element_type) and output.shape.compatible(port.shape)
    ]
    ports = (", ".join(f"'{port.any_name}' {port.type}" for port in part) for part in (first.outputs, second.inputs))
    message = "say which outputs ({}) feed which inputs ({}): --connect OUT=IN".format(*ports)
    hint = f"these fit together: {', '.join(pairs[:_SHOWN])}" if pairs else "none of them fit together"
    raise_usage_error(message, hint)


_SHOWN = 5


def _split(first: Model, second: Model, text: str) -> tuple[str, str]:
    """Split ``OUT=IN``; names may contain ``=``, so the first split that gives known names counts."""
    inputs, tensors = names_of_inputs(second), tensor_names(first)

    def is_known(name: str) -> bool:
        return text[len(name) + 1 :] in inputs and (name in tensors or layer_named(first, name) is not None)

    return split_known("--connect", text, is_known, "the output and the input")
