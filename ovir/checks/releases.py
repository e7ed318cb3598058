"""OpenVINO releases, and the opsets that they know."""

from __future__ import annotations

import re

from ovir.diagnostics.codes import USAGE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError

RELEASES = {
    (2020, 1): 1, (2020, 2): 2, (2020, 4): 3, (2021, 1): 4, (2021, 2): 5, (2021, 3): 6, (2021, 4): 7, (2022, 1): 8,
    (2022, 2): 9, (2022, 3): 10, (2023, 0): 11, (2023, 1): 12, (2023, 2): 13, (2024, 0): 14, (2024, 5): 15,
    (2025, 0): 16, (2026, 4): 17,
}  # fmt: skip
"""The newest opset of each OpenVINO release that brought one; from its page on available operation sets."""


def newest_opset(release: tuple[int, int]) -> int:
    """The newest opset that a release knows, 0 for one before the first."""
    return max((opset for first, opset in RELEASES.items() if first <= release), default=0)


def parse_release(text: str) -> tuple[int, int]:
    """``2022.3`` or ``2024.5.1`` as (2022, 3) or (2024, 5); InputError for what is none, or knows no opset."""
    match = re.fullmatch(r"(20\d\d)\.(\d)(\.\d+)*", text, re.ASCII)
    release = (int(match[1]), int(match[2])) if match is not None else (0, 0)
    if newest_opset(release) == 0:
        first = ".".join(map(str, min(RELEASES)))
        raise InputError(diagnose(USAGE, f"{text!r} is not an OpenVINO release from {first} on, as '2022.3'"))
    return release
