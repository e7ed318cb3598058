"""One trial of the fuzzer: check, infer and run a model, and say what ovir does wrong with it."""

import contextlib
import re
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from support import mutants, strict_numpy
from support.layouts import OF_USERS, elements

import ovir
from fuzz.cases import Case, make_case, make_limits_case
from ovir.analysis.input_sizes import fix_shapes
from ovir.analysis.random_inputs import generate_inputs

SECONDS = 1.0
"""The processor time that one model may take."""
MEMORY = 512 << 20
"""Bytes that a process may take more than it has from the start."""
_LARGE = 1 << 16
"""Numbers from here on in a model explain that its run takes long, or more memory than there is."""
_MOST_ELEMENTS = 1 << 20
"""Models with larger outputs are not run."""
_INTERNAL = "OVIR999"


@dataclass(frozen=True)
class Trial:
    """What became of one model: it was refused, too large to run, failed with a message in the run, or ran."""

    seed: int
    flags: tuple[str, ...]
    name: str
    status: str
    fault: str | None
    seconds: float


class _LateError(BaseException):
    """Raised by the clock. It is no Exception, so that no handler of ovir catches it."""


class _FaultError(Exception):
    """What ovir does wrong."""


def limit_memory() -> None:
    """Limit the memory of this process to what it has and ``MEMORY`` more."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


def limit_processor_time() -> None:
    """End this process some seconds after the next model should have ended, as it may be stuck in C.

    Only a process that does nothing but trials may be limited: a worker of pytest, which had run other tests for
    minutes, was killed before its timer rang.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + SECONDS) + 4, resource.RLIM_INFINITY))


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _LateError after some seconds of processor time."""

    def ring(*_: object) -> None:
        raise _LateError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@cache
def source_of(*flags: str) -> Callable[[int], Case]:
    """Return the function that makes the model of a seed; see the options of ``fuzz.operations``."""
    if "--limits" in flags:
        return make_limits_case
    if "--broken" not in flags:
        return partial(make_case, reals="extreme" if "--extreme" in flags else "")
    files = mutants.seeds(flags[1:])

    def broken(seed: int) -> Case:
        name, text, weights = files[seed % len(files)]
        return Case(Path(name).stem, mutants.mutate(text, seed), weights, [], [], {})  # type: ignore[arg-type]

    return broken


def try_case(seed_and_flags: tuple[int, tuple[str, ...]]) -> Trial:
    """Make the model of a seed and flags and try it; with flags only once, because sums of extreme numbers depend on
    their order. This process may do nothing but trials."""
    seed, flags = seed_and_flags
    limit_memory()
    limit_processor_time()
    case = source_of(*flags)(seed)
    start = time.process_time()
    status, fault = "late", None
    try:
        with _limited(SECONDS), _without_undefined_integers():
            status = _try(case, seed, again=not flags)
    except _LateError:
        stage = _stage[0]
        if stage != "run" or not has_large_numbers(case):
            fault = f"{stage} takes more than {SECONDS:g} s"
    except _FaultError as error:
        status, fault = "fault", str(error)
    except MemoryError as error:
        if _stage[0] == "run" and has_large_numbers(case):
            status = "large"
        else:
            status, fault = "fault", f"{_stage[0]} takes more than {MEMORY >> 20} MB: {_where(error)}"
    except Exception as error:
        status, fault = "fault", f"{type(error).__name__}: {error} {_where(error)}"
    return Trial(seed, flags, case.name, status, fault, time.process_time() - start)


def _where(error: BaseException) -> str:
    """Return where an exception was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"({last.filename.rsplit('ovir/', 1)[-1]}:{last.lineno})"


@contextlib.contextmanager
def _without_undefined_integers() -> Iterator[None]:
    """Raise _FaultError if a real number becomes an integer of a type that does not hold it, which C leaves open.

    ``ovir/kernels/precision.py`` has the conversions to use.
    """
    errstate, choose = np.errstate, np.where

    def watchful(**kinds: Any) -> np.errstate:
        return errstate(**{**kinds, "invalid": "raise" if kinds.get("invalid") == "raise" else "warn"})

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.errstate, np.where = watchful, strict_numpy.where  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            np.errstate, np.where = errstate, choose  # type: ignore[misc]
    for warning in caught:
        if "in cast" in str(warning.message):
            where = f"{warning.filename.rsplit('ovir/', 1)[-1]}:{warning.lineno}"
            raise _FaultError(f"{warning.message} ({where})")


_stage = ["check"]
"""What a trial is doing."""


def has_large_numbers(case: Case) -> bool:
    """Return whether the operation asks for something large."""
    text = b" ".join(re.findall(rb"<data [^>]*>", case.text.split(b"<edges>")[0]))
    numbers = [
        abs(float(number))
        for number in re.findall(rb"[0-9.]+(?:e[+-]?[0-9]+)?", text.replace(b"..", b" "))
        if number.strip(b".")
    ]
    arrays = [array for array in (*case.constants, *case.feeds) if array.dtype.kind in "iuf" and array.size]
    return any(number >= _LARGE for number in numbers) or any(
        (np.abs(np.nan_to_num(array.astype(np.float64))) >= _LARGE).any() for array in arrays
    )


def _try(case: Case, seed: int, *, again: bool) -> str:
    _stage[0] = "check"
    diagnostics = ovir.check(case.text, case.weights)
    for diagnostic in diagnostics:
        if diagnostic.code == _INTERNAL:
            raise _FaultError(f"check: {diagnostic.message}")
    _stage[0] = "infer"
    errors = [d for d in diagnostics if d.severity is ovir.Severity.ERROR]
    if errors and not any(d.line for d in errors):
        raise _FaultError(f"check names no line: {errors[0]}")
    try:
        model = ovir.read_model(case.text, case.weights)
    except ovir.OvirError as error:
        _require_own(error, "read_model")
        if not errors:
            raise _FaultError(f"read_model refuses what check lets pass: {error.diagnostic.message}") from error
        return "refused"
    if any(port.shape.size().lower > _MOST_ELEMENTS for layer in model.layers for port in layer.outputs):
        return "large"
    _stage[0] = "run"
    feeds = case.feeds
    if model.inputs and not feeds:  # a file that is broken at random
        fix_shapes(model)
        feeds = [random.array for random in generate_inputs(model)]
    promised = [(port.element_type, port.shape) for port in model.outputs]
    try:
        request = ovir.compile_model(model).create_infer_request()
        results = list(request.infer(feeds).values())
    except ovir.OvirError as error:
        _require_own(error, "run")
        if "out of memory" in str(error) and not has_large_numbers(case):
            raise _FaultError(f"run takes more than {MEMORY >> 20} MB: {error}") from error
        return "failed"
    for index, ((element_type, shape), array) in enumerate(zip(promised, results, strict=True)):
        if not shape.contains(array.shape):
            raise _FaultError(f"output {index}: inferred {shape}, got {list(array.shape)}")
        if not element_type.is_dynamic and array.dtype != element_type.to_dtype():
            raise _FaultError(f"output {index}: inferred {element_type}, got {array.dtype}")
    if again and _is_repeatable(case, model):
        expected = [elements(array) for array in results]
        _try_again(case, request, expected)
        _try_layouts(case, model, seed, expected)
    return "ran"


def _is_repeatable(case: Case, model: ovir.Model) -> bool:
    """Whether equal inputs give equal outputs in all runs."""
    is_pure = all(layer.operator is None or layer.operator.pure for layer in model.layers)
    kinds = {layer.type for layer in model.layers}
    return is_pure or "State" in case.name or not kinds & {"RandomUniform", "Multinomial"}


def _try_again(case: Case, request: ovir.InferRequest, expected: list[object]) -> None:
    """Run other inputs of the same shapes in the same request, and then the inputs again, three times."""
    for _ in range(3):
        request.reset_state()
        try:
            request.infer([array.reshape(-1)[::-1].reshape(array.shape) for array in case.feeds])
        except ovir.OvirError as error:
            _require_own(error, "run")
        request.reset_state()
        for index, array in enumerate(request.infer(case.feeds).values()):
            if elements(array) != expected[index]:
                raise _FaultError(f"output {index} differs in a later run")


def _try_layouts(case: Case, model: ovir.Model, seed: int, expected: list[object]) -> None:
    """Feed the same arrays in another layout: the results must be the same, bit by bit."""
    name, layout = list(OF_USERS.items())[seed // 7 % len(OF_USERS)]
    request = ovir.compile_model(model).create_infer_request()
    results = request.infer([layout(array) for array in case.feeds]).values()
    for index, array in enumerate(results):
        if elements(array) != expected[index]:
            raise _FaultError(f"output {index} of inputs that are {name} differs")


def _require_own(error: ovir.OvirError, action: str) -> None:
    if error.diagnostic.code == _INTERNAL:
        raise _FaultError(f"{action}: {error.diagnostic.message}") from error
