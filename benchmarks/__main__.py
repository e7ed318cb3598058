"""Measure all tables of the documentation, one after the other: ``python -m benchmarks [--write]``.

Run it while nothing else runs. Each table says which share of the processor's time other programs took.
"""

from __future__ import annotations

import subprocess
import sys

TABLES = (
    *("gather", "models", "real_sizes", "first_call", "operations", "forms", "startup", "checking", "whole_tools"),
    *("many_inputs", "tokenizers"),
)

if __name__ == "__main__":
    for name in TABLES:
        print(f"\n## {name}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]], check=True)
