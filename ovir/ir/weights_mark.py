"""The mark of a saved model: the size and checksum of its .bin, so that the files of two models are not mixed.

It is a processing instruction at the end of the model's ``<rt_info>``. OpenVINO ignores such instructions and does not
write them, whereas it would keep an element when it saves the model with other weights.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from ovir.core.progress import counted
from ovir.ir.weights import Bytes


class WeightsMark(NamedTuple):
    """What a .xml says about its .bin."""

    size: int
    """In bytes."""
    crc32: int
    """The checksum of all bytes, as ``zlib.crc32`` computes it; it tells mistakes, not attacks."""

    @classmethod
    def find(cls, xml: bytes) -> WeightsMark | None:
        """Return the mark of the content of a .xml, None if there is none, as in files that OpenVINO has saved."""
        found = _MARK.search(xml, max(len(xml) - _END, 0))
        return None if found is None else cls(int(found[1]), int(found[2], 16))

    def __str__(self) -> str:
        return f'<?ovir-weights size="{self.size}" crc32="{self.crc32:08x}"?>'

    def misfit(self, name: str, weights: Bytes) -> str | None:
        """Return how weights contradict the mark, or None if they have its size; see ``has_checksum``."""
        if weights.size == self.size:
            return None
        return f"{name} has {weights.size} bytes, but the .xml was saved with {self.size} bytes of weights"

    def has_checksum(self, weights: Bytes) -> bool:
        """Return whether weights have the checksum of the mark; this reads all of them."""
        crc = 0
        for start in counted("checking the weights", range(0, weights.size, _CHUNK)):
            crc = zlib.crc32(weights[start : start + _CHUNK].data, crc)
        return crc == self.crc32


_MARK = re.compile(rb'<\?ovir-weights size="(\d{1,19})" crc32="([0-9a-f]{8})"\?>')
_END = 4096  # bytes at the end of a file that may hold the mark
_CHUNK = 1 << 24
