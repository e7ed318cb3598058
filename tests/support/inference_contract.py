"""What every ``infer`` promises (see ``Operator``), checked at each call while tests run.

The inference of all operations is wrapped. What a call breaks is noted and not raised on the spot, where it could be
taken for the error that a test expects.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ovir.core.element_types import ElementType
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.ops import import_all
from ovir.ops.base.operator import Operator

faults: list[str] = []


class Active(threading.local):
    """The operations that a thread calls now, by identity."""

    def __init__(self) -> None:
        self.operations: set[int] = set()


_active = Active()


@pytest.fixture(scope="session", autouse=True)
def _watched_inference() -> Iterator[None]:
    import_all()
    with pytest.MonkeyPatch.context() as patch:
        for cls in _classes(Operator):
            if "infer" in vars(cls):
                patch.setattr(cls, "infer", watched_infer(vars(cls)["infer"]))
        yield


@pytest.fixture(autouse=True)
def _inference_keeps_its_contract() -> Iterator[None]:
    faults.clear()
    yield
    assert not faults, "\n".join(dict.fromkeys(faults))


def _classes(cls: type[Operator]) -> set[type[Operator]]:
    return {cls}.union(*map(_classes, cls.__subclasses__()))


class Probe(TensorType):
    """An input of an operation that notes a fault when its known value is read."""

    def __init__(self, tensor: TensorType, op: Operator, index: int) -> None:
        super().__init__(tensor.element_type, tensor.shape)
        self._given = tensor, op, index

    @property
    def value(self) -> Value | None:
        tensor, op, index = self._given
        faults.append(f"{op.type}-{op.opset} reads the value of input {index}: value_inputs is {op.value_inputs}")
        return tensor.value

    @property
    def may_have_value(self) -> bool:
        return self._given[0].may_have_value


def watched_infer(infer: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(infer)
    def watched(op: Operator, *inputs: Any, **keywords: Any) -> Any:
        active = _active.operations
        if id(op) in active:  # the inference of a base class
            return infer(op, *inputs, **keywords)
        active.add(id(op))
        before = _state(op)
        try:
            return infer(op, *(_probed(op, i, tensor) for i, tensor in enumerate(inputs)), **keywords)
        finally:
            active.discard(id(op))
            if _state(op) != before:
                faults.append(f"infer of {op.type}-{op.opset} writes to the operation")

    return watched


_UNCHANGING = (bool, int, float, str, tuple, type(None), ElementType)


def _state(op: Operator) -> dict[str, Any]:
    """What an operation holds, but for the data of a constant, which is decoded when it is first asked for."""
    return {
        name: value if type(value) in _UNCHANGING else repr(value)
        for name, value in vars(op).items()
        if name not in ("_data", "constant_data")
    }


def _probed(op: Operator, index: int, tensor: Any) -> Any:
    if not isinstance(tensor, TensorType) or op.reads_value(index):
        return tensor
    return Probe(tensor, op, index)
