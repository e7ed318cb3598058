"""One step of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ovir.diagnostics.errors import OperatorError
from ovir.graph.layers import Layer
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import method_signature, signature


@dataclass
class Step:
    """One layer of a plan, with its kernel and the slots that the kernel reads and writes."""

    layer: Layer
    shown: Layer
    """The layer that listeners see: the caller's, if ``layer`` is of a copy that was inferred for shapes."""
    operator: Operator
    kernel: Callable[..., Any]
    """The function that computes the operation on arrays: ``run``, unless the plan has rewritten the step."""
    inputs: tuple[int, ...]
    """The slots that the kernel reads."""
    outputs: tuple[int, ...]
    """The slots that the kernel writes."""
    release: tuple[int, ...] = ()
    """The slots that no later step uses."""
    wanted: tuple[bool, ...] = ()
    """Whether anything reads each output."""
    is_open: bool = False
    """Whether input sizes that inference did not know may turn out to contradict each other."""
    is_plain: bool = False
    """Whether the kernel is the operation's own, so that its fast form may take its place."""

    @cached_property
    def takes(self) -> frozenset[str]:
        """Return the optional keywords that the kernel accepts."""
        return keywords_of(self.kernel)


def keywords_of(kernel: Callable[..., Any]) -> frozenset[str]:
    """Return the optional keywords that a kernel accepts."""
    method = getattr(kernel, "__func__", None)
    return (signature(kernel) if method is None else method_signature(method)).keywords


def results_of(returned: Any, count: int) -> tuple[Any, ...]:
    """Return what a kernel returned as a tuple; raise OperatorError for fewer results than ``count``."""
    results = returned if type(returned) is tuple else (returned,)
    if len(results) < count:
        raise OperatorError(f"the kernel gave {len(results)} outputs of {count}")
    return results
