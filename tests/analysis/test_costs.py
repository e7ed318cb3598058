"""The cost of each layer: known networks, bodies, weights and their readers, states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.costs import by_prefix, by_type, costs_of, sized_call
from ovir.analysis.summary import summarize


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


class Network:
    """A network whose weights are inputs, because its costs depend on their shapes alone."""

    def __init__(self, *shape: int) -> None:
        self.parameters = [ops.parameter(shape, "f32")]
        self.x = self.parameters[0].output()

    def weights(self, *shape: int) -> ovir.Layer:
        self.parameters.append(ops.parameter(shape, "f32"))
        return self.parameters[-1]

    def conv(self, outputs: int, kernel: int, stride: int = 1, pad: int | None = None, groups: int = 1) -> Any:
        inputs, around = self.x.shape[1].length, [kernel // 2 if pad is None else pad] * 2
        if groups > 1:
            weights = self.weights(groups, outputs // groups, inputs // groups, kernel, kernel)
            layer = ops.group_convolution(self.x, weights, [stride] * 2, around, around, [1, 1])
        else:
            weights = self.weights(outputs, inputs, kernel, kernel)
            layer = ops.convolution(self.x, weights, [stride] * 2, around, around, [1, 1])
        self.x = layer.output()
        return self.x

    def pool(self, kernel: int, stride: int, pad: int = 0, rounding: str = "floor") -> None:
        self.x = ops.max_pool(self.x, [stride] * 2, [1, 1], [pad] * 2, [pad] * 2, [kernel] * 2, rounding).output(0)

    def linear(self, *outputs: int) -> None:
        for count in outputs:
            self.x = ops.matmul(self.x, self.weights(count, self.x.shape[-1].length), False, True).output()

    def classify(self, *outputs: int, flat: bool = False) -> None:
        self.x = ops.reshape(self.x if flat else ops.reduce_mean(self.x, [2, 3], True), [1, -1], False).output()
        self.linear(*outputs)

    @property
    def giga_macs(self) -> float:
        return summarize(ovir.Model([self.x], self.parameters)).macs / 1e9


def alexnet() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 11, 4, 2), net.pool(3, 2)
    net.conv(192, 5), net.pool(3, 2)
    net.conv(384, 3), net.conv(256, 3), net.conv(256, 3), net.pool(3, 2)
    net.classify(4096, 4096, 1000, flat=True)
    return net


def vgg(*counts: int) -> Network:
    net = Network(1, 3, 224, 224)
    for count, width in zip(counts, (64, 128, 256, 512, 512), strict=True):
        for _ in range(count):
            net.conv(width, 3)
        net.pool(2, 2)
    net.classify(4096, 4096, 1000, flat=True)
    return net


def resnet(*counts: int, bottleneck: bool) -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 7, 2), net.pool(3, 2, 1)
    for number, count in enumerate(counts):
        width = 64 << number
        for block in range(count):
            stride, entry = 2 if number and not block else 1, net.x
            outputs = width * 4 if bottleneck else width
            branch = [(width, 1, 1), (width, 3, stride), (outputs, 1, 1)] if bottleneck else [(width, 3, stride), (width, 3, 1)]
            for layer in branch:
                result = net.conv(*layer)
            if entry.shape != result.shape:
                net.x = entry
                entry = net.conv(outputs, 1, stride)
            net.x = ops.add(result, entry).output()
    net.classify(1000)
    return net


def mobilenet_v1() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(32, 3, 2)
    for width, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        inputs = net.x.shape[1].length
        net.conv(inputs, 3, stride, groups=inputs), net.conv(width, 1)
    net.classify(1000)
    return net


def mobilenet_v2() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(32, 3, 2)
    for factor, width, count, stride in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for block in range(count):
            inner = net.x.shape[1].length * factor
            if factor > 1:
                net.conv(inner, 1)
            net.conv(inner, 3, 1 if block else stride, groups=inner), net.conv(width, 1)
    net.conv(1280, 1), net.classify(1000)
    return net


def squeezenet() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 3, 2, 0)
    for squeeze, wide in ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)):
        if (squeeze, wide) in ((16, 64), (32, 128), (48, 192)) and net.x.shape[1].length != 2 * wide:
            net.pool(3, 2, rounding="ceil")
        entry = net.conv(squeeze, 1)
        one = net.conv(wide, 1)
        net.x = entry
        net.x = ops.concat([one, net.conv(wide, 3)], 1).output()
    net.conv(1000, 1)
    return net


def densenet121() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(64, 7, 2), net.pool(3, 2, 1)
    for number, count in enumerate((6, 12, 24, 16)):
        if number:
            net.conv(net.x.shape[1].length // 2, 1), net.pool(2, 2)
        for _ in range(count):
            entry = net.x
            net.conv(128, 1)
            net.x = ops.concat([entry, net.conv(32, 3)], 1).output()
    net.classify(1000)
    return net


def transformer(net: Network, layers: int, heads: int) -> None:
    """Add encoder layers without biases and normalization, which have no multiply-accumulates."""
    _, length, width = net.x.shape.to_tuple()
    for _ in range(layers):
        entry, parts = net.x, []
        for _ in range(3):
            net.x = entry
            net.linear(width)
            split = ops.reshape(net.x, [1, length, heads, width // heads], False)
            parts.append(ops.transpose(split, [0, 2, 1, 3]))
        attended = ops.scaled_dot_product_attention(*parts)
        net.x = ops.reshape(ops.transpose(attended, [0, 2, 1, 3]), [1, length, width], False).output()
        net.linear(width, 4 * width, width)


def vit_b16() -> Network:
    net = Network(1, 3, 224, 224)
    net.conv(768, 16, 16, 0)
    patches = ops.transpose(ops.reshape(net.x, [1, 768, 196], False), [0, 2, 1])
    net.x = ops.concat([net.weights(1, 1, 768), patches], 1).output()
    transformer(net, 12, 12)
    net.x = ops.gather(net.x, 0, 1).output()
    net.linear(1000)
    return net


def bert_base() -> Network:
    net = Network(1, 128, 768)
    transformer(net, 12, 12)
    return net


@pytest.mark.parametrize(
    ("network", "published"),
    [
        # Multiply-accumulates in 10**9, without those of biases and normalization, rounded as published.
        (alexnet, 0.71),  # torchvision's table of weights, as all but those that name a paper
        (lambda: vgg(1, 1, 2, 2, 2), 7.61),
        (lambda: vgg(2, 2, 3, 3, 3), 15.47),
        (lambda: resnet(2, 2, 2, 2, bottleneck=False), 1.81),
        (lambda: resnet(3, 4, 6, 3, bottleneck=False), 3.66),
        (lambda: resnet(3, 4, 6, 3, bottleneck=True), 4.09),
        (lambda: resnet(3, 4, 23, 3, bottleneck=True), 7.80),
        (mobilenet_v1, 0.569),  # Howard et al., MobileNets, table 4
        (mobilenet_v2, 0.30),  # Sandler et al., MobileNetV2, table 4
        (squeezenet, 0.35),
        (densenet121, 2.83),
        (vit_b16, 17.56),
        (bert_base, 22.5 / 2),  # Sun et al., MobileBERT, table 4, in operations
    ],
)
def test_known_networks(network: Callable[[], Network], published: float) -> None:
    rounding = 0.005 if published in (0.30, 0.35, 0.71) else 0
    assert network().giga_macs == pytest.approx(published, rel=0.01, abs=rounding)
