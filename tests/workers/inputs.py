"""Inputs and models that the tests of workers share; workers import this module, too."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
