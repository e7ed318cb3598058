"""What tensors of a model are compared with: the common form of all sources, and those that need no other engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.comparison import NotCompared
from ovir.debugging.partners import Partners
from ovir.debugging.walk import ENDS, Walk, WalkPlan
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import RunError
from ovir.graph.layers import Layer
from ovir.runtime.executor import SeenStep


@dataclass(frozen=True)
class Answer:
    """What the other side has for the outputs of a layer."""

    step: SeenStep
    """The layer as ovir has run it."""
    arrays: Sequence[Array | None] = ()
    """The tensors to compare its outputs with, by position; None for those that are not compared."""
    problem: str | None = None
    """What the other side failed at, which counts as a difference."""
    skipped: str | None = None
    """Why the layer is not compared."""
    other: Layer | None = None
    """The layer of the other model."""


class OtherBase:
    """The other side of a comparison. Use it in a ``with`` block."""

    description = ""
    accumulates = True
    """Whether errors of earlier layers are part of what is compared."""
    with_constants = True
    """Whether layers that depend on constants alone are compared."""

    outputs_first = False
    """Whether layers are compared only after the outputs of all sets of inputs, and if there is a reason."""
    partners: Partners | None = None
    """Which layers of a second model correspond to layers of the first one, if there is a second one."""
    sides = ("in the other model", "in the first")
    """Where the compared values are from: of this side, and of the first model."""

    @property
    def not_compared(self) -> list[NotCompared]:
        """Return what this side has but is never compared."""
        return []

    def mismatch(self, element_type: ElementType, array: Array) -> str | None:
        """Return why a tensor of the first model's element type cannot be compared with an array; None if it can."""
        return None

    @property
    def precision(self) -> str | None:
        """Return the element type in which the other side computes, where it says so; None otherwise."""
        return None

    def begin(self, inputs: Sequence[Array]) -> None:
        """Prepare for a run of the first model on these inputs."""

    def see(self, step: SeenStep) -> Iterable[Answer]:
        """Return answers for this layer or for earlier ones, once they are known."""
        return ()

    def finish(self) -> Iterable[Answer]:
        """Return the answers that are still missing, after the last layer of a run."""
        return ()

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the outputs to compare with, for each output of the first model; None for those that are missing."""
        raise NotImplementedError

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return what is worth knowing about the other side."""
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


def skipped_partner(partners: Partners, step: SeenStep) -> str | None:
    """Return why a layer cannot be compared with its partner; None if it can."""
    other = partners.of(step.layer)
    if other is None:
        return "the other model has no such layer"
    if other.type in ENDS:
        return f"it is a {other.type} in the other model"
    if len(other.outputs) != len(step.layer.outputs):
        return "the layer of the other model has another number of outputs"
    return None


class OtherModel(OtherBase):
    """A second model, which ovir runs in step with the first one.

    Outputs of the second model that the first one reaches later are kept until then; models with the same layers in the
    same order keep nothing.
    """

    def __init__(self, partners: Partners, description: str) -> None:
        self.description = description
        self.partners: Partners = partners
        self._plan = WalkPlan(partners.b, with_constants=True)
        self._wanted: set[Layer] = set()
        self._walk: Walk | None = None
        self._kept: dict[Layer, list[Array]] = {}
        self._failure: RunError | None = None
        self._diagnostics: dict[Diagnostic, None] = {}

    def begin(self, inputs: Sequence[Array]) -> None:
        self._walk = Walk(self._plan, self.partners.inputs(inputs))
        self._kept, self._failure = {}, None
        self._wanted = {other for layer in self.partners.a.layers if (other := self.partners.of(layer)) is not None}

    def see(self, step: SeenStep) -> Iterator[Answer]:
        reason = skipped_partner(self.partners, step)
        other = self.partners.of(step.layer)
        if reason is not None or other is None:
            yield Answer(step, skipped=reason)
            return
        try:
            self._advance_to(other)
        except RunError as error:
            self._failure = error
            is_cause = error.diagnostic.layer_id == other.id
            text = error.diagnostic.message
            yield Answer(step, problem=text if is_cause else None, skipped=None if is_cause else _STOPPED, other=other)
            return
        if other in self._kept:
            yield Answer(step, self._kept.pop(other), other=other)
        else:
            yield Answer(step, skipped="the layer of the other model does not run")

    def _advance_to(self, layer: Layer) -> None:
        """Run the second model up to a layer."""
        assert self._walk is not None
        if self._failure is not None:
            raise self._failure
        self._wanted.discard(layer)
        while layer not in self._kept:
            step = next(self._walk, None)
            if step is None:
                return
            if step.layer is layer or step.layer in self._wanted:
                self._kept[step.layer] = step.outputs

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        assert self._walk is not None
        if self._failure is not None:
            raise self._failure
        self._wanted.clear()
        results = self._walk.finish()
        self._diagnostics.update(dict.fromkeys(self._walk.diagnostics))
        return [None if index is None else results[index] for index in self.partners.outputs]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return list(self._diagnostics)


_STOPPED = "the run of the other model has failed before"
