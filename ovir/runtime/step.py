"""One step of a plan, as the executor and the memory plan use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ovir.graph.layers import Layer
from ovir.ops.base.operator import Operator


@dataclass(slots=True)
class Step:
    """One layer of a plan, with its kernel and the slots that the kernel reads and writes."""

    layer: Layer
    operator: Operator
    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    """The slots that the kernel reads."""
    outputs: tuple[int, ...]
    """The slots that the kernel writes."""
    takes: frozenset[str]
    """The optional keywords that the kernel accepts."""
    release: tuple[int, ...] = ()
    """The slots that no later step uses."""
    wanted: tuple[bool, ...] = ()
    """Whether anything reads each output."""
    is_open: bool = False
    """Whether input sizes that inference did not know may turn out to contradict each other."""
