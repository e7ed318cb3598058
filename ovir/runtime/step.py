"""One step of a plan, as the executor runs it and as the memory plan looks at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ovir.graph.layers import Layer
from ovir.ops.base.operator import Operator


@dataclass(slots=True)
class Step:
    """One layer of a plan, with the kernel that runs it and the slots that the kernel reads and writes."""

    layer: Layer
    operator: Operator
    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    """The slots that the kernel reads."""
    outputs: tuple[int, ...]
    """The slots that the kernel writes."""
    takes: frozenset[str]
    """The keywords that the kernel asks for."""
    release: tuple[int, ...] = ()
    """The slots that no later step uses."""
    wanted: tuple[bool, ...] = ()
    """For each output, whether anything reads it."""
    is_open: bool = False
    """Whether the sizes of the inputs, unknown to inference, may turn out not to fit together."""
