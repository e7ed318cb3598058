"""Random chains of layers that decompress weights, held against the same arithmetic of NumPy in f64.

All numbers have few digits, so that every way to compute a result gives the same one: results must be equal, except
with nf4, whose numbers f16 rounds. The size from which weights stay compressed is that of a few elements here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset8
from ovir import opset13 as ops
from ovir.core.element_types import ElementType
from ovir.ops.convert import NF4
from ovir.runtime import decompression
from ovir.system.python_runtime import can_be_imported

TYPES = ("f16", "f32", "bf16", "f16", "bf16", "i8", "u8", "i4", "u4", "nf4", "f8e4m3", "f8e5m2", "f4e2m1", "u2", "i16")
FACTORS: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "rank 0": lambda shape: (),
    "rank 1": lambda shape: (1,),
    "rank 2": lambda shape: (1, 1),
    "all ranks": lambda shape: (1,) * len(shape),
    "more ranks": lambda shape: (1,) * (len(shape) + 1),
    "rows": lambda shape: (shape[0], *(1,) * (len(shape) - 1)),
    "columns": lambda shape: shape[-1:],
    "groups": lambda shape: (*shape[:-1], 1),
    "middle": lambda shape: (*shape[1:-1], 1),
    "elements": lambda shape: shape,
}
"""The shapes of a factor for codes of a shape, by what has a factor of its own."""
ARITHMETIC: dict[str, tuple[Any, Any]] = {
    "Subtract": (ops.subtract, np.subtract),
    "Add": (ops.add, np.add),
    "Multiply": (ops.multiply, np.multiply),
    "Divide": (ops.divide, np.divide),
}


@dataclass
class Chain:
    """A model of one chain of weights and one or two layers that read it, with inputs and expected results."""

    seed: int
    """Chains with seeds in a row have all types and, with each of them, all factors; the rest is random."""
    words: list[str] = field(default_factory=list)
    """What the model computes, for messages."""
    port: Any = None
    values: Any = None
    """The weights so far, as a layer or port and as numbers in f64."""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.element_type = TYPES[self.seed % len(TYPES)]
        self.factor = list(FACTORS)[self.seed // len(TYPES) % len(FACTORS)]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def pick(self, values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def constant(self, shape: tuple[int, ...], element_type: str) -> tuple[Any, np.ndarray]:
        """Return a Const of integers, or of what the type has, and its numbers."""
        kind = ElementType.parse(element_type)
        low, high = {
            "u": (0, 1 << min(kind.bits, 8)),
            "i": (-(1 << min(kind.bits, 8) - 1), 1 << min(kind.bits, 8) - 1),
        }.get(element_type[0], (-6, 7))
        if element_type == "nf4":
            codes = self.random.integers(0, 16, shape).astype(np.uint8)
            return ops.constant(codes, "nf4"), NF4[codes].astype(np.float64)
        if element_type == "f4e2m1":
            numbers = self.random.choice([-6.0, -3.0, -1.5, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0], shape)
        else:
            numbers = self.random.integers(low, high, shape).astype(np.float64)
        return ops.constant(numbers.astype(kind.to_dtype()), element_type), numbers

    def convert(self, target: str) -> None:
        self.words.append(f"Convert to {target}")
        self.port = ops.convert(self.port, target)

    def arithmetic(self, name: str, now: str) -> None:
        """Compute with a factor, which is a constant of the current type or is converted to it."""
        layer, function = ARITHMETIC[name]
        factor = self.factor if self.chance(0.8) else self.pick(list(FACTORS))
        shape = FACTORS[factor](self.values.shape)
        stored = self.pick([now, now, "f16" if now == "f32" else now, "u8", self.element_type])
        if name in ("Multiply", "Divide"):
            numbers = np.ldexp(1.0, self.random.integers(-1, 2, shape))
            stored = now if stored not in ("f16", "bf16", "f32") else stored
            port: Any = ops.constant(numbers.astype(ElementType.parse(stored).to_dtype()), stored)
        else:
            port, numbers = self.constant(shape, stored)
        if stored != now:
            port = ops.convert(port, now)
        swaps = name in ("Multiply", "Add") and self.chance(0.4)
        self.words.append(f"{name} by {factor} of {stored}{', which stands first' if swaps else ''}")
        self.port = layer(port, self.port) if swaps else layer(self.port, port)
        self.values = function(self.values, numbers)

    def build(self) -> None:
        groups, size = self.pick([1, 2, 3, 4]), self.pick([8, 16, 16, 32])
        rows = self.pick([1, 5, 24])
        grouped = self.chance(0.5)
        shape = (rows, groups, size) if grouped else (rows, groups * size)
        self.port, self.values = self.constant(shape, self.element_type)
        self.words.append(f"{self.element_type}{list(shape)}")
        now = (
            self.pick(["f16", "f32", "f16", "f32", "bf16"])
            if self.element_type not in ("f16", "bf16")
            else self.element_type
        )
        if self.element_type in ("f16", "bf16") and self.chance(0.5):
            now = "f32"
        if now != self.element_type:
            self.convert(now)
        parts = self.pick(["scale", "scale", "zero point", "both", "both"])
        if parts != "scale":
            self.arithmetic(self.pick(["Subtract", "Subtract", "Add"]), now)
        if parts != "zero point":
            self.arithmetic(self.pick(["Multiply", "Multiply", "Multiply", "Divide"]), now)
        early = now != "f32" and self.chance(0.5)
        if early:
            self.convert("f32")
            now = "f32"
        if grouped and self.values.ndim == 3 and self.chance(0.8):
            self.reshape((rows, groups * size))
        if self.chance(0.25):
            order = self.random.permutation(self.values.ndim)
            self.words.append(f"Transpose {order.tolist()}")
            self.port, self.values = ops.transpose(self.port, ops.constant(order)), self.values.transpose(order)
        if self.chance(0.15) and now == "f32":
            self.arithmetic("Multiply", now)
        if now != "f32":
            self.convert("f32")

    def reshape(self, shape: tuple[int, ...]) -> None:
        self.words.append(f"Reshape to {list(shape)}")
        self.port = ops.reshape(self.port, ops.constant(np.int64(shape)), False)
        self.values = self.values.reshape(shape)

    def model(self) -> tuple[ovir.Model, dict[str, np.ndarray], list[np.ndarray]]:
        """Return a model of the chain, its inputs, and what it returns."""
        self.build()
        results, expected, parameters, feeds = [], [], [], {}
        for index in range(self.pick([1, 1, 2])):
            reader = self.pick(["MatMul", "MatMul", "MatMul", "Gather", "Add"])
            x, port, numbers = getattr(self, f"read_by_{reader.lower()}")()
            parameter = ops.parameter([-1] * x.ndim if self.chance(0.5) else x.shape, x.dtype, name=f"x{index}")
            results.append(port(parameter))
            expected.append(numbers)
            parameters.append(parameter)
            feeds[f"x{index}"] = x
        return ovir.Model(results, parameters, "chain"), feeds, expected

    def read_by_matmul(self) -> Any:
        weights, first = self.values, self.chance(0.1)
        transpose_w, transpose_x = self.chance(0.6), self.chance(0.2)
        turned = weights.swapaxes(-1, -2) if transpose_w else weights
        length = turned.shape[-1 if first else -2]
        rows = self.pick([1, 3, 12])
        x = self.random.integers(-3, 4, (*self.pick([(), (), (2,), weights.shape[:-2]]), rows, length)).astype(
            np.float32
        )
        if weights.ndim > 2 and x.ndim > 2:
            x = x[:1]
        wide = x.astype(np.float64)
        numbers = turned @ wide.swapaxes(-1, -2) if first else wide @ turned
        if first:
            x, transpose_x = wide.swapaxes(-1, -2).astype(np.float32), False
        elif transpose_x:
            x = np.ascontiguousarray(x.swapaxes(-1, -2))
        flags = (transpose_w, False) if first else (transpose_x, transpose_w)
        self.words.append(f"MatMul {flags}, weights {'first' if first else 'second'}, x{list(x.shape)}")
        pair = (lambda p: (self.port, p)) if first else (lambda p: (p, self.port))
        return x, lambda parameter: ops.matmul(*pair(parameter), *flags), numbers

    def read_by_gather(self) -> Any:
        axis = self.pick([0, 0, 0, self.values.ndim - 1, -self.values.ndim])
        count = self.values.shape[axis]
        indices = self.random.integers(-count, count, self.pick([(), (1,), (7,), (2, 3)])).astype(np.int64)
        if self.chance(0.7):
            indices %= count
        self.words.append(f"Gather, axis {axis}, indices {indices.tolist()}")
        numbers = np.take(self.values, indices, axis)
        return indices, lambda p: opset8.gather(self.port, p, ops.constant(np.int64(axis)), 0), numbers

    def read_by_add(self) -> Any:
        x = self.random.integers(-3, 4, self.pick([(1,), self.values.shape[-1:]])).astype(np.float32)
        self.words.append(f"Add x{list(x.shape)}")
        return x, lambda p: ops.add(self.port, p), self.values + x


def faults(seed: int, folder: Path) -> list[str]:
    """Return what differs for the chain of a seed, in every way to run it."""
    chain = Chain(seed)
    model, feeds, expected = chain.model()
    if chain.chance(0.5):  # weights of a file are packed
        ovir.save_model(model, folder / "model.xml")
        model = ovir.read_model(folder / "model.xml")
    ways: list[dict[str, Any]] = [{"keep_compressed": keep} for keep in (None, True, False)]
    if seed % 4 == 0 and can_be_imported("onnxruntime") and can_be_imported("onnx_ir"):
        ways.append({"engine": "onnxruntime"})
    found = []
    for way in ways:
        request = ovir.compile_model(model, **way).create_infer_request()
        for call in range(3):
            results = request.infer(feeds)
            for index, numbers in enumerate(expected):
                largest = np.abs(numbers).max(initial=1)
                tolerance = largest * (4e-3 if chain.element_type == "nf4" else 1e-6)
                if results[index].shape != numbers.shape or not (np.abs(results[index] - numbers) <= tolerance).all():
                    found.append(f"seed {seed}, {way}, call {call}, result {index}: {'; '.join(chain.words)}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fits", [True, False])
def test_chains_of_weights(fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "MAX_ELEMENTS", 0)
    monkeypatch.setattr(decompression, "SMALL", 0)
    monkeypatch.setattr(decompression, "free_memory", lambda: 1 << 40 if fits else 0)
    for seed in range(fits, 2 * len(TYPES) * len(FACTORS), 2):
        assert not faults(seed, tmp_path)


def test_parts_of_weights_are_parts_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "MAX_ELEMENTS", 0)
    for seed in range(0, 2 * len(TYPES) * len(FACTORS), 3):
        model, _, _ = Chain(seed).model()
        for layer in decompression.find_decompressions(model, lambda layer: False, True).absorbed:
            weights = decompression.ConstantWeights(layer.outputs[0])
            if layer.outputs[0].element_type == "f32" and weights.has_slices:
                whole, last = weights.whole(), weights.shape[0] - 1
                np.testing.assert_array_equal(weights.slices(slice(last - 1, last + 1)), whole[-2:], str(seed))
                np.testing.assert_array_equal(weights.slices(np.array([last, 0])), whole[[last, 0]], str(seed))


@pytest.mark.parametrize(
    ("sizes", "free", "kept"),
    [
        ({"i8": 256}, 0, ""),
        ({"i8": 257}, 0, "i8"),
        ({"u4": 128, "u8": 129, "i16": 9}, 0, "u4 u8"),
        ({"i16": 512, "f8e4m3": 512}, 0, ""),
        ({"f16": 1 << 18, "bf16": 1 << 18}, 1 << 22, ""),
        ({"f16": 1 << 18, "bf16": (1 << 18) + 1}, 1 << 22, "bf16 f16"),
        ({"f16": 1 << 19}, None, ""),
        ({"f16": 1 << 18}, 0, ""),
        ({"f16": (1 << 18) + 1}, 0, "bf16 f16"),
    ],
)
def test_types_that_stay_compressed(
    sizes: dict[str, int], free: int | None, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompression, "SMALL", 1 << 10)
    monkeypatch.setattr(decompression, "free_memory", lambda: free)
    constants = [
        ops.constant(np.broadcast_to(np.zeros((), ElementType.parse(name).to_dtype()), size), name)
        for name, size in sizes.items()
    ]
    found = decompression.types_kept_compressed(ovir.Model(constants, []))
    assert " ".join(sorted(map(str, found))) == kept
