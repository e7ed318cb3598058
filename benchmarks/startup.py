"""Whole processes: ``import ovir`` against ``import numpy``, and commands against the shortest script with openvino.

    python -m benchmarks.startup [--only REGEX] [--rounds N] [--write]

The script reads the same file, or for ``ovir run`` compiles the model and infers the same inputs. The processes take
turns. A first round, which is not measured, writes bytecode.
"""

from __future__ import annotations

import argparse
import re
from functools import partial

from benchmarks.common import Rows, in_turns, output, report, with_bytecode

HEAD = ["process", "ovir, ms", "other, ms", "ratio"]
_FILE = "examples/xml/digits.xml"
_INPUTS = "examples/xml/digits_input.npz"
_READ = ["-c", f"import openvino; openvino.Core().read_model({_FILE!r})"]
_INFER = [
    "-c",
    f"import numpy, openvino; openvino.Core().compile_model({_FILE!r}, 'CPU')(dict(numpy.load({_INPUTS!r})))",
]

PAIRS = {
    "import ovir": (["-c", "import ovir"], ["-c", "import numpy"]),
    "from ovir import *": (["-c", "from ovir import *"], ["-c", "import numpy"]),
    "ovir check": (["-m", "ovir", "check", _FILE], _READ),
    "ovir infer": (["-m", "ovir", "infer", _FILE], _READ),
    "ovir run": (["-m", "ovir", "run", _FILE, "--input", _INPUTS], _INFER),
}
"""The arguments of Python on either side."""


def measure(options: argparse.Namespace) -> Rows:
    with with_bytecode() as environment:
        for name in filter(re.compile(options.only).search, PAIRS):
            runs = {str(side): partial(output, command, environment) for side, command in enumerate(PAIRS[name])}
            ours, theirs = in_turns(runs, options.rounds).values()
            yield [name, ours * 1e3, theirs * 1e3, ours / theirs]


if __name__ == "__main__":
    report(__doc__, "start-up", HEAD, measure, rounds=10)
