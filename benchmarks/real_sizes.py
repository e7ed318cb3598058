"""Models of real size with random weights: ovir against OpenVINO's CPU plugin, from the file to the steady call.

    python -m benchmarks.real_sizes [--only REGEX] [--rounds N] [--keep FOLDER] [--engine ENGINE]
                                    [--quantize-activations] [--write]

``benchmarks/real_models.py`` makes the models; ``--keep`` names a folder that holds them from one run to the next. Each
round starts one process for each side and model in turns, and measures

- *compile*: reading the files and compiling the model,
- *first* and *steady*: the first call, and the median of ten later ones; for decoders, a prompt of 32 tokens and the
  median of 16 further tokens, each computed with the state that the former ones left; three calls are enough if they
  take over 20 seconds,
- *cold*: the whole process that does one call: ``ovir run``, or the shortest script with openvino,
- *peak*: the largest resident memory of the process that measures the calls, mapped pages of the .bin included.

The medians of the rounds are printed, with ovir's divided by OpenVINO's in parentheses. OpenVINO computes in f32, and
otherwise does what it does by default: it quantizes activations of products with 8-bit and 4-bit weights.

``--write`` writes each row to docs/performance.md once it is measured, and leaves the rows of other models as they
are, so that the table can be taken in pieces: ``--only '^sd_unet'``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

import ovir
from benchmarks.common import PEAK, figures, geometric_mean, with_bytecode, write_figures
from benchmarks.real_models import MODELS, is_decoder, write

_SMALL = Path(__file__).parents[1] / "examples" / "xml"
_SIDES = ("ovir", "openvino")
_FIELDS = ("compile", "first", "steady", "cold", "peak")
_HEAD = ("model", "compile, s", "first, s", "steady, ms", "cold, s", "peak, MiB")
_TABLE = "real sizes"
_MEAN = "geometric mean of the ratios"
_DEFAULT = (
    "^(resnet50|bert_base)_(f32|f16|int8)$|^(mobilenet_v2|vit_base|swin_tiny|whisper_base|sd_unet)_f16$"
    "|^decoder_0_5b|^decoder_1_5b_(f16|int8|int4_sym)$"
)
Figures = dict[str, float]

_MEASURE = (
    PEAK
    + """
import json, statistics, sys, time
import numpy as np
side, path, is_decoder, options = sys.argv[1], sys.argv[2], sys.argv[3] == "True", json.loads(sys.argv[4])
inputs = dict(np.load(path.replace("model.xml", "inputs.npz")))
if side == "ovir":
    import ovir
else:
    import openvino
begin = time.perf_counter()
if side == "ovir":
    request = ovir.compile_model(path, **options).create_infer_request()
    infer = lambda inputs: request.infer(inputs, share_outputs=True)
else:
    request = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    infer = lambda inputs: request.infer(inputs, share_inputs=True, share_outputs=True)
times = [time.perf_counter() - begin]
def timed(inputs):
    begin = time.perf_counter()
    outputs = infer(inputs)
    times.append(time.perf_counter() - begin)
    return outputs
timed(inputs)
length = inputs["input_ids"].shape[1] if is_decoder else 0
for index in range(16 if is_decoder else 10):
    if is_decoder:
        total = length + index + 1
        inputs = {
            "input_ids": np.array([[index]]),
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.array([[total - 1]]),
            "beam_idx": np.zeros(1, np.int32),
        }
    timed(inputs)
    if len(times) > 4 and sum(times[2:]) > 20:
        break
print(json.dumps({"compile": times[0], "first": times[1], "steady": statistics.median(times[2:]), "peak": peak()}))
"""
)

_COLD_OPENVINO = """
import sys, numpy, openvino
model = openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
model(dict(numpy.load(sys.argv[2])))
"""


def measure(side: str, name: str, path: Path, given: Mapping[str, object], environment: Mapping[str, str]) -> Figures:
    """Return the seconds of each stage on one side, and the peak in MiB; ovir compiles with the ``given`` options."""
    arguments = [side, str(path), str(is_decoder(name)), json.dumps(given)]
    found: Figures = json.loads(_output([sys.executable, "-c", _MEASURE, *arguments], environment))
    found["peak"] /= 1024
    command = _cold(side, path, path.with_name("inputs.npz"), given)
    begin = time.perf_counter()
    _output(command, environment)
    found["cold"] = time.perf_counter() - begin
    return found


def _cold(side: str, path: Path, inputs: Path, given: Mapping[str, object]) -> list[str]:
    """Return the command of a process that does one call."""
    if side == "openvino":
        return [sys.executable, "-c", _COLD_OPENVINO, str(path), str(inputs)]
    command = [sys.executable, "-m", "ovir", "run", str(path), "--input", str(inputs), "--engine", str(given["engine"])]
    return [*command, "--quantize-activations"] if given["quantize_activations"] else command


def write_bytecode(given: Mapping[str, object], environment: Mapping[str, str]) -> None:
    """Compile the modules of ovir and of the packages that both sides import, so that no measured process does."""
    _output([sys.executable, "-m", "compileall", "-q", str(Path(ovir.__file__).parent)], environment)
    for side in _SIDES:
        _output(_cold(side, _SMALL / "digits.xml", _SMALL / "digits_input.npz", given), environment)


def _output(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[3:])} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def compare(
    name: str, path: Path, rounds: int, given: Mapping[str, object], environment: Mapping[str, str]
) -> dict[str, Figures]:
    """Return the medians of both sides."""
    found: dict[str, list[Figures]] = {side: [] for side in _SIDES}
    for _ in range(rounds):
        for side in _SIDES:
            found[side].append(measure(side, name, path, given, environment))
    return {side: {key: median(f[key] for f in all_) for key in _FIELDS} for side, all_ in found.items()}


def texts(found: Mapping[str, Figures]) -> list[str]:
    """Return the cells of a row: the figures of ovir, with their ratio to OpenVINO's in parentheses."""
    cells = []
    for key in _FIELDS:
        ours, theirs = (found[side][key] for side in _SIDES)
        shown = f"{ours * 1e3:.2f}" if key == "steady" else f"{ours:.{0 if key == 'peak' else 2}f}"
        cells.append(f"{shown} ({ours / theirs:.2f})")
    return cells


def means(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the geometric means of the ratios in the columns of rows of cells."""
    ratios = [[float(cell.rpartition("(")[2].rstrip(")")) for cell in column] for column in zip(*rows, strict=True)]
    return [f"{geometric_mean(column):.2f}" for column in ratios]


def merged(table: Iterable[str], rows: Mapping[str, Sequence[str]], order: Iterable[str]) -> list[str]:
    """Return the lines of a table with new rows in place of those of the same models, sorted in an order of names."""
    cells = ([cell.strip() for cell in line.strip("| ").split("|")] for line in list(table)[2:])
    known = {name: row for name, *row in cells if name != _MEAN} | dict(rows)
    kept = {name: known[name] for name in order if name in known}
    lines = [_HEAD, ["---"] * len(_HEAD), *([name, *row] for name, row in kept.items()), [_MEAN, *means(kept.values())]]
    return [f"| {' | '.join(line)} |" for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=_DEFAULT, help="a regular expression for the names of models")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a folder that keeps the models")
    parser.add_argument("--engine", default="numpy", help="what runs ovir's side: numpy or onnxruntime")
    parser.add_argument("--quantize-activations", action="store_true", help="let onnxruntime round as OpenVINO does")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/performance.md")
    options = parser.parse_args()
    given = {"engine": options.engine, "quantize_activations": options.quantize_activations}
    if options.write and (options.engine != "numpy" or options.quantize_activations):
        parser.error("the table of docs/performance.md is that of the engine numpy")
    _print(_HEAD)
    rows: dict[str, list[str]] = {}
    with with_bytecode() as environment:
        write_bytecode(given, environment)
        for name in (name for name in MODELS if re.search(options.only, name)):
            with tempfile.TemporaryDirectory() as scratch:
                path = write(name, options.keep or Path(scratch))
                rows[name] = texts(compare(name, path, options.rounds, given, environment))
            _print([name, *rows[name]])
            if options.write:
                write_figures(_TABLE, merged(figures(_TABLE), {name: rows[name]}, MODELS))
    if rows:
        _print(["geometric mean", *means(rows.values())])


def _print(cells: Sequence[str]) -> None:
    print(f"{cells[0]:<24}" + "".join(f"{cell:>18}" for cell in cells[1:]), flush=True)


if __name__ == "__main__":
    main()
