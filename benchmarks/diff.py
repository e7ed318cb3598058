"""Time `ovir.diff` on a large model and a copy with one more layer.

    python -m benchmarks.diff [--layers 12000] [--rounds 3]

The copy has the same names; then it has others, so that only the structure tells which layer is which. Reading the
models is not counted. The figures are minima of processor time in ms.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np

import ovir
from benchmarks.growth_models import File


def blocks(layers: int, added: int | None, prefix: str = "") -> ovir.Model:
    """Return blocks of a sum with a constant, a sigmoid and a residual sum, with one more layer in block ``added``."""
    file = File()
    x = file.parameter("64")
    rng = np.random.default_rng(0)
    for i in range(layers // 4):
        bias = file.constant(rng.random(64))
        y = file.layer("Sigmoid", file.layer("Add", x, bias, name=f"{prefix}add{i}"), name=f"{prefix}sigmoid{i}")
        if i == added:
            y = file.layer("Exp", y, name=f"{prefix}exp")
        x = file.layer("Add", y, x, name=f"{prefix}sum{i}")
    file.results([x])
    return ovir.read_model(file.text().encode(), bytes(file.weights))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--layers", type=int, default=12000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    middle = arguments.layers // 8
    before = blocks(arguments.layers, None)
    for title, prefix in (("same names", ""), ("other names", "new_")):
        after = blocks(arguments.layers, middle, prefix)
        times = []
        for _ in range(arguments.rounds):
            start = process_time()
            found = ovir.diff(before, after, ignore_names=True)
            times.append(process_time() - start)
        print(f"{title:12} {min(times) * 1000:8.0f} ms  {found}")


if __name__ == "__main__":
    main()
