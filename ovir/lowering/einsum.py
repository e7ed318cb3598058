"""Einsum as products of two matrices each, for releases that do not decompose every equation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ovir import opset8 as ops
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.sizes import below, constant, joined, rank, reshaped, scalar, size, tensor
from ovir.ops.matmul import Einsum

Label = str | int
"""A letter of an equation, or the number of a dimension that ``...`` covers, counted from the last one on."""


@dataclass(frozen=True)
class _Operand:
    """A tensor with a label for each dimension."""

    tensor: LayerOrPort
    labels: list[Label]

    def has_one(self, label: Label) -> bool:
        """Return whether the dimension of a label is known to be 1."""
        dim = tensor(self.tensor).shape[self.labels.index(label)]
        return dim.is_static and dim.length == 1

    def ordered(self, labels: Sequence[Label]) -> LayerOrPort:
        """Return the tensor with its dimensions in another order."""
        order = [self.labels.index(label) for label in labels]
        return self.tensor if order == list(range(len(order))) else ops.transpose(self.tensor, order)

    def summed(self, labels: Collection[Label]) -> _Operand:
        """Return the operand without some dimensions."""
        axes = [axis for axis, label in enumerate(self.labels) if label in labels]
        if not axes:
            return self
        rest = [label for label in self.labels if label not in labels]
        return _Operand(ops.reduce_sum(self.tensor, axes, keep_dims=False), rest)


def needs_products(op: Einsum, inputs: Sequence[Port]) -> bool:
    """Return whether old releases do not decompose an equation: one with ``...``, with diagonals, with scalars, that
    changes nothing, or in which sizes of a letter may differ."""
    subscripts, output = op.subscripts(len(inputs))
    if any("." in part or len(set(part)) < len(part) or not part for part in subscripts) or subscripts == [output]:
        return True
    sizes: dict[str, set[object]] = {}
    for part, port in zip(subscripts, inputs, strict=True):
        for label, dim in zip(part, port.shape.dims if port.shape.rank else (), strict=False):
            sizes.setdefault(label, set()).add(dim.length if dim.is_static else None)
    return any(len(found - {None}) > 1 for found in sizes.values())


def products(op: Einsum, inputs: Sequence[Port]) -> LayerOrPort:
    """Return the result of an equation: its inputs are multiplied one after the other."""
    subscripts, output = op.subscripts(len(inputs))
    hidden = [rank(port, "inputs") - len(part.replace(".", "")) for port, part in zip(inputs, subscripts, strict=True)]
    result = _labels(output, max(hidden))
    operands = [
        _diagonal(_Operand(port, _labels(part, count)))
        for port, part, count in zip(inputs, subscripts, hidden, strict=True)
    ]
    for index, operand in enumerate(operands):
        others = [other for other in operands if other is not operand]
        spread = [
            label for label in operand.labels if operand.has_one(label) and any(label in x.labels for x in others)
        ]
        operands[index] = operand.summed(spread)
    found = operands.pop(0)
    while operands:
        after = operands.pop(0)
        needed = {*result, *(label for operand in operands for label in operand.labels)}
        left, right = (
            each.summed([label for label in each.labels if label not in needed and label not in other.labels])
            for each, other in ((found, after), (after, found))
        )
        found = _product(left, right, needed)
    return found.summed([label for label in found.labels if label not in result]).ordered(result)


def _labels(subscript: str, hidden: int) -> list[Label]:
    """Return the labels of a subscript whose ``...`` covers some dimensions."""
    found: list[Label] = []
    for letter in subscript:
        found += [letter] if letter != "." else list(range(hidden - 1, -1, -1))
    return found


def _diagonal(operand: _Operand) -> _Operand:
    """Return an operand in which each letter stands for one dimension."""
    labels, diagonal = operand.labels, operand.tensor
    while twice := next((label for label in labels if labels.count(label) > 1), None):
        first = labels.index(twice)
        second = labels.index(twice, first + 1)
        last = len(labels) - 1
        places = below(size(diagonal, first))
        rows, columns = (ops.unsqueeze(places, [a for a in range(last + 1) if a != axis]) for axis in (first, second))
        on_diagonal = ops.select(ops.equal(rows, columns), diagonal, scalar(0, tensor(diagonal).element_type))
        diagonal = ops.reduce_sum(on_diagonal, [second], keep_dims=False)
        labels = labels[:second] + labels[second + 1 :]
    return _Operand(diagonal, labels)


def _product(a: _Operand, b: _Operand, needed: Collection[Label]) -> _Operand:
    """Return the product of two operands, summed over the labels of both that nothing needs afterwards."""
    both = [label for label in a.labels if label in b.labels]
    batch, summed = ([label for label in both if (label in needed) == kept] for kept in (True, False))
    rows, columns = ([label for label in x.labels if label not in both] for x in (a, b))
    left = _merged(a.ordered([*batch, *rows, *summed]), len(batch), len(rows), len(summed))
    right = _merged(b.ordered([*batch, *summed, *columns]), len(batch), len(summed), len(columns))
    found: LayerOrPort = ops.matmul(left, right, transpose_a=False, transpose_b=False)
    lengths = [_lengths(x, labels) for x, labels in ((a, rows), (b, columns))]
    if len(rows) != 1 or len(columns) != 1:
        sizes = [size(found, axis) for axis in range(len(batch))]
        found = reshaped(found, joined(*sizes, *lengths[0], *lengths[1], []))
    return _Operand(found, [*batch, *rows, *columns])


def _lengths(operand: _Operand, labels: Sequence[Label]) -> list[Layer]:
    return [size(operand.tensor, operand.labels.index(label)) for label in labels]


def _merged(item: LayerOrPort, kept: int, *counts: int) -> LayerOrPort:
    """Return a tensor of some dimensions, followed by groups of dimensions that become one each."""
    if all(count == 1 for count in counts):
        return item
    sizes: list[Layer] = [size(item, axis) for axis in range(kept)]
    start = kept
    for count in counts:
        sizes.append(_total([size(item, axis) for axis in range(start, start + count)]))
        start += count
    return reshaped(item, joined(*sizes))


def _total(sizes: Sequence[Layer]) -> Layer:
    """Return the product of sizes, each a list of one number, as such a list."""
    known = [array for each in sizes if (array := constant(each)) is not None]
    if len(known) == len(sizes):
        return ops.constant(np.array([prod(int(array[0]) for array in known)], np.int64))
    return ops.reduce_prod(joined(*sizes), [0], keep_dims=True)
