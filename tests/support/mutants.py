"""Break files at random, as a disk, a merge or a bad writer does, and see that ovir copes with them.

``python tests/support/mutants.py --count 20000 [FOLDER ...]`` makes mutants of the files in the folders (else of the examples),
checks, reads and runs each within limits of time and memory, and prints those that ovir does not cope with.
``tests/checks/test_mutants.py`` does the same with a few hundred.
"""

import argparse
import contextlib
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import ovir
from ovir.analysis.input_sizes import fix_shapes
from ovir.analysis.random_inputs import generate_inputs

SECONDS = 5
MEMORY = 1 << 30  # bytes more than a process has from the start

VALUES = [
    *("-1", "0", "1", "2", "7", "63", "64", "65", "255", "4096", "65535", "1000000", "2147483647", "2147483648"),
    *("4294967295", "4294967296", "9007199254740993", "-9223372036854775808", "9223372036854775807"),
    *("18446744073709551615", "18446744073709551616", "99999999999", "9" * 5000, "1e9", "nan", "inf", "-0", "0x7f", "1_0"),
    *("", " ", "?", "x", "..", "2..5", "5..2", "1,2,3", ",".join(["1"] * 65), ",".join(["2"] * 64), "１"),
    *("&#x202E;", "&#9;", "&#10;", "../../x.so", "x" * 100_000, "opset99", "extension", "string", "u4", "Loop", "Const"),
]  # fmt: skip

_TAG = re.compile(rb"<[^<>]*>")
_ATTRIBUTE = re.compile(rb'([\w:-]+)="([^"]*)"')
_DIM = re.compile(rb"<dim>([^<]*)</dim>")
_ELEMENT = re.compile(rb"<(layer|edge|port|data|input|output|dim|edges|layers|body|port_map|rt_info)\b")


def _span(text: bytes, start: int) -> tuple[int, int] | None:
    """Where the element that begins at ``start`` lies."""
    head = _TAG.match(text, start)
    if head is None:
        return None
    if head[0].endswith(b"/>"):
        return start, head.end()
    name = re.match(rb"<([\w-]+)", head[0])
    if name is None:
        return None
    depth = 0
    for tag in re.compile(rb"</?" + re.escape(name[1]) + rb"\b[^<>]*>").finditer(text, start):
        if tag[0].endswith(b"/>"):
            continue
        depth += -1 if tag[0].startswith(b"</") else 1
        if depth == 0:
            return start, tag.end()
    return None


def _any(pattern: re.Pattern[bytes], text: bytes, rng: random.Random) -> re.Match[bytes] | None:
    found = list(pattern.finditer(text))
    return rng.choice(found) if found else None


def _element(text: bytes, rng: random.Random) -> tuple[int, int]:
    match = _any(_ELEMENT, text, rng)
    return (_span(text, match.start()) if match else None) or (0, 0)


# --------------------------------------------------------------------------- the mutations


def flip_bytes(text: bytes, rng: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def truncate(text: bytes, rng: random.Random) -> bytes:
    return text[: rng.randrange(len(text))]


def extend(text: bytes, rng: random.Random) -> bytes:
    return text + rng.choice((b"\0" * 16, b"<net/>", b"<!-- -->", rng.randbytes(100)))


def put_before(text: bytes, rng: random.Random) -> bytes:
    marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b")
    return rng.choice((*marks, b'<?xml version="1.0" encoding="utf-7"?>', b"<!DOCTYPE net [<!ENTITY a 'b'>]>")) + text


def drop_element(text: bytes, rng: random.Random) -> bytes:
    begin, end = _element(text, rng)
    return text[:begin] + text[end:]


def double_element(text: bytes, rng: random.Random) -> bytes:
    begin, end = _element(text, rng)
    return text[:end] + text[begin:end] * rng.choice((1, 3, 1000 if end - begin < 1000 else 1)) + text[end:]


def move_element(text: bytes, rng: random.Random) -> bytes:
    begin, end = _element(text, rng)
    rest = text[:begin] + text[end:]
    place = _any(_TAG, rest, rng)
    at = place.end() if place else 0
    return rest[:at] + text[begin:end] + rest[at:]


def change_attribute(text: bytes, rng: random.Random) -> bytes:
    match = _any(_ATTRIBUTE, text, rng)
    if match is None:
        return text
    return text[: match.start(2)] + rng.choice(VALUES).encode() + text[match.end(2) :]


def swap_attributes(text: bytes, rng: random.Random) -> bytes:
    one, two = _any(_ATTRIBUTE, text, rng), _any(_ATTRIBUTE, text, rng)
    if one is None or two is None:
        return text
    one, two = sorted((one, two), key=lambda match: match.start())
    if one.end() > two.start():
        return text
    return text[: one.start(2)] + two[2] + text[one.end(2) : two.start(2)] + one[2] + text[two.end(2) :]


def drop_attribute(text: bytes, rng: random.Random) -> bytes:
    match = _any(_ATTRIBUTE, text, rng)
    return text if match is None else text[: match.start()] + text[match.end() :]


def change_dim(text: bytes, rng: random.Random) -> bytes:
    match = _any(_DIM, text, rng)
    return text if match is None else text[: match.start(1)] + rng.choice(VALUES).encode() + text[match.end(1) :]


def change_type(text: bytes, rng: random.Random) -> bytes:
    one = _any(re.compile(rb'type="([^"]*)"'), text, rng)
    two = _any(re.compile(rb'type="([^"]*)"'), text, rng)
    if one is None or two is None:
        return text
    return text[: one.start(1)] + two[1] + text[one.end(1) :]


def nest_bodies(text: bytes, rng: random.Random) -> bytes:
    """A body within itself, some times over."""
    match = _any(re.compile(rb"<(body|then_body|else_body)>"), text, rng)
    span = _span(text, match.start()) if match else None
    if span is None:
        return b"<layer>" * 5000 + text if rng.random() < 0.2 else text
    begin, end = span
    body = text[begin:end]
    for _ in range(rng.choice((1, 2, 5))):
        inner = body.find(match[0], 1) if match else -1
        at = inner if inner > 0 else body.find(b"</layer>")
        if at < 0 or len(body) > 1 << 20:
            break
        body = body[:at] + text[begin:end] + body[at:]
    return text[:begin] + body + text[end:]


Mutation = Callable[[bytes, random.Random], bytes]
OF_BYTES: list[Mutation] = [flip_bytes, truncate, extend]
MUTATIONS: list[Mutation] = [
    *(*OF_BYTES, put_before, drop_element, double_element, move_element, change_attribute, change_attribute),
    *(swap_attributes, drop_attribute, change_dim, change_type, nest_bodies),
]


def mutate(text: bytes, seed: int) -> bytes:
    """The file after one, two or three mutations that the seed chooses."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(text, rng) or b" "
    return text


# --------------------------------------------------------------------------- the limits


class _Late(BaseException):
    """Raised by the clock: no handler of ovir's may catch it."""


@contextlib.contextmanager
def _within(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGPROF, ring)  # processor time, so that a busy machine does not matter
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fault(text: bytes, weights: bytes | None, seconds: int = SECONDS) -> str | None:
    """What ovir does wrong with a file; None where it is fine.

    It must return diagnostics, one of severity error with its line where ``read_model`` refuses the file, and blame itself for
    nothing; what ``read_model`` takes must run, or end with an error of ovir's.
    """
    start = time.process_time()
    try:
        with _within(seconds):
            diagnostics = ovir.check(text, weights)
            errors = [d for d in diagnostics if d.severity is ovir.Severity.ERROR]
            if any(d.code == "OVIR999" for d in diagnostics):
                return next(str(d) for d in diagnostics if d.code == "OVIR999")
            if errors and not any(d.line for d in errors):
                return f"no line: {errors[0]}"
            try:
                model = ovir.read_model(text, weights)
            except ovir.OvirError:
                return None if errors else "read_model refuses what check lets pass"
            with contextlib.suppress(ovir.OvirError):  # it says what is wrong
                _run(model)
    except _Late:
        return f"more than {seconds} s"
    except MemoryError:
        return f"more than {MEMORY} bytes"
    except Exception:
        return traceback.format_exc()
    took = time.process_time() - start
    return f"took {took:.1f} s" if took > seconds else None


def _run(model: ovir.Model) -> None:
    """Run a small model on random inputs."""
    fix_shapes(model)
    if all(port.shape.size().lower < 1 << 20 for layer in model.layers for port in layer.outputs):
        ovir.compile_model(model)([random.array for random in generate_inputs(model)])


def seeds(folders: Iterable[str | Path]) -> list[tuple[str, bytes, bytes | None]]:
    """(name, topology, weights) of the files in the folders that are not too large to be mutated in numbers."""
    found = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.xml")):
            if 0 < path.stat().st_size < 1 << 18:
                bins = [p for p in (path.with_suffix(".bin"), path.with_suffix(".synth.bin")) if p.exists()]
                small = bins and bins[0].stat().st_size < 1 << 24
                found.append((str(path), path.read_bytes(), bins[0].read_bytes() if small else None))
    return found


_SEEDS: list[tuple[str, bytes, bytes | None]] = []


def _start(folders: list[str]) -> None:
    _SEEDS.extend(seeds(folders))
    soft = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + (2 << 30)  # numpy's own maps count, too
    resource.setrlimit(resource.RLIMIT_AS, (soft + MEMORY, resource.RLIM_INFINITY))


def _one(seed: int) -> tuple[int, str, str | None, float, int]:
    name, text, weights = _SEEDS[seed % len(_SEEDS)]
    start = time.perf_counter()
    wrong = fault(mutate(text, seed), weights)
    return seed, name, wrong, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=[str(Path(__file__).parents[2] / "examples" / "xml")])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    slowest, largest, wrong = 0.0, 0, Counter[str]()
    with ProcessPoolExecutor(arguments.processes, initializer=_start, initargs=(arguments.folders,)) as pool:
        numbers = range(arguments.first, arguments.first + arguments.count)
        for seed, name, text, took, memory in pool.map(_one, numbers, chunksize=16):
            slowest, largest = max(slowest, took), max(largest, memory)
            if text is not None:
                wrong[text.strip().splitlines()[-1]] += 1
                if wrong[text.strip().splitlines()[-1]] <= 3:
                    print(f"seed {seed} of {name}: {text}", flush=True)
    print(
        f"{arguments.count} mutants, {wrong.total()} with faults; "
        f"slowest {slowest:.2f} s; a process took {largest / 1024:.0f} MB at most"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
