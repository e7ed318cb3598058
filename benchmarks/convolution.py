"""Time convolutions against OpenVINO's CPU plugin at f32, both in this process, turn by turn.

    python -m benchmarks.convolution [REGEX]      the layers whose name matches, or all

The ratio is ovir's time over OpenVINO's, each the best of many runs: below 1 ovir is the faster one.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import numpy as np
import openvino
import openvino.opset13 as ops

from benchmarks.common import geometric_mean, in_turns, infer_requests, largest_difference


@dataclass(frozen=True)
class Layer:
    """A convolution: the filters of a grouped one have one dimension more than the data; transposed ones are marked."""

    name: str
    data: tuple[int, ...]
    filters: tuple[int, ...]
    stride: int = 1
    pad: int = 0
    dilation: int = 1
    transposed: bool = False

    def model(self) -> openvino.Model:
        axes = len(self.data) - 2
        rng = np.random.default_rng(0)
        parameter = ops.parameter(self.data, np.float32, "data")
        filters = ops.constant(rng.standard_normal(self.filters, np.float32))
        strides, pads, dilations = [self.stride] * axes, [self.pad] * axes, [self.dilation] * axes
        grouped = len(self.filters) > len(self.data)
        if self.transposed:
            make = ops.group_convolution_backprop_data if grouped else ops.convolution_backprop_data
            node = make(parameter, filters, strides, pads_begin=pads, pads_end=pads, dilations=dilations)
        else:
            make = ops.group_convolution if grouped else ops.convolution
            node = make(parameter, filters, strides, pads, pads, dilations)
        return openvino.Model([node], [parameter])


LAYERS = [
    Layer("stem 7x7/2 3-64 @224", (1, 3, 224, 224), (64, 3, 7, 7), 2, 3),
    Layer("3x3 64 @56", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    Layer("3x3 64 @224", (1, 64, 224, 224), (64, 64, 3, 3), 1, 1),
    Layer("3x3/2 128 @56", (1, 128, 56, 56), (128, 128, 3, 3), 2, 1),
    Layer("3x3 256 @14", (1, 256, 14, 14), (256, 256, 3, 3), 1, 1),
    Layer("3x3 512 @7", (1, 512, 7, 7), (512, 512, 3, 3), 1, 1),
    Layer("3x3 512 @7 batch 8", (8, 512, 7, 7), (512, 512, 3, 3), 1, 1),
    Layer("3x3 dilation 2 128 @28", (1, 128, 28, 28), (128, 128, 3, 3), 1, 2, 2),
    Layer("1x1 256-64 @56", (1, 256, 56, 56), (64, 256, 1, 1)),
    Layer("1x1/2 256-512 @56", (1, 256, 56, 56), (512, 256, 1, 1), 2),
    Layer("1x1 1024-2048 @7", (1, 1024, 7, 7), (2048, 1024, 1, 1)),
    Layer("1x1 480-20 @1", (1, 480, 1, 1), (20, 480, 1, 1)),
    Layer("depthwise 3x3 32 @112", (1, 32, 112, 112), (32, 1, 1, 3, 3), 1, 1),
    Layer("depthwise 3x3/2 96 @112", (1, 96, 112, 112), (96, 1, 1, 3, 3), 2, 1),
    Layer("depthwise 3x3 512 @14", (1, 512, 14, 14), (512, 1, 1, 3, 3), 1, 1),
    Layer("depthwise 7x7 96 @56", (1, 96, 56, 56), (96, 1, 1, 7, 7), 1, 3),
    Layer("32 groups 3x3 256 @14", (1, 256, 14, 14), (32, 8, 8, 3, 3), 1, 1),
    Layer("2 groups 5x5 96-256 @27", (1, 96, 27, 27), (2, 128, 48, 5, 5), 1, 2),
    Layer("1D audio k3 80-512 @3000", (1, 80, 3000), (512, 80, 3), 1, 1),
    Layer("1D depthwise k31 256 @500", (1, 256, 500), (256, 1, 1, 31), 1, 15),
    Layer("MTCNN 3x3 3-10 @120x160", (1, 3, 120, 160), (10, 3, 3, 3)),
    Layer("MTCNN 3x3 16-32 @24", (1, 16, 24, 24), (32, 16, 3, 3)),
    Layer("3D 3x3x3 16-32 @16x32x32", (1, 16, 16, 32, 32), (32, 16, 3, 3, 3), 1, 1),
    Layer("transposed 4x4/2 256-128 @28", (1, 256, 28, 28), (256, 128, 4, 4), 2, 1, transposed=True),
    Layer("transposed 2x2/2 64-32 @112", (1, 64, 112, 112), (64, 32, 2, 2), 2, transposed=True),
    Layer("transposed depthwise 4x4/2 32 @56", (1, 32, 56, 56), (32, 1, 1, 4, 4), 2, 1, transposed=True),
]


def measure(layer: Layer, core: openvino.Core, rounds: int = 15) -> tuple[float, float, float]:
    """Return the seconds of ovir and of OpenVINO, and the difference of their results relative to the largest value."""
    data = np.random.default_rng(1).standard_normal(layer.data, np.float32)
    runs = infer_requests(layer.model(), [data], core)
    difference = largest_difference(runs["ovir"]()[0], runs["openvino"]()[0])
    times = in_turns(runs, rounds)
    return min(times["ovir"]), min(times["openvino"]), difference


def main() -> None:
    chosen = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    core = openvino.Core()
    ratios = []
    print(f"{'layer':36}{'ovir ms':>10}{'openvino ms':>13}{'ratio':>8}{'max rel. difference':>22}")
    for layer in LAYERS:
        if chosen.search(layer.name):
            ours, theirs, difference = measure(layer, core)
            ratios.append(ours / theirs)
            print(f"{layer.name:36}{ours * 1e3:10.3f}{theirs * 1e3:13.3f}{ours / theirs:8.2f}{difference:22.1e}")
    if ratios:
        print(f"{'geometric mean':36}{geometric_mean(ratios):31.2f}")


if __name__ == "__main__":
    main()
