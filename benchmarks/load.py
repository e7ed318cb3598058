"""Whole models on a busy machine: as ``benchmarks.models``, next to processes that keep every core busy.

python -m benchmarks.load [FOLDER] [--only REGEX] [--rounds N] [--busy PROCESSES]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.common import write_figures
from benchmarks.models import MODELS, measure, summarize, table

_BUSY = "while True: sum(range(10000))"


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep as many processes busy while the context lasts."""
    running = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=MODELS)
    parser.add_argument("--only", default="", help="a regular expression for the names of models")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1, help="busy processes (default: one per core)")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/performance.md")
    options = parser.parse_args()
    with busy(options.busy):
        found = measure(options.folder, options.only, options.rounds)
    means = summarize(found)
    if options.write:
        write_figures("load", table(found, means))


if __name__ == "__main__":
    main()
