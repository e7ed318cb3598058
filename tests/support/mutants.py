"""Files that are broken at random, as a disk, a merge or a bad writer breaks them."""

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

VALUES = [
    *("-1", "0", "1", "2", "7", "63", "64", "65", "255", "4096", "65535", "1000000", "2147483647", "2147483648"),
    *("4294967295", "4294967296", "9007199254740993", "-9223372036854775808", "9223372036854775807"),
    *("18446744073709551615", "18446744073709551616", "99999999999", "9" * 5000, "1e9", "nan", "inf", "-0", "0x7f", "1_0"),
    *("", " ", "?", "x", "..", "2..5", "5..2", "1,2,3", ",".join(["1"] * 65), ",".join(["2"] * 64), "１"),
    *("&#x202E;", "&#9;", "&#10;", "../../x.so", "x" * 100_000, "opset99", "extension", "string", "u4", "Loop", "Const"),
]  # fmt: skip

_TAG = re.compile(rb"<[^<>]*>")
_ATTRIBUTE = re.compile(rb'(?<![\w:-])([\w:-]+)="([^"]*)"')
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
