"""Networks as static exporters write them: each is a function of its sizes, with the same weights for all of them.

Targets of Reshape, lengths, ends, grids and masks are constants for the given sizes.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import ovir
from ovir import PartialShape
from ovir import opset15 as ops
from ovir.graph.layers import Layer
from support.batches import Tensor, conv, weights


def picture(height: int, width: int) -> Layer:
    return ops.parameter([1, 3, height, width], "f32", name="image")


def halved(data: Tensor) -> Tensor:
    return ops.max_pool(data, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)


def product(data: Tensor, inputs: int, outputs: int, seed: int = 0) -> Layer:
    return ops.matmul(data, weights(inputs, outputs, seed=seed), False, False)


def attended(tokens: Tensor, length: int, bias: Any = None, batch: int = 1) -> Layer:
    """Attention of two heads over tokens of shape [batch, length, 8], with the lengths in its Reshapes."""
    q, k, v = (
        ops.transpose(ops.reshape(product(tokens, 8, 8, i), [batch, length, 2, 4], False), [0, 2, 1, 3])
        for i in range(3)
    )
    scores = ops.matmul(q, k, False, True)
    found = ops.matmul(ops.softmax(scores if bias is None else scores + bias, -1), v, False, False)
    return ops.reshape(ops.transpose(found, [0, 2, 1, 3]), [batch, length, 8], False)


def model(inputs: Layer, *outputs: Tensor) -> ovir.Model:
    return ovir.Model([ops.result(port) for port in outputs], [inputs], "network")


# --------------------------------------------------------------------------- text, speech and other sequences


def crnn(width: int) -> ovir.Model:
    """Text recognition: the columns of an image are the steps of an LSTM in two directions."""
    x, steps = ops.parameter([1, 1, 32, width], "f32", name="image"), width // 4
    columns = halved(ops.relu(conv(halved(ops.relu(conv(x, 1, 8))), 8, 16)))
    columns = ops.transpose(ops.reduce_mean(columns, [2], False), [0, 2, 1])
    zeros, lengths = np.zeros((1, 2, 12), np.float32), ops.broadcast(np.array(steps), [1])
    w, r, b = weights(2, 48, 16), weights(2, 48, 12), weights(2, 48)
    read = ops.lstm_sequence(columns, zeros, zeros, lengths, w, r, b, 12, "bidirectional")
    joined = ops.reshape(ops.transpose(read.output(0), [2, 0, 1, 3]), [steps, 1, 24], False, name="joined")
    return model(x, product(joined, 24, 11))


def tagger(length: int) -> ovir.Model:
    """A GRU over the time steps as its batch, whose initial states an exporter has written for all of them."""
    x = ops.parameter([1, length, 6], "f32", name="x")
    rows = ops.reshape(x, [length, 3, 2], False)
    w, r, b = weights(1, 12, 2), weights(1, 12, 4), weights(1, 12)
    zeros, lengths = np.zeros((length, 1, 4), np.float32), np.full(length, 3, np.int64)
    read = ops.gru_sequence(rows, zeros, lengths, w, r, b, 4, "forward")
    return model(x, product(ops.reshape(read.output(1), [1, length, 4], False), 4, 5))


def encoder(length: int) -> ovir.Model:
    x = ops.parameter([1, length, 8], "f32", name="x")
    return model(x, attended(attended(x, length) + x, length))


def decoder(length: int) -> ovir.Model:
    """A decoder with a causal mask and without positions."""
    ids = ops.parameter([1, length], "i64", name="ids")
    tokens = ops.gather(weights(10, 8), ops.floor_mod(ids, np.array(10)), 0)
    mask = np.triu(np.full((1, 1, length, length), np.finfo(np.float32).min), 1)
    return model(ids, product(attended(tokens, length, ops.constant(mask, name="mask")), 8, 10))


def relative(length: int) -> ovir.Model:
    """Attention whose bias is looked up by the distance of two positions, clamped to 3 (T5, Shaw et al.)."""
    x, steps = ops.parameter([1, length, 8], "f32", name="x"), np.arange(length)
    index = ops.constant(np.clip(steps[None] - steps[:, None], -3, 3) + 3, name="distances")
    bias = ops.transpose(ops.gather(weights(7, 2), index, 0), [2, 0, 1])
    return model(x, attended(x, length, ops.unsqueeze(bias, 0)))


def tcn(length: int) -> ovir.Model:
    """Dilated convolutions that are padded on both sides and cropped to the past."""
    x = ops.parameter([1, 4, length], "f32", name="x")
    data: Tensor = x
    for d in (1, 2, 4):
        full = ops.convolution(data, weights(4, 4, 3, seed=d), [1], [2 * d], [2 * d], [d])
        cropped = ops.slice(full, [0], [length], [1], [2], name=f"crop{d}")
        data = ops.relu(cropped) + data
    flat = ops.reshape(data, [1, 4 * length], False)
    ends = ops.strided_slice(data, [0, 0, 1], [1, 4, length - 1], [1, 1, 1], [1, 1, 0], [1, 1, 0])
    return model(x, flat, ends)


def mel(length: int) -> ovir.Model:
    """A front end for speech: mirrored edges, windowed spectra, a bank of filters, the logarithm, half the frames."""
    x, frames = ops.parameter([1, length], "f32", name="signal"), length // 8 + 1
    padded = ops.reshape(
        ops.pad(ops.reshape(x, [1, 1, length], False), [0, 0, 8], [0, 0, 8], "reflect"), [1, -1], False
    )
    parts = ops.stft(padded, np.hanning(16).astype(np.float32), np.array(16), np.array(8), True)
    power = ops.reshape(ops.reduce_sum(parts * parts, [3], False), [1, 9, frames], False)
    bands = ops.log(ops.matmul(np.abs(weights(5, 9)), power, False, False) + np.float32(1e-3))
    half = ops.convolution(bands, weights(6, 5, 3), [2], [1], [1], [1])
    return model(x, ops.reshape(ops.transpose(half, [0, 2, 1]), [(frames + 1) // 2, 6], False))


def iterator(length: int, part: int = 1) -> ovir.Model:
    """A TensorIterator over the slices of time, whose results have their number in a Reshape."""
    x = ops.parameter([1, length, 4], "f32", name="x")
    step, state = ops.parameter([1, part, 4], "f32"), ops.parameter([1, 4], "f32")
    total = ops.add(ops.reduce_mean(ops.reshape(step, [part, 4], False), [0], True), ops.tanh(state))
    again, out = ops.result(total), ops.result(ops.reshape(total, [1, 1, 4], False))
    layer = ops.tensor_iterator(name="iterator")
    layer.set_body(ovir.Model([again, out], [step, state], "body"))
    layer.set_sliced_input(step, x, 0, part, part, -1, 1)
    layer.set_merged_input(state, np.zeros((1, 4), np.float32), again)
    return model(x, ops.reshape(layer.get_concatenated_slices(out, 0, 1, 1, -1, 1), [length // part, 4], False))


def chunks(length: int) -> ovir.Model:
    """A TensorIterator over three steps at a time."""
    return iterator(length, 3)


def loop(length: int) -> ovir.Model:
    """A Loop with its number of iterations, each of which adds a step of the input to all steps."""
    x = ops.parameter([1, length, 4], "f32", name="x")
    every, at, state = (
        ops.parameter([1, length, 4], "f32"),
        ops.parameter([], "i64"),
        ops.parameter([1, length, 4], "f32"),
    )
    row = ops.reshape(ops.gather(every, at, 1), [1, 1, 4], False)
    total = ops.reshape(ops.tanh(state + row), [1, length, 4], False, name="inside")
    again, going = ops.result(total), ops.result(ops.constant(np.array(True)))
    layer = ops.loop(np.array(length), np.array(True), name="loop")
    layer.set_body(ovir.Model([again, going], [every, at, state], "body"))
    layer.set_special_body_ports([1, 1])
    layer.set_invariant_input(every, x)
    layer.set_merged_input(state, np.zeros((1, length, 4), np.float32), again)
    return model(x, ops.reshape(layer.get_iter_value(again, -1), [4 * length], False))


def backwards(length: int) -> ovir.Model:
    """Steps in reversed order, twice in different ways, pairs of adjacent ones, and the last step."""
    x, steps = ops.parameter([1, length, 4], "f32", name="x"), np.arange(length)
    turned = ops.reverse_sequence(ops.tanh(x), np.array([length]), 0, 1) - ops.gather(x, steps[::-1].copy(), 1)
    pairs = ops.gather(x, np.stack([steps[:-1], steps[1:]]), 1, name="pairs")
    return model(x, turned, pairs, ops.gather(x, np.array(length - 1), 1))


def halves(length: int) -> ovir.Model:
    """Both halves, in two ways, the last three steps, and the last but one."""
    x = ops.parameter([1, length, 4], "f32", name="x")
    first, second = ops.variadic_split(x, 1, [length // 2] * 2).outputs
    third = ops.slice(x, [length // 2], [length], [1], [1])
    last = ops.strided_slice(x, [0, length - 3, 0], [1, length, 4], [1, 1, 1], [0, 0, 0], [0, 0, 0])
    return model(x, first - third, second, last, ops.gather(x, np.array(length - 2), 1))


def mixed(length: int) -> ovir.Model:
    """Reshapes that put other axes first, without a Transpose."""
    x = ops.parameter([1, length, 6], "f32", name="x")
    turned = ops.reshape(ops.relu(x), [6, length], False)
    return model(x, turned, ops.reshape(ops.reshape(x, [6 * length], False), [1, 6, length, 1], False))


def repeated(length: int) -> ovir.Model:
    """What is repeated for the size of another tensor: rows, in two ways, and a mean, in two ways."""
    x = ops.parameter([1, length], "f32", name="x")
    row, image = ops.reshape(x, [1, 1, length], False), ops.reshape(x, [1, 1, 1, length], False)
    rows = ops.broadcast(row, [1, length, length]) - ops.tile(row, [1, length, 1]) * np.float32(2)
    mean = ops.interpolate(ops.reduce_mean(image, [2, 3], True), [1, length], "nearest", "sizes", axes=[2, 3])
    return model(x, rows, ops.concat([image, mean], 1), x + ops.tile(ops.reduce_mean(x, [1], True), [1, length]))


def table(length: int) -> ovir.Model:
    """Rows of longer tables: those of the positions, and the first ones."""
    x = ops.parameter([1, length, 8], "f32", name="x")
    rows = ops.gather(weights(64, 8), np.arange(length)[None], 0)
    first = ops.slice(weights(1, 64, 8), [0], [length], [1], [1])
    return model(x, attended(x + rows, length) + first)


def angles(length: int) -> ovir.Model:
    """Waves of the positions that are computed, and a product with the positions as vectors of 0 and 1."""
    x = ops.parameter([1, length, 8], "f32", name="x")
    turned = np.arange(length, dtype=np.float32).reshape(1, -1, 1) * ops.constant(weights(1, 1, 8))
    ones = ops.one_hot(np.arange(length), np.array(length), np.float32(1), np.float32(0), -1)
    return model(x, x * ops.cos(turned) + ops.sin(turned), ops.matmul(ones, x, False, False))


# --------------------------------------------------------------------------- images


def any_batch(height: int, width: int) -> ovir.Model:
    """Reshapes that leave the number of images open, which only -1 can; two join it with other axes."""
    x = ops.parameter([-1, 3, height, width], "f32", name="image")
    tokens = ops.transpose(ops.reshape(conv(x, 3, 4), [-1, 4, height * width], False), [0, 2, 1])
    channels = ops.reshape(ops.relu(x), [-1, height * width], False)
    return model(
        x,
        ops.reshape(product(tokens, 4, 4), [-1, height * width * 4], False),
        channels,
        ops.reshape(channels, [-1], False),
    )


def unet(height: int, width: int) -> ovir.Model:
    """Two levels down and up again, with sizes in the Interpolates and the tensors before in Concats."""
    x = picture(height, width)
    first = ops.relu(conv(x, 3, 4))
    second = ops.relu(conv(halved(first), 4, 4))
    deep: Tensor = ops.relu(conv(halved(second), 4, 4))
    for level, kept in ((2, second), (1, first)):
        sizes = [height // level, width // level]
        deep = ops.interpolate(deep, sizes, "linear_onnx", "sizes", axes=[2, 3], name=f"up{level}")
        deep = ops.relu(conv(ops.concat([deep, kept], 1), 8, 4))
    return model(x, deep)


def grid(height: int, width: int) -> Any:
    """The centres of cells, x before y: [2, height, width]."""
    return np.stack(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)).astype(np.float32)


def detector(height: int, width: int) -> ovir.Model:
    """Boxes of two anchors for each cell of two levels, decoded by the grid of a level (YOLOv5)."""
    x, found = picture(height, width), []
    for stride in (4, 8):
        h, w = height // stride, width // stride
        data = ops.convolution(x, weights(10, 3, stride, stride), [stride] * 2, [0, 0], [0, 0], [1, 1])
        cells = ops.transpose(ops.reshape(data, [1, 2, 5, h, w], False), [0, 1, 3, 4, 2])
        parts = ops.variadic_split(ops.sigmoid(cells), 4, [2, 2, 1])
        grids = np.broadcast_to(grid(h, w).transpose(1, 2, 0), (1, 2, h, w, 2)).copy()
        sizes = np.broadcast_to(np.array([[3, 4], [8, 6]], np.float32).reshape(1, 2, 1, 1, 2), (1, 2, h, w, 2)).copy()
        centres = (parts.output(0) + ops.constant(grids, name=f"grid{stride}")) * np.float32(stride)
        boxes = ops.concat([centres, parts.output(1) * sizes, parts.output(2)], 4)
        found.append(ops.reshape(boxes, [1, 2 * h * w, 5], False))
    return model(x, ops.concat(found, 1))


def anchor_free(height: int, width: int) -> ovir.Model:
    """Distances from the points of three levels in one list, with the strides of the points (YOLOv8)."""
    x, levels, points, strides = picture(height, width), [], [], []
    for stride in (4, 8, 16):
        h, w = height // stride, width // stride
        data = ops.convolution(x, weights(6, 3, stride, stride), [stride] * 2, [0, 0], [0, 0], [1, 1])
        levels.append(ops.reshape(data, [1, 6, h * w], False))
        points.append(grid(h, w).reshape(1, 2, -1))
        strides.append(np.full((1, h * w), stride, np.float32))
    split = ops.variadic_split(ops.concat(levels, 2), 1, [4, 2])
    near, far = (ops.slice(ops.relu(split.output(0)), [i], [i + 2], [1], [1]) for i in (0, 2))
    anchors = ops.constant(np.concatenate(points, 2), name="anchors")
    boxes = ops.concat([anchors - near, anchors + far], 1) * np.concatenate(strides, 1)
    return model(x, ops.concat([boxes, ops.sigmoid(split.output(1))], 1))


def windows(height: int, width: int) -> ovir.Model:
    """Attention in windows of four by four tokens, with a bias by the relative positions in a window (Swin)."""
    x, h, w = picture(height, width), height // 2, width // 2
    data = ops.convolution(x, weights(8, 3, 2, 2), [2, 2], [0, 0], [0, 0], [1, 1])
    rows = ops.reshape(ops.transpose(ops.reshape(data, [1, 8, h * w], False), [0, 2, 1]), [1, h, w, 8], False)
    parts = ops.transpose(ops.reshape(rows, [1, h // 4, 4, w // 4, 4, 8], False), [0, 1, 3, 2, 4, 5])
    count, at = h * w // 16, np.indices((4, 4)).reshape(2, -1)
    index = np.array([7, 1]) @ (at[:, :, None] - at[:, None] + 3).reshape(2, -1)
    bias = ops.reshape(ops.gather(weights(49, 2), index, 0), [16, 16, 2], False)
    tokens = ops.reshape(parts, [count, 16, 8], False)
    found = attended(tokens, 16, ops.unsqueeze(ops.transpose(bias, [2, 0, 1]), 0), count)
    back = ops.transpose(ops.reshape(found, [1, h // 4, w // 4, 4, 4, 8], False), [0, 1, 3, 2, 4, 5])
    return model(x, ops.reshape(back, [1, h, w, 8], False))


def filled(height: int, width: int) -> ovir.Model:
    """Attention in windows that begin two pixels later, of an image that is filled up to whole windows (Swin)."""
    x = ops.parameter([1, height, width, 8], "f32", name="x")
    h, w = -(-height // 4), -(-width // 4)
    data = ops.pad(x, [0, 0, 0, 0], [0, 4 * h - height, 4 * w - width, 0], "constant", np.float32(0))
    data = ops.reshape(ops.roll(data, [-2, -2], [1, 2]), [1, h, 4, w, 4, 8], False)
    tokens = ops.reshape(ops.transpose(data, [0, 1, 3, 2, 4, 5]), [h * w, 16, 8], False)
    back = ops.reshape(attended(tokens, 16, None, h * w), [1, h, w, 4, 4, 8], False)
    back = ops.reshape(ops.transpose(back, [0, 1, 3, 2, 4, 5]), [1, 4 * h, 4 * w, 8], False)
    cut = ops.slice(ops.roll(back, [2, 2], [1, 2]), [0, 0], [height, width], [1, 1], [1, 2])
    return model(x, ops.reshape(cut, [1, height * width, 8], False))


def dense(height: int, width: int) -> ovir.Model:
    """Patches behind a class token, which become an image again without it."""
    x, h, w = picture(height, width), height // 4, width // 4
    data = ops.convolution(x, weights(8, 3, 4, 4), [4, 4], [0, 0], [0, 0], [1, 1])
    tokens = ops.transpose(ops.reshape(data, [1, 8, h * w], False), [0, 2, 1])
    tokens = attended(ops.concat([weights(1, 1, 8), tokens], 1), h * w + 1)
    patches = ops.transpose(ops.slice(tokens, [1], [h * w + 1], [1], [1]), [0, 2, 1])
    large = ops.interpolate(ops.reshape(patches, [1, 8, h, w], False), [height, width], "nearest", "sizes", axes=[2, 3])
    return model(x, large)


def keypoints(height: int, width: int) -> ovir.Model:
    """The expected position in each heat map (soft-argmax), by evenly spaced positions from -1 to 1."""
    x, h, w = picture(height, width), height // 4, width // 4
    maps = ops.reshape(halved(halved(conv(x, 3, 5))), [1, 5, h * w], False)
    maps = ops.reshape(ops.softmax(maps, 2), [1, 5, h, w], False)
    along = [
        ops.reduce_sum(ops.reduce_sum(maps, [axis], False) * np.linspace(-1, 1, size, dtype=np.float32), [2], True)
        for axis, size in ((2, w), (3, h))
    ]
    return model(x, ops.concat(along, 2))


def pooled(height: int, width: int) -> ovir.Model:
    """Channels that are weighted by means of the whole image, and classes of its largest values; windows of its size."""
    x = picture(height, width)
    data, size = conv(x, 3, 4), [height, width]
    mean = ops.avg_pool(data, size, [0, 0], [0, 0], size, False, "floor", name="pool")
    weighted = data * ops.interpolate(ops.sigmoid(mean), size, "nearest", "sizes", axes=[2, 3])
    largest = ops.max_pool(weighted, [1, 1], [1, 1], [0, 0], [0, 0], size).output(0)
    return model(x, weighted, product(ops.reshape(largest, [1, 4], False), 4, 5))


def pyramid(height: int, width: int) -> ovir.Model:
    """Means of one, four and sixteen parts of the image, which are enlarged to its size."""
    x, levels = picture(height, width), []
    for n in (1, 2, 4):
        parts = conv(ops.adaptive_avg_pool(x, np.array([n, n])), 3, 2)
        levels.append(ops.interpolate(parts, [height, width], "linear_onnx", "sizes", axes=[2, 3]))
    return model(x, ops.concat([x, *levels], 1))


def shuffle(height: int, width: int) -> ovir.Model:
    """Channels become pixels (super-resolution), and the enlarged image is added."""
    x = picture(height, width)
    parts = ops.transpose(ops.reshape(conv(x, 3, 12), [1, 3, 2, 2, height, width], False), [0, 1, 4, 2, 5, 3])
    large = ops.interpolate(x, [2 * height, 2 * width], "cubic", "sizes", axes=[2, 3])
    return model(x, ops.reshape(parts, [1, 3, 2 * height, 2 * width], False) + large)


def strided(height: int, width: int) -> ovir.Model:
    """Convolutions of stride 2, whose sizes, rounded up, are in Reshapes around a product."""
    x, h, w = picture(height, width), (height + 1) // 2, (width + 1) // 2
    data = ops.convolution(x, weights(4, 3, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1])
    rows = ops.transpose(ops.reshape(data, [1, 4, h * w], False), [0, 2, 1])
    back = ops.reshape(ops.transpose(product(rows, 4, 4), [0, 2, 1]), [1, 4, h, w], False)
    h, w = (h + 1) // 2, (w + 1) // 2
    data = ops.convolution(ops.relu(back), weights(4, 4, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1])
    return model(x, ops.reshape(data, [4, h, w], False))


def groups(height: int, width: int) -> ovir.Model:
    """A normalization of groups of channels by Reshapes."""
    x = picture(height, width)
    data = ops.reshape(conv(x, 3, 4), [1, 2, 2 * height * width], False)
    data = ops.reshape(ops.mvn(data, [2], True, 1e-5, "inside_sqrt"), [1, 4, height, width], False)
    return model(x, data * weights(1, 4, 1, 1) + ops.broadcast(weights(4), [1, 4, height, width], [1], "explicit"))


def padded(height: int, width: int) -> ovir.Model:
    """A tiled background, and a frame that is cut off again."""
    x = picture(height, width)
    large = conv(ops.pad(x, [0, 0, 2, 2], [0, 0, 2, 2], "edge"), 3, 3)
    cut = ops.slice(large, [2, 2], [height + 2, width + 2], [1, 1], [2, 3])
    behind = ops.tile(weights(1, 3, 1, 1), [1, 1, height, width])
    return model(x, ops.reshape(cut + behind, [3, height * width], False))


# --------------------------------------------------------------------------- networks that hold learned sizes


def vit(height: int, width: int) -> ovir.Model:
    """Patches with learned positions."""
    x, count = picture(height, width), height * width // 16
    data = ops.convolution(x, weights(8, 3, 4, 4), [4, 4], [0, 0], [0, 0], [1, 1])
    tokens = ops.transpose(ops.reshape(data, [1, 8, count], False), [0, 2, 1])
    tokens = ops.concat([weights(1, 1, 8), tokens], 1) + ops.constant(weights(1, count + 1, 8), name="positions")
    return model(x, attended(tokens, count + 1))


def classifier(height: int, width: int) -> ovir.Model:
    """A product of all pixels."""
    x, count = picture(height, width), height * width
    flat = ops.reshape(halved(conv(x, 3, 4)), [1, count], False)
    return model(x, ops.matmul(flat, ops.constant(weights(count, 5), name="weights"), False, False))


def shifted(length: int) -> ovir.Model:
    """Windows of four steps, the last of which was put together of both ends, so that a mask divides it (Swin)."""
    x, count = ops.parameter([1, length, 8], "f32", name="x"), length // 4
    parts, mask = ops.reshape(x, [count, 4, 8], False), np.zeros((count, 4, 4), np.float32)
    mask[-1, :2, 2:] = mask[-1, 2:, :2] = -100
    scores = ops.matmul(parts, parts, False, True) + ops.constant(mask, name="mask")
    return model(x, ops.reshape(ops.matmul(ops.softmax(scores, -1), parts, False, False), [1, length, 8], False))


def sinusoidal(length: int) -> ovir.Model:
    """A table of waves over the positions."""
    x = ops.parameter([1, length, 8], "f32", name="x")
    waves = np.sin(np.arange(length)[:, None] / 10 ** np.arange(0, 4, 0.5)).astype(np.float32)
    return model(x, attended(x + ops.constant(waves, name="waves"), length))


def averaged(length: int) -> ovir.Model:
    """A mean whose divisor is a number, which no shape shows."""
    x = ops.parameter([1, length, 8], "f32", name="x")
    return model(x, ops.reduce_sum(attended(x, length), [1], False) / ops.constant(np.float32(length), name="divisor"))


Sizes = tuple[int, ...]
Make = Callable[..., ovir.Model]
ADAPTABLE: dict[Make, tuple[Sizes, Sizes, Sizes]] = {
    crnn: ((64,), (32,), (140,)),
    tagger: ((6,), (5,), (11,)),
    encoder: ((8,), (5,), (13,)),
    decoder: ((8,), (5,), (13,)),
    relative: ((8,), (5,), (13,)),
    tcn: ((16,), (11,), (40,)),
    mel: ((64,), (80,), (131,)),
    iterator: ((4,), (3,), (9,)),
    chunks: ((12,), (21,), (6,)),
    loop: ((4,), (3,), (9,)),
    backwards: ((6,), (5,), (11,)),
    halves: ((12,), (20,), (14,)),
    mixed: ((12,), (5,), (20,)),
    repeated: ((12,), (5,), (20,)),
    table: ((8,), (5,), (13,)),
    angles: ((8,), (5,), (13,)),
    any_batch: ((8, 8), (5, 12), (16, 3)),
    unet: ((16, 16), (32, 8), (20, 28)),
    detector: ((32, 32), (16, 40), (64, 24)),
    anchor_free: ((32, 32), (16, 48), (64, 32)),
    windows: ((16, 16), (8, 16), (40, 24)),
    filled: ((10, 10), (7, 13), (17, 5)),
    dense: ((16, 16), (32, 8), (20, 24)),
    keypoints: ((32, 32), (16, 40), (20, 12)),
    pooled: ((8, 8), (5, 12), (16, 3)),
    pyramid: ((16, 16), (5, 12), (16, 7)),
    shuffle: ((8, 8), (5, 12), (16, 3)),
    strided: ((3, 4), (9, 20), (16, 7)),
    groups: ((8, 8), (5, 12), (16, 3)),
    padded: ((8, 8), (5, 12), (16, 3)),
}
"""Networks, each with the sizes that it is built for first, and two others."""
REFUSED: dict[Make, tuple[Sizes, Sizes, str]] = {
    vit: ((16, 16), (16, 24), r"'positions'.*\[1,17,8\]"),
    classifier: ((8, 8), (16, 16), r"'weights'.*\[64,5\]"),
    shifted: ((16,), (24,), r"'mask'.*\[4,4,4\]"),
    sinusoidal: ((8,), (5,), r"'waves'.*\[8,8\]"),
}
"""Networks that hold data for one size, with two sizes, and what a refusal names."""


@cache
def built(make: Make, sizes: Sizes) -> ovir.Model:
    """Return a network for the given sizes, which all tests share: only its clones are edited."""
    return make(*sizes)


@cache
def expected(make: Make, sizes: Sizes) -> tuple[list[Any], list[Any]]:
    """Return random inputs of a network for the given sizes, and its results."""
    network = built(make, sizes)
    feeds = list(ovir.random_inputs(network, 5).values())
    return feeds, results(network, feeds)


def opened(make: Make, sizes: Sizes, *others: Sizes) -> PartialShape:
    """Return the shape of the input at the given sizes, with -1 for what differs at the others."""
    shapes = [built(make, each).inputs[0].shape for each in (sizes, *others)]
    return PartialShape([dims[0] if len(set(dims)) == 1 else -1 for dims in zip(*shapes, strict=True)])


def results(model: ovir.Model, feeds: list[Any]) -> list[Any]:
    return list(ovir.compile_model(model)(feeds).values())


def require_equal(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
