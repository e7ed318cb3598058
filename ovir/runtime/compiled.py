"""The public face of running: compile a model, make infer requests, read results."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir import parallel
from ovir.diagnostics import (
    USAGE,
    Code,
    Diagnostic,
    InputError,
    OperatorError,
    Severity,
    diagnostic,
    reporting_to,
)
from ovir.model import Layer, Model, Port
from ovir.runtime.executor import Executor, Listener
from ovir.runtime.inputs import Feeds, collect_inputs
from ovir.runtime.plan import Plan, make_plan
from ovir.runtime.state import Variable, Variables

Array = NDArray[Any]


class CompiledModel:
    """A model ready to run. Calling it runs its own infer request; others are made by
    ``create_infer_request`` and share nothing but constants."""

    def __init__(self, model: Model, *, threads: int | None = None, strict: bool = False) -> None:
        """``threads`` limits the threads of kernels (None: all cores). With ``strict`` a value that the
        specification excludes is an error, where otherwise OpenVINO's reference is followed with a warning."""
        if threads is not None and threads < 1:
            raise InputError(diagnostic(USAGE, f"threads must be at least 1, got {threads}"))
        self.model = model
        self.threads = threads
        self.strict = strict
        self._plans: dict[frozenset[str], Plan] = {}
        self.plan()  # what cannot run is said here
        self._keys = _output_keys(model.outputs)
        self._request: InferRequest | None = None

    def plan(self, keep: Collection[str] = ()) -> Plan:
        """The plan in which the layers named in ``keep`` are run as steps."""
        key = frozenset(keep)
        if key not in self._plans:
            self._plans[key] = make_plan(self.model, key)
        return self._plans[key]

    @property
    def inputs(self) -> list[Port]:
        return self.model.inputs

    @property
    def outputs(self) -> list[Port]:
        return self.model.outputs

    def create_infer_request(self) -> InferRequest:
        """A request with buffers and state of its own."""
        return InferRequest(self)

    def __call__(
        self,
        inputs: Feeds = None,
        *,
        taps: Sequence[str] = (),
        listeners: Sequence[Listener] = (),
        share_outputs: bool = False,
    ) -> Results:
        """Run once. See ``InferRequest.infer``."""
        if self._request is None:
            self._request = self.create_infer_request()
        return self._request.infer(inputs, taps=taps, listeners=listeners, share_outputs=share_outputs)


class InferRequest:
    """Runs a compiled model; owns buffers and the state of ReadValue and Assign. Not for two threads
    at a time."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self._variables = Variables()
        self._executors: dict[frozenset[str], Executor] = {}

    def infer(
        self,
        inputs: Feeds = None,
        *,
        taps: Sequence[str] = (),
        listeners: Sequence[Listener] = (),
        share_outputs: bool = False,
    ) -> Results:
        """Run the model on ``inputs``: a mapping from name, position or Port, a list, or one array.

        ``taps`` are layer names whose outputs ``results.taps`` will hold. With ``share_outputs`` the
        arrays belong to the request, which overwrites them at its next call.
        InputError where an input does not fit the model, RunError where a layer fails.
        """
        compiled = self.compiled
        arrays = collect_inputs(compiled.model, inputs)
        tap = Tap(taps, compiled.model) if taps else None
        executor = self._executor(tap.names if tap else frozenset())
        reports = _Reports(executor, compiled.strict)
        watching = [*listeners, tap] if tap else listeners
        with parallel.limit(compiled.threads), reporting_to(reports.add), np.errstate(all="ignore"):
            outputs = executor.run(arrays, fresh=not share_outputs, listeners=watching)
        return Results(compiled.outputs, compiled._keys, outputs, tap.arrays if tap else {}, reports.found)

    def reset_state(self) -> None:
        """Forget what Assign has stored; ReadValue starts from its initial value again."""
        self._variables.reset()

    def query_state(self) -> list[Variable]:
        """The variables that have been used so far, each with ``name``, ``value`` and ``reset()``."""
        return list(self._variables)

    def _executor(self, keep: frozenset[str]) -> Executor:
        if keep not in self._executors:
            self._executors[keep] = Executor(self.compiled.plan(keep), self._variables)
        return self._executors[keep]


class Results(Mapping[Any, Array]):
    """The outputs of one run, by position, by any tensor name, or by Port. Iterates in Result order."""

    def __init__(
        self,
        ports: Sequence[Port],
        keys: Mapping[str, int],
        arrays: Sequence[Array],
        taps: dict[str, list[Array]],
        diagnostics: list[Diagnostic],
    ) -> None:
        self._ports = ports
        self._keys = keys
        self._arrays = arrays
        self.taps = taps
        """By layer name: copies of the outputs of the layers asked for."""
        self.diagnostics = diagnostics
        """What kernels had to say of the values, as indices outside the specified range."""

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, (int, np.integer)):
            return self._arrays[int(key)]
        if isinstance(key, Port):
            return self._arrays[self._ports.index(key)]
        if key in self._keys:
            return self._arrays[self._keys[key]]
        raise KeyError(f"no output is named {key!r}; the outputs are {[p.any_name for p in self._ports]}")

    def __contains__(self, key: object) -> bool:
        if isinstance(key, int):
            return -len(self._arrays) <= key < len(self._arrays)
        return key in self._keys or key in self._ports

    def __iter__(self) -> Iterator[Port]:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._arrays)

    def to_dict(self) -> dict[str, Array]:
        """One entry per output, by a name that is its own (a repeated name is numbered)."""
        named: dict[str, Array] = {}
        for port, array in zip(self._ports, self._arrays, strict=True):
            name, count = port.any_name, 1
            while name in named:
                count += 1
                name = f"{port.any_name}_{count}"
            named[name] = array
        return named


def _output_keys(ports: Sequence[Port]) -> dict[str, int]:
    """Every name of an output: tensor names first, then those of the Result and of its producer."""
    keys: dict[str, int] = {}
    for index, port in enumerate(ports):
        for name in port.names:
            keys.setdefault(name, index)
    for index, port in enumerate(ports):
        keys.setdefault(port.layer.name, index)
    for index, port in enumerate(ports):
        if port.source is not None:
            keys.setdefault(port.source.layer.name, index)
    return keys


class Tap:
    """A listener that keeps copies of the outputs of layers, given by name; in bodies as ``outer/body/name``."""

    def __init__(self, names: Sequence[str], model: Model) -> None:
        known = {layer.scope + layer.name for layer in all_layers(model)}
        if unknown := [name for name in names if name not in known]:
            raise InputError(diagnostic(USAGE, f"no layer is named {unknown[0]!r}, which was to be tapped"))
        self.names = frozenset(names)
        self.arrays: dict[str, list[Array]] = {}

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        """Nothing is to be done before a layer."""

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        name = layer.scope + layer.name
        if name in self.names:
            self.arrays[name] = [np.array(array) for array in outputs]


def all_layers(model: Model) -> Iterator[Layer]:
    """The layers of a model and of all its bodies."""
    for layer in model.layers:
        yield layer
        for body in layer.bodies.values():
            yield from all_layers(body)


def matching_layers(model: Model, pattern: str) -> list[str]:
    """The names of the layers that a regular expression finds, those in bodies with their scope."""
    names = (layer.scope + layer.name for layer in all_layers(model) if layer.type not in ("Parameter", "Result"))
    return [name for name in names if re.search(pattern, name)]


@dataclass
class _Reports:
    """Takes what kernels report, and adds the layer."""

    executor: Executor
    strict: bool

    def __post_init__(self) -> None:
        self.found: list[Diagnostic] = []

    def add(self, code: Code, message: str) -> None:
        if self.strict:
            raise OperatorError(message, code)
        layer = self.executor.innermost
        found = diagnostic(code, message, layer.place if layer else None, severity=Severity.WARNING)
        if found not in self.found:
            self.found.append(found)


def compile_model(
    model: Model | str | os.PathLike[str], *, threads: int | None = None, strict: bool = False
) -> CompiledModel:
    """Prepare a model, or the IR file at a path, to be run. Options: see ``CompiledModel``."""
    if not isinstance(model, Model):
        from ovir.ir.reader import read_model  # a convenience only: the runtime does not need the reader

        model = read_model(model)
    return CompiledModel(model, threads=threads, strict=strict)
