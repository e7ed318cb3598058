"""What every kernel promises (see ``Operator``), checked at each call while tests run.

The kernels of all operations, and those that ``prepare`` makes, are wrapped. What a call breaks is noted and not raised
on the spot, where it could be taken for the error that a test expects.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import ElementType
from ovir.ops import import_all
from ovir.ops.base.operator import Operator

Array = np.ndarray[Any, Any]

faults: list[str] = []
_local = threading.local()


@pytest.fixture(scope="session", autouse=True)
def _watched_kernels() -> Iterator[None]:
    import_all()
    with pytest.MonkeyPatch.context() as patch:
        for cls in _classes(Operator):
            if "run" in vars(cls):
                patch.setattr(cls, "run", watched_run(vars(cls)["run"]))
            if "prepare" in vars(cls):
                patch.setattr(cls, "prepare", watched_prepare(vars(cls)["prepare"]))
        yield


@pytest.fixture(autouse=True)
def _kernels_keep_their_contract() -> Iterator[None]:
    faults.clear()
    yield
    assert not faults, "\n".join(dict.fromkeys(faults))


def _classes(cls: type[Operator]) -> set[type[Operator]]:
    return {cls}.union(*map(_classes, cls.__subclasses__()))


def watched_prepare(prepare: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(prepare)
    def watched(op: Operator, *constants: Array | None) -> Any:
        kernel = prepare(op, *constants)
        return (
            None if kernel is None else functools.wraps(kernel)(functools.partial(watched_run(_without_op(kernel)), op))
        )

    return watched


def _without_op(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *inputs, **keywords: kernel(*inputs, **keywords)


def watched_run(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def watched(op: Operator, *inputs: Any, **keywords: Any) -> Any:
        active = _local.__dict__.setdefault("active", set())
        if id(op) in active:  # one form of the kernel calls another
            return run(op, *inputs, **keywords)
        active.add(id(op))
        try:
            arrays = [a for a in inputs if isinstance(a, np.ndarray)]
            before = [a.tobytes() if a.flags.writeable else None for a in arrays]
            result = run(op, *inputs, **keywords)
        finally:
            active.discard(id(op))
        out = keywords.get("out")
        given = [a for a in (out if isinstance(out, tuple) else (out,)) if a is not None]
        # An input that ``out`` may be is the output's memory, not the input's any more.
        foreign = [not any(np.may_share_memory(a, b) for b in given) for a in arrays]
        for i, array in enumerate(arrays):
            if foreign[i] and before[i] is not None and array.tobytes() != before[i]:
                faults.append(f"{op.type}-{op.opset} wrote to input {i}")
        outputs = result if isinstance(result, tuple) else (result,)
        kept = [array for array, is_foreign in zip(arrays, foreign, strict=True) if is_foreign]
        faults.extend(f"{op.type}-{op.opset}: {fault}" for fault in _output_faults(op, inputs, kept, outputs))
        return result

    return watched


def _output_faults(op: Operator, inputs: tuple[Any, ...], kept: list[Array], outputs: tuple[Any, ...]) -> Iterator[str]:
    # Bounds pass through kernels in a type of their own, and compressed weights are restored in f32, whatever the declared types.
    as_declared = bool(op.output_types) and _have_types(inputs, op.input_types)
    for i, output in enumerate(outputs):
        if output is None:  # one that nobody wants
            continue
        if not isinstance(output, np.ndarray):
            yield f"output {i} is a {type(output).__name__}, not an array"
            continue
        if not op.views and output.size and any(np.may_share_memory(output, a) for a in kept):
            yield f"output {i} shares memory with an input, and views is False"
        for j, other in enumerate(outputs[:i]):
            if isinstance(other, np.ndarray) and np.shares_memory(output, other):
                yield f"outputs {j} and {i} overlap"
        if as_declared and not op.output_types[i].is_dynamic and output.dtype != op.output_types[i].to_dtype():
            yield f"output {i} is {output.dtype}, inferred was {op.output_types[i]}"


def _have_types(inputs: tuple[Any, ...], types: tuple[ElementType, ...]) -> bool:
    return len(inputs) == len(types) and all(
        isinstance(a, np.ndarray) and not t.is_dynamic and a.dtype == t.to_dtype()
        for a, t in zip(inputs, types, strict=True)
    )
