"""A small model that is saved, and what its files hold."""

from pathlib import Path

import numpy as np

import ovir
from support.builder import Net


def model_of(value: float, size: int = 3, name: str = "c") -> ovir.Model:
    """Return a model that adds a constant of ``value``, ``value`` + 1 ... to its input."""
    net = Net()
    constant = net.const(np.arange(size, dtype=np.float32) + np.float32(value), name=name)
    net.result(net.op("Add", net.parameter("x", str(size)), constant, name="y"))
    return net.model()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def value_in(path: Path) -> float:
    """Return the first number of the constant in a saved model."""
    return float(ovir.read_model(path).layer("c").operator.data[0])  # type: ignore[union-attr]
