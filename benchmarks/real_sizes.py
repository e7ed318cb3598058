"""Models of real size with random weights: ovir against OpenVINO's CPU plugin, from the file to the steady call.

    python -m benchmarks.real_sizes [FOLDER] [--only REGEX] [--rounds N] [--write]

``benchmarks/real_models.py`` makes the models, in FOLDER if it is given, which then keeps them. Each round starts one
process for each side and model in turns, and measures

- *compile*: reading the files and compiling the model,
- *first* and *steady*: the first call, and the median of ten later ones; for decoders, a prompt of 32 tokens and the
  median of 16 further tokens, each computed with the state that the former ones left,
- *cold*: the whole process that does one call: ``ovir run``, or the shortest script with openvino,
- *peak*: the largest resident memory of the process that measures the calls, mapped pages of the .bin included.

The medians of the rounds are printed, each with its ratio to OpenVINO's. OpenVINO computes in f32, and otherwise does
what it does by default: it quantizes activations of products with 8-bit and 4-bit weights.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.common import PEAK, Rows, folder_to_keep, output, report, with_bytecode
from benchmarks.real_models import MODELS, is_decoder, write

_SMALL = Path("examples") / "xml"
_SIDES = ("ovir", "openvino")
_SCALES = {"compile, s": 1.0, "first, s": 1.0, "steady, ms": 1e3, "cold, s": 1.0, "peak, MiB": 1 / 1024}
HEAD = ["model", *(title for name in _SCALES for title in (name, f"{name.partition(',')[0]} ratio"))]
_DEFAULT = "^(resnet50|bert_base)_(f32|f16|int8)$|^(mobilenet_v2|vit_base)_f16$|^decoder_0_5b_(f16|int8|int4_sym)$"
_MEASURE = (
    PEAK
    + """
import json, statistics, sys, time
import numpy as np
side, path, is_decoder = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
inputs = dict(np.load(path.replace("model.xml", "inputs.npz")))
if side == "ovir":
    import ovir
else:
    import openvino
begin = time.perf_counter()
if side == "ovir":
    request = ovir.compile_model(path).create_infer_request()
    infer = lambda inputs: request.infer(inputs, share_outputs=True)
else:
    request = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    infer = lambda inputs: request.infer(inputs, share_inputs=True, share_outputs=True)
times = [time.perf_counter() - begin]
length = inputs["input_ids"].shape[1] if is_decoder else 0
for index in range(17 if is_decoder else 11):
    if is_decoder and index:
        total = length + index
        inputs = {
            "input_ids": np.array([[index]]),
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.array([[total - 1]]),
            "beam_idx": np.zeros(1, np.int32),
        }
    begin = time.perf_counter()
    infer(inputs)
    times.append(time.perf_counter() - begin)
print(json.dumps([times[0], times[1], statistics.median(times[2:]), peak()]))
"""
)
_COLD = """
import sys, numpy, openvino
model = openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
model(dict(numpy.load(sys.argv[2])))
"""


def measured(side: str, name: str, path: Path, environment: Mapping[str, str]) -> list[float]:
    """Return the seconds of each stage on one side, and the peak in KiB."""
    *stages, peak = json.loads(output(["-c", _MEASURE, side, str(path), str(is_decoder(name))], environment))
    begin = time.perf_counter()
    run_once(side, path, path.with_name("inputs.npz"), environment)
    return [*stages, time.perf_counter() - begin, peak]


def run_once(side: str, path: Path, inputs: Path, environment: Mapping[str, str]) -> None:
    ours = ["-m", "ovir", "run", str(path), "--input", str(inputs)]
    output(ours if side == "ovir" else ["-c", _COLD, str(path), str(inputs)], environment)


def measure(options: argparse.Namespace) -> Rows:
    with with_bytecode() as environment:
        for side in _SIDES:  # which writes the bytecode of what they import
            run_once(side, _SMALL / "digits.xml", _SMALL / "digits_input.npz", environment)
        for name in (name for name in MODELS if re.search(options.only, name)):
            with tempfile.TemporaryDirectory() as scratch:
                path = write(name, options.folder or Path(scratch))
                rounds = [[measured(side, name, path, environment) for side in _SIDES] for _ in range(options.rounds)]
            ours, theirs = ([median(stage) for stage in zip(*side, strict=True)] for side in zip(*rounds, strict=True))
            row = ((a * scale, a / b) for a, b, scale in zip(ours, theirs, _SCALES.values(), strict=True))
            yield [name, *(number for pair in row for number in pair)]


if __name__ == "__main__":
    report(__doc__, "real sizes", HEAD, measure, rounds=3, only=_DEFAULT, means=HEAD[2::2], options=folder_to_keep)
