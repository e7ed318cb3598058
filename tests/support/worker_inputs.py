"""Inputs and models that the tests of workers share; workers import this module, too."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from support.builder import Net

EXAMPLES = Path(__file__).parents[2] / "examples/xml"
DIGITS = EXAMPLES / "digits.xml"


def digits(count: int) -> list[dict[str, Any]]:
    """Return inputs of digits.xml: image i shows the digit i modulo 10."""
    images = np.load(EXAMPLES / "digits_input.npz")["image"]
    return [{"image": images[i % 10 : i % 10 + 1]} for i in range(count)]


@dataclass(frozen=True)
class Killer:
    """An input that kills the worker that loads it, as often as ``marks`` has no ``times`` files."""

    marks: str
    times: int
    digit: int = 0

    def load(self, model: Any) -> Any:
        deaths = len(os.listdir(self.marks))
        if deaths < self.times:
            Path(self.marks, f"{deaths}-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return digits(10)[self.digit]

    def __str__(self) -> str:
        return "the killer"


@dataclass(frozen=True)
class Slow:
    """An input that takes a while."""

    digit: int
    seconds: float

    def load(self, model: Any) -> Any:
        time.sleep(self.seconds)
        return digits(10)[self.digit]


@dataclass(frozen=True)
class TellsProcess:
    """An input whose value is the number of the process that loads it."""

    def load(self, model: Any) -> Any:
        return [np.array([os.getpid()], np.int64)]


class Fails:
    """An input that cannot be loaded."""

    def load(self, model: Any) -> Any:
        raise KeyError("nothing here")


class CannotBeRestored:
    """An input that cannot be unpickled."""

    def load(self, model: Any) -> Any:
        return None

    def __getstate__(self) -> Any:
        return {"a": 1}

    def __setstate__(self, state: Any) -> None:
        raise ImportError("no such thing")


def assert_all(results: Iterator[Any], expected: np.ndarray, count: int, rows: int = 1) -> None:
    """Each input has exactly one result, the right one."""
    found = sorted(results, key=lambda result: result.index)
    assert [result.index for result in found] == list(range(count))
    for result in found:
        np.testing.assert_allclose(result["probabilities"], expected[result.index % 10][None], atol=1e-5)


def counter() -> ovir.CompiledModel:
    """A model that adds its input to a state."""
    net = Net()
    x = net.parameter("x", "2")
    state = net.op(
        "ReadValue",
        net.const(np.zeros(2, np.float32)),
        opset=6,
        variable_id="v",
        variable_type="f32",
        variable_shape="2",
    )
    total = net.op("Add", state, x, name="total")
    net.op("Assign", total, opset=6, variable_id="v")
    net.result(total)
    return net.compiled()


ONES = [np.ones(2, np.float32)]
