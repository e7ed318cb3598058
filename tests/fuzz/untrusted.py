"""Check mutated files as untrusted files: no crash, no hang, no more than the budget.

``python -m tests.fuzz.untrusted --minutes 10 [FOLDER ...]`` changes examples, or the models of the folders: the
XML as a text and by its structure, its numbers to limits, the bytes and the length of the weights. It prints each file
whose check ended without a verdict or took more than the budget, and the most that a check took. With ``--tricks`` it
plays two tricks of ``tests/support/hostile.py`` on one package instead, which must be refused.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count, takewhile
from pathlib import Path

from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.guard import Guard, Verdict
from tests.support.hostile import composed

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
BUDGET = Budget(seconds=10.0, memory=1 << 29)
NUMBERS = [
    *("-1", "0", "1", "2", "63", "64", "65", "255", "4096", "65535", "1000000", "2147483647", "2147483648"),
    *("4294967295", "4294967296", "9007199254740993", "9223372036854775807"),
    *("-9223372036854775808", "18446744073709551615", "18446744073709551616", "nan", "inf", "", "?", "-0", "0x7f"),
    *("2..5", "..", "9223372036854775807,9223372036854775807", ",".join(["1"] * 65), ",".join(["2"] * 64), "9" * 5000),
]  # fmt: skip
TEXTS = [
    *("&#x202E;", "&#9;", "&#10;", "../../x.so", "x" * 100_000),
    *("opset99", "extension", "string", "u4", "Loop", "Const"),
]  # fmt: skip

Mutation = Callable[[bytes, random.Random], bytes]
Source = Callable[[int], tuple[str, bytes, bytes]]
"""Makes the name, the topology and the weights of the file of a number."""


@dataclass
class Result:
    """What the checks of many files came to."""

    files: int = 0
    errors: int = 0
    seconds: float = 0.0
    memory: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, name: str, verdict: Verdict, budget: Budget) -> None:
        """Count a verdict; OVIR001 and OVIR999 are faults of ovir, because no mutation needs so much."""
        found = verdict.diagnostics
        self.files += 1
        self.errors += any(d.severity == "error" for d in found)
        self.seconds = max(self.seconds, verdict.seconds)
        self.memory = max(self.memory, verdict.memory)
        self.codes.update({d.code for d in found})
        self.faults += [f"{name}: {d}" for d in found if d.code in ("OVIR001", "OVIR999")]
        if verdict.seconds > (budget.seconds or 0) + 1:
            self.faults.append(f"{name}: took {verdict.seconds:.1f} s")


def _replaced(pattern: re.Pattern[bytes], text: bytes, new: bytes, rng: random.Random) -> bytes:
    found = list(pattern.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    return text[: place.start(1)] + new + text[place.end(1) :]


_VALUE = re.compile(rb'[\w:-]+="([^"]*)"')
_NUMBER = re.compile(rb'(?:"|>|,\s*)(-?\d+)(?="|<|,)')
_SIZE = re.compile(
    rb'(?:offset|size|shape|trip_count|num_splits|axis|depth|strides?|dilations|pads_begin|kernel)="([^"]*)"'
)
_ELEMENT = re.compile(
    rb"(?=(<(layer|edge|port|data|input|output|dim|body|port_map|rt_info|layers|edges)\b(?:[^<>]*/>|.*?</\2>)))",
    re.DOTALL,
)
"""Elements, also those within others."""


def _number(text: bytes, rng: random.Random) -> bytes:
    return _replaced(_NUMBER, text, rng.choice(NUMBERS).encode(), rng)


def _size(text: bytes, rng: random.Random) -> bytes:
    return _replaced(_SIZE, text, rng.choice(NUMBERS).encode(), rng)


def _value(text: bytes, rng: random.Random) -> bytes:
    return _replaced(_VALUE, text, rng.choice(TEXTS).encode(), rng)


def _swapped(text: bytes, rng: random.Random) -> bytes:
    other = _VALUE.findall(text)
    return _replaced(_VALUE, text, rng.choice(other), rng) if other else text


def _dropped(text: bytes, rng: random.Random) -> bytes:
    return _replaced(_ELEMENT, text, b"", rng)


def _moved(text: bytes, rng: random.Random) -> bytes:
    other = [found[0] for found in _ELEMENT.findall(text)]
    return _replaced(_ELEMENT, text, rng.choice(other), rng) if other else text


def _repeated(text: bytes, rng: random.Random) -> bytes:
    found = list(_ELEMENT.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    times = rng.choice((1, 10, 1000)) if len(place[1]) < 1000 else 2
    return text[: place.end(1)] + place[1] * times + text[place.end(1) :]


def _nested(text: bytes, rng: random.Random) -> bytes:
    found = list(_ELEMENT.finditer(text))
    if not found:
        return text
    place, depth = rng.choice(found), rng.choice((10, 200, 5000))
    return text[: place.start()] + b"<body>" * depth + place[1] + b"</body>" * depth + text[place.end(1) :]


def _flipped(text: bytes, rng: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(rng.choice((1, 2, 16))):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _cut(text: bytes, rng: random.Random) -> bytes:
    return text[: rng.randrange(len(text) + 1)]


def _extended(text: bytes, rng: random.Random) -> bytes:
    return text + rng.choice((b"\0" * 16, b"<net/>", b"<!-- -->", rng.randbytes(100)))


def _headed(text: bytes, rng: random.Random) -> bytes:
    marks = [b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b"]
    heads = [b'<?xml version="1.0" encoding="utf-7"?>', b"<!DOCTYPE net [<!ENTITY a 'b'>]>"]
    return rng.choice(marks + heads) + text


OF_XML: list[Mutation] = [
    *(_number, _number, _size, _size, _value, _swapped, _swapped, _dropped, _moved, _repeated),
    *(_nested, _flipped, _cut, _extended, _headed),
]  # fmt: skip
OF_WEIGHTS: list[Mutation] = [_flipped, _cut, _extended]


def mutate(seeds: list[tuple[bytes, bytes]], number: int) -> tuple[str, bytes, bytes]:
    """Return one of the models after one to four mutations that the number chooses."""
    xml, weights = seeds[number % len(seeds)]
    rng = random.Random(number)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if rng.random() < 0.2:
            weights = rng.choice(OF_WEIGHTS)(weights, rng)
        else:
            xml = rng.choice(OF_XML)(xml, rng)[: 1 << 24]
    return f"seed {number}", xml, weights


def read_seeds(folders: list[Path]) -> list[tuple[bytes, bytes]]:
    """Return the topologies and weights of the small models of folders."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.xml")):
        weights = path.with_suffix(".bin")
        if path.stat().st_size < 1 << 18 and (not weights.exists() or weights.stat().st_size < 1 << 22):
            found.append((path.read_bytes(), weights.read_bytes() if weights.exists() else b""))
    return found


def fuzz(source: Source, numbers: Iterable[int]) -> Result:
    """Check the files of these numbers."""
    result = Result()
    with tempfile.TemporaryDirectory() as folder, Guard(CheckOptions(), BUDGET) as guard:
        path = Path(folder) / "model.xml"
        for number in numbers:
            name, xml, weights = source(number)
            path.write_bytes(xml)
            path.with_suffix(".bin").write_bytes(weights)
            errors = result.errors
            result.add(name, guard.check(str(path)), BUDGET)
            if source is composed and errors == result.errors:
                result.faults.append(f"{name}: passes")
    return result


def _numbers(first: int, step: int, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    return takewhile(lambda _: time.monotonic() < end, count(first, step))


def _joined(results: Iterator[Result]) -> Result:
    total = Result()
    for result in results:
        total.files += result.files
        total.errors += result.errors
        total.seconds = max(total.seconds, result.seconds)
        total.memory = max(total.memory, result.memory)
        total.codes += result.codes
        total.faults += result.faults
    return total


def main() -> int:
    """Fuzz and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[EXAMPLES])
    parser.add_argument("--tricks", action="store_true")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    source: Source = composed if arguments.tricks else partial(mutate, read_seeds(arguments.folders))
    first, processes, seconds = arguments.first, arguments.processes, 60 * arguments.minutes
    with ThreadPoolExecutor(processes) as pool:
        starts = range(first, first + processes)
        total = _joined(pool.map(lambda start: fuzz(source, _numbers(start, processes, seconds)), starts))
    for fault in total.faults[:20]:
        print(fault)
    print(f"{total.files:,} files, {total.errors:,} with errors, {len(total.faults)} faults")
    print(f"slowest {total.seconds:.2f} s, most memory {total.memory / 1e6:.0f} MB, {len(total.codes)} codes")
    return 1 if total.faults else 0


if __name__ == "__main__":
    sys.exit(main())
