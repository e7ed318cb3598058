"""Tokenizers of all kinds: ovir against openvino-tokenizers, in turns in one process.

    python -m benchmarks.tokenizers [KIND ...] [--sizes N ...] [--rounds N]

Each text is new to both sides, so caches have only words of earlier texts. ``words`` are words of many scripts with
spaces, ``unbroken`` the same without spaces. Prints a Markdown table with the median time of a text of each length, and
its ratio to the time of openvino-tokenizers; the target is at most 20, and growth with the length.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino

import ovir
from benchmarks.tokenizer_kinds import KINDS
from benchmarks.tokenizer_texts import ENGLISH, WORDS

SIZES = [10, 1_000, 100_000]
TARGET = 20.0
MANY = 20_000
"""The characters of texts that are measured at least, of each length."""


def text(draw: random.Random, size: int, joint: str) -> str:
    """Return a text of so many characters: words of several scripts, with ``joint`` between them."""
    parts: list[str] = []
    length = 0
    while length < size:
        words = WORDS[draw.choice(list(WORDS))] if draw.random() < 0.5 else ENGLISH
        parts += [draw.choice(words), joint]
        length += len(parts[-2]) + len(joint)
    return "".join(parts)[:size]


def seconds(run: Callable[[Any], object], argument: Any) -> float:
    start = time.perf_counter()
    run(argument)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokenizers", description="Compare tokenizers.")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="characters of a text")
    parser.add_argument(
        "--rounds", type=int, default=5, metavar="N", help="the number of the longest texts (default 5)"
    )
    options = parser.parse_args()
    print("| kind | texts | characters | ovir ms | openvino ms | ratio |\n|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            path = Path(folder) / f"{kind}_tokenizer.xml"
            openvino.save_model(KINDS[kind]()[0], path, compress_to_fp16=False)
            ours, theirs = ovir.compile_model(path), openvino.Core().compile_model(path, "CPU")
            measure(kind, ours, theirs, options.sizes, options.rounds)


def measure(kind: str, ours: Any, theirs: Any, sizes: list[int], rounds: int) -> None:
    """Print the line of each length and form of texts."""
    draw = random.Random(1)
    for joint, form in ((" ", "words"), ("", "unbroken")):
        for size in sizes:
            times = []
            for number in range(rounds + max(MANY // size, 1)):
                batch = [text(draw, size, joint)] * len(ours.inputs)
                pair = (
                    seconds(ours, [np.array([sample], object) for sample in batch]),
                    seconds(theirs, [openvino.Tensor([sample]) for sample in batch]),
                )
                if number:
                    times.append(pair)
            one, other = (statistics.median(side) * 1e3 for side in zip(*times, strict=True))
            mark = "" if one / other <= TARGET else " above the target"
            numbers = f"{size:,} | {one:,.4g} | {other:,.4g} | {one / other:.1f}{mark}"
            print(f"| {kind} | {form} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
