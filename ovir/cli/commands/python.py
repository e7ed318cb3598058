"""``ovir python``: Python code that builds a model."""

from __future__ import annotations

import argparse
from typing import Any

from ovir.cli.options.arguments import add_command, add_model, check_target, output_file, raise_usage_error
from ovir.cli.options.opening import add_extension, load_extensions
from ovir.cli.terminal.output import say
from ovir.diagnostics.wording import plural, size_text
from ovir.ir.writing.save import program_of, to_python
from ovir.model import read_model


def add_to(commands: Any) -> None:
    parser = add_command(
        commands,
        "python",
        run,
        "write Python code that builds a model, such as a small model that reproduces a fault",
        "  ovir python small.xml\n  ovir python model.xml -o build.py     large constants go to build.npz\n",
    )
    add_model(parser)
    add_extension(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=output_file,
        metavar="FILE.py",
        help="write the code to this file, and constants of many elements to the .npz of the same name; "
        "without it, the code is printed",
    )


def run(arguments: argparse.Namespace) -> int:
    load_extensions(arguments.extension)
    if arguments.output is not None:
        check_target("--output", arguments.output, ".py")
        to_python(read_model(arguments.model, arguments.weights), arguments.output)
        return 0
    program = program_of(read_model(arguments.model, arguments.weights))
    if program.arrays:
        size = sum(array.nbytes for array in program.arrays.values())
        message = f"the code needs a file for {plural(len(program.arrays), 'large constant')} ({size_text(size)})"
        raise_usage_error(message, "give --output FILE.py; the constants are written to FILE.npz")
    say(program.text.rstrip("\n"))
    return 0
