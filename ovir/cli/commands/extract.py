"""``ovir extract``: save the part of a model between given tensors.

Examples:
  ovir extract model.xml --outputs relu1 -o part.xml         all that relu1 depends on
  ovir extract model.xml --inputs conv1,mask --outputs pool1 -o part.xml

A tensor is given by its name, by the name of its layer, or as LAYER:1 for the second output of a layer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from ovir.cli.commands.edit import tensor_key
from ovir.cli.options.command import Command, Options
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import OutputFile
from ovir.cli.terminal import output
from ovir.diagnostics.wording import readable
from ovir.editing.keys import layer_named
from ovir.graph.names import tensor_names
from ovir.ir.writing.save import write_model
from ovir.model import Model
from ovir.ops.state import AssignBase, ReadValueBase


def add_to(command: Command) -> None:
    command.add(ModelOptions("no-weights"))
    for side, left_out in (("inputs", "the inputs of the model that the part needs"), ("outputs", "all outputs")):
        text = f"the {side} of the part, in this order (default: {left_out}); may be repeated"
        command.option(f"--{side} NAME,NAME", text, _names, action="append")
    command.option("-o, --output PART.xml", "where to save the part", OutputFile, required=True)
    command.shared("json")


def _names(text: str) -> str:
    if not text.strip(","):
        raise argparse.ArgumentTypeError("there is no name")
    return text


def run(options: Options) -> int:
    source = options[ModelOptions]
    model = source.read()
    part = model.extract(_tensors(model, options.inputs), _tensors(model, options.outputs))
    notes = list(_notes(model, part))
    if source.no_weights:
        file = source.absent_weights
        part.rt_info["ovir", "without_weights"] = f"the constants are in {file}"
        notes.append(f"no weights are written: the constants are in {file}, which --weights names")
    warnings = write_model(part, options.output, None, Model, with_weights=not source.no_weights)[1]
    if output.say_saved(options.json, part, options.output, [x.key for x in model.walk()], warnings, notes=notes):
        return output.DONE
    output.say_ports(part)
    count = sum(layer.type not in ("Parameter", "Result") for layer in part.layers)
    whole = sum(layer.type not in ("Parameter", "Result") for layer in model.layers)
    output.say()
    output.say_filled(readable(f"{options.output}: {count} of {whole} layers between inputs and outputs"))
    for note in notes:
        output.print_message(readable(f"note: {note}"))
    return output.DONE


def _tensors(model: Model, texts: Sequence[str] | None) -> list[str | tuple[str, int]] | None:
    """Return the tensors that an option lists; a name may contain commas if it is given alone."""
    if texts is None:
        return None
    names = tensor_names(model)
    found: list[str | tuple[str, int]] = []
    for text in texts:
        is_one = text in names or layer_named(model, text)
        found += [tensor_key(model, names, part) for part in ([text] if is_one else text.split(",")) if part]
    return found


def _notes(model: Model, part: Model) -> Iterator[str]:
    """Yield notes on properties of the part that a user may not expect."""
    for port in part.inputs:
        if not port.readers:
            yield f"nothing in the part reads input '{port.any_name}'"
    assigned = {op.variable_id for layer in model.layers if isinstance(op := layer.operator, AssignBase)}
    kept = {op.variable_id for layer in part.layers if isinstance(op := layer.operator, AssignBase)}
    for layer in part.layers:
        if isinstance(op := layer.operator, ReadValueBase) and op.variable_id in assigned - kept:
            yield f"variable '{op.variable_id}' keeps its initial value: its Assign is not in the part"
