"""The operations and parts of models of ``benchmarks.cases``: ovir against OpenVINO, as in ``benchmarks.models``.

python -m benchmarks.operations [--only REGEX] [--rounds N] [--write]
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from benchmarks import cases, models
from benchmarks.common import Rows, report


def measure(options: argparse.Namespace) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        for name in cases.CASES:
            if re.search(options.only, name):
                cases.write(name, Path(folder) / name)
        yield from models.measure(argparse.Namespace(**{**vars(options), "folder": Path(folder)}))


if __name__ == "__main__":
    head = ["case", *models.HEAD[1:]]
    report(__doc__, "operations", head, measure, rounds=9, passes=3, means=models.HEAD[3:6:2])
