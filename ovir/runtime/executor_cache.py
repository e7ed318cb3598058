"""The sets of shapes to which a request binds its plan, and how long it keeps them bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from ovir.core.arrays import Array
from ovir.diagnostics.errors import ModelError
from ovir.runtime.executor import Executor
from ovir.runtime.memory import refuse_what_does_not_fit
from ovir.runtime.plan import Plan
from ovir.runtime.rewrites import for_unwatched_runs
from ovir.runtime.state import Variables
from ovir.runtime.step_binder import Prepared

InputShapes = tuple[tuple[int, ...], ...]
States = Mapping[str, tuple[int, ...] | None]
"""The shapes of the variables whose shapes inference does not know; None for a variable without a value."""
Shapes = tuple[InputShapes, tuple[tuple[int, ...] | None, ...]]
"""The shapes that a plan is bound to: of the inputs, and of such variables. A negative number stands for a size
that differs from run to run, the same for sizes that are always equal."""

MOST_BINDINGS = 4
"""The number of sets of shapes for which a request keeps an executor: those it has run last."""
_REPEATS_OF_SIZES = 64
"""The runs in which the same sizes have stayed before these are bound, or shapes of bound sizes before all of them are.
It saves half of a small decoder's run, and takes as long as 25 runs, or 100 if no other request has the plan yet.
"""
_MOST_SEEN = 2 * MOST_BINDINGS
"""The number of other sets after which shapes that come again count as new."""
_MOST_COUNTED = 64


class Plans(Protocol):
    """The plans of a compiled model."""

    prepared: Prepared

    def plan(self, keep: Collection[str] = ()) -> Plan:
        """Return the plan for inputs of all shapes, in which the layers in ``keep`` are steps."""

    def plan_for(self, shapes: InputShapes, states: States, keep: Collection[str], *, watched: bool) -> Plan | None:
        """Return the plan for one set of shapes; None where the plan for all shapes has to be used."""


class ExecutorCache:
    """The executors of one request.

    The first shapes that a request sees are bound at once: the model is inferred for them, so that all that follows
    from shapes is known, and each step is bound to its arrays. Later, or if they include those of variables, shapes are
    bound when they come again, because this takes as long as a few runs. The shapes of a decoder whose cache grows
    never do: if the same sizes stay in many runs, these are bound, and only the steps that depend on the others look up
    their arrays. All other runs share one executor for all shapes. Shapes whose executor has been dropped must come
    twice as often before they are bound again, so that sets of shapes that take turns are not bound all the time.
    """

    def __init__(
        self, plans: Plans, variables: Variables, keep: Collection[str] = (), *, watched: bool = False
    ) -> None:
        """Prepare to run the plans of a model in which the layers in ``keep`` are steps; if they are ``watched``,
        listeners may look at all tensors of each step.

        Raises RunError for tensors that exceed the memory of the machine.
        """
        self.plan = plans.plan(keep)
        refuse_what_does_not_fit(self.plan)
        self.keep = keep
        self.watched = watched
        self._plans = plans
        self._variables = variables
        self._bound: dict[Shapes, Executor] = {}
        self._for_all_shapes: Executor | None = None
        self._last: Shapes | None = None
        self._seen: dict[Shapes, int] = {}
        self._repeats_before_binding: dict[Shapes, float] = {}
        """The number of runs on shapes before they are bound again; infinite for shapes that are never bound."""

    def executor_for(self, inputs: Sequence[Array]) -> Executor:
        """Return the binding for inputs of these shapes and the present variables."""
        names = self.plan.open_variables
        shapes = tuple([array.shape for array in inputs]), self._variables.shapes(names) if names else ()
        sizes = shapes if shapes in self._bound else self._sizes_to_bind(shapes)
        if sizes is not None:
            executor = self._bound.pop(sizes, None) or self._bind(sizes, inputs)
            if executor is not None:
                self._bound[sizes] = executor  # the one that was used last is the last
                keep_latest(self._bound, MOST_BINDINGS)
                return executor
        if self._for_all_shapes is None:
            self._for_all_shapes = self._executor(self.plan, inputs)
        return self._for_all_shapes

    def _sizes_to_bind(self, shapes: Shapes) -> Shapes | None:
        """Return shapes that are not bound, or only their sizes that stay, if these are bound or it pays to bind them;
        else None."""
        last, self._last = self._last, shapes
        fitting = next((bound for bound in reversed(self._bound) if _fits(shapes, bound)), None)
        if self._pays(shapes, 1 if fitting is None else _REPEATS_OF_SIZES):
            return shapes
        if fitting is not None:
            return fitting
        staying = None if last is None or last == shapes else _staying(last, shapes)
        return staying if staying is not None and self._pays(staying, _REPEATS_OF_SIZES) else None

    def _pays(self, shapes: Shapes, repeats: int = 1) -> bool:
        seen = self._seen.pop(shapes, 0)
        self._seen[shapes] = seen + 1
        keep_latest(self._seen, _MOST_SEEN)
        is_first = not self._repeats_before_binding and not self.plan.open_variables
        return is_first or seen >= self._repeats_before_binding.get(shapes, repeats)

    def _bind(self, shapes: Shapes, inputs: Sequence[Array]) -> Executor | None:
        times = self._repeats_before_binding.pop(shapes, 1)
        try:
            states = dict(zip(self.plan.open_variables, shapes[1], strict=True))
            plan = self._plans.plan_for(shapes[0], states, self.keep, watched=self.watched)
        except ModelError:
            plan = None  # inference may refuse what never runs, such as a branch that is not taken
        self._repeats_before_binding[shapes] = inf if plan is None else 2 * times
        keep_latest(self._repeats_before_binding, _MOST_COUNTED)
        if plan is None:
            return None
        if plan is not self.plan:
            refuse_what_does_not_fit(plan)
        del self._seen[shapes]
        return self._executor(plan, inputs)

    def _executor(self, plan: Plan, inputs: Sequence[Array]) -> Executor:
        plan = plan.watched() if self.watched else for_unwatched_runs(plan)
        return Executor(plan, self._variables, self._plans.prepared, inputs)


def _fits(shapes: Shapes, bound: Shapes) -> bool:
    """Return whether shapes have the sizes that are bound, and equal ones where these are one negative number."""
    sizes: dict[int, int] = {}
    for given, known in {*zip((*shapes[0], *shapes[1]), (*bound[0], *bound[1]), strict=True)}:
        if given != known:
            if given is None or known is None or len(given) != len(known):
                return False
            for size, other in zip(given, known, strict=True):
                if size != other and (other >= 0 or sizes.setdefault(other, size) != size):
                    return False
    return True


def _staying(before: Shapes, now: Shapes) -> Shapes | None:
    """Return the sizes that are the same, with negative numbers for the others, equal ones for those that are equal in
    both; None if ranks differ, or if a variable has got its first value, or lost it."""
    common: list[Any] = []
    changed: dict[tuple[int, int], int] = {}
    for old, new in zip((*before[0], *before[1]), (*now[0], *now[1]), strict=True):
        if old == new:
            common.append(new)
        elif old is None or new is None or len(old) != len(new):
            return None
        else:
            pairs = zip(old, new, strict=True)
            common.append(tuple([b if a == b else changed.setdefault((a, b), -1 - len(changed)) for a, b in pairs]))
    return tuple(common[: len(now[0])]), tuple(common[len(now[0]) :])


def keep_latest(items: dict[Any, Any], most: int) -> None:
    """Remove the oldest items beyond a number."""
    while len(items) > most:
        del items[next(iter(items))]
