"""``ovir python``: write Python code that builds a model, such as a small model that reproduces a fault.

Examples:
  ovir python small.xml
  ovir python model.xml -o build.py     large constants go to build.npz
"""

from __future__ import annotations

from ovir.cli.options.command import Command, Options
from ovir.cli.options.model import ModelOptions
from ovir.cli.options.values import output_with, raise_usage_error
from ovir.cli.terminal.output import print_message, say
from ovir.diagnostics.wording import plural, readable, size_text
from ovir.ir.writing.save import program_of, to_python


def add_to(command: Command) -> None:
    command.add(ModelOptions("no-weights"))
    command.option(
        "-o, --output FILE.py",
        "write the code to this file, and constants of many elements to the .npz of the same name; "
        "without it, the code is printed",
        output_with(".py"),
    )


def run(options: Options) -> int:
    source = options[ModelOptions]
    model = source.read()
    weights_file = source.absent_weights if source.no_weights else None
    if weights_file is not None:
        print_message(readable(f"note: the code reads the constants from {weights_file}, which must lie beside it"))
    if options.output is not None:
        to_python(model, options.output, weights_file)
        return 0
    program = program_of(model, weights_file)
    if program.arrays:
        size = sum(array.nbytes for array in program.arrays.values())
        message = f"the code needs a file for {plural(len(program.arrays), 'large constant')} ({size_text(size)})"
        raise_usage_error(message, "give --output FILE.py; the constants are written to FILE.npz")
    say(program.text.rstrip("\n"))
    return 0
