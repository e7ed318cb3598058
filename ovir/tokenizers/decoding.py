"""Strings as bytes: packing, comparison, and the ways from tokens back to text."""

from __future__ import annotations

import re

import numpy as np

from ovir.core.arrays import Array, join_strings, split_strings
from ovir.core.element_types import string
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import Outputs, TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers import base


@register("StringTensorUnpack", version="extension")
class StringTensorUnpack(base.TokenizerOperator):
    """The bytes of all strings, as begins, ends and bytes.

    The input is a tensor of strings, or, in older files, bytes: the number of strings, the begin of the first, the end
    of each (all i32), and their bytes.
    """

    takes = "data string|u8[S...]"
    gives = base.MADE_STRINGS
    mode: str = attribute(default="begins_ends", choices=("begins_ends",))

    def infer(self, data: TensorType) -> Outputs:
        found = self.solved(data)
        if data.element_type != string:
            most = data.shape.size().upper
            found.shapes["S"] = (Dimension(0, None if most is None else max(most // 4 - 2, 0)),)
            found.sizes["Bytes"] = Dimension(0, most)
        return found.outputs()

    def run(self, data: Array) -> tuple[Array, Array, Array]:
        if data.dtype != np.uint8:
            symbols, ends = join_strings(data)
            return base.as_i32(base.begins_of(ends), data.shape), base.as_i32(ends, data.shape), symbols
        numbers = np.frombuffer(data.tobytes()[: data.size // 4 * 4], np.int32)
        self.require(numbers.size > 0, "packed strings have at least 4 bytes, got {}", data.size)
        count = int(numbers[0])
        self.require(0 <= count < numbers.size - 1, "{} bytes cannot hold {} packed strings", data.size, count)
        return numbers[1 : count + 1].copy(), numbers[2 : count + 2].copy(), data[4 * (count + 2) :]


@register("StringTensorPack", version="extension")
class StringTensorPack(base.TokenizerOperator):
    """A tensor of strings made of begins, ends and bytes; U+FFFD stands for bytes that are not UTF-8."""

    takes = base.STRINGS
    gives = "string[S...]"
    mode: str = attribute(default="begins_ends", choices=("begins_ends",))

    def run(self, begins: Array, ends: Array, symbols: Array) -> Array:
        return split_strings(symbols, begins, ends, strict=False)


@register("EqualStr", version="extension")
class EqualStr(base.TokenizerOperator):
    """1 where two strings have equal bytes, else 0; a tensor with fewer strings goes on with its first one."""

    takes = f"{base.STRINGS}; other_begins i32[Others...]; other_ends i32[Others...]; other_symbols u8[...]"
    gives = "i32[Count]"

    def run(self, *inputs: Array) -> Array:
        one, other = base.unpacked(*inputs[:3]), base.unpacked(*inputs[3:])
        count = max(len(one), len(other))
        self.require(count == 0 or (one and other), "strings cannot be compared with none")
        one += one[:1] * (count - len(one))
        other += other[:1] * (count - len(other))
        return base.as_i32([a == b for a, b in zip(one, other, strict=True)])


# --------------------------------------------------------------------------- bytes and characters that stand for them


def _byte_characters() -> list[bytes]:
    """Return the character, in UTF-8, that stands for each byte in the vocabularies of GPT-2 and its successors.

    Printable characters of Latin-1 stand for themselves, the other bytes for the characters from U+0100 on, in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)).encode() for byte in range(256)]


_CHARACTERS = _byte_characters()
_BYTES = {character: bytes([byte]) for byte, character in enumerate(_CHARACTERS)}


@register("BytesToChars", version="extension")
class BytesToChars(base.TokenizerOperator):
    """Rows of strings, with the character that stands for each byte in its place."""

    takes = f"{base.ROWS}; {base.STRINGS}"
    gives = base.WORDS

    def run(self, rows_begin: Array, rows_end: Array, begins: Array, ends: Array, symbols: Array) -> tuple[Array, ...]:
        words = (b"".join([_CHARACTERS[byte] for byte in word]) for word in base.unpacked(begins, ends, symbols))
        return rows_begin, rows_end, *base.packed(words, begins.shape)


@register("CharsToBytes", version="extension")
class CharsToBytes(base.TokenizerOperator):
    """The strings of each row joined, with the byte that each character stands for in its place."""

    takes = f"{base.ROWS}; {base.STRINGS}"
    gives = base.STRING_ROWS

    def run(self, rows_begin: Array, rows_end: Array, begins: Array, ends: Array, symbols: Array) -> tuple[Array, ...]:
        words = [self._bytes(word) for word in base.unpacked(begins, ends, symbols)]
        rows = (b"".join(words[begin:end]) for begin, end in base.ranges(rows_begin, rows_end, len(words)))
        return base.packed(rows, rows_begin.shape)

    def _bytes(self, word: bytes) -> bytes:
        """Return the bytes that the characters of a word stand for; ASCII stands for itself."""
        characters = re.findall(rb"[\x00-\x7f]|[\x80-\xff].?", word, re.DOTALL)
        try:
            return b"".join([item if item < b"\x80" else _BYTES[item] for item in characters])
        except KeyError as error:
            self.fail("{!r} stands for no byte", error.args[0])


@register("ByteFallback", version="extension")
class ByteFallback(base.StringOperator):
    """Strings, with the byte in place of a token such as ``<0x0A>``; other tokens stay."""

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return self.changed(inputs, byte_of)


_BYTE_TOKENS = {b"<0x%02X>" % byte: bytes([byte]) for byte in range(256)}


def byte_of(token: bytes) -> bytes:
    """Return the byte that a token stands for, or the token."""
    return _BYTE_TOKENS.get(token, token)


@register("FuzeRagged", version="extension")
class FuzeRagged(base.TokenizerOperator):
    """The strings of each row joined to one, given that their bytes follow each other: begins and ends of the rows."""

    takes = f"{base.ROWS}; begins i32[S...]; ends i32[S...]"
    gives = "begins i32[Rows...]; ends i32[Rows...]"

    def run(self, rows_begin: Array, rows_end: Array, begins: Array, ends: Array) -> tuple[Array, Array]:
        last = np.where(rows_end > rows_begin, rows_end - 1, rows_end)
        is_inside = not rows_begin.size or (rows_begin.min() >= 0 and max(rows_begin.max(), last.max()) < begins.size)
        self.require(is_inside, "rows lie outside of the {} strings", begins.size)
        return begins[rows_begin], ends[last]


# --------------------------------------------------------------------------- UTF-8

_SEQUENCES = re.compile(
    rb"(?P<overlong>[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2})"
    rb"|(?P<whole>[\x00-\x7f]+|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3})"
    rb"|[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf7][\x80-\xbf]{0,2}|[\x80-\xbf\xf8-\xff]"
)


@register("UTF8Validate", version="extension")
class UTF8Validate(base.StringOperator):
    """Strings without bytes that are not UTF-8, or with U+FFFD in their place if ``replace_mode`` is set.

    A sequence that breaks off is one error, and an overlong one is as many as it has bytes. Encoded surrogates, and
    code points beyond U+10FFFF, stay.
    """

    replace_mode: bool = attribute(default=False)

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return self.changed(inputs, self._valid)

    def _valid(self, text: bytes) -> bytes:
        try:
            text.decode()
        except UnicodeDecodeError:
            return _SEQUENCES.sub(self._replacement, text)
        return text

    def _replacement(self, sequence: re.Match[bytes]) -> bytes:
        if sequence["whole"] is not None:
            return sequence[0]
        errors = len(sequence[0]) if sequence["overlong"] is not None else 1
        return "\ufffd".encode() * errors if self.replace_mode else b""
