"""Decide for each call how a plan runs: bound to the shapes of the inputs, or step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ovir.core.arrays import Array
from ovir.diagnostics.errors import OvirError
from ovir.graph.layers import Layer
from ovir.kernels.blas import single_thread
from ovir.runtime.binder import Prepared
from ovir.runtime.bound import BoundPlan
from ovir.runtime.executor import Executor, Runs
from ovir.runtime.listeners import Listener
from ovir.runtime.plan import Plan
from ovir.runtime.state import Variables

Shapes = tuple[tuple[int, ...], ...]

MOST_BINDINGS = 4
"""The number of bound plans that a request keeps, for the sets of shapes that it has seen last."""


class Runner:
    """Runs the plan of a model for one request.

    Inputs of shapes that the request has not seen before run step by step. When the shapes come a second time, a plan
    is bound to them, which takes as long as a few runs and makes each later one faster. Runs with listeners always go
    step by step.
    """

    def __init__(
        self, plan: Plan, plan_for: Callable[[Shapes], Plan] | None, variables: Variables, prepared: Prepared
    ) -> None:
        """Prepare to run a plan. ``plan_for`` returns the plan for one set of shapes of the inputs; if it is None,
        the plan itself is bound for all shapes."""
        self.plan = plan
        self._plan_for = plan_for
        self._variables = variables
        self._prepared = prepared
        self._executor: Executor | None = Executor(plan, variables, self._of_body)
        self._tapped: Executor | None = None
        self._seen: dict[Shapes, None] = {}
        self._bound: dict[Shapes, BoundPlan] = {}
        self._running: Runs | BoundPlan | None = None

    def _of_body(self, plan: Plan) -> Runner:
        return Runner(plan, None, self._variables, self._prepared)

    def tapped(self, plan: Plan) -> Runs:
        """Return what runs another plan of the model, in which more layers are steps; the latest one is cached."""
        if plan is self.plan:
            return self
        if self._tapped is None or self._tapped.plan is not plan:
            self._tapped = Executor(plan, self._variables, self._of_body)
        return self._tapped

    def run(self, inputs: Sequence[Array], listeners: Sequence[Listener] = (), *, share: bool = False) -> list[Array]:
        """Return the outputs, in order; they belong to the caller, but with ``share`` the next run may overwrite
        them. An OvirError names the layer that failed."""
        shapes = tuple([array.shape for array in inputs]) if self._plan_for is not None else ()
        bound = None if listeners else self._bound.get(shapes) or self._bind(shapes)
        if bound is None:
            if self._executor is None:
                self._executor = Executor(self.plan, self._variables, self._of_body)
            self._running = self._executor
            return self._executor.run(inputs, listeners)
        self._running = bound
        try:
            with single_thread:
                return bound.run(inputs, share=share)
        except OvirError:
            raise
        except Exception as error:
            raise bound.explain(error) from error

    def _bind(self, shapes: Shapes) -> BoundPlan | None:
        """Return a plan bound to shapes that have been seen before, None for new shapes."""
        if shapes not in self._seen:
            self._seen[shapes] = None
            if len(self._seen) > MOST_SEEN:
                del self._seen[next(iter(self._seen))]
            return None
        plan = self._plan_for(shapes) if self._plan_for is not None else self.plan
        bound = BoundPlan(plan, self._variables, self._of_body, self._prepared)
        self._executor = None
        self._bound[shapes] = bound
        while len(self._bound) > MOST_BINDINGS:
            del self._bound[next(iter(self._bound))]
        return bound

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now, the innermost one if bodies are running, for reports of kernels."""
        return self._running.innermost if self._running is not None else None


MOST_SEEN = 64
"""The number of sets of shapes that are remembered as seen once."""
