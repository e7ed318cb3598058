"""Parsing of integers: ASCII digits with an optional sign, within 64 bits.

Python's own ``int`` also takes ``1_0`` and the digits of other scripts, and has no bound.
"""

from __future__ import annotations

import re

INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)
MAX_SIZE = INT64[-1]
"""The largest size of a dimension."""

_DIGITS = re.compile(r"([+-]?)0*([0-9]+)", re.ASCII)
_LONGEST = 20  # the most digits of a 64-bit number


class OutOfRangeError(ValueError):
    """An integer that its type cannot hold."""


def parse_integer(text: str, allowed: range = INT64) -> int:
    """Parse an integer; raise ValueError, or OutOfRangeError if it does not lie in ``allowed``."""
    if text.isdecimal() and text.isascii() and len(text) < _LONGEST and (plain := int(text)) in allowed:
        return plain  # the usual case
    match = _DIGITS.fullmatch(text.strip(" \t\r\n"))
    if match is None:
        raise ValueError(f"'{shortened(text)}' is not an integer")
    sign, digits = match.groups()
    if len(digits) <= _LONGEST and (value := int(sign + digits)) in allowed:
        return value
    kind = "signed" if allowed[0] < 0 else "unsigned"
    bounds = f"{allowed[0]} to {allowed[-1]}"
    raise OutOfRangeError(f"{shortened(text)} is outside the range of {kind} 64-bit integers, {bounds}")


def shortened(text: str, length: int = 60) -> str:
    """Return a text for use in a message, cut off if it is long."""
    return text if len(text) <= length else f"{text[:length]}..."
