"""Tokenizers of all kinds: ovir against openvino-tokenizers, in turns in one process.

    python -m benchmarks.tokenizers [KIND ...] [--sizes N ...] [--rounds N]

Makes the tokenizers that the tests compare, and lets both sides tokenize single texts. Each text is new to both, so
caches have only words of earlier texts. ``words`` are words of many scripts with spaces, ``unbroken`` the same without
spaces. Prints the seconds of a text and their ratio; the target is at most 20, and growth with the length.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino_tokenizers  # noqa: F401  registers its operations in openvino

import ovir

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from tokenizer_texts import ENGLISH, WORDS  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

KINDS = (
    "gpt2", "qwen2", "llama2", "bert-cased", "bert-uncased", "t5", "xlm-r", "words", "sp-unigram", "sp-bpe",
)  # fmt: skip
TARGET = 20.0


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
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 1_000, 100_000], help="characters of a text")
    parser.add_argument("--rounds", type=int, default=5, help="the number of the longest texts (default 5)")
    options = parser.parse_args()
    print(f"{'kind':<14}{'texts':<10}{'characters':>11}{'ovir ms':>11}{'openvino ms':>13}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "batches.pickle").write_bytes(b"\x80\x04]\x94.")  # an empty list: nothing is compared here
        for kind in options.kinds:
            worker = TESTS / "tokenizers" / "tokenizers_worker.py"
            subprocess.run([sys.executable, "-W", "ignore", worker, folder, kind], check=True)
            path = folder / f"{kind}_tokenizer.xml"
            ours, theirs = ovir.compile_model(path), openvino.Core().compile_model(path, "CPU")
            measure(kind, ours, theirs, options.sizes, options.rounds)


def measure(kind: str, ours: Any, theirs: Any, sizes: list[int], rounds: int) -> None:
    """Print the line of each length and form of texts."""
    draw = random.Random(1)
    for joint, form in ((" ", "words"), ("", "unbroken")):
        for size in sizes:
            times = []
            for number in range(rounds + max(20_000 // size, 1)):
                sample = text(draw, size, joint)
                pair = (
                    seconds(ours, [np.array([sample], object)]),
                    seconds(theirs, [openvino.Tensor([sample])]),
                )
                if number:
                    times.append(pair)
            one, other = (statistics.median(side) * 1e3 for side in zip(*times, strict=True))
            mark = "" if one / other <= TARGET else "  above the target"
            print(f"{kind:<14}{form:<10}{size:>11,}{one:>11.3f}{other:>13.3f}{one / other:>8.1f}{mark}", flush=True)


if __name__ == "__main__":
    main()
