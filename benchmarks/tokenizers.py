"""Tokenizers of all kinds: ovir against openvino-tokenizers, in turns in one process.

    python -m benchmarks.tokenizers [--only REGEX] [--rounds N] [--write]

Each text is new to both sides, so caches have only words of earlier texts. ``words`` are words of many scripts with
spaces, ``unbroken`` the same without spaces, and ``random Han`` any characters of U+4E00 to U+9FFF.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import openvino

import ovir
from benchmarks.common import Rows, report
from tests.support.tokenizer_kinds import KINDS
from tests.support.tokenizer_texts import ENGLISH, WORDS

HEAD = ["tokenizer, texts, characters", "ovir, ms", "OpenVINO, ms", "ratio"]


def text(draw: random.Random, size: int, form: str) -> str:
    """Return a text of so many characters."""
    if form == "random Han":
        return "".join(chr(draw.randint(0x4E00, 0x9FFF)) for _ in range(size))
    scripts = [*WORDS.values(), *[ENGLISH] * len(WORDS)]
    joint = " " if form == "words" else ""
    return joint.join(draw.choice(draw.choice(scripts)) for _ in range(size))[:size]


def seconds(run: Callable[[Any], object], argument: Any) -> float:
    start = time.perf_counter()
    run(argument)
    return time.perf_counter() - start


def measure(options: argparse.Namespace) -> Rows:
    draw = random.Random(1)
    for kind in filter(re.compile(options.only).search, ("gpt2", "bert-uncased", "xlm-r")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.xml"
            openvino.save_model(KINDS[kind]()[0], path, compress_to_fp16=False)
            ours, theirs = ovir.compile_model(path), openvino.Core().compile_model(path, "CPU")
        for form in ("words", "unbroken", "random Han"):
            for size in (100, 10_000, 1_000_000):
                samples = [text(draw, size, form) for _ in range(options.rounds + (10 if size < 1000 else 1))]
                times = [
                    (seconds(ours, [np.array([sample], object)]), seconds(theirs, [openvino.Tensor([sample])]))
                    for sample in samples
                ]
                one, other = (median(side[1:]) * 1e3 for side in zip(*times, strict=True))
                yield [f"{kind}, {form}, {size:,}", one, other, one / other]


if __name__ == "__main__":
    report(__doc__, "tokenizers", HEAD, measure, rounds=2, page="tokenizers.md", means=["ratio"])
