"""The arguments of ``ovir.check`` that select the checks, as one object that goes down to the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ovir.core.shapes import ShapeLike


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of the check of a file; ``ovir.check`` explains them."""

    need_weights: bool = True
    shapes: Mapping[Any, ShapeLike] | ShapeLike | None = None
    runtime: tuple[int, int] | None = None
    """The OpenVINO release that is meant to read the file, as (2022, 3)."""
    device: str | None = None
    """The device that is meant to run the model: CPU, GPU or NPU."""
    skip: tuple[str, ...] = ()
    untrusted: bool = False
    """Whether the rules for untrusted files are applied as well."""
    extensions: tuple[str, ...] = ()
    """Python files of the user that register operations; every process that checks files loads them."""
