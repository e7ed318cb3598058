"""Decide for each call how a plan runs: bound to the shapes of the inputs, or step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ovir.core.arrays import Array
from ovir.diagnostics.errors import ModelError, OvirError
from ovir.graph.layers import Layer
from ovir.kernels.blas import single_thread
from ovir.runtime.binder import Prepared
from ovir.runtime.bound import BoundPlan
from ovir.runtime.executor import Executor, Runs
from ovir.runtime.listeners import Listener
from ovir.runtime.plan import Plan
from ovir.runtime.state import Variables

Shapes = tuple[tuple[int, ...], ...]
States = Mapping[str, tuple[int, ...] | None]
Moment = tuple[Shapes, tuple[tuple[int, ...] | None, ...]]
"""The shapes that a plan is bound to: of the inputs in one call, and of the variables whose shapes inference does not
know."""
PlanFor = Callable[[Shapes, States], Plan]

MOST_BINDINGS = 4
"""The number of bound plans that a request keeps, for the sets of shapes that it has seen last."""
# Shapes that come again after more others than this, as the lengths of a decoder's cache do in each of its texts, are
# not worth a plan of their own.
_MOST_SEEN = 2 * MOST_BINDINGS
_MOST_COUNTED = 64
_RUNS_BEFORE_OPEN = 3


class Runner:
    """Runs the plan of a model for one request.

    Inputs and variables of shapes that the request has not seen before run step by step. When the shapes come a second
    time, a plan is bound to them, which takes as long as a few runs and makes each later one faster. If the shapes
    change all the time, as in a decoder, the plan is bound without them after a few runs: this is faster than
    step by step, and slower than a plan for known shapes. Runs with listeners always go step by step.
    """

    def __init__(self, plan: Plan, plan_for: PlanFor | None, variables: Variables, prepared: Prepared) -> None:
        """Prepare to run a plan. ``plan_for`` returns the plan for one set of shapes of the inputs and variables; if it
        is None, the plan itself is bound for all shapes."""
        self.plan = plan
        self._plan_for = plan_for
        self._variables = variables
        self._prepared = prepared
        self._executor: Executor | None = Executor(plan, variables, self._of_body)
        self._tapped: Executor | None = None
        self._runs = 0
        self._seen: dict[Moment, int] = {}
        self._times_bound: dict[Moment, int] = {}
        self._bound: dict[Moment, BoundPlan] = {}
        self._open: BoundPlan | None = None
        self._refused: dict[Moment, None] = {}
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
        bound = None if listeners else self._choose(inputs)
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

    def _choose(self, inputs: Sequence[Array]) -> BoundPlan | None:
        """Return the bound plan for the shapes of the inputs and variables, None for a run step by step."""
        if self._plan_for is None:
            return self._open_plan(runs=1)
        names = self.plan.open_variables
        moment = tuple([array.shape for array in inputs]), self._variables.shapes(names) if names else ()
        bound = self._bound.pop(moment, None)
        if bound is not None:
            self._bound[moment] = bound  # the plan that was used last is the last
            return bound
        seen = self._seen.pop(moment, 0)
        # If more sets of shapes take turns than plans are kept, each has to come more often before it is bound again.
        if seen >= 1 << self._times_bound.get(moment, 0) and moment not in self._refused:
            bound = self._bind(moment)
        else:
            self._seen[moment] = seen + 1
            _keep_latest(self._seen, _MOST_SEEN)
        return bound or self._open_plan(runs=_RUNS_BEFORE_OPEN)

    def _bind(self, moment: Moment) -> BoundPlan | None:
        assert self._plan_for is not None
        shapes, states = moment
        try:
            plan = self._plan_for(shapes, dict(zip(self.plan.open_variables, states, strict=True)))
            bound = BoundPlan(plan, self._variables, self._of_body, self._prepared)
        except (ModelError, MemoryError):
            # Inference may refuse what never runs, such as a branch that is not taken; and step by step, a run needs
            # less memory.
            self._refused[moment] = None
            _keep_latest(self._refused, _MOST_COUNTED)
            return None
        self._bound[moment] = bound
        self._times_bound[moment] = self._times_bound.pop(moment, 0) + 1
        self._executor = None
        _keep_latest(self._bound, MOST_BINDINGS)
        _keep_latest(self._times_bound, _MOST_COUNTED)
        return bound

    def _open_plan(self, runs: int) -> BoundPlan | None:
        """Return the plan that is bound without shapes, None before so many runs."""
        self._runs += 1
        if self._open is None and self._runs > runs:
            self._open = BoundPlan(self.plan, self._variables, self._of_body, self._prepared)
            self._executor = None
        return self._open

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now, the innermost one if bodies are running, for reports of kernels."""
        return self._running.innermost if self._running is not None else None


def _keep_latest(items: dict[Moment, Any], most: int) -> None:
    """Remove the oldest items beyond a number."""
    while len(items) > most:
        del items[next(iter(items))]
