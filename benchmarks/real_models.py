"""Models of real size with random weights, made with ovir's builders, in the shapes of well-known networks.

The form of the weights follows the name of a model: f32, f16, int8 (asymmetric, a scale for each row), int4_sym and
int4_asym (groups of 128).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array

Layer = Any
Inputs = dict[str, Any]
Made = tuple[ovir.Model, Inputs]

_GROUP = 128
"""The number of 4-bit weights that share a scale."""


class Weights:
    """Random weights of one form, which keep the size of activations.

    All tensors repeat one pool of random numbers from different places, which takes less time than drawing them.
    """

    def __init__(self, form: str) -> None:
        self.form = form
        random = np.random.default_rng(0)
        self._pool = random.standard_normal((1 << 22) - 3, np.float32)
        self._codes = random.integers(0, 256, (1 << 22) - 3, np.uint8)
        self._start = 0

    def __call__(self, *shape: int, inputs: int, form: str = "") -> Layer:
        """Return weights in f32 whose products with ``inputs`` numbers of size 1 have about size 1."""
        form, deviation = form or self.form, inputs**-0.5
        if form == "f32":
            return ops.constant(self._drawn(self._pool, shape) * np.float32(deviation))
        if form == "f16":
            values = (self._drawn(self._pool, shape) * np.float32(deviation)).astype(np.float16)
            return ops.convert(ops.constant(values), "f32")
        if form == "int8":
            return self._compressed(shape, "u8", 2.0**-6 * deviation, is_symmetric=False)
        return self._in_groups(shape, deviation, is_symmetric=form == "int4_sym")

    def _drawn(self, pool: Array, shape: tuple[int, ...]) -> Array:
        self._start = (self._start + 977) % len(pool)
        return np.resize(pool[self._start :], shape)

    def _compressed(self, shape: tuple[int, ...], dtype: str, scale: float, is_symmetric: bool) -> Layer:
        """Return f32 weights made from codes, with one scale and zero point for each slice along all but the last
        dimension, or for each slice along the first one if the weights are filters."""
        kept = shape[:-1] if len(shape) == 3 else shape[:1]
        ones = (1,) * (len(shape) - len(kept))
        codes = self._drawn(self._codes, shape)
        if dtype in ("u4", "i4"):
            codes = codes & 15 if dtype == "u4" else (codes & 15).astype(np.int8) - 8
        x = ops.convert(ops.constant(codes, dtype), "f16")
        if not is_symmetric:
            middle = 128 if dtype == "u8" else 8
            x = ops.subtract(x, ops.convert(ops.constant(np.full(kept + ones, middle, np.uint8), dtype), "f16"))
        scales = np.abs(self._drawn(self._pool, kept + ones)) * np.float32(0.1) + np.float32(1)
        x = ops.multiply(x, ops.constant((scales * np.float32(scale)).astype(np.float16)))
        return x if dtype in ("u4", "i4") else ops.convert(x, "f32")

    def _in_groups(self, shape: tuple[int, ...], deviation: float, is_symmetric: bool) -> Layer:
        rows, columns = shape
        grouped = (rows, columns // _GROUP, _GROUP)
        x = self._compressed(grouped, "i4" if is_symmetric else "u4", 0.25 * deviation, is_symmetric)
        return ops.convert(ops.reshape(x, [rows, columns], False), "f32")


# --------------------------------------------------------------------------- parts


def _input(name: str, shape: list[int], dtype: str) -> Layer:
    return ops.parameter(shape, dtype, name=name, tensor_names={name})


def _bias(size: int) -> Array:
    return np.linspace(-0.1, 0.1, size, dtype=np.float32)


def _dense(x: Layer, weights: Weights, inputs: int, outputs: int, has_bias: bool = True) -> Layer:
    product = ops.matmul(x, weights(outputs, inputs, inputs=inputs), False, True)
    return ops.add(product, _bias(outputs)) if has_bias else product


def _layer_norm(x: Layer, width: int) -> Layer:
    normal = ops.mvn(x, [-1], True, 1e-5, "inside_sqrt")
    return ops.add(ops.multiply(normal, 1 + _bias(width)), _bias(width))


def _heads(x: Layer, count: int, size: int, length: int = 0) -> Layer:
    """Return [batch, length, count * size] as [batch, count, length, size]; a length of 0 is that of x."""
    return ops.transpose(ops.reshape(x, [0, length, count, size], True), [0, 2, 1, 3])


def _attention(x: Layer, weights: Weights, width: int, heads: int) -> Layer:
    q, k, v = (_heads(_dense(x, weights, width, width), heads, width // heads) for _ in range(3))
    mixed = ops.transpose(ops.scaled_dot_product_attention(q, k, v), [0, 2, 1, 3])
    return _dense(ops.reshape(mixed, [0, 0, width], True), weights, width, width)


def _mlp(x: Layer, weights: Weights, width: int, factor: int = 4) -> Layer:
    wide = ops.gelu(_dense(x, weights, width, factor * width), "erf")
    return _dense(wide, weights, factor * width, width)


def _block(x: Layer, weights: Weights, width: int, heads: int) -> Layer:
    """Return a transformer's layer that normalizes before each part."""
    x = ops.add(x, _attention(_layer_norm(x, width), weights, width, heads))
    return ops.add(x, _mlp(_layer_norm(x, width), weights, width))


def _conv(x: Layer, weights: Weights, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> Layer:
    filters = weights(outputs, inputs, kernel, kernel, inputs=inputs * kernel * kernel)
    pads = [kernel // 2] * 2
    product = ops.convolution(x, filters, [stride, stride], pads, pads, [1, 1])
    return ops.add(product, _bias(outputs).reshape(1, -1, 1, 1))


def _image(size: int, channels: int = 3) -> tuple[Layer, Inputs]:
    values = np.random.default_rng(1).standard_normal((1, channels, size, size), np.float32)
    return _input("image", [1, channels, size, size], "f32"), {"image": values}


def _classes(x: Layer, weights: Weights, channels: int) -> Layer:
    return _dense(ops.reduce_mean(x, [2, 3]), weights, channels, 1000)


# --------------------------------------------------------------------------- image models


def resnet50(weights: Weights) -> Made:
    image, inputs = _image(224)
    x: Layer = ops.relu(_conv(image, weights, 3, 64, 7, 2))
    x = ops.max_pool(x, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3])[0]
    channels = 64
    for stage, (count, inner) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for index in range(count):
            stride = 2 if stage and not index else 1
            part = ops.relu(_conv(x, weights, channels, inner))
            part = ops.relu(_conv(part, weights, inner, inner, 3, stride))
            part = _conv(part, weights, inner, 4 * inner)
            x = x if index else _conv(x, weights, channels, 4 * inner, 1, stride)
            x, channels = ops.relu(ops.add(x, part)), 4 * inner
    return ovir.Model([_classes(x, weights, channels)], [image], "resnet50"), inputs


def mobilenet_v2(weights: Weights) -> Made:
    image, inputs = _image(224)
    x: Layer = ops.clamp(_conv(image, weights, 3, 32, 3, 2), 0.0, 6.0)
    channels = 32
    for factor, outputs, count, first in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for index in range(count):
            stride, wide = 1 if index else first, factor * channels
            part = x if factor == 1 else ops.clamp(_conv(x, weights, channels, wide), 0.0, 6.0)
            filters = weights(wide, 1, 1, 3, 3, inputs=9)
            part = ops.group_convolution(part, filters, [stride, stride], [1, 1], [1, 1], [1, 1])
            part = ops.clamp(ops.add(part, _bias(wide).reshape(1, -1, 1, 1)), 0.0, 6.0)
            part = _conv(part, weights, wide, outputs)
            x, channels = ops.add(x, part) if index else part, outputs
    x = ops.clamp(_conv(x, weights, channels, 1280), 0.0, 6.0)
    return ovir.Model([_classes(x, weights, 1280)], [image], "mobilenet_v2"), inputs


def vit_base(weights: Weights) -> Made:
    width, heads = 768, 12
    image, inputs = _image(224)
    filters = weights(width, 3, 16, 16, inputs=768)
    patches = ops.convolution(image, filters, [16, 16], [0, 0], [0, 0], [1, 1])
    x: Layer = ops.transpose(ops.reshape(patches, [1, width, 196], False), [0, 2, 1])
    x = ops.concat([weights(1, 1, width, inputs=1, form="f32"), x], 1)
    x = ops.add(x, weights(1, 197, width, inputs=1, form="f32"))
    for _ in range(12):
        x = _block(x, weights, width, heads)
    first = ops.gather(_layer_norm(x, width), np.array(0), np.array(1))
    return ovir.Model([_dense(first, weights, width, 1000)], [image], "vit_base"), inputs


# --------------------------------------------------------------------------- text


def encoder(weights: Weights, width: int, heads: int, layers: int, length: int = 128) -> Made:
    x = data = _input("data", [1, length, width], "f32")
    for _ in range(layers):
        x = _block(x, weights, width, heads)
    inputs = {"data": np.random.default_rng(1).standard_normal((1, length, width), np.float32)}
    return ovir.Model([x], [data], "encoder"), inputs


def bert_base(weights: Weights) -> Made:
    width, length = 768, 128
    tokens = _input("tokens", [1, length], "i64")
    x: Layer = ops.gather(weights(30_522, width, inputs=1), tokens, np.array(0))
    x = _layer_norm(ops.add(x, weights(1, length, width, inputs=1, form="f32")), width)
    for _ in range(12):
        x = _layer_norm(ops.add(x, _attention(x, weights, width, 12)), width)
        x = _layer_norm(ops.add(x, _mlp(x, weights, width)), width)
    inputs = {"tokens": np.arange(length, dtype=np.int64)[np.newaxis] * 37 % 30_522}
    return ovir.Model([x], [tokens], "bert_base"), inputs


def decoder(
    weights: Weights, width: int, wide: int, layers: int, heads: int, groups: int, vocabulary: int = 151_936
) -> Made:
    """Return a decoder like Qwen2 with a state, in the form that optimum-intel writes, and a prompt of 32 tokens.

    ``heads`` queries share ``groups`` keys and values. As exporters do, embeddings of 4-bit models have 8 bits.
    """
    size = width // heads
    tokens = _input("input_ids", [-1, -1], "i64")
    mask = _input("attention_mask", [-1, -1], "i64")
    positions = _input("position_ids", [-1, -1], "i64")
    beams = _input("beam_idx", [-1], "i32")
    is_int4 = weights.form.startswith("int4")
    words = weights(vocabulary, width, inputs=width, form="int8" if is_int4 else "")
    x: Layer = ops.gather(words, tokens, np.array(0))
    batch = ops.gather(ops.shape_of(tokens), np.array([0]), np.array(0))
    past_shape = ops.concat([batch, np.array([groups]), np.array([0]), np.array([size])], 0)
    nothing = ops.broadcast(np.float32(0), past_shape)
    turns = _rotations(positions, size)
    seen = _causal_mask(mask, tokens)
    sinks = []

    def remember(new: Layer, name: str) -> Layer:
        """Return all keys or values until now, repeated for the queries that share them."""
        past = ops.gather(ops.read_value(nothing, name, "f32", [-1, groups, -1, size]), beams, np.array(0))
        both = ops.concat([past, new], 2)
        sinks.append(ops.assign(both, name))
        repeated = ops.broadcast(
            ops.unsqueeze(both, [2]), np.array([1, 1, heads // groups, 1, 1]), None, "bidirectional"
        )
        return ops.reshape(repeated, [0, heads, -1, size], True)

    for index in range(layers):
        y = _rms_norm(x, width)
        q = _turned(_heads(_dense(y, weights, width, width), heads, size, -1), turns, size)
        k = _turned(_heads(_dense(y, weights, width, groups * size), groups, size, -1), turns, size)
        v = _heads(_dense(y, weights, width, groups * size), groups, size, -1)
        keys, values = remember(k, f"past_key_values.{index}.key"), remember(v, f"past_key_values.{index}.value")
        mixed = ops.transpose(ops.scaled_dot_product_attention(q, keys, values, seen), [0, 2, 1, 3])
        x = ops.add(x, _dense(ops.reshape(mixed, [0, 0, width], True), weights, width, width, False))
        y = _rms_norm(x, width)
        gate, up = (_dense(y, weights, width, wide, False) for _ in range(2))
        x = ops.add(x, _dense(ops.multiply(ops.swish(gate), up), weights, wide, width, False))
    logits = ops.matmul(_rms_norm(x, width), words, False, True)
    logits.outputs[0].names = {"logits"}
    prompt: Array = np.random.default_rng(1).integers(0, vocabulary, (1, 32))
    return ovir.Model([logits], [tokens, mask, positions, beams], "decoder", sinks=sinks), decoder_inputs(prompt)


def _rms_norm(x: Layer, width: int) -> Layer:
    mean = ops.reduce_mean(ops.power(x, np.float32(2)), [-1], keep_dims=True)
    scale = ops.divide(np.float32(1), ops.sqrt(ops.add(mean, np.float32(1e-6))))
    return ops.multiply(ops.multiply(x, scale), 1 + _bias(width))


def _rotations(positions: Layer, size: int) -> tuple[Layer, Layer]:
    """Return the cosines and sines that turn the pairs of a head at each position, [batch, 1, length, size]."""
    rates = (1e6 ** -(np.arange(0, size, 2) / size)).astype(np.float32).reshape(1, -1, 1)
    columns = ops.convert(ops.unsqueeze(positions, [1]), "f32")
    angles = ops.transpose(ops.matmul(rates, columns, False, False), [0, 2, 1])
    both = ops.unsqueeze(ops.concat([angles, angles], -1), [1])
    return ops.cos(both), ops.sin(both)


def _turned(x: Layer, turns: tuple[Layer, Layer], size: int) -> Layer:
    half, end = np.array([size // 2]), np.array([2**31 - 1])
    first = ops.slice(x, np.array([0]), half, np.array([1]), np.array([3]))
    second = ops.slice(x, half, end, np.array([1]), np.array([3]))
    crossed = ops.concat([ops.multiply(second, np.float32(-1)), first], -1)
    return ops.add(ops.multiply(x, turns[0]), ops.multiply(crossed, turns[1]))


def _causal_mask(mask: Layer, tokens: Layer) -> Layer:
    """Return 0 where a token may look and -65504 elsewhere, [batch, 1, new tokens, all tokens]."""
    zero, one = np.array(0), np.array(1)
    whole = ops.gather(ops.shape_of(mask), one, zero)
    new = ops.gather(ops.shape_of(tokens), one, zero)
    columns = ops.range(zero, whole, one, "i64")
    rows = ops.unsqueeze(ops.range(ops.subtract(whole, new), whole, one, "i64"), [1])
    is_past = ops.unsqueeze(ops.less_equal(columns, rows), [0, 1])
    is_token = ops.unsqueeze(ops.convert(mask, "boolean"), [1, 2])
    return ops.select(ops.logical_and(is_past, is_token), np.float32(0), np.float32(-65504))


def decoder_inputs(tokens: Array, past: int = 0) -> Inputs:
    """Return the inputs of a decoder for some tokens, [1, length], after ``past`` others."""
    length = past + tokens.shape[1]
    return {
        "input_ids": tokens,
        "attention_mask": np.ones((1, length), np.int64),
        "position_ids": np.arange(past, length)[np.newaxis],
        "beam_idx": np.zeros(1, np.int32),
    }


# --------------------------------------------------------------------------- the list

Maker = Callable[[Weights], Made]

_OTHERS: dict[str, Maker] = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "vit_base": vit_base,
    "bert_base": bert_base,
}
_DECODERS: dict[str, Maker] = {
    "decoder_0_5b": partial(decoder, width=896, wide=4864, layers=24, heads=14, groups=2),
    "decoder_1_5b": partial(decoder, width=1536, wide=8960, layers=28, heads=12, groups=2),
}
MODELS: Mapping[str, tuple[Maker, str]] = {
    **{f"{name}_{form}": (make, form) for name, make in _OTHERS.items() for form in ("f32", "f16", "int8")},
    **{
        f"{name}_{form}": (make, form)
        for name, make in _DECODERS.items()
        for form in ("f32", "f16", "int8", "int4_sym", "int4_asym")
    },
}
"""Functions that make the models, with the form of the weights, by name."""


def is_decoder(name: str) -> bool:
    return name.startswith("decoder")


def write(name: str, folder: Path) -> Path:
    """Write a model and its inputs, unless the folder holds them; return the path of the .xml file."""
    path = folder / name / "model.xml"
    if not (path.parent / "inputs.npz").exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        make, form = MODELS[name]
        model, inputs = make(Weights(form))
        ovir.save_model(model, path)
        np.savez(path.parent / "inputs.npz", **inputs)
    return path
