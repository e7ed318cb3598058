"""The search for the smallest model: which candidates are tried, and in which order.

Each step removes as much as possible with few runs. It supposes that a candidate which lacks something essential fails
the check, and so does every smaller one; where that is wrong, the result is correct, but may be larger than necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from ovir.debugging.reducing import candidates, shrinking
from ovir.debugging.reducing.candidates import Fill
from ovir.debugging.reducing.stage import Stage
from ovir.diagnostics.errors import OvirError

Item = TypeVar("Item")
Make = Callable[[Stage], Stage | None]
Try = Callable[[Stage, str], bool]
"""Checks a candidate of a step; returns whether it fails as the whole model does."""

_IDLE = 3
"""After this many sizes of chunks without success a step ends, because whatever it leaves is probably needed."""


class Search:
    """The present stage, which is the smallest model so far, and the steps that look for a smaller one."""

    def __init__(self, stage: Stage, attempt: Try) -> None:
        self.stage = stage
        self.accepted = 0
        self._attempt = attempt
        self._step = ""

    def run(self) -> None:
        """Take all steps until none of them finds a smaller model."""
        while self._progress(self._reduce_structure) or self._progress(self._shrink):
            pass
        self._begin("strip rt_info")
        if shrinking.has_rt_info(self.stage):
            self._try(shrinking.stripped)

    def remove_context(self) -> None:
        """Remove layers from the beginning and in between, and outputs, as long as that makes the model smaller."""
        while self._progress(self._remove_context):
            pass

    def _remove_context(self) -> None:
        self._remove_layers(Fill.PARAMETERS)
        self._begin("drop outputs")
        self._minimize([port.layer.id for port in self.stage.model.outputs], candidates.with_outputs)

    def _progress(self, steps: Callable[[], None]) -> bool:
        before = self.accepted
        steps()
        return self.accepted > before

    def _begin(self, step: str) -> None:
        self._step = step

    def _try(self, make: Make) -> bool:
        """Check the candidate that a function makes of the present stage, and keep it if it is as good."""
        try:
            candidate = make(self.stage)
        except OvirError:  # inference refuses it, or ovir cannot compute what it needs
            return False
        if candidate is None or not self._attempt(candidate, self._step):
            return False
        self.stage = candidate
        self.accepted += 1
        return True

    # ----- structure

    def _reduce_structure(self) -> None:
        self._begin("cut the end")
        self._cut(from_end=True, fill=Fill.PARAMETERS)
        self._remove_layers(Fill.PARAMETERS)
        for shortest in (True, False):
            self._begin("bypass layers")
            self._minimize(candidates.paths(self.stage), partial(candidates.past, shortest=shortest))
        for fill in (Fill.MIXED, Fill.CONSTANTS):
            self._remove_layers(fill)
        self._begin("enter a body")
        self._enter_bodies()
        self._begin("drop outputs")
        self._minimize([port.layer.id for port in self.stage.model.outputs], candidates.with_outputs)
        self._begin("drop inputs")
        unread = [port.layer.id for port in self.stage.model.inputs if not port.readers]
        self._minimize(unread, candidates.without_inputs)
        self._begin("fold constants")
        self._minimize(candidates.constant_layers_of(self.stage), candidates.without)

    def _remove_layers(self, fill: Fill) -> None:
        self._begin(f"cut the beginning ({fill})")
        self._cut(from_end=False, fill=fill)
        self._begin(f"remove layers ({fill})")
        make = partial(candidates.without, fill=fill)
        if between := candidates.layers_of(self.stage)[1:-1]:  # both ends are known to be needed, if the cuts worked
            self._try(partial(make, removed=between))
        self._minimize(candidates.layers_of(self.stage), make)

    def _cut(self, *, from_end: bool, fill: Fill) -> None:
        """Find how many layers at one end of the topological order can be removed."""
        layers = candidates.layers_of(self.stage)
        if not from_end:
            layers.reverse()
        needed, known = len(layers), 0
        while needed - known > 1:
            middle = (needed + known) // 2
            removed = layers[middle:]
            if self._try(partial(candidates.without, removed=removed, fill=fill)):
                needed = middle
            else:
                known = middle
                if needed == len(layers) and needed - known <= needed // 16:
                    return  # what is left to gain is less than what other steps gain with the same runs

    def _minimize(self, items: Sequence[Item], make: Callable[[Stage, Collection[Item]], Stage | None]) -> None:
        """Remove chunks of items, of half of them at first, and of one item in the end."""
        if items and self._try(_of(make, items)):
            return
        left, size, idle = list(items), len(items) // 2, 0
        while size and idle < _IDLE:
            before, start = len(left), 0
            while start < len(left):
                chunk = left[start : start + size]
                if len(chunk) < len(left) and self._try(_of(make, chunk)):
                    del left[start : start + size]
                else:
                    start += size
            idle = 0 if len(left) < before else idle + 1
            size //= 2

    def _enter_bodies(self) -> None:
        for body in candidates.bodies(self.stage):
            if self._try(partial(_given, body)):
                return

    # ----- sizes and values

    def _shrink(self) -> None:
        self._begin("shrink dimensions")
        self._try(shrinking.static)
        for size in shrinking.sizes(self.stage):
            self._shrink_size(size)
        self._begin("simplify constants")
        self._minimize(shrinking.varied_constants(self.stage), shrinking.with_equal_elements)

    def _shrink_size(self, size: int) -> None:
        """Find the least size that all dimensions of one size can have instead."""
        refused, present = 0, size
        wanted = 1
        while refused < wanted < present:
            found = any(self._try(make) for make in shrinking.resized(present, wanted))
            refused, present = (refused, wanted) if found else (wanted, present)
            wanted = (refused + present) // 2


def _of(make: Callable[[Stage, Collection[Item]], Stage | None], items: Collection[Item]) -> Make:
    return lambda stage: make(stage, items)


def _given(candidate: Stage, _: Stage) -> Stage:
    return candidate
