"""Measure all tables of the documentation, one after the other: ``python -m benchmarks [--write]``.

Run it while nothing else runs. Each table says which share of the processor's time other programs took. With
``--write`` a table is written if a run half an hour before agrees; the exit status is 1 if one was not.
"""

from __future__ import annotations

import subprocess
import sys

TABLES = (
    *("gather", "models", "real_sizes", "first_call", "operations", "forms", "startup", "checking", "whole_tools"),
    *("busy_core", "many_inputs", "tokenizers"),
)

if __name__ == "__main__":
    failed = False
    for name in TABLES:
        print(f"\n## {name}\n", flush=True)
        failed |= bool(subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]).returncode)
    sys.exit(failed)
